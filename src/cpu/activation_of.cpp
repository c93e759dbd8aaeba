#include "cpu/activation_of.h"

#include <string_view>

namespace sardonyx {

namespace {

struct Row {
  std::string_view name;
  kernels::ActivationKind kind;
  float alpha = 0;
  float beta = 0;
};

/// Defaults of the ONNX operators of the same names.
constexpr Row kRows[] = {
    {"", kernels::ActivationKind::None},
    {"Relu", kernels::ActivationKind::Relu},
    {"Clip", kernels::ActivationKind::Clip, -3.402823466e38F, 3.402823466e38F},
    {"LeakyRelu", kernels::ActivationKind::LeakyRelu, 0.01F},
    {"HardSigmoid", kernels::ActivationKind::HardSigmoid, 0.2F, 0.5F},
    {"HardSwish", kernels::ActivationKind::HardSwish},
    {"Sigmoid", kernels::ActivationKind::Sigmoid},
    {"Silu", kernels::ActivationKind::Silu},
    {"Tanh", kernels::ActivationKind::Tanh},
    {"Gelu", kernels::ActivationKind::Gelu},
    {"FastGelu", kernels::ActivationKind::GeluTanh},
};

}  // namespace

std::optional<kernels::Activation> activation_of(const Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  const auto& parameters = attributes.get_floats("activation_params");
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    kernels::Activation activation{row.kind, row.alpha, row.beta};
    if (!parameters.empty()) activation.alpha = parameters[0];
    if (parameters.size() > 1) activation.beta = parameters[1];
    return activation;
  }
  return std::nullopt;
}

}  // namespace sardonyx
