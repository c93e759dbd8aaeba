#include "cpu/node_kernel.h"
#include "cpu/registry.h"
#include "kernels/convert.h"

namespace sardonyx {

namespace {

/// Casts between float and the 16-bit floats, which meet at the borders of models that use those.
class FloatCastKernel final : public NodeKernel {
 public:
  explicit FloatCastKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    constexpr std::int64_t kGrain = 1 << 15;
    const kernels::ConvertTable& table = kernels::convert_table();
    const bool widens = y.dtype() == DType::Float32;
    const bool is_half = (widens ? x : y).dtype() == DType::Float16;
    const auto widen = is_half ? table.widen_f16 : table.widen_bf16;
    const auto narrow = is_half ? table.narrow_f16 : table.narrow_bf16;
    const std::byte* from = x.data();
    std::byte* to = y.mutable_data();
    context.pool().parallel_for(
        x.element_count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
          if (widens) {
            widen(reinterpret_cast<const std::uint16_t*>(from) + begin, end - begin,
                  reinterpret_cast<float*>(to) + begin);
          } else {
            narrow(reinterpret_cast<const float*>(from) + begin, end - begin,
                   reinterpret_cast<std::uint16_t*>(to) + begin);
          }
        });
    return {};
  }
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const auto is_narrow = [](DType dtype) {
    return dtype == DType::Float16 || dtype == DType::BFloat16;
  };
  const DType from = request.dtype(0);
  const DType to = request.graph().value(request.node().outputs[0]).type.dtype;
  const bool fits =
      (is_narrow(from) && to == DType::Float32) || (from == DType::Float32 && is_narrow(to));
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<FloatCastKernel>(request));
}

constexpr KernelRow kRows[] = {{"", "Cast", 1, create}};

}  // namespace

std::span<const KernelRow> cast_kernels() { return kRows; }

}  // namespace sardonyx
