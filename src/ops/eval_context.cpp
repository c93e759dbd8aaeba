#include "ops/eval_context.h"

#include "ir/element.h"

namespace sardonyx {

std::vector<std::int64_t> EvalContext::ints(std::size_t i) const {
  std::vector<std::int64_t> result;
  if (!has_input(i)) return result;
  const Tensor& source = tensor(i);
  const std::int64_t count = source.element_count();
  result.reserve(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    result.push_back(read_int(source.dtype(), source.data(), k));
  }
  return result;
}

Result<Tensor*> EvalContext::allocate(std::size_t i) {
  if (!has_output(i)) return static_cast<Tensor*>(nullptr);
  const Type& type = output_type(i);
  if (!type.shape || !type.shape->is_static()) {
    return failure(Code::Internal, "the shape of output {} of {} was not inferred ({})", i,
                   node_.op_type, type.shape ? type.shape->to_string() : "no rank");
  }
  return allocate(i, type.dtype, *type.shape);
}

Result<Tensor*> EvalContext::allocate(std::size_t i, const Shape& shape) {
  if (!has_output(i)) return static_cast<Tensor*>(nullptr);
  return allocate(i, output_type(i).dtype, shape);
}

Result<Tensor*> EvalContext::allocate(std::size_t i, DType dtype, const Shape& shape) {
  if (!has_output(i)) return static_cast<Tensor*>(nullptr);
  SDX_ASSIGN(Tensor made, make_tensor(i, dtype, shape));
  operands_.outputs[i] = Datum(std::move(made));
  return operands_.outputs[i].tensor();
}

void EvalContext::set_output(std::size_t i, Datum datum) {
  if (has_output(i)) operands_.outputs[i] = std::move(datum);
}

}  // namespace sardonyx
