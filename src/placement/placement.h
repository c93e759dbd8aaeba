#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ep/device_description.h"

namespace sardonyx {

/// Why a node runs where it does.
enum class PlacementReason : std::uint8_t {
  Capability,  ///< the first provider that takes it
  Rule,        ///< a rule names the device
  Plan,        ///< a plan file names the device
  Fallback,    ///< the device that was asked for does not run it
  Budget,      ///< the device that it would have had is full
  Compiled,    ///< it holds what this provider compiled
};

/// "rule".
constexpr const char* placement_reason_name(PlacementReason reason) {
  switch (reason) {
    case PlacementReason::Capability: return "capability";
    case PlacementReason::Rule: return "rule";
    case PlacementReason::Plan: return "plan";
    case PlacementReason::Fallback: return "fallback";
    case PlacementReason::Budget: return "budget";
    case PlacementReason::Compiled: return "compiled";
  }
  return "";
}

/// A node and who runs it.
struct PlacedNode {
  std::string name;
  std::string domain;
  std::string op_type;
  /// Index into Placement::devices.
  std::uint32_t device = 0;
  /// Nodes with one number run as one part.
  std::uint32_t part = 0;
  PlacementReason reason = PlacementReason::Capability;
  /// Index into Placement::rules of the rule that took it, or that its device could not keep;
  /// 0xffffffff for none.
  std::uint32_t rule = 0xffffffffU;
  /// Why not where it was asked for; "" when it is there.
  std::string why_not;
  /// Constants that it uses; those that nodes share count for each.
  std::uint64_t weight_bytes = 0;
  /// What it makes, as far as sizes are known.
  std::uint64_t output_bytes = 0;
};

/// One instance of a provider.
struct PlacedDevice {
  /// "CPUExecutionProvider".
  std::string provider;
  std::vector<DeviceDescription> devices;
  std::uint64_t node_count = 0;
  /// Constants of its nodes, each once.
  std::uint64_t weight_bytes = 0;
  /// What it may hold by the options; none without a budget.
  std::optional<std::uint64_t> limit_bytes;
  /// What its nodes take by that reckoning; none without a budget.
  std::optional<std::uint64_t> need_bytes;
};

/// A value that one device makes and another one needs.
struct PlacedCopy {
  std::string value;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  /// 0 when the size is not known.
  std::uint64_t bytes = 0;
};

/// A rule, and what became of it.
struct PlacedRule {
  /// "gpu:0(layers.[0-15]/)".
  std::string text;
  std::string option;
  /// Nodes that run where it says, and that do not.
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  /// Why it could not be kept at all; "" when it could.
  std::string why_not;
  /// It is an error if it cannot be kept.
  bool is_strict = false;
};

/// Who runs which nodes of a model, and why.
struct Placement {
  /// The session's providers in order of preference.
  std::vector<PlacedDevice> devices;
  /// In the order in which they run.
  std::vector<PlacedNode> nodes;
  std::vector<PlacedCopy> copies;
  std::vector<PlacedRule> rules;
  /// What was said about rules, budgets and plans.
  std::vector<std::string> warnings;
};

}  // namespace sardonyx
