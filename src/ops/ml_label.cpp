#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "ir/element.h"
#include "ir/make_map.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// A list attribute as a tensor of rank 1.
template <typename T>
Result<Tensor> list_tensor(std::span<const T> values) {
  return make_tensor<T>({static_cast<Dim>(values.size())}, values);
}

/// The list STEM_strings, STEM_int64s, STEM_floats or STEM_tensor that is there; nothing when none
/// is.
Result<std::optional<Tensor>> any_list(const Attributes& attributes, const std::string& stem) {
  std::optional<Tensor> found;
  if (const auto* tensor = attributes.get_if<Tensor>(stem + "_tensor")) {
    found = tensor->reshaped({tensor->element_count()});
  } else if (attributes.has(stem + "_strings")) {
    SDX_ASSIGN(found, list_tensor<std::string>(attributes.get_strings(stem + "_strings")));
  } else if (attributes.has(stem + "_int64s")) {
    SDX_ASSIGN(found, list_tensor<std::int64_t>(attributes.get_ints(stem + "_int64s")));
  } else if (attributes.has(stem + "_floats")) {
    SDX_ASSIGN(found, list_tensor<float>(attributes.get_floats(stem + "_floats")));
  }
  return found;
}

/// What stands for keys that are not there.
Result<Tensor> fallback_of(const Attributes& attributes, DType dtype) {
  if (const auto* tensor = attributes.get_if<Tensor>("default_tensor")) {
    if (tensor->element_count() == 1 && tensor->dtype() == dtype) return *tensor;
    return failure(Code::InvalidModel, "default_tensor is tensor({}){}, expected one element of {}",
                   dtype_name(tensor->dtype()), tensor->shape().to_string(), dtype_name(dtype));
  }
  SDX_ASSIGN(Tensor value, Tensor::allocate(dtype, {1}));
  if (dtype == DType::String) {
    value.mutable_values<std::string>()[0] = attributes.get_string("default_string", "_Unused");
  } else if (contains(kInts, dtype)) {
    write_int(dtype, value.mutable_data(), 0, attributes.get_int("default_int64", -1));
  } else {
    write_real(dtype, value.mutable_data(), 0,
               static_cast<double>(attributes.get_float("default_float", -0.0F)));
  }
  return value;
}

/// Position of each key in a list; a NaN is equal to a NaN.
class KeyIndex {
 public:
  explicit KeyIndex(const Tensor& keys) : dtype_(keys.dtype()) {
    for (std::int64_t i = 0; i < keys.element_count(); ++i) {
      if (dtype_ == DType::String) {
        names_.try_emplace(keys.values<std::string>()[static_cast<std::size_t>(i)], i);
      } else {
        numbers_.try_emplace(bits(keys, i), i);
      }
    }
  }

  /// Position of element `i` of a tensor of the keys' type, or -1.
  std::int64_t find(const Tensor& tensor, std::int64_t i) const {
    if (dtype_ == DType::String) {
      const auto found = names_.find(tensor.values<std::string>()[static_cast<std::size_t>(i)]);
      return found != names_.end() ? found->second : -1;
    }
    const auto found = numbers_.find(bits(tensor, i));
    return found != numbers_.end() ? found->second : -1;
  }

 private:
  static std::uint64_t bits(const Tensor& tensor, std::int64_t i) {
    if (contains(kInts, tensor.dtype())) {
      return static_cast<std::uint64_t>(read_int(tensor.dtype(), tensor.data(), i));
    }
    const double value = read_real(tensor.dtype(), tensor.data(), i);
    if (std::isnan(value)) return ~std::uint64_t{0};
    return std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value);
  }

  DType dtype_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::unordered_map<std::uint64_t, std::int64_t> numbers_;
};

/// What LabelEncoder and CategoryMapper look up.
struct Mapping {
  Tensor keys;
  Tensor values;
};

/// Positions 0, 1, 2 ... as a tensor.
Result<Tensor> positions(std::size_t count) {
  SDX_ASSIGN(Tensor tensor, Tensor::allocate(DType::Int64, {static_cast<Dim>(count)}));
  for (std::size_t i = 0; i < count; ++i) {
    tensor.mutable_values<std::int64_t>()[i] = static_cast<std::int64_t>(i);
  }
  return tensor;
}

