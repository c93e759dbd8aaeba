#include "kernels/conv.h"

#include <algorithm>
#include <cstring>

namespace sardonyx::kernels {

namespace {

constexpr std::int64_t kTilePixels = 96;
/// Of a tile; kernels with more taps than usual get smaller tiles.
constexpr std::int64_t kPointersMax = 64 * 1024;
/// Kernel rows that cross a border are copied; beyond this many floats a tile, taps stay apart.
constexpr std::int64_t kBorderFloatsMax = 64 * 1024;

std::int64_t round_up(std::int64_t value, std::int64_t grain) {
  return (value + grain - 1) / grain * grain;
}
std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Outputs of an axis that read inside of it with the tap at `offset` from output 0's start.
struct Range {
  std::int64_t first, last;
};
Range outputs_inside(std::int64_t offset, std::int64_t reach, std::int64_t stride,
                     std::int64_t in, std::int64_t out) {
  Range range;
  range.first = offset < 0 ? divide_up(-offset, stride) : 0;
  const std::int64_t room = in - reach - offset;
  range.last = room < 0 ? 0 : room / stride + 1;
  range.first = std::min(range.first, out);
  range.last = std::max(range.first, std::min(range.last, out));
  return range;
}

/// What igemm sees of a plan.
struct Gemm {
  std::int64_t taps, depth;
};
Gemm gemm_of(const ConvPlan& plan) {
  const ConvShape& s = plan.shape;
  if (plan.merged) return {s.kernel[0] * s.kernel[1], s.kernel[2] * s.group_in()};
  return {s.taps(), s.group_in()};
}

/// Scratch: the row of zeros, pointers, copies of kernel rows at borders, one panel of weights.
struct Scratch {
  std::int64_t zeros, pointers, borders, panel, end;
};
Scratch scratch_of(const ConvPlan& plan) {
  const Gemm gemm = gemm_of(plan);
  const IgemmTable& table = igemm_table(plan.isa);
  constexpr std::int64_t kFloat = sizeof(float);
  Scratch at;
  at.zeros = 0;
  at.pointers = round_up(gemm.depth * kFloat, 64);
  at.borders = at.pointers + round_up(gemm.taps * plan.tile_pixels * 8, 64);
  const std::int64_t copied = plan.merged ? gemm.taps * gemm.depth * plan.tile_pixels : 0;
  at.panel = at.borders + round_up(copied * kFloat, 64);
  at.end = at.panel + round_up(gemm.taps * gemm.depth * table.tile_columns * kFloat, 64);
  return at;
}

/// Pixels of a tile when `count` are shared out evenly.
std::int64_t even_tile(std::int64_t count, std::int64_t taps, std::int64_t tile_rows) {
  const std::int64_t pixels = std::clamp<std::int64_t>(kPointersMax / std::max<std::int64_t>(
      taps, 1), 1, kTilePixels);
  const std::int64_t tiles = std::max<std::int64_t>(1, divide_up(count, pixels));
  return std::max(tile_rows, round_up(divide_up(count, tiles), tile_rows));
}

ConvPlan plan_tiles(const ConvShape& s, bool rows_apart, Isa isa) {
  const IgemmTable& table = igemm_table(isa);
  ConvPlan plan;
  plan.shape = s;
  plan.isa = isa;
  plan.rows_apart = rows_apart;
  const std::int64_t pixels = s.batch * s.out_pixels();
  if (rows_apart) {
    plan.tile_pixels = even_tile(s.out[2], s.taps(), table.tile_rows);
    plan.row_tiles = divide_up(s.out[2], plan.tile_pixels);
    plan.tiles = s.batch * s.out[0] * s.out[1] * plan.row_tiles;
  } else {
    plan.tile_pixels = even_tile(pixels, s.taps(), table.tile_rows);
    plan.tiles = divide_up(pixels, plan.tile_pixels);
  }
  plan.merged = s.groups == 1 && s.kernel[2] > 1 && s.dilation[2] == 1 && !s.x_gaps &&
                s.taps() * s.in_channels * plan.tile_pixels <= kBorderFloatsMax;
  plan.group_panels = igemm_panels(table, s.group_out());
  plan.panels = s.groups * plan.group_panels;
  const Scratch scratch = scratch_of(plan);
  plan.scratch_bytes = scratch.panel;
  plan.source_scratch_bytes = scratch.end;
  return plan;
}

/// A run of output pixels in one output row, and where it starts.
struct Segment {
  std::int64_t image;
  ConvShape::Axes at;
  std::int64_t count;
};

Segment segment_at(const ConvShape& s, std::int64_t pixel, std::int64_t count) {
  Segment segment;
  segment.at[2] = pixel % s.out[2];
  const std::int64_t row = pixel / s.out[2];
  segment.at[1] = row % s.out[1];
  segment.at[0] = row / s.out[1] % s.out[0];
  segment.image = row / s.out[1] / s.out[0];
  segment.count = std::min(count, s.out[2] - segment.at[2]);
  return segment;
}

/// Fills the pointers of one tile.
class PointerBuilder {
 public:
  PointerBuilder(const ConvPlan& plan, const ConvArgs& args, std::byte* scratch)
      : plan_(plan), args_(args), gemm_(gemm_of(plan)) {
    const Scratch at = scratch_of(plan);
    zeros_ = reinterpret_cast<float*>(scratch + at.zeros);
    pointers_ = reinterpret_cast<const float**>(scratch + at.pointers);
    borders_ = reinterpret_cast<float*>(scratch + at.borders);
    std::fill_n(zeros_, gemm_.depth, 0.0F);
  }

