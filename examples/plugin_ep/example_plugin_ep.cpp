// example_plugin_ep: a provider library in three files, to be read and copied. README.md is the
// tour.
//
// It runs Add, Mul, MatMul and Relu of float tensors on an imaginary accelerator (small_program.h).
// Everything that the runtime asks for is below, in the order in which it asks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host.h"
#include "sardonyx/c_api.h"
#include "small_program.h"

namespace example {
namespace {

// --- the factory: one for the library ----------------------------------------------------------

/// What models that are compiled in one group have in common, and what sessions loaded from files.
struct Shared {
  std::mutex mutex;
  Context group;
  std::filesystem::path group_file;  // empty while no group is open
  std::map<std::string, std::weak_ptr<const Context>> loaded;
};

/// What a compiled model says about the library that made it.
constexpr const char* kCompatibility = "example_ep;version=1.0";

struct Factory : OrtEpFactory {
  std::string name;
  OrtKernelRegistry* kernels = nullptr;
  Shared shared;
};

// --- the provider: one for each session --------------------------------------------------------

struct Ep : OrtEp {
  Factory* factory = nullptr;
  Options options;
};

Ep& self_of(const OrtEp* self) { return *const_cast<Ep*>(static_cast<const Ep*>(self)); }

const char* ORT_API_CALL get_name(const OrtEp* self) noexcept {
  return self_of(self).factory->name.c_str();
}

/// A node of a fused group may not depend on itself through a node outside: each supported node
/// gets the number of times that a path to it has left the supported ones, and nodes of one number
/// make a group.
std::vector<std::vector<const OrtNode*>> groups_of(const std::vector<const OrtNode*>& nodes) {
  std::map<std::string, std::pair<size_t, bool>> stage_of;  // by value: number, supported
  std::vector<std::vector<const OrtNode*>> groups;
  for (const OrtNode* node : nodes) {  // the runtime lists them in the order of data
    Op op;
    const bool is_ours = supported_op(*node, op);
    size_t stage = 0;
    auto inputs = inputs_of(*node);
    const auto implicit =
        list(*node, g_api->Node_GetNumImplicitInputs, g_api->Node_GetImplicitInputs);
    inputs.insert(inputs.end(), implicit.begin(), implicit.end());
    for (const OrtValueInfo* input : inputs) {
      const auto found = stage_of.find(name_of(input));
      if (found == stage_of.end()) continue;
      const auto [before, was_ours] = found->second;
      stage = std::max(stage, before + (is_ours && !was_ours ? 1 : 0));
    }
    for (const OrtValueInfo* output : outputs_of(*node)) {
      stage_of[name_of(output)] = {stage, is_ours};
    }
    if (!is_ours) continue;
    if (groups.size() <= stage) groups.resize(stage + 1);
    groups[stage].push_back(node);
  }
  return groups;
}

/// Says which nodes are ours: whole groups that Compile() gets as graphs, or single nodes for which
/// there is a kernel.
OrtStatus* ORT_API_CALL get_capability(OrtEp* self, const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* info) noexcept {
  return guarded([&] {
    const Ep& ep = self_of(self);
    inject(ep.options, "GetCapability");
    const auto nodes = nodes_of(*graph);
    OrtNodeFusionOptions fusion{};
    fusion.ort_version_supported = g_version;
    // Weights that we copy need not be kept by the runtime. A weightless provider leaves them where
    // they are and gets them as inputs of each run, or manages them itself.
    fusion.drop_constant_initializers = !ep.options.is_weightless || ep.options.keeps_pointers();
    // What is compiled already has weights as inputs when it was compiled so.
    OrtNodeFusionOptions compiled = fusion;
    compiled.drop_constant_initializers = false;
    for (const OrtNode* node : nodes) {
      if (!is_own_context(*node, ep.factory->name)) continue;
      check(g_ep_api->EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, &compiled));
    }
    if (ep.options.uses_kernels) {
      for (const OrtNode* node : nodes) {
        Op op;
        if (supported_op(*node, op)) check(g_ep_api->EpGraphSupportInfo_AddSingleNode(info, node));
      }
      return;
    }
    for (const auto& group : groups_of(nodes)) {
      if (group.empty()) continue;
      check(g_ep_api->EpGraphSupportInfo_AddNodesToFuse(info, group.data(), group.size(), &fusion));
    }
  });
}

// --- compile mode ------------------------------------------------------------------------------

/// A compiled part of a model, which runs from several threads at once.
struct Part : OrtNodeComputeInfo {
  std::string fault;
  Program program;
  std::vector<View> weights;
  std::vector<std::shared_ptr<const Weight>> copies;
};

OrtStatus* ORT_API_CALL create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext*,
                                     void** state) noexcept {
  // What one session needs between runs would be made here.
  *state = nullptr;
  if (static_cast<Part*>(self)->fault != "CreateState") return nullptr;
  return error(ORT_EP_FAIL, "asked to fail in CreateState");
}

