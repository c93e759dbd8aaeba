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
Result<std::shared_ptr<KernelNode>> describe_kernel_node(
    const Graph& graph, const Node& node, int since_version,
    std::shared_ptr<const KernelSession> session);

/// What kernels of a plugin's provider reach while they are made, and as long as they live.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  virtual const OrtEp* ep() const = 0;
  /// A new handle of the provider's allocator.
  virtual Result<OrtAllocator*> allocator(OrtMemType mem_type) = 0;
};

/// What code of a plugin's provider reaches beside its operands while it runs.
class KernelHost {
 public:
  virtual ~KernelHost() = default;
  virtual Result<Tensor> make_output(std::size_t index, DType dtype, const Shape& shape) = 0;
  /// A new handle of the provider's allocator for that memory.
  virtual Result<OrtAllocator*> allocator(const OrtMemoryInfo& memory) = 0;
  /// Memory until the call ends.
  virtual Result<void*> scratch(const OrtMemoryInfo& memory, std::size_t bytes) = 0;
  /// The stream of the run, or null.
  virtual OrtSyncStream* stream() = 0;
};

}  // namespace sardonyx::capi

struct OrtKernelInfo {
  std::shared_ptr<const sardonyx::capi::KernelNode> node;
  /// Null for kernels of custom operators. Outlives all copies of the info.
  sardonyx::capi::KernelMaker* maker = nullptr;
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
  /// Null for kernels of custom operators, which run on the processor.
  sardonyx::capi::KernelHost* host = nullptr;
};
