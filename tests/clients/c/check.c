// What a C program may do with the interface, printed as lines "what = words".
//   check LIBRARY MODELS
#include <dlfcn.h>

#include "common.h"

const OrtApi* api;
OrtEnv* env;
OrtAllocator* allocator;
OrtMemoryInfo* memory;
const char* models;

static void print_port(OrtSession* session, bool is_input, size_t index) {
  char* name = NULL;
  OrtTypeInfo* info = NULL;
  OK(SessionGetInputName(session, 0, allocator, &name));
  OK(AllocatorFree(allocator, name));
  if (is_input) {
    OK(SessionGetInputName(session, index, allocator, &name));
    OK(SessionGetInputTypeInfo(session, index, &info));
  } else {
    OK(SessionGetOutputName(session, index, allocator, &name));
    OK(SessionGetOutputTypeInfo(session, index, &info));
  }
  enum ONNXType kind = ONNX_TYPE_UNKNOWN;
  OK(GetOnnxTypeFromTypeInfo(info, &kind));
  printf("port %s %s = kind %d", is_input ? "input" : "output", name, (int)kind);
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  OK(CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor != NULL) {
    size_t rank = 0;
    int64_t dims[8];
    const char* names[8];
    OK(GetDimensionsCount(tensor, &rank));
    OK(GetDimensions(tensor, dims, rank));
    OK(GetSymbolicDimensions(tensor, names, rank));
    for (size_t i = 0; i < rank; ++i) printf(" %ld '%s'", (long)dims[i], names[i]);
  }
  const OrtSequenceTypeInfo* sequence = NULL;
  OK(CastTypeInfoToSequenceTypeInfo(info, &sequence));
  if (sequence != NULL) {
    OrtTypeInfo* element = NULL;
    OK(GetSequenceElementType(sequence, &element));
    OK(GetOnnxTypeFromTypeInfo(element, &kind));
    printf(" of kind %d", (int)kind);
    const OrtMapTypeInfo* map = NULL;
    OK(CastTypeInfoToMapTypeInfo(element, &map));
    if (map != NULL) {
      ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
      OK(GetMapKeyType(map, &key));
      printf(" key %d", (int)key);
    }
    api->ReleaseTypeInfo(element);
  }
  printf("\n");
  api->ReleaseTypeInfo(info);
  OK(AllocatorFree(allocator, name));
}

static void check_ports(void) {
  const char* names[] = {"mlp.onnx",     "strings.onnx", "sequence_out.onnx", "sequence_in.onnx",
                         "map_out.onnx", "map_in.onnx",  "overridable.onnx",  "lora.onnx"};
  for (size_t i = 0; i < COUNT(names); ++i) {
    OrtSession* session = session_of(names[i]);
    size_t inputs = 0;
    size_t outputs = 0;
    size_t extra = 0;
    OK(SessionGetInputCount(session, &inputs));
    OK(SessionGetOutputCount(session, &outputs));
    OK(SessionGetOverridableInitializerCount(session, &extra));
    printf("ports %s = %zu %zu %zu\n", names[i], inputs, outputs, extra);
    for (size_t j = 0; j < inputs; ++j) print_port(session, true, j);
    for (size_t j = 0; j < outputs; ++j) print_port(session, false, j);
    for (size_t j = 0; j < extra; ++j) {
      char* name = NULL;
      OK(SessionGetOverridableInitializerName(session, j, allocator, &name));
      printf("overridable %s %zu = %s\n", names[i], j, name);
      OK(AllocatorFree(allocator, name));
    }
    api->ReleaseSession(session);
  }
}

