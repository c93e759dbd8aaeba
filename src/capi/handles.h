#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "ir/datum.h"
#include "sardonyx/c_api.h"
#include "session/session.h"

/// What the opaque handles of the C interface point to. All are made by new and released by the
/// function of their name; none is shared between handles.

struct OrtMemoryInfo {
  std::string name = "Cpu";
  OrtAllocatorType allocator_type = OrtDeviceAllocator;
  OrtMemType mem_type = OrtMemTypeDefault;
  int id = 0;
  OrtMemoryInfoDeviceType device_type = OrtMemoryInfoDeviceType_CPU;
  uint32_t vendor_id = 0;
  OrtDeviceMemoryType device_memory = OrtDeviceMemoryType_DEFAULT;
  size_t alignment = 0;
};

namespace sardonyx::capi {

/// An allocator in use beyond the call that it was given to. Its handle may be released meanwhile,
/// as far as it is one that the library made.
struct HeldAllocator {
  /// Null for none.
  OrtAllocator* allocator = nullptr;
  std::shared_ptr<const void> keep = {};

  /// Whatever the allocator's code throws is logged.
  void free(void* memory) const noexcept;
};

/// Holds the allocator that the handle stands for; null for none.
HeldAllocator hold(OrtAllocator* allocator);

/// Bytes of a type that only the caller knows.
struct Opaque {
  std::string domain;
  std::string type;
  std::vector<std::byte> bytes;
};

/// How the caller stores a sparse tensor. Its datum has coordinates as well, but for blocks.
struct SparseLayout {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  /// Where values are copied to; none for a tensor over the caller's memory.
  HeldAllocator allocator = {};
  Tensor csr_inner = {};
  Tensor csr_outer = {};
  /// int32 [2, blocks].
  Tensor block_indices = {};
};

}  // namespace sardonyx::capi

struct OrtValue {
  sardonyx::Datum datum;
  OrtMemoryInfo memory;
  /// Null for a sparse tensor whose coordinates are all there is to know.
  std::shared_ptr<const sardonyx::capi::SparseLayout> sparse = {};
  std::shared_ptr<const sardonyx::capi::Opaque> opaque = {};
};

struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = false;
  /// -1 where the size is not known.
  std::vector<int64_t> dims;
  /// One name per dimension, "" where there is none.
  std::vector<std::string> symbols;
};

struct OrtMapTypeInfo {
  sardonyx::Type type;
};

struct OrtSequenceTypeInfo {
  sardonyx::Type type;
};

struct OrtOptionalTypeInfo {
  sardonyx::Type type;
};

struct OrtTypeInfo {
  sardonyx::Type type;
  std::string denotation;
  OrtTensorTypeAndShapeInfo tensor;
  OrtMapTypeInfo map;
  OrtSequenceTypeInfo sequence;
  OrtOptionalTypeInfo optional;
};

struct OrtKeyValuePairs {
  std::map<std::string, std::string> entries;
  /// Views of `entries`, made anew when they change.
  std::vector<const char*> keys;
  std::vector<const char*> values;
  void refresh();
};

namespace sardonyx::capi {

/// The caller's functions for threads, as the C interface takes them one by one.
struct CustomThreads {
  OrtCustomCreateThreadFn create = nullptr;
  OrtCustomJoinThreadFn join = nullptr;
  void* options = nullptr;

  /// Errors   InvalidArgument when there is one of the two functions only.
  Result<ThreadFunctions> functions() const;
};

}  // namespace sardonyx::capi

struct OrtThreadingOptions {
  int thread_count = 0;
  sardonyx::capi::CustomThreads threads;
  std::string affinities;
};

namespace sardonyx::capi {

/// Functions of the program that read and write the data of compiled models, in place of files.
struct EpContextData {
  OrtReadNamedBufferFunc read = nullptr;
  void* read_state = nullptr;
  OrtWriteNamedBufferFunc write = nullptr;
  void* write_state = nullptr;
};

}  // namespace sardonyx::capi

struct OrtArenaCfg {
  std::map<std::string, size_t> entries;
};

struct OrtPrepackedWeightsContainer {
  /// Packed weights are shared by content without one; it only keeps its place in the interface.
  int unused = 0;
};

namespace sardonyx::capi {

/// What all environments and sessions of a process share beside models; it lives as long as one of
/// them.
struct ProcessState {
  /// The plugin libraries, from the first time that anybody asks for devices. It belongs to the
  /// plugin host, which looks at it under a lock of its own.
  std::shared_ptr<void> plugins;

  std::mutex mutex;
  /// The program's allocators that all sessions may use, one per memory.
  std::vector<OrtAllocator*> allocators;

  /// The allocator for that memory, or null.
  OrtAllocator* find_allocator(const OrtMemoryInfo& memory);
};

}  // namespace sardonyx::capi

struct OrtEnv {
  std::shared_ptr<sardonyx::Environment> environment;
  std::shared_ptr<sardonyx::capi::ProcessState> process;
  /// Configuration entries, as CreateEnvWithOptions takes them.
  std::map<std::string, std::string> entries = {};
  /// The program's logging function, which hears all messages while the environment lives.
  std::shared_ptr<const sardonyx::LogSink> log_sink = nullptr;
};

namespace sardonyx::capi {

struct LoraParameters;

/// What a domain of custom operators holds. Sessions see the operators that it has when they are
/// made; the operators themselves belong to the caller.
struct CustomDomain {
  std::string name;
  std::vector<const OrtCustomOp*> ops;
};

}  // namespace sardonyx::capi

