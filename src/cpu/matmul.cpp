#include <algorithm>

#include "base/text.h"
#include "cpu/activation_of.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/registry.h"
#include "kernels/gemm.h"

namespace sardonyx {

namespace {

/// A product of matrices or of batches of them: sizes, and where each batch's operands lie.
struct Product {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  /// Batch dimensions with the strides of A and B in elements (0 where one repeats).
  Shape batch;
  Shape a_strides;
  Shape b_strides;
  bool b_is_shared = false;

  std::int64_t batch_count() const { return batch.product(0, batch.rank()); }
};

struct Transposed {
  bool a = false;
  bool b = false;
};

/// Strides of the batch axes of `x`, aligned at the end to `rank` axes; 0 where it repeats.
Shape batch_strides(const Shape& x, int rank) {
  Shape strides = Shape::filled(rank, 0);
  std::int64_t stride = x.rank() >= 2 ? x[x.rank() - 1] * x[x.rank() - 2] : 0;
  for (int axis = x.rank() - 3, to = rank - 1; axis >= 0; --axis, --to) {
    strides[to] = x[axis] == 1 ? 0 : stride;
    stride *= x[axis];
  }
  return strides;
}

/// Shapes were checked by inference.
Product make_product(const Shape& a, const Shape& b, Transposed transposed) {
  Product product;
  product.k = a.rank() == 1 ? a[0] : a[a.rank() - (transposed.a ? 2 : 1)];
  product.m = a.rank() == 1 ? 1 : a[a.rank() - (transposed.a ? 1 : 2)];
  product.n = b.rank() == 1 ? 1 : b[b.rank() - (transposed.b ? 2 : 1)];
  const int rank = std::max({a.rank(), b.rank(), 2}) - 2;
  product.batch = Shape::filled(rank, 1);
  for (int axis = 0; axis < rank; ++axis) {
    const int ia = a.rank() - 2 - rank + axis;
    const int ib = b.rank() - 2 - rank + axis;
    const Dim da = ia >= 0 ? a[ia] : 1;
    const Dim db = ib >= 0 ? b[ib] : 1;
    product.batch[axis] = da == 1 ? db : da;
  }
  product.a_strides = batch_strides(a, rank);
  product.b_strides = batch_strides(b, rank);
  product.b_is_shared = std::all_of(product.b_strides.begin(), product.b_strides.end(),
                                    [](Dim stride) { return stride == 0; });
  const bool a_is_dense =
      a.rank() >= 2 && a.element_count() == product.batch_count() * product.m * product.k;
  if (product.b_is_shared && a_is_dense && !transposed.a && rank > 0) {
    // All batches use one B: their rows follow each other.
    product.m *= product.batch_count();
    product.batch = product.a_strides = product.b_strides = Shape{};
  }
  return product;
}

/// Offset of batch `index` by the strides.
std::int64_t batch_offset(const Shape& batch, const Shape& strides, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    offset += index % batch[axis] * strides[axis];
    index /= batch[axis];
  }
  return offset;
}

/// How the operands of an operator are read.
struct ProductOptions {
  Transposed transposed;
  float alpha = 1;
  kernels::Activation activation;
};

class MatMulKernel final : public NodeKernel {
 public:
  MatMulKernel(const KernelRequest& request, ProductOptions options)
      : NodeKernel(request), options_(options), thread_count_(request.thread_count()) {}

  Status pack(const KernelRequest& request) {
    const Tensor* b = request.constant(1);
    if (b == nullptr || b->rank() != 2 || b->element_count() == 0) return {};
    kernels::GemmArgs args;
    args.k = b->dim(options_.transposed.b ? 1 : 0);
    args.n = b->dim(options_.transposed.b ? 0 : 1);
    args.b = b->data();
    args.b_stride = b->dim(1);
    args.b_transposed = options_.transposed.b;
    const kernels::IgemmTable& table = kernels::igemm_table();
    const auto bytes =
        static_cast<std::size_t>(kernels::igemm_packed_floats(table, args.n, args.k)) *
        sizeof(float);
    if (!request.weights().may_pack_product(bytes)) return {};
    const std::string layout = fmt::format("packed:gemm:{}:{}x{}:{}", isa_name(table.isa), args.k,
                                           args.n, args.b_transposed ? "t" : "n");
    packed_ = request.weights().pack_product(*b, layout, bytes, [&table, args](std::byte* target) {
      kernels::igemm_pack(table, kernels::gemm_pack_source(args), 0,
                          kernels::igemm_panels(table, args.n), reinterpret_cast<float*>(target));
    });
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const kernels::GemmArgs args =
        arguments(make_product(*types[0]->shape, *types[1]->shape, options_.transposed),
                  *types[0]->shape, *types[1]->shape);
    return static_cast<std::size_t>(thread_count_) * each_bytes(args);
  }

