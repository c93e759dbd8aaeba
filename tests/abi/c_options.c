// What session options, threads and values take through the C interface, and what they refuse.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/c_api.h"

static int failures = 0;
static const OrtApi* api;

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

static void is_ok(OrtStatus* status, const char* what) {
  if (status) fprintf(stderr, "%s\n", api->GetErrorMessage(status));
  check(!status, what);
  api->ReleaseStatus(status);
}

// The message holds `text`; an empty one asks for any error.
static void fails(OrtStatus* status, const char* text, const char* what) {
  check(status != NULL, what);
  if (status && !strstr(api->GetErrorMessage(status), text)) {
    fprintf(stderr, "FAILED: %s: %s\n", what, api->GetErrorMessage(status));
    ++failures;
  }
  api->ReleaseStatus(status);
}

static void fill(char* text, size_t length) {
  memset(text, 'k', length);
  text[length] = '\0';
}

static void check_entries(OrtSessionOptions* options) {
  static char key[1026];
  static char value[8194];
  int has = 1;
  fill(key, 1024);
  fill(value, 8192);
  is_ok(api->AddSessionConfigEntry(options, key, value), "the longest entry is taken");
  fill(key, 1025);
  fails(api->AddSessionConfigEntry(options, key, "1"), "1024", "a longer key is refused");
  fill(value, 8193);
  fails(api->AddSessionConfigEntry(options, "key", value), "8192", "a longer value is refused");
  fails(api->AddSessionConfigEntry(options, "session.graph_optimization_level", "bogus"),
        "AddSessionConfigEntry: value for 'graph_optimization_level' must be one of "
        "disable_all/enable_basic/enable_extended/enable_layout/enable_all; got 'bogus'",
        "an unknown level is refused");
  fails(api->AddSessionConfigEntry(options, "session.execution_mode", "x"),
        "AddSessionConfigEntry: value for 'execution_mode' must be 'sequential' or 'parallel'; "
        "got 'x'",
        "an unknown mode is refused");
  fails(api->AddSessionConfigEntry(options, "session.enable_mem_pattern", "2"),
        "AddSessionConfigEntry: value for 'session.enable_mem_pattern' must be a boolean "
        "('0'/'1' or 'true'/'false'); got '2'",
        "a number is no boolean");
  fails(api->AddSessionConfigEntry(options, "session.intra_op_num_threads", "abc"),
        "AddSessionConfigEntry: value for 'session.intra_op_num_threads' must be a base-10 int32; "
        "got 'abc'",
        "a word is no number");
  is_ok(api->AddSessionConfigEntry(options, "session.use_per_session_threads", "0"), "off");
  fails(api->AddSessionConfigEntry(options, "session.use_per_session_threads", "1"),
        "AddSessionConfigEntry: cannot set 'use_per_session_threads' back to true after it was "
        "disabled",
        "own threads do not come back");
  is_ok(api->AddSessionConfigEntry(options, "session.execution_mode", "parallel"), "a mode");
  is_ok(api->HasSessionConfigEntry(options, "session.execution_mode", &has), "asking works");
  check(has == 0, "a typed entry is not stored");
  ExecutionMode mode = ORT_SEQUENTIAL;
  is_ok(api->GetSessionExecutionMode(options, &mode), "the mode can be read");
  check(mode == ORT_PARALLEL, "a typed entry sets the option");
}

static void check_vendor_options(OrtSessionOptions* options) {
  OrtAllocator* allocator = NULL;
  is_ok(api->GetAllocatorWithDefaultOptions(&allocator), "there is an allocator");
  OrtCUDAProviderOptionsV2* cuda = NULL;
  is_ok(api->CreateCUDAProviderOptions(&cuda), "options of CUDA are made");
  const char* keys[] = {"device_id", "arena_extend_strategy"};
  const char* values[] = {"1", "kSameAsRequested"};
  is_ok(api->UpdateCUDAProviderOptions(cuda, keys, values, 2), "and changed");
  char* text = NULL;
  is_ok(api->GetCUDAProviderOptionsAsString(cuda, allocator, &text), "and printed");
  check(text && strcmp(text, "arena_extend_strategy=kSameAsRequested;device_id=1") == 0, "as set");
  is_ok(api->AllocatorFree(allocator, text), "the text is freed");
  void* stream = NULL;
  is_ok(api->UpdateCUDAProviderOptionsWithValue(cuda, "user_compute_stream", &stream), "a stream");
  is_ok(api->GetCUDAProviderOptionsByName(cuda, "user_compute_stream", &stream), "is kept");
  check(stream == &stream, "the stream is the one that was set");
  fails(api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda),
        "load the plugin instead", "appending says what to do");
  api->ReleaseCUDAProviderOptions(cuda);

  OrtROCMProviderOptions* rocm = NULL;
  is_ok(api->CreateROCMProviderOptions(&rocm), "options of ROCm are made");
  is_ok(api->UpdateROCMProviderOptions(rocm, keys, values, 1), "and changed");
  check(rocm && rocm->device_id == 1, "in the struct that everyone sees");
  fails(api->UpdateROCMProviderOptions(rocm, keys + 1, values + 1, 1), "number",
        "a word is refused");
  api->ReleaseROCMProviderOptions(rocm);

  OrtTensorRTProviderOptionsV2* tensorrt = NULL;
  is_ok(api->CreateTensorRTProviderOptions(&tensorrt), "options of TensorRT are made");
  fails(api->SessionOptionsAppendExecutionProvider_TensorRT_V2(options, tensorrt), "plugin", "no");
  api->ReleaseTensorRTProviderOptions(tensorrt);
  api->ReleaseTensorRTProviderOptions(NULL);
}

