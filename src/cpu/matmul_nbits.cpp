#include <algorithm>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"
#include "kernels/nbits_gemm.h"

namespace sardonyx {

namespace {

/// com.microsoft:MatMulNBits in float32; the weights are read as the model stores them.
class MatMulNBitsKernel final : public NodeKernel {
 public:
  explicit MatMulNBitsKernel(const KernelRequest& request)
      : NodeKernel(request), thread_count_(request.thread_count()) {
    args_.n = attributes().get_int("N", 0);
    args_.k = attributes().get_int("K", 0);
    args_.bits = static_cast<int>(attributes().get_int("bits", 4));
    args_.block = attributes().get_int("block_size", 32);
    args_.a_stride = args_.k;
    args_.c_stride = args_.n;
    args_.int8_activations = attributes().get_int("accuracy_level", 0) == 4;
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    kernels::NbitsArgs args = args_;
    args.m = types[0]->shape->product(0, types[0]->shape->rank() - 1);
    return static_cast<std::size_t>(thread_count_) * each_bytes(args);
  }

  Status run(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    kernels::NbitsArgs args = args_;
    args.m = a.shape().product(0, a.rank() - 1);
    args.a = a.values<float>().data();
    args.b = context.input(1).values<std::uint8_t>().data();
    args.scales = context.input(2).data();
    if (context.has_input(3)) {
      const Tensor& zeros = context.input(3);
      if (zeros.dtype() == DType::Float32) {
        args.zero_floats = zeros.data();
      } else {
        args.zeros = zeros.values<std::uint8_t>().data();
      }
    }
    args.c = y.mutable_values<float>().data();
    if (context.has_input(5)) args.epilogue.bias = context.input(5).values<float>().data();
    const std::size_t each = each_bytes(args);
    constexpr std::int64_t kColumns = 64;
    const std::int64_t units = (args.n + kColumns - 1) / kColumns;
    // Every call prepares the rows of A anew: few large parts, one for a small product.
    const double operations = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                              static_cast<double>(std::max<std::int64_t>(1, args.k));
    const std::int64_t parts = operations < 1e6 ? 1 : 2 * context.pool().thread_count();
    const std::int64_t grain = thread_count_ == 1 ? units : (units + parts - 1) / parts;
    context.pool().parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * kColumns;
      const std::int64_t count = std::min(end * kColumns, args.n) - first;
      kernels::nbits_gemm(
          kernels::nbits_gemm_part(args, 0, args.m, first, count),
          context.scratch + each * static_cast<std::size_t>(ThreadPool::thread_index()));
    });
    return {};
  }

 private:
  static std::size_t each_bytes(const kernels::NbitsArgs& args) {
    return (kernels::nbits_gemm_scratch_bytes(args) + 63) / 64 * 64;
  }

  kernels::NbitsArgs args_;
  int thread_count_;
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const std::int64_t bits = attributes.get_int("bits", 4);
  const std::int64_t block = attributes.get_int("block_size", 32);
  const bool is_block = block == 16 || block == 32 || block == 64 || block == 128 || block == 256;
  const bool fits = request.dtype(0) == DType::Float32 && request.dtype(2) == DType::Float32 &&
                    request.dtype(1) == DType::UInt8 && !request.has_input(4) && is_block &&
                    (bits == 2 || bits == 4 || bits == 8) && attributes.get_int("N", 0) > 0 &&
                    attributes.get_int("K", 0) > 0 && request.shape(1) != nullptr;
  if (!fits) return std::unique_ptr<Kernel>();
  if (request.has_input(3) && request.dtype(3) != DType::UInt8 &&
      request.dtype(3) != DType::Float32) {
    return std::unique_ptr<Kernel>();
  }
  return std::unique_ptr<Kernel>(std::make_unique<MatMulNBitsKernel>(request));
}

constexpr KernelRow kRows[] = {{"com.microsoft", "MatMulNBits", 1, create}};

}  // namespace

std::span<const KernelRow> matmul_nbits_kernels() { return kRows; }

}  // namespace sardonyx
