#include "ops/rotary.h"

#include <algorithm>

#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// The two operators of that name differ in the order of inputs.
struct RotaryInputs {
  std::size_t cosines;
  std::size_t sines;
  std::size_t positions;
};
constexpr RotaryInputs kStandard{1, 2, 3};
constexpr RotaryInputs kMicrosoft{2, 3, 1};

struct RotarySizes {
  bool is_packed = false;
  Dim batch = kUnknownDim;
  Dim length = kUnknownDim;
  Dim heads = kUnknownDim;
  Dim head_size = kUnknownDim;
  /// Elements of each head that turn.
  Dim dims = kUnknownDim;
};

Result<RotarySizes> rotary_sizes(const Attributes& attributes, const Shape& x,
                                 const Shape* cosines) {
  RotarySizes sizes;
  if (x.rank() != 3 && x.rank() != 4) {
    return failure(Code::InvalidModel, "the input has shape {}, expected 3 or 4 dimensions",
                   x.to_string());
  }
  sizes.batch = x[0];
  sizes.is_packed = x.rank() == 3;
  sizes.length = x[sizes.is_packed ? 1 : 2];
  sizes.dims = attributes.get_int("rotary_embedding_dim", 0);
  if (sizes.dims < 0) {
    return failure(Code::InvalidModel, "rotary_embedding_dim is {}, expected 0 or more",
                   sizes.dims);
  }
  if (!sizes.is_packed) {
    sizes.heads = x[1];
    sizes.head_size = x[3];
  } else {
    const std::int64_t heads = attributes.get_int("num_heads", 0);
    if (heads > 0) {
      SDX_TRY(check_heads("num_heads", heads, x[2]));
      sizes.heads = heads;
      sizes.head_size = is_known(x[2]) ? x[2] / heads : kUnknownDim;
    } else if (cosines != nullptr && cosines->rank() > 0 && sizes.dims == 0) {
      // Without a number of heads the cache tells the size of one.
      const Dim half = (*cosines)[cosines->rank() - 1];
      if (is_known(half)) {
        if (half < 1 || half > (Dim{1} << 40) || (is_known(x[2]) && x[2] % (2 * half) != 0)) {
          return failure(Code::InvalidModel, "{} elements do not split into heads of twice {}",
                         x[2], half);
        }
        sizes.head_size = 2 * half;
        sizes.heads = is_known(x[2]) ? x[2] / (2 * half) : kUnknownDim;
      }
    } else {
      return failure(Code::InvalidModel, "num_heads is {}, but the input has 3 dimensions", heads);
    }
  }
  if (sizes.dims == 0) sizes.dims = sizes.head_size;
  if (is_known(sizes.dims) && is_known(sizes.head_size) &&
      (sizes.dims < 0 || sizes.dims > sizes.head_size || sizes.dims % 2 != 0)) {
    return failure(Code::InvalidModel, "{} of {} elements of a head cannot turn in pairs",
                   sizes.dims, sizes.head_size);
  }
  return sizes;
}

template <const RotaryInputs& inputs>
Status infer_rotary(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  context.set_shape(0, *x);
  SDX_ASSIGN(const RotarySizes sizes,
             rotary_sizes(context.attributes(), *x, context.shape(inputs.cosines)));
  const int rank = context.has_input(inputs.positions) ? 2 : 3;
  for (const std::size_t i : {inputs.cosines, inputs.sines}) {
    const Shape* cache = context.shape(i);
    if (cache == nullptr) continue;
    const Dim half = is_known(sizes.dims) ? sizes.dims / 2 : kUnknownDim;
    if (cache->rank() != rank || differ((*cache)[rank - 1], half)) {
      return context.error("'{}' has shape {}, expected {} dimensions, the last one {}",
                           context.input_name(i), cache->to_string(), rank, half);
    }
    if (rank == 3 && (differ((*cache)[0], sizes.batch) || differ((*cache)[1], sizes.length))) {
      return context.error("'{}' has shape {}, expected [{}, {}, {}]", context.input_name(i),
                           cache->to_string(), sizes.batch, sizes.length, half);
    }
  }
  return {};
}

