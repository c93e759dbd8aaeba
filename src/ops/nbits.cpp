#include <algorithm>

#include "ir/element.h"
#include "ops/block_weight.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Bounds every size so that products of three of them stay within 64 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 30;

/// Sizes as the attributes give them.
Result<BlockWeight> weight_of(const Attributes& attributes) {
  BlockWeight weight;
  weight.rows = attributes.get_int("N", 0);
  weight.depth = attributes.get_int("K", 0);
  weight.block = attributes.get_int("block_size", 32);
  const std::int64_t bits = attributes.get_int("bits", 4);
  if (weight.rows < 1 || weight.rows > kLargest || weight.depth < 1 || weight.depth > kLargest) {
    return failure(Code::InvalidModel, "N is {} and K is {}, expected sizes from 1 to {}",
                   weight.rows, weight.depth, kLargest);
  }
  const bool is_power = weight.block > 0 && (weight.block & (weight.block - 1)) == 0;
  if (!is_power || weight.block < 16 || weight.block > kLargest) {
    return failure(Code::InvalidModel, "block_size is {}, expected a power of two from 16 on",
                   weight.block);
  }
  if (bits != 2 && bits != 4 && bits != 8) {
    return failure(Code::Unsupported, "weights of {} bits; 2, 4 and 8 are known", bits);
  }
  if (attributes.get_int("weight_prepacked", 0) != 0) {
    return failure(Code::Unsupported, "weights prepacked for another device (weight_prepacked {})",
                   attributes.get_int("weight_prepacked", 0));
  }
  weight.bits = static_cast<int>(bits);
  return weight;
}

Status check_count(const InferContext& context, std::size_t input, std::int64_t expected) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr || !shape->is_static()) return {};
  if (shape->element_count() == expected) return {};
  return context.error("'{}' has shape {}, expected {} elements", context.input_name(input),
                       shape->to_string(), expected);
}

/// Whether the weight was left out by giving it no elements.
bool is_omitted(const Shape& weight) {
  return std::any_of(weight.begin(), weight.end(), [](Dim dim) { return dim == 0; });
}

Status infer_nbits(InferContext& context) {
  SDX_ASSIGN(const BlockWeight weight, weight_of(context.attributes()));
  const Shape* b = context.shape(1);
  if (b == nullptr || !is_omitted(*b)) {
    const std::int64_t blocks = weight.rows * weight.block_count();
    SDX_TRY(check_count(context, 1, weight.rows * weight.row_bytes()));
    SDX_TRY(check_count(context, 2, blocks));
    const bool is_packed = context.dtype(3) == DType::UInt8;
    SDX_TRY(check_count(context, 3, is_packed ? weight.rows * weight.zero_row_bytes() : blocks));
    SDX_TRY(check_count(context, 4, weight.depth));
  }
  SDX_TRY(check_count(context, 5, weight.rows));
  const Shape* a = context.shape(0);
  if (a == nullptr) return {};
  if (a->rank() < 1 || differ((*a)[a->rank() - 1], weight.depth)) {
    return context.error("'{}' has shape {}, expected the last dimension to be K = {}",
                         context.input_name(0), a->to_string(), weight.depth);
  }
  Shape shape = *a;
  shape[shape.rank() - 1] = weight.rows;
  context.set_shape(0, shape);
  return {};
}

Status evaluate_nbits(EvalContext& context) {
  SDX_ASSIGN(BlockWeight weight, weight_of(context.attributes()));
  const Tensor& a = context.tensor(0);
  SDX_ASSIGN(const auto x, Elements<float>::of(a));
  SDX_ASSIGN(const auto scales, Elements<float>::of(context.tensor(2)));
  SDX_ASSIGN(const auto bias, Elements<float>::of(context.tensor_or_null(5)));
  Elements<float> zeros;
  if (const Tensor* given = context.tensor_or_null(3)) {
    if (given->dtype() == DType::UInt8) {
      weight.packed_zeros = given->values<std::uint8_t>().data();
    } else {
      SDX_ASSIGN(zeros, Elements<float>::of(*given));
      weight.float_zeros = zeros.data();
    }
  }
  weight.codes = context.tensor(1).values<std::uint8_t>().data();
  weight.scales = scales.data();
  if (const Tensor* groups = context.tensor_or_null(4)) {
    weight.groups = groups->values<std::int32_t>().data();
    for (std::int64_t k = 0; k < groups->element_count(); ++k) {
      if (weight.groups[k] >= 0 && weight.groups[k] < weight.block_count()) continue;
      return context.error("g_idx holds {} at {}, expected a block in [0, {})", weight.groups[k], k,
                           weight.block_count());
    }
  }
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  if (!y) return {};
  const std::int64_t count = y.element_count();
  for (std::int64_t i = 0; i < count; ++i) y[i] = bias ? bias[i % weight.rows] : 0.0F;
  if (!is_omitted(context.tensor(1).shape())) {
    SDX_TRY(multiply_blocks(weight, x.data(), count / weight.rows, y.data()));
  }
  y.commit();
  return {};
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "MatMulNBits",
     1,
     {"TUTvwt>T", kFloat, set_of(DType::UInt8), kFloat | set_of(DType::UInt8),
      set_of(DType::Int32)},
     "K:i! N:i! accuracy_level:i bits:i block_size:i! weight_prepacked:i",
     infer_nbits,
     evaluate_nbits},
};

}  // namespace

std::span<const OpSchema> nbits_schemas() { return kRows; }

}  // namespace sardonyx