  bool reads(std::size_t input) const override { return input != 1 || packed_ == nullptr; }

  Status run(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    const Product product = make_product(a.shape(), b.shape(), options_.transposed);
    kernels::GemmArgs args = arguments(product, a.shape(), b.shape());
    args.a = a.values<float>().data();
    args.b = b.values<float>().data();
    args.c = y.mutable_values<float>().data();
    args.epilogue.alpha = options_.alpha;
    args.epilogue.activation = options_.activation;
    const bool adds_later = set_addends(context, product, args);
    if (product.batch.rank() == 0) {
      run_one(context, args);
    } else {
      run_batches(context, product, args);
    }
    if (adds_later) add_broadcast(context.input(2), product, y);
    return {};
  }

 private:
  kernels::GemmArgs arguments(const Product& product, const Shape& a, const Shape& b) const {
    kernels::GemmArgs args;
    args.m = product.m;
    args.n = product.n;
    args.k = product.k;
    args.a_transposed = options_.transposed.a && a.rank() >= 2;
    args.a_stride = a[a.rank() - 1];
    args.b_transposed = options_.transposed.b && b.rank() >= 2;
    args.b_stride = b.rank() == 1 ? 1 : b[b.rank() - 1];
    args.c_stride = product.n;
    args.packed_b =
        packed_ != nullptr ? reinterpret_cast<const float*>(packed_->bytes.get()) : nullptr;
    return args;
  }

  static std::size_t each_bytes(const kernels::GemmArgs& args) {
    return (kernels::gemm_scratch_bytes(args) + 63) / 64 * 64;
  }

  std::byte* scratch_of(KernelContext& context, std::size_t each) const {
    return context.scratch + each * static_cast<std::size_t>(ThreadPool::thread_index());
  }

  /// Puts bias and residual into the epilogue; true when input 2 has to be added afterwards.
  bool set_addends(KernelContext& context, const Product& product, kernels::GemmArgs& args) const {
    if (context.has_input(3)) {
      args.epilogue.residual = context.input(3).values<float>().data();
      args.epilogue.residual_stride = product.n;
    }
    if (!context.has_input(2)) return false;
    const Tensor& c = context.input(2);
    const float* values = c.values<float>().data();
    const std::int64_t count = c.element_count();
    if (count == product.n && c.rank() != 0 && c.dim(c.rank() - 1) == product.n) {
      args.epilogue.bias = values;
      return false;
    }
    if (count == product.m * product.n && args.epilogue.residual == nullptr) {
      args.epilogue.residual = values;
      args.epilogue.residual_stride = product.n;
      return false;
    }
    args.epilogue.activation = {};
    return true;
  }

  /// Gemm's C as one number or one a row, then the activation.
  void add_broadcast(const Tensor& c, const Product& product, Tensor& y) const {
    const auto values = c.values<float>();
    const auto target = y.mutable_values<float>();
    for (std::int64_t i = 0; i < product.m; ++i) {
      const float addend = values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < product.n; ++j) {
        float& element = target[static_cast<std::size_t>(i * product.n + j)];
        element = kernels::apply(options_.activation, element + addend);
      }
    }
  }

