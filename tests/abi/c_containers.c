// Sequences, maps and descriptions of memory made through the C interface. Runs on any library with
// the interface:
//   test_abi_containers [LIBRARY]     default: the one that it is linked with
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sardonyx/c_api.h"

static const OrtApi* api;
static OrtAllocator* allocator;
static int failures = 0;

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

static bool ok(OrtStatus* status, const char* what) {
  if (status == NULL) return true;
  fprintf(stderr, "FAILED: %s: %s\n", what, api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  ++failures;
  return false;
}

static OrtValue* tensor(ONNXTensorElementDataType type, const int64_t* dims, size_t rank) {
  OrtValue* value = NULL;
  ok(api->CreateTensorAsOrtValue(allocator, dims, rank, type, &value), "CreateTensorAsOrtValue");
  return value;
}

static void* data(OrtValue* value) {
  void* bytes = NULL;
  ok(api->GetTensorMutableData(value, &bytes), "GetTensorMutableData");
  return bytes;
}

static OrtValue* floats(const float* values, int64_t count) {
  OrtValue* value = tensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &count, 1);
  memcpy(data(value), values, (size_t)count * sizeof(float));
  return value;
}

static OrtValue* integers(const int64_t* values, int64_t count) {
  OrtValue* value = tensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &count, 1);
  memcpy(data(value), values, (size_t)count * sizeof(int64_t));
  return value;
}

static size_t count_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 0;
  ok(api->GetTensorTypeAndShape(value, &info), "GetTensorTypeAndShape");
  ok(api->GetTensorShapeElementCount(info, &count), "GetTensorShapeElementCount");
  api->ReleaseTensorTypeAndShapeInfo(info);
  return count;
}

static OrtValue* item(const OrtValue* container, int index) {
  OrtValue* value = NULL;
  ok(api->GetValue(container, index, allocator, &value), "GetValue");
  return value;
}

/// The two values cannot be made one of that type.
static void refused(const OrtValue* first, const OrtValue* second, ONNXType type,
                    const char* what) {
  const OrtValue* parts[] = {first, second};
  OrtValue* made = NULL;
  OrtStatus* status = api->CreateValue(parts, 2, type, &made);
  check(status != NULL, what);
  api->ReleaseStatus(status);
  api->ReleaseValue(made);
}

static OrtValue* made(const OrtValue* first, const OrtValue* second, ONNXType type) {
  const OrtValue* parts[] = {first, second};
  OrtValue* value = NULL;
  ok(api->CreateValue(parts, 2, type, &value), "CreateValue");
  return value;
}

static void check_maps(void) {
  OrtValue* numbers = floats((const float[]){1, 2, 3}, 3);
  OrtValue* keys = integers((const int64_t[]){7, 2, 7}, 3);
  OrtValue* four = integers((const int64_t[]){1, 2, 3, 4}, 4);
  const int64_t dims[] = {1, 3};
  OrtValue* row = tensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, dims, 2);
  OrtValue* halves = tensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, &dims[1], 1);
  refused(numbers, numbers, ONNX_TYPE_MAP, "floats are no keys");
  refused(four, numbers, ONNX_TYPE_MAP, "there is a value for each key");
  refused(row, numbers, ONNX_TYPE_MAP, "keys have one axis");
  refused(keys, halves, ONNX_TYPE_MAP, "float16 is no value of a map");

  OrtValue* map = made(keys, numbers, ONNX_TYPE_MAP);
  OrtValue* own_keys = item(map, 0);
  OrtValue* own_values = item(map, 1);
  check(count_of(own_keys) == 2 && count_of(own_values) == 2, "equal keys are one");
  const int64_t* key = data(own_keys);
  const float* value = data(own_values);
  check(key[0] == 2 && key[1] == 7, "keys are in order");
  check(value[0] == 2 && value[1] == 1, "values follow their keys, and the first one counts");
  OrtValue* all[] = {numbers, keys, four, row, halves, map, own_keys, own_values};
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i) api->ReleaseValue(all[i]);
}

static void check_sequences(void) {
  float buffer[] = {1, 2, 3};
  const int64_t dims[] = {3};
  OrtMemoryInfo* memory = NULL;
  OrtValue* borrowed = NULL;
  ok(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), "memory");
  ok(api->CreateTensorWithDataAsOrtValue(memory, buffer, sizeof(buffer), dims, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &borrowed),
     "CreateTensorWithDataAsOrtValue");
  api->ReleaseMemoryInfo(memory);
  OrtValue* other = integers((const int64_t[]){1}, 1);
  refused(borrowed, other, ONNX_TYPE_SEQUENCE, "items are of one type");
  OrtValue* sequence = made(borrowed, borrowed, ONNX_TYPE_SEQUENCE);
  refused(sequence, sequence, ONNX_TYPE_SEQUENCE, "a sequence is no item of a sequence");
  refused(borrowed, sequence, ONNX_TYPE_SEQUENCE, "nor beside a tensor");
  api->ReleaseValue(borrowed);
  OrtValue* first = item(sequence, 0);
  check(((float*)data(first))[0] == 1, "an item is what went in");
  ((float*)data(first))[0] = 5;
  OrtValue* again = item(sequence, 0);
  check(((float*)data(again))[0] == 1, "a sequence hands out copies");
  OrtValue* all[] = {other, sequence, first, again};
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i) api->ReleaseValue(all[i]);
}

/// Bindings describe memory of devices that are not there, to compare values with it.
static void check_memory(void) {
  const struct {
    const char* name;
    OrtMemoryInfoDeviceType device;
  } kinds[] = {
      {"Cpu", OrtMemoryInfoDeviceType_CPU},        {"Cuda", OrtMemoryInfoDeviceType_GPU},
      {"HipPinned", OrtMemoryInfoDeviceType_GPU},  {"OpenVINO_RT_NPU", OrtMemoryInfoDeviceType_NPU},
      {"WebGPU_Buf", OrtMemoryInfoDeviceType_GPU}, {"WebNN_Tensor", OrtMemoryInfoDeviceType_GPU}};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); ++i) {
    OrtMemoryInfo* info = NULL;
    OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_FPGA;
    ok(api->CreateMemoryInfo(kinds[i].name, OrtDeviceAllocator, 0, OrtMemTypeDefault, &info),
       kinds[i].name);
    if (info != NULL) api->MemoryInfoGetDeviceType(info, &device);
    check(device == kinds[i].device, kinds[i].name);
    api->ReleaseMemoryInfo(info);
  }
  OrtMemoryInfo* none = NULL;
  OrtStatus* status =
      api->CreateMemoryInfo("NoSuch", OrtDeviceAllocator, 0, OrtMemTypeDefault, &none);
  check(status != NULL, "unknown memory is refused");
  api->ReleaseStatus(status);
}

int main(int argc, char** argv) {
  const OrtApiBase* (*base)(void) = OrtGetApiBase;
  if (argc > 1) {
    void* library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    *(void**)&base = dlsym(library, "OrtGetApiBase");
  }
  api = base()->GetApi(ORT_API_VERSION);
  OrtEnv* env = NULL;
  ok(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "containers", &env), "CreateEnv");
  ok(api->GetAllocatorWithDefaultOptions(&allocator), "GetAllocatorWithDefaultOptions");
  check_maps();
  check_sequences();
  check_memory();
  api->ReleaseEnv(env);
  if (failures == 0) printf("all checks passed\n");
  return failures == 0 ? 0 : 1;
}