  const float* zeros() const { return zeros_; }
  const float* const* pointers() const { return pointers_; }

  void build(std::int64_t pixel, std::int64_t count) {
    std::int64_t done = 0;
    while (done < count) {
      const Segment segment = segment_at(plan_.shape, pixel + done, count - done);
      add_segment(segment, done);
      done += segment.count;
    }
  }

 private:
  void add_segment(const Segment& segment, std::int64_t slot) {
    const ConvShape& s = plan_.shape;
    const float** pointers = pointers_ + slot;
    for (std::int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      const std::int64_t z = segment.at[0] * s.stride[0] - s.pad[0] + kd * s.dilation[0];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        const std::int64_t y = segment.at[1] * s.stride[1] - s.pad[1] + ky * s.dilation[1];
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const std::int64_t row = ((segment.image * s.in[0] + z) * s.in[1] + y) * s.in[2];
        const std::int64_t kernel_row = kd * s.kernel[1] + ky;
        if (plan_.merged) {
          add_merged(segment, inside, row, pointers, slot * gemm_.taps + kernel_row);
          pointers += plan_.tile_pixels;
          continue;
        }
        for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
          fill(segment, inside, row, kx * s.dilation[2] - s.pad[2], 1, pointers);
          pointers += plan_.tile_pixels;
        }
      }
    }
  }

  /// Pointers of one tap, `reach` pixels wide, to `row`; outputs past a border get the zeros.
  Range fill(const Segment& segment, bool inside, std::int64_t row, std::int64_t offset,
             std::int64_t reach, const float** pointers) {
    const ConvShape& s = plan_.shape;
    const std::int64_t start = segment.at[2];
    Range range{0, 0};
    if (inside) {
      range = outputs_inside(offset + start * s.stride[2], reach, s.stride[2], s.in[2],
                             segment.count);
    }
    std::fill(pointers, pointers + range.first, zeros_);
    const float* x = args_.x + (row + start * s.stride[2] + offset) * args_.x_stride;
    const std::int64_t step = s.stride[2] * args_.x_stride;
    for (std::int64_t i = range.first; i < range.last; ++i) pointers[i] = x + i * step;
    std::fill(pointers + range.last, pointers + segment.count, zeros_);
    return range;
  }

