#include "cli/outcome.h"

#include <limits>

namespace sardonyx::cli {

namespace {

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1,
                                             std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t k = 0; k <= b.size(); ++k) {
      if (i == 0 || k == 0) {
        rows[i][k] = i + k;
        continue;
      }
      const std::size_t change = rows[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      rows[i][k] = std::min({rows[i - 1][k] + 1, rows[i][k - 1] + 1, change});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
        rows[i][k] = std::min(rows[i][k], rows[i - 2][k - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::size_t longest = std::max(word.size(), candidate.size());
    const std::size_t allowed =
        longest <= 2 ? 0 : longest <= 4 ? 1 : std::max(longest / 3, std::size_t{2});
    const std::size_t found = distance(word, candidate);
    if (found <= allowed && found < least) {
      least = found;
      best = candidate;
    }
  }
  return best;
}

std::string hint(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string guess = nearest(word, candidates);
  return guess.empty() ? "" : fmt::format(" (did you mean '{}'?)", guess);
}

}  // namespace sardonyx::cli
