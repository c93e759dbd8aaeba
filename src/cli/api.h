#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/outcome.h"
#include "sardonyx/c_api.h"

namespace sardonyx::cli {

using Json = nlohmann::ordered_json;

const OrtApi& api();
const SardonyxApi& own_api();

/// The message of a failed call, and its release; success for null.
Status check(OrtStatus* status);

/// Releases a handle by the function of the table that `member` names.
template <auto member>
struct Release {
  template <typename Handle>
  void operator()(Handle* handle) const {
    (api().*member)(handle);
  }
};
using Env = std::unique_ptr<OrtEnv, Release<&OrtApi::ReleaseEnv>>;
using Session = std::unique_ptr<OrtSession, Release<&OrtApi::ReleaseSession>>;
using SessionOptions = std::unique_ptr<OrtSessionOptions, Release<&OrtApi::ReleaseSessionOptions>>;
using RunOptions = std::unique_ptr<OrtRunOptions, Release<&OrtApi::ReleaseRunOptions>>;
using Value = std::unique_ptr<OrtValue, Release<&OrtApi::ReleaseValue>>;
using TypeInfo = std::unique_ptr<OrtTypeInfo, Release<&OrtApi::ReleaseTypeInfo>>;
using TensorInfo =
    std::unique_ptr<OrtTensorTypeAndShapeInfo, Release<&OrtApi::ReleaseTensorTypeAndShapeInfo>>;
using MemoryInfo = std::unique_ptr<OrtMemoryInfo, Release<&OrtApi::ReleaseMemoryInfo>>;

/// The allocator whose memory take_text() frees.
OrtAllocator* allocator();
/// A copy of a text that the library allocated, which is freed.
std::string take_text(char* text);

/// What one of the library's Describe functions says, parsed.
template <typename Function, typename... Arguments>
Result<Json> describe(Function function, Arguments... arguments) {
  char* text = nullptr;
  SDX_TRY(check(function(arguments..., allocator(), &text)));
  return Json::parse(take_text(text), nullptr, false);
}

}  // namespace sardonyx::cli
