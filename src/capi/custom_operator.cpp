// Custom operators: an OrtCustomOp as a CustomOperator of the session.
#include "capi/custom_operator.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_tables.h"
#include "capi/shape_infer_context.h"
#include "capi/status.h"
#include "ep/custom_kernel.h"

namespace sardonyx::capi {

namespace {

/// Runs code from outside, which may throw although its interface is C.
template <typename Body>
Status foreign(const char* callback, Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return Status(Code::Internal, fmt::format("{} threw: {}", callback, error.what()));
  } catch (...) {
    return Status(Code::Internal, fmt::format("{} threw", callback));
  }
}

class OrtCustomKernel final : public CustomKernel {
 public:
  OrtCustomKernel(const OrtCustomOp& op, std::shared_ptr<const KernelNode> node)
      : op_(op), node_(std::move(node)) {}
  ~OrtCustomKernel() override {
    if (!is_made_ || op_.KernelDestroy == nullptr) return;
    const Status status = foreign("KernelDestroy", [&]() -> Status {
      op_.KernelDestroy(kernel_);
      return {};
    });
    if (!status.ok()) log(Severity::Error, "{}", status.message());
  }
  OrtCustomKernel(const OrtCustomKernel&) = delete;
  OrtCustomKernel& operator=(const OrtCustomKernel&) = delete;

  /// A kernel may be null: operators without state return that.
  Status make() {
    const OrtKernelInfo info{node_};
    SDX_TRY(foreign("CreateKernel", [&]() -> Status {
      if (CustomOpReader(op_).has_kernel_v2()) {
        return take_status(op_.CreateKernelV2(&op_, &ort_api_table(), &info, &kernel_));
      }
      kernel_ = op_.CreateKernel(&op_, &ort_api_table(), &info);
      return {};
    }));
    is_made_ = true;
    return {};
  }

  Status run(CustomRun& run) const override {
    OrtKernelContext context = enter(run);
    SDX_TRY(foreign("KernelCompute", [&]() -> Status {
      if (CustomOpReader(op_).has_compute_v2()) {
        return take_status(op_.KernelComputeV2(kernel_, &context));
      }
      op_.KernelCompute(kernel_, &context);
      return {};
    }));
    return hand_out(context, run);
  }

 private:
  OrtKernelContext enter(CustomRun& run) const {
    OrtKernelContext context;
    context.state = &run.state;
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      // The node's own handle of a constant is aligned, which the graph's need not be.
      const OrtValue* constant = node_->inputs[i].constant.get();
      const Datum* given = run.inputs[i];
      if (constant != nullptr) given = &constant->datum;
      context.inputs.push_back({given != nullptr ? *given : Datum(), cpu_memory_info()});
    }
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      OrtKernelContext::Output output;
      output.is_there = run.outputs[i] != nullptr;
      output.dtype = node_->outputs[i].type.dtype;
      context.outputs.push_back(std::move(output));
    }
    return context;
  }

  Status hand_out(OrtKernelContext& context, CustomRun& run) const {
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      if (run.outputs[i] == nullptr) continue;
      if (!context.outputs[i].is_made && node_->outputs[i].is_used) {
        return failure(Code::Runtime, "custom operator {}:{} did not make its output '{}'",
                       node_->domain, node_->op_type, node_->outputs[i].name);
      }
      *run.outputs[i] = std::move(context.outputs[i].value.datum);
    }
    return {};
  }

  const OrtCustomOp& op_;
  std::shared_ptr<const KernelNode> node_;
  void* kernel_ = nullptr;
  bool is_made_ = false;
};

using Side = CustomOpReader::Side;

/// Whether the types of a node's inputs are those of the declaration.
Status check_types(const Side& side, std::span<const Type* const> types) {
  DType shared = DType::Undefined;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == nullptr || !types[i]->is_tensor()) continue;
    const DType found = types[i]->dtype;
    if (found == DType::Undefined) continue;
    const auto declared = side.at(i).type;
    if (declared != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
      SDX_ASSIGN(const DType expected, to_dtype(declared));
      if (expected == found) continue;
      return failure(Code::InvalidModel, "input {} should be tensor({}), but is {}", i,
                     dtype_name(expected), types[i]->to_string());
    }
    if (side.at(i).kind != INPUT_OUTPUT_VARIADIC || !side.is_homogeneous) continue;
    if (shared == DType::Undefined) shared = found;
    if (shared == found) continue;
    return failure(Code::InvalidModel,
                   "variadic inputs should be of one type: input {} is {}, those before it "
                   "tensor({})",
                   i, types[i]->to_string(), dtype_name(shared));
  }
  return {};
}