void ORT_API_CALL release_state(OrtNodeComputeInfo*, void*) noexcept {}

OrtStatus* ORT_API_CALL compute(OrtNodeComputeInfo* self, void*,
                                OrtKernelContext* context) noexcept {
  return guarded([&] {
    const Part& part = *static_cast<Part*>(self);
    if (part.fault == "Compute") fail(ORT_FAIL, "asked to fail in Compute");
    const Program& program = part.program;
    std::vector<View> values;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const OrtValue* input = nullptr;
      check(g_api->KernelContext_GetInput(context, i, &input));
      values.push_back(view_of(*input));
    }
    values.insert(values.end(), part.weights.begin(), part.weights.end());
    std::vector<std::vector<float>> memory(program.steps.size());
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      View result;
      if (!infer(step.op, values[step.a].dims, values[step.b].dims, result.dims)) {
        fail(ORT_INVALID_ARGUMENT, "the operands of a step do not fit each other");
      }
      memory[i].resize(static_cast<size_t>(count_of(result.dims)));
      run_step(step.op, values[step.a], values[step.b], result.dims, memory[i].data());
      result.data = memory[i].data();
      values.push_back(std::move(result));
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const View& result = values[program.outputs[i]];
      OrtValue* output = nullptr;
      void* data = nullptr;
      check(g_api->KernelContext_GetOutput(context, i, result.dims.data(), result.dims.size(),
                                           &output));
      check(g_api->GetTensorMutableData(output, &data));
      const size_t bytes = static_cast<size_t>(count_of(result.dims)) * sizeof(float);
      if (bytes != 0) std::memcpy(data, result.data, bytes);
    }
  });
}

/// The graph as a program. Weights go into `weights`, or, where they stay in place, into
/// `pointers`; those that are inputs of each run are not weights.
Program compile_program(const Options& options, const OrtGraph& graph, const OrtNode& fused,
                        Weights& weights, std::vector<View>& pointers) {
  Program program;
  std::map<std::string, uint32_t> number_of;
  const auto define = [&](const std::string& name) {
    number_of.emplace(name, static_cast<uint32_t>(number_of.size()));
  };
  for (const OrtValueInfo* input : inputs_of(fused)) {  // in the order of KernelContext_GetInput
    program.inputs.push_back(name_of(input));
    define(program.inputs.back());
  }
  for (const OrtValueInfo* initializer : initializers_of(graph)) {
    if (!is_constant(initializer) || number_of.count(name_of(initializer)) != 0) continue;
    const OrtValue* value = nullptr;
    check(g_api->ValueInfo_GetInitializerValue(initializer, &value));
    const View view = view_of(*value);
    const uint64_t hash = hash_of(view);
    if (options.keeps_pointers()) {
      // Only a runtime that leaves its weights where they are after Compile() is right for this.
      pointers.push_back(view);
      program.weights.push_back(hash);
      define(name_of(initializer));
      continue;
    }
    auto& kept = weights[hash];
    if (kept == nullptr) {
      kept =
          std::make_shared<Weight>(Weight{view.dims, {view.data, view.data + count_of(view.dims)}});
    }
    program.weights.push_back(hash);
    define(name_of(initializer));
  }
  for (const OrtNode* node : nodes_of(graph)) {
    Step step;
    if (!supported_op(*node, step.op)) fail(ORT_EP_FAIL, "a node came that was not asked for");
    const auto inputs = inputs_of(*node);
    step.a = number_of.at(name_of(inputs.front()));
    step.b = number_of.at(name_of(inputs.back()));
    program.steps.push_back(step);
    define(name_of(outputs_of(*node)[0]));
  }
  for (const OrtValueInfo* output : outputs_of(fused)) {
    program.outputs.push_back(number_of.at(name_of(output)));
  }
  return program;
}