  /// A kernel row as one tap; where it crosses a border it is copied with its padding.
  void add_merged(const Segment& segment, bool inside, std::int64_t row, const float** pointers,
                  std::int64_t copy) {
    const ConvShape& s = plan_.shape;
    const Range range = fill(segment, inside, row, -s.pad[2], s.kernel[2], pointers);
    if (!inside) return;
    for (std::int64_t i = 0; i < segment.count; ++i) {
      if (i == range.first) i = range.last;
      if (i >= segment.count) break;
      const std::int64_t ix = (segment.at[2] + i) * s.stride[2] - s.pad[2];
      pointers[i] = copy_border(row, ix, borders_ + (copy + i * gemm_.taps) * gemm_.depth);
    }
  }

  const float* copy_border(std::int64_t row, std::int64_t ix, float* to) {
    const ConvShape& s = plan_.shape;
    for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
      float* pixel = to + kx * s.in_channels;
      if (ix + kx >= 0 && ix + kx < s.in[2]) {
        std::copy_n(args_.x + (row + ix + kx) * args_.x_stride, s.in_channels, pixel);
      } else {
        std::fill_n(pixel, s.in_channels, 0.0F);
      }
    }
    return to;
  }

  const ConvPlan& plan_;
  const ConvArgs& args_;
  Gemm gemm_;
  float* zeros_;
  const float** pointers_;
  float* borders_;
};

/// Panels of one group that a call covers.
struct PanelRun {
  std::int64_t group, first, last;  // within the group
  const float* packed;              // of `first`
};

/// The first pixel and the count of a tile, and where it goes.
struct Tile {
  std::int64_t pixel, count;
  float* y;
};
Tile tile_at(const ConvPlan& plan, const ConvArgs& args, std::int64_t index) {
  const ConvShape& s = plan.shape;
  if (!plan.rows_apart) {
    const std::int64_t pixel = index * plan.tile_pixels;
    const std::int64_t left = s.batch * s.out_pixels() - pixel;
    return {pixel, std::min(plan.tile_pixels, left), args.y + pixel * args.y_stride};
  }
  const std::int64_t row = index / plan.row_tiles;
  const std::int64_t x = index % plan.row_tiles * plan.tile_pixels;
  const std::int64_t plane = row / s.out[1];
  float* y = args.y + plane / s.out[0] * args.y_image_stride +
             plane % s.out[0] * args.y_plane_stride + row % s.out[1] * args.y_row_stride +
             x * args.y_stride;
  return {row * s.out[2] + x, std::min(plan.tile_pixels, s.out[2] - x), y};
}

void run_tile(const ConvPlan& plan, const ConvArgs& args, const PointerBuilder& builder,
              const Tile& tile, const PanelRun& run) {
  const ConvShape& s = plan.shape;
  const IgemmTable& table = igemm_table(plan.isa);
  const Gemm gemm = gemm_of(plan);
  const std::int64_t column = run.first * table.tile_columns;
  const std::int64_t channel = run.group * s.group_out() + column;
  IgemmArgs call;
  call.rows = tile.count;
  call.columns = std::min(run.last * table.tile_columns, s.group_out()) - column;
  call.taps = gemm.taps;
  call.depth = gemm.depth;
  call.a = builder.pointers();
  call.a_tap_stride = plan.tile_pixels;
  call.a_offset = run.group * s.group_in();
  call.a_zero = builder.zeros();
  call.b = run.packed;
  call.b_depth = gemm.taps * gemm.depth;
  call.c = tile.y + channel;
  call.c_stride = args.y_stride;
  call.epilogue = args.epilogue;
  if (call.epilogue.bias != nullptr) call.epilogue.bias += channel;
  if (call.epilogue.residual != nullptr) {
    call.epilogue.residual += tile.pixel * call.epilogue.residual_stride + channel;
  }
  table.run(call);
}

IgemmSource source_of(const ConvShape& s, const float* weights, std::int64_t group) {
  IgemmSource source;
  source.b = weights + group * s.group_out() * s.group_in() * s.taps();
  source.columns = s.group_out();
  source.taps = s.taps();
  source.depth = s.group_in();
  source.column_stride = s.group_in() * s.taps();
  source.depth_stride = s.taps();
  source.tap_stride = 1;
  return source;
}

