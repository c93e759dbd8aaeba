#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/activation_simd.h"
#include "kernels/depthwise.h"
#include "kernels/window.h"

// Depthwise convolution as templates over a vector type V. Only kernel sources include this; the
// unnamed namespace keeps what each instruction set compiles apart.
namespace sardonyx::kernels {
namespace {

/// One or two output rows of an NHWC tensor: where they read and write.
struct DepthwiseRow {
  const float* x;       // of the input row of ky = 0, pixel 0; may lie outside of the tensor
  std::int64_t x_step;  // floats from the input row of one ky to that of the next
  float* y;
  std::int64_t y_step;  // floats to the second output row
  TapRange ky;          // input rows to read, counted from x; two output rows read one more
};

/// A block of kRows x kColumns output pixels in registers, and the taps of width kWidth that add
/// to it. kTail: the vector of channels is not whole.
template <class V, int kWidth, int kStride, int kRows, int kColumns, bool kTail>
struct DepthwiseBlock {
  using Reg = typename V::Reg;
  static constexpr int kPixels = (kColumns - 1) * kStride + kWidth;

  Reg acc[kRows][kColumns];
  std::int64_t channels;  // from the block's first one on

  Reg read(const float* p) const { return kTail ? V::load_n(p, channels) : V::load(p); }

  [[gnu::always_inline]] void start(const float* bias) {
    const Reg value = bias == nullptr ? V::set(0) : read(bias);
#pragma GCC unroll 2
    for (int q = 0; q < kRows; ++q) {
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) acc[q][i] = value;
    }
  }

  /// Adds an input row to the output rows [kFrom, kFrom + kUsed); `w` holds the taps of the first
  /// of them, those of the next lie w_step before. kEdge: pixels outside of [j_first, j_last) are
  /// padding.
  template <bool kEdge, int kFrom, int kUsed>
  [[gnu::always_inline]] void add(const float* x, std::int64_t x_stride, const float* w,
                                  std::int64_t w_stride, std::int64_t j_first,
                                  std::int64_t j_last) {
    Reg taps[kUsed][kWidth];
#pragma GCC unroll 2
    for (int q = 0; q < kUsed; ++q) {
#pragma GCC unroll 8
      for (int k = 0; k < kWidth; ++k) taps[q][k] = read(w + (k - q * kWidth) * w_stride);
    }
#pragma GCC unroll 32
    for (int j = 0; j < kPixels; ++j) {
      if (kEdge && (j < j_first || j >= j_last)) continue;
      const Reg pixel = read(x + j * x_stride);
#pragma GCC unroll 2
      for (int q = 0; q < kUsed; ++q) {
#pragma GCC unroll 8
        for (int k = 0; k < kWidth; ++k) {
          const int i = (j - k) / kStride;
          if (j >= k && (j - k) % kStride == 0 && i < kColumns) {
            acc[kFrom + q][i] = V::fma(pixel, taps[q][k], acc[kFrom + q][i]);
          }
        }
      }
    }
  }

  [[gnu::always_inline]] void finish(ClampRange range, float* y, std::int64_t y_step,
                                     std::int64_t y_stride, std::int64_t count) {
    const Reg low = V::set(range.low);
    const Reg high = V::set(range.high);
#pragma GCC unroll 2
    for (int q = 0; q < kRows; ++q) {
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) {
        if (i >= count) break;
        const Reg result = V::min(high, V::max(low, acc[q][i]));
        float* to = y + q * y_step + i * y_stride;
        kTail ? V::store_n(to, result, channels) : V::store(to, result);
      }
    }
  }
};

