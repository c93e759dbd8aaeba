#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sardonyx::cli {

/// Success, or what a user is told. The command sees the library through its C interface only, so
/// it has its own.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(std::string message) : message_(std::move(message)) {}

  bool ok() const { return !message_; }
  /// Adds where we were, innermost first. No effect on success.
  Status with(const std::string& context) && {
    if (message_) *message_ += "\n  while " + context;
    return std::move(*this);
  }
  std::string text() const { return message_.value_or("ok"); }

 private:
  std::optional<std::string> message_;
};

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status failed) : state_(std::in_place_index<1>, std::move(failed)) {}

  bool ok() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const Status& status() const { return std::get<1>(state_); }
  Status take_status() && { return ok() ? Status() : std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

/// A failed Status whose message is formatted as by fmt::format.
template <typename... Args>
Status failure(fmt::format_string<Args...> format, Args&&... args) {
  return Status(fmt::vformat(format, fmt::make_format_args(args...)));
}

/// The parts with `separator` between them.
inline std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

/// The candidate that `word` may be a misspelling of (a third of its letters, or two, are wrong;
/// swapped neighbours count once), or "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)" or "".
std::string hint(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sardonyx::cli

/// Returns from the enclosing function if `expression` is a failed Status.
#define SDX_TRY(expression)                                              \
  do {                                                                   \
    if (auto sdx_status_ = (expression); !sdx_status_.ok()) return sdx_status_; \
  } while (false)

#define SDX_CONCAT_INNER_(a, b) a##b
#define SDX_CONCAT_(a, b) SDX_CONCAT_INNER_(a, b)

/// Declares or assigns `target` from a Result, or returns its Status.
#define SDX_ASSIGN(target, expression) \
  SDX_ASSIGN_(SDX_CONCAT_(sdx_result_, __LINE__), target, expression)
#define SDX_ASSIGN_(result, target, expression)             \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).take_status(); \
  target = *std::move(result)
