#include <algorithm>

#include "ir/element.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/fft.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Lengths beyond this cannot be meant; it keeps twice the next power of two within 64 bits.
constexpr std::int64_t kLongest = std::int64_t{1} << 40;

struct Transform {
  int axis = 0;
  Dim length = kUnknownDim;
  bool is_inverse = false;
  bool is_onesided = false;
  bool is_complex_input = false;

  bool gives_real() const { return is_inverse && is_onesided; }
  Dim output_length() const {
    return is_known(length) && is_onesided && !is_inverse ? length / 2 + 1 : length;
  }
};

/// `axis` and `length` as inputs or attributes give them; nothing when they are not known.
Result<Transform> read_transform(const Attributes& attributes, const Shape& x,
                                 std::optional<std::int64_t> axis,
                                 std::optional<std::int64_t> length) {
  Transform transform;
  const int rank = x.rank();
  transform.is_inverse = attributes.get_int("inverse", 0) != 0;
  transform.is_onesided = attributes.get_int("onesided", 0) != 0;
  if (rank < 2 || (is_known(x[rank - 1]) && x[rank - 1] != 1 && x[rank - 1] != 2)) {
    return failure(Code::InvalidModel,
                   "the input has shape {}, expected a last dimension of 1 (real) or 2 (complex)",
                   x.to_string());
  }
  transform.is_complex_input = x[rank - 1] == 2;
  if (transform.is_onesided && !transform.is_inverse && transform.is_complex_input) {
    return failure(Code::InvalidModel, "a one-sided transform takes real input, not complex");
  }
  if (!axis) return transform;
  const auto normal = normalize_axis(*axis, rank);
  if (!normal || *normal == rank - 1) {
    return failure(Code::InvalidModel, "axis {} is outside [-{}, -2] and [0, {}]", *axis, rank,
                   rank - 2);
  }
  transform.axis = *normal;
  transform.length = x[transform.axis];
  if (transform.gives_real() && is_known(transform.length)) {
    transform.length = transform.length > 0 ? 2 * (transform.length - 1) : 0;
  }
  if (length) transform.length = *length;
  const bool is_wrong = is_known(transform.length) || length.has_value();
  if (is_wrong && (transform.length < 1 || transform.length > kLongest)) {
    return failure(Code::InvalidModel, "a transform of length {}", transform.length);
  }
  return transform;
}

/// A scalar input: its value, nothing when it is left out or not known.
std::optional<std::int64_t> scalar_of(const Tensor* tensor) {
  if (tensor == nullptr || tensor->element_count() != 1) return std::nullopt;
  return read_int(tensor->dtype(), tensor->data(), 0);
}

/// The axis of versions before 20 is an attribute.
std::optional<std::int64_t> axis_of(int version, const Attributes& attributes, bool is_given,
                                    const Tensor* input) {
  if (version < 20) return attributes.get_int("axis", 1);
  if (!is_given) return -2;
  return scalar_of(input);
}

/// Inputs that stand for one number.
Status check_scalars(const InferContext& context, std::initializer_list<std::size_t> inputs) {
  for (const std::size_t i : inputs) {
    const Shape* shape = context.shape(i);
    if (shape == nullptr || !shape->is_static() || shape->element_count() == 1) continue;
    return context.error("'{}' has shape {}, expected a scalar", context.input_name(i),
                         shape->to_string());
  }
  return {};
}

Status infer_dft(InferContext& context) {
  SDX_TRY(check_scalars(context, {1, 2}));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  const auto axis =
      axis_of(context.version(), context.attributes(), context.has_input(2), context.data(2));
  const auto length = scalar_of(context.data(1));
  SDX_ASSIGN(Transform transform, read_transform(context.attributes(), *x, axis, length));
  Shape shape = *x;
  shape[shape.rank() - 1] = transform.gives_real() ? 1 : 2;
  if (context.has_input(1) && !length) transform.length = kUnknownDim;
  if (axis) {
    shape[transform.axis] = transform.output_length();
  } else {
    for (int i = 0; i < shape.rank() - 1; ++i) shape[i] = kUnknownDim;
  }
  context.set_shape(0, shape);
  return {};
}

