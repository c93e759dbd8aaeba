#include "placement/budget.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace sardonyx {

namespace {

/// What ONNX Runtime answers with its code FAIL.
constexpr Code kFail = Code::Internal;
constexpr std::uint64_t kKib = 1024;

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 9> kUnits = {{{"B", 1},
                                         {"KB", 1000},
                                         {"KiB", kKib},
                                         {"MB", 1000 * 1000},
                                         {"MiB", kKib * kKib},
                                         {"GB", 1000 * 1000 * 1000},
                                         {"GiB", kKib * kKib * kKib},
                                         {"TB", std::uint64_t{1000} * 1000 * 1000 * 1000},
                                         {"TiB", kKib * kKib * kKib * kKib}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

Status no_size(std::string_view text) {
  return failure(Code::InvalidArgument,
                 "'{}' should be a size such as 512MiB, 1.5GB or a number of bytes", text);
}

Status bad_entry(std::string_view entry, const std::string& reason) {
  return failure(Code::InvalidArgument, "entry '{}' of {}: {}", entry, kBudgetKey, reason);
}

/// Takes entries apart at commas and semicolons outside parentheses; a statistics file ends at a
/// semicolon only.
std::vector<std::string_view> split_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? ';' : text[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    const std::string_view entry = text.substr(begin, i - begin);
    const auto equals = entry.find('=');
    const bool is_file =
        equals != std::string_view::npos && trimmed(entry.substr(0, equals)) == "statistics";
    const bool ends = i == text.size() || (c == ';' && (depth == 0 || is_file)) ||
                      (c == ',' && depth == 0 && !is_file);
    if (!ends) continue;
    entries.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return entries;
}

std::optional<BalancePolicy> policy_of(std::string_view word) {
  if (word == "sequential") return BalancePolicy::Sequential;
  if (word == "balanced") return BalancePolicy::Balanced;
  if (word == "fit") return BalancePolicy::Fit;
  return std::nullopt;
}

Status add_option(std::string_view entry, std::size_t equals, BudgetSettings& settings) {
  const std::string_view name = trimmed(entry.substr(0, equals));
  const std::string_view value = trimmed(entry.substr(equals + 1));
  if (name == "statistics") {
    if (value.empty()) return bad_entry(entry, "should name a file");
    if (!settings.statistics.empty()) return bad_entry(entry, "a statistics file is named before");
    settings.statistics = value;
    return {};
  }
  if (name == "policy") {
    const auto policy = policy_of(value);
    if (!policy) {
      return bad_entry(entry, fmt::format("policy should be sequential, balanced or fit, found "
                                          "'{}'",
                                          value));
    }
    settings.policy = *policy;
    return {};
  }
  const std::string guess = nearest(name, {"statistics", "policy"});
  return bad_entry(entry, fmt::format("expected DEVICE(SIZE), statistics=FILE or policy=WORD{}",
                                      guess.empty() ? "" : " (did you mean '" + guess + "'?)"));
}

Status add_device(std::string_view entry, BudgetSettings& settings) {
  const auto open = entry.find('(');
  if (open == std::string_view::npos) return bad_entry(entry, "expected '(' after the device");
  if (entry.back() != ')') return bad_entry(entry, "expected ')' at its end");
  const std::string_view device = trimmed(entry.substr(0, open));
  const std::string_view size = trimmed(entry.substr(open + 1, entry.size() - open - 2));
  if (device.empty()) return bad_entry(entry, "expected a device before '('");
  for (const DeviceBudget& other : settings.devices) {
    if (same_word(other.device, device)) return bad_entry(entry, "the device has a limit before");
  }
  DeviceBudget budget{std::string(device), std::nullopt};
  if (!size.empty()) {
    auto limit = parse_bytes(size);
    if (!limit.ok()) return bad_entry(entry, limit.status().message());
    budget.limit_bytes = *limit;
  }
  settings.devices.push_back(std::move(budget));
  return {};
}

/// A whole number, decimal or "0x...", as ONNX Runtime reads the limit.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  // "0x" alone is read as 0 there.
  if (is_hex && text.empty()) return 0;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const std::string_view size = trimmed(text);
  const auto digits = size.find_first_not_of("0123456789.");
  const std::string_view number = size.substr(0, digits);
  std::uint64_t unit_bytes = 1;
  if (digits != std::string_view::npos) {
    const std::string_view word = trimmed(size.substr(digits));
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const Unit& each) { return same_word(each.name, word); });
    if (unit == kUnits.end()) return no_size(text);
    unit_bytes = unit->bytes;
  }
  const auto point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error != std::errc() || end != whole.data() + whole.size()) return no_size(text);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(value, unit_bytes, &bytes)) return no_size(text);
  if (point == std::string_view::npos) return bytes;
  double fraction = 0;
  double weight = 0.1;
  const std::string_view decimals = number.substr(point + 1);
  if (decimals.empty()) return no_size(text);
  for (const char digit : decimals) {
    if (digit == '.') return no_size(text);
    fraction += (digit - '0') * weight;
    weight /= 10;
  }
  const auto more =
      static_cast<std::uint64_t>(std::llround(fraction * static_cast<double>(unit_bytes)));
  if (__builtin_add_overflow(bytes, more, &bytes)) return no_size(text);
  return bytes;
}

std::string describe_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kNames = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < kKib) return fmt::format("{} bytes", bytes);
  auto size = static_cast<double>(bytes) / kKib;
  std::size_t unit = 0;
  for (; size >= kKib && unit + 1 < kNames.size(); ++unit) size /= kKib;
  return fmt::format("{:.2f} {} ({} bytes)", size, kNames[unit], bytes);
}

Result<std::optional<BudgetSettings>> parse_budget(std::string_view text) {
  if (trimmed(text).empty()) return std::optional<BudgetSettings>();
  BudgetSettings settings;
  settings.key = kBudgetKey;
  for (const std::string_view entry : split_entries(text)) {
    if (entry.empty()) continue;
    const auto equals = entry.find('=');
    const bool is_option = equals < entry.find('(');
    SDX_TRY(is_option ? add_option(entry, equals, settings) : add_device(entry, settings));
  }
  if (settings.devices.empty()) {
    return failure(Code::InvalidArgument, "{} = '{}' should name a device: DEVICE(SIZE)",
                   kBudgetKey, text);
  }
  return std::optional(std::move(settings));
}

Result<std::optional<BudgetSettings>> parse_cuda_budget(std::string_view text) {
  if (text.empty()) return std::optional<BudgetSettings>();
  const auto comma = text.find(',');
  if (comma == std::string_view::npos || text.find(',', comma + 1) != std::string_view::npos) {
    return failure(Code::InvalidArgument,
                   "Invalid format for: {} : expecting comma separated fields (LIMIT_KIB,FILE, "
                   "either may be empty), found '{}'",
                   kCudaBudgetKey, text);
  }
  BudgetSettings settings;
  settings.key = kCudaBudgetKey;
  settings.devices.push_back({"cuda", std::nullopt});
  settings.statistics = text.substr(comma + 1);
  const std::string_view limit = text.substr(0, comma);
  if (limit.empty()) return std::optional(std::move(settings));
  const auto kib = whole_number(limit);
  if (!kib) {
    return failure(kFail, "Failed to parse value: \"{}\" of {}: expected a number of KiB", limit,
                   kCudaBudgetKey);
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*kib, kKib, &bytes)) {
    return failure(kFail, "Integer overflow: {} KiB of {} are more bytes than a number holds",
                   limit, kCudaBudgetKey);
  }
  settings.devices.front().limit_bytes = bytes;
  return std::optional(std::move(settings));
}

}  // namespace sardonyx
