#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/model.h"

namespace sardonyx::cli {

namespace {
constexpr double kDelay_ms = 500;
constexpr double kInterval_ms = 100;
constexpr int kWidth = 30;
}  // namespace

Progress::Progress(std::string title)
    : title_(std::move(title)), is_terminal_(isatty(STDERR_FILENO) == 1), start_ms_(now_ms()) {}

Progress::~Progress() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::update(double fraction, const std::string& note) {
  if (!is_terminal_) return;
  const double now = now_ms();
  if (now - start_ms_ < kDelay_ms || now - last_ms_ < kInterval_ms) return;
  last_ms_ = now;
  is_shown_ = true;
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\033[K{} [{}{}] {}", title_, std::string(filled, '#'),
             std::string(kWidth - filled, ' '), note);
  std::fflush(stderr);
}

}  // namespace sardonyx::cli
