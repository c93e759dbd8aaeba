#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "placement/budget.h"
#include "placement/parts.h"

namespace sardonyx {

/// A weight that several nodes may use; a device holds it once.
struct SharedWeight {
  /// Equal for equal weights.
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};

/// A node that is to be given to a device, and what it takes there.
struct PackingItem {
  /// As messages call it.
  std::string name;
  std::vector<SharedWeight> weights;
  /// Charged for every node.
  std::uint64_t own_bytes = 0;
  /// Activations and scratch that are alive while it runs: a device is charged the most of its
  /// nodes, since they run one after the other.
  std::uint64_t live_bytes = 0;
  /// Items of one group go to one device; kNoGroup leaves it free.
  std::uint32_t group = kNoGroup;
  /// Devices that may run it, the wanted one first.
  std::vector<std::uint32_t> devices;
  /// A rule chose the first device: it does not follow other nodes elsewhere.
  bool is_ruled = false;
};

struct PackingDevice {
  /// As messages call it.
  std::string name;
  /// Empty: without limit.
  std::optional<std::uint64_t> limit_bytes;
};

enum class PackingReason : std::uint8_t {
  /// It is where it was wanted.
  Wanted,
  /// A device that was wanted more has no room.
  Budget,
  /// It has no weights and runs where the nodes before it had to go.
  Follows,
  /// The policy spreads nodes evenly.
  Balance,
};

/// Where one item goes.
struct PackingChoice {
  std::uint32_t device = 0;
  PackingReason reason = PackingReason::Wanted;
  /// Budget: the device without room, what the item (with its group) needed there, what was left.
  std::uint32_t full_device = 0;
  std::uint64_t needed_bytes = 0;
  std::uint64_t left_bytes = 0;
};

struct Packing {
  /// By item.
  std::vector<PackingChoice> choices;
  /// By device: weights and own bytes, and the most that is alive at once.
  std::vector<std::uint64_t> held_bytes;
  std::vector<std::uint64_t> live_bytes;
  /// By device with a limit: what pack_exactly() was told that its items take; 0 for others.
  std::vector<std::uint64_t> estimated_bytes;
};

/// Gives every item, in the order in which they run, to the first of its devices that has room.
///
/// An item that does not fit does not keep later ones from being placed. Items without weights of
/// their own, or with next to none, go where the item before them had to go, unless a rule or their
/// devices forbid it: no islands remain on a full device. Balance leaves out the one device that is
/// the last resort of all items, if at least two others have limits.
/// Errors   InvalidArgument, naming the first item (or group) that no device has room for, with
///          what it needs and what is left on each; a group whose items share no device.
/// Cost     linear in items, devices and weights; `Fit` sorts.
Result<Packing> pack(std::span<const PackingItem> items, std::span<const PackingDevice> devices,
                     BalancePolicy policy);

/// What the items with these indices, ascending, take on a device all in all.
using DeviceEstimate =
    FunctionRef<Result<std::uint64_t>(std::uint32_t device, std::span<const std::uint32_t> items)>;

/// As pack(), with limits that hold for what `estimate` says of all items of a device together:
/// packs with the items' own costs, compares, and packs again with limits that make up for the
/// difference. What fits by the estimate stays, to the byte.
/// Errors   those of pack() and of the estimate.
Result<Packing> pack_exactly(std::span<const PackingItem> items,
                             std::span<const PackingDevice> devices, BalancePolicy policy,
                             DeviceEstimate estimate);

/// "budget: gpu:0 has 100 bytes left, 200 bytes are needed"; "" for an item that is where it was
/// wanted.
std::string describe_choice(const PackingChoice& choice, std::span<const PackingDevice> devices);

}  // namespace sardonyx
