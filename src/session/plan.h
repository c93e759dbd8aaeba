#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "placement/lifetimes.h"
#include "placement/placement.h"
#include "session/session.h"

namespace sardonyx {

/// A device that may not be here.
struct ImaginedDevice {
  /// "CUDAExecutionProvider"; devices of one name are instances of one provider.
  std::string provider;
  DeviceDescription description;
  /// Operators that it runs ("MatMul", "com.microsoft:Gelu"); empty: all of the standard ones.
  std::vector<std::string> operators;
};

/// A node of the model that runs nowhere: its result is known, or nobody needs it.
struct RemovedNode {
  std::string name;
  std::string domain;
  std::string op_type;
};

/// Where a session would run a model, and why.
struct Plan {
  Placement placement;
  PlacementDetails details;
  /// Nodes that are gone before anything is placed.
  std::vector<RemovedNode> removed;
};

/// Places a model as a session with these options would, and compiles nothing. `imagined` stand
/// before the session's own devices, in their order.
/// Errors   as those of loading, up to compiling.
/// Cost     that of reading the model and of folding small constants; weights are not touched.
Result<Plan> plan_model(std::shared_ptr<Environment> environment, const std::string& path,
                        SessionOptions options, std::vector<ImaginedDevice> imagined);

}  // namespace sardonyx
