#include "session/load.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "onnx/writer.h"
#include "ops/formal.h"
#include "ops/infer.h"
#include "ops/schema.h"
#include "passes/pipeline.h"
#include "session/custom_operators.h"
#include "session/known_keys.h"
#include "session/weightless.h"

namespace sardonyx {

namespace {

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

/// The size that the options give to a dimension, by denotation, by name or, agreeing, by both.
Result<std::optional<std::int64_t>> override_of(const SessionOptions& options,
                                                const std::string& symbol,
                                                const std::string& denotation) {
  std::optional<std::int64_t> size;
  for (const auto& [wanted, given] : options.dimensions_by_denotation) {
    if (!size && !denotation.empty() && lower(wanted) == lower(denotation)) size = given;
  }
  for (const auto& [wanted, given] : options.dimensions_by_name) {
    if (symbol.empty() || wanted != symbol) continue;
    if (size && *size != given) {
      return failure(Code::InvalidArgument,
                     "dimension '{}' is to be {} by its name, but {} by its denotation '{}'",
                     symbol, given, *size, denotation);
    }
    size = given;
  }
  return size;
}

std::string denotation_of(std::span<const DimDenotation> denotations, ValueId input, int axis) {
  for (const DimDenotation& denotation : denotations) {
    if (denotation.input == input && denotation.axis == axis) return denotation.text;
  }
  return "";
}

/// Puts sizes in the place of the dimensions of inputs that the options name. A negative size
/// leaves the dimension open.
Status fix_dimensions(Model& model, const SessionOptions& options,
                      std::span<const DimDenotation> denotations) {
  if (options.dimensions_by_name.empty() && options.dimensions_by_denotation.empty()) return {};
  for (const ValueId id : model.graph.inputs()) {
    Value& input = model.graph.value(id);
    if (!input.type.shape || input.default_value != nullptr) continue;
    Shape& shape = *input.type.shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      SDX_ASSIGN(const auto size, override_of(options, model.symbols.name(shape[axis]),
                                              denotation_of(denotations, id, axis)));
      if (!size) continue;
      if (is_known(shape[axis]) && shape[axis] != *size) {
        return failure(Code::InvalidArgument,
                       "dimension {} of input '{}' is {}, but the options override it with {}",
                       axis, input.name, shape[axis], *size);
      }
      shape[axis] = *size < 0 ? kUnknownDim : *size;
    }
  }
  return {};
}

/// A file of a few bytes can declare a sparse tensor of any dense size.
constexpr std::size_t kDensifiedBytesMax = std::size_t{256} << 20;

Status densify_initializer(Graph& graph, ValueId id, std::size_t& budget_bytes) {
  const Value& value = graph.value(id);
  const SparseTensor& sparse = *value.sparse_constant;
  const auto count = sparse.shape.element_count();
  const auto bytes = count ? dtype_bytes(sparse.values.dtype(), *count) : std::nullopt;
  if (!bytes || *bytes > budget_bytes) {
    return failure(Code::Unsupported,
                   "sparse initializer '{}' of shape {} expands to more than the {} bytes that "
                   "sparse initializers may take together",
                   value.name, sparse.shape.to_string(), kDensifiedBytesMax);
  }
  budget_bytes -= *bytes;
  auto dense = densify(sparse);
  if (!dense.ok()) {
    return std::move(dense).take_status().with("expanding sparse initializer '" + value.name + "'");
  }
  graph.set_constant(id, std::move(dense).value());
  graph.value(id).sparse_constant = nullptr;
  return {};
}

Status densify_initializers(Graph& graph, std::size_t& budget_bytes) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).sparse_constant == nullptr || graph.value(id).constant) continue;
    SDX_TRY(densify_initializer(graph, id, budget_bytes));
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    for (Graph* subgraph : subgraphs(graph.node(id))) {
      SDX_TRY(densify_initializers(*subgraph, budget_bytes));
    }
  }
  return {};
}

/// Small models must not grow without bound; weights stored as integers may become floats.
std::size_t folding_bound(const Graph& graph) {
  constexpr std::size_t kLeast_bytes = std::size_t{64} << 20;
  constexpr std::size_t kMost_bytes = std::size_t{1} << 30;
  std::size_t total_bytes = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const auto& constant = graph.value(id).constant;
    if (constant) total_bytes += constant->byte_size();
  }
  return std::max(kLeast_bytes, std::min(kMost_bytes, 5 * total_bytes));
}