/// Version 1 and CategoryMapper go both ways, as the input's type says.
Result<Mapping> two_way_mapping(const Node& node, DType input) {
  const bool is_mapper = node.op_type == "CategoryMapper";
  const auto& strings = node.attributes.get_strings(is_mapper ? "cats_strings" : "classes_strings");
  SDX_ASSIGN(Tensor names, list_tensor<std::string>(strings));
  SDX_ASSIGN(Tensor numbers,
             is_mapper ? list_tensor<std::int64_t>(node.attributes.get_ints("cats_int64s"))
                       : positions(strings.size()));
  if (input == DType::String) return Mapping{std::move(names), std::move(numbers)};
  return Mapping{std::move(numbers), std::move(names)};
}

Result<Mapping> mapping_of(const Node& node, int version, DType input) {
  Mapping mapping;
  if (node.op_type == "CategoryMapper" || version < 2) {
    SDX_ASSIGN(mapping, two_way_mapping(node, input));
  } else {
    SDX_ASSIGN(const auto keys, any_list(node.attributes, "keys"));
    SDX_ASSIGN(const auto values, any_list(node.attributes, "values"));
    if (!keys || !values) return failure(Code::InvalidModel, "keys and values should be given");
    mapping = {*keys, *values};
  }
  if (mapping.keys.element_count() != mapping.values.element_count()) {
    return failure(Code::InvalidModel, "{} keys do not fit {} values",
                   mapping.keys.element_count(), mapping.values.element_count());
  }
  if (input != DType::Undefined && mapping.keys.dtype() != input) {
    return failure(Code::InvalidModel, "keys of tensor({}) do not fit an input of tensor({})",
                   dtype_name(mapping.keys.dtype()), dtype_name(input));
  }
  return mapping;
}

Status infer_mapping(InferContext& context) {
  SDX_ASSIGN(const Mapping mapping,
             mapping_of(context.node(), context.version(), context.dtype(0)));
  context.set_dtype(0, mapping.values.dtype());
  return infer_same_shape(context);
}

Status evaluate_mapping(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const Mapping mapping, mapping_of(context.node(), context.version(), x.dtype()));
  const DType dtype = mapping.values.dtype();
  SDX_ASSIGN(const Tensor fallback, fallback_of(context.attributes(), dtype));
  SDX_ASSIGN(Tensor * y, context.allocate(0, dtype, x.shape()));
  if (y == nullptr) return {};
  const KeyIndex index(mapping.keys);
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    const std::int64_t found = index.find(x, i);
    copy_elements(dtype, y->mutable_data(), i, found < 0 ? fallback.data() : mapping.values.data(),
                  std::max<std::int64_t>(found, 0), 1);
  }
  return {};
}

Result<const Map*> map_input(const EvalContext& context) {
  const Datum* input = context.input(0);
  const Map* map = input != nullptr ? input->map() : nullptr;
  if (map == nullptr) return context.error("the input should be a map");
  return map;
}

Status expect_map(const InferContext& context) {
  const Type& type = context.type(0);
  if (type.kind == Type::Kind::Map || type.kind == Type::Kind::Unknown) return {};
  return context.error("the input should be a map, but is {}", type.to_string());
}

Result<DType> cast_target(const Attributes& attributes) {
  const std::string name = attributes.get_string("cast_to", "TO_FLOAT");
  if (name == "TO_FLOAT") return DType::Float32;
  if (name == "TO_INT64") return DType::Int64;
  if (name == "TO_STRING") return DType::String;
  return failure(Code::InvalidModel, "cast_to '{}' is none of TO_FLOAT, TO_INT64, TO_STRING",
                 name);
}

Status infer_cast_map(InferContext& context) {
  SDX_TRY(expect_map(context));
  SDX_ASSIGN(const DType dtype, cast_target(context.attributes()));
  context.set_dtype(0, dtype);
  context.set_shape(0, {1, kUnknownDim});
  return {};
}