Status check_side(const char* what, const Side& side, size_t count,
                  const std::function<bool(size_t)>& is_there) {
  if (count < side.least() || (count > side.operands.size() && !side.is_variadic())) {
    return failure(Code::InvalidModel, "it takes {} {}{}, the node has {}", side.least(), what,
                   side.is_variadic() ? " or more" : "", count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (is_there(i) || side.at(i).kind != INPUT_OUTPUT_REQUIRED) continue;
    return failure(Code::InvalidModel, "{} {} is required, but left out", what, i);
  }
  return {};
}

/// All operators of one name and domain: several versions, types and providers.
class OrtCustomOperator final : public CustomOperator {
 public:
  OrtCustomOperator(std::string domain, std::shared_ptr<const KernelSession> session)
      : domain_(std::move(domain)), session_(std::move(session)) {}

  void add(const OrtCustomOp& op) { variants_.emplace_back(op); }

  bool runs_on(std::string_view provider) const override {
    return std::any_of(variants_.begin(), variants_.end(),
                       [&](const CustomOpReader& op) { return op.provider() == provider; });
  }

  Status infer(const Graph& graph, const Node& node, std::span<const Type* const> types,
               std::span<Type> outputs) const override {
    SDX_ASSIGN(const CustomOpReader* op, choose(node, types));
    SDX_TRY(declared_types(*op, types, outputs));
    if (!op->has_shape_inference()) return {};
    OrtShapeInferContext context(graph, node, types);
    SDX_TRY(foreign("InferOutputShapeFn", [&] {
      return take_status(op->raw().InferOutputShapeFn(&op->raw(), &context));
    }));
    return context.store(outputs);
  }

  Result<std::shared_ptr<const CustomKernel>> create_kernel(const Graph& graph,
                                                            const Node& node) const override {
    std::vector<const Type*> types;
    for (const ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &graph.value(id).type);
    }
    SDX_ASSIGN(const CustomOpReader* op, choose(node, types));
    SDX_ASSIGN(auto described, describe_kernel_node(graph, node, op->start_version(), session_));
    auto kernel = std::make_shared<OrtCustomKernel>(op->raw(), std::move(described));
    SDX_TRY(kernel->make());
    return std::shared_ptr<const CustomKernel>(std::move(kernel));
  }

 private:
  /// The first that fits version and types.
  Result<const CustomOpReader*> choose(const Node& node, std::span<const Type* const> types) const {
    Status reason;
    for (const CustomOpReader& op : variants_) {
      Status status = fits(op, node, types);
      if (status.ok()) return &op;
      if (reason.ok()) reason = std::move(status);
    }
    return Status(reason.code(), fmt::format("custom operator {}:{} does not fit: {}", domain_,
                                             node.op_type, reason.message()));
  }

  static Status fits(const CustomOpReader& op, const Node& node,
                     std::span<const Type* const> types) {
    if (node.opset != 0 && (node.opset < op.start_version() || node.opset > op.end_version())) {
      return failure(Code::InvalidModel, "it is for versions {} to {}, the model imports {}",
                     op.start_version(), op.end_version(), node.opset);
    }
    const Side inputs = op.inputs();
    SDX_TRY(
        check_side("inputs", inputs, types.size(), [&](size_t i) { return types[i] != nullptr; }));
    SDX_TRY(check_side("outputs", op.outputs(), node.outputs.size(),
                       [&](size_t i) { return node.outputs[i] != kNoValue; }));
    return check_types(inputs, types);
  }

  /// Outputs of any type take that of the first input of any type.
  static Status declared_types(const CustomOpReader& op, std::span<const Type* const> types,
                               std::span<Type> outputs) {
    const Side inputs = op.inputs();
    const Side sides = op.outputs();
    DType dynamic = DType::Undefined;
    for (size_t i = 0; i < types.size() && dynamic == DType::Undefined; ++i) {
      if (types[i] == nullptr || inputs.at(i).type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
        continue;
      }
      dynamic = types[i]->dtype;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      DType dtype = dynamic;
      if (sides.at(i).type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
        SDX_ASSIGN(dtype, to_dtype(sides.at(i).type));
      }
      outputs[i] = Type::tensor(dtype);
    }
    return {};
  }

  std::string domain_;
  std::shared_ptr<const KernelSession> session_;
  std::vector<CustomOpReader> variants_;
};

}  // namespace

Result<std::vector<CustomOperatorEntry>> make_custom_operators(
    std::span<const std::shared_ptr<const CustomDomain>> domains,
    std::shared_ptr<const KernelSession> session) {
  std::map<std::pair<std::string, std::string>, std::shared_ptr<OrtCustomOperator>> made;
  for (const auto& domain : domains) {
    const std::string name = domain->name == "ai.onnx" ? "" : domain->name;
    for (const OrtCustomOp* op : domain->ops) {
      SDX_TRY(CustomOpReader(*op).check());
      auto& entry = made[{name, op->GetName(op)}];
      if (entry == nullptr) entry = std::make_shared<OrtCustomOperator>(name, session);
      entry->add(*op);
    }
  }
  std::vector<CustomOperatorEntry> entries;
  for (auto& [key, op] : made) entries.push_back({key.first, key.second, std::move(op)});
  return entries;
}

}  // namespace sardonyx::capi
