#include "kernels/transpose.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

class TransposeKernel final : public NodeKernel {
 public:
  explicit TransposeKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    std::array<int, Shape::kMaxRank> axes{};
    const auto& permutation = attributes().get_ints("perm");
    for (int i = 0; i < x.rank(); ++i) {
      axes[static_cast<std::size_t>(i)] =
          permutation.empty() ? x.rank() - 1 - i
                              : static_cast<int>(permutation[static_cast<std::size_t>(i)]);
    }
    const auto plan = kernels::plan_transpose(
        x.shape().dims(), std::span(axes).first(static_cast<std::size_t>(x.rank())),
        dtype_bits(x.dtype()) / 8);
    constexpr std::int64_t kChunk_bytes = 1 << 16;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kChunk_bytes / std::max<std::int64_t>(1, plan.unit_bytes));
    std::byte* y = context.output(0).mutable_data();
    context.pool().parallel_for(plan.units, grain, [&](std::int64_t begin, std::int64_t end) {
      kernels::transpose_units(plan, x.data(), y, begin, end);
    });
    return {};
  }
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const bool fits = request.type(0).is_tensor() && dtype_bits(request.dtype(0)) >= 8;
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<TransposeKernel>(request));
}

constexpr KernelRow kRows[] = {{"", "Transpose", 1, create}};

}  // namespace

std::span<const KernelRow> transpose_kernels() { return kRows; }

}  // namespace sardonyx
