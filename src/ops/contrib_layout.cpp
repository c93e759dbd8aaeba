#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// Weights in blocks along one axis, each block with a scale and a zero point. 8-bit data with 4
/// bits hold two weights in a byte, along the last axis, low bits first.
struct BlockRules {
  std::int64_t bits = 4;
  std::int64_t block_size = 128;
  int gather_axis = 0;
  int quantize_axis = 0;
  std::int64_t per_byte = 1;
};

Result<BlockRules> block_rules(const Attributes& attributes, DType dtype, int rank) {
  BlockRules rules;
  rules.bits = attributes.get_int("bits", 4);
  rules.block_size = attributes.get_int("block_size", 128);
  if (rules.bits != 2 && rules.bits != 4 && rules.bits != 8) {
    return failure(Code::InvalidModel, "bits is {}, but should be 2, 4 or 8", rules.bits);
  }
  if (rules.block_size < 16 || (rules.block_size & (rules.block_size - 1)) != 0) {
    return failure(Code::InvalidModel, "block_size {} is no power of two from 16 on",
                   rules.block_size);
  }
  SDX_ASSIGN(rules.gather_axis, resolve_axis(attributes.get_int("gather_axis", 0), rank));
  SDX_ASSIGN(rules.quantize_axis, resolve_axis(attributes.get_int("quantize_axis", 1), rank));
  if (dtype == DType::UInt8) rules.per_byte = 8 / rules.bits;
  if (rules.per_byte > 1 && (rules.quantize_axis != rank - 1 || rules.gather_axis == rank - 1)) {
    return failure(Code::InvalidModel, "packed weights need blocks along the last axis");
  }
  return rules;
}

Status infer_gather_blocks(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* scales = context.shape(2);
  if (data == nullptr || indices == nullptr) return {};
  SDX_ASSIGN(const BlockRules rules,
             block_rules(context.attributes(), context.dtype(0), data->rank()));
  if (data->rank() + indices->rank() - 1 > Shape::kMaxRank) {
    return context.error("the output is above rank {}", Shape::kMaxRank);
  }
  Shape whole = *data;
  Dim& last = whole[whole.rank() - 1];
  if (is_known(last)) {
    const auto size = checked_multiply(last, rules.per_byte);
    if (!size) return context.error("size {} is out of range", last);
    last = *size;
  }
  if (scales != nullptr && scales->is_static() && whole.is_static()) {
    Shape expected = whole;
    Dim& blocks = expected[rules.quantize_axis];
    blocks = blocks / rules.block_size + (blocks % rules.block_size != 0);
    if (!(*scales == expected)) {
      return context.error("scales should have shape {}, but have {}", expected.to_string(),
                           scales->to_string());
    }
  }
  Shape output;
  for (int i = 0; i < rules.gather_axis; ++i) output.push_back(whole[i]);
  for (const Dim dim : *indices) output.push_back(dim);
  for (int i = rules.gather_axis + 1; i < whole.rank(); ++i) output.push_back(whole[i]);
  context.set_shape(0, output);
  return {};
}

/// Element `i` of packed or plain unsigned bytes, or of a 4-bit type.
std::int64_t read_code(const Tensor& tensor, std::int64_t i, const BlockRules& rules) {
  if (tensor.dtype() != DType::UInt8 || rules.per_byte == 1) {
    return read_int(tensor.dtype(), tensor.data(), i);
  }
  const auto byte = std::to_integer<std::int64_t>(tensor.data()[i / rules.per_byte]);
  return byte >> (i % rules.per_byte * rules.bits) & ((1 << rules.bits) - 1);
}

/// Element of the zero points, whose rows of packed bytes are filled up.
std::int64_t zero_point(const EvalContext& context, const Shape& scales, std::int64_t i,
                        const BlockRules& rules) {
  const Tensor* points = context.tensor_or_null(3);
  if (points == nullptr) {
    return context.tensor(0).dtype() == DType::UInt8 ? std::int64_t{1} << (rules.bits - 1) : 0;
  }
  if (rules.per_byte == 1) return read_code(*points, i, rules);
  const std::int64_t width = scales[scales.rank() - 1];
  const std::int64_t stored = (width + rules.per_byte - 1) / rules.per_byte * rules.per_byte;
  return read_code(*points, i / width * stored + i % width, rules);
}

