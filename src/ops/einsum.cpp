#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/checked.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Letters are 0 to 51; the dimensions of an ellipsis count from the right end after them.
using Label = int;
constexpr Label kEllipsis = -1;
constexpr Label kFirstEllipsisDim = 52;
constexpr std::size_t kLabelCount = kFirstEllipsisDim + Shape::kMaxRank;

using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  bool is_explicit = false;
};

/// 'A' to 'Z' are 0 to 25, then 'a' to 'z': the order of implicit outputs.
Label label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -2;
}

Result<Labels> parse_term(std::string_view term) {
  Labels labels;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i, 3) == "...") {
      if (std::find(labels.begin(), labels.end(), kEllipsis) != labels.end()) {
        return failure(Code::InvalidModel, "the term '{}' has two ellipses", term);
      }
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    const Label label = label_of(term[i]);
    if (label < 0) {
      return failure(Code::InvalidModel, "the term '{}' has a '{}', expected letters and '...'",
                     term, term[i]);
    }
    labels.push_back(label);
  }
  return labels;
}

Result<Equation> parse(std::string_view text) {
  Equation equation;
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const std::size_t comma = left.find(',');
    SDX_ASSIGN(Labels term, parse_term(left.substr(0, comma)));
    equation.inputs.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  equation.is_explicit = arrow != std::string_view::npos;
  if (equation.is_explicit) {
    SDX_ASSIGN(equation.output, parse_term(text.substr(arrow + 2)));
    return equation;
  }
  std::array<int, kFirstEllipsisDim> counts{};
  bool has_ellipsis = false;
  for (const Labels& term : equation.inputs) {
    for (const Label label : term) {
      if (label == kEllipsis)
        has_ellipsis = true;
      else
        ++counts[static_cast<std::size_t>(label)];
    }
  }
  if (has_ellipsis) equation.output.push_back(kEllipsis);
  for (Label label = 0; label < kFirstEllipsisDim; ++label) {
    if (counts[static_cast<std::size_t>(label)] == 1) equation.output.push_back(label);
  }
  return equation;
}

/// A term with its ellipsis written out for `count` dimensions.
Labels expand(const Labels& term, int count) {
  Labels labels;
  for (const Label label : term) {
    if (label != kEllipsis) {
      labels.push_back(label);
      continue;
    }
    for (int i = count - 1; i >= 0; --i) labels.push_back(kFirstEllipsisDim + i);
  }
  return labels;
}

/// An equation whose terms fit the shapes, with the size of each label (1 where none has it).
struct Plan {
  std::vector<Labels> inputs;
  Labels output;
  std::array<Dim, kLabelCount> sizes;

  Dim size(Label label) const { return sizes[static_cast<std::size_t>(label)]; }
};

Status add_sizes(Plan& plan, const Labels& labels, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    Dim& size = plan.sizes[static_cast<std::size_t>(labels[static_cast<std::size_t>(i)])];
    if (size == 1 || size == shape[i])
      size = shape[i];
    else if (shape[i] == 1)
      continue;
    else if (is_known(size) && is_known(shape[i])) {
      return failure(Code::InvalidModel, "dimension {} of shape {} has {}, but its letter has {}",
                     i, shape.to_string(), shape[i], size);
    } else if (!is_known(size)) {
      size = shape[i];
    }
  }
  return {};
}

Result<Plan> make_plan(const Equation& equation, std::span<const Shape* const> shapes) {
  Plan plan;
  plan.sizes.fill(1);
  if (equation.inputs.size() != shapes.size()) {
    return failure(Code::InvalidModel, "the equation has {} terms for {} inputs",
                   equation.inputs.size(), shapes.size());
  }
  int widest = 0;
  std::array<bool, kLabelCount> is_there{};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Labels& term = equation.inputs[i];
    const bool has_ellipsis = std::find(term.begin(), term.end(), kEllipsis) != term.end();
    const int extra = shapes[i]->rank() - static_cast<int>(term.size()) + (has_ellipsis ? 1 : 0);
    if (extra < 0 || (extra > 0 && !has_ellipsis)) {
      return failure(Code::InvalidModel, "input {} of shape {} does not fit a term of {} letters",
                     i, shapes[i]->to_string(), term.size() - (has_ellipsis ? 1 : 0));
    }
    if (has_ellipsis) widest = std::max(widest, extra);
    plan.inputs.push_back(expand(term, extra));
    for (const Label label : plan.inputs.back()) is_there[static_cast<std::size_t>(label)] = true;
    SDX_TRY(add_sizes(plan, plan.inputs.back(), *shapes[i]));
  }
  plan.output = expand(equation.output, widest);
  std::array<bool, kLabelCount> is_used{};
  for (const Label label : plan.output) {
    const auto k = static_cast<std::size_t>(label);
    if (!is_there[k] || is_used[k]) {
      return failure(Code::InvalidModel, "an output letter is {}",
                     is_used[k] ? "used twice" : "in none of the inputs");
    }
    is_used[k] = true;
  }
  if (!Shape::fits(plan.output.size())) {
    return failure(Code::InvalidModel, "an output of {} dimensions", plan.output.size());
  }
  return plan;
}

