#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "capi/handles.h"
#include "plugin_host/ep_handle.h"

/// A queue of work of a device, made by its plugin.
struct OrtSyncStream {
  OrtSyncStream(std::shared_ptr<const sardonyx::plugin_host::Library> the_library,
                const OrtMemoryInfo& the_memory);
  ~OrtSyncStream();
  OrtSyncStream(const OrtSyncStream&) = delete;
  OrtSyncStream& operator=(const OrtSyncStream&) = delete;

  /// Waits, in another stream or (null) on the calling thread, for all that was queued so far. The
  /// stream of another library knows nothing of this one: the calling thread waits in its place.
  /// Errors   those of the plugin.
  sardonyx::Status wait_in(OrtSyncStream* consumer);
  sardonyx::Status flush();
  sardonyx::Status end_run();

  std::shared_ptr<const sardonyx::plugin_host::Library> library;
  /// Set for a stream of a session's provider, which it keeps alive.
  std::shared_ptr<const sardonyx::plugin_host::EpHandle> ep;
  /// A copy: also the memory device of the stream.
  OrtMemoryInfo memory;
  OrtSyncStreamImpl* impl = nullptr;
  /// Tells it from all others of the process, also from those that are gone; never 0.
  const std::uint64_t id;
  /// Grows with every point that somebody waits for.
  std::atomic<std::uint64_t> sync_id{0};
  mutable std::mutex mutex;
  /// How far it waited for other streams.
  std::map<const OrtSyncStream*, std::uint64_t> waits;
};

namespace sardonyx::plugin_host {

/// A stream on the device of that memory: of the provider when it is given and makes streams, else
/// of its factory.
/// Errors   Unsupported for a plugin without streams; those of the plugin.
Result<std::unique_ptr<OrtSyncStream>> make_stream(std::shared_ptr<const Library> library,
                                                   OrtEpFactory& factory,
                                                   std::shared_ptr<const EpHandle> ep,
                                                   const OrtMemoryInfo& memory,
                                                   const OrtKeyValuePairs* options);

/// Whether the factory says that its kernels work on streams.
bool has_streams(const Library& library, const OrtEpFactory& factory);

}  // namespace sardonyx::plugin_host
