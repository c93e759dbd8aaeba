#include "cli/summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>


namespace sardonyx::cli {

namespace {

constexpr std::int64_t kFirstCount = 8;

using Kind = ElementType::Kind;

Json complex_at(const Array& array, std::int64_t index) {
  const auto place = array.bytes.data() + index * array.type->bits / 8;
  if (array.type->bits == 64) {
    float parts[2];
    std::memcpy(parts, place, sizeof(parts));
    return Json::array({parts[0], parts[1]});
  }
  double parts[2];
  std::memcpy(parts, place, sizeof(parts));
  return Json::array({parts[0], parts[1]});
}

/// An element as JSON: 64-bit integers are exact.
Json element_at(const Array& array, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  if (array.type->kind == Kind::Text) return array.texts[at];
  if (array.type->kind == Kind::Complex) return complex_at(array, index);
  if (array.type->bits == 64 && array.type->kind != Kind::Float) {
    std::uint64_t raw = 0;
    std::memcpy(&raw, array.bytes.data() + at * 8, sizeof(raw));
    return array.type->kind == Kind::Signed ? Json(static_cast<std::int64_t>(raw)) : Json(raw);
  }
  const double number = number_at(array, index).value_or(0);
  if (array.type->kind == Kind::Bool) return number != 0;
  if (array.type->kind == Kind::Float) return number;
  return static_cast<std::int64_t>(number);
}

std::string element_text(const Array& array, std::int64_t index) {
  if (array.type->kind == Kind::Float) return fmt::format("{:.6g}", *number_at(array, index));
  return printable(
      element_at(array, index).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Summary summarize(const Array& array) {
  Summary summary;
  summary.has_numbers = array.type->kind != Kind::Text && array.type->kind != Kind::Complex &&
                        array.type->kind != Kind::Code;
  if (!summary.has_numbers) return summary;
  double sum = 0;
  const std::int64_t count = array.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = number_at(array, i).value_or(0);
    if (!std::isfinite(number)) {
      ++(std::isnan(number) ? summary.nan_count : summary.infinite_count);
      continue;
    }
    const bool is_first = summary.finite_count++ == 0;
    summary.least = is_first ? number : std::min(summary.least, number);
    summary.most = is_first ? number : std::max(summary.most, number);
    sum += number;
  }
  if (summary.finite_count > 0) summary.mean = sum / static_cast<double>(summary.finite_count);
  return summary;
}

Json summary_json(const std::string& name, const Array& array) {
  const Summary summary = summarize(array);
  const bool has_range = summary.finite_count > 0;
  Json first = Json::array();
  for (std::int64_t i = 0; i < std::min(kFirstCount, array.element_count()); ++i) {
    first.push_back(element_at(array, i));
  }
  return {{"name", name},
          {"type", array.type_name()},
          {"shape", array.dims},
          {"min", has_range ? Json(summary.least) : Json()},
          {"mean", has_range ? Json(summary.mean) : Json()},
          {"max", has_range ? Json(summary.most) : Json()},
          {"nan_count", summary.nan_count},
          {"infinite_count", summary.infinite_count},
          {"first", first}};
}

std::string summary_text(const std::string& name, const Array& array) {
  const Summary summary = summarize(array);
  std::string text =
      fmt::format("  {}  {} {}\n", printable(name), array.type_name(), array.shape_text());
  if (summary.finite_count > 0) {
    text += fmt::format("    min {:.6g}  mean {:.6g}  max {:.6g}", summary.least, summary.mean,
                        summary.most);
    if (summary.nan_count > 0) text += fmt::format("  NaN {}", summary.nan_count);
    if (summary.infinite_count > 0) text += fmt::format("  infinite {}", summary.infinite_count);
    text += '\n';
  } else if (summary.nan_count + summary.infinite_count > 0) {
    text += fmt::format("    NaN {}  infinite {}\n", summary.nan_count, summary.infinite_count);
  }
  const std::int64_t count = array.element_count();
  if (count == 0) return text + "    empty\n";
  std::vector<std::string> first;
  for (std::int64_t i = 0; i < std::min(kFirstCount, count); ++i) {
    first.push_back(element_text(array, i));
  }
  return text + fmt::format("    {}{}\n", join(first, " "), count > kFirstCount ? " ..." : "");
}

std::string printable(const std::string& text) {
  std::string result = text;
  for (char& letter : result) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f) letter = code == '\n' || code == '\t' ? ' ' : '?';
  }
  return result;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (std::fabs(bytes) >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace sardonyx::cli
