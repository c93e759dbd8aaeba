// Reading nodes. Those of the model editor tell their names, attributes and counts.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/graph_view.h"
#include "capi/lists.h"
#include "capi/model_editor.h"
#include "capi/status.h"
#include "session/load.h"

namespace sardonyx::capi {

namespace {

OrtStatus* put_text(const char* function, const OrtNode* node, std::string OrtNode::* text,
                    const char** out) {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(node, "node"));
    SDX_TRY(require(out, "the text"));
    *out = (node->*text).c_str();
    return {};
  });
}

}  // namespace

OrtStatus* Node_GetId(const OrtNode* node, size_t* node_id) noexcept {
  return guarded("Node_GetId", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    SDX_TRY(require(node_id, "node_id"));
    *node_id = node->id;
    return {};
  });
}

OrtStatus* Node_GetName(const OrtNode* node, const char** node_name) noexcept {
  return put_text("Node_GetName", node, &OrtNode::name, node_name);
}

OrtStatus* Node_GetOperatorType(const OrtNode* node, const char** operator_type) noexcept {
  return put_text("Node_GetOperatorType", node, &OrtNode::op_type, operator_type);
}

OrtStatus* Node_GetDomain(const OrtNode* node, const char** domain_name) noexcept {
  return put_text("Node_GetDomain", node, &OrtNode::domain, domain_name);
}

OrtStatus* Node_GetSinceVersion(const OrtNode* node, int* since_version) noexcept {
  return guarded("Node_GetSinceVersion", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    SDX_TRY(require(since_version, "since_version"));
    *since_version = operator_since(view->node);
    return {};
  });
}

OrtStatus* Node_GetNumInputs(const OrtNode* node, size_t* input_count) noexcept {
  return guarded("Node_GetNumInputs", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    if (!node->is_view) return put_count(editor_of(node).input_names, input_count);
    return put_count(static_cast<const ViewNode*>(node)->inputs, input_count);
  });
}

OrtStatus* Node_GetInputs(const OrtNode* node, const OrtValueInfo** inputs,
                          size_t input_count) noexcept {
  return guarded("Node_GetInputs", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    return put_list(view->inputs, inputs, input_count, "inputs");
  });
}

OrtStatus* Node_GetNumOutputs(const OrtNode* node, size_t* output_count) noexcept {
  return guarded("Node_GetNumOutputs", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    if (!node->is_view) return put_count(editor_of(node).output_names, output_count);
    return put_count(static_cast<const ViewNode*>(node)->outputs, output_count);
  });
}

OrtStatus* Node_GetOutputs(const OrtNode* node, const OrtValueInfo** outputs,
                           size_t output_count) noexcept {
  return guarded("Node_GetOutputs", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    return put_list(view->outputs, outputs, output_count, "outputs");
  });
}

OrtStatus* Node_GetNumImplicitInputs(const OrtNode* node, size_t* implicit_input_count) noexcept {
  return guarded("Node_GetNumImplicitInputs", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    return put_count(view->implicit_inputs, implicit_input_count);
  });
}

OrtStatus* Node_GetImplicitInputs(const OrtNode* node, const OrtValueInfo** implicit_inputs,
                                  size_t implicit_input_count) noexcept {
  return guarded("Node_GetImplicitInputs", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    return put_list(view->implicit_inputs, implicit_inputs, implicit_input_count,
                    "implicit_inputs");
  });
}

OrtStatus* Node_GetNumAttributes(const OrtNode* node, size_t* attribute_count) noexcept {
  return guarded("Node_GetNumAttributes", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    return put_count(node->attributes, attribute_count);
  });
}

OrtStatus* Node_GetAttributes(const OrtNode* node, const OrtOpAttr** attributes,
                              size_t attribute_count) noexcept {
  return guarded("Node_GetAttributes", [&]() -> Status {
    if (attribute_count != 0) SDX_TRY(require(attributes, "attributes"));
    SDX_TRY(require(node, "node"));
    SDX_TRY(check_room(node->attributes.size(), attribute_count, attributes, "attributes"));
    for (const OrtOpAttr& attribute : node->attributes) *attributes++ = &attribute;
    return {};
  });
}

OrtStatus* Node_GetAttributeByName(const OrtNode* node, const char* attribute_name,
                                   const OrtOpAttr** attribute) noexcept {
  return guarded("Node_GetAttributeByName", [&]() -> Status {
    SDX_TRY(require(node, "node"));
    SDX_TRY(require(attribute_name, "attribute_name"));
    SDX_TRY(require(attribute, "attribute"));
    *attribute = nullptr;
    for (const OrtOpAttr& candidate : node->attributes) {
      if (candidate.name == attribute_name) *attribute = &candidate;
    }
    return {};
  });
}

OrtStatus* Node_GetNumSubgraphs(const OrtNode* node, size_t* subgraph_count) noexcept {
  return guarded("Node_GetNumSubgraphs", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    return put_count(view->subgraphs, subgraph_count);
  });
}

OrtStatus* Node_GetSubgraphs(const OrtNode* node, const OrtGraph** subgraphs, size_t subgraph_count,
                             const char** attribute_names) noexcept {
  return guarded("Node_GetSubgraphs", [&]() -> Status {
    if (subgraph_count != 0) SDX_TRY(require(subgraphs, "subgraphs"));
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    SDX_TRY(check_room(view->subgraphs.size(), subgraph_count, subgraphs, "subgraphs"));
    for (std::size_t i = 0; i < view->subgraphs.size(); ++i) {
      subgraphs[i] = view->subgraphs[i].view.get();
      if (attribute_names != nullptr) attribute_names[i] = view->subgraphs[i].attribute.c_str();
    }
    return {};
  });
}

OrtStatus* Node_GetGraph(const OrtNode* node, const OrtGraph** graph) noexcept {
  return guarded("Node_GetGraph", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    SDX_TRY(require(graph, "graph"));
    *graph = &view->graph;
    return {};
  });
}

OrtStatus* Node_GetEpName(const OrtNode* node, const char** out) noexcept {
  return guarded("Node_GetEpName", [&]() -> Status {
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    SDX_TRY(require(out, "out"));
    *out = view->provider.c_str();
    return {};
  });
}

}  // namespace sardonyx::capi
