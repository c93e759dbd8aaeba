#include "ops/window.h"

#include <algorithm>

#include "ops/dense.h"

namespace sardonyx {

namespace {

/// Keeps products of two of these, and sums of such products, within 64 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 30;

Status check_list(std::string_view name, const std::vector<std::int64_t>& list, int expected,
                  std::int64_t least) {
  if (list.empty()) return {};
  if (list.size() != static_cast<std::size_t>(expected)) {
    return failure(Code::InvalidModel, "{} has {} values, expected {}", name, list.size(),
                   expected);
  }
  for (const std::int64_t value : list) {
    if (value >= least && value <= kLargest) continue;
    return failure(Code::InvalidModel, "{} holds {}, expected a number in [{}, {}]", name, value,
                   least, kLargest);
  }
  return {};
}

/// Refuses sizes whose product would leave 64 bits later, though an empty axis hides it.
Status check_size(const Window& window, Dim WindowAxis::* member, std::string_view what) {
  std::int64_t size = 1;
  for (int i = 0; i < window.rank; ++i) {
    const Dim dim = window[i].*member;
    if (!is_known(dim) || dim == 0) continue;
    if (size > kLargest * 1024 / dim) {
      return failure(Code::InvalidModel, "the spatial {} size is too large: {} at axis {}", what,
                     dim, i);
    }
    size *= dim;
  }
  return {};
}

enum class AutoPad : std::uint8_t { Explicit, SameUpper, SameLower, Valid };

Result<AutoPad> read_auto_pad(const Attributes& attributes) {
  const std::string mode = attributes.get_string("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return AutoPad::Explicit;
  if (mode == "SAME_UPPER") return AutoPad::SameUpper;
  if (mode == "SAME_LOWER") return AutoPad::SameLower;
  if (mode == "VALID") return AutoPad::Valid;
  return failure(Code::InvalidModel,
                 "auto_pad is '{}', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
}

void split_padding(WindowAxis& axis, std::int64_t total, AutoPad mode) {
  const std::int64_t smaller = total / 2;
  axis.pad_begin = mode == AutoPad::SameUpper ? smaller : total - smaller;
  axis.pad_end = total - axis.pad_begin;
}

Status slide_axis(WindowAxis& axis, AutoPad mode, bool ceil_mode) {
  if (mode == AutoPad::Valid) axis.pad_begin = axis.pad_end = 0;
  if (!is_known(axis.input)) return {};
  if (axis.input > kLargest << 10) {
    return failure(Code::InvalidModel, "a spatial size of {} is too large", axis.input);
  }
  if (mode == AutoPad::SameUpper || mode == AutoPad::SameLower) {
    axis.output = axis.input == 0 ? 0 : (axis.input - 1) / axis.stride + 1;
    if (!is_known(axis.kernel)) return {};
    const std::int64_t needed = (axis.output - 1) * axis.stride + axis.extent() - axis.input;
    split_padding(axis, std::max<std::int64_t>(needed, 0), mode);
    return {};
  }
  if (!is_known(axis.kernel)) return {};
  const std::int64_t padded = axis.input + axis.pad_begin + axis.pad_end;
  const std::int64_t room = padded - axis.extent();
  if (room < 0) {
    if (axis.input == 0) {
      axis.output = 0;
      return {};
    }
    return failure(Code::InvalidModel,
                   "a window of {} positions does not fit into an axis of {} (with padding)",
                   axis.extent(), padded);
  }
  axis.output = room / axis.stride + 1;
  const bool has_rest = room % axis.stride != 0;
  // A window that would start in the padding at the end does not count.
  if (ceil_mode && has_rest && axis.output * axis.stride < axis.input + axis.pad_begin) {
    ++axis.output;
  }
  return {};
}

}  // namespace

Result<Window> read_window(const Attributes& attributes, int rank) {
  Window window;
  if (rank < 0 || rank > kMaxSpatial) {
    return failure(Code::InvalidModel, "expected at least 2 and at most {} dimensions, found {}",
                   Shape::kMaxRank, rank + 2);
  }
  window.rank = rank;
  const auto& strides = attributes.get_ints("strides");
  const auto& dilations = attributes.get_ints("dilations");
  const auto& pads = attributes.get_ints("pads");
  SDX_TRY(check_list("strides", strides, rank, 1));
  SDX_TRY(check_list("dilations", dilations, rank, 1));
  SDX_TRY(check_list("pads", pads, 2 * rank, -kLargest));
  for (int i = 0; i < rank; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (!strides.empty()) window[i].stride = strides[k];
    if (!dilations.empty()) window[i].dilation = dilations[k];
    if (pads.empty()) continue;
    window[i].pad_begin = pads[k];
    window[i].pad_end = pads[k + static_cast<std::size_t>(rank)];
  }
  return window;
}

Status set_kernel(Window& window, const Attributes& attributes, const Shape* weights) {
  const auto& kernel = attributes.get_ints("kernel_shape");
  SDX_TRY(check_list("kernel_shape", kernel, window.rank, 1));
  for (int i = 0; i < window.rank; ++i) {
    const Dim given = kernel.empty() ? kUnknownDim : kernel[static_cast<std::size_t>(i)];
    const Dim found = weights != nullptr ? (*weights)[i] : kUnknownDim;
    if (differ(given, found)) {
      return failure(Code::InvalidModel, "kernel_shape says {} at axis {}, but the weight has {}",
                     given, i, found);
    }
    window[i].kernel = is_known(given) ? given : found;
    if (is_known(window[i].kernel) && (window[i].kernel < 1 || window[i].kernel > kLargest)) {
      return failure(Code::InvalidModel, "a kernel of size {} at axis {}", window[i].kernel, i);
    }
  }
  return check_size(window, &WindowAxis::kernel, "kernel");
}

Status slide(Window& window, const Attributes& attributes, const Shape& input, bool ceil_mode) {
  SDX_ASSIGN(const AutoPad mode, read_auto_pad(attributes));
  for (int i = 0; i < window.rank; ++i) {
    window[i].input = input[i];
    SDX_TRY(slide_axis(window[i], mode, ceil_mode));
  }
  SDX_TRY(check_size(window, &WindowAxis::input, "input"));
  return check_size(window, &WindowAxis::output, "output");
}

Status slide_back(Window& window, const Attributes& attributes, const Shape& input) {
  SDX_ASSIGN(const AutoPad mode, read_auto_pad(attributes));
  const auto& padding = attributes.get_ints("output_padding");
  const auto& wanted = attributes.get_ints("output_shape");
  SDX_TRY(check_list("output_padding", padding, window.rank, 0));
  // Some exporters list batch and channels too.
  const bool is_full = wanted.size() == static_cast<std::size_t>(window.rank) + 2;
  SDX_TRY(check_list("output_shape", wanted, window.rank + (is_full ? 2 : 0), 0));
  for (int i = 0; i < window.rank; ++i) {
    WindowAxis& axis = window[i];
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t extra = padding.empty() ? 0 : padding[k];
    axis.input = input[i];
    if (axis.input > kLargest) {
      return failure(Code::InvalidModel, "a spatial size of {} is too large", axis.input);
    }
    const bool is_ready = is_known(axis.input) && is_known(axis.kernel);
    const std::int64_t whole =
        is_ready ? axis.stride * (axis.input - 1) + extra + axis.extent() : kUnknownDim;
    if (!wanted.empty() || mode == AutoPad::SameUpper || mode == AutoPad::SameLower) {
      axis.output = !wanted.empty()        ? wanted[k + (is_full ? 2 : 0)]
                    : is_known(axis.input) ? axis.input * axis.stride
                                           : kUnknownDim;
      if (!is_ready) continue;
      const std::int64_t total = std::max<std::int64_t>(whole - axis.output, 0);
      // The standard's formula puts the odd one at the end only for SAME_UPPER.
      split_padding(axis, total, mode == AutoPad::SameUpper ? mode : AutoPad::SameLower);
      continue;
    }
    if (mode == AutoPad::Valid) axis.pad_begin = axis.pad_end = 0;
    if (!is_ready) continue;
    axis.output = axis.input == 0 ? 0 : whole - axis.pad_begin - axis.pad_end;
    if (axis.output < 0) {
      return failure(Code::InvalidModel, "pads {} and {} exceed an output axis of {}",
                     axis.pad_begin, axis.pad_end, whole);
    }
  }
  SDX_TRY(check_size(window, &WindowAxis::input, "input"));
  return check_size(window, &WindowAxis::output, "output");
}

}  // namespace sardonyx
