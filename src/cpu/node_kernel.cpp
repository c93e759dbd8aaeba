#include "cpu/node_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/executor.h"
#include "ops/empty_outputs.h"
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
    const Type& type = request.type(i);
    if (request.has_input(i)) inputs.push_back(type);
    input_dtypes_.push_back(type.is_tensor() ? type.dtype : DType::Undefined);
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

/// What a model declares about a value need not be what it turns out to be.
Status NodeKernel::check_inputs(std::span<const Type* const> types) const {
  for (std::size_t i = 0; i < types.size() && i < input_dtypes_.size(); ++i) {
    if (types[i] == nullptr) continue;
    if (types[i]->is_tensor() && types[i]->dtype == DType::Undefined) {
      return failure(Code::InvalidModel, "input {} is a tensor without element type", i);
    }
    if (input_dtypes_[i] == DType::Undefined) continue;
    if (types[i]->is_tensor() && types[i]->dtype == input_dtypes_[i]) continue;
    return failure(Code::InvalidModel, "input {} should be tensor({}), but is {}", i,
                   dtype_name(input_dtypes_[i]), types[i]->to_string());
  }
  return {};
}

Status NodeKernel::infer(std::span<const Type* const> types, std::span<const Tensor* const> data,
                         std::span<Type> outputs) const {
  SDX_TRY(check_inputs(types));
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
    if (context.outputs.size() <= kFew && context.inputs.size() <= kFew) {
      Few few;
      return evaluate(context, few.operands(context));
    }
    std::vector<Type> types(context.inputs.size() + context.outputs.size());
    std::vector<const Type*> pointers(context.inputs.size(), nullptr);
    std::vector<const Tensor*> data(context.inputs.size(), nullptr);
    std::vector<Datum> results(context.outputs.size());
    const std::span all(types);
    return evaluate(context, {all.first(context.inputs.size()), all.subspan(context.inputs.size()),
                              pointers, data, results});
  }

 private:
  static constexpr std::size_t kFew = 8;

  /// Room for what describes the operands of one run.
  struct Operands {
    std::span<Type> inputs;
    std::span<Type> outputs;
    std::span<const Type*> pointers;
    std::span<const Tensor*> data;
    std::span<Datum> results;
  };
  /// That room for few operands, without the heap.
  struct Few {
    std::array<Type, kFew> inputs;
    std::array<Type, kFew> outputs;
    std::array<const Type*, kFew> pointers{};
    std::array<const Tensor*, kFew> data{};
    std::array<Datum, kFew> results;

    Operands operands(const KernelContext& context) {
      const std::size_t in = context.inputs.size();
      const std::size_t out = context.outputs.size();
      return {std::span(inputs).first(in), std::span(outputs).first(out),
              std::span(pointers).first(in), std::span(data).first(in),
              std::span(results).first(out)};
    }
  };

  Status evaluate(KernelContext& context, const Operands& operands) const {
    bool is_planned = true;
    for (std::size_t i = 0; i < operands.outputs.size(); ++i) {
      if (!context.has_output(i)) continue;
      is_planned = is_planned && context.outputs[i]->tensor() != nullptr;
      if (is_planned) operands.outputs[i] = context.outputs[i]->type();
    }
    if (is_planned && has_no_elements(node(), schema(), operands.outputs)) return {};
    // Shapes can be known before data is; evaluators rely on what infer refuses by the data.
    if (!is_planned || context.inputs.size() > 1) SDX_TRY(infer_again(context, operands));
    const std::span<const Datum* const> inputs(
        const_cast<const Datum* const*>(context.inputs.data()), context.inputs.size());
    KernelEvalContext eval(node(), schema(), {inputs, operands.outputs, operands.results}, context);
    SDX_TRY(prepared_ != nullptr ? prepared_->evaluate(eval) : schema().evaluate(eval));
    for (std::size_t i = 0; i < operands.results.size(); ++i) {
      if (context.has_output(i)) SDX_TRY(store(operands.results[i], *context.outputs[i]));
    }
    return {};
  }

  Status infer_again(KernelContext& context, const Operands& operands) const {
    for (std::size_t i = 0; i < context.inputs.size(); ++i) {
      if (!context.has_input(i)) continue;
      operands.inputs[i] = context.inputs[i]->type();
      operands.pointers[i] = &operands.inputs[i];
      operands.data[i] = context.inputs[i]->tensor();
    }
    for (Type& type : operands.outputs) type = Type{};
    return infer(operands.pointers, operands.data, operands.outputs);
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
