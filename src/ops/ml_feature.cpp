#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

Status infer_extractor(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* indices = context.shape(1);
  if (x == nullptr) return {};
  if (x->rank() == 0) return context.error("a scalar has no features to extract");
  const auto count = indices != nullptr ? indices->element_count() : std::nullopt;
  Shape output = x->rank() == 1 ? Shape{1, kUnknownDim} : *x;
  output[output.rank() - 1] = count ? *count : kUnknownDim;
  context.set_shape(0, output);
  return {};
}

Status evaluate_extractor(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto indices = context.ints(1);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  const std::int64_t features = x.dim(x.rank() - 1);
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= features) {
      return context.error("feature {} is outside [0, {})", index, features);
    }
  }
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t rows = x.element_count() / features;
  std::int64_t to = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t index : indices) {
      copy_elements(x.dtype(), y->mutable_data(), to++, x.data(), row * features + index, 1);
    }
  }
  return {};
}

Status evaluate_binarizer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto threshold = static_cast<double>(context.attributes().get_float("threshold", 0.0F));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  for (std::int64_t i = 0; y != nullptr && i < x.element_count(); ++i) {
    const double value = read_real(x.dtype(), x.data(), i);
    write_real(y->dtype(), y->mutable_data(), i, value > threshold ? 1.0 : 0.0);
  }
  return {};
}

/// The length of the last axis, along which features lie.
std::int64_t feature_count(const Tensor& x) { return x.rank() == 0 ? 1 : x.dim(x.rank() - 1); }

/// One number for all features, or one for each.
Status check_per_feature(const EvalContext& context, const char* name, std::size_t found,
                         std::int64_t features) {
  if (found == 1 || found == static_cast<std::size_t>(features)) return {};
  return context.error("{} has {} elements, expected 1 or {}", name, found, features);
}

Status evaluate_scaler(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto& offset = context.attributes().get_floats("offset");
  const auto& scale = context.attributes().get_floats("scale");
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t features = feature_count(x);
  SDX_TRY(check_per_feature(context, "offset", offset.size(), features));
  SDX_TRY(check_per_feature(context, "scale", scale.size(), features));
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    const auto feature = static_cast<std::size_t>(i % features);
    const float from = offset[offset.size() == 1 ? 0 : feature];
    const float factor = scale[scale.size() == 1 ? 0 : feature];
    const double value = read_real(x.dtype(), x.data(), i);
    y->mutable_values<float>()[static_cast<std::size_t>(i)] =
        static_cast<float>((value - static_cast<double>(from)) * static_cast<double>(factor));
  }
  return {};
}

/// What a row is divided by.
double row_norm(const std::string& norm, const Tensor& x, std::int64_t first,
                std::int64_t count) {
  double result = norm == "MAX" ? -HUGE_VAL : 0.0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const double value = read_real(x.dtype(), x.data(), i);
    if (norm == "MAX") {
      result = std::max(result, value);
    } else {
      result += norm == "L1" ? std::fabs(value) : value * value;
    }
  }
  return norm == "L2" ? std::sqrt(result) : result;
}

Status evaluate_normalizer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const std::string norm = context.attributes().get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") {
    return context.error("norm '{}' is none of MAX, L1, L2", norm);
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t features = feature_count(x);
  for (std::int64_t first = 0; first < x.element_count(); first += features) {
    const double divisor = row_norm(norm, x, first, features);
    for (std::int64_t i = first; i < first + features; ++i) {
      const double value = read_real(x.dtype(), x.data(), i);
      y->mutable_values<float>()[static_cast<std::size_t>(i)] =
          static_cast<float>(divisor != 0.0 ? value / divisor : value);
    }
  }
  return {};
}

Status evaluate_imputer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Attributes& attributes = context.attributes();
  const bool is_int = contains(kInts, x.dtype());
  const auto& floats = attributes.get_floats("imputed_value_floats");
  const auto& ints = attributes.get_ints("imputed_value_int64s");
  const std::size_t count = is_int ? ints.size() : floats.size();
  const auto replaced = static_cast<double>(attributes.get_float("replaced_value_float", 0.0F));
  const std::int64_t replaced_int = attributes.get_int("replaced_value_int64", 0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t features = feature_count(x);
  SDX_TRY(check_per_feature(context, "imputed_value", count, features));
  copy_elements(x.dtype(), y->mutable_data(), 0, x.data(), 0, x.element_count());
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    const auto feature = count == 1 ? 0 : static_cast<std::size_t>(i % features);
    if (is_int) {
      if (read_int(x.dtype(), x.data(), i) != replaced_int) continue;
      write_int(y->dtype(), y->mutable_data(), i, ints[feature]);
      continue;
    }
    const double value = read_real(x.dtype(), x.data(), i);
    if (value == replaced || (std::isnan(value) && std::isnan(replaced))) {
      write_real(y->dtype(), y->mutable_data(), i, static_cast<double>(floats[feature]));
    }
  }
  return {};
}

/// Features that each input of FeatureVectorizer gives.
Result<std::vector<std::int64_t>> vector_sizes(const Attributes& attributes, std::size_t inputs) {
  const auto& sizes = attributes.get_ints("inputdimensions");
  if (sizes.size() != inputs) {
    return failure(Code::InvalidModel, "inputdimensions has {} elements for {} inputs",
                   sizes.size(), inputs);
  }
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > std::int64_t{1} << 40) {
      return failure(Code::InvalidModel, "inputdimensions holds {}", size);
    }
  }
  return sizes;
}

