#include <algorithm>
#include <limits>

#include "base/text.h"
#include "capi/custom_operator.h"

namespace sardonyx::capi {

namespace {

/// The versions that brought the members.
constexpr uint32_t kOptionalOperands = 8;
constexpr uint32_t kVariadicOperands = 14;
constexpr uint32_t kStatusCallbacks = 16;
constexpr uint32_t kShapeInference = 17;

}  // namespace

Status CustomOpReader::check() const {
  const auto missing = [&](const char* callback) {
    return failure(Code::InvalidArgument, "a custom operator has no {}", callback);
  };
  if (op_.GetName == nullptr || op_.GetName(&op_) == nullptr) return missing("GetName");
  const auto named = [&](const char* callback) {
    return failure(Code::InvalidArgument, "custom operator '{}' has no {}", name(), callback);
  };
  if (op_.version == 0)
    return failure(Code::InvalidArgument,
                   "custom operator '{}' says that its "
                   "version is 0",
                   name());
  if (op_.GetInputTypeCount == nullptr || op_.GetInputType == nullptr) return named("GetInputType");
  if (op_.GetOutputTypeCount == nullptr || op_.GetOutputType == nullptr) {
    return named("GetOutputType");
  }
  if (op_.CreateKernel == nullptr && !has_kernel_v2()) return named("CreateKernel");
  if (op_.KernelCompute == nullptr && !has_compute_v2()) return named("KernelCompute");
  for (const Side& side : {inputs(), outputs()}) {
    for (size_t i = 0; i + 1 < side.operands.size(); ++i) {
      if (side.operands[i].kind != INPUT_OUTPUT_VARIADIC) continue;
      return failure(Code::InvalidArgument,
                     "custom operator '{}' has a variadic input or output that is not the last",
                     name());
    }
  }
  return {};
}

std::string CustomOpReader::provider() const {
  const char* given =
      op_.GetExecutionProviderType != nullptr ? op_.GetExecutionProviderType(&op_) : nullptr;
  return given != nullptr && *given != '\0' ? given : "CPUExecutionProvider";
}

int CustomOpReader::start_version() const {
  if (op_.version < kShapeInference || op_.GetStartVersion == nullptr) return 1;
  return std::max(1, op_.GetStartVersion(&op_));
}

int CustomOpReader::end_version() const {
  constexpr int kNoEnd = std::numeric_limits<int>::max();
  if (op_.version < kShapeInference || op_.GetEndVersion == nullptr) return kNoEnd;
  const int end = op_.GetEndVersion(&op_);
  return end <= 0 ? kNoEnd : end;
}

size_t CustomOpReader::Side::least() const {
  size_t count = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].kind == INPUT_OUTPUT_REQUIRED) count = i + 1;
    if (operands[i].kind == INPUT_OUTPUT_VARIADIC) count = std::max(count, i + min_arity);
  }
  return count;
}

CustomOpReader::Side CustomOpReader::inputs() const {
  Side side;
  const bool has_kinds = op_.version >= kOptionalOperands && op_.GetInputCharacteristic != nullptr;
  for (size_t i = 0; i < op_.GetInputTypeCount(&op_); ++i) {
    side.operands.push_back({op_.GetInputType(&op_, i), has_kinds
                                                            ? op_.GetInputCharacteristic(&op_, i)
                                                            : INPUT_OUTPUT_REQUIRED});
  }
  if (op_.version >= kVariadicOperands && side.is_variadic()) {
    if (op_.GetVariadicInputMinArity != nullptr) {
      side.min_arity = static_cast<size_t>(std::max(0, op_.GetVariadicInputMinArity(&op_)));
    }
    if (op_.GetVariadicInputHomogeneity != nullptr) {
      side.is_homogeneous = op_.GetVariadicInputHomogeneity(&op_) != 0;
    }
  }
  return side;
}

CustomOpReader::Side CustomOpReader::outputs() const {
  Side side;
  const bool has_kinds = op_.version >= kOptionalOperands && op_.GetOutputCharacteristic != nullptr;
  for (size_t i = 0; i < op_.GetOutputTypeCount(&op_); ++i) {
    side.operands.push_back({op_.GetOutputType(&op_, i), has_kinds
                                                             ? op_.GetOutputCharacteristic(&op_, i)
                                                             : INPUT_OUTPUT_REQUIRED});
  }
  if (op_.version >= kVariadicOperands && side.is_variadic()) {
    if (op_.GetVariadicOutputMinArity != nullptr) {
      side.min_arity = static_cast<size_t>(std::max(0, op_.GetVariadicOutputMinArity(&op_)));
    }
    if (op_.GetVariadicOutputHomogeneity != nullptr) {
      side.is_homogeneous = op_.GetVariadicOutputHomogeneity(&op_) != 0;
    }
  }
  return side;
}

bool CustomOpReader::has_shape_inference() const {
  return op_.version >= kShapeInference && op_.InferOutputShapeFn != nullptr;
}

bool CustomOpReader::has_kernel_v2() const {
  return op_.version >= kStatusCallbacks && op_.CreateKernelV2 != nullptr;
}

bool CustomOpReader::has_compute_v2() const {
  return op_.version >= kStatusCallbacks && op_.KernelComputeV2 != nullptr;
}

}  // namespace sardonyx::capi
