// What the example asks of the runtime: its tables, errors, the options of a session, and graphs.
#pragma once

#include <cctype>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"
#include "small_program.h"

namespace example {

// --- the runtime's functions -------------------------------------------------------------------

// Set once, when the library is registered. Tables grow at their ends: with a runtime of version
// 1.N only the functions of version N and below are there.
inline const OrtApi* g_api = nullptr;
inline const OrtEpApi* g_ep_api = nullptr;
inline uint32_t g_version = 0;

inline constexpr uint32_t kOldest = 24;

inline OrtStatus* error(OrtErrorCode code, const std::string& text) {
  return g_api->CreateStatus(code, text.c_str());
}

// Every function of the runtime returns null or an error that the caller has to release. Inside
// this file errors travel as exceptions, which is short; none may leave it, so that every function
// that the runtime calls is wrapped in guarded().
struct Failure {
  OrtStatus* status;
};

inline void check(OrtStatus* status) {
  if (status != nullptr) throw Failure{status};
}

[[noreturn]] inline void fail(OrtErrorCode code, const std::string& text) {
  throw Failure{error(code, text)};
}

template <typename Body>
inline OrtStatus* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::exception& exception) {
    return error(ORT_EP_FAIL, exception.what());
  }
}

// --- options -----------------------------------------------------------------------------------

struct Options {
  bool uses_kernels = false;   // mode = "compile" or "kernel"
  std::string fault;           // the callback that is to fail
  std::string weights;         // what a weightless session does with them: "inputs", "pointers"
  std::string answer;          // what GetWeightlessSupport says
  std::string compatibility;   // what GetCompiledModelCompatibilityInfo says
  uint32_t data_support = 3;   // what GetEpContextDataSupport says
  bool writes_late = false;    // shared data are written with the last model of a group only
  bool makes_context = false;  // ep.context_enable
  bool embeds = false;         // ep.context_embed_mode
  std::string context_path;    // ep.context_file_path
  bool shares = false;         // ep.share_ep_contexts
  bool stops_sharing = false;  // ep.stop_share_ep_contexts
  bool is_weightless = false;  // ep.enable_weightless_mode, or the older ep.enable_weightless
  // Functions of the program for the data of compiled models, in place of files.
  OrtReadNamedBufferFunc read = nullptr;
  void* read_state = nullptr;
  OrtWriteNamedBufferFunc write = nullptr;
  void* write_state = nullptr;

  bool keeps_pointers() const { return is_weightless && weights == "pointers"; }
};

inline std::string config(const OrtSessionOptions& session, const std::string& key) {
  size_t size = 0;
  int is_there = 0;
  check(g_api->HasSessionConfigEntry(&session, key.c_str(), &is_there));
  if (is_there == 0) return "";
  check(g_api->GetSessionConfigEntry(&session, key.c_str(), nullptr, &size));
  std::string value(size, '\0');
  check(g_api->GetSessionConfigEntry(&session, key.c_str(), value.data(), &size));
  value.resize(size == 0 ? 0 : size - 1);  // without the zero at its end
  return value;
}

inline void read_functions(const OrtSessionOptions& session, Options& options) {
  if (g_version < 31) return;  // they are newer
  OrtEpContextConfig* config = nullptr;
  check(g_ep_api->SessionOptionsGetEpContextConfig(&session, &config));
  OrtStatus* status = g_ep_api->EpContextConfigGetEpContextDataReadFunc(config, &options.read,
                                                                        &options.read_state);
  if (status == nullptr) {
    status = g_ep_api->EpContextConfigGetEpContextDataWriteFunc(config, &options.write,
                                                                &options.write_state);
  }
  g_ep_api->ReleaseEpContextConfig(config);
  check(status);
}

inline std::string one_of(const std::string& key, const std::string& value,
                          std::initializer_list<const char*> known) {
  for (const char* word : known) {
    if (value == word) return value;
  }
  std::string expected;
  for (const char* word : known) expected += std::string(expected.empty() ? "" : ", ") + word;
  fail(ORT_INVALID_ARGUMENT,
       "option '" + key + "': expected one of " + expected + ", found '" + value + "'");
}