/// Rows of the caches for each position of each batch item.
Result<std::vector<std::int64_t>> cache_rows(EvalContext& context, const RotaryInputs& inputs,
                                             const RotarySizes& sizes) {
  const auto count = static_cast<std::size_t>(sizes.batch * sizes.length);
  std::vector<std::int64_t> rows(count);
  const auto positions = context.ints(inputs.positions);
  const Tensor& cosines = context.tensor(inputs.cosines);
  const bool has_positions = context.has_input(inputs.positions);
  if (has_positions && positions.size() != 1 && positions.size() != count) {
    return failure(Code::Runtime, "position_ids has {} elements, expected 1 or {}",
                   positions.size(), count);
  }
  // A 1-dimensional position is where the sequence starts.
  const bool is_start = has_positions && context.tensor(inputs.positions).rank() < 2;
  const std::int64_t limit = has_positions ? cosines.dim(0) : cosines.dim(0) * cosines.dim(1);
  const std::int64_t sine_limit =
      context.tensor(inputs.sines).shape().product(0, context.tensor(inputs.sines).rank() - 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t t = static_cast<std::int64_t>(i) % sizes.length;
    if (is_start && (positions[0] < 0 || positions[0] >= limit)) {
      return failure(Code::Runtime, "position {} is outside [0, {})", positions[0], limit);
    }
    rows[i] = !has_positions ? static_cast<std::int64_t>(i)
              : is_start     ? positions[0] + t
                             : positions[positions.size() == 1 ? 0 : i];
    if (rows[i] < 0 || rows[i] >= std::min(limit, sine_limit)) {
      return failure(Code::Runtime, "position {} is outside [0, {})", rows[i],
                     std::min(limit, sine_limit));
    }
  }
  return rows;
}

template <const RotaryInputs& inputs>
Status evaluate_rotary(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  SDX_ASSIGN(const RotarySizes s, rotary_sizes(context.attributes(), input.shape(),
                                               &context.tensor(inputs.cosines).shape()));
  const bool is_interleaved = context.attributes().get_int("interleaved", 0) != 0;
  SDX_ASSIGN(const auto rows, cache_rows(context, inputs, s));
  return with_real(input.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x, Elements<C>::of(input));
    SDX_ASSIGN(const auto cosines, Elements<C>::of(context.tensor(inputs.cosines)));
    SDX_ASSIGN(const auto sines, Elements<C>::of(context.tensor(inputs.sines)));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t t = 0; t < s.length; ++t) {
          const std::int64_t row =
              s.is_packed ? (b * s.length + t) * s.heads + h : (b * s.heads + h) * s.length + t;
          const std::int64_t angle =
              rows[static_cast<std::size_t>(b * s.length + t)] * (s.dims / 2);
          rotate_row(x.data() + row * s.head_size, s.head_size, s.dims, is_interleaved,
                     cosines.data() + angle, sines.data() + angle, y.data() + row * s.head_size);
        }
      }
    }
    y.commit();
    return {};
  });
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);

constexpr OpSchema kRows[] = {
    {"",
     "RotaryEmbedding",
     23,
     {"TTTi>T", kFloat},
     "interleaved:i num_heads:i rotary_embedding_dim:i",
     infer_rotary<kStandard>,
     evaluate_rotary<kStandard>},
    {"com.microsoft",
     "RotaryEmbedding",
     1,
     {"TITT>T", kFloat},
     "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f",
     infer_rotary<kMicrosoft>,
     evaluate_rotary<kMicrosoft>},
};

}  // namespace

std::span<const OpSchema> rotary_schemas() { return kRows; }

}  // namespace sardonyx
