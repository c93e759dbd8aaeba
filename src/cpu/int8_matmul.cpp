#include <algorithm>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/quantized.h"
#include "cpu/registry.h"
#include "cpu/scratch.h"
#include "kernels/int8_gemm.h"

namespace sardonyx {

namespace {

/// Products of 8-bit matrices: MatMulInteger (int32 out), MatMulIntegerToFloat (float out), with a
/// B of rank 2 that all batches share.
class Int8MatMulKernel final : public NodeKernel {
 public:
  /// Positions of the optional inputs.
  struct Form {
    std::size_t a_zero = 2;
    std::size_t b_zero = 3;
    /// 0 where there are none: the result is int32.
    std::size_t a_scale = 0;
    std::size_t b_scale = 0;
    std::size_t bias = 0;
    bool is_float() const { return a_scale != 0; }
  };

  Int8MatMulKernel(const KernelRequest& request, Form form)
      : NodeKernel(request), form_(form), thread_count_(request.thread_count()) {}

  Status pack(const KernelRequest& request) {
    const Tensor* b = request.constant(1);
    if (b == nullptr || b->element_count() == 0) return {};
    const kernels::Int8GemmTable& table = kernels::int8_gemm_table();
    const std::int64_t k = b->dim(0);
    const std::int64_t n = b->dim(1);
    const auto bytes = static_cast<std::size_t>(kernels::int8_packed_bytes(table, n, k));
    if (!request.weights().may_pack(bytes)) return {};
    kernels::Int8Source source;
    source.b = b->data();
    source.b_signed = b->dtype() == DType::Int8;
    source.columns = n;
    source.depth = k;
    source.column_stride = 1;
    source.depth_stride = n;
    const std::int64_t panels = (n + table.tile_columns - 1) / table.tile_columns;
    const std::string layout = fmt::format("packed:int8:{}:{}x{}:{}", isa_name(table.isa), k, n,
                                           source.b_signed ? "s" : "u");
    const auto fill = [&table, source, panels](std::byte* target) {
      kernels::int8_pack(table, source, 0, panels, target);
    };
    packed_ = request.weights().pack(*b, layout, bytes, fill);
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const kernels::Int8MatrixArgs args =
        sizes(*types[0]->shape, *types[1]->shape, types[0]->dtype, types[1]->dtype);
    return tables_bytes(args.n) + static_cast<std::size_t>(thread_count_) * each_bytes(args);
  }

  bool reads(std::size_t input) const override { return input != 1 || packed_ == nullptr; }

  Status run(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    kernels::Int8MatrixArgs args = sizes(a.shape(), b.shape(), a.dtype(), b.dtype());
    args.a = a.data();
    args.b = b.data();
    args.c = y.mutable_data();
    SDX_TRY(set_epilogue(context, args));
    std::byte* scratch = context.scratch + tables_bytes(args.n);
    const std::size_t each = each_bytes(args);
    const kernels::Int8GemmTable& table = kernels::int8_gemm_table();
    const std::int64_t panels = (args.n + table.tile_columns - 1) / table.tile_columns;
    const double operations = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                              static_cast<double>(std::max<std::int64_t>(1, args.k));
    const auto least = static_cast<std::int64_t>(4e5 / (operations / static_cast<double>(panels)));
    const std::int64_t grain = std::max<std::int64_t>({1, least, panels / 16});
    context.pool().parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t column = begin * table.tile_columns;
      const std::int64_t columns = std::min(end * table.tile_columns, args.n) - column;
      kernels::int8_gemm(kernels::int8_gemm_part(args, 0, args.m, column, columns),
                         scratch + each * static_cast<std::size_t>(ThreadPool::thread_index()));
    });
    return {};
  }

 private:
  kernels::Int8MatrixArgs sizes(const Shape& a, const Shape& b, DType a_type, DType b_type) const {
    kernels::Int8MatrixArgs args;
    args.k = b[0];
    args.n = b[1];
    args.m = a.product(0, a.rank() - 1);
    args.a_stride = args.k;
    args.b_stride = args.n;
    args.c_stride = args.n;
    args.a_signed = a_type == DType::Int8;
    args.b_signed = b_type == DType::Int8;
    args.packed_b = packed_ != nullptr ? packed_->bytes.get() : nullptr;
    args.epilogue.output = form_.is_float() ? kernels::Int8Output::F32 : kernels::Int8Output::S32;
    return args;
  }