Status check_zero_points(const EvalContext& context, const Tensor& scales,
                         const BlockRules& rules) {
  const Tensor* points = context.tensor_or_null(3);
  if (points == nullptr) return {};
  Shape expected = scales.shape();
  Dim& last = expected[expected.rank() - 1];
  last = (last + rules.per_byte - 1) / rules.per_byte;
  if (points->shape() == expected) return {};
  return context.error("zero points should have shape {}, but have {}", expected.to_string(),
                       points->shape().to_string());
}

Status evaluate_gather_blocks(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const Tensor& scales = context.tensor(2);
  SDX_ASSIGN(const BlockRules rules,
             block_rules(context.attributes(), data.dtype(), data.rank()));
  SDX_TRY(check_zero_points(context, scales, rules));
  const auto indices = context.ints(1);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  Shape whole = data.shape();
  whole[whole.rank() - 1] *= rules.per_byte;
  const std::int64_t size = whole[rules.gather_axis];
  const std::int64_t inner = whole.product(rules.gather_axis + 1, whole.rank());
  const std::int64_t outer = whole.product(0, rules.gather_axis);
  const std::int64_t axis_inner = whole.product(rules.quantize_axis + 1, whole.rank());
  const std::int64_t axis_size = whole[rules.quantize_axis];
  const std::int64_t blocks = scales.dim(rules.quantize_axis);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t given : indices) {
      const std::int64_t index = given < 0 ? given + size : given;
      if (index < 0 || index >= size) {
        return context.error("index {} is outside [{}, {})", given, -size, size);
      }
      for (std::int64_t n = 0; n < inner; ++n) {
        const std::int64_t i = (o * size + index) * inner + n;
        const std::int64_t block = i / axis_inner % axis_size / rules.block_size;
        const std::int64_t s =
            (i / axis_inner / axis_size * blocks + block) * axis_inner + i % axis_inner;
        const std::int64_t code = read_code(data, i, rules);
        const std::int64_t zero = zero_point(context, scales.shape(), s, rules);
        write_real(y->dtype(), y->mutable_data(), to++,
                   static_cast<double>(code - zero) *
                       read_real(scales.dtype(), scales.data(), s));
      }
    }
  }
  return {};
}

/// One spatial axis of a pooling in [N, spatial..., C].
struct PoolAxis {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0;
  std::int64_t after = 0;

  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

Result<std::vector<PoolAxis>> pool_axes(const Attributes& attributes, const Shape& input) {
  const auto& kernel = attributes.get_ints("kernel_shape");
  const auto& strides = attributes.get_ints("strides");
  const auto& dilations = attributes.get_ints("dilations");
  const auto& pads = attributes.get_ints("pads");
  const std::size_t count = kernel.size();
  const auto fits = [&](std::size_t found, std::size_t expected) {
    return found == 0 || found == expected;
  };
  if (input.rank() != static_cast<int>(count) + 2 || !fits(strides.size(), count) ||
      !fits(dilations.size(), count) || !fits(pads.size(), 2 * count)) {
    return failure(Code::InvalidModel, "a kernel of {} axes does not fit an input {}", count,
                   input.to_string());
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::vector<PoolAxis> axes(count);
  for (std::size_t i = 0; i < count; ++i) {
    axes[i].kernel = kernel[i];
    if (!strides.empty()) axes[i].stride = strides[i];
    if (!dilations.empty()) axes[i].dilation = dilations[i];
    if (!pads.empty()) {
      axes[i].before = pads[i];
      axes[i].after = pads[count + i];
    }
    for (const std::int64_t value : {axes[i].kernel, axes[i].stride, axes[i].dilation}) {
      if (value < 1 || value > kMost) {
        return failure(Code::InvalidModel, "{} is no kernel size, stride or dilation", value);
      }
    }
    if (axes[i].before < 0 || axes[i].after < 0 || axes[i].before >= axes[i].kernel ||
        axes[i].after >= axes[i].kernel) {
      return failure(Code::InvalidModel, "pads {} and {} do not fit a kernel of {}",
                     axes[i].before, axes[i].after, axes[i].kernel);
    }
  }
  return axes;
}

/// The output size of an axis; also sets the pads that auto_pad asks for.
std::int64_t pooled_size(const Attributes& attributes, PoolAxis& axis, std::int64_t size) {
  const std::string mode = attributes.get_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    const std::int64_t out = (size + axis.stride - 1) / axis.stride;
    const std::int64_t pads =
        std::max<std::int64_t>(0, (out - 1) * axis.stride + axis.extent() - size);
    axis.before = mode == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
    axis.after = pads - axis.before;
    return out;
  }
  if (mode == "VALID") axis.before = axis.after = 0;
  const std::int64_t room = size + axis.before + axis.after - axis.extent();
  if (room < 0) return 0;
  const bool rounds_up = attributes.get_int("ceil_mode", 0) != 0;
  std::int64_t out = (room + (rounds_up ? axis.stride - 1 : 0)) / axis.stride + 1;
  // The last window has to begin inside the input or its first pads.
  if (rounds_up && (out - 1) * axis.stride >= size + axis.before) --out;
  return out;
}

Status infer_nhwc_pool(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(auto axes, pool_axes(context.attributes(), *input));
  Shape output = *input;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (!is_known((*input)[at])) {
      output[at] = kUnknownDim;
      continue;
    }
    output[at] = pooled_size(context.attributes(), axes[i], (*input)[at]);
    if (output[at] <= 0) {
      return context.error("a kernel of {} does not fit an axis of {}", axes[i].extent(),
                           (*input)[at]);
    }
  }
  context.set_shape(0, output);
  return {};
}

