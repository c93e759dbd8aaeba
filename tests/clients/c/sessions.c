// Options, metadata, weights from the caller, threads, cancelling, bindings and logs.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common.h"

static void print_text(const char* what, char* text) {
  printf("%s = '%s'\n", what, text == NULL ? "(null)" : text);
  if (text != NULL) OK(AllocatorFree(allocator, text));
}

static void check_metadata(void) {
  OrtSession* session = session_of("mlp.onnx");
  OrtModelMetadata* metadata = NULL;
  char* text = NULL;
  OK(SessionGetModelMetadata(session, &metadata));
  OK(ModelMetadataGetProducerName(metadata, allocator, &text));
  print_text("producer", text);
  OK(ModelMetadataGetGraphName(metadata, allocator, &text));
  print_text("graph", text);
  OK(ModelMetadataGetDomain(metadata, allocator, &text));
  print_text("domain", text);
  OK(ModelMetadataGetDescription(metadata, allocator, &text));
  print_text("description", text);
  OK(ModelMetadataGetGraphDescription(metadata, allocator, &text));
  print_text("graph description", text);
  int64_t version = 0;
  OK(ModelMetadataGetVersion(metadata, &version));
  printf("model version = %ld\n", (long)version);
  const char* keys[] = {"author", "kind", "empty", "absent"};
  for (size_t i = 0; i < COUNT(keys); ++i) {
    text = NULL;
    OK(ModelMetadataLookupCustomMetadataMap(metadata, allocator, keys[i], &text));
    print_text(keys[i], text);
  }
  char** names = NULL;
  int64_t count = 0;
  OK(ModelMetadataGetCustomMetadataMapKeys(metadata, allocator, &names, &count));
  printf("keys = %ld\n", (long)count);
  for (int64_t i = 0; i < count; ++i) OK(AllocatorFree(allocator, names[i]));
  OK(AllocatorFree(allocator, names));
  api->ReleaseModelMetadata(metadata);
  api->ReleaseSession(session);
}

static void run_with(const char* what, const char* model, OrtSessionOptions* options) {
  OrtSession* session = NULL;
  OK(CreateSession(env, path_of(model), options, &session));
  OrtValue* out = run_mlp(session, 2, NULL);
  print_floats(what, out);
  api->ReleaseValue(out);
  api->ReleaseSession(session);
}

static void check_options(void) {
  const GraphOptimizationLevel levels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED,
                                           ORT_ENABLE_LAYOUT, ORT_ENABLE_ALL};
  for (size_t i = 0; i < COUNT(levels); ++i) {
    OrtSessionOptions* options = NULL;
    OK(CreateSessionOptions(&options));
    OK(AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"));
    OK(SetSessionGraphOptimizationLevel(options, levels[i]));
    OK(DisableMemPattern(options));
    OK(SetSessionExecutionMode(options, ORT_PARALLEL));
    OK(DisableCpuMemArena(options));
    OK(SetInterOpNumThreads(options, 3));
    OK(EnableCpuMemArena(options));
    OK(SetIntraOpNumThreads(options, i % 2 == 0 ? 1 : 0));
    OK(EnableMemPattern(options));
    OK(SetSessionLogId(options, "some session"));
    OK(AddFreeDimensionOverrideByName(options, "batch", 2));
    OK(SetSessionExecutionMode(options, ORT_SEQUENTIAL));
    OrtSessionOptions* copy = NULL;
    OK(CloneSessionOptions(options, &copy));
    api->ReleaseSessionOptions(options);
    char what[64];
    snprintf(what, sizeof(what), "level %d", (int)levels[i]);
    run_with(what, "mlp.onnx", copy);
    api->ReleaseSessionOptions(copy);
  }
  OrtSessionOptions* options = options_of();
  CODE("level outside", SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)-24));
  CODE("config key", AddSessionConfigEntry(options, "", "1"));
  CODE("unknown provider", SessionOptionsAppendExecutionProvider(options, "NoSuch", NULL, NULL, 0));
  size_t size = 0;
  CODE("entry that is not there", GetSessionConfigEntry(options, "absent", NULL, &size));
  OK(AddSessionConfigEntry(options, "some.key", "value"));
  OK(GetSessionConfigEntry(options, "some.key", NULL, &size));
  char text[16] = "";
  OK(GetSessionConfigEntry(options, "some.key", text, &size));
  printf("config entry = %zu %s\n", size, text);
  size = 2;
  CODE("entry into a small buffer", GetSessionConfigEntry(options, "some.key", text, &size));
  api->ReleaseSessionOptions(options);
}

