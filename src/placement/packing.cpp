#include "placement/packing.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::uint32_t kNoDevice = 0xffffffffU;
constexpr int kTurns_max = 16;

using Limits = std::vector<std::optional<std::uint64_t>>;

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// What goes to a device as a whole: an item, or all items of a group.
struct Unit {
  std::vector<std::uint32_t> items;
  std::vector<SharedWeight> weights;
  std::uint64_t own_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::vector<std::uint32_t> devices;
  bool is_ruled = false;

  bool has_weights() const { return !weights.empty() || own_bytes != 0; }
  std::uint64_t total_bytes() const {
    std::uint64_t total = capped_sum(own_bytes, live_bytes);
    for (const SharedWeight& weight : weights) total = capped_sum(total, weight.bytes);
    return total;
  }
  bool may_use(std::uint32_t device) const {
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  }
};

void add_item(const PackingItem& item, std::uint32_t index, Unit& unit) {
  const bool is_first = unit.items.empty();
  unit.items.push_back(index);
  unit.weights.insert(unit.weights.end(), item.weights.begin(), item.weights.end());
  unit.own_bytes = capped_sum(unit.own_bytes, item.own_bytes);
  unit.live_bytes = std::max(unit.live_bytes, item.live_bytes);
  unit.is_ruled = unit.is_ruled || item.is_ruled;
  if (is_first) {
    unit.devices = item.devices;
    return;
  }
  std::erase_if(unit.devices, [&](std::uint32_t device) {
    return std::find(item.devices.begin(), item.devices.end(), device) == item.devices.end();
  });
}

std::string name_of(const Unit& unit, std::span<const PackingItem> items) {
  const std::string& first = items[unit.items.front()].name;
  if (unit.items.size() == 1) return first;
  return fmt::format("{} and {} nodes that stay with it", first, unit.items.size() - 1);
}

Result<std::vector<Unit>> make_units(std::span<const PackingItem> items) {
  std::vector<Unit> units;
  std::unordered_map<std::uint32_t, std::size_t> unit_of_group;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    std::size_t unit = units.size();
    if (items[i].group != kNoGroup) {
      unit = unit_of_group.try_emplace(items[i].group, unit).first->second;
    }
    if (unit == units.size()) units.emplace_back();
    add_item(items[i], i, units[unit]);
  }
  for (const Unit& unit : units) {
    if (!unit.devices.empty()) continue;
    return failure(Code::InvalidArgument, "no device may run {}", name_of(unit, items));
  }
  return units;
}

/// One device while it is filled.
struct Fill {
  std::unordered_set<std::uint64_t> weights;
  std::uint64_t held_bytes = 0;
  std::uint64_t live_bytes = 0;
  /// Balance: it has its share.
  bool is_closed = false;

  std::uint64_t used_bytes() const { return capped_sum(held_bytes, live_bytes); }

  std::uint64_t held_more(const Unit& unit) const {
    std::uint64_t more = unit.own_bytes;
    std::unordered_set<std::uint64_t> seen;
    for (const SharedWeight& weight : unit.weights) {
      if (weights.count(weight.id) == 0 && seen.insert(weight.id).second) {
        more = capped_sum(more, weight.bytes);
      }
    }
    return more;
  }
  std::uint64_t more(const Unit& unit) const {
    return capped_sum(held_more(unit), less(unit.live_bytes, live_bytes));
  }
  void take(const Unit& unit) {
    held_bytes = capped_sum(held_bytes, held_more(unit));
    live_bytes = std::max(live_bytes, unit.live_bytes);
    for (const SharedWeight& weight : unit.weights) weights.insert(weight.id);
  }
};

class Packer {
 public:
  Packer(std::span<const PackingItem> items, std::span<const PackingDevice> devices,
         const std::vector<Unit>& units, const Limits& limits, BalancePolicy policy)
      : items_(items),
        devices_(devices),
        units_(units),
        limits_(limits),
        policy_(policy),
        fills_(devices.size()),
        choices_(units.size()) {
    for (PackingChoice& choice : choices_) choice.device = kNoDevice;
  }