/// Lines of a tensor along the transformed axis, as complex numbers.
template <typename C>
void read_line(const C* x, std::int64_t count, std::int64_t stride, bool is_complex,
               std::int64_t length, Complex* line) {
  const std::int64_t used = std::min(count, length);
  for (std::int64_t i = 0; i < used; ++i) {
    line[i].real = static_cast<double>(x[i * stride]);
    line[i].imaginary = is_complex ? static_cast<double>(x[i * stride + 1]) : 0.0;
  }
  std::fill(line + used, line + length, Complex{});
}

/// Fills the second half of a spectrum whose signal is real.
void complete_spectrum(Complex* line, std::int64_t length) {
  line[0].imaginary = 0.0;
  if (length % 2 == 0) line[length / 2].imaginary = 0.0;
  for (std::int64_t k = 1; k < (length + 1) / 2; ++k) line[length - k] = conjugate(line[k]);
}

template <typename C>
void write_line(const Complex* line, std::int64_t count, std::int64_t stride, bool is_real, C* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i * stride] = static_cast<C>(line[i].real);
    if (!is_real) y[i * stride + 1] = static_cast<C>(line[i].imaginary);
  }
}

Status evaluate_dft(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  const auto axis = axis_of(context.version(), context.attributes(), context.has_input(2),
                            context.tensor_or_null(2));
  SDX_ASSIGN(const Transform t, read_transform(context.attributes(), input.shape(), axis,
                                               scalar_of(context.tensor_or_null(1))));
  return with_real(input.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x, Elements<C>::of(input));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y || y.element_count() == 0) return {};
    const std::int64_t width = t.is_complex_input ? 2 : 1;
    const std::int64_t out_width = t.gives_real() ? 1 : 2;
    const std::int64_t outer = input.shape().product(0, t.axis);
    const std::int64_t inner = input.shape().product(t.axis + 1, input.rank() - 1);
    const std::int64_t count = input.dim(t.axis);
    const std::int64_t out_count = t.output_length();
    Fft fft(t.length);
    std::vector<Complex> line(static_cast<std::size_t>(t.length));
    for (std::int64_t i = 0; i < outer * inner; ++i) {
      const std::int64_t o = i / inner;
      const std::int64_t k = i % inner;
      const std::int64_t used = t.gives_real() ? std::min(count, t.length / 2 + 1) : count;
      read_line(x.data() + (o * count * inner + k) * width, used, inner * width, t.is_complex_input,
                t.length, line.data());
      if (t.gives_real()) complete_spectrum(line.data(), t.length);
      t.is_inverse ? fft.inverse(line.data()) : fft.forward(line.data());
      write_line(line.data(), out_count, inner * out_width, t.gives_real(),
                 y.data() + (o * out_count * inner + k) * out_width);
    }
    y.commit();
    return {};
  });
}

struct Frames {
  Dim length = kUnknownDim;
  Dim step = kUnknownDim;
  Dim count = kUnknownDim;
  Dim bins = kUnknownDim;
};

