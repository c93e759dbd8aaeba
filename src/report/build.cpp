#include <array>

#include "base/cpu_features.h"
#include "report/json.h"
#include "report/report.h"
#include "session/load.h"

namespace sardonyx {

namespace {

struct OptionRow {
  const char* scope;
  const char* key;
  const char* type;
  const char* fallback;
  const char* sentence;
};

constexpr OptionRow kOptions[] = {
#define OPTION(scope, key, type, fallback, sentence) {scope, key, type, fallback, sentence},
#include "session/options.inc"
#undef OPTION
};

constexpr const char* kCompiler =
#if defined(__clang__)
    "clang " __clang_version__;
#else
    "gcc " __VERSION__;
#endif

}  // namespace

const char* library_version() { return SARDONYX_VERSION; }

std::string describe_build() {
  Json supported = Json::array();
  for (const Isa isa : {Isa::Generic, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (isa_supported(isa)) supported.push_back(isa_name(isa));
  }
  Json opsets = Json::object();
  for (const auto& [domain, version] : known_opsets()) opsets[domain] = version;
  return to_text({{"name", "Sardonyx"},
                  {"version", library_version()},
                  {"compiler", kCompiler},
                  {"isa", {{"active", isa_name(active_isa())}, {"supported", supported}}},
                  {"opsets", opsets}});
}

std::string describe_options() {
  Json rows = Json::array();
  for (const OptionRow& row : kOptions) {
    rows.push_back({{"key", row.key},
                    {"scope", row.scope},
                    {"type", row.type},
                    {"default", row.fallback},
                    {"description", row.sentence}});
  }
  return to_text(rows);
}

}  // namespace sardonyx
