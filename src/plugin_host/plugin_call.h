#pragma once

#include <mutex>
#include <vector>

#include "capi/kernel_info.h"
#include "plugin_host/provider.h"

namespace sardonyx::plugin_host {

/// One call of a plugin's code on tensors: its operands as the C interface shows them, and the
/// provider's memory for what it makes. Made on the thread that does the run; the plugin may ask it
/// for things from others.
class PluginCall final : public capi::KernelHost {
 public:
  struct Output {
    const Place* place = nullptr;
    DType dtype = DType::Undefined;
    bool is_there = true;
    /// The input whose memory the output may share, or -1.
    int alias = -1;
  };

  PluginCall(const PluginProvider& provider, RunState& run);

  void reserve(std::size_t input_count, std::size_t output_count);
  void add_input(Datum datum);
  /// `given`: a tensor to write into, or nothing.
  void add_output(const Output& output, Datum given);
  OrtKernelContext& context() { return context_; }
  /// Whether the plugin asked for the output, in which it writes its result.
  bool is_made(std::size_t i) const { return context_.outputs[i].is_made; }
  /// What output i became.
  Datum& result(std::size_t i) { return context_.outputs[i].value.datum; }

  Result<Tensor> make_output(std::size_t index, DType dtype, const Shape& shape) override;
  Result<OrtAllocator*> allocator(const OrtMemoryInfo& memory) override;
  Result<void*> scratch(const OrtMemoryInfo& memory, std::size_t bytes) override;
  OrtSyncStream* stream() override { return stream_; }

 private:
  const PluginProvider& provider_;
  OrtSyncStream* stream_;
  OrtKernelContext context_;
  std::vector<Output> outputs_;
  std::mutex scratch_mutex_;
  std::vector<Tensor> scratch_;
};

}  // namespace sardonyx::plugin_host
