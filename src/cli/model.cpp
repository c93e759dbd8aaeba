#include "cli/model.h"

#include <chrono>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace sardonyx::cli {

namespace {

using NameOf = decltype(OrtApi::SessionGetInputName);
using TypeOf = decltype(OrtApi::SessionGetInputTypeInfo);
using CountOf = decltype(OrtApi::SessionGetInputCount);

Status read_tensor_type(const OrtTensorTypeAndShapeInfo* info, Port& port) {
  ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  SDX_TRY(check(api().GetTensorElementType(info, &number)));
  port.element = find_element(number);
  std::size_t rank = 0;
  SDX_TRY(check(api().GetDimensionsCount(info, &rank)));
  port.dims.resize(rank);
  SDX_TRY(check(api().GetDimensions(info, port.dims.data(), rank)));
  std::vector<const char*> symbols(rank);
  SDX_TRY(check(api().GetSymbolicDimensions(info, symbols.data(), rank)));
  for (const char* symbol : symbols) port.symbols.emplace_back(symbol != nullptr ? symbol : "");
  port.has_shape = api().TensorTypeAndShape_HasShape(info);
  return {};
}

Result<std::vector<Port>> read_ports(const OrtSession* session, CountOf count_of, NameOf name_of,
                                     TypeOf type_of) {
  std::size_t count = 0;
  SDX_TRY(check(count_of(session, &count)));
  std::vector<Port> ports(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    SDX_TRY(check(name_of(session, i, allocator(), &name)));
    ports[i].name = take_text(name);
    OrtTypeInfo* raw = nullptr;
    SDX_TRY(check(type_of(session, i, &raw)));
    const TypeInfo info(raw);
    SDX_TRY(check(api().GetOnnxTypeFromTypeInfo(raw, &ports[i].kind)));
    if (ports[i].kind != ONNX_TYPE_TENSOR) continue;
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    SDX_TRY(check(api().CastTypeInfoToTensorInfo(raw, &tensor)));
    SDX_TRY(read_tensor_type(tensor, ports[i]));
  }
  return ports;
}

/// Shows a stage of the load; asks it to stop after Ctrl-C.
int report_stage(void* state, const char* stage, double done, double total) {
  static_cast<Progress*>(state)->update(total > 0 ? done / total : 0, stage);
  return interrupted() ? 1 : 0;
}

}  // namespace

std::string Port::describe() const {
  static constexpr const char* kKinds[] = {"unknown", "tensor",        "sequence", "map",
                                           "opaque",  "sparse tensor", "optional"};
  if (element == nullptr) return kKinds[kind];
  if (!has_shape) return fmt::format("tensor({})", element->name);
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    parts.push_back(dims[axis] >= 0         ? std::to_string(dims[axis])
                    : symbols[axis].empty() ? "?"
                                            : symbols[axis]);
  }
  return fmt::format("tensor({}) [{}]", element->name, join(parts, ","));
}

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

Result<Env> make_env() {
  OrtEnv* env = nullptr;
  SDX_TRY(check(api().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "sardonyx", &env)));
  return Env(env);
}

Result<Model> load_model(Env env, const std::string& path, int threads) {
  OrtSessionOptions* raw = nullptr;
  SDX_TRY(check(api().CreateSessionOptions(&raw)));
  const SessionOptions options(raw);
  SDX_TRY(check(api().SetIntraOpNumThreads(raw, threads)));
  Progress progress("loading " + path);
  SDX_TRY(check(own_api().SessionOptionsSetProgressFunction(raw, &report_stage, &progress)));
  const double start = now_ms();
  OrtSession* session = nullptr;
  SDX_TRY(check(api().CreateSession(env.get(), path.c_str(), raw, &session)));
  Model model{path, std::move(env), Session(session), {}, {}, {}, now_ms() - start};
  SDX_ASSIGN(model.inputs, read_ports(session, api().SessionGetInputCount,
                                      api().SessionGetInputName, api().SessionGetInputTypeInfo));
  SDX_ASSIGN(model.overridable, read_ports(session, api().SessionGetOverridableInitializerCount,
                                           api().SessionGetOverridableInitializerName,
                                           api().SessionGetOverridableInitializerTypeInfo));
  SDX_ASSIGN(model.outputs, read_ports(session, api().SessionGetOutputCount,
                                       api().SessionGetOutputName, api().SessionGetOutputTypeInfo));
  return model;
}

Result<std::vector<Value>> run_model(const Model& model, const std::vector<std::string>& names,
                                     const std::vector<Value>& values,
                                     const OrtRunOptions* options) {
  std::vector<const char*> input_names;
  std::vector<const OrtValue*> inputs;
  for (const std::string& name : names) input_names.push_back(name.c_str());
  for (const Value& value : values) inputs.push_back(value.get());
  std::vector<const char*> output_names;
  for (const Port& port : model.outputs) output_names.push_back(port.name.c_str());
  std::vector<OrtValue*> raw(output_names.size(), nullptr);
  SDX_TRY(check(api().Run(model.session.get(), options, input_names.data(), inputs.data(),
                          inputs.size(), output_names.data(), output_names.size(), raw.data())));
  std::vector<Value> outputs;
  for (OrtValue* value : raw) outputs.emplace_back(value);
  return outputs;
}

}  // namespace sardonyx::cli
