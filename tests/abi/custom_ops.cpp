// A library of custom operators as programs bring it: one operator per feature of OrtCustomOp, of
// every version that added members. With SARDONYX_TEST_POISON in the environment, members beyond an
// operator's version hold a bad address, so that reading them does not go unnoticed; ONNX Runtime
// does read some. tests/python/test_custom_ops.py runs it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

namespace {

const OrtApi* g_api = nullptr;

/// Throws, which KernelCompute of version 1 has no other way to say.
void check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = g_api->GetErrorMessage(status);
  g_api->ReleaseStatus(status);
  throw std::runtime_error(message);
}

struct View {
  std::vector<int64_t> shape;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t count = 0;
  void* data = nullptr;
};

View view_of(const OrtValue* value) {
  View view;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(g_api->GetTensorTypeAndShape(value, &info));
  size_t rank = 0;
  check(g_api->GetDimensionsCount(info, &rank));
  view.shape.resize(rank);
  check(g_api->GetDimensions(info, view.shape.data(), rank));
  check(g_api->GetTensorElementType(info, &view.type));
  check(g_api->GetTensorShapeElementCount(info, &view.count));
  g_api->ReleaseTensorTypeAndShapeInfo(info);
  if (view.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    check(g_api->GetTensorMutableData(const_cast<OrtValue*>(value), &view.data));
  }
  return view;
}

const OrtValue* input_value(OrtKernelContext* context, size_t i) {
  const OrtValue* value = nullptr;
  check(g_api->KernelContext_GetInput(context, i, &value));
  return value;
}

OrtValue* output_value(OrtKernelContext* context, size_t i, const std::vector<int64_t>& shape) {
  OrtValue* value = nullptr;
  check(g_api->KernelContext_GetOutput(context, i, shape.data(), shape.size(), &value));
  return value;
}

template <typename T>
T* output(OrtKernelContext* context, size_t i, const std::vector<int64_t>& shape) {
  OrtValue* value = output_value(context, i, shape);
  return value == nullptr ? nullptr : static_cast<T*>(view_of(value).data);
}

void set_text(OrtKernelContext* context, size_t i, const std::vector<std::string>& texts) {
  OrtValue* value = output_value(context, i, {static_cast<int64_t>(texts.size())});
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  check(g_api->FillStringTensor(value, pointers.data(), pointers.size()));
}

size_t element_bytes(ONNXTensorElementDataType type) {
  return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ? 8 : 4;
}

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr auto kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
constexpr auto kText = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
constexpr auto kAny = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

struct Operand {
  ONNXTensorElementDataType type;
  OrtCustomOpInputOutputCharacteristic kind = INPUT_OUTPUT_REQUIRED;
};

/// What a kernel is: made from its node, called at every run.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void compute(OrtKernelContext* context) = 0;
};

using MakeKernel = std::unique_ptr<Kernel> (*)(const OrtKernelInfo* info);

/// An OrtCustomOp with its declaration behind it.
struct Op {
  OrtCustomOp base;
  std::string name;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  MakeKernel make = nullptr;
  const char* provider = nullptr;
  int min_arity = 1;
  int is_homogeneous = 1;
  int start_version = 1;
  int end_version = INT32_MAX;
};

const Op& self(const OrtCustomOp* op) { return *reinterpret_cast<const Op*>(op); }

template <typename Body>
OrtStatus* guarded(Body&& body) {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return g_api->CreateStatus(ORT_FAIL, error.what());
  }
}

void fill_version_1(OrtCustomOp& op) {
  op.CreateKernel = [](const OrtCustomOp* of, const OrtApi*, const OrtKernelInfo* info) -> void* {
    return self(of).make(info).release();
  };
  op.GetName = [](const OrtCustomOp* of) { return self(of).name.c_str(); };
  op.GetExecutionProviderType = [](const OrtCustomOp* of) { return self(of).provider; };
  op.GetInputType = [](const OrtCustomOp* of, size_t i) { return self(of).inputs[i].type; };
  op.GetInputTypeCount = [](const OrtCustomOp* of) { return self(of).inputs.size(); };
  op.GetOutputType = [](const OrtCustomOp* of, size_t i) { return self(of).outputs[i].type; };
  op.GetOutputTypeCount = [](const OrtCustomOp* of) { return self(of).outputs.size(); };
  op.KernelCompute = [](void* kernel, OrtKernelContext* context) {
    static_cast<Kernel*>(kernel)->compute(context);
  };
  op.KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
}

