// What the example's "device" can do: four operators on float tensors, as a list of steps that can
// be written to bytes and read back. Nothing in here knows about the runtime; a real provider has
// its compiler and its driver in this place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace example {

using Dims = std::vector<int64_t>;

inline int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

/// A tensor over memory that somebody else keeps.
struct View {
  Dims dims;
  const float* data = nullptr;
};

/// A weight. Programs refer to weights by the hash of what is in them, so that equal ones are kept
/// once, whichever model they come from.
struct Weight {
  Dims dims;
  std::vector<float> values;
};
using Weights = std::map<uint64_t, std::shared_ptr<const Weight>>;

inline uint64_t hash_of(const View& weight) {
  uint64_t hash = 1469598103934665603U;
  const auto mix = [&](const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
  };
  mix(weight.dims.data(), weight.dims.size() * sizeof(int64_t));
  mix(weight.data, static_cast<size_t>(count_of(weight.dims)) * sizeof(float));
  return hash;
}

enum class Op : uint8_t { Add, Mul, MatMul, Relu };

/// Values are numbered: inputs first, then weights, then the result of each step.
struct Step {
  Op op;
  uint32_t a = 0;
  uint32_t b = 0;  // the same as `a` for Relu
};

struct Program {
  std::vector<std::string> inputs;
  std::vector<uint64_t> weights;
  std::vector<Step> steps;
  std::vector<uint32_t> outputs;

  uint32_t first_result() const { return static_cast<uint32_t>(inputs.size() + weights.size()); }
};

/// One operand of an elementwise step: for each element of the result, where its own one is.
inline std::vector<int64_t> strides_for(const Dims& dims, const Dims& result) {
  std::vector<int64_t> strides(result.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t axis = dims.size() - 1 - i;
    if (dims[axis] != 1) strides[result.size() - 1 - i] = stride;
    stride *= dims[axis];
  }
  return strides;
}