static void check_runs(void) {
  OrtSession* session = session_of("mlp.onnx");
  const int rows[] = {1, 3, 0, 32};
  for (size_t i = 0; i < COUNT(rows); ++i) {
    char what[64];
    snprintf(what, sizeof(what), "mlp of %d rows", rows[i]);
    OrtValue* out = run_mlp(session, rows[i], NULL);
    print_floats(what, out);
    api->ReleaseValue(out);
  }
  // Into a buffer of the caller, again and again.
  float x[16];
  float y[8];
  fill(x, 16);
  const char* in_names[] = {"x"};
  const char* out_names[] = {"y", "y"};
  OrtValue* in = borrowed(x, sizeof(x), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 8);
  OrtValue* out = borrowed(y, sizeof(y), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 4);
  const OrtValue* feeds[] = {in};
  OrtValue* results[] = {out, NULL};
  for (int i = 0; i < 3; ++i) {
    x[0] = (float)i;
    OK(Run(session, NULL, in_names, feeds, 1, out_names, 1, results));
    print_floats(i == 0   ? "own buffer first"
                 : i == 1 ? "own buffer second"
                          : "own buffer third",
                 out);
  }
  printf("own buffer kept = %d\n", results[0] == out);
  OrtValue* wrong = borrowed(y, 16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 1, 4);
  OrtValue* wrong_result[] = {wrong};
  CODE("output of another shape",
       Run(session, NULL, in_names, feeds, 1, out_names, 1, wrong_result));
  api->ReleaseValue(wrong);
  // The result lives on when its session is gone.
  OrtValue* late = run_mlp(session, 2, NULL);
  api->ReleaseSession(session);
  print_floats("after its session", late);
  OrtValue* all[] = {in, out, late};
  for (size_t i = 0; i < COUNT(all); ++i) api->ReleaseValue(all[i]);
}

static void check_types(void) {
  const struct {
    const char* name;
    ONNXTensorElementDataType type;
    size_t size;
  } types[] = {{"float", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4},
               {"double", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8},
               {"int8", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1},
               {"int16", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2},
               {"int32", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4},
               {"int64", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8},
               {"uint8", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1},
               {"uint16", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2},
               {"uint32", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4},
               {"uint64", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8},
               {"bool", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1},
               {"float16", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2},
               {"bfloat16", ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2}};
  for (size_t i = 0; i < COUNT(types); ++i) {
    char name[64];
    snprintf(name, sizeof(name), "identity_%s.onnx", types[i].name);
    OrtSession* session = session_of(name);
    for (int count = 0; count <= 5; count += 5) {
      unsigned char bytes[40];
      for (size_t j = 0; j < sizeof(bytes); ++j) bytes[j] = (unsigned char)(j % 2);
      OrtValue* in = borrowed(bytes, types[i].size * (size_t)count, types[i].type, 1, count);
      OrtValue* out = NULL;
      const OrtValue* feeds[] = {in};
      const char* in_names[] = {"x"};
      const char* out_names[] = {"y"};
      OK(Run(session, NULL, in_names, feeds, 1, out_names, 1, &out));
      unsigned char* result = NULL;
      OK(GetTensorMutableData(out, (void**)&result));
      printf("identity %s %d = ", types[i].name, count);
      print_shape(out);
      printf(" same %d\n", count == 0 || memcmp(result, bytes, types[i].size * (size_t)count) == 0);
      api->ReleaseValue(in);
      api->ReleaseValue(out);
    }
    api->ReleaseSession(session);
  }
}

static OrtValue* texts(const char* const* values, size_t count) {
  const int64_t dims[] = {(int64_t)count};
  OrtValue* value = NULL;
  OK(CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  if (count != 0) OK(FillStringTensor(value, values, count));
  return value;
}

static void print_texts(const char* what, OrtValue* value) {
  const size_t count = count_of(value);
  size_t length = 0;
  OK(GetStringTensorDataLength(value, &length));
  char* content = calloc(length + 1, 1);
  size_t* offsets = calloc(count + 1, sizeof(size_t));
  OK(GetStringTensorContent(value, content, length, offsets, count));
  printf("%s = %zu '%s'", what, length, content);
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = 0;
    OK(GetStringTensorElementLength(value, i, &bytes));
    char* text = calloc(bytes + 1, 1);
    OK(GetStringTensorElement(value, bytes, i, text));
    printf(" %zu %zu '%s'", offsets[i], bytes, text);
    free(text);
  }
  printf("\n");
  free(content);
  free(offsets);
}

