#include "session/model_package.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/text.h"

namespace sardonyx {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSchemaMajor = 1;
/// Above it fields may be there that this reader does not know.
constexpr std::int64_t kSchemaMinorKnown = 0;
constexpr std::string_view kAssetPrefix = "sha256:";
constexpr std::string_view kAssetFolderPrefix = "sha256-";
constexpr std::size_t kDigestLength = 64;

bool is_digest(std::string_view text) {
  return text.size() == kDigestLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_asset(std::string_view reference) {
  return reference.starts_with(kAssetPrefix) &&
         is_digest(reference.substr(kAssetPrefix.size(), kDigestLength)) &&
         (reference.size() == kAssetPrefix.size() + kDigestLength ||
          reference[kAssetPrefix.size() + kDigestLength] == '/');
}

bool has_parent_segment(const fs::path& path) {
  return std::find(path.begin(), path.end(), "..") != path.end();
}

/// Whether a normal path is the folder or lies below it.
bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

/// What the files of a package may still hold, together: one file may be named many times, objects
/// are searched entry by entry, and values are copied and printed recursively.
class JsonBudget {
 public:
  Status take(const std::string& path, std::string_view text) {
    if (text.size() > bytes_) {
      return failure(Code::InvalidModel, "'{}': the JSON of a package has at most {} bytes", path,
                     kBytes_max);
    }
    bytes_ -= text.size();
    std::size_t depth = 0;
    bool is_inside_text = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (is_inside_text) {
        if (c == '\\') ++i;
        is_inside_text = c != '"';
        continue;
      }
      is_inside_text = c == '"';
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && depth > 0) --depth;
      if (depth > kDepth_max) {
        return failure(Code::InvalidModel, "'{}' is nested deeper than {} levels", path,
                       kDepth_max);
      }
      if (c != ',') continue;
      if (entries_ == 0) {
        return failure(Code::InvalidModel, "'{}': the JSON of a package has at most {} entries",
                       path, kEntries_max);
      }
      --entries_;
    }
    return {};
  }

 private:
  static constexpr std::size_t kBytes_max = std::size_t{64} << 20;
  static constexpr std::size_t kEntries_max = std::size_t{1} << 15;
  static constexpr std::size_t kDepth_max = 64;
  std::size_t bytes_ = kBytes_max;
  std::size_t entries_ = kEntries_max;
};

Result<Json> read_json(const std::string& path, JsonBudget& budget) {
  SDX_ASSIGN(const auto file, MappedFile::open(path));
  const auto* begin = reinterpret_cast<const char*>(file->bytes().data());
  SDX_TRY(budget.take(path, {begin, file->size()}));
  Json json = Json::parse(begin, begin + file->size(), nullptr, false);
  if (json.is_discarded()) return failure(Code::InvalidModel, "'{}' is not JSON", path);
  return json;
}

/// The text under a key, or "" when it is left out.
Result<std::string> text_field(const Json& object, const std::string& owner, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return failure(Code::InvalidModel, "{}: '{}' should be a string, found {}", owner, key,
                 found->type_name());
}

/// The object under a key, or null when it is left out.
Result<const Json*> object_field(const Json& object, const std::string& owner, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return static_cast<const Json*>(nullptr);
  if (found->is_object()) return &*found;
  return failure(Code::InvalidModel, "{}: '{}' should be an object, found {}", owner, key,
                 found->type_name());
}

Result<const Json*> required_object(const Json& object, const std::string& owner, const char* key) {
  SDX_ASSIGN(const Json* found, object_field(object, owner, key));
  if (found != nullptr) return found;
  return failure(Code::InvalidModel, "{}: '{}' is missing", owner, key);
}

/// Errors   InvalidModel for anything but an object of strings.
Result<PackageVariant::Entries> entries_field(const Json& object, const std::string& owner,
                                              const char* key) {
  SDX_ASSIGN(const Json* found, object_field(object, owner, key));
  PackageVariant::Entries entries;
  if (found == nullptr) return entries;
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string() || name.find('\0') != std::string::npos) {
      return failure(Code::InvalidModel, "{}: '{}' should hold strings, found {} for '{}'", owner,
                     key, value.type_name(), name);
    }
    entries.emplace_back(name, value.get<std::string>());
  }
  return entries;
}

