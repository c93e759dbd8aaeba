// The model editor: parts of a model, made one by one and put together.
#include "capi/model_editor.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/lists.h"
#include "capi/status.h"

namespace sardonyx::capi {

void ReleaseValueInfo(OrtValueInfo* object) noexcept {
  if (object == nullptr || object->is_view || editor_of(object).is_owned) return;
  delete object;
}

void ReleaseNode(OrtNode* object) noexcept {
  if (object == nullptr || object->is_view || editor_of(object).is_owned) return;
  delete object;
}

void ReleaseGraph(OrtGraph* object) noexcept {
  if (object == nullptr || (!object->is_view && editor_of(object).is_owned)) return;
  delete object;
}

void ReleaseModel(OrtModel* object) noexcept { delete object; }

}  // namespace sardonyx::capi

namespace sardonyx::capi::model_editor_api {

namespace {

/// The smallest tensor whose bytes may stay with the caller: shapes and axes are read early.
constexpr std::size_t kExternalBytesMin = 128;

Status check_variant(bool is_view, const char* what) {
  if (!is_view) return {};
  return failure(Code::InvalidArgument,
                 "the {} belongs to a graph that an execution provider was given: the model editor "
                 "takes what it made itself",
                 what);
}

Result<EditorGraph*> editable(OrtGraph* graph) {
  SDX_TRY(require(graph, "graph"));
  SDX_TRY(check_variant(graph->is_view, "graph"));
  return static_cast<EditorGraph*>(graph);
}

/// The shape of a description, -1 being unknown.
Result<Type> tensor_type(const OrtTensorTypeAndShapeInfo& info, Type::Kind kind) {
  SDX_ASSIGN(const DType dtype, to_dtype(info.element_type));
  Type type = Type::tensor(dtype);
  type.kind = kind;
  if (!info.has_shape && info.dims.empty()) return type;
  if (!Shape::fits(info.dims.size())) {
    return failure(Code::InvalidArgument, "a tensor has at most {} dimensions, found {}",
                   Shape::kMaxRank, info.dims.size());
  }
  Shape shape;
  for (const int64_t dim : info.dims) {
    if (dim < -1) {
      return failure(Code::InvalidArgument, "dimension {} is {}, expected -1 or more", shape.rank(),
                     dim);
    }
    shape.push_back(dim == -1 ? kUnknownDim : dim);
  }
  type.shape = shape;
  return type;
}

OrtStatus* create_tensor_info(const char* function, const OrtTensorTypeAndShapeInfo* info,
                              Type::Kind kind, OrtTypeInfo** out) {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(info, "tensor_info"));
    SDX_TRY(require(out, "type_info"));
    SDX_ASSIGN(const Type type, tensor_type(*info, kind));
    *out = new_type_info(type, info->symbols);
    return {};
  });
}

OrtStatus* create_info_around(const char* function, const OrtTypeInfo* inner, OrtTypeInfo** out,
                              Type (*around)(Type)) {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(inner, "the contained type"));
    SDX_TRY(require(out, "type_info"));
    *out = new_type_info(around(inner->type), {});
    return {};
  });
}

}  // namespace

OrtStatus* CreateTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor_info,
                                OrtTypeInfo** type_info) noexcept {
  return create_tensor_info("CreateTensorTypeInfo", tensor_info, Type::Kind::Tensor, type_info);
}

OrtStatus* CreateSparseTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor_info,
                                      OrtTypeInfo** type_info) noexcept {
  return create_tensor_info("CreateSparseTensorTypeInfo", tensor_info, Type::Kind::SparseTensor,
                            type_info);
}

OrtStatus* CreateMapTypeInfo(ONNXTensorElementDataType map_key_type,
                             const OrtTypeInfo* map_value_type, OrtTypeInfo** type_info) noexcept {
  return guarded("CreateMapTypeInfo", [&]() -> Status {
    SDX_TRY(require(map_value_type, "map_value_type"));
    SDX_TRY(require(type_info, "type_info"));
    SDX_ASSIGN(const DType key, to_dtype(map_key_type));
    *type_info = new_type_info(Type::map(key, map_value_type->type), {});
    return {};
  });
}

OrtStatus* CreateSequenceTypeInfo(const OrtTypeInfo* sequence_type,
                                  OrtTypeInfo** type_info) noexcept {
  return create_info_around("CreateSequenceTypeInfo", sequence_type, type_info, &Type::sequence);
}

OrtStatus* CreateOptionalTypeInfo(const OrtTypeInfo* contained_type,
                                  OrtTypeInfo** type_info) noexcept {
  return create_info_around("CreateOptionalTypeInfo", contained_type, type_info, &Type::optional);
}

