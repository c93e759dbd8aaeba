#include "kernels/winograd.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd_generic.h"
#include "kernels/winograd_impl.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const WinogradTable kWinograd;
}
namespace avx512 {
extern const WinogradTable kWinograd;
}
#endif

namespace {

constexpr std::int64_t kPoints = 36;
constexpr std::int64_t kUnitBlocksMin = 24;
/// Transformed input and sums of a unit, when that is more than the fewest blocks.
constexpr std::int64_t kUnitFloats = 256 * 1024;

constexpr WinogradTable kGeneric = {winograd_input<generic::F32>, winograd_output<generic::F32>};

const WinogradTable& winograd_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kWinograd;
  if (isa == Isa::Avx2) return avx2::kWinograd;
#endif
  static_cast<void>(isa);
  return kGeneric;
}

std::int64_t round_up(std::int64_t value, std::int64_t grain) {
  return (value + grain - 1) / grain * grain;
}
std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Scratch, in bytes: a pixel of zeros, pointers to the rows of A, transformed input, sums.
struct Layout {
  std::int64_t rows, input, sums, end;
};
Layout layout_of(const WinogradPlan& plan) {
  const ConvShape& s = plan.shape;
  constexpr std::int64_t kFloat = sizeof(float);
  Layout at;
  at.rows = round_up(s.in_channels * kFloat, 64);
  at.input = at.rows + round_up(plan.unit_blocks * 8, 64);
  at.sums = at.input + round_up(kPoints * plan.unit_blocks * s.in_channels * kFloat, 64);
  at.end = at.sums + round_up(kPoints * plan.unit_blocks * s.out_channels * kFloat, 64);
  return at;
}

/// Floats from the panels of one point to those of the next.
std::int64_t point_floats(const WinogradPlan& plan) {
  return igemm_packed_floats(igemm_table(plan.isa), plan.shape.out_channels,
                             plan.shape.in_channels);
}

/// Where a block lies.
struct Block {
  std::int64_t image, y, x;
};
Block block_at(const WinogradPlan& plan, std::int64_t index) {
  return {index / plan.blocks_w / plan.blocks_h, index / plan.blocks_w % plan.blocks_h * 4,
          index % plan.blocks_w * 4};
}

void transform_input(const WinogradPlan& plan, const ConvArgs& args, std::int64_t first,
                     std::int64_t count, const float* zeros, float* out) {
  const ConvShape& s = plan.shape;
  for (std::int64_t b = 0; b < count; ++b) {
    const Block block = block_at(plan, first + b);
    const float* pixels[kPoints];
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const std::int64_t y = block.y - s.pad[1] + i / 6;
      const std::int64_t x = block.x - s.pad[2] + i % 6;
      const bool inside = y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
      const std::int64_t pixel = (block.image * s.in[1] + y) * s.in[2] + x;
      pixels[i] = inside ? args.x + pixel * args.x_stride : zeros;
    }
    winograd_table(plan.isa).input(pixels, s.in_channels, out + b * s.in_channels,
                                   plan.unit_blocks * s.in_channels);
  }
}

/// The 36 products: [blocks][in] times [in][columns] each.
void multiply(const WinogradPlan& plan, const float* packed, const float* const* rows,
              std::int64_t count, std::int64_t panel_first, std::int64_t columns, float* sums) {
  const ConvShape& s = plan.shape;
  const IgemmTable& table = igemm_table(plan.isa);
  IgemmArgs call;
  call.rows = count;
  call.columns = columns;
  call.depth = s.in_channels;
  call.a = rows;
  call.b_depth = s.in_channels;
  call.c_stride = columns;
  for (std::int64_t k = 0; k < kPoints; ++k) {
    call.a_offset = k * plan.unit_blocks * s.in_channels;
    call.b =
        packed + k * point_floats(plan) + igemm_panel_offset(table, panel_first, s.in_channels);
    call.c = sums + k * plan.unit_blocks * columns;
    table.run(call);
  }
}