Status check_fields(const Json& object, const std::string& owner,
                    std::initializer_list<std::string_view> known, bool is_strict) {
  if (!object.is_object()) {
    return failure(Code::InvalidModel, "{}: expected an object, found {}", owner,
                   object.type_name());
  }
  if (!is_strict) return {};
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return failure(Code::InvalidModel, "{}: unknown field '{}'", owner, name);
  }
  return {};
}

/// A package's options may not make a session write files.
bool is_refused_option(std::string_view key) {
  return key == "session.optimized_model_filepath" || key == "session.enable_profiling";
}

}  // namespace

bool is_package_path_option(std::string_view key) {
  return key == "session.model_external_initializers_file_folder_path" ||
         key == "ep.context_file_path" || key == "ep.context_source_model_path";
}

/// Reads manifest and components into a package.
class PackageReader {
 public:
  explicit PackageReader(ModelPackage& package) : package_(package) {}

  Status read() {
    SDX_ASSIGN(const Json manifest,
               read_json((fs::path(package_.root_) / "manifest.json"), budget_));
    SDX_TRY(check_fields(manifest, "manifest", {}, false));
    SDX_TRY(read_version(manifest));
    SDX_TRY(check_fields(manifest, "manifest",
                         {"schema_version", "package_name", "package_version", "description",
                          "layout", "components", "shared_assets", "additional_metadata"},
                         is_strict_));
    SDX_ASSIGN(const std::string layout, text_field(manifest, "manifest", "layout"));
    if (!layout.empty() && layout != "portable" && layout != "installed") {
      return failure(Code::InvalidModel,
                     "manifest: 'layout' should be 'portable' or 'installed', found '{}'", layout);
    }
    package_.is_installed_ = layout == "installed";
    SDX_TRY(read_assets(manifest));
    SDX_ASSIGN(const Json* components, required_object(manifest, "manifest", "components"));
    for (const auto& [name, value] : components->items()) SDX_TRY(read_component(name, value));
    return {};
  }

