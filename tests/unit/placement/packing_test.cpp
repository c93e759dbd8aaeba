#include "placement/packing.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

using namespace sardonyx;

namespace {

PackingItem item(std::string name, std::vector<SharedWeight> weights,
                 std::vector<std::uint32_t> devices = {0, 1}) {
  PackingItem made;
  made.name = std::move(name);
  made.weights = std::move(weights);
  made.devices = std::move(devices);
  return made;
}

/// Items with one weight of their own each.
std::vector<PackingItem> items_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<PackingItem> items;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    items.push_back(item("n" + std::to_string(i), {}));
    if (sizes[i] != 0) items.back().weights.push_back({i, sizes[i]});
  }
  return items;
}

std::vector<std::uint32_t> devices_of(const Packing& packing) {
  std::vector<std::uint32_t> devices;
  for (const PackingChoice& choice : packing.choices) devices.push_back(choice.device);
  return devices;
}

Packing packed(const std::vector<PackingItem>& items, const std::vector<PackingDevice>& devices,
               BalancePolicy policy = BalancePolicy::Sequential) {
  auto packing = pack(items, devices, policy);
  REQUIRE_MESSAGE(packing.ok(), packing.status().to_string());
  return std::move(packing).value();
}

using Devices = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a weight that two nodes share is charged once on a device") {
  // ONNX Runtime's case: two additions of outputs of 1000 and 500 bytes and one weight of 1000.
  std::vector<PackingItem> items = {item("a", {{7, 1000}}), item("b", {{7, 1000}})};
  items[0].own_bytes = 2000;
  items[1].own_bytes = 1500;
  const Packing packing = packed(items, {{"gpu", 4500}, {"cpu", std::nullopt}});
  CHECK(devices_of(packing) == Devices{0, 0});
  CHECK(packing.held_bytes[0] == 4500);
  CHECK(devices_of(packed(items, {{"gpu", 4499}, {"cpu", std::nullopt}})) == Devices{0, 1});
  // Elsewhere it is needed again.
  CHECK(packed(items, {{"gpu", 4499}, {"cpu", std::nullopt}}).held_bytes[1] == 2500);
}

TEST_CASE("one item that uses a weight twice pays for it once") {
  const Packing packing = packed({item("a", {{7, 1000}, {7, 1000}})}, {{"gpu", 1000}, {"cpu", {}}});
  CHECK(devices_of(packing) == Devices{0});
  CHECK(packing.held_bytes[0] == 1000);
}

TEST_CASE("weights that are not shared add up, and packing anew gives the same") {
  const std::vector<PackingItem> items = items_of({1200, 1200});
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(packed(items, {{"gpu", 2400}, {"cpu", {}}}).held_bytes[0] == 2400);
  }
}

TEST_CASE("the first item that does not fit does not end the packing") {
  const Packing packing = packed(items_of({100, 1000, 50, 40, 20}), {{"gpu", 200}, {"cpu", {}}});
  CHECK(devices_of(packing) == Devices{0, 1, 0, 0, 1});
  const PackingChoice& moved = packing.choices[1];
  CHECK(moved.reason == PackingReason::Budget);
  CHECK(moved.full_device == 0);
  CHECK(moved.needed_bytes == 1000);
  CHECK(moved.left_bytes == 100);
  const std::vector<PackingDevice> devices = {{"gpu", 200}, {"cpu", {}}};
  CHECK(describe_choice(moved, devices) == "budget: gpu has 100 bytes left, 1000 bytes needed");
  CHECK(describe_choice(packing.choices[0], devices).empty());
}

TEST_CASE("one byte under the need moves the last item, and no more") {
  const std::vector<PackingItem> items = items_of({10, 20, 30, 40});
  CHECK(devices_of(packed(items, {{"gpu", 100}, {"cpu", {}}})) == Devices{0, 0, 0, 0});
  CHECK(devices_of(packed(items, {{"gpu", 99}, {"cpu", {}}})) == Devices{0, 0, 0, 1});
}

TEST_CASE("items of a group stay together") {
  std::vector<PackingItem> items = items_of({10, 20, 30, 40});
  items[1].group = items[3].group = 5;
  CHECK(devices_of(packed(items, {{"gpu", 60}, {"cpu", {}}})) == Devices{0, 1, 0, 1});
  CHECK(devices_of(packed(items, {{"gpu", 70}, {"cpu", {}}})) == Devices{0, 0, 1, 0});
  items[1].devices = {0};
  items[3].devices = {1};
  const auto apart =
      pack(items, std::vector<PackingDevice>{{"gpu", 60}, {"cpu", {}}}, BalancePolicy::Sequential);
  REQUIRE(!apart.ok());
  CHECK(apart.status().message() == "no device may run n1 and 1 nodes that stay with it");
}