void fill_later_versions(OrtCustomOp& op, uint32_t version) {
  if (version >= 8) {
    op.GetInputCharacteristic = [](const OrtCustomOp* of, size_t i) {
      return self(of).inputs[i].kind;
    };
    op.GetOutputCharacteristic = [](const OrtCustomOp* of, size_t i) {
      return self(of).outputs[i].kind;
    };
  }
  if (version >= 13) {
    op.GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  }
  if (version >= 14) {
    op.GetVariadicInputMinArity = [](const OrtCustomOp* of) { return self(of).min_arity; };
    op.GetVariadicInputHomogeneity = [](const OrtCustomOp* of) { return self(of).is_homogeneous; };
    op.GetVariadicOutputMinArity = [](const OrtCustomOp* of) { return self(of).min_arity; };
    op.GetVariadicOutputHomogeneity = [](const OrtCustomOp* of) { return self(of).is_homogeneous; };
  }
  if (version >= 16) {
    op.CreateKernelV2 = [](const OrtCustomOp* of, const OrtApi*, const OrtKernelInfo* info,
                           void** kernel) {
      return guarded([&] { *kernel = self(of).make(info).release(); });
    };
    op.KernelComputeV2 = [](void* kernel, OrtKernelContext* context) {
      return guarded([&] { static_cast<Kernel*>(kernel)->compute(context); });
    };
  }
  if (version >= 17) {
    op.InferOutputShapeFn = nullptr;
    op.GetStartVersion = [](const OrtCustomOp* of) { return self(of).start_version; };
    op.GetEndVersion = [](const OrtCustomOp* of) { return self(of).end_version; };
  }
  if (version >= 18) {
    op.GetMayInplace = [](int** inputs, int** outputs) -> size_t {
      *inputs = new int[1]{0};
      *outputs = new int[1]{0};
      return 1;
    };
    op.ReleaseMayInplace = [](int* inputs, int* outputs) {
      delete[] inputs;
      delete[] outputs;
    };
    op.GetAliasMap = nullptr;
    op.ReleaseAliasMap = nullptr;
  }
}

/// An operator that knows the members of `version` and no more.
std::unique_ptr<Op> make_op(uint32_t version, std::string name, std::vector<Operand> inputs,
                            std::vector<Operand> outputs, MakeKernel make) {
  auto op = std::make_unique<Op>();
  std::memset(&op->base, 0x5a, sizeof(OrtCustomOp));
  op->base.version = version;
  fill_version_1(op->base);
  const bool is_poisoned = std::getenv("SARDONYX_TEST_POISON") != nullptr;
  fill_later_versions(op->base, is_poisoned ? version : ORT_API_VERSION);
  op->name = std::move(name);
  op->inputs = std::move(inputs);
  op->outputs = std::move(outputs);
  op->make = make;
  return op;
}

template <typename K>
std::unique_ptr<Kernel> make(const OrtKernelInfo* info) {
  return std::make_unique<K>(info);
}

// --- kernels

struct AddOne final : Kernel {
  explicit AddOne(const OrtKernelInfo*) {}
  void compute(OrtKernelContext* context) override {
    const View x = view_of(input_value(context, 0));
    auto* y = output<float>(context, 0, x.shape);
    for (size_t i = 0; i < x.count; ++i) y[i] = static_cast<float*>(x.data)[i] + 1;
  }
};

/// x * factor + bias; the bias may be left out, and so may the second output, the sum.
struct Scale final : Kernel {
  explicit Scale(const OrtKernelInfo* info) {
    check(g_api->KernelInfoGetAttribute_float(info, "factor", &factor));
  }
  void compute(OrtKernelContext* context) override {
    const View x = view_of(input_value(context, 0));
    size_t input_count = 0;
    check(g_api->KernelContext_GetInputCount(context, &input_count));
    const OrtValue* bias = input_count > 1 ? input_value(context, 1) : nullptr;
    const float added = bias != nullptr ? *static_cast<float*>(view_of(bias).data) : 0;
    auto* y = output<float>(context, 0, x.shape);
    float sum = 0;
    for (size_t i = 0; i < x.count; ++i) {
      y[i] = static_cast<float*>(x.data)[i] * factor + added;
      sum += y[i];
    }
    size_t output_count = 0;
    check(g_api->KernelContext_GetOutputCount(context, &output_count));
    if (output_count < 2) return;
    if (auto* total = output<float>(context, 1, {})) *total = sum;
  }
  float factor = 1;
};