// --- compiled models on disk -------------------------------------------------------------------

std::filesystem::path model_path(const OrtGraph& graph) {
  const ORTCHAR_T* path = nullptr;
  check(g_api->Graph_GetModelPath(&graph, &path));
  return path == nullptr ? "" : path;
}

/// The folder of a compiled model: of ep.context_file_path when it is given, else of the model.
std::filesystem::path context_file(const Ep& ep, const OrtGraph& graph) {
  if (!ep.options.context_path.empty()) return ep.options.context_path;
  std::filesystem::path path = model_path(graph);
  if (path.empty()) fail(ORT_INVALID_ARGUMENT, "a model from memory needs ep.context_file_path");
  return path.replace_filename(path.stem().string() + "_ctx.onnx");
}

/// To the program's function, or else written beside its place and moved there, so that nobody
/// ever reads half a file.
void write_data(const Options& options, const std::filesystem::path& path,
                const std::string& bytes) {
  if (options.fault == "NoFile") return;
  if (options.write != nullptr) {
    const std::string name = path.filename().string();
    check(options.write(options.write_state, name.c_str(), bytes.data(), bytes.size()));
    return;
  }
  const std::filesystem::path partial = path.string() + ".partial";
  std::ofstream(partial, std::ios::binary) << bytes;
  std::error_code failed;
  const auto size = std::filesystem::file_size(partial, failed);
  if (!failed && size == bytes.size()) std::filesystem::rename(partial, path, failed);
  if (failed || size != bytes.size()) fail(ORT_FAIL, "cannot write '" + path.string() + "'");
}

/// Puts the programs of one model into a context and returns what its nodes are to say: the bytes,
/// or the name of the file that has them.
///
/// With ep.share_ep_contexts the models of a group fill one file, where equal weights stand once.
/// It is whole after each model: ep.stop_share_ep_contexts only ends the group.
std::string store(Ep& ep, const OrtGraph& graph, Context context) {
  const Options& options = ep.options;
  if (options.embeds) {
    if (options.shares) fail(ORT_INVALID_ARGUMENT, "embedded contexts cannot be shared");
    return to_bytes(context);
  }
  const auto model_file = context_file(ep, graph);
  auto file = model_file;
  file.replace_filename(model_file.stem().string() + "_" + ep.factory->name + ".bin");
  Shared& shared = ep.factory->shared;
  const std::lock_guard<std::mutex> lock(shared.mutex);
  if (options.shares) {
    const bool is_new = shared.group_file.parent_path() != file.parent_path();
    if (shared.group_file.empty() || is_new) {
      shared.group = Context();
      shared.group_file = file;
    }
    file = shared.group_file;
    shared.group.programs.merge(context.programs);
    shared.group.weights.merge(context.weights);
    if (options.stops_sharing || !options.writes_late) {
      write_data(options, file, to_bytes(shared.group));
    }
    if (options.stops_sharing) shared.group_file.clear();
  } else {
    write_data(options, file, to_bytes(context));
  }
  return file.filename().string();
}

/// The node that stands for a part in the compiled model.
OrtNode* context_node(const Ep& ep, const OrtNode& fused, const std::string& payload,
                      const std::string& key) {
  std::vector<OrtOpAttr*> attributes;
  const auto add = [&](const char* name, const void* data, int size, OrtOpAttrType type) {
    OrtOpAttr* made = nullptr;
    check(g_api->CreateOpAttr(name, data, size, type, &made));
    attributes.push_back(made);
  };
  const auto add_text = [&](const char* name, const std::string& text) {
    add(name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING);
  };
  const int64_t embed_mode = ep.options.embeds ? 1 : 0;
  const int64_t main_context = 1;
  add("embed_mode", &embed_mode, 1, ORT_OP_ATTR_INT);
  add("main_context", &main_context, 1, ORT_OP_ATTR_INT);
  add_text("ep_cache_context", payload);
  add_text("source", ep.factory->name);
  add_text("partition_name", key);
  add_text("ep_sdk_version", "1.0");
  const auto inputs = inputs_of(fused);
  const auto outputs = outputs_of(fused);
  std::vector<std::string> names;
  for (const auto* info : inputs) names.push_back(name_of(info));
  for (const auto* info : outputs) names.push_back(name_of(info));
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  const char* node_name = nullptr;
  check(g_api->Node_GetName(&fused, &node_name));
  OrtNode* node = nullptr;
  check(g_api->GetModelEditorApi()->CreateNode("EPContext", "com.microsoft", node_name,
                                               pointers.data(), inputs.size(),
                                               pointers.data() + inputs.size(), outputs.size(),
                                               attributes.data(), attributes.size(), &node));
  return node;  // it owns the attributes now
}

