#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

/// Bytes of a type that only the caller knows.
struct Opaque {
  std::string domain;
  std::string type;
  std::vector<std::byte> bytes;
};

}  // namespace sardonyx::capi

struct OrtValue {
  sardonyx::Datum datum;
  OrtMemoryInfo memory;
  /// Indices of a sparse tensor that is stored by rows.
  sardonyx::Tensor csr_inner = {};
  sardonyx::Tensor csr_outer = {};
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

struct OrtEnv {
  std::shared_ptr<sardonyx::Environment> environment;
  /// Configuration entries, as CreateEnvWithOptions takes them.
  std::map<std::string, std::string> entries = {};
  /// The plugin libraries of the process, from the first time that anybody asks for devices.
  mutable std::shared_ptr<void> plugins = nullptr;
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

struct OrtSessionOptions {
  sardonyx::SessionOptions options;
  std::vector<std::shared_ptr<const sardonyx::capi::CustomDomain>> custom_domains;
  sardonyx::capi::CustomThreads threads;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  std::optional<sardonyx::Severity> log_level;
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
  sardonyx::capi::EpContextData ep_context_data;
  /// Bytes of the model that a weightless compiled one belongs to; the program's, none by default.
  std::span<const std::byte> weightless_source;
};

struct OrtRunOptions {
  /// The program's stream for the devices of the run, or null.
  OrtSyncStream* sync_stream = nullptr;
  std::atomic<bool> terminate{false};
  std::string tag;
  int log_severity_level = -1;
  int log_verbosity_level = 0;
  std::map<std::string, std::string> entries;
  /// Their parameters are inputs of the run beside those that are fed.
  std::vector<std::shared_ptr<const sardonyx::capi::LoraParameters>> adapters;
};

struct OrtSession {
  /// Outlives the session, whatever the caller releases first.
  std::shared_ptr<sardonyx::Environment> environment;
  std::unique_ptr<sardonyx::Session> session;
  std::optional<sardonyx::Severity> log_level;
  std::shared_ptr<const sardonyx::LogSink> log_sink;
  /// As in OrtEnv.
  mutable std::shared_ptr<void> plugins;
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
Result<Tensor> allocate_with(OrtAllocator* allocator, DType dtype, const Shape& shape);
/// Copies all elements between tensors of one type and shape.
void copy_elements(const Tensor& from, Tensor& to);

/// A sink that calls the program's function, with `id` as the name of the logger.
LogSink log_sink_of(OrtLoggingFunction function, void* parameter, std::string id);

/// InvalidArgument that names the parameter when the pointer is null.
Status require(const void* pointer, const char* parameter);

/// Runs on data; outputs[i] that hold tensors are written into.
Status run_session(OrtSession& session, const OrtRunOptions* options,
                   std::span<const std::string_view> input_names, std::span<const Datum> inputs,
                   std::span<const std::string_view> output_names, std::span<Datum> outputs);

}  // namespace sardonyx::capi