/// The block at ox, of which `count` columns exist, for the channels [c_first, c_last).
template <class V, int kWidth, int kStride, int kRows, int kColumns, bool kEdge, bool kTail>
void depthwise_columns(const DepthwiseArgs& args, const DepthwiseRow& row, std::int64_t ox,
                       std::int64_t count, std::int64_t c_first, std::int64_t c_last) {
  const DepthwiseShape& s = args.shape;
  const std::int64_t ix = ox * kStride - s.pad_left;
  const ClampRange range = clamp_range(args.activation);
  DepthwiseBlock<V, kWidth, kStride, kRows, kColumns, kTail> block;
  for (std::int64_t c = c_first; c < c_last; c += V::kLanes) {
    block.channels = s.channels - c;
    block.start(args.bias == nullptr ? nullptr : args.bias + c);
    for (std::int64_t r = row.ky.first; r < row.ky.last; ++r) {
      const float* x = row.x + r * row.x_step + ix * args.x_stride + c;
      const float* w = args.weights + r * kWidth * s.channels + c;
      if constexpr (kRows == 2) {
        if (r == 0) {
          block.template add<kEdge, 0, 1>(x, args.x_stride, w, s.channels, -ix, s.in_w - ix);
        } else if (r == s.kernel_h) {
          w -= kWidth * s.channels;
          block.template add<kEdge, 1, 1>(x, args.x_stride, w, s.channels, -ix, s.in_w - ix);
        } else {
          block.template add<kEdge, 0, 2>(x, args.x_stride, w, s.channels, -ix, s.in_w - ix);
        }
      } else {
        block.template add<kEdge, 0, 1>(x, args.x_stride, w, s.channels, -ix, s.in_w - ix);
      }
    }
    block.finish(range, row.y + ox * args.y_stride + c, row.y_step, args.y_stride,
                 kEdge ? count : kColumns);
  }
}

template <class V, int kWidth, int kStride, int kRows, int kColumns>
void depthwise_block(const DepthwiseArgs& args, const DepthwiseRow& row, std::int64_t ox,
                     std::int64_t count) {
  const std::int64_t ix = ox * kStride - args.shape.pad_left;
  const std::int64_t channels = args.shape.channels;
  const std::int64_t whole = channels / V::kLanes * V::kLanes;
  if (count == kColumns && ix >= 0 &&
      ix + (kColumns - 1) * kStride + kWidth <= args.shape.in_w) {
    depthwise_columns<V, kWidth, kStride, kRows, kColumns, false, false>(args, row, ox, count, 0,
                                                                         whole);
  } else {
    depthwise_columns<V, kWidth, kStride, kRows, kColumns, true, false>(args, row, ox, count, 0,
                                                                        whole);
  }
  depthwise_columns<V, kWidth, kStride, kRows, kColumns, true, true>(args, row, ox, count, whole,
                                                                     channels);
}

template <class V, int kWidth, int kStride, int kRows>
void depthwise_row(const DepthwiseArgs& args, const DepthwiseRow& row) {
  // Two rows of eight need more registers than AVX2 has.
  constexpr std::int64_t kColumns = kRows == 2 && V::kLanes < 16 ? 4 : 8;
  constexpr std::int64_t kFew = 4;
  const std::int64_t out_w = args.shape.out_w;
  for (std::int64_t ox = 0; ox < out_w;) {
    const std::int64_t left = out_w - ox;
    if (left > kFew) {
      depthwise_block<V, kWidth, kStride, kRows, kColumns>(args, row, ox,
                                                           std::min(left, kColumns));
      ox += kColumns;
    } else {
      depthwise_block<V, kWidth, kStride, kRows, kFew>(args, row, ox, left);
      ox += kFew;
    }
  }
}

template <class V>
inline typename V::Reg depthwise_bias(const DepthwiseArgs& args, std::int64_t c) {
  return args.bias == nullptr ? V::set(0) : V::load_n(args.bias + c, args.shape.channels - c);
}

