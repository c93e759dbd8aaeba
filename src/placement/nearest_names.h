#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sardonyx {

/// What in a model's names comes near patterns that stand in none of them.
///
/// Cost     bounded: it looks at the first 4 MiB of names and keeps the first 2048 different parts.
class NearestNames {
 public:
  explicit NearestNames(std::vector<std::string> patterns);

  void add(std::string_view name);
  /// "nearest: '/model/layers.5/'", "its number goes from 0 to 31", or "" when nothing is near.
  std::string hint(std::size_t pattern) const;

 private:
  struct Wanted {
    std::string pattern;
    /// The pattern around its last number: "layers." and "/" of "layers.99/".
    std::string head;
    std::string tail;
    /// Numbers that names have there.
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool has_numbers = false;
    /// Number of parts between slashes.
    std::size_t part_count = 1;
  };
  void look_for_number(Wanted& wanted, std::string_view name);
  void keep_parts(std::string_view name);

  std::vector<Wanted> wanted_;
  std::size_t bytes_left_;
  /// By number of parts (1 to kPartsMax): different runs of that many parts of names.
  std::vector<std::unordered_set<std::string>> parts_;
  std::string first_name_;
};

}  // namespace sardonyx
