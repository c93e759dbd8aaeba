#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capi/devices.h"
#include "ep/device.h"
#include "ep/profiled.h"
#include "plugin_host/context_node.h"
#include "plugin_host/device_memory.h"
#include "plugin_host/ep_handle.h"
#include "plugin_host/library.h"
#include "plugin_host/profiling.h"
#include "plugin_host/streams.h"
#include "plugin_host/weightless.h"

struct OrtEpGraphSupportInfo;

namespace sardonyx::plugin_host {

/// A plugin's OrtEp. Shares the library: it is closed after the provider is released.
class PluginProvider final : public DeviceProvider, public ProfiledProvider {
 public:
  /// Creates the plugin's provider for a session on the devices, which are of one factory. It sees
  /// a copy of the session's options. `instance` tells providers of one session apart that the
  /// devices of one choice were split between.
  /// Errors   InvalidArgument for devices whose library was unregistered; those of CreateEp; those
  ///          of weightless.h when `request` asks for more than the provider can do.
  static Result<std::shared_ptr<const Provider>> create(
      const std::vector<const OrtEpDevice*>& devices, const OrtSessionOptions& options,
      const WeightlessRequest& request, std::size_t instance = 0);

  std::string_view name() const override { return name_; }
  std::vector<DeviceDescription> devices() const override;
  bool can_run(const Graph& graph, NodeId node, std::string* why_not) const override;
  Result<std::vector<NodeGroup>> offer(const Model& model,
                                       std::span<const NodeId> free) const override;
  Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                            const CompileOptions& options) const override;
  Result<std::vector<std::unique_ptr<Compiled>>> compile_all(
      std::vector<Graph> graphs, const CompileOptions& options) const override;
  Result<std::string> compatibility_info(const Model& model) const override;
  Result<Compatibility> check_compatibility(const std::string& info) const override;
  Status begin_run(const void* caller_options) const override;
  Status end_run(const void* caller_options) const override;
  Status change_options(
      std::span<const std::pair<std::string, std::string>> entries) const override;

  bool can_copy(const Place* from, const Place* to) const override;
  Status copy(const Tensor& from, Tensor& to) const override;
  Result<Tensor> allocate(const Place& place, DType dtype, const Shape& shape) const override;
  bool has_place(const Place& place) const override;
  Status settle(const DeviceProvider* consumer) const override;
  Result<bool> replay(const void* caller_options) const override;
  bool wants_another_run(const void* caller_options) const override;
  Result<std::vector<NodeId>> wants_channels_last(const Model& model,
                                                  std::span<const NodeId> free) const override;

  void begin_profiling(Profiler::Clock::time_point start) const override;
  std::vector<ProviderEvent> end_profiling() const override;

  OrtEp& ep() const { return *handle_->ep; }
  /// Of the plugin; null when the session is not profiled, or the plugin has none.
  PluginProfiler* profiler() const { return profiler_.get(); }
  const std::string& library() const { return handle_->library->name(); }
  /// What the session wants of compiled models, and what the provider was granted.
  const ContextEntries& context() const { return context_; }
  const WeightlessGrant& grant() const { return grant_; }
  /// Checks that the data which a node names are written, or will be.
  Status check_written(const ContextNode& node, const Model& model) const;
  /// Its kernels; null for a provider that compiles.
  const OrtKernelRegistry* kernels() const { return kernels_; }
  /// Where its parts have their tensors unless a kernel says otherwise.
  const Place* place() const { return place_; }
  /// As allocate(), or the processor's memory for a null place; used by that stream, or by the
  /// calling thread's run.
  Result<Tensor> allocate_on(OrtSyncStream* stream, const Place* place, DType dtype,
                             const Shape& shape) const;
  Result<Tensor> allocate_at(const Place* place, DType dtype, const Shape& shape) const {
    return allocate_on(current_stream(), place, dtype, shape);
  }
  /// The allocator of one of its memories, made at the first request.
  Result<std::shared_ptr<DeviceMemory>> memory(const Place& place) const;
  /// The allocator for constants.
  Result<std::shared_ptr<DeviceMemory>> constant_memory() const;
  /// A constant in the provider's memory, which sessions share where they can; or the tensor
  /// itself, aligned, for a null place.
  Result<Tensor> constant_at(const Place* place, const Tensor& constant) const;
  /// Lets go of a run that was captured under that number.
  Status release_captured(int id) const;
  /// The stream of the run that the calling thread does, or null.
  OrtSyncStream* current_stream() const;