inline Options read_options(const OrtSessionOptions& session, std::string ep_name) {
  // Options of a provider are session entries: "ep." + its name in small letters + "." + key.
  for (char& c : ep_name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string prefix = "ep." + ep_name + ".";
  Options options;
  const auto word = [&](const char* key, std::initializer_list<const char*> known) {
    const std::string value = config(session, prefix + key);
    return value.empty() ? std::string(*known.begin()) : one_of(key, value, known);
  };
  options.uses_kernels = word("mode", {"compile", "kernel"}) == "kernel";
  options.fault = config(session, prefix + "fault");
  options.weights = word("weights", {"inputs", "pointers"});
  options.writes_late = word("write", {"always", "last"}) == "last";
  options.answer = word("weightless", {"all", "none", "external_only", "all_or_external_only"});
  options.compatibility = config(session, prefix + "compatibility");
  const std::string data_support = config(session, prefix + "data_support");
  if (!data_support.empty()) options.data_support = static_cast<uint32_t>(std::stoul(data_support));
  options.makes_context = config(session, "ep.context_enable") == "1";
  options.embeds = config(session, "ep.context_embed_mode") == "1";
  options.context_path = config(session, "ep.context_file_path");
  options.shares = config(session, "ep.share_ep_contexts") == "1";
  options.stops_sharing = config(session, "ep.stop_share_ep_contexts") == "1";
  const std::string weightless = config(session, "ep.enable_weightless_mode");
  options.is_weightless = weightless == "2" || config(session, "ep.enable_weightless") == "1";
  read_functions(session, options);
  return options;
}

inline void inject(const Options& options, const char* callback) {
  if (options.fault == callback) fail(ORT_EP_FAIL, std::string("asked to fail in ") + callback);
}

// --- reading the runtime's graphs --------------------------------------------------------------

template <typename Handle, typename Count, typename Get>
auto list(const Handle& handle, Count count, Get get) {
  size_t size = 0;
  check(count(&handle, &size));
  std::vector<const OrtValueInfo*> infos(size);
  check(get(&handle, infos.data(), size));
  return infos;
}

inline std::vector<const OrtValueInfo*> inputs_of(const OrtNode& node) {
  return list(node, g_api->Node_GetNumInputs, g_api->Node_GetInputs);
}
inline std::vector<const OrtValueInfo*> outputs_of(const OrtNode& node) {
  return list(node, g_api->Node_GetNumOutputs, g_api->Node_GetOutputs);
}
inline std::vector<const OrtValueInfo*> inputs_of(const OrtGraph& graph) {
  return list(graph, g_api->Graph_GetNumInputs, g_api->Graph_GetInputs);
}
inline std::vector<const OrtValueInfo*> outputs_of(const OrtGraph& graph) {
  return list(graph, g_api->Graph_GetNumOutputs, g_api->Graph_GetOutputs);
}
inline std::vector<const OrtValueInfo*> initializers_of(const OrtGraph& graph) {
  return list(graph, g_api->Graph_GetNumInitializers, g_api->Graph_GetInitializers);
}

inline std::vector<const OrtNode*> nodes_of(const OrtGraph& graph) {
  size_t count = 0;
  check(g_api->Graph_GetNumNodes(&graph, &count));
  std::vector<const OrtNode*> nodes(count);
  check(g_api->Graph_GetNodes(&graph, nodes.data(), count));
  return nodes;
}

inline std::string name_of(const OrtValueInfo* info) {
  const char* name = "";
  if (info != nullptr) check(g_api->GetValueInfoName(info, &name));
  return name;
}

inline bool is_constant(const OrtValueInfo* info) {
  bool answer = false;
  check(g_api->ValueInfo_IsConstantInitializer(info, &answer));
  return answer;
}

/// The number of dimensions of a float tensor, or -1 for anything else.
inline int float_rank(const OrtValueInfo* info) {
  const OrtTypeInfo* type = nullptr;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (info == nullptr) return -1;
  check(g_api->GetValueInfoTypeInfo(info, &type));
  if (type != nullptr) check(g_api->CastTypeInfoToTensorInfo(type, &tensor));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (tensor != nullptr) check(g_api->GetTensorElementType(tensor, &element));
  if (element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) return -1;
  if (!g_api->TensorTypeAndShape_HasShape(tensor)) return -1;
  size_t rank = 0;
  check(g_api->GetDimensionsCount(tensor, &rank));
  return static_cast<int>(rank);
}

/// The operator of a node that this provider runs. Returns false for all others.
inline bool supported_op(const OrtNode& node, Op& op) {
  const char* text = nullptr;
  check(g_api->Node_GetDomain(&node, &text));
  if (*text != '\0') return false;
  int since = 0;
  check(g_api->Node_GetSinceVersion(&node, &since));
  check(g_api->Node_GetOperatorType(&node, &text));
  const std::string name = text;
  const auto inputs = inputs_of(node);
  if (name == "Relu") {
    op = Op::Relu;
    return float_rank(inputs[0]) >= 0;
  }
  if (inputs.size() != 2 || float_rank(inputs[0]) < 0 || float_rank(inputs[1]) < 0) return false;
  op = name == "Add" ? Op::Add : name == "Mul" ? Op::Mul : Op::MatMul;
  if (name == "Add" || name == "Mul") return since >= 7;  // before, broadcasting was an attribute
  return name == "MatMul" && float_rank(inputs[0]) >= 2 && float_rank(inputs[1]) == 2;
}

inline std::string attribute(const OrtNode& node, const char* name, OrtOpAttrType type) {
  const OrtOpAttr* handle = nullptr;
  OrtStatus* status = g_api->Node_GetAttributeByName(&node, name, &handle);
  if (status != nullptr) g_api->ReleaseStatus(status);
  if (status != nullptr || handle == nullptr) return "";
  size_t size = 0;
  char nothing = 0;
  status = g_api->ReadOpAttr(handle, type, &nothing, 0, &size);
  if (status != nullptr) g_api->ReleaseStatus(status);
  std::string bytes(size, '\0');
  if (size != 0) check(g_api->ReadOpAttr(handle, type, bytes.data(), size, &size));
  return bytes;
}

/// Whether the node is a compiled part that this provider has made before.
inline bool is_own_context(const OrtNode& node, const std::string& ep_name) {
  const char* op = nullptr;
  check(g_api->Node_GetOperatorType(&node, &op));
  return std::strcmp(op, "EPContext") == 0 &&
         attribute(node, "source", ORT_OP_ATTR_STRING) == ep_name;
}

inline View view_of(const OrtValue& value) {
  View view;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* dims = nullptr;
  size_t rank = 0;
  check(g_api->GetTensorElementTypeAndShapeDataReference(&value, &type, &dims, &rank));
  view.dims.assign(dims, dims + rank);
  const void* data = nullptr;
  check(g_api->GetTensorData(&value, &data));
  view.data = static_cast<const float*>(data);
  return view;
}

}  // namespace example
