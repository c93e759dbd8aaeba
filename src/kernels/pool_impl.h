#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/pool.h"
#include "kernels/window.h"

// Pooling as templates over a vector type V. Only kernel sources include this; the unnamed
// namespace keeps what each instruction set compiles apart.
namespace sardonyx::kernels {
namespace {

template <class V>
struct MaxOf {
  using Reg = typename V::Reg;
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  static Reg combine(Reg a, Reg b) { return V::select(V::is_nan(b), b, V::max(b, a)); }
  static float combine_one(float a, float b) { return b > a || b != b ? b : a; }
};

template <class V>
struct SumOf {
  using Reg = typename V::Reg;
  static constexpr float kStart = 0;
  static Reg combine(Reg a, Reg b) { return V::add(a, b); }
  static float combine_one(float a, float b) { return a + b; }
};

/// What one output reads: per axis, the position of tap 0 and the taps inside.
struct PoolWindow {
  PoolShape::Axes start;
  std::array<TapRange, 3> taps;
};

inline void place_window(const PoolShape& s, std::size_t axis, std::int64_t out,
                         PoolWindow& window) {
  window.start[axis] = out * s.stride[axis] - s.pad[axis];
  window.taps[axis] =
      taps_inside(window.start[axis], s.dilation[axis], s.kernel[axis], s.in[axis]);
}

/// What the sum over a window is divided by; 1 if there is nothing in it.
inline float pool_divisor(const PoolArgs& args, const PoolWindow& window) {
  const PoolShape& s = args.shape;
  double count = 1;  // kernels of any size may be named, so an integer could overflow
  for (std::size_t a = 0; a < 3; ++a) {
    if (!args.count_padding) {
      count *= static_cast<double>(window.taps[a].count());
      continue;
    }
    const std::int64_t end = s.in[a] + s.pad_end[a];
    const std::int64_t room = end - window.start[a];
    const std::int64_t fitting = room <= 0 ? 0 : (room - 1) / s.dilation[a] + 1;
    count *= static_cast<double>(std::min(s.kernel[a], fitting));
  }
  return static_cast<float>(std::max(count, 1.0));
}

/// One output pixel, channels last: kVectors vectors of channels at a time.
template <class V, class Op>
void pool_pixel(const PoolArgs& args, const PoolWindow& window, const float* image, float* y,
                float divisor, std::int64_t c_first, std::int64_t c_last) {
  using Reg = typename V::Reg;
  constexpr int kVectors = 4;
  const PoolShape& s = args.shape;
  for (std::int64_t c = c_first; c < c_last; c += kVectors * V::kLanes) {
    Reg total[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) total[v] = V::set(Op::kStart);
    for (std::int64_t kd = window.taps[0].first; kd < window.taps[0].last; ++kd) {
      for (std::int64_t ky = window.taps[1].first; ky < window.taps[1].last; ++ky) {
        const std::int64_t row = (window.start[0] + kd * s.dilation[0]) * s.in[1] +
                                 window.start[1] + ky * s.dilation[1];
        const float* x = image + (row * s.in[2] + window.start[2]) * args.x_stride + c;
        Reg sum[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[v] = V::set(Op::kStart);
        for (std::int64_t kx = window.taps[2].first; kx < window.taps[2].last; ++kx) {
          const float* pixel = x + kx * s.dilation[2] * args.x_stride;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            sum[v] = Op::combine(sum[v],
                                 V::load_n(pixel + v * V::kLanes, c_last - c - v * V::kLanes));
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) total[v] = Op::combine(total[v], sum[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (std::is_same_v<Op, SumOf<V>>) total[v] = V::div(total[v], V::set(divisor));
      V::store_n(y + c + v * V::kLanes, total[v], c_last - c - v * V::kLanes);
    }
  }
}

template <class V, class Op>
void pool_nhwc(const PoolArgs& args, std::int64_t first, std::int64_t last, std::int64_t c_first,
               std::int64_t c_last) {
  const PoolShape& s = args.shape;
  for (std::int64_t row = first; row < last; ++row) {
    PoolWindow window;
    place_window(s, 0, row / s.out[1] % s.out[0], window);
    place_window(s, 1, row % s.out[1], window);
    const std::int64_t image = row / s.out[1] / s.out[0];
    const float* x = static_cast<const float*>(args.x) + image * s.in_pixels() * args.x_stride;
    float* y = static_cast<float*>(args.y) + row * s.out[2] * args.y_stride;
    for (std::int64_t ox = 0; ox < s.out[2]; ++ox, y += args.y_stride) {
      place_window(s, 2, ox, window);
      const bool average = std::is_same_v<Op, SumOf<V>>;
      pool_pixel<V, Op>(args, window, x, y, average ? pool_divisor(args, window) : 1, c_first,
                        c_last);
    }
  }
}

/// Bytes, channels last: the output pixel itself holds the maximum so far.
template <typename T>
void max_nhwc_bytes(const PoolArgs& args, std::int64_t first, std::int64_t last,
                    std::int64_t c_first, std::int64_t c_last) {
  const PoolShape& s = args.shape;
  for (std::int64_t row = first; row < last; ++row) {
    PoolWindow window;
    place_window(s, 0, row / s.out[1] % s.out[0], window);
    place_window(s, 1, row % s.out[1], window);
    const std::int64_t image = row / s.out[1] / s.out[0];
    const T* x = static_cast<const T*>(args.x) + image * s.in_pixels() * args.x_stride;
    for (std::int64_t ox = 0; ox < s.out[2]; ++ox) {
      place_window(s, 2, ox, window);
      T* __restrict y = static_cast<T*>(args.y) + (row * s.out[2] + ox) * args.y_stride;
      std::fill(y + c_first, y + c_last, std::numeric_limits<T>::min());
      for (std::int64_t kd = window.taps[0].first; kd < window.taps[0].last; ++kd) {
        for (std::int64_t ky = window.taps[1].first; ky < window.taps[1].last; ++ky) {
          for (std::int64_t kx = window.taps[2].first; kx < window.taps[2].last; ++kx) {
            const std::int64_t pixel = ((window.start[0] + kd * s.dilation[0]) * s.in[1] +
                                        window.start[1] + ky * s.dilation[1]) * s.in[2] +
                                       window.start[2] + kx * s.dilation[2];
            const T* __restrict from = x + pixel * args.x_stride;
            for (std::int64_t c = c_first; c < c_last; ++c) y[c] = y[c] < from[c] ? from[c] : y[c];
          }
        }
      }
    }
  }
}

/// Combines the rows of a window, element by element, into `line`: input columns
/// [ix, ix + count) of one plane.
template <class V, class Op>
void pool_lines(const PoolShape& s, const PoolWindow& window, const float* plane, std::int64_t ix,
                std::int64_t count, float* line) {
  for (std::int64_t i = 0; i < count; i += V::kLanes) {
    auto sum = V::set(Op::kStart);
    for (std::int64_t kd = window.taps[0].first; kd < window.taps[0].last; ++kd) {
      for (std::int64_t ky = window.taps[1].first; ky < window.taps[1].last; ++ky) {
        const std::int64_t row = (window.start[0] + kd * s.dilation[0]) * s.in[1] +
                                 window.start[1] + ky * s.dilation[1];
        sum = Op::combine(sum, V::load_n(plane + row * s.in[2] + ix + i, count - i));
      }
    }
    V::store_n(line + i, sum, count - i);
  }
}

/// One output row, channels first. Rows of the window are combined into a line of the input's
/// columns first, which outputs next to each other share.
template <class V, class Op>
void pool_row(const PoolArgs& args, PoolWindow window, const float* plane, float* y) {
  constexpr std::int64_t kLine = 1024;
  const PoolShape& s = args.shape;
  const bool average = std::is_same_v<Op, SumOf<V>>;
  float line[kLine];
  std::int64_t line_first = 0;
  std::int64_t line_last = 0;
  for (std::int64_t ox = 0; ox < s.out[2]; ++ox) {
    place_window(s, 2, ox, window);
    const TapRange taps = window.taps[2];
    float value = Op::kStart;
    for (std::int64_t k = taps.first; k < taps.last; ++k) {
      const std::int64_t ix = window.start[2] + k * s.dilation[2];
      if (ix < line_first || ix >= line_last) {
        line_first = ix;
        line_last = std::min(s.in[2], ix + kLine);
        pool_lines<V, Op>(s, window, plane, line_first, line_last - line_first, line);
      }
      value = Op::combine_one(value, line[ix - line_first]);
    }
    y[ox] = average ? value / pool_divisor(args, window) : value;
  }
}

template <class V, class Op>
void pool_nchw(const PoolArgs& args, std::int64_t first, std::int64_t last) {
  const PoolShape& s = args.shape;
  for (std::int64_t plane = first; plane < last; ++plane) {
    const float* x = static_cast<const float*>(args.x) + plane * s.in_pixels();
    float* y = static_cast<float*>(args.y) + plane * s.out_pixels();
    for (std::int64_t row = 0; row < s.out[0] * s.out[1]; ++row, y += s.out[2]) {
      PoolWindow window;
      place_window(s, 0, row / s.out[1], window);
      place_window(s, 1, row % s.out[1], window);
      pool_row<V, Op>(args, window, x, y);
    }
  }
}

template <typename T>
void max_nchw_bytes(const PoolArgs& args, std::int64_t first, std::int64_t last) {
  const PoolShape& s = args.shape;
  for (std::int64_t o = first * s.out_pixels(); o < last * s.out_pixels(); ++o) {
    PoolWindow window;
    place_window(s, 0, o / s.out[2] / s.out[1] % s.out[0], window);
    place_window(s, 1, o / s.out[2] % s.out[1], window);
    place_window(s, 2, o % s.out[2], window);
    const T* x = static_cast<const T*>(args.x) + o / s.out_pixels() * s.in_pixels();
    T value = std::numeric_limits<T>::min();
    for (std::int64_t kd = window.taps[0].first; kd < window.taps[0].last; ++kd) {
      for (std::int64_t ky = window.taps[1].first; ky < window.taps[1].last; ++ky) {
        const T* row = x + ((window.start[0] + kd * s.dilation[0]) * s.in[1] + window.start[1] +
                            ky * s.dilation[1]) * s.in[2] + window.start[2];
        for (std::int64_t kx = window.taps[2].first; kx < window.taps[2].last; ++kx) {
          value = std::max(value, row[kx * s.dilation[2]]);
        }
      }
    }
    static_cast<T*>(args.y)[o] = value;
  }
}

template <class V>
constexpr PoolTable pool_table_for(Isa isa) {
  return {isa,
          pool_nhwc<V, MaxOf<V>>,
          pool_nhwc<V, SumOf<V>>,
          max_nhwc_bytes<std::uint8_t>,
          max_nhwc_bytes<std::int8_t>,
          pool_nchw<V, MaxOf<V>>,
          pool_nchw<V, SumOf<V>>,
          max_nchw_bytes<std::uint8_t>,
          max_nchw_bytes<std::int8_t>};
}

}  // namespace
}  // namespace sardonyx::kernels