PassOptions pass_options(const Graph& graph, const SessionOptions& options, int level) {
  PassOptions result;
  result.folded_bytes_max = folding_bound(graph);
  result.level = level;
  const auto weightless = requested_weightless(options);
  result.keeps_weights = weightless.ok() && *weightless != Weightless::None;
  if (const auto found = options.entries.find("optimization.disable_specified_optimizers");
      found != options.entries.end()) {
    result.skipped = found->second;
  }
  return result;
}

/// Nothing could be fed to such an input.
Status check_input_types(const Graph& graph) {
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    if (!input.type.is_tensor() || input.type.dtype != DType::Undefined) continue;
    return failure(Code::InvalidModel, "input '{}' is declared as a tensor without element type",
                   input.name);
  }
  return {};
}

void warn_of_mistaken_entries(const SessionOptions& options) {
  for (const auto& [key, value] : options.entries) {
    if (is_switch(key) && !value.empty() && value != "0" && value != "1") {
      log(Severity::Warning, "session config entry '{}' should be \"0\" or \"1\", found '{}'", key,
          value);
    }
    const std::string guess = intended_session_key(key);
    if (guess.empty()) continue;
    log(Severity::Warning,
        "session config key '{}' is not known and has no effect; did you mean "
        "'{}'?",
        key, guess);
  }
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> known_opsets() {
  return {{"ai.onnx", kOnnxOpsetReviewed}, {"ai.onnx.ml", kOnnxMlOpsetReviewed}};
}

int operator_since(const Node& node) {
  // Operators with channels last are those of the domain that they were taken from.
  const bool is_moved = node.domain == "com.ms.internal.nhwc";
  auto schema = find_schema(is_moved ? "" : node.domain, node.op_type, node.opset);
  return schema.ok() ? (*schema)->since : 1;
}

std::string_view operand_type_name(const Node& node, bool is_output, std::size_t index) {
  return type_parameter(node, is_output, index);
}

Attributes full_attributes(const Node& node) { return attributes_with_defaults(node); }

namespace {

/// How much of the last stage is done when all weights are written but not on the disk yet.
constexpr double kWritten = 0.9;

Status report(const SessionOptions& options, const char* stage, double done) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
    return failure(Code::Cancelled, "loading was cancelled before '{}'", stage);
  }
  const LoadProgress& progress = options.progress;
  if (progress.report == nullptr) return {};
  const double total = static_cast<double>(LoadStage::Ready);
  if (progress.report(progress.state, stage, done, total) == 0) return {};
  return failure(Code::Cancelled, "loading was stopped by its progress function before '{}'",
                 stage);
}

}  // namespace

Status report_progress(const SessionOptions& options, LoadStage stage) {
  static constexpr const char* kNames[] = {"read", "check", "optimize", "compile", "ready"};
  const auto index = static_cast<int>(stage);
  return report(options, kNames[index], index);
}

Status report_compiling(const SessionOptions& options, double share) {
  return report(options, "compile", static_cast<double>(LoadStage::Compile) + kWritten * share);
}

Status report_writing(const SessionOptions& options) {
  return report(options, "write", static_cast<double>(LoadStage::Compile) + kWritten);
}

Status optimize_graph(Graph& graph, const SessionOptions& options, int level) {
  return run_passes(PassStage::Common, graph, pass_options(graph, options, level));
}

Status prepare_model(Model& model, const SessionOptions& options,
                     std::span<const DimDenotation> denotations) {
  SDX_TRY(report_progress(options, LoadStage::Check));
  for (const auto& [domain, version] : model.opset_imports) SDX_TRY(check_opset(domain, version));
  // Twice: a custom operator wins over a function of the model, and serves nodes inside others.
  SDX_TRY(bind_custom_operators(model.graph, options.custom_operators));
  SDX_TRY(inline_functions(model));
  SDX_TRY(bind_custom_operators(model.graph, options.custom_operators));
  std::size_t budget_bytes = kDensifiedBytesMax;
  SDX_TRY(densify_initializers(model.graph, budget_bytes));
  warn_of_mistaken_entries(options);
  SDX_TRY(fix_dimensions(model, options, denotations));
  SDX_TRY(infer_types(model.graph));
  SDX_TRY(check_input_types(model.graph));
  SDX_TRY(report_progress(options, LoadStage::Optimize));
  SDX_TRY(optimize_graph(model.graph, options, options.optimization_level));
  if (!options.optimized_model_path.empty()) {
    SDX_TRY(write_model(model, options.optimized_model_path));
  }
  return {};
}

}  // namespace sardonyx