/// Converts element `i` of the map's values; texts that are no numbers are errors.
Status cast_value(const EvalContext& context, const Tensor& from, std::int64_t i, Tensor& to,
                  std::int64_t at) {
  const auto target = static_cast<std::size_t>(at);
  if (from.dtype() != DType::String) {
    const double value = read_real(from.dtype(), from.data(), i);
    if (to.dtype() == DType::String) {
      to.mutable_values<std::string>()[target] = fmt::format("{:.6f}", value);
    } else {
      write_real(to.dtype(), to.mutable_data(), at, value);
    }
    return {};
  }
  const std::string& text = from.values<std::string>()[static_cast<std::size_t>(i)];
  if (to.dtype() == DType::String) {
    to.mutable_values<std::string>()[target] = text;
    return {};
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return context.error("'{}' is no number", text);
  write_real(to.dtype(), to.mutable_data(), at, value);
  return {};
}

Status evaluate_cast_map(EvalContext& context) {
  SDX_ASSIGN(const Map* map, map_input(context));
  SDX_ASSIGN(const DType dtype, cast_target(context.attributes()));
  if (map->keys.dtype() != DType::Int64) return context.error("the map's keys should be int64");
  const bool is_sparse = context.attributes().get_string("map_form", "DENSE") == "SPARSE";
  const std::int64_t entries = map->keys.element_count();
  const std::int64_t width = is_sparse ? context.attributes().get_int("max_map", 1) : entries;
  if (width < 0) return context.error("max_map {} is negative", width);
  SDX_ASSIGN(Tensor * y, context.allocate(0, dtype, Shape{1, width}));
  if (y == nullptr) return {};
  fill_zero(*y);
  // Dense output is in the order of the keys.
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (std::int64_t i = 0; i < entries; ++i) {
    order.emplace_back(map->keys.values<std::int64_t>()[static_cast<std::size_t>(i)], i);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t at = is_sparse ? order[k].first : static_cast<std::int64_t>(k);
    if (at < 0) return context.error("key {} is negative", at);
    if (at >= width) continue;
    SDX_TRY(cast_value(context, map->values, order[k].second, *y, at));
  }
  return {};
}

Result<Tensor> vocabulary(const Attributes& attributes) {
  const auto& strings = attributes.get_strings("string_vocabulary");
  const auto& ints = attributes.get_ints("int64_vocabulary");
  if (strings.empty() == ints.empty()) {
    return failure(Code::InvalidModel,
                   "one of string_vocabulary and int64_vocabulary should be given");
  }
  return strings.empty() ? list_tensor<std::int64_t>(ints) : list_tensor<std::string>(strings);
}

Status infer_dict_vectorizer(InferContext& context) {
  SDX_TRY(expect_map(context));
  SDX_ASSIGN(const Tensor words, vocabulary(context.attributes()));
  const Type& type = context.type(0);
  if (type.element != nullptr) context.set_dtype(0, type.element->dtype);
  context.set_shape(0, {1, words.element_count()});
  return {};
}

Status evaluate_dict_vectorizer(EvalContext& context) {
  SDX_ASSIGN(const Map* map, map_input(context));
  SDX_ASSIGN(const Tensor words, vocabulary(context.attributes()));
  if (words.dtype() != map->keys.dtype()) {
    return context.error("a vocabulary of {} does not fit keys of {}", dtype_name(words.dtype()),
                         dtype_name(map->keys.dtype()));
  }
  SDX_ASSIGN(Tensor * y,
             context.allocate(0, map->values.dtype(), Shape{1, words.element_count()}));
  if (y == nullptr) return {};
  fill_zero(*y);
  const KeyIndex index(map->keys);
  for (std::int64_t i = 0; i < words.element_count(); ++i) {
    const std::int64_t found = index.find(words, i);
    if (found < 0) continue;
    copy_elements(y->dtype(), y->mutable_data(), i, map->values.data(), found, 1);
  }
  return {};
}

Result<Tensor> zip_labels(const Attributes& attributes) {
  SDX_ASSIGN(const auto labels, any_list(attributes, "classlabels"));
  if (!labels) return failure(Code::InvalidModel, "the class labels are missing");
  return *labels;
}

Status infer_zip_map(InferContext& context) {
  SDX_ASSIGN(const Tensor labels, zip_labels(context.attributes()));
  const Shape* input = context.shape(0);
  const bool has_axes = input != nullptr && input->rank() > 0;
  const Dim width = has_axes ? (*input)[input->rank() - 1] : kUnknownDim;
  if (input != nullptr && (input->rank() == 0 || input->rank() > 2)) {
    return context.error("expected an input [N,C] or [C], found {}", input->to_string());
  }
  if (is_known(width) && width != labels.element_count()) {
    return context.error("{} labels do not fit rows of {}", labels.element_count(), width);
  }
  context.set_type(
      0, Type::sequence(Type::map(labels.dtype(), Type::tensor(DType::Float32, Shape{}))));
  return {};
}

Status evaluate_zip_map(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const Tensor labels, zip_labels(context.attributes()));
  const std::int64_t width = labels.element_count();
  const std::int64_t rows = x.rank() == 1 ? 1 : x.dim(0);
  auto sequence = std::make_shared<Sequence>();
  sequence->element = Type::map(labels.dtype(), Type::tensor(DType::Float32, Shape{}));
  // All rows share the keys, which may be long: ordered once, with the places of their values.
  SDX_ASSIGN(Tensor places, Tensor::allocate(DType::Int64, {width}));
  std::iota(places.mutable_values<std::int64_t>().begin(),
            places.mutable_values<std::int64_t>().end(), std::int64_t{0});
  SDX_ASSIGN(const auto ordered, make_map(labels, places));
  const auto from = ordered->values.values<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    auto map = std::make_shared<Map>();
    map->keys = ordered->keys;
    SDX_ASSIGN(map->values, Tensor::allocate(DType::Float32, ordered->keys.shape()));
    for (std::size_t i = 0; i < from.size(); ++i) {
      copy_elements(DType::Float32, map->values.mutable_data(), static_cast<std::int64_t>(i),
                    x.data(), row * width + from[i], 1);
    }
    sequence->items.emplace_back(std::shared_ptr<const Map>(std::move(map)));
  }
  context.set_output(0, Datum(std::shared_ptr<const Sequence>(std::move(sequence))));
  return {};
}

