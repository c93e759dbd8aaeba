#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capi/kernel_info.h"
#include "ir/custom_operator.h"

namespace sardonyx::capi {

/// Reads an OrtCustomOp only as far as its version says; what is missing answers as if left out.
class CustomOpReader {
 public:
  explicit CustomOpReader(const OrtCustomOp& op) : op_(op) {}

  const OrtCustomOp& raw() const { return op_; }
  /// Errors   InvalidArgument that names the callback which is missing.
  Status check() const;

  std::string name() const { return op_.GetName(&op_); }
  /// "CPUExecutionProvider" unless the operator names another.
  std::string provider() const;
  int start_version() const;
  int end_version() const;

  /// One side, inputs or outputs, of the declaration.
  struct Side {
    struct Operand {
      ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
      OrtCustomOpInputOutputCharacteristic kind = INPUT_OUTPUT_REQUIRED;
    };
    std::vector<Operand> operands;
    /// Of the last operand, when it is variadic.
    size_t min_arity = 1;
    bool is_homogeneous = true;

    bool is_variadic() const {
      return !operands.empty() && operands.back().kind == INPUT_OUTPUT_VARIADIC;
    }
    size_t least() const;
    const Operand& at(size_t i) const { return operands[std::min(i, operands.size() - 1)]; }
  };
  Side inputs() const;
  Side outputs() const;

  bool has_shape_inference() const;
  bool has_kernel_v2() const;
  bool has_compute_v2() const;

 private:
  const OrtCustomOp& op_;
};

/// The entries of a session's table for all operators of the domains.
/// Errors   InvalidArgument for an operator that cannot be used, naming it.
Result<std::vector<CustomOperatorEntry>> make_custom_operators(
    std::span<const std::shared_ptr<const CustomDomain>> domains,
    std::shared_ptr<const KernelSession> session);

}  // namespace sardonyx::capi
