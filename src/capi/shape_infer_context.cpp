#include "capi/shape_infer_context.h"

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/status.h"

namespace {

/// A graph knows its symbols by number only; all that inference needs is which are equal.
std::vector<std::string> name_symbols(const sardonyx::Type& type,
                                      std::unordered_map<std::string, sardonyx::Dim>& symbols) {
  std::vector<std::string> names;
  if (!type.shape) return names;
  for (const sardonyx::Dim dim : *type.shape) {
    names.push_back(sardonyx::is_symbol(dim) ? fmt::format("s{}", sardonyx::kUnknownDim - dim)
                                             : "");
    if (sardonyx::is_symbol(dim)) symbols.emplace(names.back(), dim);
  }
  return names;
}

}  // namespace

OrtShapeInferContext::OrtShapeInferContext(const sardonyx::Graph&, const sardonyx::Node& of,
                                           std::span<const sardonyx::Type* const> types)
    : node(of), outputs(of.outputs.size()) {
  for (const sardonyx::Type* type : types) {
    inputs.push_back(type == nullptr
                         ? OrtTensorTypeAndShapeInfo{}
                         : sardonyx::capi::tensor_info(*type, name_symbols(*type, symbols)));
  }
}

sardonyx::Status OrtShapeInferContext::store(std::span<sardonyx::Type> types) const {
  using sardonyx::Code;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!outputs[i]) continue;
    const OrtTensorTypeAndShapeInfo& info = *outputs[i];
    if (info.element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
      SDX_ASSIGN(types[i].dtype, sardonyx::capi::to_dtype(info.element_type));
    }
    if (!info.has_shape) continue;
    if (!sardonyx::Shape::fits(info.dims.size())) {
      return sardonyx::failure(Code::InvalidModel, "shape inference gives output {} rank {}", i,
                               info.dims.size());
    }
    sardonyx::Shape shape;
    for (std::size_t axis = 0; axis < info.dims.size(); ++axis) {
      sardonyx::Dim dim = info.dims[axis] < 0 ? sardonyx::kUnknownDim : info.dims[axis];
      const auto symbol =
          axis < info.symbols.size() ? symbols.find(info.symbols[axis]) : symbols.end();
      if (dim == sardonyx::kUnknownDim && symbol != symbols.end()) dim = symbol->second;
      shape.push_back(dim);
    }
    types[i].shape = shape;
  }
  return {};
}

namespace sardonyx::capi {

OrtStatus* ShapeInferContext_GetInputCount(const OrtShapeInferContext* context,
                                           size_t* out) noexcept {
  return guarded("ShapeInferContext_GetInputCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    *out = context->inputs.size();
    return {};
  });
}

OrtStatus* ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext* context, size_t index,
                                               OrtTensorTypeAndShapeInfo** info) noexcept {
  return guarded("ShapeInferContext_GetInputTypeShape", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(context, "context"));
    if (index >= context->inputs.size()) {
      return failure(Code::InvalidArgument, "input {} is outside the {} there are", index,
                     context->inputs.size());
    }
    *info = const_cast<OrtTensorTypeAndShapeInfo*>(&context->inputs[index]);
    return {};
  });
}

OrtStatus* ShapeInferContext_GetAttribute(const OrtShapeInferContext* context,
                                          const char* attr_name, const OrtOpAttr** attr) noexcept {
  return guarded("ShapeInferContext_GetAttribute", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(attr_name, "attr_name"));
    const Attribute* found = context->node.attributes.find(attr_name);
    if (found == nullptr) {
      return failure(Code::InvalidArgument, "there is no attribute '{}'", attr_name);
    }
    context->attributes.push_back(std::make_unique<OrtOpAttr>(attr_name, found));
    *attr = context->attributes.back().get();
    return {};
  });
}

OrtStatus* ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext* context, size_t index,
                                                const OrtTensorTypeAndShapeInfo* info) noexcept {
  return guarded("ShapeInferContext_SetOutputTypeShape", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(info, "info"));
    // The interface hands out a const context to write into.
    auto& outputs = const_cast<OrtShapeInferContext*>(context)->outputs;
    if (index >= outputs.size()) {
      return failure(Code::InvalidArgument, "output {} is outside the {} there are", index,
                     outputs.size());
    }
    outputs[index] = *info;
    return {};
  });
}

}  // namespace sardonyx::capi