OrtStatus* CreateValueInfo(const char* name, const OrtTypeInfo* type_info,
                           OrtValueInfo** value_info) noexcept {
  return guarded("CreateValueInfo", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    if (*name == '\0') return failure(Code::InvalidArgument, "a value needs a name, found \"\"");
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(value_info, "value_info"));
    std::unique_ptr<OrtTypeInfo> copy(new_type_info(type_info->type, type_info->tensor.symbols));
    copy->denotation = type_info->denotation;
    *value_info = new EditorValueInfo(name, copy.release());
    return {};
  });
}

namespace {

Status copy_names(const char* const* names, size_t count, const char* what,
                  std::vector<std::string>& target) {
  if (count != 0) SDX_TRY(require(names, what));
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) {
      return failure(Code::InvalidArgument, "'{}' {} is null; \"\" leaves one out", what, i);
    }
    target.emplace_back(names[i]);
  }
  return {};
}

Status check_attributes(OrtOpAttr* const* attributes, size_t count) {
  if (count != 0) SDX_TRY(require(attributes, "attributes"));
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < count; ++i) {
    if (attributes[i] == nullptr) {
      return failure(Code::InvalidArgument, "attribute {} is null", i);
    }
    if (!names.insert(attributes[i]->name).second) {
      return failure(Code::InvalidArgument, "attribute '{}' is given twice", attributes[i]->name);
    }
  }
  return {};
}

}  // namespace

OrtStatus* CreateNode(const char* operator_name, const char* domain_name, const char* node_name,
                      const char* const* input_names, size_t input_names_count,
                      const char* const* output_names, size_t output_count, OrtOpAttr** attributes,
                      size_t attribs_count, OrtNode** node) noexcept {
  return guarded("CreateNode", [&]() -> Status {
    SDX_TRY(require(operator_name, "operator_name"));
    SDX_TRY(require(domain_name, "domain_name"));
    SDX_TRY(require(node_name, "node_name"));
    SDX_TRY(require(node, "node"));
    if (*operator_name == '\0') {
      return failure(Code::InvalidArgument, "node '{}' names no operator", node_name);
    }
    SDX_TRY(check_attributes(attributes, attribs_count));
    const std::string domain = domain_name;
    auto made =
        std::make_unique<EditorNode>(node_name, operator_name, domain == "ai.onnx" ? "" : domain);
    SDX_TRY(copy_names(input_names, input_names_count, "input_names", made->input_names));
    SDX_TRY(copy_names(output_names, output_count, "output_names", made->output_names));
    made->attributes.reserve(attribs_count);
    for (size_t i = 0; i < attribs_count; ++i) {
      made->attributes.emplace_back(attributes[i]->name, Attribute(attributes[i]->value()));
      ReleaseOpAttr(attributes[i]);
      attributes[i] = nullptr;
    }
    *node = made.release();
    return {};
  });
}

OrtStatus* CreateGraph(OrtGraph** graph) noexcept {
  return guarded("CreateGraph", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    *graph = new EditorGraph;
    return {};
  });
}

namespace {

/// Takes all of the values, or none.
Status take_values(OrtValueInfo** values, size_t count, const char* what,
                   std::vector<std::unique_ptr<EditorValueInfo>>& target) {
  if (count != 0) SDX_TRY(require(values, what));
  std::unordered_set<const OrtValueInfo*> seen;
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) return failure(Code::InvalidArgument, "'{}' {} is null", what, i);
    SDX_TRY(check_variant(values[i]->is_view, "value"));
    if (editor_of(values[i]).is_owned || !seen.insert(values[i]).second) {
      return failure(Code::InvalidArgument, "'{}' {} ('{}') was added before: add it once", what, i,
                     values[i]->name);
    }
    if (!names.insert(values[i]->name).second) {
      return failure(Code::InvalidArgument, "'{}' holds the name '{}' twice", what,
                     values[i]->name);
    }
  }
  std::vector<std::unique_ptr<EditorValueInfo>> taken;
  taken.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto* value = static_cast<EditorValueInfo*>(values[i]);
    value->is_owned = true;
    taken.emplace_back(value);
    values[i] = nullptr;
  }
  target = std::move(taken);
  return {};
}

}  // namespace

OrtStatus* SetGraphInputs(OrtGraph* graph, OrtValueInfo** inputs, size_t inputs_count) noexcept {
  return guarded("SetGraphInputs", [&]() -> Status {
    SDX_ASSIGN(EditorGraph * target, editable(graph));
    SDX_TRY(take_values(inputs, inputs_count, "inputs", target->inputs));
    target->has_inputs = true;
    return {};
  });
}

