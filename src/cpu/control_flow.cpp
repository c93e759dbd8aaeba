#include <algorithm>
#include <map>

#include "cpu/lower.h"
#include "cpu/node_kernel.h"
#include "cpu/registry.h"
#include "exec/executor.h"
#include "ops/eval_context.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// A subgraph as a program, and which inputs of the instruction it captures.
struct SubProgram {
  std::unique_ptr<Executor> executor;
  std::vector<std::size_t> captures;
};

/// If, Loop, Scan and their like: the operator's evaluator drives compiled subgraphs.
class ControlFlowKernel final : public NodeKernel {
 public:
  explicit ControlFlowKernel(const KernelRequest& request)
      : NodeKernel(request), operand_count_(request.node().inputs.size()) {}

  Status add(const std::string& attribute, const Graph& graph, const KernelRequest& request) {
    SDX_ASSIGN(Program program, lower(graph, request.weights(), request.thread_count()));
    program.shares_results = true;
    SubProgram sub;
    sub.executor = std::make_unique<Executor>(std::move(program));
    const auto& implicit = request.node().implicit_inputs;
    for (const Capture& capture : graph.captures()) {
      const auto found = std::find(implicit.begin(), implicit.end(), capture.outer);
      sub.captures.push_back(operand_count_ + static_cast<std::size_t>(found - implicit.begin()));
    }
    programs_.emplace(attribute, std::move(sub));
    return {};
  }

  Status infer(std::span<const Type* const> types, std::span<const Tensor* const> data,
               std::span<Type> outputs) const override {
    return NodeKernel::infer(types.first(operand_count_), data.first(operand_count_), outputs);
  }

  Status run(KernelContext& context) const override;

 private:
  class Context;

  std::size_t operand_count_;
  std::map<std::string, SubProgram, std::less<>> programs_;
};

class ControlFlowKernel::Context final : public EvalContext {
 public:
  Context(const ControlFlowKernel& kernel, Operands operands, KernelContext& context)
      : EvalContext(kernel.node(), kernel.schema(), operands), kernel_(kernel), context_(context) {}

  Result<std::vector<Datum>> run_subgraph(std::string_view attribute,
                                          std::span<const Datum> inputs) override {
    const auto found = kernel_.programs_.find(attribute);
    if (found == kernel_.programs_.end()) {
      return failure(Code::Internal, "no program for the subgraph in '{}'", attribute);
    }
    const SubProgram& sub = found->second;
    std::vector<Datum> captured;
    captured.reserve(sub.captures.size());
    for (const std::size_t operand : sub.captures) captured.push_back(*context_.inputs[operand]);
    const std::size_t expected = sub.executor->program().inputs.size();
    if (inputs.size() != expected) {
      return failure(Code::InvalidModel, "the subgraph in '{}' has {} inputs, but gets {}",
                     attribute, expected, inputs.size());
    }
    std::vector<Datum> outputs(sub.executor->program().outputs.size());
    SDX_TRY(sub.executor->run(inputs, captured, outputs, context_.run));
    return outputs;
  }

  bool cancelled() const override { return context_.run.is_cancelled(); }
  std::mt19937_64& random() override { return *context_.run.random; }

 protected:
  Result<Tensor> make_tensor(std::size_t, DType dtype, const Shape& shape) override {
    return Tensor::allocate(dtype, shape);
  }

 private:
  const ControlFlowKernel& kernel_;
  KernelContext& context_;
};

Status ControlFlowKernel::run(KernelContext& context) const {
  std::vector<Type> types(context.outputs.size());
  std::vector<Datum> results(context.outputs.size());
  std::vector<Type> input_types(operand_count_);
  std::vector<const Type*> pointers(operand_count_, nullptr);
  std::vector<const Tensor*> data(operand_count_, nullptr);
  for (std::size_t i = 0; i < operand_count_; ++i) {
    if (!context.has_input(i)) continue;
    input_types[i] = context.inputs[i]->type();
    pointers[i] = &input_types[i];
    data[i] = context.inputs[i]->tensor();
  }
  SDX_TRY(NodeKernel::infer(pointers, data, types));
  const std::span<const Datum* const> inputs(const_cast<const Datum* const*>(context.inputs.data()),
                                             operand_count_);
  Context eval(*this, {inputs, types, results}, context);
  SDX_TRY(schema().evaluate(eval));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!context.has_output(i)) continue;
    SDX_ASSIGN(*context.outputs[i], owned(results[i]));
  }
  return {};
}

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  auto kernel = std::make_unique<ControlFlowKernel>(request);
  for (const auto& [name, attribute] : request.attributes()) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      Status status = kernel->add(name, **graph, request);
      if (!status.ok()) return std::move(status).with("compiling its subgraph '" + name + "'");
    }
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

constexpr KernelRow kRows[] = {
    {"", "If", 1, create, Instruction::kNeverKnown},
    {"", "Loop", 1, create, Instruction::kNeverKnown},
    {"", "Scan", 8, create, Instruction::kNeverKnown},
    {"", "SequenceMap", 17, create, Instruction::kNeverKnown},
    {"ai.onnx.preview", "FlexAttention", 1, create, Instruction::kNeverKnown},
};

}  // namespace

std::span<const KernelRow> control_flow_kernels() { return kRows; }

}  // namespace sardonyx
