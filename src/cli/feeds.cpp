#include "cli/feeds.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/files.h"
#include "cli/generate.h"
#include "cli/json_array.h"
#include "cli/npy.h"
#include "cli/npz.h"

namespace sardonyx::cli {

namespace {

/// "NAME=REST" split at the first '=', or nothing.
std::optional<std::pair<std::string, std::string>> split(const std::string& entry) {
  const auto at = entry.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == entry.size()) return std::nullopt;
  return std::pair(entry.substr(0, at), entry.substr(at + 1));
}

std::optional<std::int64_t> parse_size(const std::string& text) {
  std::int64_t size = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, size);
  if (error != std::errc() || end != last || size < 0) return std::nullopt;
  return size;
}

/// Arrays by the name of the input.
using Given = std::map<std::string, std::pair<Array, std::string>>;

std::string extension(const std::string& path) {
  const auto at = path.rfind('.');
  return at == std::string::npos ? "" : path.substr(at);
}

Result<const Port*> find_input(const Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const auto* ports : {&model.inputs, &model.overridable}) {
    for (const Port& port : *ports) {
      if (port.name == name) return &port;
      names.push_back(port.name);
    }
  }
  const std::string guess = hint(name, names);
  names.resize(model.inputs.size());
  return failure("the model has no input '{}'{}; its inputs are: {}", name,
                 guess, join(names, ", "));
}

Status read_npy_input(const Model& model, const std::string& name, const std::string& path,
                      Given* given) {
  SDX_ASSIGN(const Port* port, find_input(model, name));
  if (extension(path) == ".npz" || extension(path) == ".json") {
    return failure("input '{}' takes a .npy file; files with several inputs go to --inputs", name);
  }
  SDX_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  SDX_ASSIGN(Array array, parse_npy(bytes, port->element));
  given->insert_or_assign(name, std::pair(std::move(array), path));
  return {};
}

Status read_npz_inputs(const Model& model, const std::vector<std::byte>& bytes,
                       const std::string& path, Given* given) {
  SDX_ASSIGN(const std::vector<NpzMember> members, read_npz(bytes));
  for (const NpzMember& member : members) {
    SDX_ASSIGN(const Port* port, find_input(model, member.name));
    auto array = parse_npy(member.bytes, port->element);
    if (!array.ok()) {
      return std::move(array).take_status().with("reading member '" + member.name + "'");
    }
    given->insert_or_assign(member.name, std::pair(*std::move(array), path));
  }
  return {};
}

Status read_json_inputs(const Model& model, const std::vector<std::byte>& bytes,
                        const std::string& path, Given* given) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const Json json = Json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object()) {
    return Status("expected JSON of the form {\"input\": [[1, 2], [3, 4]], ...}");
  }
  for (const auto& [name, nested] : json.items()) {
    SDX_ASSIGN(const Port* port, find_input(model, name));
    if (port->element == nullptr) {
      return failure("input '{}' is a {}: only tensors can be fed", name,
                     port->describe());
    }
    SDX_ASSIGN(Array array, array_from_json(nested, *port->element, name));
    given->insert_or_assign(name, std::pair(std::move(array), path));
  }
  return {};
}

Status read_bundle(const Model& model, const std::string& path, Given* given) {
  SDX_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  const std::string ending = extension(path);
  if (ending == ".npz") return read_npz_inputs(model, bytes, path, given);
  if (ending == ".json") return read_json_inputs(model, bytes, path, given);
  return failure("--inputs takes a .npz or .json file, found '{}'", path);
}

/// What -d can name.
std::vector<std::string> free_dimensions(const Model& model) {
  std::vector<std::string> known;
  for (const Port& port : model.inputs) {
    for (std::size_t axis = 0; axis < port.dims.size(); ++axis) {
      if (port.dims[axis] >= 0) continue;
      if (!port.symbols[axis].empty()) known.push_back(port.symbols[axis]);
      known.push_back(fmt::format("{}:{}", port.name, axis));
    }
  }
  return known;
}

/// One name for each of them: the symbol where the model has one, else the input and the axis.
std::vector<std::string> dimension_names(const Model& model) {
  std::vector<std::string> names;
  for (const Port& port : model.inputs) {
    for (std::size_t axis = 0; axis < port.dims.size(); ++axis) {
      if (port.dims[axis] >= 0) continue;
      const std::string& symbol = port.symbols[axis];
      const bool is_telling = !symbol.empty() && symbol != "?";
      const std::string name = is_telling ? symbol : fmt::format("{}:{}", port.name, axis);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// The sizes that -d gives must belong to some dimension.
Status check_sizes(const Model& model, const std::map<std::string, std::int64_t>& sizes) {
  const std::vector<std::string> known = free_dimensions(model);
  for (const auto& [name, size] : sizes) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return failure("no input has a free dimension '{}'{}; there {}", name,
                   hint(name, known),
                   known.empty() ? "are none" : "are: " + join(known, ", "));
  }
  return {};
}

}  // namespace

bool is_file_entry(const std::string& entry) { return split(entry).has_value(); }

bool is_dim_entry(const std::string& entry) {
  const auto parts = split(entry);
  return parts && parse_size(parts->second);
}

std::map<std::string, std::int64_t> FeedOptions::sizes() const {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& entry : dims) {
    const auto parts = split(entry);
    if (parts) sizes[parts->first] = parse_size(parts->second).value_or(1);
  }
  return sizes;
}

std::string explain_generated(const Model& model, const Feeds& feeds) {
  const bool is_any = std::find(feeds.sources.begin(), feeds.sources.end(), "generated") !=
                      feeds.sources.end();
  const std::vector<std::string> names = dimension_names(model);
  if (!is_any || names.empty()) return "";
  return fmt::format(
      "\nInputs were generated; dimensions without a size count 1 unless --dim says otherwise: {}",
      join(names, ", "));
}

Result<Feeds> make_feeds(const Model& model, const FeedOptions& options) {
  const auto sizes = options.sizes();
  SDX_TRY(check_sizes(model, sizes));
  Given given;
  if (!options.bundle.empty()) {
    Status status = read_bundle(model, options.bundle, &given);
    if (!status.ok()) return std::move(status).with("reading '" + options.bundle + "'");
  }
  for (const std::string& entry : options.files) {
    const auto [name, path] = split(entry).value_or(std::pair<std::string, std::string>());
    Status status = read_npy_input(model, name, path, &given);
    if (!status.ok()) return std::move(status).with("reading '" + path + "'");
  }
  Feeds feeds;
  std::mt19937_64 random(static_cast<std::uint64_t>(options.seed));
  for (const Port& port : model.inputs) {
    if (given.count(port.name) != 0 || port.kind == ONNX_TYPE_OPTIONAL) continue;
    SDX_ASSIGN(Array array, generate(port, sizes, random));
    given.emplace(port.name, std::pair(std::move(array), "generated"));
  }
  for (auto& [name, entry] : given) {
    feeds.names.push_back(name);
    feeds.arrays.push_back(std::move(entry.first));
    feeds.sources.push_back(entry.second);
  }
  for (Array& array : feeds.arrays) {
    SDX_ASSIGN(Value value, to_value(array));
    feeds.values.push_back(std::move(value));
  }
  return feeds;
}

}  // namespace sardonyx::cli
