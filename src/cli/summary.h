#pragma once

#include <string>

#include "cli/array.h"

namespace sardonyx::cli {

/// What a glance at an array tells.
struct Summary {
  bool has_numbers = false;
  /// Over the finite elements.
  double least = 0;
  double mean = 0;
  double most = 0;
  std::int64_t finite_count = 0;
  std::int64_t nan_count = 0;
  std::int64_t infinite_count = 0;
};

Summary summarize(const Array& array);

/// {"name", "type", "shape", "min", "mean", "max", "nan_count", "infinite_count", "first"}; "first"
/// has up to eight elements.
Json summary_json(const std::string& name, const Array& array);
/// The same as a few lines of text.
std::string summary_text(const std::string& name, const Array& array);

/// Text of a file for a terminal: control characters become '?'.
std::string printable(const std::string& text);

/// "1.5 MB".
std::string bytes_text(double bytes);

}  // namespace sardonyx::cli
