#include "unit/plugin_host/tiny_session.h"
#include "unit/temporary_folder.h"

namespace sardonyx {

namespace {

/// An environment that writes what it logs to a text, which has to live longer.
OrtEnv* logging_env(std::string& text) {
  OrtEnv* env = nullptr;
  check_ok(api().CreateEnvWithCustomLogger(
      [](void* target, OrtLoggingLevel, const char*, const char*, const char*, const char* line) {
        *static_cast<std::string*>(target) += line;
      },
      &text, ORT_LOGGING_LEVEL_WARNING, "test", &env));
  return env;
}

/// The trace of two runs on a plugin of that name, and what was logged.
std::string trace_of(const std::string& name, std::string& logged) {
  const Env env(logging_env(logged));
  const TemporaryFolder folder;
  REQUIRE(env.add(name) == "");
  std::string text;
  {
    const Options options;
    REQUIRE(options.append(env, env.devices(name)) == "");
    check_ok(api().EnableProfiling(options.options, (folder / "profile").c_str()));
    const LoadedModel model(env, options);
    REQUIRE(model.error == "");
    for (int i = 0; i < 2; ++i) {
      std::vector<float> results;
      CHECK(model.run({1, 2}, results) == "");
      CHECK(results == kExpected);
    }
    OrtAllocator* allocator = nullptr;
    check_ok(api().GetAllocatorWithDefaultOptions(&allocator));
    char* path = nullptr;
    check_ok(api().SessionEndProfiling(model.session, allocator, &path));
    text = read_text(path);
    check_ok(api().AllocatorFree(allocator, path));
    // What runs after the end is nobody's to time.
    std::vector<float> results;
    CHECK(model.run({1, 2}, results) == "");
  }
  CHECK(env.remove(name) == "");
  return text;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a plugin's own events stand in the session's profile") {
  for (const std::string name : {"tiny.profile", "tiny.kernels.profile"}) {
    CAPTURE(name);
    std::string logged;
    const std::string text = trace_of(name, logged);
    CHECK(logged == "");
    // Two products in each of two runs.
    CHECK(count_of(text, R"("cat":"Kernel")") == 4);
    CHECK(count_of(text, R"("name":"tiny \")") == 4);
    CHECK(count_of(text, R"("args":{"parent_provider":")" + name) == 4);
    CHECK(count_of(text, R"("tid":7,"dur":3)") == 4);
    CHECK(count_of(text, "stray") == 0);
  }
}

TEST_CASE("a profiler that goes wrong is reported, and the session goes on") {
  const std::vector<std::array<const char*, 2>> rows = {{"create", "no profiler today"},
                                                        {"incomplete", "an incomplete profiler"},
                                                        {"start", "thrown by StartProfiling"},
                                                        {"stop", "thrown by StopEvent"},
                                                        {"end", "no end today"}};
  for (const auto& [fault, part] : rows) {
    const std::string name = std::string("tiny.profile.") + fault;
    std::string logged;
    const std::string text = trace_of(name, logged);
    CAPTURE(logged);
    CHECK_MESSAGE(contains(logged, "'" + name + "'"), fault);
    CHECK_MESSAGE(contains(logged, part), fault);
    CHECK(count_of(text, R"("cat":"Kernel")") == 0);
    CHECK(count_of(text, R"("cat":"Node")") > 0);
  }
}

}  // namespace sardonyx
