#include "cpu/custom.h"

#include "ep/custom_kernel.h"
#include "ir/custom_operator.h"

namespace sardonyx {

namespace {

class ForeignKernel final : public Kernel {
 public:
  ForeignKernel(std::vector<DType> output_types, std::shared_ptr<const CustomKernel> kernel)
      : output_types_(std::move(output_types)), kernel_(std::move(kernel)) {}

  /// Shapes are what the kernel makes, whatever its own inference said of them.
  Status infer(std::span<const Type* const>, std::span<const Tensor* const>,
               std::span<Type> outputs) const override {
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = Type::tensor(output_types_[i]);
    return {};
  }

  Status run(KernelContext& context) const override {
    CustomRun run{context.inputs, context.outputs, context.run};
    return kernel_->run(run);
  }

 private:
  std::vector<DType> output_types_;
  std::shared_ptr<const CustomKernel> kernel_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> create_custom_kernel(const Graph& graph, const Node& node) {
  SDX_ASSIGN(auto kernel, node.custom->create_kernel(graph, node));
  std::vector<DType> types;
  for (const ValueId output : node.outputs) {
    types.push_back(output == kNoValue ? DType::Undefined : graph.value(output).type.dtype);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<ForeignKernel>(std::move(types), std::move(kernel)));
}

}  // namespace sardonyx
