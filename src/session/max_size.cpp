#include "session/max_size.h"

#include <filesystem>

#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/compiled_model.h"

namespace sardonyx {

Result<std::size_t> set_max_size(const std::string& path, std::int64_t max_size) {
  SDX_ASSIGN(Model model, read_model(path));
  std::size_t count = 0;
  for (NodeId id = 0; id < model.graph.node_count(); ++id) {
    Node& node = model.graph.node(id);
    if (node.is_removed || !is_context_node(node)) continue;
    if (node.attributes.get_int("main_context", 1) == 0) continue;
    node.attributes.set("max_size", max_size);
    ++count;
  }
  if (count == 0) return count;
  // A link stays one.
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) file = path;
  WriteOptions options;
  options.locate = [&](const Value& value) -> Result<std::optional<ExternalLocation>> {
    if (value.origin == nullptr || value.origin->file == file)
      return std::optional<ExternalLocation>();
    const auto name =
        std::filesystem::path(value.origin->file).lexically_relative(file.parent_path());
    return std::optional(
        ExternalLocation{name.string(), value.origin->offset, value.origin->length});
  };
  SDX_TRY(write_model(model, file.string(), options));
  return count;
}

}  // namespace sardonyx
