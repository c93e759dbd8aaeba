#include "placement/packing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::uint32_t kNoDevice = 0xffffffffU;
constexpr int kTurns_max = 16;
/// Weights that are this small a part of what had to move are not worth a change of device.
constexpr std::uint64_t kNegligible_part = 256;

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
  std::uint64_t weight_bytes() const {
    std::uint64_t bytes = own_bytes;
    for (const SharedWeight& weight : weights) bytes = capped_sum(bytes, weight.bytes);
    return bytes;
  }
  std::uint64_t total_bytes() const { return capped_sum(weight_bytes(), live_bytes); }
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

  /// The device that is every unit's last resort, if there is one: it gets what the others have no
  /// room for.
  std::uint32_t last_resort() const {
    std::uint32_t last = kNoDevice;
    for (const Unit& unit : units_) {
      if (unit.devices.size() < 2) continue;
      if (last != kNoDevice && unit.devices.back() != last) return kNoDevice;
      last = unit.devices.back();
    }
    const auto limited = std::count_if(limits_.begin(), limits_.end(),
                                       [](const auto& limit) { return limit.has_value(); });
    return limited > 2 ? last : kNoDevice;
  }

  /// The same part of every limit, and room for one more unit, since they cannot be cut.
  void find_shares() {
    const std::uint32_t last = last_resort();
    Fill all;
    std::uint64_t largest = 0;
    for (const Unit& unit : units_) {
      all.take(unit);
      largest = std::max(largest, unit.total_bytes());
    }
    double capacity = 0;
    for (std::uint32_t device = 0; device < limits_.size(); ++device) {
      if (device != last) capacity += static_cast<double>(limits_[device].value_or(0));
    }
    const double share =
        std::min(1.0, static_cast<double>(all.used_bytes()) / std::max(1.0, capacity));
    for (std::uint32_t device = 0; device < limits_.size(); ++device) {
      const auto& limit = limits_[device];
      shares_.push_back(limit);
      if (!limit || device == last) continue;
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
    if (index == 0 || unit.is_ruled) return kNoDevice;
    const PackingChoice& before = choices_[index - 1];
    if (unit.weight_bytes() > before.needed_bytes / kNegligible_part) return kNoDevice;
    const bool is_moved = before.device != kNoDevice && before.reason != PackingReason::Wanted &&
                          units_[index - 1].devices.front() == unit.devices.front();
    return is_moved && unit.may_use(before.device) ? before.device : kNoDevice;
  }

  Status place(std::size_t index) {
    const Unit& unit = units_[index];
    const std::uint32_t leader = followed(index);
    if (leader != kNoDevice && has_room(leader, unit, limits_)) {
      give(index, leader, PackingReason::Follows);
      choices_[index].needed_bytes = choices_[index - 1].needed_bytes;
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

/// What estimates say, each set of items asked for once; nothing takes nothing.
class Estimates {
 public:
  Estimates(std::size_t device_count, DeviceEstimate estimate)
      : estimate_(estimate), known_(device_count) {}

  Result<std::uint64_t> of(const Packing& packing, std::uint32_t device) {
    std::vector<std::uint32_t> items = items_of(packing, device);
    if (items.empty()) return 0;
    const auto found = known_[device].find(items);
    if (found != known_[device].end()) return found->second;
    SDX_ASSIGN(const std::uint64_t bytes, estimate_(device, items));
    known_[device].emplace(std::move(items), bytes);
    return bytes;
  }

 private:
  DeviceEstimate estimate_;
  std::vector<std::map<std::vector<std::uint32_t>, std::uint64_t>> known_;
};

std::uint64_t modelled_bytes(const Packing& packing, std::uint32_t device) {
  return capped_sum(packing.held_bytes[device], packing.live_bytes[device]);
}

/// Packs with limits on the items' own costs, and looks for those that make the estimates fit.
class ExactPacker {
 public:
  ExactPacker(std::span<const PackingItem> items, std::span<const PackingDevice> devices,
              const std::vector<Unit>& units, BalancePolicy policy, DeviceEstimate estimate)
      : items_(items),
        devices_(devices),
        units_(units),
        policy_(policy),
        limits_(limits_of(devices)),
        found_(devices.size()),
        estimates_(devices.size(), estimate) {}

  Result<Packing> run() {
    SDX_TRY(policy_ == BalancePolicy::Sequential ? find_all() : guess_all());
    return settle();
  }

 private:
  Result<Packing> packed() {
    auto packing = Packer(items_, devices_, units_, found_, policy_).pack();
    if (!packing.ok()) return does_not_fit();
    return packing;
  }

  /// Errors   always: what each device may hold, and what all that it could run would take there.
  Status does_not_fit() {
    std::vector<std::string> texts;
    for (std::uint32_t device = 0; device < devices_.size(); ++device) {
      if (!limits_[device]) continue;
      Packing all;
      for (const PackingItem& item : items_) {
        const bool runs =
            std::find(item.devices.begin(), item.devices.end(), device) != item.devices.end();
        all.choices.push_back({runs ? device : device + 1});
      }
      SDX_ASSIGN(const std::uint64_t bytes, estimates_.of(all, device));
      texts.push_back(fmt::format("{} may hold {}, all that it runs takes {}",
                                  devices_[device].name, describe_bytes(*limits_[device]),
                                  describe_bytes(bytes)));
    }
    return failure(Code::InvalidArgument, "the model does not fit into its budgets: {}",
                   join(texts, "; "));
  }

  /// Devices get their items one after the other: later ones have room for all meanwhile.
  Status find_all() {
    for (std::uint32_t device = 0; device < devices_.size(); ++device) {
      if (limits_[device]) SDX_TRY(find(device));
    }
    return {};
  }

  /// The largest limit with which the device's items fit by their estimate.
  Status find(std::uint32_t device) {
    SDX_ASSIGN(const Packing all, packed());
    SDX_ASSIGN(const std::uint64_t wanted, estimates_.of(all, device));
    if (wanted <= *limits_[device]) return {};
    std::uint64_t low = 0;
    std::uint64_t high = modelled_bytes(all, device);
    while (high - low > 1) {
      found_[device] = low + (high - low) / 2;
      SDX_ASSIGN(const Packing tried, packed());
      SDX_ASSIGN(const std::uint64_t bytes, estimates_.of(tried, device));
      (bytes <= *limits_[device] ? low : high) = *found_[device];
    }
    found_[device] = low;
    return {};
  }

  /// Policies that fill devices evenly go by all limits at once, as much smaller or larger as the
  /// items' own costs are than the estimates.
  Status guess_all() {
    SDX_ASSIGN(const Packing all,
               Packer(items_, devices_, units_, found_, BalancePolicy::Sequential).pack());
    for (std::uint32_t device = 0; device < devices_.size(); ++device) {
      if (!limits_[device]) continue;
      SDX_ASSIGN(const std::uint64_t exact, estimates_.of(all, device));
      const std::uint64_t modelled = modelled_bytes(all, device);
      const double share =
          exact == 0 ? 1 : static_cast<double>(modelled) / static_cast<double>(exact);
      const double scaled = static_cast<double>(*limits_[device]) * share;
      found_[device] = scaled >= 0x1p63 ? UINT64_MAX : static_cast<std::uint64_t>(scaled);
    }
    return {};
  }

  /// What was found for one device may send items back to another.
  Result<Packing> settle() {
    for (int turn = 0; turn < kTurns_max; ++turn) {
      SDX_ASSIGN(Packing packing, packed());
      bool is_over = false;
      packing.estimated_bytes.assign(devices_.size(), 0);
      for (std::uint32_t device = 0; device < devices_.size(); ++device) {
        if (!limits_[device]) continue;
        SDX_ASSIGN(const std::uint64_t bytes, estimates_.of(packing, device));
        packing.estimated_bytes[device] = bytes;
        if (bytes <= *limits_[device]) continue;
        is_over = true;
        const std::uint64_t modelled = modelled_bytes(packing, device);
        found_[device] =
            less(std::min(found_[device].value_or(modelled), modelled), bytes - *limits_[device]);
      }
      if (!is_over) return packing;
    }
    return does_not_fit();
  }

  std::span<const PackingItem> items_;
  std::span<const PackingDevice> devices_;
  const std::vector<Unit>& units_;
  BalancePolicy policy_;
  Limits limits_;
  /// On the items' own costs.
  Limits found_;
  Estimates estimates_;
};

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
  return ExactPacker(items, devices, units, policy, estimate).run();
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
