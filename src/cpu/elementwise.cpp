#include "kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

/// Elements per chunk: enough to be worth a hand-over between threads.
constexpr std::int64_t kChunk = 1 << 14;
/// Functions that cost many instructions an element are split finer.
constexpr std::int64_t kHeavyChunk = 1 << 12;

std::optional<float> scalar_constant(const KernelRequest& request, std::size_t i) {
  const Tensor* constant = request.constant(i);
  if (constant == nullptr || constant->dtype() != DType::Float32 ||
      constant->element_count() != 1) {
    return std::nullopt;
  }
  return constant->values<float>()[0];
}

/// y = activation(x) or y = function(x).
class UnaryKernel final : public NodeKernel {
 public:
  UnaryKernel(const KernelRequest& request, kernels::Activation activation)
      : NodeKernel(request), activation_(activation) {}
  UnaryKernel(const KernelRequest& request, kernels::UnaryKind kind)
      : NodeKernel(request), kind_(kind) {}

  Status run(KernelContext& context) const override {
    const float* x = context.input(0).values<float>().data();
    float* y = context.output(0).mutable_values<float>().data();
    const auto& table = kernels::elementwise_table();
    const bool is_light = !kind_ && activation_.kind <= kernels::ActivationKind::HardSwish;
    context.pool().parallel_for(context.output(0).element_count(), is_light ? kChunk : kHeavyChunk,
                                [&](std::int64_t begin, std::int64_t end) {
                                  if (kind_) {
                                    table.unary(*kind_, x + begin, y + begin, end - begin);
                                  } else {
                                    table.activate(activation_, x + begin, y + begin, end - begin);
                                  }
                                });
    return {};
  }

 private:
  kernels::Activation activation_;
  std::optional<kernels::UnaryKind> kind_;
};

/// The activation of a node by its operator and attributes, or nothing.
std::optional<kernels::Activation> activation_of_node(const KernelRequest& request) {
  using Kind = kernels::ActivationKind;
  const std::string_view name = request.schema().name;
  const Attributes& attributes = request.attributes();
  if (name == "Relu") return kernels::Activation{Kind::Relu};
  if (name == "Sigmoid") return kernels::Activation{Kind::Sigmoid};
  if (name == "Tanh") return kernels::Activation{Kind::Tanh};
  if (name == "HardSwish") return kernels::Activation{Kind::HardSwish};
  if (name == "LeakyRelu") {
    return kernels::Activation{Kind::LeakyRelu, attributes.get_float("alpha", 0.01F)};
  }
  if (name == "HardSigmoid") {
    return kernels::Activation{Kind::HardSigmoid, attributes.get_float("alpha", 0.2F),
                               attributes.get_float("beta", 0.5F)};
  }
  if (name == "Gelu") {
    const bool is_exact = attributes.get_string("approximate", "none") == "none";
    return kernels::Activation{is_exact ? Kind::Gelu : Kind::GeluTanh};
  }
  if (name == "QuickGelu" && attributes.get_float("alpha", 1.702F) == 1.0F) {
    return kernels::Activation{Kind::Silu};
  }
  if (name == "Swish" && attributes.get_float("alpha", 1.0F) == 1.0F) {
    return kernels::Activation{Kind::Silu};
  }
  if (name != "Clip") return std::nullopt;
  kernels::Activation clip{Kind::Clip, -3.402823466e38F, 3.402823466e38F};
  if (request.version() < 11) {
    clip.alpha = attributes.get_float("min", clip.alpha);
    clip.beta = attributes.get_float("max", clip.beta);
    return clip;
  }
  clip.alpha = -std::numeric_limits<float>::infinity();
  clip.beta = std::numeric_limits<float>::infinity();
  for (std::size_t i = 1; i <= 2; ++i) {
    if (!request.has_input(i)) continue;
    const auto bound = scalar_constant(request, i);
    if (!bound) return std::nullopt;
    (i == 1 ? clip.alpha : clip.beta) = *bound;
  }
  return clip;
}