static char* bytes_of(const char* name, size_t* size) {
  FILE* file = fopen(path_of(name), "rb");
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char* bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

static void check_weights(void) {
  OrtSessionOptions* options = options_of();
  run_with("external file", "external.onnx", options);
  float b[] = {10, 20, 30, 40};
  OrtValue* bias = borrowed(b, 16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 4);
  OK(AddInitializer(options, "b", bias));
  run_with("weight of the caller", "mlp.onnx", options);
  CODE("weight twice", AddInitializer(options, "b", bias));
  api->ReleaseSessionOptions(options);

  size_t model_size = 0;
  size_t data_size = 0;
  char* model = bytes_of("external.onnx", &model_size);
  char* data = bytes_of("external.data", &data_size);
  OrtSession* session = NULL;
  options = options_of();
  REFUSED("external file of bytes",
          CreateSessionFromArray(env, model, model_size, options, &session));
  const ORTCHAR_T* names[] = {"external.data"};
  char* buffers[] = {data};
  const size_t sizes[] = {data_size};
  OK(AddExternalInitializersFromFilesInMemory(options, names, buffers, sizes, 1));
  OK(CreateSessionFromArray(env, model, model_size, options, &session));
  free(model);
  memset(data, 0, data_size);
  free(data);
  OrtValue* out = run_mlp(session, 2, NULL);
  print_floats("external file in memory", out);
  api->ReleaseValue(out);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);

  // Weights of an external model, one by one.
  options = options_of();
  const char* const tensor_names[] = {"b"};
  const OrtValue* values[] = {bias};
  OK(AddExternalInitializers(options, tensor_names, values, 1));
  run_with("external weight of the caller", "external.onnx", options);
  api->ReleaseSessionOptions(options);

  OrtPrepackedWeightsContainer* container = NULL;
  OK(CreatePrepackedWeightsContainer(&container));
  options = options_of();
  for (int i = 0; i < 2; ++i) {
    OK(CreateSessionWithPrepackedWeightsContainer(env, path_of("mlp.onnx"), options, container,
                                                  &session));
    out = run_mlp(session, 2, NULL);
    print_floats(i == 0 ? "prepacked first" : "prepacked second", out);
    api->ReleaseValue(out);
    api->ReleaseSession(session);
  }
  api->ReleaseSessionOptions(options);
  api->ReleasePrepackedWeightsContainer(container);
  api->ReleaseValue(bias);
}

static void check_overridable(void) {
  OrtSession* session = session_of("overridable.onnx");
  OrtValue* out = run_mlp(session, 1, NULL);
  print_floats("default bias", out);
  api->ReleaseValue(out);
  float x[8];
  float b[] = {1, 2, 3, 4};
  fill(x, 8);
  OrtValue* in = borrowed(x, 32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 1, 8);
  OrtValue* bias = borrowed(b, 16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1, 4);
  const OrtValue* feeds[] = {bias, in};
  const char* names[] = {"b", "x"};
  const char* y[] = {"y"};
  out = NULL;
  OK(Run(session, NULL, names, feeds, 2, y, 1, &out));
  print_floats("fed bias", out);
  OrtValue* all[] = {out, in, bias};
  for (size_t i = 0; i < COUNT(all); ++i) api->ReleaseValue(all[i]);
  api->ReleaseSession(session);
}

static OrtStatus* run_loop(OrtSession* session, int64_t steps, const OrtRunOptions* run_options,
                           OrtValue** out) {
  static float x[64 * 64];
  OrtValue* count = NULL;
  OK(CreateTensorWithDataAsOrtValue(memory, &steps, 8, NULL, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
                                    &count));
  OrtValue* state = borrowed(x, sizeof(x), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 64, 64);
  const OrtValue* feeds[] = {count, state};
  const char* names[] = {"n", "x"};
  const char* y[] = {"y"};
  OrtStatus* status = api->Run(session, run_options, names, feeds, 2, y, 1, out);
  api->ReleaseValue(count);
  api->ReleaseValue(state);
  return status;
}

static void* terminate_soon(void* run_options) {
  usleep(100000);
  OK(RunOptionsSetTerminate(run_options));
  return NULL;
}

