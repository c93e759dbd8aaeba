#include "cpu/window_rows.h"

#include <doctest/doctest.h>

#include <vector>

#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

using Bytes = std::vector<std::uint8_t>;

ConvSizes sizes_of(std::int64_t batch, std::int64_t channels, std::vector<WindowAxis> axes) {
  ConvSizes sizes;
  sizes.batch = batch;
  sizes.in_channels = channels;
  sizes.window.rank = static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) sizes.window.axes[i] = axes[i];
  return sizes;
}

}  // namespace

TEST_CASE("windows of two channels over a line of three pixels, with a pixel of padding") {
  WindowAxis axis;
  axis.input = 3, axis.output = 3, axis.kernel = 3, axis.pad_begin = axis.pad_end = 1;
  const ConvSizes sizes = sizes_of(1, 2, {axis});
  const Bytes pixels = {1, 2, 3, 4, 5, 6};
  Bytes rows(3 * 8, 0);
  WindowRows{sizes, pixels.data(), 9}.copy(0, 3, 0, 2, 8, rows.data());
  CHECK(rows == Bytes{9, 9, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 3, 4, 5, 6, 9, 9, 0, 0});
  Bytes second(3, 0);
  WindowRows{sizes, pixels.data(), 9}.copy(2, 1, 1, 1, 3, second.data());
  CHECK(second == Bytes{4, 6, 9});
}

TEST_CASE("windows of any rank, stride, dilation and padding hold the bytes under their taps") {
  Source source(91);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<WindowAxis> axes(static_cast<std::size_t>(source.between(1, 3)));
    for (WindowAxis& axis : axes) {
      axis.kernel = source.between(1, 4);
      axis.dilation = source.between(1, 3);
      axis.stride = source.between(1, 3);
      axis.pad_begin = source.between(0, 5);
      axis.input = source.between(1, 9);
      axis.output = source.between(1, 6);
    }
    const std::int64_t channels = source.chance(0.3) ? source.between(1, 40) : source.between(1, 4);
    const ConvSizes sizes = sizes_of(source.between(1, 2), channels, axes);
    const Window& window = sizes.window;
    Bytes pixels(static_cast<std::size_t>(sizes.batch * window.input_size() * channels));
    for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(source.between(0, 250));
    const std::int64_t channel = source.between(0, channels - 1);
    const std::int64_t depth = source.between(1, channels - channel);
    const std::int64_t taps = window.kernel_size();
    const std::int64_t all = sizes.batch * window.output_size();
    const std::int64_t first = source.between(0, all - 1);
    const std::int64_t count = source.between(1, all - first);
    const std::int64_t stride = taps * depth + source.between(0, 3);
    Bytes rows(static_cast<std::size_t>(count * stride), 251);
    Bytes expected = rows;
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        std::int64_t at = first + row, k = tap, pixel = 0, step = 1;
        bool is_inside = true;
        for (int i = window.rank - 1; i >= 0; --i) {
          const WindowAxis& axis = window[i];
          const std::int64_t position =
              at % axis.output * axis.stride - axis.pad_begin + k % axis.kernel * axis.dilation;
          is_inside = is_inside && position >= 0 && position < axis.input;
          pixel += position * step;
          step *= axis.input, at /= axis.output, k /= axis.kernel;
        }
        for (std::int64_t c = 0; c < depth; ++c) {
          expected[static_cast<std::size_t>(row * stride + tap * depth + c)] =
              is_inside
                  ? pixels[static_cast<std::size_t>((at * step + pixel) * channels + channel + c)]
                  : std::uint8_t{255};
        }
      }
    }
    WindowRows{sizes, pixels.data(), 255}.copy(first, count, channel, depth, stride, rows.data());
    CHECK(rows == expected);
  }
}