void transform_output(const WinogradPlan& plan, const ConvArgs& args, std::int64_t first,
                      std::int64_t count, std::int64_t channel, std::int64_t columns,
                      const float* sums) {
  const ConvShape& s = plan.shape;
  const Epilogue& epilogue = args.epilogue;
  WinogradOutput out;
  out.sum_stride = plan.unit_blocks * columns;
  out.channels = columns;
  out.y_stride = args.y_stride;
  out.y_row_stride = s.out[2] * args.y_stride;
  out.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + channel;
  out.residual_stride = epilogue.residual_stride;
  out.residual_row_stride = s.out[2] * epilogue.residual_stride;
  out.activation = epilogue.activation;
  for (std::int64_t b = 0; b < count; ++b) {
    const Block block = block_at(plan, first + b);
    const std::int64_t pixel = (block.image * s.out[1] + block.y) * s.out[2] + block.x;
    out.sums = sums + b * columns;
    out.y = args.y + pixel * args.y_stride + channel;
    out.rows = std::min<std::int64_t>(4, s.out[1] - block.y);
    out.columns = std::min<std::int64_t>(4, s.out[2] - block.x);
    if (epilogue.residual != nullptr) {
      out.residual = epilogue.residual + pixel * epilogue.residual_stride + channel;
    }
    winograd_table(plan.isa).output(out);
  }
}

/// As many filters as are transformed at once: every panel is a multiple of it wide.
constexpr int kFilters = 4;
using Doubles [[gnu::vector_size(kFilters * sizeof(double))]] = double;
using Floats [[gnu::vector_size(kFilters * sizeof(float))]] = float;

/// Three taps to the six points of an axis: rows of G by their even and odd parts.
void transform_axis(const Doubles (&taps)[3], Doubles (&points)[6]) {
  // f'(a) = 2 a^2 (a^2 - b^2), f'(b) = 2 b^2 (b^2 - a^2), f'(0) = a^2 b^2; a^2 = 1/2, b^2 = 2.
  constexpr double kA = 0.70710678118654752;
  constexpr double kB = 1.4142135623730951;
  const Doubles even_a = taps[0] * (-2.0 / 3) + taps[2] * (-1.0 / 3);
  const Doubles odd_a = taps[1] * (-2.0 / 3 * kA);
  const Doubles even_b = taps[0] * (1.0 / 6) + taps[2] * (1.0 / 3);
  const Doubles odd_b = taps[1] * (1.0 / 6 * kB);
  points[0] = taps[0];
  points[1] = even_a + odd_a;
  points[2] = even_a - odd_a;
  points[3] = even_b + odd_b;
  points[4] = even_b - odd_b;
  points[5] = taps[2];
}

/// G g G^T of filters that lie `filter_stride` floats apart, of which `count` exist; point k goes
/// to out + k * point_stride.
void transform_filters(const float* taps, std::int64_t filter_stride, std::int64_t count,
                       std::int64_t point_stride, float* out) {
  double values[9][kFilters] = {};
  for (std::int64_t f = 0; f < count; ++f) {
    for (int t = 0; t < 9; ++t) values[t][f] = taps[f * filter_stride + t];
  }
  Doubles rows[3][6];
  for (int j = 0; j < 3; ++j) {
    Doubles column[3];
    for (int i = 0; i < 3; ++i) std::memcpy(&column[i], values[3 * i + j], sizeof(Doubles));
    transform_axis(column, rows[j]);
  }
  for (int i = 0; i < 6; ++i) {
    Doubles points[6];
    transform_axis({rows[0][i], rows[1][i], rows[2][i]}, points);
    for (int j = 0; j < 6; ++j) {
      const Floats point = __builtin_convertvector(points[j], Floats);
      std::memcpy(out + (i * 6 + j) * point_stride, &point, sizeof point);
    }
  }
}

}  // namespace

bool winograd_fits(const ConvShape& shape) {
  using Axes = ConvShape::Axes;
  return shape.groups == 1 && shape.in[0] == 1 && shape.out[0] == 1 &&
         shape.kernel == Axes{1, 3, 3} && shape.stride == Axes{1, 1, 1} && shape.dilation[1] == 1 &&
         shape.dilation[2] == 1 && shape.pad[0] == 0;
}

