#include "cli/ctx_gen/qnn_options.h"

#include <algorithm>

namespace sardonyx::cli::ctx_gen {

namespace {

struct Row {
  const char* key;
  /// The values that are taken, separated by commas; "" = any.
  const char* values;
  const char* fallback;
  const char* meaning;
};

constexpr Row kRows[] = {
    {"backend_type", "", "unset",
     "which backend: htp, cpu, gpu, saver; not together with backend_path"},
    {"backend_path", "", "unset", "the backend's library by its path"},
    {"vtcm_mb", "", "0", "megabytes of the processor's fast memory (VTCM); 0: all there is"},
    {"soc_model", "", "0", "number of the chip in QNN's list; 0: not known"},
    {"htp_arch", "", "0", "architecture of the HTP: 0 (not known), 68, 69, 73, 75, ..."},
    {"htp_graph_finalization_optimization_mode", "0,1,2,3", "0",
     "0: as QNN does it; 1: quick to prepare, slower to run; 2: the reverse; 3: most of that"},
    {"enable_htp_fp16_precision", "0,1", "1", "1: float32 models are computed in float16"},
    {"offload_graph_io_quantization", "0,1", "1",
     "1: quantizing inputs and widening outputs is left to another provider"},
    {"enable_htp_spill_fill_buffer", "0,1", "unset",
     "1: one spill buffer for all models; max_size of the last one is written into the others, so "
     "that they can be loaded in any order"},
    {"extended_udma", "0,1", "0", "1: use the extended UDMA of newer HTPs"},
};

std::vector<std::string> values_of(const Row& row) {
  std::vector<std::string> values;
  std::string value;
  for (const char* letter = row.values; *letter != '\0'; ++letter) {
    if (*letter == ',') {
      values.push_back(std::move(value));
      value.clear();
    } else {
      value += *letter;
    }
  }
  if (!value.empty()) values.push_back(std::move(value));
  return values;
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  for (const Row& row : kRows) keys.emplace_back(row.key);
  return keys;
}

bool has(const Entries& entries, std::string_view key) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

}  // namespace

Status check_qnn_options(const Entries& entries) {
  for (const auto& [key, value] : entries) {
    const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Row& it) { return key == it.key; });
    if (row == std::end(kRows)) {
      return failure("Wrong key type entered. Choose from options: [{}]. Found '{}'{}.",
                     join(all_keys(), ", "), key, hint(key, all_keys()));
    }
    const std::vector<std::string> values = values_of(*row);
    if (values.empty() || std::find(values.begin(), values.end(), value) != values.end()) continue;
    return failure("Wrong value for {}. select from: {}. Found '{}'.", key, join(values, ", "),
                   value);
  }
  if (has(entries, "backend_type") && has(entries, "backend_path")) {
    return failure("Give backend_type or backend_path, not both.");
  }
  return {};
}

std::string qnn_options_help() {
  std::string text = "Options of -e qnn (-i); in brackets what holds when nothing is given:\n";
  for (const Row& row : kRows) {
    const std::string values =
        *row.values == '\0' ? "" : fmt::format(" {}", join(values_of(row), "|"));
    text += fmt::format("  {}{} [{}]\n      {}\n", row.key, values, row.fallback, row.meaning);
  }
  return text;
}

}  // namespace sardonyx::cli::ctx_gen