Status infer_vectorizer(InferContext& context) {
  SDX_ASSIGN(const auto sizes, vector_sizes(context.attributes(), context.input_count()));
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    const auto sum = checked_add(total, size);
    if (!sum) return context.error("inputdimensions are too large");
    total = *sum;
  }
  Dim rows = kUnknownDim;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Shape* input = context.shape(i);
    if (input == nullptr) continue;
    if (input->rank() == 0) return context.error("input {} has no axes", i);
    const Dim found = input->rank() == 1 ? 1 : (*input)[0];
    if (is_known(rows) && is_known(found) && rows != found) {
      return context.error("inputs of {} and {} rows", rows, found);
    }
    if (is_known(found)) rows = found;
  }
  context.set_shape(0, {rows, total});
  return {};
}

Status evaluate_vectorizer(EvalContext& context) {
  SDX_ASSIGN(const auto sizes, vector_sizes(context.attributes(), context.input_count()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  fill_zero(*y);
  const std::int64_t rows = y->dim(0);
  std::int64_t column = 0;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Tensor& x = context.tensor(i);
    const std::int64_t width = x.element_count() / rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t k = 0; k < std::min(width, sizes[i]); ++k) {
        y->mutable_values<float>()[static_cast<std::size_t>(row * y->dim(1) + column + k)] =
            static_cast<float>(read_real(x.dtype(), x.data(), row * width + k));
      }
    }
    column += sizes[i];
  }
  return {};
}

std::size_t category_count(const Attributes& attributes) {
  return attributes.get_strings("cats_strings").size() + attributes.get_ints("cats_int64s").size();
}

Status infer_one_hot(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const bool has_strings = !attributes.get_strings("cats_strings").empty();
  if (has_strings == !attributes.get_ints("cats_int64s").empty()) {
    return context.error("one of cats_strings and cats_int64s should be given");
  }
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (!Shape::fits(static_cast<std::size_t>(input->rank()) + 1)) {
    return context.error("an input of rank {} is too much", input->rank());
  }
  Shape output = *input;
  output.push_back(static_cast<Dim>(category_count(attributes)));
  context.set_shape(0, output);
  return {};
}

Status evaluate_one_hot(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Attributes& attributes = context.attributes();
  const bool are_strings = !attributes.get_strings("cats_strings").empty();
  if (are_strings != (x.dtype() == DType::String)) {
    return context.error("the categories do not fit tensor({})", dtype_name(x.dtype()));
  }
  std::unordered_map<std::string, std::size_t> names;
  std::unordered_map<std::int64_t, std::size_t> numbers;
  for (const std::string& name : attributes.get_strings("cats_strings")) {
    names.try_emplace(name, names.size());
  }
  for (const std::int64_t number : attributes.get_ints("cats_int64s")) {
    numbers.try_emplace(number, numbers.size());
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  fill_zero(*y);
  const std::size_t width = category_count(attributes);
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    std::size_t category = width;
    if (are_strings) {
      const auto found = names.find(x.values<std::string>()[static_cast<std::size_t>(i)]);
      if (found != names.end()) category = found->second;
    } else {
      const double value = read_real(x.dtype(), x.data(), i);
      const bool fits = value > -9.2e18 && value < 9.2e18;
      const auto found = fits ? numbers.find(static_cast<std::int64_t>(value)) : numbers.end();
      if (found != numbers.end()) category = found->second;
    }
    if (category < width) {
      y->mutable_values<float>()[static_cast<std::size_t>(i) * width + category] = 1.0F;
    } else if (attributes.get_int("zeros", 1) == 0) {
      return context.error("element {} is of no known category", i);
    }
  }
  return {};
}

constexpr DTypeSet kNumbers =
    set_of(DType::Float32, DType::Float64, DType::Int32, DType::Int64);

constexpr OpSchema kRows[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", 1, {"TI>T", kNumbers | set_of(DType::String)},
     "", infer_extractor, evaluate_extractor},
    {"ai.onnx.ml", "Binarizer", 1, {"T>T", kNumbers},
     "threshold:f", infer_same_shape, evaluate_binarizer},
    {"ai.onnx.ml", "FeatureVectorizer", 1, {"T*>F", kNumbers},
     "inputdimensions:is", infer_vectorizer, evaluate_vectorizer},
    {"ai.onnx.ml", "Imputer", 1, {"T>T", kNumbers},
     "imputed_value_floats:fs imputed_value_int64s:is replaced_value_float:f "
     "replaced_value_int64:i",
     infer_same_shape, evaluate_imputer},
    {"ai.onnx.ml", "Normalizer", 1, {"T>F", kNumbers},
     "norm:s", infer_same_shape, evaluate_normalizer},
    {"ai.onnx.ml", "OneHotEncoder", 1, {"T>F", kNumbers | set_of(DType::String)},
     "cats_int64s:is cats_strings:ss zeros:i", infer_one_hot, evaluate_one_hot},
    {"ai.onnx.ml", "Scaler", 1, {"T>F", kNumbers},
     "offset:fs scale:fs", infer_same_shape, evaluate_scaler},
};

}  // namespace

std::span<const OpSchema> ml_feature_schemas() { return kRows; }

}  // namespace sardonyx