struct OrtCustomOpDomain {
  std::shared_ptr<sardonyx::capi::CustomDomain> state;
};

namespace sardonyx::capi {

/// A provider that session options ask for.
struct ProviderChoice {
  std::string name;
  /// None for a provider that was asked for by its name alone.
  std::vector<const OrtEpDevice*> devices;
};

}  // namespace sardonyx::capi

struct OrtSessionOptions {
  sardonyx::SessionOptions options;
  std::vector<std::shared_ptr<const sardonyx::capi::CustomDomain>> custom_domains;
  sardonyx::capi::CustomThreads threads;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  /// -1: that of the environment. Checked when a session is made.
  int log_level = -1;
  /// Hears the messages of the sessions that are made with these options.
  std::shared_ptr<const sardonyx::LogSink> log_sink;
  bool mem_pattern = true;
  bool cpu_arena = true;
  bool deterministic = false;
  std::shared_ptr<std::atomic<bool>> load_cancelled = std::make_shared<std::atomic<bool>>(false);
  /// Adds to a session's options what depends on all of them; called when the session is made.
  using AtCreation = std::function<sardonyx::Status(const OrtSessionOptions& given,
                                                    sardonyx::SessionOptions& chosen)>;
  std::vector<AtCreation> at_creation;
  /// The first provider that was asked for, when one was.
  std::optional<sardonyx::capi::ProviderChoice> first_choice;
  /// What a selection policy would choose among the devices of now; empty when there is none.
  std::function<sardonyx::Result<std::vector<const OrtEpDevice*>>()> choose_devices;
  sardonyx::capi::EpContextData ep_context_data;
  /// Becomes true when somebody asks for these functions; null where nobody wants to know.
  std::shared_ptr<std::atomic<bool>> asks_context_data = nullptr;
};

struct OrtRunOptions {
  /// The program's stream for the devices of the run, or null.
  OrtSyncStream* sync_stream = nullptr;
  std::atomic<bool> terminate{false};
  std::string tag;
  int log_severity_level = -1;
  int log_verbosity_level = 0;
  std::map<std::string, std::string> entries;
  /// Where a trace of the run goes; "" = nowhere.
  std::string profile_prefix;
  /// Their parameters are inputs of the run beside those that are fed.
  std::vector<std::shared_ptr<const sardonyx::capi::LoraParameters>> adapters;
};

struct OrtSession {
  /// Outlives the session, whatever the caller releases first.
  std::shared_ptr<sardonyx::Environment> environment;
  std::unique_ptr<sardonyx::Session> session;
  std::shared_ptr<sardonyx::capi::ProcessState> process;
  std::optional<sardonyx::Severity> log_level;
  std::shared_ptr<const sardonyx::LogSink> log_sink;
  /// Who took which nodes; empty unless the session was told to remember.
  std::vector<std::unique_ptr<OrtEpAssignedSubgraph>> assigned_parts;
  std::vector<const OrtEpAssignedSubgraph*> assigned_part_list;

  OrtSession();
  ~OrtSession();
};

struct OrtModelMetadata {
  sardonyx::ModelMetadata metadata;
};

struct OrtIoBinding {
  struct Output {
    std::string name;
    /// Holds a tensor when the caller gave the memory.
    sardonyx::Datum datum;
    bool is_given = false;
    /// Where the result is to lie when he did not; null: in the processor's memory.
    const sardonyx::Place* place = nullptr;
  };
  OrtSession* session = nullptr;
  std::vector<std::pair<std::string, sardonyx::Datum>> inputs;
  std::vector<Output> outputs;
};

namespace sardonyx::capi {

/// A copy of the text in the allocator's memory.
Status copy_text(OrtAllocator* allocator, const std::string& text, char** out);

/// The library's own allocator: 64-byte aligned memory of the processor.
OrtAllocator* default_allocator();
const OrtMemoryInfo& cpu_memory_info();

/// A new type description; symbols name dimensions, as in SessionValue.
OrtTypeInfo* new_type_info(const Type& type, const std::vector<std::string>& symbols);
OrtTensorTypeAndShapeInfo tensor_info(const Type& type, const std::vector<std::string>& symbols);

/// The element type with that number, or InvalidArgument.
Result<DType> to_dtype(ONNXTensorElementDataType type);
ONNXTensorElementDataType to_ort(DType dtype);
/// The shape, or InvalidArgument for negative sizes or too many dimensions.
Result<Shape> to_shape(const int64_t* dims, size_t count);

/// A tensor in memory of the allocator, given back with the last handle. Strings, and tensors
/// without an allocator, get the library's own.
Result<Tensor> allocate_with(const HeldAllocator& held, DType dtype, const Shape& shape);
inline Result<Tensor> allocate_with(OrtAllocator* allocator, DType dtype, const Shape& shape) {
  return allocate_with(hold(allocator), dtype, shape);
}
/// Copies all elements between tensors of one type and shape.
void copy_elements(const Tensor& from, Tensor& to);

/// The severity with that number; the nearest one where there is none.
Severity to_severity(int level);
/// A sink that calls the program's function, with `id` as the name of the logger.
LogSink log_sink_of(OrtLoggingFunction function, void* parameter, std::string id);

/// InvalidArgument that names the parameter when the pointer is null.
Status require(const void* pointer, const char* parameter);

/// Runs on data; outputs[i] that hold tensors are written into.
Status run_session(OrtSession& session, const OrtRunOptions* options,
                   std::span<const std::string_view> input_names, std::span<const Datum> inputs,
                   std::span<const std::string_view> output_names, std::span<Datum> outputs);

}  // namespace sardonyx::capi