  void run_one(KernelContext& context, const kernels::GemmArgs& args) const {
    const std::size_t each = each_bytes(args);
    const double flops = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                         static_cast<double>(std::max<std::int64_t>(1, args.k));
    constexpr double kChunk_flops = 2e5;
    if (thread_count_ == 1 || flops < 2 * kChunk_flops) {
      kernels::gemm(args, scratch_of(context, each));
      return;
    }
    const kernels::IgemmTable& table = kernels::igemm_table();
    const std::int64_t panels = kernels::igemm_panels(table, args.n);
    const bool by_rows =
        args.packed_b != nullptr && args.m > args.n && args.m >= 8 * table.tile_rows;
    const std::int64_t unit = by_rows ? table.tile_rows : table.tile_columns;
    const std::int64_t length = by_rows ? args.m : args.n;
    const std::int64_t units = by_rows ? (args.m + unit - 1) / unit : panels;
    const auto least =
        static_cast<std::int64_t>(kChunk_flops / (flops / static_cast<double>(units)));
    const std::int64_t grain = std::max<std::int64_t>(least, piece_units(args, units));
    context.pool().parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * unit;
      const std::int64_t count = std::min(end * unit, length) - first;
      kernels::gemm(by_rows ? kernels::gemm_part(args, first, count, 0, args.n)
                            : kernels::gemm_part(args, 0, args.m, first, count),
                    scratch_of(context, each));
    });
  }

  /// Units that a thread takes at once. Rows of B that are read where they lie are read in long
  /// pieces: memory gives half as much in short ones (measured).
  std::int64_t piece_units(const kernels::GemmArgs& args, std::int64_t units) const {
    constexpr std::int64_t kLong_columns = 2048;
    const std::int64_t sixteenth = std::max<std::int64_t>(1, units / 16);
    if (args.packed_b != nullptr) return sixteenth;
    if (!kernels::gemm_is_small(args)) {
      return std::max(sixteenth, std::min<std::int64_t>(4, units / (2 * thread_count_)));
    }
    const std::int64_t pieces =
        thread_count_ * std::clamp<std::int64_t>(args.n / thread_count_ / kLong_columns, 1, 4);
    return (units + pieces - 1) / pieces;
  }

  void run_batches(KernelContext& context, const Product& product,
                   const kernels::GemmArgs& whole) const {
    const std::size_t each = each_bytes(whole);
    const double flops = 2.0 * static_cast<double>(whole.m) * static_cast<double>(whole.n) *
                         static_cast<double>(std::max<std::int64_t>(1, whole.k));
    const auto grain = static_cast<std::int64_t>(2e5 / flops) + 1;
    context.pool().parallel_for(product.batch_count(), grain,
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t i = begin; i < end; ++i) {
                                    kernels::GemmArgs args = whole;
                                    args.a += batch_offset(product.batch, product.a_strides, i);
                                    args.b = static_cast<const float*>(args.b) +
                                             batch_offset(product.batch, product.b_strides, i);
                                    args.c += i * whole.m * whole.n;
                                    if (args.epilogue.residual != nullptr)
                                      args.epilogue.residual += i * whole.m * whole.n;
                                    kernels::gemm(args, scratch_of(context, each));
                                  }
                                });
  }

  ProductOptions options_;
  int thread_count_;
  std::shared_ptr<const PackedBlob> packed_;
};

bool is_float_product(const KernelRequest& request) {
  return request.dtype(0) == DType::Float32 && request.dtype(1) == DType::Float32 &&
         request.shape(0) != nullptr && request.shape(1) != nullptr &&
         request.shape(0)->rank() >= 1 && request.shape(1)->rank() >= 1;
}

Result<std::unique_ptr<Kernel>> make(const KernelRequest& request, const ProductOptions& options) {
  auto kernel = std::make_unique<MatMulKernel>(request, options);
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> create_matmul(const KernelRequest& request) {
  if (!is_float_product(request)) return std::unique_ptr<Kernel>();
  return make(request, {});
}

Result<std::unique_ptr<Kernel>> create_fused(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const auto activation = activation_of(attributes);
  if (!is_float_product(request) || !activation) return std::unique_ptr<Kernel>();
  if (attributes.get_int("transBatchA", 0) != 0 || attributes.get_int("transBatchB", 0) != 0) {
    return std::unique_ptr<Kernel>();
  }
  ProductOptions options;
  options.transposed = {attributes.get_int("transA", 0) != 0, attributes.get_int("transB", 0) != 0};
  options.alpha = attributes.get_float("alpha", 1.0F);
  options.activation = *activation;
  return make(request, options);
}

Result<std::unique_ptr<Kernel>> create_gemm(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  if (!is_float_product(request)) return std::unique_ptr<Kernel>();
  if (request.has_input(2) && attributes.get_float("beta", 1.0F) != 1.0F) {
    return std::unique_ptr<Kernel>();
  }
  const auto activation = activation_of(attributes);
  if (!activation || attributes.has("activation_alpha")) return std::unique_ptr<Kernel>();
  ProductOptions options;
  options.transposed = {attributes.get_int("transA", 0) != 0, attributes.get_int("transB", 0) != 0};
  options.alpha = attributes.get_float("alpha", 1.0F);
  options.activation = *activation;
  return make(request, options);
}

constexpr KernelRow kRows[] = {
    {"", "MatMul", 1, create_matmul},
    {"com.microsoft", "FusedMatMul", 1, create_fused},
    {"com.microsoft", "TransposeMatMul", 1, create_fused},
    {"ai.sardonyx", "MatMul", 1, create_fused},
    {"", "Gemm", 7, create_gemm},
    {"com.microsoft", "FusedGemm", 1, create_gemm},
};

}  // namespace

std::span<const KernelRow> matmul_kernels() { return kRows; }

}  // namespace sardonyx
