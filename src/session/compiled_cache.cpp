#include "session/compiled_cache.h"

#include <filesystem>
#include <map>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "context/container.h"
#include "context/known_files.h"
#include "session/compiled_model.h"
#include "session/context_model.h"
#include "session/model_compiler.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderEntry = "sardonyx.cache_dir";
constexpr const char* kSourceEntry = "ep.context_source_model_path";

bool is_compiled(const Model& model) {
  for (NodeId id = 0; id < model.graph.node_count(); ++id) {
    const Node& node = model.graph.node(id);
    if (!node.is_removed && is_context_node(node)) return true;
  }
  return false;
}

/// Why the compiled model would depend on more than files and options; "" when it does not.
const char* reason_against(const Model& model, std::span<const std::byte> bytes,
                           const SessionOptions& options) {
  if (!options.own_providers.empty()) return "it has providers of vendors";
  if (!options.custom_operators.empty()) return "it has operators of its own";
  if (!options.read.initializers.empty() || !options.read.memory_files.empty() ||
      !options.weightless_source.empty()) {
    return "the program supplies weights";
  }
  if (model.path.empty() && bytes.empty()) return "the program made the model";
  if (is_compiled(model)) return "the model is compiled already";
  if (options.entry("ep.context_enable") == "1") return "it writes a compiled model itself";
  return "";
}

/// All of the options that shape a compiled model, and some that do not.
void add_options(const SessionOptions& options, ByteWriter& all) {
  all.number(static_cast<std::uint64_t>(options.optimization_level));
  for (const auto* dimensions : {&options.dimensions_by_name, &options.dimensions_by_denotation}) {
    all.number(dimensions->size());
    for (const auto& [name, size] : *dimensions) {
      all.text(name);
      all.signed_number(size);
    }
  }
  all.number(options.providers.size());
  for (const std::string& provider : options.providers) all.text(provider);
  const std::map<std::string, std::string> sorted(options.entries.begin(), options.entries.end());
  for (const auto& [key, value] : sorted) {
    if (key == kFolderEntry) continue;
    all.text(key);
    all.text(value);
  }
}

}  // namespace

Result<std::optional<CompiledCache>> CompiledCache::of(const Model& model,
                                                       std::span<const std::byte> bytes,
                                                       const SessionOptions& options) {
  const std::string folder = options.entry(kFolderEntry);
  if (folder.empty()) return std::optional<CompiledCache>();
  if (const char* reason = reason_against(model, bytes, options); *reason != '\0') {
    log(Severity::Info, "{} is not used for this session: {}", kFolderEntry, reason);
    return std::optional<CompiledCache>();
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    return failure(Code::InvalidArgument, "cannot make the folder '{}' of {}: {}", folder,
                   kFolderEntry, error ? error.message() : "it is no folder");
  }
  ByteWriter all;
  all.text(build_id());
  all.text(packing_isa());
  if (model.path.empty()) all.hash(hash_bytes(bytes));
  KnownFiles known = KnownFiles::beside((fs::path(folder) / kContainerName).string());
  for (const std::string& source : source_files(model)) {
    SDX_ASSIGN(const Hash128 content, known.content_of(source));
    all.hash(content);
  }
  known.save();
  add_options(options, all);
  const Hash128 key = hash_bytes(all.bytes());
  CompiledCache cache;
  cache.path_ =
      (fs::path(folder) / fmt::format("{:016x}{:016x}_ctx.onnx", key.high, key.low)).string();
  cache.source_path_ = model.path;
  return std::optional<CompiledCache>(std::move(cache));
}

Result<Model> CompiledCache::open(Environment& environment, const Model& model,
                                  const SessionOptions& options, bool rebuilds) const {
  std::error_code error;
  if (!rebuilds && fs::exists(path_, error)) {
    auto found = read_model(path_);
    if (found.ok()) return found;
    log(Severity::Info, "the compiled model '{}' in the cache is made again: {}", path_,
        found.status().to_string());
  }
  ContextOptions context;
  context.model_path = path_;
  context.needs_compiled_nodes = true;
  context.write = default_layout();
  ModelInput input;
  input.model = &model;
  SDX_TRY(compile_to_model(environment, input, options, context));
  return read_model(path_);
}

void CompiledCache::adapt(SessionOptions& options) const {
  // Names of files prove nothing: the hash of the sources is the name of the compiled model.
  // gcc 12 warns of an overlap when a literal is assigned here.
  options.entries.insert_or_assign(kIgnoreStaleEntry, std::string(1, '1'));
  if (!source_path_.empty()) options.entries.try_emplace(kSourceEntry, source_path_);
  options.dimensions_by_name.clear();
  options.dimensions_by_denotation.clear();
}

}  // namespace sardonyx