Status infer_einsum(InferContext& context) {
  SDX_ASSIGN(const Equation equation, parse(context.attributes().get_string("equation", "")));
  std::vector<const Shape*> shapes;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error("input {} is left out", i);
    if (context.shape(i) == nullptr) return {};
    shapes.push_back(context.shape(i));
  }
  SDX_ASSIGN(const Plan plan, make_plan(equation, shapes));
  Shape shape;
  for (const Label label : plan.output) shape.push_back(plan.size(label));
  context.set_shape(0, shape);
  return {};
}

/// A dense operand whose dimensions carry distinct labels.
template <typename C>
struct Operand {
  Labels labels;
  std::vector<std::int64_t> dims;
  Elements<C> values;
};

/// to[...] += from at strides, over all positions of dims; `to` strides may be 0 (sums).
template <typename C>
void walk_strided(const std::vector<std::int64_t>& dims,
                  const std::vector<std::int64_t>& from_strides,
                  const std::vector<std::int64_t>& to_strides, const C* from, C* to) {
  const std::size_t rank = dims.size();
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  if (count == 0) return;
  const std::int64_t inner = rank > 0 ? dims[rank - 1] : 1;
  const std::int64_t from_step = rank > 0 ? from_strides[rank - 1] : 0;
  const std::int64_t to_step = rank > 0 ? to_strides[rank - 1] : 0;
  std::vector<std::int64_t> position(rank, 0);
  for (std::int64_t i = 0; i < count / inner; ++i) {
    for (std::int64_t k = 0; k < inner; ++k) to[k * to_step] += from[k * from_step];
    for (std::size_t axis = rank > 0 ? rank - 1 : 0; axis-- > 0;) {
      from += from_strides[axis];
      to += to_strides[axis];
      if (++position[axis] < dims[axis]) break;
      from -= from_strides[axis] * dims[axis];
      to -= to_strides[axis] * dims[axis];
      position[axis] = 0;
    }
  }
}

bool has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The operand with exactly these labels, each of its plan's size: takes diagonals of repeated
/// labels, sums over labels that are not wanted, repeats dimensions of 1.
template <typename C>
Result<Operand<C>> arranged(const Plan& plan, const Operand<C>& operand, const Labels& wanted) {
  Labels all = wanted;
  for (const Label label : operand.labels) {
    if (!has(all, label)) all.push_back(label);
  }
  Operand<C> result{wanted, {}, {}};
  std::int64_t count = 1;
  for (const Label label : wanted) {
    result.dims.push_back(plan.size(label));
    const auto product = checked_multiply(count, plan.size(label));
    if (!product) return failure(Code::OutOfMemory, "an intermediate result is too large");
    count = *product;
  }
  std::vector<std::int64_t> dims, from_strides, to_strides;
  for (const Label label : all) {
    std::int64_t dim = has(wanted, label) ? plan.size(label) : 1;
    std::int64_t stride = 0;
    std::int64_t step = 1;
    for (std::size_t i = operand.labels.size(); i-- > 0;) {
      if (operand.labels[i] == label && operand.dims[i] != 1) {
        stride += step;
        dim = operand.dims[i];
      }
      step *= operand.dims[i];
    }
    dims.push_back(dim);
    from_strides.push_back(stride);
    to_strides.push_back(0);
  }
  std::int64_t step = 1;
  for (std::size_t i = wanted.size(); i-- > 0;) {
    to_strides[i] = step;
    step *= result.dims[i];
  }
  SDX_ASSIGN(Tensor memory, make_scratch<C>(count));
  auto* to = reinterpret_cast<C*>(memory.mutable_data());
  std::fill_n(to, count, C{});
  walk_strided(dims, from_strides, to_strides, operand.values.data(), to);
  SDX_ASSIGN(result.values, Elements<C>::of(memory));
  return result;
}