  Result<Packing> pack() {
    if (policy_ == BalancePolicy::Balanced) find_shares();
    for (const std::size_t unit : order()) SDX_TRY(place(unit));
    Packing packing;
    packing.choices.resize(items_.size());
    for (std::size_t i = 0; i < units_.size(); ++i) {
      for (const std::uint32_t item : units_[i].items) packing.choices[item] = choices_[i];
    }
    for (const Fill& fill : fills_) {
      packing.held_bytes.push_back(fill.held_bytes);
      packing.live_bytes.push_back(fill.live_bytes);
    }
    return packing;
  }

 private:
  /// Fit: what has weights, the largest first, and then the rest, which follows it.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> order(units_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (policy_ != BalancePolicy::Fit) return order;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (units_[a].has_weights() != units_[b].has_weights()) return units_[a].has_weights();
      return units_[a].has_weights() && units_[a].total_bytes() > units_[b].total_bytes();
    });
    return order;
  }

  /// The same part of every limit, and room for one more unit, since they cannot be cut.
  void find_shares() {
    Fill all;
    std::uint64_t largest = 0;
    for (const Unit& unit : units_) {
      all.take(unit);
      largest = std::max(largest, unit.total_bytes());
    }
    double capacity = 0;
    for (const auto& limit : limits_) capacity += static_cast<double>(limit.value_or(0));
    const double share =
        std::min(1.0, static_cast<double>(all.used_bytes()) / std::max(1.0, capacity));
    for (const auto& limit : limits_) {
      shares_.push_back(limit);
      if (!limit) continue;
      const auto part = static_cast<std::uint64_t>(static_cast<double>(*limit) * share);
      shares_.back() = std::min(*limit, capped_sum(part, largest / 2));
    }
  }

  bool has_room(std::uint32_t device, const Unit& unit, const Limits& limits) const {
    if (!limits[device]) return true;
    const Fill& fill = fills_[device];
    return capped_sum(fill.used_bytes(), fill.more(unit)) <= *limits[device];
  }

  void give(std::size_t unit, std::uint32_t device, PackingReason reason) {
    choices_[unit].device = device;
    choices_[unit].reason = reason;
    fills_[device].take(units_[unit]);
  }

  /// The device of the unit before, when that was moved away from where this one is wanted.
  std::uint32_t followed(std::size_t index) const {
    const Unit& unit = units_[index];
    if (index == 0 || unit.has_weights() || unit.is_ruled) return kNoDevice;
    const PackingChoice& before = choices_[index - 1];
    const bool is_moved = before.device != kNoDevice && before.reason != PackingReason::Wanted &&
                          units_[index - 1].devices.front() == unit.devices.front();
    return is_moved && unit.may_use(before.device) ? before.device : kNoDevice;
  }

  Status place(std::size_t index) {
    const Unit& unit = units_[index];
    const std::uint32_t leader = followed(index);
    if (leader != kNoDevice && has_room(leader, unit, limits_)) {
      give(index, leader, PackingReason::Follows);
      return {};
    }
    if (policy_ == BalancePolicy::Balanced && !unit.is_ruled && place_by_share(index)) return {};
    PackingChoice& choice = choices_[index];
    for (const std::uint32_t device : unit.devices) {
      if (has_room(device, unit, limits_)) {
        const bool is_wanted = device == unit.devices.front();
        give(index, device, is_wanted ? PackingReason::Wanted : PackingReason::Budget);
        return {};
      }
      if (device != unit.devices.front()) continue;
      choice.full_device = device;
      choice.needed_bytes = fills_[device].more(unit);
      choice.left_bytes = less(*limits_[device], fills_[device].used_bytes());
    }
    return no_room(unit);
  }

  /// Devices with limits, one after the other; none is gone back to.
  bool place_by_share(std::size_t index) {
    const Unit& unit = units_[index];
    for (const std::uint32_t device : unit.devices) {
      if (!limits_[device] || fills_[device].is_closed) continue;
      if (has_room(device, unit, shares_)) {
        const bool is_wanted = device == unit.devices.front();
        give(index, device, is_wanted ? PackingReason::Wanted : PackingReason::Balance);
        return true;
      }
      fills_[device].is_closed = true;
    }
    return false;
  }

  Status no_room(const Unit& unit) const {
    std::vector<std::string> lefts;
    for (const std::uint32_t device : unit.devices) {
      lefts.push_back(
          fmt::format("{} has {} left, {} needed", devices_[device].name,
                      describe_bytes(less(*limits_[device], fills_[device].used_bytes())),
                      describe_bytes(fills_[device].more(unit))));
    }
    return failure(Code::InvalidArgument, "no device has room for {} within its budget: {}",
                   name_of(unit, items_), join(lefts, "; "));
  }

  std::span<const PackingItem> items_;
  std::span<const PackingDevice> devices_;
  const std::vector<Unit>& units_;
  const Limits& limits_;
  BalancePolicy policy_;
  Limits shares_;
  std::vector<Fill> fills_;
  /// By unit.
  std::vector<PackingChoice> choices_;
};