std::string read_data(const Options& options, const std::filesystem::path& file) {
  if (options.read == nullptr) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) fail(ORT_INVALID_GRAPH, "cannot read the context '" + file.string() + "'");
    return std::string((std::istreambuf_iterator<char>(stream)), {});
  }
  OrtAllocator* allocator = nullptr;
  check(g_api->GetAllocatorWithDefaultOptions(&allocator));
  void* data = nullptr;
  size_t size = 0;
  const std::string name = file.filename().string();
  check(options.read(options.read_state, name.c_str(), allocator, &data, &size));
  std::string bytes(static_cast<const char*>(data), data == nullptr ? 0 : size);
  if (data != nullptr) allocator->Free(allocator, data);
  return bytes;
}

/// The context that an EPContext node refers to. Sessions that share read a file once.
std::shared_ptr<const Context> load(Ep& ep, const OrtGraph& graph, const OrtNode& node) {
  const std::string payload = attribute(node, "ep_cache_context", ORT_OP_ATTR_STRING);
  const std::string mode = attribute(node, "embed_mode", ORT_OP_ATTR_INT);
  const auto made = std::make_shared<Context>();
  if (mode.empty() || mode[0] == 1) {
    if (from_bytes(payload, *made)) return made;
    fail(ORT_INVALID_GRAPH, "the embedded context is damaged");
  }
  auto folder = model_path(graph).parent_path();
  if (folder.empty() && !ep.options.context_path.empty()) {
    folder = std::filesystem::path(ep.options.context_path).parent_path();
  }
  const auto file = folder / payload;
  Shared& shared = ep.factory->shared;
  const std::lock_guard<std::mutex> lock(shared.mutex);
  auto& known = shared.loaded[file.string()];
  if (auto living = ep.options.shares ? known.lock() : nullptr) return living;
  if (!from_bytes(read_data(ep.options, file), *made)) {
    fail(ORT_INVALID_GRAPH, "the context '" + file.string() + "' is damaged");
  }
  known = made;
  return made;
}

/// Tells the parts of one model from those of another in the same file.
std::string key_of(const OrtGraph& graph, const OrtNode& fused) {
  const char* name = nullptr;
  check(g_api->Node_GetName(&fused, &name));
  return model_path(graph).stem().string() + "/" + name;
}

std::unique_ptr<Part> make_part(const Ep& ep, Program program, const Weights& weights,
                                std::vector<View> pointers = {}) {
  auto part = std::make_unique<Part>();
  part->ort_version_supported = g_version;
  part->CreateState = create_state;
  part->Compute = compute;
  part->ReleaseState = release_state;
  part->fault = ep.options.fault;
  part->weights = std::move(pointers);
  for (const uint64_t hash :
       ep.options.keeps_pointers() ? std::vector<uint64_t>() : program.weights) {
    part->copies.push_back(weights.at(hash));
    part->weights.push_back({part->copies.back()->dims, part->copies.back()->values.data()});
  }
  part->program = std::move(program);
  return part;
}

std::unique_ptr<Part> load_part(Ep& ep, const OrtGraph& graph, const OrtNode& node) {
  const auto context = load(ep, graph, node);
  const std::string key = attribute(node, "partition_name", ORT_OP_ATTR_STRING);
  const auto found = context->programs.find(key);
  if (found == context->programs.end()) {
    fail(ORT_INVALID_GRAPH, "the context has no part '" + key + "'");
  }
  if (found->second.inputs.size() != inputs_of(node).size() ||
      found->second.outputs.size() != outputs_of(node).size()) {
    fail(ORT_INVALID_GRAPH, "part '" + key + "' of the context belongs to another node");
  }
  return make_part(ep, found->second, context->weights);
}

