#pragma once

#include "ops/dense.h"
#include "ops/window.h"

namespace sardonyx {

/// Sizes of a grouped convolution over dense [batch, channels, spatial...] tensors.
struct ConvSizes {
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Window window;
};

/// Sizes and output shape of a convolution of `x` with `weight` [out, in / groups, kernel...].
/// Sets only what the shapes tell.
/// Errors   InvalidModel when they do not fit.
Result<ConvSizes> conv_sizes(const Attributes& attributes, const Shape& x, const Shape& weight);
Shape conv_output(const ConvSizes& sizes);

/// The same for a transposed one, whose weight is [in, out / groups, kernel...].
Result<ConvSizes> conv_transpose_sizes(const Attributes& attributes, const Shape& x,
                                       const Shape& weight);

/// y += convolution of x; positions in the padding count as zero.
/// Cost   gathers blocks of windows into at most a megabyte of scratch.
/// Errors OutOfMemory.
template <typename C>
Status convolve(const ConvSizes& sizes, const C* x, const C* weight, C* y);

/// y += transposed convolution of x.
template <typename C>
Status convolve_back(const ConvSizes& sizes, const C* x, const C* weight, C* y);

/// Sets every element of channel c to bias[c], or to zero without bias.
template <typename C>
void fill_channels(const C* bias, std::int64_t batch, std::int64_t channels, std::int64_t size,
                   C* y);

/// Dense [batch, size, channels] as [batch, channels, size], and back.
template <typename C>
Result<Elements<C>> channels_first(const Elements<C>& x, const Shape& shape);
template <typename C>
void channels_last(const C* from, std::int64_t batch, std::int64_t channels, std::int64_t size,
                   C* to);

/// [batch, spatial..., channels] as [batch, channels, spatial...], and back.
Shape channels_first_shape(const Shape& shape);
Shape channels_last_shape(const Shape& shape);

}  // namespace sardonyx