/// Floats from one group's packed panels to the next group's.
std::int64_t group_floats(const ConvPlan& plan) {
  return igemm_packed_floats(igemm_table(plan.isa), plan.shape.group_out(),
                             plan.shape.taps() * plan.shape.group_in());
}

std::int64_t packed_offset(const ConvPlan& plan, std::int64_t group, std::int64_t panel) {
  return group * group_floats(plan) +
         igemm_panel_offset(igemm_table(plan.isa), panel,
                            plan.shape.taps() * plan.shape.group_in());
}

}  // namespace

ConvPlan plan_conv(const ConvShape& shape, Isa isa) {
  return plan_tiles(shape.without_idle_taps(), false, isa);
}

ConvPlan plan_conv_rows_apart(const ConvShape& shape, Isa isa) {
  return plan_tiles(shape.without_idle_taps(), true, isa);
}

void conv_nhwc(const ConvPlan& plan, const ConvArgs& args, std::int64_t tile_first,
               std::int64_t tile_last, std::int64_t panel_first, std::int64_t panel_last,
               void* scratch) {
  auto* bytes = static_cast<std::byte*>(scratch);
  PointerBuilder builder(plan, args, bytes);
  if (args.packed == nullptr) {
    auto* panel = reinterpret_cast<float*>(bytes + scratch_of(plan).panel);
    for (std::int64_t p = panel_first; p < panel_last; ++p) {
      const PanelRun run = {p / plan.group_panels, p % plan.group_panels,
                            p % plan.group_panels + 1, panel};
      igemm_pack(igemm_table(plan.isa), source_of(plan.shape, args.source, run.group), run.first,
                 run.last, panel);
      for (std::int64_t t = tile_first; t < tile_last; ++t) {
        const Tile tile = tile_at(plan, args, t);
        builder.build(tile.pixel, tile.count);
        run_tile(plan, args, builder, tile, run);
      }
    }
    return;
  }
  for (std::int64_t t = tile_first; t < tile_last; ++t) {
    const Tile tile = tile_at(plan, args, t);
    builder.build(tile.pixel, tile.count);
    for (std::int64_t p = panel_first; p < panel_last;) {
      PanelRun run;
      run.group = p / plan.group_panels;
      run.first = p % plan.group_panels;
      run.last = std::min(plan.group_panels, run.first + panel_last - p);
      run.packed = args.packed + packed_offset(plan, run.group, run.first);
      run_tile(plan, args, builder, tile, run);
      p += run.last - run.first;
    }
  }
}

void conv_nhwc_group(const ConvPlan& plan, const ConvArgs& args, std::int64_t tile_first,
                     std::int64_t tile_last, std::int64_t group, std::int64_t panel_first,
                     std::int64_t panel_last, const float* packed, void* scratch) {
  PointerBuilder builder(plan, args, static_cast<std::byte*>(scratch));
  for (std::int64_t t = tile_first; t < tile_last; ++t) {
    const Tile tile = tile_at(plan, args, t);
    builder.build(tile.pixel, tile.count);
    run_tile(plan, args, builder, tile, {group, panel_first, panel_last, packed});
  }
}

std::int64_t conv_packed_floats(const ConvPlan& plan) {
  return plan.shape.groups * group_floats(plan);
}

void pack_conv_weights(const ConvPlan& plan, const float* weights, std::int64_t first,
                       std::int64_t last, float* packed) {
  for (std::int64_t p = first; p < last; ++p) {
    const std::int64_t group = p / plan.group_panels;
    const std::int64_t panel = p % plan.group_panels;
    igemm_pack(igemm_table(plan.isa), source_of(plan.shape, weights, group), panel, panel + 1,
               packed + packed_offset(plan, group, panel));
  }
}

}  // namespace sardonyx::kernels