/// Makes the groups of GetCapability() ready to run. When the session writes a compiled model, it
/// wants a node for each as well.
OrtStatus* ORT_API_CALL compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes,
                                size_t count, OrtNodeComputeInfo** infos,
                                OrtNode** context_nodes) noexcept {
  return guarded([&] {
    Ep& ep = self_of(self);
    inject(ep.options, "Compile");
    std::vector<std::unique_ptr<Part>> parts(count);
    Context context;
    for (size_t i = 0; i < count; ++i) {
      const auto nodes = nodes_of(*graphs[i]);
      if (nodes.size() == 1 && is_own_context(*nodes[0], ep.factory->name)) {
        if (ep.options.makes_context) fail(ORT_INVALID_ARGUMENT, "the model is compiled already");
        parts[i] = load_part(ep, *graphs[i], *nodes[0]);
        continue;
      }
      std::vector<View> pointers;
      Program program =
          compile_program(ep.options, *graphs[i], *fused_nodes[i], context.weights, pointers);
      context.programs[key_of(*graphs[i], *fused_nodes[i])] = program;
      parts[i] = make_part(ep, std::move(program), context.weights, std::move(pointers));
    }
    if (ep.options.makes_context && ep.options.keeps_pointers()) {
      fail(ORT_INVALID_ARGUMENT, "pointers to weights cannot be stored: set weights to 'inputs'");
    }
    if (ep.options.makes_context && count != 0) {
      const std::string payload = store(ep, *graphs[0], std::move(context));
      for (size_t i = 0; i < count; ++i) {
        if (ep.options.fault == "NullNode") continue;
        context_nodes[i] =
            ep.options.fault == "ForeignNode"
                ? const_cast<OrtNode*>(fused_nodes[i])
                : context_node(ep, *fused_nodes[i], payload, key_of(*graphs[i], *fused_nodes[i]));
      }
    }
    for (size_t i = 0; i < count; ++i) infos[i] = parts[i].release();
  });
}

void ORT_API_CALL release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) delete static_cast<Part*>(infos[i]);
}

OrtStatus* ORT_API_CALL weightless_support(const OrtEp* self,
                                           OrtWeightlessSupport* support) noexcept {
  const std::string& answer = self_of(self).options.answer;
  *support = answer == "none"            ? OrtWeightlessSupport_NONE
             : answer == "external_only" ? OrtWeightlessSupport_EXTERNAL_ONLY
             : answer == "all"           ? OrtWeightlessSupport_ALL
                                         : static_cast<OrtWeightlessSupport>(3);
  return nullptr;
}

OrtStatus* ORT_API_CALL data_support(const OrtEp* self, uint32_t* flags) noexcept {
  *flags = self_of(self).options.data_support;
  return nullptr;
}

/// What a compiled model says about us, and what we say to it when it is to be loaded.
const char* ORT_API_CALL compatibility_info(OrtEp* self, const OrtGraph*) noexcept {
  const Ep& ep = self_of(self);
  return ep.options.compatibility.empty() ? kCompatibility : ep.options.compatibility.c_str();
}

OrtStatus* ORT_API_CALL validate_compatibility(OrtEpFactory*, const OrtHardwareDevice* const*,
                                               size_t, const char* info,
                                               OrtCompiledModelCompatibility* verdict) noexcept {
  const std::string text = info;
  *verdict = text.rfind("example_ep;", 0) != 0 ? OrtCompiledModelCompatibility_EP_NOT_APPLICABLE
             : text == kCompatibility          ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
             : text == "example_ep;version=0.9"
                 ? OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION
                 : OrtCompiledModelCompatibility_EP_UNSUPPORTED;
  return nullptr;
}

// --- kernel mode -------------------------------------------------------------------------------

struct Kernel : OrtKernelImpl {
  Op op;
};

OrtStatus* ORT_API_CALL compute_kernel(OrtKernelImpl* self, OrtKernelContext* context) noexcept {
  return guarded([&] {
    const Op op = static_cast<Kernel*>(self)->op;
    const OrtValue* a = nullptr;
    const OrtValue* b = nullptr;
    check(g_api->KernelContext_GetInput(context, 0, &a));
    check(g_api->KernelContext_GetInput(context, op == Op::Relu ? 0 : 1, &b));
    const View x = view_of(*a);
    const View y = view_of(*b);
    Dims dims;
    if (!infer(op, x.dims, y.dims, dims)) fail(ORT_INVALID_ARGUMENT, "the operands do not fit");
    OrtValue* output = nullptr;
    void* data = nullptr;
    check(g_api->KernelContext_GetOutput(context, 0, dims.data(), dims.size(), &output));
    check(g_api->GetTensorMutableData(output, &data));
    run_step(op, x, y, dims, static_cast<float*>(data));
  });
}

