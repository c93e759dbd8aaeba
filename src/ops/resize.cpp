#include "ops/resize_plan.h"

#include <algorithm>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"
#include "ops/real_tensor.h"

namespace sardonyx {

namespace {

bool is_upsample(const Node& node) { return node.op_type == "Upsample"; }

/// Input numbers of roi, scales and sizes; -1 where the version has none.
struct Places {
  int roi = -1;
  int scales = -1;
  int sizes = -1;
};

Places places_of(const Node& node, int version) {
  if (is_upsample(node)) return {-1, version >= 9 ? 1 : -1, -1};
  if (version < 11) return {-1, 1, -1};
  return {1, 2, 3};
}

/// The scales that versions of Upsample before 9 hold in attributes.
Result<std::vector<float>> attribute_scales(const Node& node, int version, int rank) {
  if (!is_upsample(node) || version >= 9) return std::vector<float>();
  if (version >= 7) return node.attributes.get_floats("scales");
  if (rank != 4) {
    return failure(Code::InvalidModel, "expected an input [N,C,H,W], found rank {}", rank);
  }
  return std::vector<float>{1.0F, 1.0F, node.attributes.get_float("height_scale", 1.0F),
                            node.attributes.get_float("width_scale", 1.0F)};
}

const Tensor* non_empty(const Tensor* tensor) {
  return tensor != nullptr && tensor->element_count() != 0 ? tensor : nullptr;
}

Status infer_resize(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const Places places = places_of(context.node(), context.version());
  ResizeInputs inputs;
  bool is_known_all = true;
  bool is_sized = false;
  const auto take = [&](int place) -> const Tensor* {
    const auto i = static_cast<std::size_t>(place);
    if (place < 0 || !context.has_input(i)) return nullptr;
    const Tensor* data = context.data(i);
    const Shape* shape = context.shape(i);
    const bool is_empty = shape != nullptr && *shape == Shape{0};
    is_known_all = is_known_all && (data != nullptr || is_empty);
    return non_empty(data);
  };
  inputs.scales = take(places.scales);
  inputs.sizes = take(places.sizes);
  is_sized = inputs.scales != nullptr || inputs.sizes != nullptr;
  if (places.scales >= 0 && !is_known_all && !is_sized) {
    context.set_shape(0, Shape::filled(input->rank(), kUnknownDim));
    return {};
  }
  SDX_TRY(resize_rules(context.attributes(), is_upsample(context.node()), context.version())
              .take_status());
  SDX_ASSIGN(const auto scales,
             attribute_scales(context.node(), context.version(), input->rank()));
  SDX_ASSIGN(const auto axes, resize_axes(context.attributes(), *input, inputs, scales));
  Shape output;
  for (const ResizeAxis& axis : axes) output.push_back(axis.out);
  context.set_shape(0, output);
  return {};
}

/// Copies whole blocks of the axes that stay as they are behind the last one that changes.
Status resize_nearest(const ResizeRules& rules, const std::vector<ResizeAxis>& axes,
                      const Tensor& x, Tensor& y) {
  int last = -1;
  std::vector<ResizeTaps> tables;
  for (int axis = 0; axis < x.rank(); ++axis) {
    SDX_ASSIGN(ResizeTaps table, resize_taps(rules, axes[static_cast<std::size_t>(axis)]));
    if (!axes[static_cast<std::size_t>(axis)].is_identity(rules)) last = axis;
    tables.push_back(std::move(table));
  }
  Tensor outside;
  SDX_ASSIGN(outside, Tensor::allocate(y.dtype(), {1}));
  fill_zero(outside);
  if (y.dtype() != DType::String && dtype_bits(y.dtype()) < 128) {
    write_real(y.dtype(), outside.mutable_data(), 0, static_cast<double>(rules.extrapolation));
  }
  Shape box;
  for (int axis = 0; axis <= last; ++axis) box.push_back(y.dim(axis));
  const std::int64_t block = y.shape().product(last + 1, y.rank());
  const Shape strides = strides_of(x.shape());
  Shape none = Shape::filled(box.rank(), 0);
  BoxWalker walker(box, none, none);
  std::int64_t to = 0;
  do {
    std::int64_t from = 0;
    bool is_outside = false;
    for (int axis = 0; axis <= last; ++axis) {
      const ResizeTaps& table = tables[static_cast<std::size_t>(axis)];
      const auto i = static_cast<std::size_t>(walker.position()[axis]);
      from += table.positions()[i] * strides[axis];
      is_outside = is_outside || table.is_outside(i);
    }
    if (is_outside) {
      fill_elements(y.dtype(), y.mutable_data(), to, block, outside.data(), 0);
    } else {
      copy_elements(y.dtype(), y.mutable_data(), to, x.data(), from, block);
    }
    to += block;
  } while (walker.next());
  return {};
}

/// Interpolates along one axis; Real is the type of all elements.
template <typename Real>
void interpolate(const ResizeTaps& table, Real extrapolation, std::int64_t outer, std::int64_t in,
                 std::int64_t out, std::int64_t inner, const Real* x, Real* y) {
  const std::span<const std::int64_t> positions = table.positions();
  const std::span<const float> weights = table.weights();
  for (std::int64_t o = 0; o < outer; ++o) {
    const Real* plane = x + o * in * inner;
    for (std::int64_t i = 0; i < out; ++i) {
      Real* row = y + (o * out + i) * inner;
      if (table.is_outside(static_cast<std::size_t>(i))) {
        std::fill_n(row, inner, extrapolation);
        continue;
      }
      std::fill_n(row, inner, Real{0});
      for (std::int64_t k = 0; k < table.taps; ++k) {
        const auto entry = static_cast<std::size_t>(i * table.taps + k);
        const auto weight = static_cast<Real>(weights[entry]);
        if (weight == Real{0}) continue;
        const Real* source = plane + positions[entry] * inner;
        for (std::int64_t n = 0; n < inner; ++n) row[n] += weight * source[n];
      }
    }
  }
}

/// Axis by axis; the elements of `x` are of type Real.
template <typename Real>
Result<Tensor> interpolate_all(const ResizeRules& rules, const std::vector<ResizeAxis>& axes,
                               const Tensor& x) {
  constexpr DType kReal = DTypeOf<Real>::value;
  Tensor current = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const ResizeAxis& plan = axes[static_cast<std::size_t>(axis)];
    if (plan.is_identity(rules)) continue;
    SDX_ASSIGN(const ResizeTaps table, resize_taps(rules, plan));
    Shape shape = current.shape();
    shape[axis] = plan.out;
    SDX_ASSIGN(Tensor next, Tensor::allocate(kReal, shape));
    interpolate<Real>(table, static_cast<Real>(rules.extrapolation), shape.product(0, axis),
                      plan.in, plan.out, shape.product(axis + 1, shape.rank()),
                      reinterpret_cast<const Real*>(current.data()),
                      reinterpret_cast<Real*>(next.mutable_data()));
    current = std::move(next);
  }
  return current;
}

Status resize_smooth(const ResizeRules& rules, const std::vector<ResizeAxis>& axes,
                     const Tensor& x, Tensor& y) {
  SDX_ASSIGN(const Tensor given, as_real(x));
  SDX_ASSIGN(const Tensor real, given.dtype() == DType::Float64
                                    ? interpolate_all<double>(rules, axes, given)
                                    : interpolate_all<float>(rules, axes, given));
  write_real_tensor(real, y);
  return {};
}

Status evaluate_resize(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Places places = places_of(context.node(), context.version());
  const auto take = [&](int place) {
    return place < 0 ? nullptr
                     : non_empty(context.tensor_or_null(static_cast<std::size_t>(place)));
  };
  const ResizeInputs inputs{take(places.roi), take(places.scales), take(places.sizes)};
  SDX_ASSIGN(ResizeRules rules, resize_rules(context.attributes(), is_upsample(context.node()),
                                             context.version()));
  SDX_ASSIGN(const auto scales, attribute_scales(context.node(), context.version(), x.rank()));
  SDX_ASSIGN(const auto axes, resize_axes(context.attributes(), x.shape(), inputs, scales));
  if (rules.coordinates == ResizeRules::Coordinates::CropAndResize && inputs.roi == nullptr) {
    return context.error("tf_crop_and_resize needs the input roi");
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  if (rules.mode == ResizeRules::Mode::Nearest) return resize_nearest(rules, axes, x, *y);
  return resize_smooth(rules, axes, x, *y);
}

constexpr OpSchema kRows[] = {
    {"", "Resize", 10, {"TF>T"}, "mode:s", infer_resize, evaluate_resize},
    {"", "Resize", 11, {"Tufi>T", kAll, kFloats},
     "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
     "mode:s nearest_mode:s",
     infer_resize, evaluate_resize},
    {"", "Resize", 13, {"Tufi>T", kAll, kFloats},
     "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
     "mode:s nearest_mode:s",
     infer_resize, evaluate_resize},
    {"", "Resize", 18, {"Tufi>T", kAll, kFloats},
     "antialias:i axes:is coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
     "extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     infer_resize, evaluate_resize},
    {"", "Resize", 19, {"Tufi>T", kAll, kFloats},
     "antialias:i axes:is coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
     "extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     infer_resize, evaluate_resize},
    {"", "Upsample", 1, {"T>T", kFloats | set_of(DType::Bool, DType::Int32, DType::Int64)},
     "height_scale:f! mode:s width_scale:f!", infer_resize, evaluate_resize},
    {"", "Upsample", 7, {"T>T"}, "mode:s scales:fs!", infer_resize, evaluate_resize},
    {"", "Upsample", 9, {"TF>T"}, "mode:s", infer_resize, evaluate_resize},
    {"", "Upsample", 10, {"TF>T"}, "mode:s", infer_resize, evaluate_resize, kDeprecated},
};

}  // namespace

std::span<const OpSchema> resize_schemas() { return kRows; }

}  // namespace sardonyx
