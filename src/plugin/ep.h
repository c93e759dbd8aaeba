#pragma once

#include <memory>
#include <string>

#include "plugin/options.h"
#include "plugin/part.h"

namespace sardonyx::plugin {

/// The provider of one session.
class Ep : public OrtEp {
 public:
  explicit Ep(PartContext context);

  Status find_capability(const OrtGraph& graph, OrtEpGraphSupportInfo& info) const;
  Status compile(const OrtGraph* const* graphs, const OrtNode* const* nodes, std::size_t count,
                 OrtNodeComputeInfo** infos, OrtNode** context_nodes) const;
  /// What a compiled model says of this build and processor.
  const std::string& compatibility_info() const { return compatibility_info_; }
  const Host& host() const { return context_.host; }
  const PartContext& context() const { return context_; }

 private:
  PartContext context_;
  std::string compatibility_info_;
};

}  // namespace sardonyx::plugin