static void check_strings(void) {
  OrtSession* session = session_of("strings.onnx");
  const char* left[] = {"", "größe", "a long one, longer than what fits into a small string"};
  const char* right[] = {"-", "ω", "!"};
  for (size_t count = 0; count <= 3; count += 3) {
    OrtValue* a = texts(left, count);
    OrtValue* b = texts(right, count);
    OrtValue* out = NULL;
    const OrtValue* feeds[] = {b, a};
    const char* in_names[] = {"b", "a"};
    const char* out_names[] = {"y"};
    OK(Run(session, NULL, in_names, feeds, 2, out_names, 1, &out));
    print_texts(count == 0 ? "no texts" : "texts", out);
    api->ReleaseValue(a);
    api->ReleaseValue(b);
    api->ReleaseValue(out);
  }
  OrtValue* one = texts(left, 3);
  char* buffer = NULL;
  OK(FillStringTensorElement(one, "new", 0));
  OK(GetResizedStringTensorElementBuffer(one, 1, 4, &buffer));
  memcpy(buffer, "four", 4);
  print_texts("changed texts", one);
  char small[2];
  size_t offsets[3];
  REFUSED("buffer too small", GetStringTensorContent(one, small, 2, offsets, 3));
  REFUSED("text too long", GetStringTensorElement(one, 1, 2, small));
  REFUSED("text outside", GetStringTensorElement(one, 2, 9, small));
  REFUSED("set outside", FillStringTensorElement(one, "x", 9));
  api->ReleaseValue(one);
  api->ReleaseSession(session);
}

static void check_containers(void) {
  float x[9];
  fill(x, 9);
  OrtValue* a = borrowed(x, 8, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 2);
  OrtValue* b = borrowed(x + 2, 12, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 3);
  OrtSession* session = session_of("sequence_out.onnx");
  const OrtValue* feeds[] = {a, b};
  const char* in_names[] = {"a", "b"};
  const char* out_names[] = {"n", "s"};
  OrtValue* out[2] = {NULL, NULL};
  OK(Run(session, NULL, in_names, feeds, 2, out_names, 2, out));
  size_t count = 0;
  OK(GetValueCount(out[1], &count));
  int64_t* length = NULL;
  OK(GetTensorMutableData(out[0], (void**)&length));
  printf("sequence out = %zu %ld\n", count, (long)*length);
  for (int i = 0; i < (int)count; ++i) {
    OrtValue* item = NULL;
    OK(GetValue(out[1], i, allocator, &item));
    print_floats(i == 0 ? "item 0" : "item 1", item);
    api->ReleaseValue(item);
  }
  api->ReleaseSession(session);

  session = session_of("sequence_in.onnx");
  OrtValue* sequence = NULL;
  OK(CreateValue(feeds, 2, ONNX_TYPE_SEQUENCE, &sequence));
  const OrtValue* sequences[] = {sequence};
  const char* s[] = {"s"};
  const char* y[] = {"y"};
  OrtValue* joined = NULL;
  OK(Run(session, NULL, s, sequences, 1, y, 1, &joined));
  print_floats("sequence in", joined);
  OrtValue* unused = NULL;
  CODE("tensor for a sequence", Run(session, NULL, s, feeds, 1, y, 1, &unused));
  api->ReleaseSession(session);

  session = session_of("map_out.onnx");
  OrtValue* scores = borrowed(x, 24, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 3);
  const OrtValue* score_feed[] = {scores};
  const char* in_x[] = {"x"};
  const char* z[] = {"z"};
  OrtValue* maps = NULL;
  OK(Run(session, NULL, in_x, score_feed, 1, z, 1, &maps));
  for (int i = 0; i < 2; ++i) {
    OrtValue* map = NULL;
    OrtValue* keys = NULL;
    OrtValue* values = NULL;
    OK(GetValue(maps, i, allocator, &map));
    OK(GetValue(map, 0, allocator, &keys));
    OK(GetValue(map, 1, allocator, &values));
    print_texts(i == 0 ? "keys 0" : "keys 1", keys);
    print_floats(i == 0 ? "values 0" : "values 1", values);
    api->ReleaseValue(map);
    api->ReleaseValue(keys);
    api->ReleaseValue(values);
  }
  api->ReleaseSession(session);

  session = session_of("map_in.onnx");
  int64_t numbers[] = {9, 2, 3};
  OrtValue* keys = borrowed(numbers, 24, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 1, 3);
  OrtValue* values = borrowed(x, 12, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 3);
  const OrtValue* parts[] = {keys, values};
  OrtValue* map = NULL;
  OK(CreateValue(parts, 2, ONNX_TYPE_MAP, &map));
  const OrtValue* map_feed[] = {map};
  const char* d[] = {"d"};
  OrtValue* vector = NULL;
  OK(Run(session, NULL, d, map_feed, 1, y, 1, &vector));
  print_floats("map in", vector);
  api->ReleaseSession(session);
  OrtValue* all[] = {a,      b,    out[0], out[1], sequence, joined,
                     scores, maps, keys,   values, map,      vector};
  for (size_t i = 0; i < COUNT(all); ++i) api->ReleaseValue(all[i]);
}