/// All elements of all inputs in one row, of the inputs' type.
struct Join final : Kernel {
  explicit Join(const OrtKernelInfo*) {}
  void compute(OrtKernelContext* context) override {
    size_t count = 0;
    check(g_api->KernelContext_GetInputCount(context, &count));
    std::vector<View> views;
    int64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      views.push_back(view_of(input_value(context, i)));
      total += static_cast<int64_t>(views.back().count);
    }
    auto* y = output<char>(context, 0, {total});
    for (const View& view : views) {
      const size_t bytes = view.count * element_bytes(view.type);
      std::memcpy(y, view.data, bytes);
      y += bytes;
    }
  }
};

/// The number of elements of each input, one output each.
struct Counts final : Kernel {
  explicit Counts(const OrtKernelInfo*) {}
  void compute(OrtKernelContext* context) override {
    size_t count = 0;
    check(g_api->KernelContext_GetInputCount(context, &count));
    for (size_t i = 0; i < count; ++i) {
      *output<int64_t>(context, i, {}) =
          static_cast<int64_t>(view_of(input_value(context, i)).count);
    }
  }
};

struct FailCreate final : Kernel {
  explicit FailCreate(const OrtKernelInfo*) { throw std::runtime_error("no kernel today"); }
  void compute(OrtKernelContext*) override {}
};

struct FailCompute final : Kernel {
  explicit FailCompute(const OrtKernelInfo*) {}
  void compute(OrtKernelContext*) override { throw std::runtime_error("no result today"); }
};

/// Makes none of its outputs.
struct Idle final : Kernel {
  explicit Idle(const OrtKernelInfo*) {}
  void compute(OrtKernelContext*) override {}
};

std::string sized(OrtStatus* (*get)(const OrtKernelInfo*, char*, size_t*)NO_EXCEPTION,
                  const OrtKernelInfo* info) {
  size_t size = 0;
  check(get(info, nullptr, &size));
  std::string text(size, '\0');
  check(get(info, text.data(), &size));
  text.resize(size - 1);
  return text;
}

std::string operand_name(const OrtKernelInfo* info, size_t index, bool is_input) {
  const auto get = is_input ? g_api->KernelInfo_GetInputName : g_api->KernelInfo_GetOutputName;
  size_t size = 0;
  check(get(info, index, nullptr, &size));
  std::string text(size, '\0');
  check(get(info, index, text.data(), &size));
  text.resize(size - 1);
  return text;
}

std::string type_text(OrtTypeInfo* info) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  check(g_api->CastTypeInfoToTensorInfo(info, &tensor));
  ONNXTensorElementDataType type = kAny;
  check(g_api->GetTensorElementType(tensor, &type));
  size_t rank = 0;
  check(g_api->GetDimensionsCount(tensor, &rank));
  std::vector<int64_t> dims(rank);
  check(g_api->GetDimensions(tensor, dims.data(), rank));
  std::string text = std::to_string(type) + ":";
  for (const int64_t dim : dims) text += std::to_string(dim) + ",";
  g_api->ReleaseTypeInfo(info);
  return text;
}

/// Everything that a kernel may ask about its node, as text.
struct Describe final : Kernel {
  explicit Describe(const OrtKernelInfo* given) {
    OrtKernelInfo* info = nullptr;
    check(g_api->CopyKernelInfo(given, &info));
    lines = {"name=" + sized(g_api->KernelInfo_GetNodeName, info),
             "domain=" + sized(g_api->KernelInfo_GetOperatorDomain, info),
             "type=" + sized(g_api->KernelInfo_GetOperatorType, info)};
    int since = 0;
    check(g_api->KernelInfo_GetOperatorSinceVersion(info, &since));
    lines.push_back("since=" + std::to_string(since));
    add_operands(info);
    add_attributes(info);
    add_missing(info);
    g_api->ReleaseKernelInfo(info);
  }