/// One output row with any kernel, stride and dilation: four vectors of channels a pixel.
template <class V>
void depthwise_row_any(const DepthwiseArgs& args, const DepthwiseRow& row) {
  using Reg = typename V::Reg;
  constexpr int kVectors = 4;
  const DepthwiseShape& s = args.shape;
  const ClampRange range = clamp_range(args.activation);
  for (std::int64_t ox = 0; ox < s.out_w; ++ox) {
    const std::int64_t ix = ox * s.stride_w - s.pad_left;
    const TapRange kx = taps_inside(ix, s.dilation_w, s.kernel_w, s.in_w);
    for (std::int64_t c = 0; c < s.channels; c += kVectors * V::kLanes) {
      Reg acc[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[v] = depthwise_bias<V>(args, c + v * V::kLanes);
      for (std::int64_t ky = row.ky.first; ky < row.ky.last; ++ky) {
        for (std::int64_t k = kx.first; k < kx.last; ++k) {
          const float* x = row.x + ky * row.x_step + (ix + k * s.dilation_w) * args.x_stride + c;
          const float* w = args.weights + (ky * s.kernel_w + k) * s.channels + c;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            const std::int64_t n = s.channels - c - v * V::kLanes;
            acc[v] = V::fma(V::load_n(x + v * V::kLanes, n), V::load_n(w + v * V::kLanes, n),
                            acc[v]);
          }
        }
      }
      float* y = row.y + ox * args.y_stride + c;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Reg result = V::min(V::set(range.high), V::max(V::set(range.low), acc[v]));
        V::store_n(y + v * V::kLanes, result, s.channels - c - v * V::kLanes);
      }
    }
  }
}

using DepthwiseRowFunction = void (*)(const DepthwiseArgs&, const DepthwiseRow&);

/// What computes one output row, and what computes two at once (null if there is no such kernel).
struct DepthwiseRowFunctions {
  DepthwiseRowFunction one, two;
};
template <class V>
DepthwiseRowFunctions depthwise_row_functions(const DepthwiseShape& s) {
  if (s.dilation_w == 1 && s.stride_w == 1) {
    const bool pairs = s.stride_h == 1 && s.dilation_h == 1;
    const bool wide = V::kLanes == 16;
    if (s.kernel_w == 3) {
      return {depthwise_row<V, 3, 1, 1>, pairs ? depthwise_row<V, 3, 1, 2> : nullptr};
    }
    if (s.kernel_w == 5) {
      return {depthwise_row<V, 5, 1, 1>, pairs && wide ? depthwise_row<V, 5, 1, 2> : nullptr};
    }
    if (s.kernel_w == 7) {
      return {depthwise_row<V, 7, 1, 1>, pairs && wide ? depthwise_row<V, 7, 1, 2> : nullptr};
    }
  }
  if (s.dilation_w == 1 && s.stride_w == 2) {
    if (s.kernel_w == 3) return {depthwise_row<V, 3, 2, 1>, nullptr};
    if (s.kernel_w == 5) return {depthwise_row<V, 5, 2, 1>, nullptr};
  }
  return {depthwise_row_any<V>, nullptr};
}

template <class V>
void depthwise_nhwc_rows(const DepthwiseArgs& args, std::int64_t first, std::int64_t last) {
  const DepthwiseShape& s = args.shape;
  if (s.channels == 0 || s.out_w == 0) return;
  const DepthwiseRowFunctions functions = depthwise_row_functions<V>(s);
  for (std::int64_t r = first; r < last;) {
    const std::int64_t iy = r % s.out_h * s.stride_h - s.pad_top;
    const bool two = functions.two != nullptr && r + 1 < last && r % s.out_h + 1 < s.out_h;
    DepthwiseRow row;
    row.x = args.x + (r / s.out_h * s.in_h + iy) * s.in_w * args.x_stride;
    row.x_step = s.dilation_h * s.in_w * args.x_stride;
    row.y = args.y + r * s.out_w * args.y_stride;
    row.y_step = s.out_w * args.y_stride;
    row.ky = taps_inside(iy, s.dilation_h, s.kernel_h + (two ? 1 : 0), s.in_h);
    (two ? functions.two : functions.one)(args, row);
    const std::int64_t rows = two ? 2 : 1;
    if (!is_clamp(args.activation.kind)) {
      activate_block<V>(args.activation, row.y, args.y_stride, rows * s.out_w, s.channels);
    }
    r += rows;
  }
}

