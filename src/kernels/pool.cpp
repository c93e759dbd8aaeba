#include "kernels/pool.h"

#include "kernels/pool_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const PoolTable kPool;
}
namespace avx512 {
extern const PoolTable kPool;
}
#endif

namespace {

constexpr PoolTable kGeneric = pool_table_for<generic::F32>(Isa::Generic);

}  // namespace

const PoolTable& pool_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kPool;
  if (isa == Isa::Avx2) return avx2::kPool;
#endif
  static_cast<void>(isa);
  return kGeneric;
}

void max_pool_nchw_f32_indices(const PoolArgs& args, bool column_major, std::int64_t* indices,
                               std::int64_t first, std::int64_t last) {
  const PoolShape& s = args.shape;
  for (std::int64_t o = first * s.out_pixels(); o < last * s.out_pixels(); ++o) {
    const std::int64_t plane = o / s.out_pixels();
    const float* x = static_cast<const float*>(args.x) + plane * s.in_pixels();
    PoolWindow window;
    place_window(s, 0, o / s.out[2] / s.out[1] % s.out[0], window);
    place_window(s, 1, o / s.out[2] % s.out[1], window);
    place_window(s, 2, o % s.out[2], window);
    float value = -std::numeric_limits<float>::infinity();
    std::int64_t index = -1;
    for (std::int64_t kd = window.taps[0].first; kd < window.taps[0].last; ++kd) {
      for (std::int64_t ky = window.taps[1].first; ky < window.taps[1].last; ++ky) {
        for (std::int64_t kx = window.taps[2].first; kx < window.taps[2].last; ++kx) {
          const std::int64_t z = window.start[0] + kd * s.dilation[0];
          const std::int64_t y = window.start[1] + ky * s.dilation[1];
          const std::int64_t u = window.start[2] + kx * s.dilation[2];
          const float candidate = x[(z * s.in[1] + y) * s.in[2] + u];
          const bool first_nan = candidate != candidate && value == value;
          if (index >= 0 && !(candidate > value) && !first_nan) continue;
          value = candidate;
          index = plane * s.in_pixels() + (column_major ? (u * s.in[1] + y) * s.in[0] + z
                                                        : (z * s.in[1] + y) * s.in[2] + u);
        }
      }
    }
    static_cast<float*>(args.y)[o] = value;
    indices[o] = index;
  }
}

}  // namespace sardonyx::kernels