  void add_operands(const OrtKernelInfo* info) {
    size_t count = 0;
    check(g_api->KernelInfo_GetInputCount(info, &count));
    for (size_t i = 0; i < count; ++i) {
      OrtTypeInfo* type = nullptr;
      check(g_api->KernelInfo_GetInputTypeInfo(info, i, &type));
      lines.push_back("in " + operand_name(info, i, true) + " " + type_text(type));
      int is_constant = 0;
      const OrtValue* value = nullptr;
      check(g_api->KernelInfoGetConstantInput_tensor(info, i, &is_constant, &value));
      if (is_constant == 0) continue;
      lines.push_back("constant " + std::to_string(*static_cast<float*>(view_of(value).data)));
    }
    check(g_api->KernelInfo_GetOutputCount(info, &count));
    for (size_t i = 0; i < count; ++i) {
      OrtTypeInfo* type = nullptr;
      check(g_api->KernelInfo_GetOutputTypeInfo(info, i, &type));
      lines.push_back("out " + operand_name(info, i, false) + " " + type_text(type));
    }
  }

  void add_attributes(const OrtKernelInfo* info) {
    int64_t number = 0;
    check(g_api->KernelInfoGetAttribute_int64(info, "number", &number));
    float real = 0;
    check(g_api->KernelInfoGetAttribute_float(info, "real", &real));
    lines.push_back("number=" + std::to_string(number) + " real=" + std::to_string(real));
    size_t size = 0;
    check(g_api->KernelInfoGetAttribute_string(info, "text", nullptr, &size));
    std::string text(size, '\0');
    check(g_api->KernelInfoGetAttribute_string(info, "text", text.data(), &size));
    lines.push_back("text=" + std::string(text.c_str()) + " size=" + std::to_string(size));
    check(g_api->KernelInfoGetAttributeArray_int64(info, "numbers", nullptr, &size));
    std::vector<int64_t> numbers(size);
    check(g_api->KernelInfoGetAttributeArray_int64(info, "numbers", numbers.data(), &size));
    for (const int64_t item : numbers) lines.push_back("number " + std::to_string(item));
    check(g_api->KernelInfoGetAttributeArray_float(info, "reals", nullptr, &size));
    std::vector<float> reals(size);
    check(g_api->KernelInfoGetAttributeArray_float(info, "reals", reals.data(), &size));
    for (const float item : reals) lines.push_back("real " + std::to_string(item));
    add_texts_and_tensor(info);
  }

  void add_texts_and_tensor(const OrtKernelInfo* info) {
    OrtAllocator* allocator = nullptr;
    check(g_api->KernelInfoGetAllocator(info, OrtMemTypeDefault, &allocator));
    size_t count = 0;
    char** texts = nullptr;
    check(g_api->KernelInfoGetAttributeArray_string(info, "texts", allocator, &texts, &count));
    for (size_t i = 0; i < count; ++i) {
      lines.push_back(std::string("text ") + texts[i]);
      allocator->Free(allocator, texts[i]);
    }
    allocator->Free(allocator, texts);
    OrtValue* tensor = nullptr;
    check(g_api->KernelInfoGetAttribute_tensor(info, "tensor", allocator, &tensor));
    lines.push_back("tensor " + std::to_string(static_cast<float*>(view_of(tensor).data)[1]));
    g_api->ReleaseValue(tensor);
    g_api->ReleaseAllocator(allocator);
    OrtKeyValuePairs* entries = nullptr;
    check(g_api->KernelInfo_GetConfigEntries(info, &entries));
    const char* entry = g_api->GetKeyValue(entries, "test.key");
    lines.push_back(std::string("entry ") + (entry != nullptr ? entry : "none"));
    g_api->ReleaseKeyValuePairs(entries);
  }

  void add_missing(const OrtKernelInfo* info) {
    int64_t number = 0;
    OrtStatus* status = g_api->KernelInfoGetAttribute_int64(info, "nothing", &number);
    lines.push_back(status != nullptr ? "missing is an error" : "missing is found");
    g_api->ReleaseStatus(status);
    char small[2];
    size_t size = sizeof(small);
    status = g_api->KernelInfoGetAttribute_string(info, "text", small, &size);
    lines.push_back(status != nullptr ? "small is an error" : "small is enough");
    g_api->ReleaseStatus(status);
  }

