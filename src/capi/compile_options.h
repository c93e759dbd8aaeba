#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "capi/handles.h"

namespace sardonyx::capi {

/// Memory of the caller's allocator that takes a result, and where he hears of it.
struct OutputBuffer {
  OrtAllocator* allocator = nullptr;
  void** data = nullptr;
  size_t* size = nullptr;
};

struct WriteFunction {
  OrtWriteBufferFunc function = nullptr;
  void* state = nullptr;
};

/// Where large initializers go: a file beside the model, memory, or wherever a function says.
struct InitializerFile {
  std::string path;
  size_t threshold_bytes = 0;
};
struct InitializerBuffer {
  std::string name;
  size_t threshold_bytes = 0;
  OutputBuffer buffer;
};
struct InitializerLocator {
  OrtGetInitializerLocationFunc function = nullptr;
  void* state = nullptr;
};

}  // namespace sardonyx::capi

/// How a model is compiled. Of several inputs or outputs the one that was set last counts.
struct OrtModelCompilationOptions {
  std::shared_ptr<sardonyx::Environment> environment;
  std::shared_ptr<sardonyx::capi::ProcessState> process;
  /// What the session options were when this was made.
  OrtSessionOptions session;

  /// Of nothing, a path, bytes or a built model.
  std::variant<std::monostate, std::string, std::span<const std::byte>, const OrtModel*> input;
  /// Nothing: beside the input.
  std::variant<std::monostate, std::string, sardonyx::capi::OutputBuffer,
               sardonyx::capi::WriteFunction>
      output;
  /// Nothing: they stay in the model.
  std::variant<std::monostate, sardonyx::capi::InitializerFile, sardonyx::capi::InitializerBuffer,
               sardonyx::capi::InitializerLocator>
      initializers;
  bool has_alignment = false;
  size_t alignment_bytes = 0;
  size_t alignment_minimum_bytes = 0;
  /// Name the compiled data; "" = by default.
  std::string data_folder;
  std::string data_name;
  bool embeds = false;
  uint32_t flags = 0;
  int optimization_level = 0;
};