constexpr DTypeSet kKeys = set_of(DType::Float32, DType::Float64, DType::Int16, DType::Int32,
                                  DType::Int64, DType::String);

constexpr OpSchema kRows[] = {
    {"ai.onnx.ml", "CategoryMapper", 1, {"T>X", set_of(DType::Int64, DType::String)},
     "cats_int64s:is cats_strings:ss default_int64:i default_string:s", infer_mapping,
     evaluate_mapping},
    {"ai.onnx.ml", "LabelEncoder", 1, {"T>X", set_of(DType::Int64, DType::String)},
     "classes_strings:ss default_int64:i default_string:s", infer_mapping, evaluate_mapping},
    {"ai.onnx.ml", "LabelEncoder", 2, {"T>X", set_of(DType::Float32, DType::Int64, DType::String)},
     "default_float:f default_int64:i default_string:s keys_floats:fs keys_int64s:is "
     "keys_strings:ss values_floats:fs values_int64s:is values_strings:ss",
     infer_mapping, evaluate_mapping},
    {"ai.onnx.ml", "LabelEncoder", 4, {"T>X", kKeys},
     "default_float:f default_int64:i default_string:s default_tensor:t keys_floats:fs "
     "keys_int64s:is keys_strings:ss keys_tensor:t values_floats:fs values_int64s:is "
     "values_strings:ss values_tensor:t",
     infer_mapping, evaluate_mapping},
    {"ai.onnx.ml", "CastMap", 1, {"X>X"},
     "cast_to:s map_form:s max_map:i", infer_cast_map, evaluate_cast_map, kDataDependentShape},
    {"ai.onnx.ml", "DictVectorizer", 1, {"X>X"},
     "int64_vocabulary:is string_vocabulary:ss", infer_dict_vectorizer, evaluate_dict_vectorizer},
    {"ai.onnx.ml", "ZipMap", 1, {"F>X"}, "classlabels_int64s:is classlabels_strings:ss",
     infer_zip_map, evaluate_zip_map},
};

}  // namespace

std::span<const OpSchema> ml_label_schemas() { return kRows; }

}  // namespace sardonyx
