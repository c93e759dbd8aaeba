#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/devices.h"
#include "ep/provider.h"
#include "plugin_host/library.h"

namespace sardonyx::plugin_host {

/// A plugin's OrtEp. Shares the library: it is closed after the provider is released.
class PluginProvider final : public Provider {
 public:
  /// Creates the plugin's provider for a session on the devices, which are of one factory. It sees
  /// a copy of the session's options.
  /// Errors   InvalidArgument for devices whose library was unregistered; those of CreateEp.
  static Result<std::shared_ptr<const Provider>> create(
      const std::vector<const OrtEpDevice*>& devices, const OrtSessionOptions& options);
  ~PluginProvider() override;

  std::string_view name() const override { return name_; }
  bool can_run(const Graph& graph, NodeId node, std::string* why_not) const override;
  Result<std::vector<NodeGroup>> offer(const Model& model,
                                       std::span<const NodeId> free) const override;
  Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                            const CompileOptions& options) const override;
  Status begin_run(const void* caller_options) const override;
  Status end_run(const void* caller_options) const override;
  Status change_options(
      std::span<const std::pair<std::string, std::string>> entries) const override;

  OrtEp& ep() const { return *ep_; }
  const std::string& library() const { return library_->name(); }

 private:
  /// What GetCapability said about a group that becomes one part.
  struct Group {
    std::string name;
    bool drops_constants = false;
  };

  explicit PluginProvider(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  Status start(const std::vector<const OrtEpDevice*>& devices);
  /// The nodes that may be offered to the plugin: not those that it wants in another layout.
  Result<std::vector<NodeId>> wanted(const Graph& graph, std::span<const NodeId> free) const;

  std::shared_ptr<const Library> library_;
  OrtEpFactory* factory_ = nullptr;
  std::unique_ptr<OrtSessionOptions> options_;
  OrtEp* ep_ = nullptr;
  std::string name_;
  bool is_concurrent_ = true;
  /// Held during a run of a provider that takes only one at a time.
  mutable std::mutex run_mutex_;
  mutable std::once_flag initialized_;
  /// By the first output of the group; written by offer(), read by compile().
  mutable std::map<std::string, Group> groups_;
};

}  // namespace sardonyx::plugin_host