Result<std::unique_ptr<Kernel>> create_activation(const KernelRequest& request) {
  const auto activation = activation_of_node(request);
  if (request.dtype(0) != DType::Float32 || !activation) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<UnaryKernel>(request, *activation));
}

template <kernels::UnaryKind kKind>
Result<std::unique_ptr<Kernel>> create_unary(const KernelRequest& request) {
  if (request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<UnaryKernel>(request, kKind));
}

/// How two shapes broadcast, with axes that go together joined: an inner run of `inner` elements,
/// in which an operand steps by 1 or repeats, under outer axes with their strides.
struct BroadcastPlan {
  std::int64_t inner = 1;
  kernels::Repeat repeat = kernels::Repeat::None;
  int rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  std::array<std::int64_t, Shape::kMaxRank> a_strides{};
  std::array<std::int64_t, Shape::kMaxRank> b_strides{};

  std::int64_t outer() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[static_cast<std::size_t>(i)];
    return count;
  }
};

Dim aligned_dim(const Shape& shape, int axis, int rank) {
  const int own = axis - (rank - shape.rank());
  return own >= 0 ? shape[own] : 1;
}

BroadcastPlan plan_broadcast(const Shape& a, const Shape& b, const Shape& y) {
  BroadcastPlan plan;
  const int rank = y.rank();
  std::int64_t a_step = 1;
  std::int64_t b_step = 1;
  bool is_open = false;
  bool a_repeats = false;
  bool b_repeats = false;
  // From the last axis on; axes with the same behaviour join.
  for (int axis = rank - 1; axis >= 0; --axis) {
    const Dim size = y[axis];
    if (size == 1) continue;
    const bool a_one = aligned_dim(a, axis, rank) == 1;
    const bool b_one = aligned_dim(b, axis, rank) == 1;
    const bool joins = is_open && a_one == a_repeats && b_one == b_repeats;
    if (joins) {
      if (plan.rank == 0) {
        plan.inner *= size;
      } else {
        plan.dims[static_cast<std::size_t>(plan.rank - 1)] *= size;
      }
    } else if (!is_open) {
      plan.inner = size;
      plan.repeat = a_one ? kernels::Repeat::A : b_one ? kernels::Repeat::B : kernels::Repeat::None;
    } else {
      const auto i = static_cast<std::size_t>(plan.rank++);
      plan.dims[i] = size;
      plan.a_strides[i] = a_one ? 0 : a_step;
      plan.b_strides[i] = b_one ? 0 : b_step;
    }
    is_open = true;
    a_repeats = a_one;
    b_repeats = b_one;
    if (!a_one) a_step *= size;
    if (!b_one) b_step *= size;
  }
  return plan;
}

class BinaryKernel final : public NodeKernel {
 public:
  BinaryKernel(const KernelRequest& request, kernels::BinaryKind kind)
      : NodeKernel(request), kind_(kind) {}

  Status run(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    const BroadcastPlan plan = plan_broadcast(a.shape(), b.shape(), y.shape());
    const float* from_a = a.values<float>().data();
    const float* from_b = b.values<float>().data();
    float* to = y.mutable_values<float>().data();
    const auto& table = kernels::elementwise_table();
    const std::int64_t chunk = kind_ == kernels::BinaryKind::Pow ? kHeavyChunk : kChunk;
    if (plan.rank == 0) {
      context.pool().parallel_for(plan.inner, chunk, [&](std::int64_t begin, std::int64_t end) {
        table.binary(kind_, plan.repeat, from_a + (plan.repeat == kernels::Repeat::A ? 0 : begin),
                     from_b + (plan.repeat == kernels::Repeat::B ? 0 : begin), to + begin,
                     end - begin);
      });
      return {};
    }
    const std::int64_t grain = std::max<std::int64_t>(1, chunk / plan.inner);
    context.pool().parallel_for(plan.outer(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int64_t rest = row;
        std::int64_t a_offset = 0;
        std::int64_t b_offset = 0;
        for (int i = 0; i < plan.rank; ++i) {
          const auto axis = static_cast<std::size_t>(i);
          const std::int64_t at = rest % plan.dims[axis];
          rest /= plan.dims[axis];
          a_offset += at * plan.a_strides[axis];
          b_offset += at * plan.b_strides[axis];
        }
        table.binary(kind_, plan.repeat, from_a + a_offset, from_b + b_offset,
                     to + row * plan.inner, plan.inner);
      }
    });
    return {};
  }

 private:
  kernels::BinaryKind kind_;
};