 private:
  /// What GetCapability said about a group that becomes one part.
  struct Group {
    std::string name;
    bool drops_constants = false;
    bool is_fused = true;
    /// Its place among the groups that the plugin has offered.
    std::size_t number = 0;
  };

  /// The stream of a run, by the thread that does the run.
  struct RunStream {
    OrtSyncStream* stream = nullptr;
    /// Null when the program gave the stream.
    std::unique_ptr<OrtSyncStream> own;
  };

  bool captures(int id) const;
  bool is_captured(int id) const;
  Status take_stream(const OrtRunOptions& options) const;
  Status give_stream() const;

  explicit PluginProvider(std::shared_ptr<EpHandle> handle) : handle_(std::move(handle)) {}
  Status start(const std::vector<const OrtEpDevice*>& devices, const WeightlessRequest& request);
  /// Refuses functions of the program for data of compiled models that the provider would not call
  /// when it compiles, or loads what is compiled.
  Status check_data_functions(bool loads) const;
  /// Compiles a model of one node as the last of a group whose program named no last one.
  static Status end_group(const std::vector<const OrtEpDevice*>& devices,
                          OrtSessionOptions& options);
  const Group* group_of(const Graph& part) const;
  Result<std::unique_ptr<Compiled>> compile_kernels(Graph graph,
                                                    const CompileOptions& options) const;
  Status find_memories(const std::vector<const OrtEpDevice*>& devices);
  /// The nodes that may be offered to the plugin: not those that it wants in another layout.
  Result<std::vector<NodeId>> wanted(const Graph& graph, std::span<const NodeId> free) const;
  /// What the plugin says to the nodes, by GetCapability.
  Status ask(const Model& model, std::span<const NodeId> nodes,
             const std::function<void(const OrtEpGraphSupportInfo&)>& take) const;
  Result<bool> wants_layout(const Node& node) const;

  std::shared_ptr<EpHandle> handle_;
  std::unique_ptr<OrtSessionOptions> options_;
  std::string name_;
  std::size_t instance_ = 0;
  ContextEntries context_;
  PromisedFiles::Time made_at_ = PromisedFiles::Time::clock::now();
  WeightlessGrant grant_;
  /// As the plugin knows them.
  std::vector<const OrtHardwareDevice*> hardware_;
  std::vector<const OrtEpDevice*> devices_;
  const OrtKernelRegistry* kernels_ = nullptr;
  const Place* place_ = nullptr;
  /// What the memories of its devices are.
  std::vector<OrtMemoryInfo> infos_;
  std::optional<OrtMemoryInfo> constant_info_;
  mutable std::mutex memories_mutex_;
  mutable std::map<const Place*, std::shared_ptr<DeviceMemory>> memories_;
  mutable std::shared_ptr<DeviceMemory> constant_memory_;
  bool wants_channels_last_ = false;
  bool has_streams_ = false;
  mutable std::mutex streams_mutex_;
  mutable std::vector<std::unique_ptr<OrtSyncStream>> idle_streams_;
  mutable std::map<std::thread::id, RunStream> run_streams_;
  /// Held for the time of a call that a provider with one run at a time must not get twice.
  std::unique_lock<std::mutex> lock_runs() const;

  bool is_concurrent_ = true;
  /// Held during a run of a provider that takes only one at a time.
  mutable std::mutex run_mutex_;
  mutable std::once_flag initialized_;
  /// By the first output of the group; written by offer(), read by compile().
  mutable std::map<std::string, Group> groups_;
  /// Made before the first run.
  mutable std::unique_ptr<PluginProfiler> profiler_;
};

}  // namespace sardonyx::plugin_host