/// Shape of a result. Returns false when the operands do not fit.
inline bool infer(Op op, const Dims& a, const Dims& b, Dims& result) {
  if (op == Op::Relu) {
    result = a;
    return true;
  }
  if (op == Op::MatMul) {
    if (a.size() < 2 || b.size() != 2 || a.back() != b[0]) return false;
    result = a;
    result.back() = b[1];
    return true;
  }
  result.assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

inline void run_elementwise(Op op, const View& a, const View& b, const Dims& dims, float* out) {
  const auto step_a = strides_for(a.dims, dims);
  const auto step_b = strides_for(b.dims, dims);
  Dims index(dims.size(), 0);
  int64_t at_a = 0;
  int64_t at_b = 0;
  for (int64_t i = 0, count = count_of(dims); i < count; ++i) {
    const float x = a.data[at_a];
    const float y = b.data[at_b];
    out[i] = op == Op::Add ? x + y : x * y;
    for (size_t axis = dims.size(); axis-- > 0;) {
      at_a += step_a[axis];
      at_b += step_b[axis];
      if (++index[axis] < dims[axis]) break;
      at_a -= step_a[axis] * dims[axis];
      at_b -= step_b[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

inline void run_matmul(const View& a, const View& b, float* out) {
  const int64_t depth = b.dims[0];
  const int64_t columns = b.dims[1];
  const int64_t rows = depth == 0 ? count_of(a.dims) : count_of(a.dims) / depth;
  std::fill_n(out, rows * columns, 0.0F);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < depth; ++k) {
      const float x = a.data[row * depth + k];
      for (int64_t column = 0; column < columns; ++column) {
        out[row * columns + column] += x * b.data[k * columns + column];
      }
    }
  }
}

/// The result of one step, into memory of count_of(dims) floats.
inline void run_step(Op op, const View& a, const View& b, const Dims& dims, float* out) {
  if (op == Op::Relu) {
    for (int64_t i = 0, count = count_of(dims); i < count; ++i) out[i] = std::max(a.data[i], 0.0F);
  } else if (op == Op::MatMul) {
    run_matmul(a, b, out);
  } else {
    run_elementwise(op, a, b, dims, out);
  }
}

// --- bytes -------------------------------------------------------------------------------------

/// Appends numbers and texts to a string.
class Writer {
 public:
  void number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  void floats(const std::vector<float>& values) {
    number(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them off again. A file is not to be trusted: whatever does not fit makes it `bad`, and all
/// that is read after that is empty.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  bool is_bad() const { return bad_; }
  void fail() { bad_ = true; }

  uint64_t number() {
    uint64_t value = 0;
    if (const char* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  /// A number of things that take at least a byte each.
  size_t count() {
    const uint64_t value = number();
    if (value > bytes_.size() - at_) bad_ = true;
    return bad_ ? 0 : static_cast<size_t>(value);
  }
  std::string text() {
    const size_t size = count();
    const char* from = take(size);
    return from == nullptr ? std::string() : std::string(from, size);
  }
  std::vector<float> floats() {
    const size_t size = count();
    std::vector<float> values;
    if (const char* from = size > bytes_.size() / sizeof(float) ? nullptr : take(size * 4)) {
      values.resize(size);
      std::memcpy(values.data(), from, size * sizeof(float));
    } else {
      bad_ = true;
    }
    return values;
  }

 private:
  const char* take(size_t size) {
    if (bad_ || size > bytes_.size() - at_) {
      bad_ = true;
      return nullptr;
    }
    at_ += size;
    return bytes_.data() + at_ - size;
  }

  const std::string& bytes_;
  size_t at_ = 0;
  bool bad_ = false;
};

/// Programs by the name of their part of a model, and the weights that they share.
struct Context {
  std::map<std::string, Program> programs;
  Weights weights;
};

inline constexpr const char* kMagic = "example context 1";

inline std::string to_bytes(const Context& context) {
  Writer out;
  out.text(kMagic);
  out.number(context.weights.size());
  for (const auto& [hash, weight] : context.weights) {
    out.number(hash);
    out.number(weight->dims.size());
    for (const int64_t dim : weight->dims) out.number(static_cast<uint64_t>(dim));
    out.floats(weight->values);
  }
  out.number(context.programs.size());
  for (const auto& [name, program] : context.programs) {
    out.text(name);
    out.number(program.inputs.size());
    for (const std::string& input : program.inputs) out.text(input);
    out.number(program.weights.size());
    for (const uint64_t hash : program.weights) out.number(hash);
    out.number(program.steps.size());
    for (const Step& step : program.steps) {
      out.number(static_cast<uint64_t>(step.op));
      out.number(step.a);
      out.number(step.b);
    }
    out.number(program.outputs.size());
    for (const uint32_t output : program.outputs) out.number(output);
  }
  return out.take();
}

inline Program read_program(Reader& in, const Weights& weights) {
  Program program;
  for (size_t i = in.count(); i > 0; --i) program.inputs.push_back(in.text());
  for (size_t i = in.count(); i > 0; --i) {
    program.weights.push_back(in.number());
    if (weights.count(program.weights.back()) == 0) in.fail();
  }
  uint64_t known = program.first_result();
  for (size_t i = in.count(); i > 0; --i, ++known) {
    const uint64_t op = in.number();
    const uint64_t a = in.number();
    const uint64_t b = in.number();
    if (op > static_cast<uint64_t>(Op::Relu) || a >= known || b >= known) in.fail();
    program.steps.push_back(
        {static_cast<Op>(op), static_cast<uint32_t>(a), static_cast<uint32_t>(b)});
  }
  for (size_t i = in.count(); i > 0; --i) {
    const uint64_t output = in.number();
    if (output >= known) in.fail();
    program.outputs.push_back(static_cast<uint32_t>(output));
  }
  return program;
}

/// Returns false when the bytes are not what to_bytes() makes.
inline bool from_bytes(const std::string& bytes, Context& context) {
  Reader in(bytes);
  if (in.text() != kMagic) return false;
  for (size_t i = in.count(); i > 0 && !in.is_bad(); --i) {
    const uint64_t hash = in.number();
    auto weight = std::make_shared<Weight>();
    for (size_t rank = in.count(); rank > 0; --rank) {
      weight->dims.push_back(static_cast<int64_t>(in.number()));
    }
    weight->values = in.floats();
    // The hash is also what tells a damaged file from a good one.
    const View view{weight->dims, weight->values.data()};
    bool fits = !in.is_bad() && weight->dims.size() <= 8;
    int64_t count = 1;
    for (const int64_t dim : weight->dims) {
      fits = fits && dim >= 0 && dim <= static_cast<int64_t>(weight->values.size());
      count = fits ? count * dim : 0;
      fits = fits && count <= static_cast<int64_t>(weight->values.size());
    }
    fits = fits && count == static_cast<int64_t>(weight->values.size());
    if (!fits || hash_of(view) != hash) return false;
    context.weights[hash] = std::move(weight);
  }
  for (size_t i = in.count(); i > 0 && !in.is_bad(); --i) {
    const std::string name = in.text();
    context.programs[name] = read_program(in, context.weights);
  }
  return !in.is_bad();
}

}  // namespace example