  void compute(OrtKernelContext* context) override { set_text(context, 0, lines); }
  std::vector<std::string> lines;
};

/// The rows of x, `times` times; its shape is inferred from the attribute.
struct Repeat final : Kernel {
  explicit Repeat(const OrtKernelInfo* info) {
    check(g_api->KernelInfoGetAttribute_int64(info, "times", &times));
  }
  void compute(OrtKernelContext* context) override {
    View x = view_of(input_value(context, 0));
    x.shape[0] *= times;
    auto* y = output<float>(context, 0, x.shape);
    for (int64_t i = 0; i < times; ++i) {
      std::memcpy(y + static_cast<size_t>(i) * x.count, x.data, x.count * sizeof(float));
    }
  }
  int64_t times = 1;

  static OrtStatus* infer(const OrtCustomOp*, OrtShapeInferContext* context) {
    return guarded([&] {
      const OrtOpAttr* attribute = nullptr;
      check(g_api->ShapeInferContext_GetAttribute(context, "times", &attribute));
      int64_t times = 0;
      size_t size = 0;
      check(g_api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &times, sizeof(times), &size));
      if (times < 0) throw std::runtime_error("a negative number of times");
      size_t count = 0;
      check(g_api->ShapeInferContext_GetInputCount(context, &count));
      OrtTensorTypeAndShapeInfo* x = nullptr;
      check(g_api->ShapeInferContext_GetInputTypeShape(context, count - 1, &x));
      size_t rank = 0;
      check(g_api->GetDimensionsCount(x, &rank));
      std::vector<int64_t> dims(rank);
      check(g_api->GetDimensions(x, dims.data(), rank));
      std::vector<const char*> names(rank);
      check(g_api->GetSymbolicDimensions(x, names.data(), rank));
      if (dims[0] >= 0) dims[0] *= times;
      OrtTensorTypeAndShapeInfo* y = nullptr;
      check(g_api->CreateTensorTypeAndShapeInfo(&y));
      check(g_api->SetTensorElementType(y, kFloat));
      check(g_api->SetDimensions(y, dims.data(), rank));
      names[0] = "";
      check(g_api->SetSymbolicDimensions(y, names.data(), rank));
      check(g_api->ShapeInferContext_SetOutputTypeShape(context, 0, y));
      g_api->ReleaseTensorTypeAndShapeInfo(y);
    });
  }
};

template <int N>
struct Number final : Kernel {
  explicit Number(const OrtKernelInfo*) {}
  void compute(OrtKernelContext* context) override { *output<int64_t>(context, 0, {}) = N; }
};

/// x + x by the library's Add, then the k largest of it by its TopK.
struct Largest final : Kernel {
  explicit Largest(const OrtKernelInfo* info) {
    const char* names[] = {"T"};
    const ONNXTensorElementDataType types[] = {kFloat};
    check(g_api->CreateOp(info, "Add", "", 14, names, types, 1, nullptr, 0, 2, 1, &add));
    const int64_t axis = -1;
    const int64_t largest = 1;
    OrtOpAttr* attributes[3];
    check(g_api->CreateOpAttr("axis", &axis, 1, ORT_OP_ATTR_INT, &attributes[0]));
    check(g_api->CreateOpAttr("largest", &largest, 1, ORT_OP_ATTR_INT, &attributes[1]));
    check(g_api->CreateOpAttr("sorted", &largest, 1, ORT_OP_ATTR_INT, &attributes[2]));
    const char* top_names[] = {"T", "I"};
    const ONNXTensorElementDataType top_types[] = {kFloat, kInt64};
    OrtStatus* status =
        g_api->CreateOp(info, "TopK", "", 11, top_names, top_types, 2, attributes, 3, 2, 2, &top);
    for (OrtOpAttr* attribute : attributes) g_api->ReleaseOpAttr(attribute);
    check(status);
  }
  ~Largest() override {
    g_api->ReleaseOp(add);
    g_api->ReleaseOp(top);
  }

