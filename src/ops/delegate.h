#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/attribute.h"
#include "ir/datum.h"
#include "ops/infer_context.h"

namespace sardonyx {

/// Another operator of the ONNX domain that one operator is made of: which version, and with what
/// attributes.
struct Delegate {
  std::string op_type;
  std::int64_t opset;
  Attributes attributes;
};

/// Evaluates it; a Datum without value stands for an input that is left out.
/// Errors   what that operator refuses.
Result<std::vector<Datum>> evaluate_delegate(Delegate delegate, std::span<const Datum> inputs,
                                             std::size_t output_count = 1);
/// The same for tensors and one result.
Result<Tensor> evaluate_delegate(Delegate delegate, std::initializer_list<Tensor> inputs);

/// The type of its first output for inputs of these types.
Result<Type> infer_delegate(Delegate delegate, std::initializer_list<Type> inputs);

/// Those attributes of `from` that are in the list, as far as they are there.
Attributes attributes_named(const Attributes& from,
                            std::initializer_list<std::string_view> names);

}  // namespace sardonyx