template <kernels::BinaryKind kKind>
Result<std::unique_ptr<Kernel>> create_binary(const KernelRequest& request) {
  const bool fits = request.input_count() == 2 && request.dtype(0) == DType::Float32 &&
                    request.dtype(1) == DType::Float32 && !request.attributes().has("broadcast") &&
                    !request.attributes().has("axis");
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<BinaryKernel>(request, kKind));
}

constexpr unsigned kInPlace = Instruction::kInPlace;

constexpr KernelRow kRows[] = {
    {"", "Relu", 6, create_activation, kInPlace},
    {"", "Sigmoid", 6, create_activation, kInPlace},
    {"", "Tanh", 6, create_activation, kInPlace},
    {"", "HardSwish", 14, create_activation, kInPlace},
    {"", "LeakyRelu", 6, create_activation, kInPlace},
    {"", "HardSigmoid", 6, create_activation, kInPlace},
    {"", "Gelu", 20, create_activation, kInPlace},
    {"", "Swish", 24, create_activation, kInPlace},
    {"", "Clip", 6, create_activation, kInPlace},
    {"com.microsoft", "Gelu", 1, create_activation, kInPlace},
    {"com.microsoft", "QuickGelu", 1, create_activation, kInPlace},
    {"", "Exp", 6, create_unary<kernels::UnaryKind::Exp>, kInPlace},
    {"", "Log", 6, create_unary<kernels::UnaryKind::Log>, kInPlace},
    {"", "Sqrt", 6, create_unary<kernels::UnaryKind::Sqrt>, kInPlace},
    {"", "Reciprocal", 6, create_unary<kernels::UnaryKind::Reciprocal>, kInPlace},
    {"", "Abs", 6, create_unary<kernels::UnaryKind::Abs>, kInPlace},
    {"", "Neg", 6, create_unary<kernels::UnaryKind::Neg>, kInPlace},
    {"", "Erf", 9, create_unary<kernels::UnaryKind::Erf>, kInPlace},
    {"", "Sin", 7, create_unary<kernels::UnaryKind::Sin>, kInPlace},
    {"", "Cos", 7, create_unary<kernels::UnaryKind::Cos>, kInPlace},
    {"", "Floor", 6, create_unary<kernels::UnaryKind::Floor>, kInPlace},
    {"", "Ceil", 6, create_unary<kernels::UnaryKind::Ceil>, kInPlace},
    {"", "Softplus", 1, create_unary<kernels::UnaryKind::Softplus>, kInPlace},
    {"", "Add", 7, create_binary<kernels::BinaryKind::Add>, kInPlace},
    {"", "Sub", 7, create_binary<kernels::BinaryKind::Sub>, kInPlace},
    {"", "Mul", 7, create_binary<kernels::BinaryKind::Mul>, kInPlace},
    {"", "Div", 7, create_binary<kernels::BinaryKind::Div>, kInPlace},
    {"", "Pow", 7, create_binary<kernels::BinaryKind::Pow>, kInPlace},
    {"", "Min", 8, create_binary<kernels::BinaryKind::Min>, kInPlace},
    {"", "Max", 8, create_binary<kernels::BinaryKind::Max>, kInPlace},
    {"", "PRelu", 7, create_binary<kernels::BinaryKind::PRelu>, kInPlace},
};

}  // namespace

std::span<const KernelRow> elementwise_kernels() { return kRows; }

}  // namespace sardonyx
