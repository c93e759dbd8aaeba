#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "session/plan.h"
#include "session/session.h"

namespace sardonyx {

/// Reports as JSON text. Bytes that are not UTF-8 are replaced; shapes are lists of sizes, names of
/// symbols, and null where nothing is known, or null when not even the rank is.

/// "0.1.0".
const char* library_version();

/// Version, compiler, instruction sets in use and supported here, newest opset per domain.
std::string describe_build();

/// The configuration entries that this build knows: key, scope, type, default, what it does.
std::string describe_options();

/// What a model says about itself: versions, metadata, inputs and outputs, operators with their
/// counts (subgraphs included, bodies of functions apart), initializers and tensors of Constant
/// nodes with the largest ones.
/// Cost     near-linear in nodes and initializers; weights are not touched.
std::string describe_model(const Model& model);

/// The nodes that really run, each with its device and why it is there, and memory held.
std::string describe_session(const Session& session);

/// Who runs which nodes, and why: devices, layers, nodes, copies between devices, rules, warnings,
/// memory over time, and the option that asks for just that; docs/explain.md describes the fields.
/// Cost     near-linear in nodes.
std::string describe_placement(const Placement& placement);
/// The same of a plan, with the nodes that run nowhere.
std::string describe_plan(const Plan& plan);
/// Patterns for placement rules that the names of a model allow.
std::string describe_suggestions(const Model& model);

/// One HTML file that shows what describe_plan() or describe_placement() wrote, and needs no other.
/// Errors   InvalidArgument for a text that is no such plan.
Result<std::string> plan_to_html(std::string_view plan);

/// Reads a list of devices that may not be here: provider, type, vendor, vendor_id, ordinal,
/// memory_bytes, operators; all but the type may be left out.
/// Errors   InvalidArgument, saying what was expected.
Result<std::vector<ImaginedDevice>> read_devices(std::string_view json);

/// What compiled models hold and whether this process can use them: of a model, a container of
/// compiled models, or a folder. Nodes of compiled parts, the containers' graphs, their sources,
/// blobs and who shares them; "verdict" ("usable", "unusable", "not compiled") and "problems", each
/// with its kind, file and message. What is wrong is no error but reported.
/// Cost     microseconds beside reading the model, or with `checks_all` a pass over all files.
/// Errors   those of reading a model.
Result<std::string> describe_context(const std::string& path, bool checks_all);

/// Drops graphs that no compiled model of the folder names from the folder's containers, and the
/// blobs that only they used; `only_looks`: says what would be dropped.
/// Errors   Unsupported when a model cannot be read: nothing is changed then.
Result<std::string> collect_contexts(const std::string& folder, bool only_looks);

/// Memory of this process as the system counts it.
/// Errors   Unsupported where the system does not tell.
Result<std::string> describe_memory();

}  // namespace sardonyx
