// Helpers of the C program; each of its files has its own copy of them.
#pragma once

#include <onnxruntime_c_api.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

extern const OrtApi* api;
extern OrtEnv* env;
extern OrtAllocator* allocator;
extern OrtMemoryInfo* memory;
extern const char* models;

static inline void must(OrtStatus* status, int line) {
  if (status == NULL) return;
  printf("line %d: %s\n", line, api->GetErrorMessage(status));
  exit(1);
}
#define OK(call) must(api->call, __LINE__)

/// Prints the code of the error that the call has to return.
static inline void print_code(const char* what, OrtStatus* status) {
  printf("code %s = %d\n", what, status == NULL ? -1 : (int)api->GetErrorCode(status));
  api->ReleaseStatus(status);
}
#define CODE(what, call) print_code(what, api->call)

/// Prints whether the call failed, as it has to, and said why.
static inline void print_refusal(const char* what, OrtStatus* status) {
  const char* text = status == NULL ? "" : api->GetErrorMessage(status);
  printf("refused %s = %s\n", what, strlen(text) > 10 ? "yes" : "no");
  api->ReleaseStatus(status);
}
#define REFUSED(what, call) print_refusal(what, api->call)

static inline const char* path_of(const char* name) {
  static char paths[4][4096];
  static int next = 0;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", models, name);
  return path;
}

static inline OrtSessionOptions* options_of(void) {
  OrtSessionOptions* options = NULL;
  OK(CreateSessionOptions(&options));
  OK(SetIntraOpNumThreads(options, 2));
  return options;
}

static inline OrtSession* session_of(const char* name) {
  OrtSessionOptions* options = options_of();
  OrtSession* session = NULL;
  OK(CreateSession(env, path_of(name), options, &session));
  api->ReleaseSessionOptions(options);
  return session;
}

static inline OrtValue* borrowed(void* data, size_t bytes, ONNXTensorElementDataType type,
                                 size_t rank, ...) {
  int64_t dims[8];
  OrtValue* value = NULL;
  va_list list;
  va_start(list, rank);
  for (size_t i = 0; i < rank; ++i) dims[i] = va_arg(list, int);
  va_end(list);
  OK(CreateTensorWithDataAsOrtValue(memory, data, bytes, dims, rank, type, &value));
  return value;
}

static inline void fill(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = (float)((int)(i % 7) - 3) * 0.25f;
}

static inline size_t count_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 0;
  OK(GetTensorTypeAndShape(value, &info));
  OK(GetTensorShapeElementCount(info, &count));
  api->ReleaseTensorTypeAndShapeInfo(info);
  return count;
}

static inline void print_shape(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  int64_t dims[8];
  OK(GetTensorTypeAndShape(value, &info));
  OK(GetTensorElementType(info, &type));
  OK(GetDimensionsCount(info, &rank));
  OK(GetDimensions(info, dims, rank));
  printf("type %d rank %zu", (int)type, rank);
  for (size_t i = 0; i < rank; ++i) printf(" %ld", (long)dims[i]);
  api->ReleaseTensorTypeAndShapeInfo(info);
}

static inline void print_floats(const char* what, OrtValue* value) {
  float* data = NULL;
  const size_t count = count_of(value);
  OK(GetTensorMutableData(value, (void**)&data));
  printf("%s = ", what);
  print_shape(value);
  for (size_t i = 0; i < count && i < 64; ++i) printf(" %.6g", data[i]);
  printf("\n");
}

static inline OrtValue* run_mlp(OrtSession* session, int rows, const OrtRunOptions* run_options) {
  float x[256];
  fill(x, COUNT(x));
  const char* inputs[] = {"x"};
  const char* outputs[] = {"y"};
  OrtValue* in = borrowed(x, (size_t)rows * 8 * sizeof(float), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                          2, rows, 8);
  OrtValue* out = NULL;
  const OrtValue* feeds[] = {in};
  OK(Run(session, run_options, inputs, feeds, 1, outputs, 1, &out));
  api->ReleaseValue(in);
  return out;
}

void check_sessions(void);
