#include <algorithm>
#include <cstring>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

constexpr std::int64_t kChunk_bytes = 1 << 16;

/// Concatenation of whole bytes, the outer rows split over threads.
class ConcatKernel final : public NodeKernel {
 public:
  explicit ConcatKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    const auto axis = normalize_axis(attributes().get_int("axis", 1), y.rank());
    const std::int64_t outer = y.shape().product(0, *axis);
    const std::int64_t row_bytes = static_cast<std::int64_t>(y.byte_size()) / outer;
    const std::int64_t grain = std::max<std::int64_t>(1, kChunk_bytes / row_bytes);
    context.pool().parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < context.inputs.size(); ++i) {
        const Tensor& x = context.input(i);
        const std::int64_t part = static_cast<std::int64_t>(x.byte_size()) / outer;
        copy(x.data() + begin * part, part, y.mutable_data() + begin * row_bytes + at, row_bytes,
             end - begin);
        at += part;
      }
    });
    return {};
  }

 private:
  static void copy(const std::byte* from, std::int64_t bytes, std::byte* to, std::int64_t stride,
                   std::int64_t rows) {
    if (bytes == 0) return;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * stride, from + row * bytes, static_cast<std::size_t>(bytes));
    }
  }
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const bool fits = request.type(0).is_tensor() && dtype_bits(request.dtype(0)) >= 8;
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<ConcatKernel>(request));
}

constexpr KernelRow kRows[] = {{"", "Concat", 4, create}};

}  // namespace

std::span<const KernelRow> concat_kernels() { return kRows; }

}  // namespace sardonyx
