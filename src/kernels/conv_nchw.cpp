#include <algorithm>
#include <cstring>

#include "kernels/conv.h"

namespace sardonyx::kernels {

namespace {

constexpr std::int64_t kScratchFloats = 128 * 1024;
constexpr std::int64_t kPanelsMax = 8;

std::int64_t terms_of(const ConvShape& s) { return s.group_in() * s.taps(); }

/// One output row's part of a panel.
struct Run {
  std::int64_t z, y, x, count;  // output position of its first pixel
};

/// Outputs [first, last) of a run that read inside of a row with a tap at `offset`.
struct Valid {
  std::int64_t first, last;
};
Valid valid_outputs(const ConvShape& s, const Run& run, std::int64_t offset) {
  const std::int64_t stride = s.stride[2];
  const std::int64_t start = run.x * stride + offset;
  std::int64_t first = start < 0 ? (-start + stride - 1) / stride : 0;
  const std::int64_t room = s.in[2] - 1 - start;
  const std::int64_t last = room < 0 ? 0 : room / stride + 1;
  first = std::min(first, run.count);
  return {first, std::max(first, std::min(last, run.count))};
}

/// One row of the panel: the pixels of `run` under one tap of one channel.
void gather_tap(const ConvShape& s, const Run& run, const float* row, bool inside,
                std::int64_t offset, float* to) {
  if (!inside) {
    std::fill_n(to, run.count, 0.0F);
    return;
  }
  const Valid valid = valid_outputs(s, run, offset);
  std::fill_n(to, valid.first, 0.0F);
  const float* from = row + run.x * s.stride[2] + offset;
  if (s.stride[2] == 1) {
    std::memcpy(to + valid.first, from + valid.first,
                static_cast<std::size_t>(valid.last - valid.first) * sizeof(float));
  } else {
    for (std::int64_t i = valid.first; i < valid.last; ++i) to[i] = from[i * s.stride[2]];
  }
  std::fill_n(to + valid.last, run.count - valid.last, 0.0F);
}

/// The part of a panel, `width` wide, that `run` fills: every channel and tap.
void gather_run(const ConvShape& s, const Run& run, const float* x, std::int64_t width, float* to) {
  for (std::int64_t c = 0; c < s.group_in(); ++c) {
    for (std::int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      const std::int64_t z = run.z * s.stride[0] - s.pad[0] + kd * s.dilation[0];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        const std::int64_t y = run.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const float* row = x + ((c * s.in[0] + z) * s.in[1] + y) * s.in[2];
        for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, to += width) {
          gather_tap(s, run, row, inside, kx * s.dilation[2] - s.pad[2], to);
        }
      }
    }
  }
}

/// Packs the pixels [pixel, pixel + count) of an image as one panel, `width` wide.
void gather_panel(const ConvShape& s, const float* x, std::int64_t pixel, std::int64_t count,
                  std::int64_t width, float* panel) {
  if (count < width) {
    for (std::int64_t k = 0; k < terms_of(s); ++k) {
      std::fill_n(panel + k * width + count, width - count, 0.0F);
    }
  }
  for (std::int64_t done = 0; done < count;) {
    Run run;
    const std::int64_t at = pixel + done;
    run.x = at % s.out[2];
    run.y = at / s.out[2] % s.out[1];
    run.z = at / s.out[2] / s.out[1];
    run.count = std::min(count - done, s.out[2] - run.x);
    gather_run(s, run, x, width, panel + done);
    done += run.count;
  }
}

}  // namespace

ConvNchwPlan plan_conv_nchw(const ConvShape& shape, Isa isa) {
  const IgemmTable& table = igemm_table(isa);
  ConvNchwPlan plan;
  plan.shape = shape.without_idle_taps();
  plan.isa = isa;
  const std::int64_t panel_floats =
      std::max<std::int64_t>(1, terms_of(plan.shape)) * table.tile_columns;
  const std::int64_t panels =
      std::clamp<std::int64_t>(kScratchFloats / panel_floats, 1, kPanelsMax);
  const std::int64_t pixels = shape.out_pixels();
  plan.tile_pixels = panels * table.tile_columns;
  plan.image_tiles = (pixels + plan.tile_pixels - 1) / plan.tile_pixels;
  plan.tiles = shape.batch * shape.groups * plan.image_tiles;
  const std::int64_t pointers = (shape.group_out() * 8 + 63) / 64 * 64;
  plan.scratch_bytes = pointers + panels * panel_floats * static_cast<std::int64_t>(sizeof(float));
  return plan;
}

void conv_nchw(const ConvNchwPlan& plan, const ConvNchwArgs& args, std::int64_t first,
               std::int64_t last, void* scratch) {
  const ConvShape& s = plan.shape;
  const IgemmTable& table = igemm_table(plan.isa);
  const std::int64_t terms = terms_of(s);
  const std::int64_t pixels = s.out_pixels();
  auto* rows = static_cast<const float**>(scratch);
  auto* panels = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) +
                                          (s.group_out() * 8 + 63) / 64 * 64);
  for (std::int64_t t = first; t < last; ++t) {
    const std::int64_t image_group = t / plan.image_tiles;
    const std::int64_t pixel = t % plan.image_tiles * plan.tile_pixels;
    const std::int64_t count = std::min(plan.tile_pixels, pixels - pixel);
    const std::int64_t channel = image_group % s.groups * s.group_out();
    const float* x = args.x + image_group * s.group_in() * s.in_pixels();
    const std::int64_t offset = image_group * s.group_out() * pixels + pixel;
    float* y = args.y + offset;
    for (std::int64_t c = 0; c < s.group_out(); ++c) {
      rows[c] = args.weights + (channel + c) * terms;
      if (args.bias != nullptr) std::fill_n(y + c * pixels, count, args.bias[channel + c]);
    }
    for (std::int64_t done = 0; done < count; done += table.tile_columns) {
      const std::int64_t part = std::min<std::int64_t>(count - done, table.tile_columns);
      gather_panel(s, x, pixel + done, part, (part + table.lanes - 1) / table.lanes * table.lanes,
                   panels + done * terms);
    }
    IgemmArgs call;
    call.rows = s.group_out();
    call.columns = count;
    call.depth = terms;
    call.a = rows;
    call.b = panels;
    call.b_depth = terms;
    call.c = y;
    call.c_stride = pixels;
    call.epilogue.accumulate = args.bias != nullptr;
    call.epilogue.residual = args.residual == nullptr ? nullptr : args.residual + offset;
    call.epilogue.residual_stride = pixels;
    call.epilogue.activation = args.activation;
    table.run(call);
  }
}

}  // namespace sardonyx::kernels