Limits limits_of(std::span<const PackingDevice> devices) {
  Limits limits;
  for (const PackingDevice& device : devices) limits.push_back(device.limit_bytes);
  return limits;
}

std::vector<std::uint32_t> items_of(const Packing& packing, std::uint32_t device) {
  std::vector<std::uint32_t> items;
  for (std::uint32_t i = 0; i < packing.choices.size(); ++i) {
    if (packing.choices[i].device == device) items.push_back(i);
  }
  return items;
}

/// What estimates say, each set of items asked for once in a row; nothing takes nothing.
class Estimates {
 public:
  Estimates(std::size_t device_count, DeviceEstimate estimate)
      : estimate_(estimate), asked_(device_count), known_(device_count, 0) {}

  Result<std::uint64_t> of(const Packing& packing, std::uint32_t device) {
    std::vector<std::uint32_t> items = items_of(packing, device);
    if (items.empty()) return 0;
    if (items != asked_[device]) {
      SDX_ASSIGN(known_[device], estimate_(device, items));
      asked_[device] = std::move(items);
    }
    return known_[device];
  }

 private:
  DeviceEstimate estimate_;
  std::vector<std::vector<std::uint32_t>> asked_;
  std::vector<std::uint64_t> known_;
};

std::uint64_t modelled_bytes(const Packing& packing, std::uint32_t device) {
  return capped_sum(packing.held_bytes[device], packing.live_bytes[device]);
}

}  // namespace

Result<Packing> pack(std::span<const PackingItem> items, std::span<const PackingDevice> devices,
                     BalancePolicy policy) {
  SDX_ASSIGN(const std::vector<Unit> units, make_units(items));
  const Limits limits = limits_of(devices);
  return Packer(items, devices, units, limits, policy).pack();
}

Result<Packing> pack_exactly(std::span<const PackingItem> items,
                             std::span<const PackingDevice> devices, BalancePolicy policy,
                             DeviceEstimate estimate) {
  SDX_ASSIGN(const std::vector<Unit> units, make_units(items));
  const Limits limits = limits_of(devices);
  Estimates estimates(devices.size(), estimate);
  const Limits none(devices.size());
  SDX_ASSIGN(const Packing wanted,
             Packer(items, devices, units, none, BalancePolicy::Sequential).pack());
  Limits effective = limits;
  for (std::uint32_t device = 0; device < devices.size(); ++device) {
    if (!limits[device]) continue;
    SDX_ASSIGN(const std::uint64_t exact, estimates.of(wanted, device));
    const std::uint64_t room = capped_sum(*limits[device], modelled_bytes(wanted, device));
    effective[device] = room == UINT64_MAX ? room : less(room, exact);
  }
  for (int turn = 0; turn < kTurns_max; ++turn) {
    SDX_ASSIGN(Packing packing, Packer(items, devices, units, effective, policy).pack());
    bool is_over = false;
    for (std::uint32_t device = 0; device < devices.size(); ++device) {
      if (!limits[device]) continue;
      SDX_ASSIGN(const std::uint64_t exact, estimates.of(packing, device));
      if (exact <= *limits[device]) continue;
      is_over = true;
      effective[device] = less(std::min(*effective[device], modelled_bytes(packing, device)),
                               exact - *limits[device]);
    }
    if (!is_over) return packing;
  }
  return failure(Code::InvalidArgument, "no placement was found that keeps within the budgets");
}

std::string describe_choice(const PackingChoice& choice, std::span<const PackingDevice> devices) {
  switch (choice.reason) {
    case PackingReason::Wanted: return "";
    case PackingReason::Follows: return "budget: runs where the nodes before it had to go";
    case PackingReason::Balance: return "budget: spread evenly over the devices";
    case PackingReason::Budget: break;
  }
  return fmt::format("budget: {} has {} left, {} needed", devices[choice.full_device].name,
                     describe_bytes(choice.left_bytes), describe_bytes(choice.needed_bytes));
}

}  // namespace sardonyx
