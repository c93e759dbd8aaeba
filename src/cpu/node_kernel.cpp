#include "cpu/node_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/executor.h"
#include "ops/eval_context.h"
#include "ops/infer_context.h"
#include "ops/prepared.h"

namespace sardonyx {

namespace {

bool all_tensors(std::span<const Type> types) {
  return std::all_of(types.begin(), types.end(), [](const Type& type) {
    return type.kind == Type::Kind::Tensor && type.dtype != DType::Undefined;
  });
}

}  // namespace

NodeKernel::NodeKernel(const KernelRequest& request)
    : node_(request.node()), schema_(request.schema()) {
  std::vector<Type> inputs;
  for (std::size_t i = 0; i < request.input_count(); ++i) {
    if (request.has_input(i)) inputs.push_back(request.type(i));
  }
  std::vector<Type> outputs;
  for (const ValueId output : node_.outputs) {
    const bool is_there = output != kNoValue;
    outputs.push_back(
        Type::tensor(is_there ? request.graph().value(output).type.dtype : DType::Float32));
    if (is_there && !request.graph().value(output).type.is_tensor()) outputs.back() = Type{};
  }
  if (all_tensors(inputs) && all_tensors(outputs)) output_types_ = std::move(outputs);
}

Status NodeKernel::infer(std::span<const Type* const> types, std::span<const Tensor* const> data,
                         std::span<Type> outputs) const {
  if (output_types_.empty()) {
    SDX_TRY(check_signature(node_, schema_, nullptr, types, outputs));
  } else {
    std::copy(output_types_.begin(), output_types_.end(), outputs.begin());
  }
  InferContext context(node_, schema_, nullptr, {types, data, outputs});
  return schema_.infer(context);
}

namespace {

/// Lets an evaluator write into planned outputs.
class KernelEvalContext final : public EvalContext {
 public:
  KernelEvalContext(const Node& node, const OpSchema& schema, Operands operands,
                    KernelContext& kernel)
      : EvalContext(node, schema, operands), kernel_(kernel) {}

  Result<std::vector<Datum>> run_subgraph(std::string_view attribute,
                                          std::span<const Datum>) override {
    return failure(Code::Internal, "no program for the subgraph in '{}'", attribute);
  }
  bool cancelled() const override { return kernel_.run.is_cancelled(); }
  std::mt19937_64& random() override { return *kernel_.run.random; }

 protected:
  Result<Tensor> make_tensor(std::size_t i, DType dtype, const Shape& shape) override {
    if (kernel_.has_output(i)) {
      if (const Tensor* planned = kernel_.outputs[i]->tensor();
          planned != nullptr && planned->dtype() == dtype && planned->shape() == shape) {
        return *planned;
      }
    }
    return Tensor::allocate(dtype, shape);
  }

 private:
  KernelContext& kernel_;
};

class EvaluateKernel final : public NodeKernel {
 public:
  explicit EvaluateKernel(const KernelRequest& request)
      : NodeKernel(request), prepared_(prepare_evaluation(node())) {}

  Status run(KernelContext& context) const override {
    constexpr std::size_t kFew = 8;
    if (context.outputs.size() <= kFew && context.inputs.size() <= kFew) {
      std::array<Type, kFew> types;
      std::array<Datum, kFew> results;
      return evaluate(context, std::span(types).first(context.outputs.size()),
                      std::span(results).first(context.outputs.size()));
    }
    std::vector<Type> types(context.outputs.size());
    std::vector<Datum> results(context.outputs.size());
    return evaluate(context, types, results);
  }

 private:
  Status evaluate(KernelContext& context, std::span<Type> types, std::span<Datum> results) const {
    bool is_planned = true;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!context.has_output(i)) continue;
      is_planned = is_planned && context.outputs[i]->tensor() != nullptr;
      if (is_planned) types[i] = context.outputs[i]->type();
    }
    if (!is_planned) SDX_TRY(infer_again(context, types));
    const std::span<const Datum* const> inputs(
        const_cast<const Datum* const*>(context.inputs.data()), context.inputs.size());
    KernelEvalContext eval(node(), schema(), {inputs, types, results}, context);
    SDX_TRY(prepared_ != nullptr ? prepared_->evaluate(eval) : schema().evaluate(eval));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (context.has_output(i)) SDX_TRY(store(results[i], *context.outputs[i]));
    }
    return {};
  }

  Status infer_again(KernelContext& context, std::span<Type> types) const {
    std::vector<Type> inputs(context.inputs.size());
    std::vector<const Type*> pointers(context.inputs.size(), nullptr);
    std::vector<const Tensor*> data(context.inputs.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!context.has_input(i)) continue;
      inputs[i] = context.inputs[i]->type();
      pointers[i] = &inputs[i];
      data[i] = context.inputs[i]->tensor();
    }
    for (Type& type : types) type = Type{};
    return infer(pointers, data, types);
  }

  /// An evaluator may hand out the memory of an input: planned outputs get a copy.
  static Status store(const Datum& result, Datum& slot) {
    Tensor* planned = slot.tensor();
    const Tensor* tensor = result.tensor();
    if (planned == nullptr || tensor == nullptr || planned->shape() != tensor->shape() ||
        planned->dtype() != tensor->dtype()) {
      SDX_ASSIGN(slot, owned(result));
      return {};
    }
    if (planned->data() == tensor->data()) return {};
    if (tensor->dtype() == DType::String) {
      const auto source = tensor->values<std::string>();
      std::copy(source.begin(), source.end(), planned->mutable_values<std::string>().begin());
    } else if (tensor->byte_size() != 0) {
      std::memcpy(planned->mutable_data(), tensor->data(), tensor->byte_size());
    }
    return {};
  }

  std::unique_ptr<const PreparedEvaluation> prepared_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> create_evaluate_kernel(const KernelRequest& request) {
  return std::unique_ptr<Kernel>(std::make_unique<EvaluateKernel>(request));
}

}  // namespace sardonyx
