#pragma once

#include <string>

namespace sardonyx::cli {

/// A bar on stderr, which appears after half a second when stderr is a terminal, and leaves nothing
/// behind.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` from 0 to 1.
  void update(double fraction, const std::string& note);

 private:
  std::string title_;
  bool is_terminal_;
  bool is_shown_ = false;
  double start_ms_;
  double last_ms_ = 0;
};

}  // namespace sardonyx::cli
