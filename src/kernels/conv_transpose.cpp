#include "kernels/conv_transpose.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace sardonyx::kernels {

namespace {

/// The taps of one axis that outputs of one phase read, in the order of the inputs under them.
struct PhaseAxis {
  std::int64_t taps = 0;
  std::int64_t first = 0;  // tap under the lowest input
  std::int64_t step = 0;   // taps are first, first - step, ...
  std::int64_t pad = 0;
  std::int64_t dilation = 1;
  std::int64_t outputs = 0;
};

/// The b in 0..modulus-1 with a * b = 1 (mod modulus), for a without a common factor.
std::int64_t inverse(std::int64_t a, std::int64_t modulus) {
  std::int64_t remainder = modulus;
  std::int64_t next = a % modulus;
  std::int64_t factor = 0;
  std::int64_t next_factor = 1;
  while (next != 0) {
    const std::int64_t quotient = remainder / next;
    remainder = std::exchange(next, remainder - quotient * next);
    factor = std::exchange(next_factor, factor - quotient * next_factor);
  }
  return (factor % modulus + modulus) % modulus;
}

__extension__ using Wide = __int128;

/// The least tap k >= 0 with k * dilation = at (mod stride); the greatest number if there is none.
std::int64_t first_tap(std::int64_t at, std::int64_t dilation, std::int64_t stride) {
  const std::int64_t common = std::gcd(dilation, stride);
  if (at % common != 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t modulus = stride / common;
  const std::int64_t reduced = (at / common % modulus + modulus) % modulus;
  return static_cast<std::int64_t>(static_cast<Wide>(reduced) *
                                   inverse(dilation / common, modulus) % modulus);
}

PhaseAxis phase_axis(const ConvShape& s, std::size_t a, std::int64_t phase) {
  PhaseAxis axis;
  const std::int64_t stride = s.stride[a];
  axis.outputs = (s.out[a] - phase + stride - 1) / stride;
  const std::int64_t common = std::gcd(s.dilation[a], stride);
  axis.step = stride / common;
  axis.dilation = s.dilation[a] / common;
  const std::int64_t at = phase + s.pad[a];
  const std::int64_t k = first_tap(at, s.dilation[a], stride);
  if (k >= s.kernel[a]) return axis;
  axis.taps = (s.kernel[a] - 1 - k) / axis.step + 1;
  axis.first = k + (axis.taps - 1) * axis.step;
  axis.pad = -((at - axis.first * s.dilation[a]) / stride);
  return axis;
}

struct Phase {
  std::array<PhaseAxis, 3> axes;
  ConvShape::Axes at;
  ConvShape shape;
};

Phase phase_at(const ConvTransposePlan& plan, std::int64_t index) {
  const ConvShape& s = plan.shape;
  Phase phase;
  phase.at = {index / plan.phases[2] / plan.phases[1], index / plan.phases[2] % plan.phases[1],
              index % plan.phases[2]};
  phase.shape = s;
  for (std::size_t a = 0; a < 3; ++a) {
    const PhaseAxis axis = phase_axis(s, a, phase.at[a]);
    phase.axes[a] = axis;
    phase.shape.out[a] = axis.outputs;
    phase.shape.kernel[a] = axis.taps;
    phase.shape.stride[a] = 1;
    phase.shape.dilation[a] = axis.dilation;
    phase.shape.pad[a] = axis.pad;
  }
  return phase;
}

std::int64_t phase_count(const ConvTransposePlan& plan) {
  return plan.phases[0] * plan.phases[1] * plan.phases[2];
}

/// Packs one panel of one phase; each row of taps is evenly spaced in the kernel.
void pack_panel(const ConvTransposePlan& plan, const Phase& phase, const float* weights,
                std::int64_t group, std::int64_t panel, float* packed) {
  const ConvShape& s = plan.shape;
  const IgemmTable& table = igemm_table(plan.isa);
  IgemmSource source;
  source.columns = s.group_out();
  source.taps = phase.axes[2].taps;
  source.depth = s.group_in();
  source.column_stride = s.taps();
  source.depth_stride = s.group_out() * s.taps();
  source.tap_stride = -phase.axes[2].step;
  const std::int64_t columns =
      std::min<std::int64_t>(table.tile_columns, s.group_out() - panel * table.tile_columns);
  const std::int64_t width = (columns + table.lanes - 1) / table.lanes * table.lanes;
  for (std::int64_t jd = 0; jd < phase.axes[0].taps; ++jd) {
    const std::int64_t kd = phase.axes[0].first - jd * phase.axes[0].step;
    for (std::int64_t jy = 0; jy < phase.axes[1].taps; ++jy) {
      const std::int64_t ky = phase.axes[1].first - jy * phase.axes[1].step;
      const std::int64_t tap = (kd * s.kernel[1] + ky) * s.kernel[2] + phase.axes[2].first;
      source.b = weights + group * s.group_in() * s.group_out() * s.taps() + tap;
      igemm_pack(table, source, panel, panel + 1, packed);
      packed += width * source.taps * source.depth;
    }
  }
}

/// Floats from one group's panels of a phase to the next group's.
std::int64_t group_floats(const ConvTransposePlan& plan, const ConvShape& phase) {
  return igemm_packed_floats(igemm_table(plan.isa), phase.group_out(),
                             phase.taps() * phase.group_in());
}

std::int64_t panel_offset(const ConvTransposePlan& plan, const ConvShape& phase, std::int64_t group,
                          std::int64_t panel) {
  return group * group_floats(plan, phase) +
         igemm_panel_offset(igemm_table(plan.isa), panel, phase.taps() * phase.group_in());
}

ConvArgs phase_args(const ConvTransposePlan& plan, const ConvTransposeArgs& args,
                    const Phase& phase) {
  const ConvShape& s = plan.shape;
  const std::int64_t row = s.out[2] * args.y_stride;
  const std::int64_t plane = s.out[1] * row;
  ConvArgs call;
  call.x = args.x;
  call.x_stride = args.x_stride;
  call.y = args.y + phase.at[0] * plane + phase.at[1] * row + phase.at[2] * args.y_stride;
  call.y_stride = s.stride[2] * args.y_stride;
  call.y_row_stride = s.stride[1] * row;
  call.y_plane_stride = s.stride[0] * plane;
  call.y_image_stride = s.out[0] * plane;
  call.epilogue.bias = args.bias;
  call.epilogue.activation = args.activation;
  return call;
}

/// The tiles [first, last) of a phase for the panels [panel_first, panel_last); `packed` is the
/// phase's, or null.
void run_phase(const ConvTransposePlan& plan, const ConvTransposeArgs& args, const Phase& phase,
               const float* packed, std::int64_t first, std::int64_t last, std::int64_t panel_first,
               std::int64_t panel_last, void* scratch) {
  const ConvPlan conv = plan_conv_rows_apart(phase.shape, plan.isa);
  const ConvArgs call = phase_args(plan, args, phase);
  last = std::min(last, conv.tiles);
  auto* panel = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + conv.scratch_bytes);
  for (std::int64_t p = panel_first; p < panel_last && first < last;) {
    const std::int64_t group = p / conv.group_panels;
    const std::int64_t in_group = p % conv.group_panels;
    std::int64_t end = in_group + 1;
    const float* panels = panel;
    if (packed == nullptr) {
      pack_panel(plan, phase, args.source, group, in_group, panel);
    } else {
      end = std::min(conv.group_panels, in_group + panel_last - p);
      panels = packed + panel_offset(plan, phase.shape, group, in_group);
    }
    conv_nhwc_group(conv, call, first, last, group, in_group, end, panels, scratch);
    p += end - in_group;
  }
}

}  // namespace