 private:
  Status read_version(const Json& manifest) {
    const auto version = manifest.find("schema_version");
    if (version == manifest.end()) {
      return failure(Code::InvalidModel, "manifest: 'schema_version' is missing");
    }
    std::int64_t major = 0;
    std::int64_t minor = 0;
    bool is_good = version->is_number_integer();
    if (is_good) major = version->get<std::int64_t>();
    if (version->is_string()) {
      const auto text = version->get<std::string>();
      const char* end = text.data() + text.size();
      const auto first = std::from_chars(text.data(), end, major);
      is_good = first.ec == std::errc() && first.ptr != end && *first.ptr == '.';
      if (is_good) {
        const auto second = std::from_chars(first.ptr + 1, end, minor);
        is_good = second.ec == std::errc() && second.ptr == end;
      }
    }
    if (!is_good) {
      return failure(Code::InvalidModel,
                     "manifest: 'schema_version' should be \"<major>.<minor>\", found {}",
                     version->dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    if (major != kSchemaMajor) {
      return failure(Code::InvalidModel,
                     "manifest: this build reads schema version {}, the package has {}.{}",
                     kSchemaMajor, major, minor);
    }
    package_.schema_version_ = major;
    is_strict_ = minor <= kSchemaMinorKnown;
    return {};
  }

  /// Those that the manifest places, then those in the usual folder.
  Status read_assets(const Json& manifest) {
    SDX_ASSIGN(const Json* assets, object_field(manifest, "manifest", "shared_assets"));
    if (assets != nullptr) {
      for (const auto& [uri, place] : assets->items()) {
        if (!is_asset(uri) || uri.size() != kAssetPrefix.size() + kDigestLength) {
          return failure(Code::InvalidModel,
                         "manifest: shared asset '{}' should be 'sha256:' and 64 digits of it",
                         uri);
        }
        if (!place.is_string()) {
          return failure(Code::InvalidModel, "manifest: the place of '{}' should be a string", uri);
        }
        SDX_ASSIGN(package_.assets_[uri], package_.resolve("", place.get<std::string>(), false));
      }
    }
    std::error_code error;
    const fs::path folder = fs::path(package_.root_) / "shared_assets";
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (!name.starts_with(kAssetFolderPrefix) || !it->is_directory(error)) continue;
      const std::string digest = name.substr(kAssetFolderPrefix.size());
      if (!is_digest(digest)) continue;
      package_.assets_.emplace(std::string(kAssetPrefix) + digest, it->path().string());
    }
    return {};
  }

  Status read_component(const std::string& name, const Json& value) {
    const std::string owner = fmt::format("component '{}'", name);
    if (value.is_object()) return read_variants(name, owner, value, package_.root_);
    if (!value.is_string()) {
      return failure(Code::InvalidModel, "{}: expected a path or an object, found {}", owner,
                     value.type_name());
    }
    SDX_ASSIGN(fs::path path, package_.resolve("", value.get<std::string>(), true));
    std::error_code error;
    if (fs::is_directory(path, error)) {
      SDX_ASSIGN(path, package_.resolve(path.string(), "component.json", true));
    }
    SDX_ASSIGN(const Json body, read_json(path.string(), budget_));
    return read_variants(name, owner, body, path.parent_path().string());
  }

  Status read_variants(const std::string& name, const std::string& owner, const Json& body,
                       const std::string& folder) {
    SDX_TRY(check_fields(body, owner, {"component_name", "variants", "additional_metadata"},
                         is_strict_));
    SDX_ASSIGN([[maybe_unused]] const auto shown, text_field(body, owner, "component_name"));
    SDX_ASSIGN(const Json* variants, required_object(body, owner, "variants"));
    PackageComponent component{name, {}};
    for (const auto& [variant_name, variant] : variants->items()) {
      const std::string place = fmt::format("variant '{}' of {}", variant_name, owner);
      SDX_ASSIGN(PackageVariant made, read_variant(variant_name, place, variant, folder));
      component.variants.push_back(std::move(made));
    }
    package_.components_.push_back(std::move(component));
    return {};
  }

  Result<PackageVariant> read_variant(const std::string& name, const std::string& owner,
                                      const Json& body, const std::string& component_folder) {
    SDX_TRY(check_fields(body, owner,
                         {"variant_directory", "ep", "device", "compatibility_string",
                          "executor_info", "additional_metadata"},
                         is_strict_));
    PackageVariant variant;
    variant.name = name;
    SDX_ASSIGN(const std::string folder, text_field(body, owner, "variant_directory"));
    const bool is_stated = body.contains("variant_directory");
    SDX_ASSIGN(variant.folder,
               package_.resolve(component_folder, is_stated ? folder : name, is_stated));
    SDX_ASSIGN(variant.provider, text_field(body, owner, "ep"));
    SDX_ASSIGN(variant.device, text_field(body, owner, "device"));
    SDX_ASSIGN(variant.compatibility, text_field(body, owner, "compatibility_string"));
    SDX_ASSIGN(const Json* executors, object_field(body, owner, "executor_info"));
    if (executors == nullptr) return variant;
    for (const auto& [reader, value] : executors->items()) {
      SDX_ASSIGN(const Json info, executor_info(owner, reader, value, variant.folder));
      if (reader == "ort") SDX_TRY(read_session_info(owner, info, variant));
    }
    return variant;
  }

  /// What one reader of packages is told, in place or in a file of its own.
  Result<Json> executor_info(const std::string& owner, const std::string& reader, const Json& value,
                             const std::string& folder) {
    if (value.is_object()) return value;
    if (value.is_string()) {
      SDX_ASSIGN(const std::string path, package_.resolve(folder, value.get<std::string>(), true));
      return read_json(path, budget_);
    }
    return failure(Code::InvalidModel,
                   "{}: executor_info['{}'] should be a path or an object, found {}", owner, reader,
                   value.type_name());
  }

  Status read_session_info(const std::string& owner, const Json& info, PackageVariant& variant) {
    SDX_TRY(check_fields(info, owner, {}, false));
    SDX_ASSIGN(const std::string model, text_field(info, owner, "model_file"));
    if (!model.empty()) {
      SDX_ASSIGN(variant.model_file, resolve_in(owner, "model_file", variant.folder, model));
    }
    SDX_ASSIGN(variant.session_options, entries_field(info, owner, "session_options"));
    SDX_ASSIGN(variant.provider_options, entries_field(info, owner, "provider_options"));
    for (auto& [key, value] : variant.session_options) {
      if (is_refused_option(key)) {
        return failure(Code::InvalidModel, "{}: a package may not set '{}'", owner, key);
      }
      if (!is_package_path_option(key)) continue;
      SDX_ASSIGN(value, resolve_in(owner, key, variant.folder, value));
    }
    return {};
  }

  Result<std::string> resolve_in(const std::string& owner, const std::string& key,
                                 const std::string& folder, const std::string& reference) {
    auto resolved = package_.resolve(folder, reference, false);
    if (resolved.ok()) return resolved;
    return std::move(resolved).take_status().with(fmt::format("reading '{}' of {}", key, owner));
  }

  ModelPackage& package_;
  JsonBudget budget_;
  bool is_strict_ = true;
};

Result<ModelPackage> ModelPackage::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return failure(Code::NoSuchFile, "model package '{}' is not a folder", folder);
  }
  ModelPackage package;
  fs::path root = fs::absolute(folder, error).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  package.root_ = root.string();
  Status status = PackageReader(package).read();
  if (!status.ok()) return std::move(status).with("opening model package '" + folder + "'");
  return package;
}

