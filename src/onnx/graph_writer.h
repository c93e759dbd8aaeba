#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "onnx/writer.h"

namespace sardonyx::onnx {

/// A message as parts in order: text of its own and ranges of weights, which are not copied.
class PartedMessage {
 public:
  void add(std::string text);
  /// The bytes must outlive the message.
  void add_borrowed(std::string_view bytes);
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Calls visit(std::string_view) for each part until one fails.
  template <typename Visit>
  Status for_each(Visit&& visit) const {
    for (const Part& part : parts_) {
      SDX_TRY(visit(part.borrowed.data() != nullptr ? part.borrowed : std::string_view(part.text)));
    }
    return {};
  }

 private:
  struct Part {
    std::string text;
    std::string_view borrowed;
  };
  std::vector<Part> parts_;
  std::uint64_t size_bytes_ = 0;
};

/// Names of the values of one graph as they are written.
using Names = std::vector<std::string>;

/// Writes graphs and functions; one object per model.
class GraphWriter {
 public:
  /// `external` takes large initializers of the main graph; null = they stay inside.
  GraphWriter(const Model& model, const WriteOptions& options, ExternalSink* external)
      : model_(model), options_(options), external_(external) {}

  /// The main graph.
  Result<PartedMessage> write_main();
  /// A FunctionProto.
  Result<std::string> write_function(const Function& function);

 private:
  Result<std::string> write_subgraph(const Graph& graph, const Names& outer);
  Names name_values(const Graph& graph, const Names* outer, std::vector<std::string>& added);
  Result<std::string> write_node(const Graph& graph, const Node& node, const Names& names);
  Result<std::string> write_attribute(std::string_view name, const Attribute& attribute,
                                      const Names& names);
  Status write_nodes(const Graph& graph, const Names& names, std::uint32_t field,
                     std::string& message);
  std::string write_head(const Graph& graph) const;
  std::string write_signature(const Graph& graph, const Names& names) const;
  std::string write_value_infos(const Graph& graph, const Names& names, std::uint32_t field) const;
  Status write_initializer(const Value& value, std::string_view name, const Tensor& tensor,
                           PartedMessage& message);
  Status write_initializers(const Graph& graph, const Names& names, PartedMessage& message);
  Status write_constant_nodes(const Graph& graph, const Names& names, std::string& message);

  const Model& model_;
  const WriteOptions& options_;
  ExternalSink* external_;
  /// Names in the graphs around and in the current one.
  std::unordered_set<std::string> taken_;
  std::uint64_t next_name_ = 0;
  bool in_function_ = false;
};

}  // namespace sardonyx::onnx
