#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// The option that a rule stands in.
enum class RuleSource : std::uint8_t {
  /// sardonyx.placement
  Placement,
  /// session.name_based_layer_assignment
  Names,
  /// session.layer_assignment_settings
  Annotations,
};

/// How a pattern is compared. In the order in which rules of sardonyx.placement are tried.
enum class PatternKind : std::uint8_t {
  ExactName,         ///< ="/model/layers.0/mlp/Mul"
  Regex,             ///< ~layers\.\d+/mlp/
  Text,              ///< layers.0/ or layers.[0-15]/
  ExactAnnotation,   ///< @=layer_0
  AnnotationPrefix,  ///< @layer_
  Everything,        ///< *
};

/// One pattern and the device for the nodes that it takes.
struct Rule {
  RuleSource source = RuleSource::Placement;
  PatternKind kind = PatternKind::Text;
  /// It is an error if the rule cannot be kept.
  bool is_strict = false;
  /// It comes from a plan file, not from an option.
  bool is_planned = false;
  /// The designator as it is written.
  std::string device;
  /// Without the mark of its kind and without quotes.
  std::string pattern;
  /// The texts that it stands for: several for one with ranges, none for Regex and Everything.
  std::vector<std::string> expansion;
  /// The texts end with a number of a range, which no further digit may follow.
  bool ends_with_number = false;

  /// What stands for the pattern of a rule that has the names of a plan.
  static constexpr std::string_view kPlannedNames = "nodes of the plan";

  bool has_range() const { return expansion.size() > 1 || ends_with_number; }
  /// "gpu:0(layers.[0-15]/)", as it can be pasted into the option.
  std::string to_string() const;
};

/// The values of the three options; "" where one is not set.
struct RuleOptions {
  std::string_view placement;
  std::string_view names;
  std::string_view annotations;
};

struct Rules {
  /// In the order in which they are written: sardonyx.placement first.
  std::vector<Rule> rules;
  /// Mistakes in the two options of ONNX Runtime that it passes over in silence.
  std::vector<std::string> warnings;

  bool empty() const { return rules.empty(); }
};

/// Bounds on what is taken from one option.
inline constexpr std::size_t kRuleTextBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kRuleCountMax = 65536;
inline constexpr std::size_t kDeviceBytesMax = 1024;

/// Reads the options; docs/placement.md has the grammar.
/// Errors   InvalidArgument; for the options of ONNX Runtime with its words.
Result<Rules> parse_rules(const RuleOptions& options);

inline constexpr std::string_view kPlacementOption = "sardonyx.placement";
inline constexpr std::string_view kPlanOption = "sardonyx.placement_file";
inline constexpr std::string_view kNamesOption = "session.name_based_layer_assignment";
inline constexpr std::string_view kAnnotationsOption = "session.layer_assignment_settings";

/// The option that a source stands for.
std::string_view option_of(RuleSource source);

}  // namespace sardonyx
