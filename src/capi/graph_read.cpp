// Reading graphs: what GraphView holds, as the C interface asks for it.
#include <algorithm>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/graph_view.h"
#include "capi/lists.h"
#include "capi/model_editor.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* Graph_GetName(const OrtGraph* graph, const char** graph_name) noexcept {
  return guarded("Graph_GetName", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    SDX_TRY(require(graph_name, "graph_name"));
    *graph_name = "";
    if (graph->is_view) *graph_name = static_cast<const GraphView*>(graph)->graph().name.c_str();
    return {};
  });
}

OrtStatus* Graph_GetModelPath(const OrtGraph* graph, const ORTCHAR_T** model_path) noexcept {
  return guarded("Graph_GetModelPath", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    SDX_TRY(require(model_path, "model_path"));
    *model_path = view->facts().path.c_str();
    return {};
  });
}

OrtStatus* Graph_GetOnnxIRVersion(const OrtGraph* graph, int64_t* onnx_ir_version) noexcept {
  return guarded("Graph_GetOnnxIRVersion", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    SDX_TRY(require(onnx_ir_version, "onnx_ir_version"));
    *onnx_ir_version = view->facts().ir_version;
    return {};
  });
}

OrtStatus* Graph_GetNumOperatorSets(const OrtGraph* graph, size_t* operator_set_count) noexcept {
  return guarded("Graph_GetNumOperatorSets", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    return put_count(view->facts().opset_imports, operator_set_count);
  });
}

OrtStatus* Graph_GetOperatorSets(const OrtGraph* graph, const char** domains,
                                 int64_t* opset_versions, size_t operator_set_count) noexcept {
  return guarded("Graph_GetOperatorSets", [&]() -> Status {
    if (operator_set_count != 0) SDX_TRY(require(domains, "domains"));
    if (operator_set_count != 0) SDX_TRY(require(opset_versions, "opset_versions"));
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    const auto& imports = view->facts().opset_imports;
    SDX_TRY(check_room(imports.size(), operator_set_count, domains, "domains"));
    SDX_TRY(check_room(imports.size(), operator_set_count, opset_versions, "opset_versions"));
    for (std::size_t i = 0; i < imports.size(); ++i) {
      domains[i] = imports[i].first.c_str();
      opset_versions[i] = imports[i].second;
    }
    return {};
  });
}

OrtStatus* Graph_GetNumInputs(const OrtGraph* graph, size_t* input_count) noexcept {
  return guarded("Graph_GetNumInputs", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    if (!graph->is_view) return put_count(editor_of(graph).inputs, input_count);
    return put_count(static_cast<const GraphView*>(graph)->inputs(), input_count);
  });
}

OrtStatus* Graph_GetInputs(const OrtGraph* graph, const OrtValueInfo** inputs,
                           size_t input_count) noexcept {
  return guarded("Graph_GetInputs", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    return put_list(view->inputs(), inputs, input_count, "inputs");
  });
}

OrtStatus* Graph_GetNumOutputs(const OrtGraph* graph, size_t* output_count) noexcept {
  return guarded("Graph_GetNumOutputs", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    if (!graph->is_view) return put_count(editor_of(graph).outputs, output_count);
    return put_count(static_cast<const GraphView*>(graph)->outputs(), output_count);
  });
}

OrtStatus* Graph_GetOutputs(const OrtGraph* graph, const OrtValueInfo** outputs,
                            size_t output_count) noexcept {
  return guarded("Graph_GetOutputs", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    return put_list(view->outputs(), outputs, output_count, "outputs");
  });
}

OrtStatus* Graph_GetNumInitializers(const OrtGraph* graph, size_t* initializer_count) noexcept {
  return guarded("Graph_GetNumInitializers", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    if (!graph->is_view) return put_count(editor_of(graph).initializers, initializer_count);
    return put_count(static_cast<const GraphView*>(graph)->initializers(), initializer_count);
  });
}

OrtStatus* Graph_GetInitializers(const OrtGraph* graph, const OrtValueInfo** initializers,
                                 size_t initializer_count) noexcept {
  return guarded("Graph_GetInitializers", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    return put_list(view->initializers(), initializers, initializer_count, "initializers");
  });
}

OrtStatus* Graph_GetNumNodes(const OrtGraph* graph, size_t* node_count) noexcept {
  return guarded("Graph_GetNumNodes", [&]() -> Status {
    SDX_TRY(require(graph, "graph"));
    if (!graph->is_view) return put_count(editor_of(graph).nodes, node_count);
    return put_count(static_cast<const GraphView*>(graph)->nodes(), node_count);
  });
}

OrtStatus* Graph_GetNodes(const OrtGraph* graph, const OrtNode** nodes,
                          size_t node_count) noexcept {
  return guarded("Graph_GetNodes", [&]() -> Status {
    if (node_count != 0) SDX_TRY(require(nodes, "nodes"));
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    SDX_TRY(check_room(view->nodes().size(), node_count, nodes, "nodes"));
    for (const ViewNode& node : view->nodes()) *nodes++ = &node;
    return {};
  });
}

OrtStatus* Graph_GetParentNode(const OrtGraph* graph, const OrtNode** node) noexcept {
  return guarded("Graph_GetParentNode", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    SDX_TRY(require(node, "node"));
    *node = view->parent_node();
    return {};
  });
}

OrtStatus* Graph_GetGraphView(const OrtGraph* src_graph, const OrtNode** nodes, size_t node_count,
                              OrtGraph** dst_graph) noexcept {
  return guarded("Graph_GetGraphView", [&]() -> Status {
    SDX_ASSIGN(const GraphView* source, view_of(src_graph));
    if (node_count != 0) SDX_TRY(require(nodes, "nodes"));
    SDX_TRY(require(dst_graph, "dst_graph"));
    std::vector<NodeId> ids;
    for (std::size_t i = 0; i < node_count; ++i) {
      SDX_ASSIGN(const ViewNode* node, view_of(nodes[i]));
      const auto id = static_cast<NodeId>(node->id);
      if (&node->graph.graph() != &source->graph() || source->find_node(id) == nullptr) {
        return failure(Code::InvalidArgument, "node {} ('{}', {}) is not of the graph", i,
                       node->name, node->op_type);
      }
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    const GraphPart part = part_of(source->graph(), ids, false);
    SDX_ASSIGN(auto view,
               GraphView::of_part(source->graph(), source->shared_facts(), part, source->outer()));
    *dst_graph = view.release();
    return {};
  });
}

OrtStatus* Graph_GetModelMetadata(const OrtGraph* graph, OrtModelMetadata** out) noexcept {
  return guarded("Graph_GetModelMetadata", [&]() -> Status {
    SDX_ASSIGN(const GraphView* view, view_of(graph));
    SDX_TRY(require(out, "out"));
    *out = new OrtModelMetadata{view->facts().metadata};
    return {};
  });
}

}  // namespace sardonyx::capi
