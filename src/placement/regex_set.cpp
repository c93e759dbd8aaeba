#include "placement/regex_set.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::int64_t kSetBytesMax = std::int64_t{16} << 20;
constexpr std::int64_t kOneBytesMax = std::int64_t{1} << 20;
constexpr int kInstructionsMax = 20000;
/// Instructions times bytes that the slow way may look at: seconds, not hours.
constexpr std::uint64_t kSlowWorkMax = std::uint64_t{1} << 31;

RE2::Options options_with(std::int64_t bytes_max) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_max_mem(bytes_max);
  return options;
}

}  // namespace

struct RegexSet::Compiled {
  RE2::Set set{options_with(kSetBytesMax), RE2::UNANCHORED};
  /// For names on which the set runs out of states.
  std::vector<std::unique_ptr<RE2>> each;
  std::vector<int> found;
  std::uint64_t instruction_count = 0;
  std::uint64_t slow_work = 0;
  bool gave_up = false;
};

RegexSet::RegexSet() = default;
RegexSet::RegexSet(RegexSet&&) noexcept = default;
RegexSet& RegexSet::operator=(RegexSet&&) noexcept = default;
RegexSet::~RegexSet() = default;

Result<RegexSet> RegexSet::create(const std::vector<std::string>& patterns) {
  RegexSet made;
  if (patterns.empty()) return made;
  if (patterns.size() > kCountMax) {
    return failure(Code::InvalidArgument, "{} regular expressions; at most {} are taken",
                   patterns.size(), kCountMax);
  }
  made.compiled_ = std::make_unique<Compiled>();
  Compiled& compiled = *made.compiled_;
  for (const std::string& pattern : patterns) {
    if (pattern.size() > kPatternBytesMax) {
      return failure(Code::InvalidArgument,
                     "a regular expression of {} bytes; at most {} are taken", pattern.size(),
                     kPatternBytesMax);
    }
    auto one = std::make_unique<RE2>(pattern, options_with(kOneBytesMax));
    if (!one->ok()) {
      return failure(Code::InvalidArgument, "regular expression '{}': {}", clip(pattern),
                     clip(one->error()));
    }
    compiled.instruction_count += static_cast<std::uint64_t>(std::max(one->ProgramSize(), 1));
    compiled.each.push_back(std::move(one));
    std::string error;
    if (compiled.set.Add(pattern, &error) < 0) {
      return failure(Code::InvalidArgument, "regular expression '{}': {}", clip(pattern),
                     clip(error));
    }
  }
  if (compiled.instruction_count > kInstructionsMax || !compiled.set.Compile()) {
    return failure(Code::InvalidArgument,
                   "the regular expressions are too large together: {} instructions; at most {} "
                   "are taken",
                   compiled.instruction_count, kInstructionsMax);
  }
  return made;
}

std::size_t RegexSet::search(std::string_view name, std::vector<bool>& hits) {
  if (compiled_ == nullptr) return kNoMatch;
  Compiled& compiled = *compiled_;
  compiled.found.clear();
  const re2::StringPiece text(name.data(), name.size());
  RE2::Set::ErrorInfo error{};
  if (!compiled.set.Match(text, &compiled.found, &error) && error.kind != RE2::Set::kNoError) {
    compiled.found.clear();
    compiled.slow_work += compiled.instruction_count * (name.size() + 1);
    if (compiled.slow_work > kSlowWorkMax) {
      compiled.gave_up = true;
      return kNoMatch;
    }
    for (std::size_t i = 0; i < compiled.each.size(); ++i) {
      if (RE2::PartialMatch(text, *compiled.each[i])) compiled.found.push_back(static_cast<int>(i));
    }
  }
  std::size_t best = kNoMatch;
  for (const int index : compiled.found) {
    const auto i = static_cast<std::size_t>(index);
    hits[i] = true;
    best = std::min(best, i);
  }
  return best;
}

bool RegexSet::gave_up() const { return compiled_ != nullptr && compiled_->gave_up; }

}  // namespace sardonyx
