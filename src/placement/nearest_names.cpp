#include "placement/nearest_names.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kBytesMax = std::size_t{4} << 20;
constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kPartsMax = 4;
constexpr std::size_t kPartBytesMax = 96;
constexpr std::size_t kDifferentMax = 2048;
constexpr std::size_t kDigitsMax = 9;

std::string_view without_slashes(std::string_view text) {
  const std::size_t begin = text.find_first_not_of('/');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of('/') - begin + 1);
}

char separator_of(std::string_view text) {
  return text.find('/') != std::string_view::npos ? '/' : '.';
}

}  // namespace

NearestNames::NearestNames(std::vector<std::string> patterns)
    : bytes_left_(kBytesMax), parts_(kPartsMax + 1) {
  for (std::string& pattern : patterns) {
    Wanted wanted;
    const std::string_view core = without_slashes(pattern);
    wanted.part_count =
        1 + static_cast<std::size_t>(std::count(core.begin(), core.end(), separator_of(core)));
    // "layers.5" is one part of a path with slashes.
    if (separator_of(core) == '.') wanted.part_count = 1;
    const std::size_t last = pattern.find_last_of("0123456789");
    if (last != std::string::npos && pattern.size() <= kNameBytesMax) {
      const std::size_t before = pattern.find_last_not_of("0123456789", last);
      if (before != std::string::npos) {
        wanted.head = pattern.substr(0, before + 1);
        wanted.tail = pattern.substr(last + 1);
      }
    }
    wanted.pattern = std::move(pattern);
    wanted_.push_back(std::move(wanted));
  }
}

void NearestNames::add(std::string_view name) {
  if (name.empty() || bytes_left_ == 0) return;
  name = name.substr(0, std::min(kNameBytesMax, bytes_left_));
  bytes_left_ -= name.size();
  if (first_name_.empty()) first_name_ = name;
  for (Wanted& wanted : wanted_) look_for_number(wanted, name);
  keep_parts(name);
}

void NearestNames::look_for_number(Wanted& wanted, std::string_view name) {
  if (wanted.head.size() < 2) return;
  const std::size_t at = name.find(wanted.head);
  if (at == std::string_view::npos) return;
  const std::string_view rest = name.substr(at + wanted.head.size());
  std::uint64_t number = 0;
  const char* const limit = rest.data() + std::min(rest.size(), kDigitsMax);
  const auto [end, error] = std::from_chars(rest.data(), limit, number);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || digits == 0 || !rest.substr(digits).starts_with(wanted.tail)) return;
  wanted.low = wanted.has_numbers ? std::min(wanted.low, number) : number;
  wanted.high = wanted.has_numbers ? std::max(wanted.high, number) : number;
  wanted.has_numbers = true;
}

void NearestNames::keep_parts(std::string_view name) {
  const char separator = separator_of(name);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != separator && (i == 0 || name[i - 1] == separator)) begins.push_back(i);
  }
  for (const Wanted& wanted : wanted_) {
    const std::size_t count = wanted.part_count;
    if (count > kPartsMax || count > begins.size() || parts_[count].size() >= kDifferentMax) {
      continue;
    }
    for (std::size_t i = 0; i + count <= begins.size(); ++i) {
      const bool is_last = i + count == begins.size();
      const std::size_t end = is_last ? name.size() : begins[i + count] - 1;
      if (end - begins[i] > kPartBytesMax) continue;
      parts_[count].emplace(name.substr(begins[i], end - begins[i]));
      if (parts_[count].size() >= kDifferentMax) break;
    }
  }
}

std::string NearestNames::hint(std::size_t pattern) const {
  const Wanted& wanted = wanted_[pattern];
  if (wanted.has_numbers) {
    return fmt::format("in the model's names the number of '{}' goes from {} to {}",
                       clip(wanted.head + "N" + wanted.tail), wanted.low, wanted.high);
  }
  const std::string_view core = without_slashes(wanted.pattern);
  if (core.size() <= kPartBytesMax && wanted.part_count <= kPartsMax) {
    std::vector<std::string> candidates;
    for (const std::string& part : parts_[wanted.part_count]) {
      const std::size_t longer = std::max(part.size(), core.size());
      if (longer - std::min(part.size(), core.size()) <= core.size() / 3 + 1) {
        candidates.push_back(part);
      }
    }
    // Which of equally near ones is named must not depend on the order of a hash table.
    std::sort(candidates.begin(), candidates.end());
    const std::string near = nearest(core, candidates);
    if (!near.empty()) {
      const bool has_slash = wanted.pattern.back() == '/';
      return fmt::format("nearest: '{}{}{}'", wanted.pattern.front() == '/' ? "/" : "", near,
                         has_slash ? "/" : "");
    }
  }
  return first_name_.empty() ? "the model's nodes have no names"
                             : fmt::format("names are like '{}'", clip(first_name_));
}

}  // namespace sardonyx