static void check_opaque(void) {
  struct {
    int a, b;
  } given = {1, 2}, back = {0, 0};
  OrtValue* value = NULL;
  is_ok(api->CreateOpaqueValue("domain", "pair", &given, sizeof(given), &value), "it is made");
  is_ok(api->GetOpaqueValue("domain", "pair", value, &back, sizeof(back)), "and read");
  check(back.a == 1 && back.b == 2, "its bytes come back");
  fails(api->GetOpaqueValue("domain", "other", value, &back, sizeof(back)), "opaque(domain,pair)",
        "another type is refused");
  fails(api->GetOpaqueValue("domain", "pair", value, &back, 1), "bytes", "another size is refused");
  int is_tensor = 1;
  is_ok(api->IsTensor(value, &is_tensor), "it may be asked");
  check(is_tensor == 0, "it is no tensor");
  api->ReleaseValue(value);
}

struct work {
  OrtThreadWorkerFn run;
  void* argument;
  pthread_t thread;
};

static int started = 0;
static int joined = 0;

static void* run_work(void* given) {
  struct work* work = given;
  work->run(work->argument);
  return NULL;
}

static OrtCustomThreadHandle start_thread(void* options, OrtThreadWorkerFn run, void* argument) {
  check(options == &started, "the creation options arrive");
  struct work* work = malloc(sizeof(*work));
  work->run = run;
  work->argument = argument;
  if (pthread_create(&work->thread, NULL, run_work, work) != 0) return NULL;
  ++started;
  return (OrtCustomThreadHandle)work;
}

static OrtCustomThreadHandle start_none(void* options, OrtThreadWorkerFn run, void* argument) {
  (void)options;
  (void)run;
  (void)argument;
  return NULL;
}

static void join_thread(OrtCustomThreadHandle thread) {
  struct work* work = (struct work*)thread;
  pthread_join(work->thread, NULL);
  free(work);
  ++joined;
}

// An ONNX model of one Relu from x to y, four floats each: made with the onnx package.
static const unsigned char kRelu[] = {
    0x08, 0x09, 0x3a, 0x33, 0x0a, 0x0c, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x79, 0x22, 0x04, 0x52,
    0x65, 0x6c, 0x75, 0x12, 0x01, 0x67, 0x5a, 0x0f, 0x0a, 0x01, 0x78, 0x12, 0x0a, 0x0a, 0x08,
    0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x04, 0x62, 0x0f, 0x0a, 0x01, 0x79, 0x12, 0x0a,
    0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x04, 0x42, 0x02, 0x10, 0x11};

static void check_threads(const OrtEnv* env) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  is_ok(api->CreateSessionOptions(&options), "options");
  is_ok(api->SetIntraOpNumThreads(options, 3), "three threads");
  is_ok(api->SessionOptionsSetCustomCreateThreadFn(options, start_thread), "a function");
  is_ok(api->SessionOptionsSetCustomThreadCreationOptions(options, &started), "its options");
  fails(api->CreateSessionFromArray(env, kRelu, sizeof(kRelu), options, &session), "joins",
        "threads that nobody joins are refused");
  is_ok(api->SessionOptionsSetCustomJoinThreadFn(options, join_thread), "the other function");
  is_ok(api->CreateSessionFromArray(env, kRelu, sizeof(kRelu), options, &session), "a session");
  check(started == 2 && joined == 0, "it starts two threads beside the caller's");
  api->ReleaseSession(session);
  check(joined == 2, "and joins them");
  is_ok(api->SessionOptionsSetCustomCreateThreadFn(options, start_none), "one that gives none");
  fails(api->CreateSessionFromArray(env, kRelu, sizeof(kRelu), options, &session), "none",
        "a thread that is not made is an error");
  api->ReleaseSessionOptions(options);
}

int main(void) {
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  is_ok(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env), "an environment");
  is_ok(api->CreateSessionOptions(&options), "options");
  check_entries(options);
  check_vendor_options(options);
  api->ReleaseSessionOptions(options);
  check_opaque();
  check_threads(env);
  api->ReleaseEnv(env);
  return failures == 0 ? 0 : 1;
}