  void compute(OrtKernelContext* context) override {
    const OrtValue* x = input_value(context, 0);
    const View view = view_of(x);
    OrtMemoryInfo* memory = nullptr;
    check(g_api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    OrtAllocator* allocator = nullptr;
    check(g_api->KernelContext_GetAllocator(context, memory, &allocator));
    OrtValue* sum = nullptr;
    check(g_api->CreateTensorAsOrtValue(allocator, view.shape.data(), view.shape.size(), kFloat,
                                        &sum));
    const OrtValue* operands[] = {x, x};
    check(g_api->InvokeOp(context, add, operands, 2, &sum, 1));
    int64_t k = 2;
    const int64_t one[] = {1};
    OrtValue* count = nullptr;
    check(g_api->CreateTensorWithDataAsOrtValue(memory, &k, sizeof(k), one, 1, kInt64, &count));
    const OrtValue* top_inputs[] = {sum, count};
    OrtValue* results[] = {output_value(context, 0, {k}), output_value(context, 1, {k})};
    check(g_api->InvokeOp(context, top, top_inputs, 2, results, 2));
    g_api->ReleaseValue(count);
    g_api->ReleaseValue(sum);
    g_api->ReleaseAllocator(allocator);
    g_api->ReleaseMemoryInfo(memory);
  }
  OrtOp* add = nullptr;
  OrtOp* top = nullptr;
};

/// Squares, by all threads, through scratch memory.
struct Squares final : Kernel {
  struct Work {
    const float* x;
    float* y;
  };
  explicit Squares(const OrtKernelInfo* info) {
    check(g_api->KernelInfo_GetLogger(info, &logger));
    OrtLoggingLevel level = ORT_LOGGING_LEVEL_FATAL;
    check(g_api->Logger_GetLoggingSeverityLevel(logger, &level));
    check(g_api->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_VERBOSE, "made", "custom_ops.cpp", 1,
                                   "Squares"));
  }
  void compute(OrtKernelContext* context) override {
    const View x = view_of(input_value(context, 0));
    OrtMemoryInfo* memory = nullptr;
    check(g_api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    void* scratch = nullptr;
    check(g_api->KernelContext_GetScratchBuffer(context, memory, x.count * 4 + 1, &scratch));
    Work work{static_cast<const float*>(x.data), static_cast<float*>(scratch)};
    check(g_api->KernelContext_ParallelFor(
        context,
        [](void* data, size_t i) {
          auto* given = static_cast<Work*>(data);
          given->y[i] = given->x[i] * given->x[i];
        },
        x.count, 3, &work));
    std::memcpy(output<float>(context, 0, x.shape), scratch, x.count * 4);
    OrtAllocator* allocator = nullptr;
    check(g_api->KernelContext_GetAllocator(context, memory, &allocator));
    allocator->Free(allocator, scratch);
    g_api->ReleaseAllocator(allocator);
    g_api->ReleaseMemoryInfo(memory);
    check_streams(context);
  }
  void check_streams(OrtKernelContext* context) {
    void* stream = this;
    check(g_api->KernelContext_GetGPUComputeStream(context, &stream));
    if (stream != nullptr) throw std::runtime_error("the processor has a stream");
    const OrtLogger* of_run = nullptr;
    check(g_api->KernelContext_GetLogger(context, &of_run));
    if (of_run == nullptr) throw std::runtime_error("a run has no logger");
    OrtStatus* status = g_api->KernelContext_GetResource(context, 1, 0, &stream);
    if (status == nullptr) throw std::runtime_error("the processor has a resource");
    g_api->ReleaseStatus(status);
  }
  const OrtLogger* logger = nullptr;
};

/// Texts in reverse, made with CreateStatus-free string functions.
struct Reverse final : Kernel {
  explicit Reverse(const OrtKernelInfo*) {}
  void compute(OrtKernelContext* context) override {
    const OrtValue* x = input_value(context, 0);
    const View view = view_of(x);
    std::vector<std::string> texts;
    for (size_t i = 0; i < view.count; ++i) {
      size_t size = 0;
      check(g_api->GetStringTensorElementLength(x, i, &size));
      std::string text(size, '\0');
      check(g_api->GetStringTensorElement(x, size, i, text.data()));
      std::reverse(text.begin(), text.end());
      texts.push_back(std::move(text));
    }
    set_text(context, 0, texts);
  }
};

std::vector<std::unique_ptr<Op>>& all_ops() {
  static std::vector<std::unique_ptr<Op>> ops;
  return ops;
}

void add_plain_ops(std::vector<std::unique_ptr<Op>>& ops) {
  ops.push_back(make_op(1, "AddOne", {{kFloat}}, {{kFloat}}, make<AddOne>));
  ops.push_back(make_op(8, "Scale", {{kFloat}, {kFloat, INPUT_OUTPUT_OPTIONAL}},
                        {{kFloat}, {kFloat, INPUT_OUTPUT_OPTIONAL}}, make<Scale>));
  ops.push_back(make_op(14, "Join", {{kAny, INPUT_OUTPUT_VARIADIC}}, {{kAny}}, make<Join>));
  ops.back()->min_arity = 2;
  ops.push_back(make_op(14, "Counts", {{kAny, INPUT_OUTPUT_VARIADIC}},
                        {{kInt64, INPUT_OUTPUT_VARIADIC}}, make<Counts>));
  ops.back()->is_homogeneous = 0;
  ops.push_back(make_op(16, "FailCreate", {{kFloat}}, {{kFloat}}, make<FailCreate>));
  ops.push_back(make_op(16, "FailCompute", {{kFloat}}, {{kFloat}}, make<FailCompute>));
  ops.push_back(make_op(1, "ThrowCompute", {{kFloat}}, {{kFloat}}, make<FailCompute>));
  ops.push_back(make_op(16, "Idle", {{kFloat}}, {{kFloat}}, make<Idle>));
  ops.push_back(make_op(1, "NoState", {{kFloat}}, {{kFloat}}, nullptr));
  ops.back()->base.CreateKernel = [](const OrtCustomOp*, const OrtApi*,
                                     const OrtKernelInfo*) -> void* { return nullptr; };
  ops.back()->base.KernelCompute = [](void*, OrtKernelContext* context) {
    AddOne(nullptr).compute(context);
  };
  ops.back()->base.KernelDestroy = [](void*) {};
  ops.push_back(make_op(16, "Elsewhere", {{kFloat}}, {{kFloat}}, make<AddOne>));
  ops.back()->provider = "NowhereExecutionProvider";
}

void add_later_ops(std::vector<std::unique_ptr<Op>>& ops) {
  ops.push_back(make_op(25, "Describe", {{kFloat}, {kFloat}}, {{kText}}, make<Describe>));
  ops.push_back(make_op(17, "Repeat", {{kFloat}}, {{kFloat}}, make<Repeat>));
  ops.back()->base.InferOutputShapeFn = Repeat::infer;
  ops.push_back(make_op(17, "Versioned", {{kFloat}}, {{kInt64}}, make<Number<1>>));
  ops.back()->end_version = 1;
  ops.push_back(make_op(17, "Versioned", {{kFloat}}, {{kInt64}}, make<Number<2>>));
  ops.back()->start_version = 2;
  ops.push_back(make_op(17, "Typed", {{kFloat}}, {{kInt64}}, make<Number<10>>));
  ops.push_back(make_op(17, "Typed", {{kInt64}}, {{kInt64}}, make<Number<20>>));
  ops.push_back(make_op(17, "Largest", {{kFloat}}, {{kFloat}, {kInt64}}, make<Largest>));
  ops.push_back(make_op(18, "Squares", {{kFloat}}, {{kFloat}}, make<Squares>));
  ops.push_back(make_op(ORT_API_VERSION, "Reverse", {{kText}}, {{kText}}, make<Reverse>));
}

OrtStatus* register_all(OrtSessionOptions* options, const OrtApiBase* base) {
  g_api = base->GetApi(ORT_API_VERSION);
  if (all_ops().empty()) {
    add_plain_ops(all_ops());
    add_later_ops(all_ops());
  }
  OrtCustomOpDomain* domain = nullptr;
  if (OrtStatus* status = g_api->CreateCustomOpDomain("test.custom", &domain)) return status;
  for (const auto& op : all_ops()) {
    if (OrtStatus* status = g_api->CustomOpDomain_Add(domain, &op->base)) return status;
  }
  // Never released: sessions use it until the process ends.
  return g_api->AddCustomOpDomain(options, domain);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(
    OrtSessionOptions* options, const OrtApiBase* base) {
  return register_all(options, base);
}