void ORT_API_CALL release_kernel(OrtKernelImpl* self) noexcept {
  delete static_cast<Kernel*>(self);
}

struct KernelRow {
  const char* name;
  Op op;
  int since;
  int until;
};
const KernelRow kKernels[] = {{"Add", Op::Add, 7, 26},
                              {"Mul", Op::Mul, 7, 26},
                              {"MatMul", Op::MatMul, 1, 26},
                              {"Relu", Op::Relu, 6, 26}};

OrtStatus* ORT_API_CALL create_kernel(void* row, const OrtKernelInfo*,
                                      OrtKernelImpl** out) noexcept {
  auto kernel = std::make_unique<Kernel>();
  kernel->ort_version_supported = g_version;
  kernel->Compute = compute_kernel;
  kernel->Release = release_kernel;
  kernel->op = static_cast<const KernelRow*>(row)->op;
  *out = kernel.release();
  return nullptr;
}

void add_kernel(Factory& factory, const KernelRow& row) {
  OrtKernelDefBuilder* builder = nullptr;
  check(g_ep_api->CreateKernelDefBuilder(&builder));
  const OrtDataType* type = nullptr;
  check(g_ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &type));
  check(g_ep_api->KernelDefBuilder_SetOperatorType(builder, row.name));
  check(g_ep_api->KernelDefBuilder_SetDomain(builder, ""));
  check(g_ep_api->KernelDefBuilder_SetSinceVersion(builder, row.since, row.until));
  check(g_ep_api->KernelDefBuilder_SetExecutionProvider(builder, factory.name.c_str()));
  check(g_ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", &type, 1));
  OrtKernelDef* definition = nullptr;
  check(g_ep_api->KernelDefBuilder_Build(builder, &definition));
  g_ep_api->ReleaseKernelDefBuilder(builder);
  OrtStatus* status = g_ep_api->KernelRegistry_AddKernel(factory.kernels, definition, create_kernel,
                                                         const_cast<KernelRow*>(&row));
  g_ep_api->ReleaseKernelDef(definition);
  check(status);
}

OrtStatus* ORT_API_CALL kernel_registry(OrtEp* self, const OrtKernelRegistry** registry) noexcept {
  return guarded([&] {
    Factory& factory = *self_of(self).factory;
    const std::lock_guard<std::mutex> lock(factory.shared.mutex);
    if (factory.kernels == nullptr) {
      check(g_ep_api->CreateKernelRegistry(&factory.kernels));
      for (const KernelRow& row : kKernels) add_kernel(factory, row);
    }
    *registry = factory.kernels;
  });
}

// --- what the factory answers ------------------------------------------------------------------

Factory& self_of(OrtEpFactory* self) { return *static_cast<Factory*>(self); }

const char* ORT_API_CALL factory_name(const OrtEpFactory* self) noexcept {
  return static_cast<const Factory*>(self)->name.c_str();
}
const char* ORT_API_CALL factory_vendor(const OrtEpFactory*) noexcept { return "Example"; }
const char* ORT_API_CALL factory_version(const OrtEpFactory*) noexcept { return "1.0.0"; }
uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory*) noexcept { return 0; }