template <typename T>
void nhwc_max_pool(const Tensor& x, const std::vector<PoolAxis>& axes, Tensor& y) {
  const int spatial = static_cast<int>(axes.size());
  const std::int64_t channels = x.dim(x.rank() - 1);
  Shape windows;
  Shape kernel;
  for (int i = 0; i < spatial; ++i) {
    windows.push_back(y.dim(i + 1));
    kernel.push_back(axes[static_cast<std::size_t>(i)].kernel);
  }
  const Shape strides = strides_of(x.shape());
  const Shape none = Shape::filled(spatial, 0);
  T* to = reinterpret_cast<T*>(y.mutable_data());
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    BoxWalker window(windows, none, none);
    do {
      std::fill_n(to, channels, std::numeric_limits<T>::lowest());
      BoxWalker tap(kernel, none, none);
      do {
        std::int64_t offset = n * strides[0];
        bool is_inside = true;
        for (int i = 0; i < spatial && is_inside; ++i) {
          const PoolAxis& axis = axes[static_cast<std::size_t>(i)];
          const std::int64_t at = window.position()[i] * axis.stride +
                                  tap.position()[i] * axis.dilation - axis.before;
          is_inside = at >= 0 && at < x.dim(i + 1);
          offset += at * strides[i + 1];
        }
        if (!is_inside) continue;
        const T* from = reinterpret_cast<const T*>(x.data()) + offset;
        for (std::int64_t c = 0; c < channels; ++c) to[c] = std::max(to[c], from[c]);
      } while (tap.next());
      to += channels;
    } while (window.next());
  }
}

Status evaluate_nhwc_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(auto axes, pool_axes(context.attributes(), x.shape()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    pooled_size(context.attributes(), axes[i], x.dim(static_cast<int>(i) + 1));
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  if (x.dtype() == DType::Int8) {
    nhwc_max_pool<std::int8_t>(x, axes, *y);
  } else {
    nhwc_max_pool<std::uint8_t>(x, axes, *y);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"com.microsoft", "GatherBlockQuantized", 1,
     {"TNUt>U", set_of(DType::UInt8, DType::UInt4, DType::Int4), kFloatsBf16},
     "bits:i block_size:i gather_axis:i quantize_axis:i", infer_gather_blocks,
     evaluate_gather_blocks},
    {"com.microsoft", "NhwcMaxPool", 1, {"T>T", set_of(DType::Int8, DType::UInt8)},
     "auto_pad:s ceil_mode:i dilations:is kernel_shape:is! pads:is strides:is", infer_nhwc_pool,
     evaluate_nhwc_pool},
};

}  // namespace

std::span<const OpSchema> contrib_layout_schemas() { return kRows; }

}  // namespace sardonyx