const PackageComponent* ModelPackage::find_component(std::string_view name) const {
  const auto found = std::find_if(components_.begin(), components_.end(),
                                  [&](const auto& component) { return component.name == name; });
  return found == components_.end() ? nullptr : &*found;
}

Result<std::string> ModelPackage::resolve(const std::string& base, const std::string& reference,
                                          bool must_exist) const {
  if (reference.empty()) return failure(Code::InvalidModel, "a path of the package is empty");
  fs::path folder = base.empty() ? fs::path(root_) : fs::path(base);
  fs::path path = reference;
  const bool is_in_asset = is_asset(reference);
  if (is_in_asset) {
    const std::string uri = reference.substr(0, kAssetPrefix.size() + kDigestLength);
    const auto asset = assets_.find(uri);
    if (asset == assets_.end()) {
      return failure(Code::InvalidModel, "the package has no shared asset '{}'", uri);
    }
    folder = asset->second;
    path = reference.size() > uri.size() ? reference.substr(uri.size() + 1) : ".";
  }
  // An asset is a unit: nothing leads out of it, whatever the layout.
  const bool is_confined = is_in_asset || !is_installed_;
  if (is_confined && (path.is_absolute() || has_parent_segment(path))) {
    return failure(Code::InvalidModel, "path '{}' leads out of the package, whose layout is {}",
                   reference, is_installed_ ? "installed" : "portable");
  }
  fs::path resolved = (folder / path).lexically_normal();
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  std::error_code error;
  if (!is_installed_) {
    const fs::path real = fs::weakly_canonical(resolved, error);
    const fs::path real_root = fs::weakly_canonical(root_, error);
    if (error || !is_below(resolved, root_) || !is_below(real, real_root)) {
      return failure(Code::InvalidModel, "path '{}' leads to '{}', out of the package '{}'",
                     reference, resolved.string(), root_);
    }
  }
  if (must_exist && !fs::exists(resolved, error)) {
    return failure(Code::NoSuchFile, "'{}' of the package does not exist", resolved.string());
  }
  return resolved.string();
}

}  // namespace sardonyx