std::int64_t size_of(const Plan& plan, const Labels& labels) {
  std::int64_t size = 1;
  for (const Label label : labels) size *= plan.size(label);
  return size;
}

/// The product of two operands, summed over shared labels that are not kept.
template <typename C>
Result<Operand<C>> contract(const Plan& plan, const Operand<C>& a, const Operand<C>& b,
                            const Labels& kept) {
  Labels batch, sum, left, right;
  for (const Label label : a.labels) {
    if (has(batch, label) || has(sum, label) || has(left, label)) continue;
    if (has(b.labels, label))
      (has(kept, label) ? batch : sum).push_back(label);
    else if (has(kept, label))
      left.push_back(label);
  }
  for (const Label label : b.labels) {
    if (!has(a.labels, label) && has(kept, label) && !has(right, label)) right.push_back(label);
  }
  const auto joined = [](const Labels& x, const Labels& y, const Labels& z) {
    Labels labels = x;
    labels.insert(labels.end(), y.begin(), y.end());
    labels.insert(labels.end(), z.begin(), z.end());
    return labels;
  };
  SDX_ASSIGN(const auto first, arranged(plan, a, joined(batch, left, sum)));
  SDX_ASSIGN(const auto second, arranged(plan, b, joined(batch, sum, right)));
  Operand<C> result{joined(batch, left, right), {}, {}};
  for (const Label label : result.labels) result.dims.push_back(plan.size(label));
  const std::int64_t rows = size_of(plan, left);
  const std::int64_t columns = size_of(plan, right);
  const std::int64_t depth = size_of(plan, sum);
  const std::int64_t batches = size_of(plan, batch);
  const auto matrix = checked_multiply(rows, columns);
  const auto count = matrix ? checked_multiply(*matrix, batches) : std::nullopt;
  if (!count) return failure(Code::OutOfMemory, "an intermediate result is too large");
  SDX_ASSIGN(Tensor memory, make_scratch<C>(*count));
  auto* to = reinterpret_cast<C*>(memory.mutable_data());
  std::fill_n(to, *count, C{});
  for (std::int64_t i = 0; i < batches; ++i) {
    multiply_add<C>({.rows = rows,
                     .columns = columns,
                     .depth = depth,
                     .a = first.values.data() + i * rows * depth,
                     .a_row = depth,
                     .a_column = 1,
                     .b = second.values.data() + i * depth * columns,
                     .b_row = columns,
                     .c = to + i * *matrix,
                     .c_row = columns});
  }
  SDX_ASSIGN(result.values, Elements<C>::of(memory));
  return result;
}

template <typename C>
Status einsum(EvalContext& context, const Plan& plan) {
  std::vector<Operand<C>> operands;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor& tensor = context.tensor(i);
    Operand<C> operand{plan.inputs[i], {tensor.shape().begin(), tensor.shape().end()}, {}};
    SDX_ASSIGN(operand.values, Elements<C>::of(tensor));
    operands.push_back(std::move(operand));
  }
  Operand<C> result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Labels kept = plan.output;
    for (std::size_t k = i + 1; k < operands.size(); ++k) {
      kept.insert(kept.end(), operands[k].labels.begin(), operands[k].labels.end());
    }
    SDX_ASSIGN(result, contract(plan, result, operands[i], kept));
  }
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  if (!y) return {};
  SDX_ASSIGN(const auto ordered, arranged(plan, result, plan.output));
  std::copy_n(ordered.values.data(), y.element_count(), y.data());
  y.commit();
  return {};
}

Status evaluate_einsum(EvalContext& context) {
  SDX_ASSIGN(const Equation equation, parse(context.attributes().get_string("equation", "")));
  std::vector<const Shape*> shapes;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    shapes.push_back(&context.tensor(i).shape());
  }
  SDX_ASSIGN(const Plan plan, make_plan(equation, shapes));
  return with_arithmetic(context.tensor(0).dtype(),
                         [&]<typename C>() -> Status { return einsum<C>(context, plan); });
}

constexpr OpSchema kRows[] = {
    {"", "Einsum", 12, {"T*>T", kNumeric}, "equation:s!", infer_einsum, evaluate_einsum},
    {"", "Einsum", 28, {"T*>T", kNumericBf16}, "equation:s!", infer_einsum, evaluate_einsum},
};

}  // namespace

std::span<const OpSchema> einsum_schemas() { return kRows; }

}  // namespace sardonyx