/// One output of an NCHW plane.
inline float depthwise_point(const DepthwiseShape& s, const float* x, const float* w, float bias,
                             std::int64_t iy, TapRange ky, std::int64_t ix) {
  const TapRange kx = taps_inside(ix, s.dilation_w, s.kernel_w, s.in_w);
  for (std::int64_t i = ky.first; i < ky.last; ++i) {
    const float* row = x + (iy + i * s.dilation_h) * s.in_w + ix;
    for (std::int64_t k = kx.first; k < kx.last; ++k) {
      bias += row[k * s.dilation_w] * w[i * s.kernel_w + k];
    }
  }
  return bias;
}

/// kVectors vectors of outputs next to each other, at stride 1, all taps inside.
template <class V, int kVectors>
inline void depthwise_run(const DepthwiseShape& s, const float* x, const float* w, float bias,
                          std::int64_t iy, TapRange ky, std::int64_t ix, float* y) {
  typename V::Reg acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) acc[v] = V::set(bias);
  for (std::int64_t i = ky.first; i < ky.last; ++i) {
    const float* row = x + (iy + i * s.dilation_h) * s.in_w + ix;
    for (std::int64_t k = 0; k < s.kernel_w; ++k) {
      const auto tap = V::set(w[i * s.kernel_w + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        acc[v] = V::fma(V::load(row + k * s.dilation_w + v * V::kLanes), tap, acc[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) V::store(y + v * V::kLanes, acc[v]);
}

template <class V>
void depthwise_nchw_planes(const DepthwiseArgs& args, std::int64_t first, std::int64_t last) {
  const DepthwiseShape& s = args.shape;
  // Outputs of a row whose taps are all inside.
  const std::int64_t reach = (s.kernel_w - 1) * s.dilation_w + 1;
  const std::int64_t inner_first = s.stride_w == 1 ? std::min(s.pad_left, s.out_w) : s.out_w;
  const std::int64_t inner_last =
      std::max(inner_first, std::min(s.out_w, s.in_w - reach + s.pad_left + 1));
  for (std::int64_t plane = first; plane < last; ++plane) {
    const std::int64_t c = plane % s.channels;
    const float* x = args.x + plane * s.in_h * s.in_w;
    const float* w = args.weights + c * s.kernel_h * s.kernel_w;
    const float bias = args.bias == nullptr ? 0 : args.bias[c];
    for (std::int64_t oy = 0; oy < s.out_h; ++oy) {
      const std::int64_t iy = oy * s.stride_h - s.pad_top;
      const TapRange ky = taps_inside(iy, s.dilation_h, s.kernel_h, s.in_h);
      float* y = args.y + (plane * s.out_h + oy) * s.out_w;
      std::int64_t ox = 0;
      for (; ox < inner_first; ++ox) {
        y[ox] = depthwise_point(s, x, w, bias, iy, ky, ox * s.stride_w - s.pad_left);
      }
      for (; ox + 4 * V::kLanes <= inner_last; ox += 4 * V::kLanes) {
        depthwise_run<V, 4>(s, x, w, bias, iy, ky, ox - s.pad_left, y + ox);
      }
      for (; ox + V::kLanes <= inner_last; ox += V::kLanes) {
        depthwise_run<V, 1>(s, x, w, bias, iy, ky, ox - s.pad_left, y + ox);
      }
      for (; ox < s.out_w; ++ox) {
        y[ox] = depthwise_point(s, x, w, bias, iy, ky, ox * s.stride_w - s.pad_left);
      }
      if (args.activation.kind != ActivationKind::None) {
        activate_block<V>(args.activation, y, 0, 1, s.out_w);
      }
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