TEST_CASE("what runs one after the other is charged the most of it") {
  std::vector<PackingItem> items = items_of({10, 10, 10});
  items[0].live_bytes = 50;
  items[1].live_bytes = 70;
  items[2].live_bytes = 60;
  const Packing packing = packed(items, {{"gpu", 100}, {"cpu", {}}});
  CHECK(devices_of(packing) == Devices{0, 0, 0});
  CHECK(packing.held_bytes[0] == 30);
  CHECK(packing.live_bytes[0] == 70);
  CHECK(devices_of(packed(items, {{"gpu", 99}, {"cpu", {}}})) == Devices{0, 0, 1});
}

TEST_CASE("items without weights go where those before them had to go, but for rules") {
  std::vector<PackingItem> items = items_of({100, 0, 100, 0, 0});
  const std::vector<PackingDevice> devices = {{"gpu", 100}, {"cpu", {}}};
  const Packing packing = packed(items, devices);
  CHECK(devices_of(packing) == Devices{0, 0, 1, 1, 1});
  CHECK(packing.choices[3].reason == PackingReason::Follows);
  items[3].is_ruled = true;
  CHECK(devices_of(packed(items, devices)) == Devices{0, 0, 1, 0, 0});
  items[3].is_ruled = false;
  items[3].devices = {0};
  CHECK(devices_of(packed(items, devices)) == Devices{0, 0, 1, 0, 0});
}

TEST_CASE("items with next to no weights follow too") {
  const std::vector<PackingItem> items = items_of({5000, 5000, 20, 0, 19, 21});
  const Packing packing = packed(items, {{"gpu", 5100}, {"cpu", {}}});
  CHECK(devices_of(packing) == Devices{0, 1, 0, 0, 0, 0});
  const std::vector<PackingItem> large = items_of({5000, 5200, 20, 0, 19, 21});
  CHECK(devices_of(packed(large, {{"gpu", 5100}, {"cpu", {}}})) == Devices{0, 1, 1, 1, 1, 0});
}

TEST_CASE("several devices are filled in the order that each item wants") {
  std::vector<PackingItem> items = items_of({60, 60, 60, 60});
  for (PackingItem& each : items) each.devices = {0, 1, 2};
  items[0].devices = {1, 2};
  const Packing packing = packed(items, {{"gpu:0", 100}, {"gpu:1", 100}, {"cpu", 200}});
  CHECK(devices_of(packing) == Devices{1, 0, 2, 2});
}