bool winograd_pays(const ConvShape& shape) {
  constexpr std::int64_t kBlocksMin = 12;
  constexpr std::int64_t kChannelsMin = 16;
  const std::int64_t blocks = shape.batch * divide_up(shape.out[1], 4) * divide_up(shape.out[2], 4);
  return winograd_fits(shape) && blocks >= kBlocksMin && shape.in_channels >= kChannelsMin &&
         shape.out_channels >= kChannelsMin;
}

WinogradPlan plan_winograd(const ConvShape& shape, Isa isa) {
  WinogradPlan plan;
  plan.shape = shape;
  plan.isa = isa;
  plan.blocks_h = divide_up(shape.out[1], 4);
  plan.blocks_w = divide_up(shape.out[2], 4);
  plan.blocks = shape.batch * plan.blocks_h * plan.blocks_w;
  const std::int64_t floats =
      kPoints * std::max<std::int64_t>(1, shape.in_channels + shape.out_channels);
  const std::int64_t most = std::max(kUnitBlocksMin, kUnitFloats / floats);
  plan.units = divide_up(plan.blocks, most);
  plan.unit_blocks = plan.units == 0 ? 0 : divide_up(plan.blocks, plan.units);
  plan.panels = igemm_panels(igemm_table(isa), shape.out_channels);
  plan.scratch_bytes = layout_of(plan).end;
  return plan;
}

void conv_winograd(const WinogradPlan& plan, const ConvArgs& args, std::int64_t unit_first,
                   std::int64_t unit_last, std::int64_t panel_first, std::int64_t panel_last,
                   void* scratch) {
  const ConvShape& s = plan.shape;
  const std::int64_t width = igemm_table(plan.isa).tile_columns;
  const Layout at = layout_of(plan);
  auto* bytes = static_cast<std::byte*>(scratch);
  auto* zeros = static_cast<float*>(scratch);
  auto* rows = reinterpret_cast<const float**>(bytes + at.rows);
  auto* input = reinterpret_cast<float*>(bytes + at.input);
  auto* sums = reinterpret_cast<float*>(bytes + at.sums);
  std::fill_n(zeros, s.in_channels, 0.0F);
  for (std::int64_t b = 0; b < plan.unit_blocks; ++b) rows[b] = input + b * s.in_channels;
  const std::int64_t channel = panel_first * width;
  const std::int64_t columns = std::min(panel_last * width, s.out_channels) - channel;
  for (std::int64_t unit = unit_first; unit < unit_last && columns > 0; ++unit) {
    const std::int64_t first = unit * plan.unit_blocks;
    const std::int64_t count = std::min(plan.unit_blocks, plan.blocks - first);
    transform_input(plan, args, first, count, zeros, input);
    multiply(plan, args.packed, rows, count, panel_first, columns, sums);
    transform_output(plan, args, first, count, channel, columns, sums);
  }
}

std::int64_t winograd_packed_floats(const WinogradPlan& plan) {
  return kPoints * point_floats(plan);
}

void pack_winograd_weights(const WinogradPlan& plan, const float* weights, std::int64_t first,
                           std::int64_t last, float* packed) {
  const ConvShape& s = plan.shape;
  const IgemmTable& table = igemm_table(plan.isa);
  const std::int64_t point_stride = point_floats(plan);
  for (std::int64_t p = first; p < last; ++p) {
    const std::int64_t channel = p * table.tile_columns;
    const std::int64_t columns =
        std::min<std::int64_t>(table.tile_columns, s.out_channels - channel);
    const std::int64_t width = round_up(columns, table.lanes);
    float* panel = packed + igemm_panel_offset(table, p, s.in_channels);
    for (std::int64_t i = 0; i < s.in_channels; ++i) {
      for (std::int64_t c = 0; c < width; c += kFilters) {
        const std::int64_t count = std::clamp<std::int64_t>(columns - c, 0, kFilters);
        const float* taps = weights + ((channel + c) * s.in_channels + i) * 9;
        transform_filters(taps, s.in_channels * 9, count, point_stride, panel + i * width + c);
      }
    }
  }
}

}  // namespace sardonyx::kernels