  /// Zero points of B, then scales: one number a column each.
  static std::size_t tables_bytes(std::int64_t n) { return aligned_bytes(n * 8); }
  static std::size_t each_bytes(const kernels::Int8MatrixArgs& args) {
    // Row sums are needed for some zero points, which only the run tells.
    return aligned_bytes(static_cast<std::int64_t>(kernels::int8_gemm_scratch_bytes(args)) +
                         args.m * 4 + 64);
  }

  Status set_epilogue(KernelContext& context, kernels::Int8MatrixArgs& args) const {
    kernels::Int8Epilogue& epilogue = args.epilogue;
    if (context.has_input(form_.a_zero)) epilogue.a_zero = byte_at(context.input(form_.a_zero), 0);
    if (context.has_input(form_.b_zero)) {
      const Tensor& zero = context.input(form_.b_zero);
      auto* zeros = reinterpret_cast<std::int32_t*>(context.scratch);
      const bool is_one = zero.element_count() == 1;
      bool any = false;
      for (std::int64_t j = 0; j < args.n; ++j) {
        zeros[j] = byte_at(zero, is_one ? 0 : j);
        any = any || zeros[j] != 0;
      }
      if (any) epilogue.b_zeros = zeros;
    }
    if (!form_.is_float()) return {};
    const float a_scale = context.input(form_.a_scale).values<float>()[0];
    const auto b_scale = context.input(form_.b_scale).values<float>();
    auto* scales = reinterpret_cast<float*>(context.scratch) + args.n;
    for (std::size_t j = 0; j < static_cast<std::size_t>(args.n); ++j) {
      scales[j] = a_scale * b_scale[b_scale.size() == 1 ? 0 : j];
    }
    epilogue.scale = scales;
    epilogue.scale_per_column = true;
    if (context.has_input(form_.bias)) {
      epilogue.float_bias = context.input(form_.bias).values<float>().data();
    }
    return {};
  }

  Form form_;
  int thread_count_;
  std::shared_ptr<const PackedBlob> packed_;
};

/// Whether input i is left out or has one element or one a column.
bool is_per_column(const KernelRequest& request, std::size_t i, Dim columns, bool only_one) {
  if (!request.has_input(i)) return true;
  const Shape* shape = request.shape(i);
  if (shape == nullptr || !shape->is_static()) return false;
  const auto count = shape->element_count();
  if (count == 1) return true;
  return !only_one && count == columns && shape->rank() == 1;
}

bool fits(const KernelRequest& request, const Int8MatMulKernel::Form& form) {
  const Shape* a = request.shape(0);
  const Shape* b = request.shape(1);
  if (!is_8_bit(request.dtype(0)) || !is_8_bit(request.dtype(1))) return false;
  if (a == nullptr || a->rank() < 2 || b == nullptr || b->rank() != 2 || !is_known((*b)[1])) {
    return false;
  }
  return is_per_column(request, form.a_zero, (*b)[1], true) &&
         is_per_column(request, form.b_zero, (*b)[1], false);
}

Result<std::unique_ptr<Kernel>> make(const KernelRequest& request,
                                     const Int8MatMulKernel::Form& form) {
  auto kernel = std::make_unique<Int8MatMulKernel>(request, form);
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> create_integer(const KernelRequest& request) {
  const Int8MatMulKernel::Form form;
  if (!fits(request, form)) return std::unique_ptr<Kernel>();
  return make(request, form);
}

Result<std::unique_ptr<Kernel>> create_to_float(const KernelRequest& request) {
  Int8MatMulKernel::Form form;
  form.a_scale = 2;
  form.b_scale = 3;
  form.a_zero = 4;
  form.b_zero = 5;
  form.bias = 6;
  if (!fits(request, form) || request.dtype(2) != DType::Float32) return std::unique_ptr<Kernel>();
  const Dim columns = (*request.shape(1))[1];
  const bool scales_fit = is_per_column(request, 2, columns, true) &&
                          is_per_column(request, 3, columns, false) &&
                          (!request.has_input(6) ||
                           (request.shape(6) != nullptr && *request.shape(6) == Shape{columns}));
  if (!scales_fit) return std::unique_ptr<Kernel>();
  return make(request, form);
}

constexpr KernelRow kRows[] = {
    {"", "MatMulInteger", 10, create_integer},
    {"com.microsoft", "MatMulIntegerToFloat", 1, create_to_float},
};

}  // namespace

std::span<const KernelRow> int8_matmul_kernels() { return kRows; }

}  // namespace sardonyx
