#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capi/handles.h"
#include "ep/run_state.h"
#include "ir/graph.h"

/// What code outside the library sees of one node, when its kernel is made and when it runs.

/// Where that code writes its messages: the library's log.
struct OrtLogger {
  std::string id;
};

namespace sardonyx::capi {

const OrtLogger& default_logger();

/// What kernels may ask about the session that they are made for.
struct KernelSession {
  std::shared_ptr<Environment> environment;
  std::unordered_map<std::string, std::string> entries;
};

/// A copy of everything about a node, so that handles may outlive the graph.
struct KernelNode {
  struct Operand {
    std::string name;
    bool is_there = false;
    /// Somebody uses the value (outputs only).
    bool is_used = false;
    Type type;
    std::vector<std::string> symbols;
    std::unique_ptr<OrtValue> constant;
  };
  std::string name;
  std::string domain;
  std::string op_type;
  int since_version = 1;
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::shared_ptr<const KernelSession> session;
};

/// Errors   OutOfMemory for constants that have to be copied.
Result<std::shared_ptr<const KernelNode>> describe_kernel_node(
    const Graph& graph, const Node& node, int since_version,
    std::shared_ptr<const KernelSession> session);

}  // namespace sardonyx::capi

struct OrtKernelInfo {
  std::shared_ptr<const sardonyx::capi::KernelNode> node;
};

/// One run of a kernel.
struct OrtKernelContext {
  struct Output {
    OrtValue value;
    bool is_there = false;
    bool is_made = false;
    /// Undefined: whatever the kernel makes of it is refused.
    sardonyx::DType dtype = sardonyx::DType::Undefined;
  };
  /// Without value where an input is left out.
  std::vector<OrtValue> inputs;
  std::vector<Output> outputs;
  sardonyx::RunState* state = nullptr;
};
