#include "cpu/window_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sardonyx {

namespace {

using Positions = std::array<std::int64_t, kMaxSpatial>;

// A few bytes: a call of memcpy costs more than they do.
void copy_bytes(const std::uint8_t* from, std::int64_t count, std::uint8_t* to) {
  if (count >= 16) {
    for (std::int64_t i = 0; i + 16 < count; i += 16) std::memcpy(to + i, from + i, 16);
    std::memcpy(to + count - 16, from + count - 16, 16);
  } else if (count >= 4) {
    for (std::int64_t i = 0; i + 4 < count; i += 4) std::memcpy(to + i, from + i, 4);
    std::memcpy(to + count - 4, from + count - 4, 4);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
  }
}

/// Taps [begin, end) of the innermost axis that are inside the image.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

std::int64_t steps_to(std::int64_t distance, std::int64_t step) {
  if (distance <= 0) return 0;
  return step == 1 ? distance : (distance + step - 1) / step;
}

Span taps_inside(const WindowAxis& axis, std::int64_t start) {
  const std::int64_t end =
      std::min<std::int64_t>(axis.kernel, steps_to(axis.input - start, axis.dilation));
  return {std::min(end, steps_to(-start, axis.dilation)), end};
}

/// The line of the image under a tap of the outer axes, or -1 outside.
std::int64_t line_of(const Window& window, const Positions& at, const Positions& tap) {
  std::int64_t line = 0;
  for (int i = 0; i + 1 < window.rank; ++i) {
    const WindowAxis& axis = window[i];
    const auto n = static_cast<std::size_t>(i);
    const std::int64_t position = at[n] * axis.stride - axis.pad_begin + tap[n] * axis.dilation;
    if (position < 0 || position >= axis.input) return -1;
    line = line * axis.input + position;
  }
  return line;
}

/// The next position in row-major order of the first `axes` axes; past the last one comes the
/// first.
bool advance(const Window& window, int axes, Dim WindowAxis::* size, Positions& at) {
  for (int i = axes - 1; i >= 0; --i) {
    if (++at[static_cast<std::size_t>(i)] < window[i].*size) return true;
    at[static_cast<std::size_t>(i)] = 0;
  }
  return false;
}

Positions position_of(const Window& window, std::int64_t index) {
  Positions at{};
  for (int i = window.rank - 1; i >= 0; --i) {
    at[static_cast<std::size_t>(i)] = index % window[i].output;
    index /= window[i].output;
  }
  return at;
}

}  // namespace

void WindowRows::copy(std::int64_t first, std::int64_t rows, std::int64_t channel,
                      std::int64_t depth, std::int64_t stride, std::uint8_t* to) const {
  const Window& window = sizes.window;
  const int outer = window.rank - 1;
  const WindowAxis& inner = window[outer];
  const std::int64_t channels = sizes.in_channels;
  const std::int64_t image_bytes = window.input_size() * channels;
  const bool is_dense = inner.dilation == 1 && depth == channels;
  const std::uint8_t* image = pixels + first / window.output_size() * image_bytes;
  Positions at = position_of(window, first % window.output_size());
  for (std::int64_t row = 0; row < rows; ++row) {
    std::uint8_t* out = to + row * stride;
    const std::int64_t start = at[static_cast<std::size_t>(outer)] * inner.stride - inner.pad_begin;
    const Span inside = taps_inside(inner, start);
    Positions tap{};
    do {
      const std::int64_t line = line_of(window, at, tap);
      const Span span = line < 0 ? Span{0, 0} : inside;
      const std::int64_t from = channel + (line * inner.input + start) * channels;
      if (span.begin > 0) {
        std::memset(out, padding, static_cast<std::size_t>(span.begin * depth));
      }
      if (is_dense && span.begin < span.end) {
        copy_bytes(image + (from + span.begin * depth), (span.end - span.begin) * depth,
                   out + span.begin * depth);
      } else if (!is_dense) {
        for (std::int64_t k = span.begin; k < span.end; ++k) {
          copy_bytes(image + (from + k * inner.dilation * channels), depth, out + k * depth);
        }
      }
      if (span.end < inner.kernel) {
        std::memset(out + span.end * depth, padding,
                    static_cast<std::size_t>((inner.kernel - span.end) * depth));
      }
      out += inner.kernel * depth;
    } while (advance(window, outer, &WindowAxis::kernel, tap));
    if (!advance(window, window.rank, &WindowAxis::output, at)) image += image_bytes;
  }
}

bool is_pointwise(const Window& window) {
  for (int i = 0; i < window.rank; ++i) {
    const WindowAxis& axis = window[i];
    const bool is_one =
        axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.output == axis.input;
    if (!is_one) return false;
  }
  return true;
}

}  // namespace sardonyx