static void check_errors(void) {
  OrtSessionOptions* options = options_of();
  OrtSession* none = NULL;
  CODE("missing file", CreateSession(env, path_of("absent.onnx"), options, &none));
  CODE("garbage", CreateSession(env, path_of("garbage.onnx"), options, &none));
  CODE("unknown operator", CreateSession(env, path_of("unknown_operator.onnx"), options, &none));
  CODE("empty bytes", CreateSessionFromArray(env, "", 0, options, &none));
  REFUSED("bytes", CreateSessionFromArray(env, "\x08\xff\xff", 3, options, &none));
  api->ReleaseSessionOptions(options);
  OrtSession* session = session_of("mlp.onnx");
  float x[16];
  fill(x, 16);
  const char* xn[] = {"x"};
  const char* yn[] = {"y"};
  const char* nn[] = {"nothing"};
  const char* en[] = {""};
  OrtValue* in = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 8);
  OrtValue* flat = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 16);
  OrtValue* wide = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 1, 16);
  OrtValue* whole = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 2, 2, 8);
  OrtValue* out = NULL;
  const OrtValue* good[] = {in};
  const OrtValue* twice[] = {in, in};
  const char* xx[] = {"x", "x"};
  const OrtValue* rank[] = {flat};
  const OrtValue* shape[] = {wide};
  const OrtValue* type[] = {whole};
  CODE("unknown input", Run(session, NULL, nn, good, 1, yn, 1, &out));
  CODE("unknown output", Run(session, NULL, xn, good, 1, nn, 1, &out));
  REFUSED("empty name", Run(session, NULL, en, good, 1, yn, 1, &out));
  REFUSED("no inputs", Run(session, NULL, xn, good, 0, yn, 1, &out));
  CODE("no outputs", Run(session, NULL, xn, good, 1, yn, 0, &out));
  CODE("rank", Run(session, NULL, xn, rank, 1, yn, 1, &out));
  CODE("shape", Run(session, NULL, xn, shape, 1, yn, 1, &out));
  CODE("type", Run(session, NULL, xn, type, 1, yn, 1, &out));
  REFUSED("input twice", Run(session, NULL, xx, twice, 2, yn, 1, &out));
  char* name = NULL;
  OrtTypeInfo* info = NULL;
  REFUSED("input name outside", SessionGetInputName(session, 5, allocator, &name));
  REFUSED("output type outside", SessionGetOutputTypeInfo(session, 5, &info));
  OrtValue* value = NULL;
  const int64_t negative[] = {-1};
  const int64_t vast[] = {INT64_MAX, INT64_MAX};
  const int64_t eight[] = {8};
  REFUSED("negative dim", CreateTensorAsOrtValue(allocator, negative, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  CODE("vast dims",
       CreateTensorAsOrtValue(allocator, vast, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  CODE("short buffer", CreateTensorWithDataAsOrtValue(memory, x, 8, eight, 1,
                                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  REFUSED("undefined type",
          CreateTensorWithDataAsOrtValue(memory, x, 64, eight, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, &value));
  REFUSED("string data",
          CreateTensorWithDataAsOrtValue(memory, x, 64, eight, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OrtValue* all[] = {in, flat, wide, whole, out};
  for (size_t i = 0; i < COUNT(all); ++i) api->ReleaseValue(all[i]);
  api->ReleaseSession(session);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: check LIBRARY MODELS\n"), 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  const OrtApiBase* (*base)(void) = NULL;
  *(void**)&base = dlsym(library, "OrtGetApiBase");
  api = base()->GetApi(ORT_API_VERSION);
  models = argv[2];
  printf("version = %s\n", base()->GetVersionString());
  printf("versions = %d %d\n", base()->GetApi(1) != NULL, base()->GetApi(10000) == NULL);
  OK(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "check", &env));
  OK(GetAllocatorWithDefaultOptions(&allocator));
  OK(CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  check_ports();
  check_runs();
  check_types();
  check_strings();
  check_containers();
  check_errors();
  check_sessions();
  api->ReleaseMemoryInfo(memory);
  api->ReleaseEnv(env);
  printf("end = 1\n");
  return dlclose(library);
}
