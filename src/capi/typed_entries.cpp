#include "capi/typed_entries.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text.h"

namespace sardonyx::capi {

namespace {

constexpr const char* kPrefix = "AddSessionConfigEntry: ";

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Result<bool> to_bool(const std::string& key, const std::string& value) {
  const std::string word = lower(value);
  if (word == "1" || word == "true") return true;
  if (word == "0" || word == "false") return false;
  return failure(Code::InvalidArgument,
                 "{}value for '{}' must be a boolean ('0'/'1' or 'true'/'false'); got '{}'",
                 kPrefix, key, value);
}

/// Takes what strtol takes: space and a plus sign before the digits.
Result<int> to_int(const std::string& key, const std::string& value) {
  if (value.empty()) {
    return failure(Code::InvalidArgument, "{}value for '{}' must be an integer; got empty string",
                   kPrefix, key);
  }
  int number = 0;
  const char* begin = value.data();
  const char* end = begin + value.size();
  while (begin != end && std::isspace(static_cast<unsigned char>(*begin)) != 0) ++begin;
  if (begin != end && *begin == '+' && begin + 1 != end && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end) return number;
  return failure(Code::InvalidArgument, "{}value for '{}' must be a base-10 int32; got '{}'",
                 kPrefix, key, value);
}

Status set_optimization_level(OrtSessionOptions& options, const std::string& value) {
  constexpr std::pair<const char*, int> kLevels[] = {{"disable_all", 0},
                                                     {"enable_basic", 1},
                                                     {"enable_extended", 2},
                                                     {"enable_layout", 3},
                                                     {"enable_all", 99}};
  for (const auto& [name, level] : kLevels) {
    if (lower(value) != name) continue;
    options.options.optimization_level = level;
    return {};
  }
  return failure(Code::InvalidArgument,
                 "{}value for 'graph_optimization_level' must be one of "
                 "disable_all/enable_basic/enable_extended/enable_layout/enable_all; got '{}'",
                 kPrefix, value);
}

Status set_execution_mode(OrtSessionOptions& options, const std::string& value) {
  const std::string mode = lower(value);
  if (mode != "sequential" && mode != "parallel") {
    return failure(Code::InvalidArgument,
                   "{}value for 'execution_mode' must be 'sequential' or 'parallel'; got '{}'",
                   kPrefix, value);
  }
  options.execution_mode = mode == "parallel" ? ORT_PARALLEL : ORT_SEQUENTIAL;
  return {};
}

Status set_own_threads(OrtSessionOptions& options, bool value) {
  if (value && options.options.use_shared_pool) {
    return failure(Code::InvalidArgument,
                   "{}cannot set 'use_per_session_threads' back to true after it was disabled",
                   kPrefix);
  }
  options.options.use_shared_pool = !value;
  return {};
}

struct BoolEntry {
  const char* key;
  Status (*set)(OrtSessionOptions& options, bool value);
};
constexpr BoolEntry kBools[] = {
    {"session.enable_mem_pattern",
     [](OrtSessionOptions& options, bool value) { return options.mem_pattern = value, Status(); }},
    {"session.enable_cpu_mem_arena",
     [](OrtSessionOptions& options, bool value) { return options.cpu_arena = value, Status(); }},
    {"session.use_per_session_threads", set_own_threads},
    {"session.use_deterministic_compute",
     [](OrtSessionOptions& options, bool value) {
       return options.deterministic = value, Status();
     }},
};

Status set_severity(OrtSessionOptions& options, int value) {
  options.log_level = value;
  return {};
}

struct IntEntry {
  const char* key;
  Status (*set)(OrtSessionOptions& options, int value);
};
constexpr IntEntry kInts[] = {
    {"session.intra_op_num_threads",
     [](OrtSessionOptions& options, int value) {
       return options.options.thread_count = std::max(0, value), Status();
     }},
    // Nodes run one after the other, each on all threads: there is no second pool to size.
    {"session.inter_op_num_threads", [](OrtSessionOptions&, int) { return Status(); }},
    {"session.log_severity_level", set_severity},
    {"session.log_verbosity_level", [](OrtSessionOptions&, int) { return Status(); }},
};

struct TextEntry {
  const char* key;
  Status (*set)(OrtSessionOptions& options, const std::string& value);
};
constexpr TextEntry kTexts[] = {
    // Its value is where traces go; an empty one turns profiling off.
    {"session.enable_profiling",
     [](OrtSessionOptions& options, const std::string& value) {
       options.options.is_profiling = !value.empty();
       if (!value.empty()) options.options.profile_prefix = value;
       return Status();
     }},
    {"session.graph_optimization_level", set_optimization_level},
    {"session.execution_mode", set_execution_mode},
    {"session.log_id",
     [](OrtSessionOptions& options, const std::string& value) {
       return options.options.log_id = value, Status();
     }},
    {"session.optimized_model_filepath",
     [](OrtSessionOptions& options, const std::string& value) {
       return options.options.optimized_model_path = value, Status();
     }},
};

}  // namespace

Status check_entry(std::string_view key, std::string_view value) {
  constexpr size_t kKeyLengthMax = 1024;
  constexpr size_t kValueLengthMax = 8192;
  if (key.empty() || key.size() > kKeyLengthMax) {
    return failure(Code::InvalidArgument, "Config key is empty or longer than maximum length {}",
                   kKeyLengthMax);
  }
  if (value.size() > kValueLengthMax) {
    return failure(Code::InvalidArgument, "Config value is longer than maximum length: {}",
                   kValueLengthMax);
  }
  return {};
}

Result<bool> set_typed_entry(OrtSessionOptions& options, const std::string& key,
                             const std::string& value) {
  for (const BoolEntry& entry : kBools) {
    if (key != entry.key) continue;
    SDX_ASSIGN(const bool parsed, to_bool(key, value));
    SDX_TRY(entry.set(options, parsed));
    return true;
  }
  for (const IntEntry& entry : kInts) {
    if (key != entry.key) continue;
    SDX_ASSIGN(const int parsed, to_int(key, value));
    SDX_TRY(entry.set(options, parsed));
    return true;
  }
  for (const TextEntry& entry : kTexts) {
    if (key != entry.key) continue;
    SDX_TRY(entry.set(options, value));
    return true;
  }
  return false;
}

}  // namespace sardonyx::capi