OrtStatus* SetGraphOutputs(OrtGraph* graph, OrtValueInfo** outputs, size_t outputs_count) noexcept {
  return guarded("SetGraphOutputs", [&]() -> Status {
    SDX_ASSIGN(EditorGraph * target, editable(graph));
    SDX_TRY(take_values(outputs, outputs_count, "outputs", target->outputs));
    target->has_outputs = true;
    return {};
  });
}

namespace {

Status check_initializer(const EditorGraph& graph, const char* name, const OrtValue& value,
                         bool data_is_external) {
  const Tensor* tensor = value.datum.tensor();
  if (tensor == nullptr) {
    return failure(Code::InvalidArgument, "initializer '{}' is {}, expected a tensor", name,
                   value.datum.has_value() ? value.datum.type().to_string() : "empty");
  }
  if (value.memory.device_type != OrtMemoryInfoDeviceType_CPU) {
    return failure(Code::InvalidArgument,
                   "initializer '{}' lies in the memory of '{}', expected the processor's", name,
                   value.memory.name);
  }
  for (const auto& [taken, held] : graph.initializers) {
    if (taken == name) {
      return failure(Code::InvalidArgument, "the graph has an initializer '{}' already", name);
    }
    if (held.get() == &value) {
      return failure(Code::InvalidArgument, "the tensor was added before, as '{}': add it once",
                     taken);
    }
  }
  if (data_is_external && tensor->byte_size() < kExternalBytesMin) {
    return failure(Code::InvalidArgument,
                   "initializer '{}' has {} bytes; data that stays with the caller "
                   "(data_is_external) must have {} or more",
                   name, tensor->byte_size(), kExternalBytesMin);
  }
  return {};
}

}  // namespace

OrtStatus* AddInitializerToGraph(OrtGraph* graph, const char* name, OrtValue* tensor,
                                 bool data_is_external) noexcept {
  return guarded("AddInitializerToGraph", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(tensor, "tensor"));
    SDX_ASSIGN(EditorGraph * target, editable(graph));
    if (*name == '\0') {
      return failure(Code::InvalidArgument, "an initializer needs a name, found \"\"");
    }
    SDX_TRY(check_initializer(*target, name, *tensor, data_is_external));
    target->initializers.reserve(target->initializers.size() + 1);
    std::string copied_name = name;
    // Memory that the value does not keep alive may be gone when the model is used.
    if (!data_is_external && tensor->datum.tensor()->owner() == nullptr) {
      SDX_ASSIGN(Tensor copy, clone(*tensor->datum.tensor()));
      tensor->datum = Datum(std::move(copy));
    }
    target->initializers.emplace_back(std::move(copied_name), tensor);
    return {};
  });
}

OrtStatus* AddNodeToGraph(OrtGraph* graph, OrtNode* node) noexcept {
  return guarded("AddNodeToGraph", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    SDX_ASSIGN(EditorGraph * target, editable(graph));
    SDX_TRY(check_variant(node->is_view, "node"));
    auto* added = static_cast<EditorNode*>(node);
    if (added->is_owned) {
      return failure(Code::InvalidArgument, "node '{}' ({}) was added before: add it once",
                     node->name, node->op_type);
    }
    target->nodes.reserve(target->nodes.size() + 1);
    added->id = target->nodes.size();
    added->is_owned = true;
    target->nodes.emplace_back(added);
    return {};
  });
}

OrtStatus* CreateModel(const char* const* domain_names, const int* opset_versions,
                       size_t opset_entries_count, OrtModel** model) noexcept {
  return guarded("CreateModel", [&]() -> Status {
    SDX_TRY(require(model, "model"));
    if (opset_entries_count != 0) {
      SDX_TRY(require(domain_names, "domain_names"));
      SDX_TRY(require(opset_versions, "opset_versions"));
    }
    auto made = std::make_unique<OrtModel>();
    for (size_t i = 0; i < opset_entries_count; ++i) {
      SDX_TRY(require(domain_names[i], "a domain name"));
      const std::string domain = domain_names[i];
      made->opsets.emplace_back(domain == "ai.onnx" ? "" : domain, opset_versions[i]);
    }
    *model = made.release();
    return {};
  });
}

OrtStatus* AddGraphToModel(OrtModel* model, OrtGraph* graph) noexcept {
  return guarded("AddGraphToModel", [&]() -> Status {
    SDX_TRY(require(model, "model"));
    SDX_ASSIGN(EditorGraph * added, editable(graph));
    if (model->graph != nullptr) {
      return failure(Code::InvalidArgument, "the model has a graph already: it can have one");
    }
    if (added->is_owned) {
      return failure(Code::InvalidArgument, "the graph was added to a model before: add it once");
    }
    added->is_owned = true;
    model->graph.reset(added);
    return {};
  });
}

}  // namespace sardonyx::capi::model_editor_api