static void check_cancelling(void) {
  OrtSession* session = session_of("loop.onnx");
  OrtRunOptions* run_options = NULL;
  OrtValue* out = NULL;
  OK(CreateRunOptions(&run_options));
  OK(RunOptionsSetRunTag(run_options, "a tag"));
  OK(RunOptionsSetRunLogSeverityLevel(run_options, 4));
  OK(RunOptionsSetRunLogVerbosityLevel(run_options, 2));
  const char* tag = NULL;
  int severity = 0;
  int verbosity = 0;
  OK(RunOptionsGetRunTag(run_options, &tag));
  OK(RunOptionsGetRunLogSeverityLevel(run_options, &severity));
  OK(RunOptionsGetRunLogVerbosityLevel(run_options, &verbosity));
  printf("run options = %s %d %d\n", tag, severity, verbosity);
  pthread_t thread;
  pthread_create(&thread, NULL, terminate_soon, run_options);
  print_code("terminated while it ran", run_loop(session, INT64_C(1) << 40, run_options, &out));
  pthread_join(thread, NULL);
  print_code("terminated before it ran", run_loop(session, 3, run_options, &out));
  OK(RunOptionsUnsetTerminate(run_options));
  print_code("let run again", run_loop(session, 3, run_options, &out));
  api->ReleaseValue(out);
  out = NULL;
  print_code("no steps", run_loop(session, 0, run_options, &out));
  api->ReleaseValue(out);
  api->ReleaseRunOptions(run_options);
  api->ReleaseSession(session);
}

static OrtSession* shared_session;
static float expected[8];
static atomic_int wrong_results;

static void compare(OrtValue* out) {
  float* y = NULL;
  OK(GetTensorMutableData(out, (void**)&y));
  for (int i = 0; i < 8; ++i) {
    const float distance = y[i] - expected[i];
    if (distance > 1e-5f || distance < -1e-5f) atomic_fetch_add(&wrong_results, 1);
  }
  api->ReleaseValue(out);
}

static void* run_often(void* argument) {
  (void)argument;
  for (int i = 0; i < 100; ++i) compare(run_mlp(shared_session, 2, NULL));
  return NULL;
}

static void* create_and_drop(void* argument) {
  (void)argument;
  OrtSessionOptions* options = options_of();
  for (int i = 0; i < 20; ++i) {
    OrtSession* session = NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%s/mlp.onnx", models);
    OK(CreateSession(env, path, options, &session));
    compare(run_mlp(session, 2, NULL));
    api->ReleaseSession(session);
  }
  api->ReleaseSessionOptions(options);
  return NULL;
}

static void check_threads(void) {
  shared_session = session_of("mlp.onnx");
  OrtValue* out = run_mlp(shared_session, 2, NULL);
  float* y = NULL;
  OK(GetTensorMutableData(out, (void**)&y));
  memcpy(expected, y, sizeof(expected));
  api->ReleaseValue(out);
  pthread_t threads[8];
  for (size_t i = 0; i < COUNT(threads); ++i) {
    pthread_create(&threads[i], NULL, i % 4 == 3 ? create_and_drop : run_often, NULL);
  }
  for (size_t i = 0; i < COUNT(threads); ++i) pthread_join(threads[i], NULL);
  printf("threads = %d wrong\n", atomic_load(&wrong_results));
  api->ReleaseSession(shared_session);
}

static void check_binding(void) {
  OrtSession* session = session_of("mlp.onnx");
  OrtIoBinding* binding = NULL;
  float x[16];
  float y[8];
  fill(x, 16);
  OK(CreateIoBinding(session, &binding));
  OrtValue* in = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 8);
  OrtValue* out = borrowed(y, 32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 4);
  CODE("nothing bound", RunWithBinding(session, NULL, binding));
  OrtIoBinding* spoiled = NULL;
  OK(CreateIoBinding(session, &spoiled));
  REFUSED("bind an unknown input", BindInput(spoiled, "nothing", in));
  api->ReleaseIoBinding(spoiled);
  OK(BindInput(binding, "x", in));
  OK(BindOutput(binding, "y", out));
  OK(RunWithBinding(session, NULL, binding));
  print_floats("bound output", out);
  x[3] = 9;
  OK(RunWithBinding(session, NULL, binding));
  print_floats("bound output again", out);
  api->ClearBoundOutputs(binding);
  OK(BindOutputToDevice(binding, "y", memory));
  OK(SynchronizeBoundInputs(binding));
  OK(RunWithBinding(session, NULL, binding));
  OK(SynchronizeBoundOutputs(binding));
  OrtValue** values = NULL;
  size_t count = 0;
  OK(GetBoundOutputValues(binding, allocator, &values, &count));
  printf("bound values = %zu\n", count);
  print_floats("output bound to a device", values[0]);
  api->ReleaseValue(values[0]);
  OK(AllocatorFree(allocator, values));
  char* names = NULL;
  size_t* lengths = NULL;
  OK(GetBoundOutputNames(binding, allocator, &names, &lengths, &count));
  printf("bound names = %zu %.*s\n", count, (int)lengths[0], names);
  OK(AllocatorFree(allocator, names));
  OK(AllocatorFree(allocator, lengths));
  api->ClearBoundInputs(binding);
  api->ReleaseValue(in);
  api->ReleaseValue(out);
  api->ReleaseIoBinding(binding);
  api->ReleaseSession(session);
}

