#include <array>
#include <cmath>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// Inputs after the learning rate and the step come in groups: all values, all gradients, then
/// each kind of state. Outputs are new values and states, in the same order.
std::size_t group_count(std::string_view op_type) { return op_type == "Adam" ? 4 : 3; }

Status infer_optimizer(InferContext& context) {
  const std::size_t groups = group_count(context.node().op_type);
  const std::size_t inputs = context.input_count() - 2;
  const std::size_t tensors = inputs / groups;
  if (inputs % groups != 0 || context.output_count() != tensors * (groups - 1)) {
    return context.error("{} inputs and {} outputs are no whole number of tensors to train",
                         context.input_count(), context.output_count());
  }
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error("input {} is required, but left out", i);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const Shape* shape = context.shape(i);
    const auto count = shape != nullptr ? shape->element_count() : std::nullopt;
    if (count && *count != 1) {
      return context.error("'{}' should be a scalar, but has shape {}", context.input_name(i),
                           shape->to_string());
    }
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    const Shape* shape = context.shape(2 + t);
    if (shape == nullptr) continue;
    for (std::size_t g = 1; g < groups; ++g) {
      const Shape* other = context.shape(2 + g * tensors + t);
      if (other != nullptr && other->is_static() && shape->is_static() && *other != *shape) {
        return context.error("'{}' should have shape {}, but has {}",
                             context.input_name(2 + g * tensors + t), shape->to_string(),
                             other->to_string());
      }
      context.set_shape((g - 1) * tensors + t, *shape);
    }
  }
  return {};
}

/// One element: its value, gradient and states, of which value and states are updated.
struct Element {
  double value;
  double gradient;
  double first;
  double second;
};

/// Calls update(element, rate, step) for every element of every tensor.
template <typename Update>
Status update_all(EvalContext& context, Update&& update) {
  const std::size_t groups = group_count(context.node().op_type);
  const std::size_t tensors = (context.input_count() - 2) / groups;
  const double rate = read_real(context.tensor(0).dtype(), context.tensor(0).data(), 0);
  const std::int64_t step = read_int(DType::Int64, context.tensor(1).data(), 0);
  for (std::size_t t = 0; t < tensors; ++t) {
    const auto input = [&](std::size_t group) -> const Tensor& {
      return context.tensor(2 + group * tensors + t);
    };
    std::array<Tensor*, 3> outputs{};
    for (std::size_t g = 0; g + 1 < groups; ++g) {
      SDX_ASSIGN(outputs[g], context.allocate(g * tensors + t));
    }
    const std::int64_t count = input(0).element_count();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto read = [&](std::size_t group) {
        return read_real(input(group).dtype(), input(group).data(), i);
      };
      Element element = {read(0), read(1), read(2), groups > 3 ? read(3) : 0};
      update(element, rate, step);
      const std::array results = {element.value, element.first, element.second};
      for (std::size_t g = 0; g < outputs.size(); ++g) {
        if (outputs[g] == nullptr) continue;
        write_real(outputs[g]->dtype(), outputs[g]->mutable_data(), i, results[g]);
      }
    }
  }
  return {};
}

Status evaluate_adagrad(EvalContext& context) {
  const double norm = context.attributes().get_float("norm_coefficient", 0.0F);
  const double decay = context.attributes().get_float("decay_factor", 0.0F);
  const double epsilon = context.attributes().get_float("epsilon", 1e-6F);
  return update_all(context, [&](Element& element, double rate, std::int64_t step) {
    const double adjusted = rate / (1 + static_cast<double>(step) * decay);
    const double gradient = norm * element.value + element.gradient;
    element.first += gradient * gradient;
    element.value -= adjusted * gradient / (std::sqrt(element.first) + epsilon);
  });
}

Status evaluate_adam(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  const double alpha = attributes.get_float("alpha", 0.9F);
  const double beta = attributes.get_float("beta", 0.999F);
  const double epsilon = attributes.get_float("epsilon", 1e-6F);
  const double norm = attributes.get_float("norm_coefficient", 0.0F);
  const double norm_post = attributes.get_float("norm_coefficient_post", 0.0F);
  return update_all(context, [&](Element& element, double rate, std::int64_t step) {
    const double gradient = norm * element.value + element.gradient;
    element.first = alpha * element.first + (1 - alpha) * gradient;
    element.second = beta * element.second + (1 - beta) * gradient * gradient;
    if (step > 0) {
      const auto power = static_cast<double>(step);
      rate *= std::sqrt(1 - std::pow(beta, power)) / (1 - std::pow(alpha, power));
    }
    const double step_size = rate / (std::sqrt(element.second) + epsilon);
    element.value = (1 - norm_post) * (element.value - step_size * element.first);
  });
}

Status evaluate_momentum(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  const double alpha = attributes.get_float("alpha", 0.0F);
  const double beta = attributes.get_float("beta", 0.0F);
  const double norm = attributes.get_float("norm_coefficient", 0.0F);
  const std::string mode = attributes.get_string("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return context.error("mode should be 'standard' or 'nesterov', but is '{}'", mode);
  }
  const bool is_nesterov = mode == "nesterov";
  return update_all(context, [&](Element& element, double rate, std::int64_t step) {
    const double gradient = norm * element.value + element.gradient;
    element.first = alpha * element.first + (step > 0 ? beta : 1) * gradient;
    element.value -= rate * (is_nesterov ? gradient + alpha * element.first : element.first);
  });
}

Status refuse_gradient(InferContext&) {
  return failure(Code::Unsupported,
                 "Gradient asks for a derivative of the graph, which this runtime does not make");
}

Status evaluate_nothing(EvalContext& context) {
  return context.error("{} is not evaluated", context.node().op_type);
}

constexpr OpSchema kRows[] = {
    {"ai.onnx.preview.training", "Adagrad", 1, {"TIU*>U*", set_of(DType::Float32, DType::Float64),
      set_of(DType::Float32, DType::Float64)}, "decay_factor:f epsilon:f norm_coefficient:f",
     infer_optimizer, evaluate_adagrad},
    {"ai.onnx.preview.training", "Adam", 1, {"TIU*>U*", set_of(DType::Float32, DType::Float64),
      set_of(DType::Float32, DType::Float64)},
     "alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f", infer_optimizer,
     evaluate_adam},
    {"ai.onnx.preview.training", "Gradient", 1, {"T*>U*", kAllClassic, kFloats},
     "xs:ss! y:s! zs:ss", refuse_gradient, evaluate_nothing},
    {"ai.onnx.preview.training", "Momentum", 1, {"TIU*>U*", set_of(DType::Float32, DType::Float64),
      set_of(DType::Float32, DType::Float64)}, "alpha:f! beta:f! mode:s! norm_coefficient:f!",
     infer_optimizer, evaluate_momentum},
};

}  // namespace

std::span<const OpSchema> training_schemas() { return kRows; }

}  // namespace sardonyx