ConvTransposePlan plan_conv_transpose(const ConvShape& shape, Isa isa) {
  ConvTransposePlan plan;
  plan.shape = shape.without_idle_taps();
  plan.isa = isa;
  for (std::size_t a = 0; a < 3; ++a) plan.phases[a] = std::min(shape.stride[a], shape.out[a]);
  for (std::int64_t i = 0; i < phase_count(plan); ++i) {
    const ConvPlan conv = plan_conv_rows_apart(phase_at(plan, i).shape, isa);
    plan.phase_units = std::max(plan.phase_units, conv.tiles);
    plan.panels = conv.panels;
    plan.scratch_bytes = std::max(plan.scratch_bytes, conv.scratch_bytes);
    plan.source_scratch_bytes = std::max(plan.source_scratch_bytes, conv.source_scratch_bytes);
  }
  plan.units = phase_count(plan) * plan.phase_units;
  return plan;
}

void conv_transpose_nhwc(const ConvTransposePlan& plan, const ConvTransposeArgs& args,
                         std::int64_t unit_first, std::int64_t unit_last, std::int64_t panel_first,
                         std::int64_t panel_last, void* scratch) {
  const float* packed = args.packed;
  for (std::int64_t i = 0; i < phase_count(plan); ++i) {
    const std::int64_t first = std::max(unit_first - i * plan.phase_units, std::int64_t{0});
    const std::int64_t last = std::min(unit_last - i * plan.phase_units, plan.phase_units);
    if (last <= 0) return;
    const Phase phase = phase_at(plan, i);
    if (first < last) {
      run_phase(plan, args, phase, packed, first, last, panel_first, panel_last, scratch);
    }
    if (packed != nullptr) packed += plan.shape.groups * group_floats(plan, phase.shape);
  }
}

std::int64_t conv_transpose_packed_floats(const ConvTransposePlan& plan) {
  std::int64_t floats = 0;
  for (std::int64_t i = 0; i < phase_count(plan); ++i) {
    floats += plan.shape.groups * group_floats(plan, phase_at(plan, i).shape);
  }
  return floats;
}

void pack_conv_transpose_weights(const ConvTransposePlan& plan, const float* weights,
                                 float* packed) {
  const std::int64_t group_panels = igemm_panels(igemm_table(plan.isa), plan.shape.group_out());
  for (std::int64_t i = 0; i < phase_count(plan); ++i) {
    const Phase phase = phase_at(plan, i);
    for (std::int64_t group = 0; group < plan.shape.groups; ++group) {
      for (std::int64_t panel = 0; panel < group_panels; ++panel) {
        pack_panel(plan, phase, weights, group, panel,
                   packed + panel_offset(plan, phase.shape, group, panel));
      }
    }
    packed += plan.shape.groups * group_floats(plan, phase.shape);
  }
}

}  // namespace sardonyx::kernels
