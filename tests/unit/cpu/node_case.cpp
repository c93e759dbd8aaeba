#include "unit/cpu/node_case.h"

#include <cmath>
#include <cstring>

#include "base/text.h"
#include "base/thread_pool.h"
#include "cpu/lower.h"
#include "exec/executor.h"
#include "ops/evaluate.h"
#include "ops/infer.h"

namespace sardonyx {

namespace {

constexpr std::size_t kRoom_bytes = std::size_t{1} << 28;

template <typename T>
std::string compare_elements(const Tensor& found, const Tensor& expected, Tolerance tolerance) {
  const auto a = found.values<T>();
  const auto b = expected.values<T>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]);
    const double y = static_cast<double>(b[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (std::abs(x - y) <= tolerance.error * (1 + std::abs(y))) continue;
    return fmt::format("element {} of {} is {}, expected {}", i, expected.shape().to_string(), x,
                       y);
  }
  return "";
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.byte_size() == 0 || std::memcmp(a.data(), b.data(), a.byte_size()) == 0);
}

}  // namespace

std::string compare(const Tensor& found, const Tensor& expected, Tolerance tolerance) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    return fmt::format("found {}{}, expected {}{}", dtype_name(found.dtype()),
                       found.shape().to_string(), dtype_name(expected.dtype()),
                       expected.shape().to_string());
  }
  switch (expected.dtype()) {
    case DType::Float32: return compare_elements<float>(found, expected, tolerance);
    case DType::Int32: return compare_elements<std::int32_t>(found, expected, tolerance);
    case DType::Int8: return compare_elements<std::int8_t>(found, expected, tolerance);
    case DType::UInt8: return compare_elements<std::uint8_t>(found, expected, tolerance);
    default: return same_bytes(found, expected) ? "" : "the bytes differ";
  }
}

NodeCase::NodeCase(std::string op_type, std::int64_t opset, std::string domain) {
  node_.op_type = std::move(op_type);
  node_.opset = opset;
  node_.domain = std::move(domain);
}

NodeCase& NodeCase::add(Tensor tensor, bool is_constant) {
  const ValueId id = graph_.add_value("x" + std::to_string(node_.inputs.size()),
                                      Type::tensor(tensor.dtype(), tensor.shape()));
  node_.inputs.push_back(id);
  if (is_constant) {
    graph_.set_constant(id, std::move(tensor));
  } else {
    graph_.add_input(id);
    fed_.emplace_back(std::move(tensor));
  }
  return *this;
}

NodeCase& NodeCase::no_input() {
  node_.inputs.push_back(kNoValue);
  return *this;
}

NodeCase& NodeCase::outputs(std::size_t count) {
  output_count_ = count;
  return *this;
}

NodeCase& NodeCase::unknown_sizes() {
  for (const ValueId id : graph_.inputs()) {
    Type& type = graph_.value(id).type;
    type.shape = Shape::filled(type.shape->rank(), kUnknownDim);
  }
  return *this;
}

void NodeCase::finish() {
  if (is_finished_) return;
  is_finished_ = true;
  for (std::size_t i = 0; i < output_count_; ++i) {
    const ValueId id = graph_.add_value("y" + std::to_string(i));
    node_.outputs.push_back(id);
    graph_.add_output(id);
  }
  graph_.add_node(node_);
}

std::string NodeCase::describe() const {
  std::string text = node_.op_type + "-" + std::to_string(node_.opset) + "(";
  for (const ValueId id : node_.inputs) {
    if (id == kNoValue) {
      text += " none";
      continue;
    }
    const Value& value = graph_.value(id);
    text += fmt::format(" {}{}{}", value.constant ? "constant " : "", dtype_name(value.type.dtype),
                        value.type.shape->to_string());
  }
  text += ")";
  for (const auto& [name, attribute] : node_.attributes) {
    text += " " + name + "=";
    if (const auto* number = std::get_if<std::int64_t>(&attribute)) text += std::to_string(*number);
    if (const auto* real = std::get_if<float>(&attribute)) text += std::to_string(*real);
    if (const auto* word = std::get_if<std::string>(&attribute)) text += *word;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute)) {
      for (const std::int64_t number : *list) text += std::to_string(number) + ",";
    }
  }
  return text;
}

