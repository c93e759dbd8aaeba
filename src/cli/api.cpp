#include "cli/api.h"

namespace sardonyx::cli {

const OrtApi& api() {
  static const OrtApi& table = *OrtGetApiBase()->GetApi(ORT_API_VERSION);
  return table;
}

const SardonyxApi& own_api() {
  static const SardonyxApi& table = *SardonyxGetApi(SARDONYX_API_VERSION);
  return table;
}

Status check(OrtStatus* status) {
  if (status == nullptr) return {};
  Status failed(api().GetErrorMessage(status));
  api().ReleaseStatus(status);
  return failed;
}

OrtAllocator* allocator() {
  OrtAllocator* memory = nullptr;
  api().ReleaseStatus(api().GetAllocatorWithDefaultOptions(&memory));
  return memory;
}

std::string take_text(char* text) {
  if (text == nullptr) return {};
  std::string copy(text);
  OrtAllocator* memory = allocator();
  memory->Free(memory, text);
  return copy;
}

}  // namespace sardonyx::cli