Result<Frames> frames_of(const Attributes& attributes, const Shape& signal,
                         std::optional<std::int64_t> step, const Shape* window, bool has_length,
                         std::optional<std::int64_t> length) {
  Frames frames;
  const int rank = signal.rank();
  if ((rank != 2 && rank != 3) ||
      (rank == 3 && is_known(signal[2]) && signal[2] != 1 && signal[2] != 2)) {
    return failure(Code::InvalidModel, "the signal has shape {}, expected [batch, length, 1 or 2]",
                   signal.to_string());
  }
  if (window != nullptr && window->rank() != 1) {
    return failure(Code::InvalidModel, "the window has shape {}, expected one dimension",
                   window->to_string());
  }
  if (has_length)
    frames.length = length.value_or(kUnknownDim);
  else
    frames.length = window != nullptr ? (*window)[0] : signal[1];
  if (window != nullptr && differ((*window)[0], frames.length)) {
    return failure(Code::InvalidModel, "the window has {} values, but frame_length is {}",
                   (*window)[0], frames.length);
  }
  frames.step = step.value_or(kUnknownDim);
  if ((step && *step < 1) || (has_length && length && *length < 1) || frames.length == 0 ||
      (is_known(frames.length) && frames.length > kLongest)) {
    return failure(Code::InvalidModel, "frames of length {} at steps of {}", frames.length,
                   frames.step);
  }
  const bool is_onesided = attributes.get_int("onesided", 1) != 0;
  if (is_known(frames.length)) frames.bins = is_onesided ? frames.length / 2 + 1 : frames.length;
  if (is_known(frames.length) && step && is_known(signal[1])) {
    if (signal[1] < frames.length) {
      return failure(Code::InvalidModel, "a frame of {} does not fit into a signal of {}",
                     frames.length, signal[1]);
    }
    frames.count = (signal[1] - frames.length) / *step + 1;
  }
  return frames;
}

Status infer_stft(InferContext& context) {
  SDX_TRY(check_scalars(context, {1, 3}));
  const Shape* signal = context.shape(0);
  if (signal == nullptr) return {};
  const Shape* window = context.shape(2);
  if (context.has_input(2) && window == nullptr && !context.has_input(3)) {
    context.set_shape(0, {(*signal)[0], kUnknownDim, kUnknownDim, 2});
    return {};
  }
  SDX_ASSIGN(const Frames frames,
             frames_of(context.attributes(), *signal, scalar_of(context.data(1)), window,
                       context.has_input(3), scalar_of(context.data(3))));
  context.set_shape(0, {(*signal)[0], frames.count, frames.bins, 2});
  return {};
}

Status evaluate_stft(EvalContext& context) {
  const Tensor& signal = context.tensor(0);
  const Tensor* window = context.tensor_or_null(2);
  SDX_ASSIGN(const Frames frames,
             frames_of(context.attributes(), signal.shape(), scalar_of(context.tensor_or_null(1)),
                       window != nullptr ? &window->shape() : nullptr, context.has_input(3),
                       scalar_of(context.tensor_or_null(3))));
  const std::int64_t width = signal.rank() == 3 ? signal.dim(2) : 1;
  return with_real(signal.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x, Elements<C>::of(signal));
    SDX_ASSIGN(const auto weights, Elements<C>::of(window));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y || y.element_count() == 0) return {};
    Fft fft(frames.length);
    std::vector<Complex> line(static_cast<std::size_t>(frames.length));
    for (std::int64_t i = 0; i < signal.dim(0) * frames.count; ++i) {
      const std::int64_t start = i / frames.count * signal.dim(1) + i % frames.count * frames.step;
      read_line(x.data() + start * width, frames.length, width, width == 2, frames.length,
                line.data());
      for (std::int64_t k = 0; k < frames.length && weights; ++k) {
        const auto weight = static_cast<double>(weights[k]);
        Complex& value = line[static_cast<std::size_t>(k)];
        value = {value.real * weight, value.imaginary * weight};
      }
      fft.forward(line.data());
      write_line(line.data(), frames.bins, 2, false, y.data() + i * frames.bins * 2);
    }
    y.commit();
    return {};
  });
}

constexpr DTypeSet kIndex = set_of(DType::Int32, DType::Int64);

constexpr OpSchema kRows[] = {
    {"",
     "DFT",
     17,
     {"Tu>T", kFloatsBf16, kIndex},
     "axis:i inverse:i onesided:i",
     infer_dft,
     evaluate_dft},
    {"",
     "DFT",
     20,
     {"Tui>T", kFloatsBf16, kIndex},
     "inverse:i onesided:i",
     infer_dft,
     evaluate_dft},
    {"", "STFT", 17, {"TUtu>T", kFloatsBf16, kIndex}, "onesided:i", infer_stft, evaluate_stft},
};

}  // namespace

std::span<const OpSchema> fourier_schemas() { return kRows; }

}  // namespace sardonyx