Result<std::vector<Datum>> NodeCase::run_kernel(int thread_count, bool gives_outputs,
                                                const std::vector<Datum>& expected) {
  WeightStore store;
  PackedWeights weights(store, {kRoom_bytes, kRoom_bytes});
  SDX_ASSIGN(Program program, lower(graph_, weights, thread_count));
  ThreadPool pool(ThreadPoolOptions{thread_count});
  SDX_TRY(weights.make_all(&pool));
  Executor executor(std::move(program));
  std::mt19937_64 random(1);
  RunState state{pool, nullptr, nullptr, &random};
  std::vector<Datum> results(output_count_);
  for (std::size_t i = 0; gives_outputs && i < expected.size(); ++i) {
    if (expected[i].tensor() == nullptr) continue;
    SDX_ASSIGN(results[i],
               Tensor::allocate(expected[i].tensor()->dtype(), expected[i].tensor()->shape()));
  }
  SDX_TRY(executor.run(fed_, {}, results, state));
  return results;
}

std::string NodeCase::refusal() {
  finish();
  Status status = infer_types(graph_);
  if (!status.ok()) return status.message();
  auto evaluator = Evaluator::create(graph_);
  if (!evaluator.ok()) return evaluator.status().message();
  auto result = evaluator->run(fed_, {}, {});
  return result.ok() ? "" : result.status().message();
}

std::string NodeCase::difference(Tolerance tolerance) {
  finish();
  if (const Status status = infer_types(graph_); !status.ok()) {
    return describe() + ": refused while inferring: " + status.message();
  }
  auto evaluator = Evaluator::create(graph_);
  if (!evaluator.ok()) return describe() + ": " + evaluator.status().to_string();
  auto expected = evaluator->run(fed_, {}, {});
  auto single = run_kernel(1, false, {});
  if (!expected.ok()) {
    if (!single.ok()) return "";
    return describe() + ": should be refused: " + expected.status().message();
  }
  if (!single.ok()) return describe() + ": " + single.status().to_string();
  auto many = run_kernel(3, true, *expected);
  if (!many.ok()) return describe() + ": with 3 threads: " + many.status().to_string();
  for (std::size_t i = 0; i < output_count_; ++i) {
    const Tensor* found = (*single)[i].tensor();
    const Tensor* wanted = (*expected)[i].tensor();
    if (found == nullptr || wanted == nullptr) return describe() + ": an output is no tensor";
    const std::string text = compare(*found, *wanted, tolerance);
    if (!text.empty()) return fmt::format("{}: output {}: {}", describe(), i, text);
    const Tensor* other = (*many)[i].tensor();
    if (other == nullptr || !same_bytes(*found, *other)) {
      return fmt::format("{}: output {} depends on the number of threads: {}", describe(), i,
                         other != nullptr ? compare(*other, *found, {0}) : "missing");
    }
  }
  return "";
}

Tensor Source::floats(const Shape& shape, float low, float high) {
  auto tensor = Tensor::allocate(DType::Float32, shape);
  REQUIRE(tensor.ok());
  std::uniform_real_distribution<float> distribution(low, high);
  for (float& value : tensor->mutable_values<float>()) value = distribution(random_);
  return std::move(tensor).value();
}

Tensor Source::bytes(DType dtype, const Shape& shape) {
  auto tensor = Tensor::allocate(dtype, shape);
  REQUIRE(tensor.ok());
  for (std::uint8_t& value : tensor->mutable_values<std::uint8_t>()) {
    value = static_cast<std::uint8_t>(between(0, 255));
  }
  return std::move(tensor).value();
}

Tensor Source::zeros(DType dtype, const Shape& shape) {
  auto tensor = Tensor::allocate(dtype, shape);
  REQUIRE(tensor.ok());
  if (tensor->byte_size() != 0) std::memset(tensor->mutable_data(), 0, tensor->byte_size());
  return std::move(tensor).value();
}

}  // namespace sardonyx
