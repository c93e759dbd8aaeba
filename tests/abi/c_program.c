// A C program linked against the library: versions, no empty slot, statuses, harmless releases.
#include <stdio.h>
#include <string.h>

#include "sardonyx/c_api.h"

static int failures = 0;

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

static void no_slot_is_null(const char* name, const void* table, size_t bytes) {
  for (size_t slot = 0; slot < bytes / sizeof(void*); ++slot) {
    void* function = NULL;
    memcpy(&function, (const char*)table + slot * sizeof(void*), sizeof(void*));
    if (function) continue;
    fprintf(stderr, "FAILED: slot %zu of %s is null\n", slot, name);
    ++failures;
  }
}

int main(void) {
  const OrtApiBase* base = OrtGetApiBase();
  check(strcmp(base->GetVersionString(), "1.32.0") == 0, "the version string is 1.32.0");
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  check(api != NULL, "the newest API version is served");
  for (uint32_t version = 1; version <= ORT_API_VERSION; ++version) {
    check(base->GetApi(version) == api, "every older version is served by the same table");
  }
  check(base->GetApi(0) == NULL, "there is no version 0");
  check(base->GetApi(ORT_API_VERSION + 1) == NULL, "an unknown version is refused");
  no_slot_is_null("OrtApi", api, sizeof(*api));

  const SardonyxApi* ours = SardonyxGetApi(SARDONYX_API_VERSION);
  check(ours != NULL, "the own table is served");
  check(SardonyxGetApi(SARDONYX_API_VERSION + 1) == NULL, "its unknown versions are refused");
  if (ours) no_slot_is_null("SardonyxApi", ours, sizeof(*ours));

  OrtStatus* status = api->CreateStatus(ORT_EP_FAIL, "a message");
  check(api->GetErrorCode(status) == ORT_EP_FAIL, "a status keeps its code");
  check(strcmp(api->GetErrorMessage(status), "a message") == 0, "a status keeps its message");
  api->ReleaseStatus(status);

  api->ReleaseStatus(NULL);
  api->ReleaseEnv(NULL);
  api->ReleaseSession(NULL);
  api->ReleaseSessionOptions(NULL);
  api->ReleaseRunOptions(NULL);
  api->ReleaseValue(NULL);
  api->ReleaseMemoryInfo(NULL);
  api->ReleaseTypeInfo(NULL);
  api->ReleaseTensorTypeAndShapeInfo(NULL);
  api->ReleaseIoBinding(NULL);
  api->ReleaseKeyValuePairs(NULL);
  api->ReleaseCUDAProviderOptions(NULL);

  status = OrtSessionOptionsAppendExecutionProvider_CPU(NULL, 0);
  check(api->GetErrorCode(status) == ORT_INVALID_ARGUMENT, "null options are refused");
  api->ReleaseStatus(status);
  return failures != 0;
}
