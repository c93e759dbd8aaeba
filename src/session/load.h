#pragma once

#include <span>

#include "base/status.h"
#include "ir/graph.h"
#include "session/session.h"

namespace sardonyx {

/// Newest opset version per domain that this build knows ("ai.onnx" by that name).
std::vector<std::pair<std::string, std::int64_t>> known_opsets();

enum class LoadStage { Read, Check, Optimize, Compile, Ready };

/// Tells who listens that a stage begins.
/// Errors   Cancelled when the listener says so.
Status report_progress(const SessionOptions& options, LoadStage stage);
/// The same within the stage "compile", when a share (0 to 1) of the weights is written.
Status report_compiling(const SessionOptions& options, double share);
/// The same for the stage "write", before the last one, when a compiled model is written.
Status report_writing(const SessionOptions& options);

/// What the model says about itself.
ModelMetadata metadata_of(const Model& model);

/// Opset version in which the operator of a node began to mean what it means in that node; 1 for
/// an operator that is not known.
int operator_since(const Node& node);
/// As type_parameter() and attributes_with_defaults() (ops/formal.h), for the C interface.
std::string_view operand_type_name(const Node& node, bool is_output, std::size_t index);
Attributes full_attributes(const Node& node);

/// Runs the common passes of a level on a graph whose types are inferred.
Status optimize_graph(Graph& graph, const SessionOptions& options, int level);

/// The steps between a model's bytes and its compilation: functions inlined, dimensions fixed,
/// types inferred, common passes run, the optimized model written when asked for.
/// Errors   InvalidArgument when the options override a dimension that has another size.
Status prepare_model(Model& model, const SessionOptions& options,
                     std::span<const DimDenotation> denotations = {});

}  // namespace sardonyx