TEST_CASE("balance gives devices the same share of their limits, in one piece each") {
  std::vector<PackingItem> items = items_of(std::vector<std::uint64_t>(12, 10));
  for (PackingItem& each : items) each.devices = {0, 1, 2};
  const std::vector<PackingDevice> devices = {{"gpu:0", 120}, {"gpu:1", 60}, {"cpu", {}}};
  const Packing packing = packed(items, devices, BalancePolicy::Balanced);
  CHECK(devices_of(packing) == Devices{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(packing.choices[8].reason == PackingReason::Balance);
  CHECK(devices_of(packed(items, devices)) == Devices{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("balance keeps the last resort of all items for what has no room elsewhere") {
  std::vector<PackingItem> items = items_of(std::vector<std::uint64_t>(12, 10));
  for (PackingItem& each : items) each.devices = {0, 1, 2};
  const std::vector<PackingDevice> devices = {{"gpu:0", 120}, {"gpu:1", 60}, {"cpu", 10000}};
  CHECK(devices_of(packed(items, devices, BalancePolicy::Balanced)) ==
        Devices{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1});
  const std::vector<PackingDevice> small = {{"gpu:0", 40}, {"gpu:1", 30}, {"cpu", 10000}};
  CHECK(devices_of(packed(items, small, BalancePolicy::Balanced)) ==
        Devices{0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2});
}

TEST_CASE("balance still fills devices to their limits when all of them are needed") {
  std::vector<PackingItem> items = items_of({30, 30, 30, 30, 30, 30, 10});
  for (PackingItem& each : items) each.devices = {0, 1};
  const std::vector<PackingDevice> devices = {{"gpu:0", 100}, {"gpu:1", 90}};
  const Packing packing = packed(items, devices, BalancePolicy::Balanced);
  CHECK(packing.held_bytes[0] == 100);
  CHECK(packing.held_bytes[1] == 90);
}

TEST_CASE("fit puts the most bytes where they are wanted") {
  const std::vector<PackingItem> items = items_of({10, 20, 90, 5});
  const std::vector<PackingDevice> devices = {{"gpu", 100}, {"cpu", {}}};
  CHECK(packed(items, devices).held_bytes[0] == 35);
  const Packing packing = packed(items, devices, BalancePolicy::Fit);
  CHECK(devices_of(packing) == Devices{0, 1, 0, 1});
  CHECK(packing.held_bytes[0] == 100);
}

TEST_CASE("an item that no device has room for is named with what is left on each") {
  const auto packing =
      pack(items_of({60, 100}), std::vector<PackingDevice>{{"gpu", 80}, {"cpu", 90}},
           BalancePolicy::Sequential);
  REQUIRE(!packing.ok());
  CHECK(packing.status().message() ==
        "no device has room for n1 within its budget: gpu has 20 bytes left, 100 bytes needed; "
        "cpu has 90 bytes left, 100 bytes needed");
}

TEST_CASE("estimates of whole devices decide, to the byte") {
  const std::vector<PackingItem> items = items_of({100, 100, 100, 100});
  // A provider that shares some memory and needs some for itself.
  const auto estimate = [](std::uint32_t device,
                           std::span<const std::uint32_t> on) -> Result<std::uint64_t> {
    return device == 1 ? 0 : 37 + 90 * on.size();
  };
  const auto devices_at = [&](std::uint64_t limit) {
    const auto packing =
        pack_exactly(items, std::vector<PackingDevice>{{"gpu", limit}, {"cpu", {}}},
                     BalancePolicy::Sequential, estimate);
    REQUIRE_MESSAGE(packing.ok(), packing.status().to_string());
    CHECK(packing->estimated_bytes[0] <= limit);
    return devices_of(*packing);
  };
  CHECK(devices_at(397) == Devices{0, 0, 0, 0});
  CHECK(devices_at(396) == Devices{0, 0, 0, 1});
  CHECK(devices_at(307) == Devices{0, 0, 0, 1});
  CHECK(devices_at(36) == Devices{1, 1, 1, 1});
  const auto failing = [](std::uint32_t, std::span<const std::uint32_t>) -> Result<std::uint64_t> {
    return Status(Code::Runtime, "no");
  };
  CHECK(!pack_exactly(items, std::vector<PackingDevice>{{"gpu", 1}, {"cpu", {}}},
                      BalancePolicy::Sequential, failing)
             .ok());
}

TEST_CASE("limits hold, groups stay whole and every item has a device that it may use") {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<PackingItem> items;
    for (std::uint32_t i = 0, count = 1 + below(40); i < count; ++i) {
      items.push_back(item("n", {}));
      for (std::uint32_t w = below(3); w > 0; --w) {
        const std::uint32_t id = below(30);
        items.back().weights.push_back({id, 10 + id});
      }
      items.back().own_bytes = below(20);
      items.back().live_bytes = below(60);
      items.back().is_ruled = below(5) == 0;
      if (below(3) == 0) items.back().group = below(4);
      items.back().devices = below(2) == 0 ? Devices{0, 1, 2} : Devices{1, 0, 2};
    }
    const std::vector<PackingDevice> devices = {
        {"gpu:0", below(500)}, {"gpu:1", below(500)}, {"cpu", {}}};
    for (const auto policy :
         {BalancePolicy::Sequential, BalancePolicy::Balanced, BalancePolicy::Fit}) {
      const Packing packing = packed(items, devices, policy);
      std::map<std::uint32_t, std::set<std::uint32_t>> devices_of_group;
      for (std::uint32_t device = 0; device < 3; ++device) {
        std::map<std::uint64_t, std::uint64_t> weights;
        std::uint64_t own = 0;
        std::uint64_t live = 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
          if (packing.choices[i].device != device) continue;
          for (const SharedWeight& weight : items[i].weights) weights[weight.id] = weight.bytes;
          own += items[i].own_bytes;
          live = std::max(live, items[i].live_bytes);
          if (items[i].group != kNoGroup) devices_of_group[items[i].group].insert(device);
        }
        for (const auto& [id, bytes] : weights) own += bytes;
        CHECK(packing.held_bytes[device] == own);
        CHECK(packing.live_bytes[device] == live);
        if (devices[device].limit_bytes) CHECK(own + live <= *devices[device].limit_bytes);
      }
      for (const auto& [group, used] : devices_of_group) CHECK(used.size() == 1);
    }
  }
}