struct Async {
  atomic_int is_done;
  OrtStatus* status;
  OrtValue** outputs;
  size_t count;
};

static void finished(void* data, OrtValue** outputs, size_t count, OrtStatusPtr status) {
  struct Async* async = data;
  async->outputs = outputs;
  async->count = count;
  async->status = status;
  atomic_store(&async->is_done, 1);
}

static void check_async(void) {
  OrtSession* session = session_of("mlp.onnx");
  float x[16];
  fill(x, 16);
  OrtValue* in = borrowed(x, 64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, 2, 8);
  OrtValue* out = NULL;
  const OrtValue* feeds[] = {in};
  const char* names[] = {"x"};
  const char* y[] = {"y"};
  struct Async async = {0};
  OK(RunAsync(session, NULL, names, feeds, 1, y, 1, &out, finished, &async));
  while (!atomic_load(&async.is_done)) usleep(1000);
  printf("async = %d %zu\n", async.status == NULL, async.count);
  print_floats("async output", async.outputs[0]);
  api->ReleaseValue(out);
  api->ReleaseValue(in);
  api->ReleaseSession(session);
}

static void log_message(void* param, OrtLoggingLevel level, const char* category, const char* id,
                        const char* location, const char* message) {
  (void)level;
  if (category == NULL || id == NULL || location == NULL || message == NULL) exit(1);
  atomic_fetch_add((atomic_int*)param, 1);
}

static void check_logs(void) {
  atomic_int calls = 0;
  OrtSessionOptions* options = options_of();
  OK(SetUserLoggingFunction(options, log_message, &calls));
  OK(SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_VERBOSE));
  run_with("logged session", "mlp.onnx", options);
  printf("log = %d\n", atomic_load(&calls) > 0);
  char prefix[] = "/tmp/clients-profile-XXXXXX";
  if (mkdtemp(prefix) == NULL) exit(1);
  char file[sizeof(prefix) + 2];
  snprintf(file, sizeof(file), "%s/p", prefix);
  OK(EnableProfiling(options, file));
  OrtSession* session = NULL;
  OK(CreateSession(env, path_of("mlp.onnx"), options, &session));
  api->ReleaseValue(run_mlp(session, 2, NULL));
  char* written = NULL;
  OK(SessionEndProfiling(session, allocator, &written));
  printf("profile = %d %d\n", strncmp(written, file, strlen(file)) == 0, access(written, R_OK));
  unlink(written);
  rmdir(prefix);
  OK(AllocatorFree(allocator, written));
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
}

static void check_memory(void) {
  const char* name = NULL;
  int id = 0;
  OrtMemType type = OrtMemTypeDefault;
  OrtAllocatorType kind = OrtInvalidAllocator;
  OrtMemoryInfo* other = NULL;
  int equal = 7;
  OK(MemoryInfoGetName(memory, &name));
  OK(MemoryInfoGetId(memory, &id));
  OK(MemoryInfoGetMemType(memory, &type));
  OK(MemoryInfoGetType(memory, &kind));
  printf("memory = %s %d %d %d\n", name, id, (int)type, (int)kind);
  OK(CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &other));
  OK(CompareMemoryInfo(memory, other, &equal));
  printf("memory of other kinds = %d\n", equal == 0);
  api->ReleaseMemoryInfo(other);
  CODE("unknown memory", CreateMemoryInfo("NoSuch", OrtDeviceAllocator, 0, 0, &other));
  OrtSession* session = session_of("mlp.onnx");
  OrtAllocator* own = NULL;
  OK(CreateAllocator(session, memory, &own));
  void* bytes = NULL;
  OK(AllocatorAlloc(own, 100, &bytes));
  memset(bytes, 1, 100);
  OK(AllocatorFree(own, bytes));
  api->ReleaseAllocator(own);
  api->ReleaseSession(session);
}

void check_sessions(void) {
  check_metadata();
  check_options();
  check_weights();
  check_overridable();
  check_cancelling();
  check_threads();
  check_binding();
  check_async();
  check_logs();
  check_memory();
}