/// Which of the machine's devices this library can use. A real one would look for its own vendor's.
OrtStatus* ORT_API_CALL supported_devices(OrtEpFactory* self,
                                          const OrtHardwareDevice* const* devices,
                                          size_t device_count, OrtEpDevice** ep_devices,
                                          size_t max_ep_devices, size_t* ep_device_count) noexcept {
  return guarded([&] {
    *ep_device_count = 0;
    OrtKeyValuePairs* metadata = nullptr;
    g_api->CreateKeyValuePairs(&metadata);
    // "KEY=VALUE" in the environment says something else, to see what a runtime makes of it.
    const char* said = std::getenv("EXAMPLE_PLUGIN_EP_WEIGHTLESS");
    const std::string text = said == nullptr ? "weightless_supported_modes=all" : said;
    const size_t middle = std::min(text.find('='), text.size());
    if (middle != text.size()) {
      g_api->AddKeyValuePair(metadata, text.substr(0, middle).c_str(),
                             text.substr(middle + 1).c_str());
    }
    if (said == nullptr) g_api->AddKeyValuePair(metadata, "weightless_support", "all");
    OrtStatus* status = nullptr;
    for (size_t i = 0; i < device_count && status == nullptr; ++i) {
      if (g_api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
      if (*ep_device_count == max_ep_devices) break;
      status = g_ep_api->CreateEpDevice(self, devices[i], metadata, nullptr,
                                        &ep_devices[(*ep_device_count)]);
      if (status == nullptr) ++*ep_device_count;
    }
    g_api->ReleaseKeyValuePairs(metadata);
    check(status);
  });
}

OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*,
                                  const OrtKeyValuePairs* const*, size_t,
                                  const OrtSessionOptions* session, const OrtLogger*,
                                  OrtEp** out) noexcept {
  return guarded([&] {
    auto ep = std::make_unique<Ep>();
    ep->factory = &self_of(self);
    ep->options = read_options(*session, ep->factory->name);
    inject(ep->options, "CreateEp");
    ep->ort_version_supported = g_version;
    ep->GetName = get_name;
    ep->GetCapability = get_capability;
    ep->Compile = compile;
    ep->ReleaseNodeComputeInfos = release_infos;
    ep->GetWeightlessSupport = weightless_support;
    ep->GetEpContextDataSupport = data_support;
    ep->GetCompiledModelCompatibilityInfo = compatibility_info;
    if (ep->options.uses_kernels) ep->GetKernelRegistry = kernel_registry;
    *out = ep.release();
  });
}

/// Tensors stay in ordinary memory, so there is nothing to copy between devices. ONNX Runtime asks
/// all the same.
OrtStatus* ORT_API_CALL create_data_transfer(OrtEpFactory*, OrtDataTransferImpl** out) noexcept {
  *out = nullptr;
  return nullptr;
}
OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory*, const OrtMemoryInfo*,
                                         const OrtKeyValuePairs*, OrtAllocator** out) noexcept {
  *out = nullptr;
  return nullptr;
}
void ORT_API_CALL release_allocator(OrtEpFactory*, OrtAllocator*) noexcept {}
bool ORT_API_CALL is_stream_aware(const OrtEpFactory*) noexcept { return false; }

void ORT_API_CALL release_ep(OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); }

}  // namespace
}  // namespace example

// --- the two functions that the library exports ------------------------------------------------

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                        const OrtLogger*, OrtEpFactory** factories,
                                        size_t max_factories, size_t* factory_count) noexcept {
  using namespace example;
  // "1.32.0" means version 32 of the interface; asked for more than it has, a runtime has none.
  unsigned minor = 0;
  std::sscanf(base->GetVersionString(), "1.%u", &minor);
  g_version = std::min<uint32_t>(ORT_API_VERSION, minor);
  g_api = base->GetApi(g_version < kOldest ? 1 : g_version);
  if (g_api == nullptr) return nullptr;
  if (g_version < kOldest) {
    return error(ORT_NOT_IMPLEMENTED, "example_plugin_ep needs version 24 of the interface");
  }
  g_ep_api = g_api->GetEpApi();
  return guarded([&] {
    if (max_factories == 0) fail(ORT_INVALID_ARGUMENT, "no room for a factory");
    auto factory = std::make_unique<Factory>();
    factory->name = registered_name;
    factory->ort_version_supported = g_version;
    factory->GetName = factory_name;
    factory->GetVendor = factory_vendor;
    factory->GetVendorId = factory_vendor_id;
    factory->GetVersion = factory_version;
    factory->GetSupportedDevices = supported_devices;
    factory->CreateEp = create_ep;
    factory->ReleaseEp = release_ep;
    factory->CreateAllocator = create_allocator;
    factory->ReleaseAllocator = release_allocator;
    factory->CreateDataTransfer = create_data_transfer;
    factory->IsStreamAware = is_stream_aware;
    factory->ValidateCompiledModelCompatibilityInfo = validate_compatibility;
    factories[0] = factory.release();
    *factory_count = 1;
  });
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  auto* made = static_cast<example::Factory*>(factory);
  if (made->kernels != nullptr) example::g_ep_api->ReleaseKernelRegistry(made->kernels);
  delete made;
  return nullptr;
}

}  // extern "C"
