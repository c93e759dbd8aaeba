#include "report/plan_options.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "placement/describe.h"
#include "placement/rule_matcher.h"

namespace sardonyx {

namespace {

/// Beyond that a plan file is of more use.
constexpr std::size_t kOptionBytesMax = std::size_t{256} << 10;

std::vector<ProviderDevices> devices_of(const Placement& placement) {
  std::vector<ProviderDevices> devices;
  for (const PlacedDevice& device : placement.devices) {
    devices.push_back({device.provider, device.devices});
  }
  return devices;
}

/// Numbers as they are written: "0-3,7".
std::string ranges_of(std::vector<std::pair<std::uint64_t, std::string>> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    const bool is_padded = numbers[i].second.size() > 1 && numbers[i].second.front() == '0';
    while (last + 1 < numbers.size() && numbers[last + 1].first == numbers[last].first + 1 &&
           (!is_padded || numbers[last + 1].second.size() == numbers[i].second.size())) {
      ++last;
    }
    parts.push_back(last == i ? numbers[i].second
                              : fmt::format("{}-{}", numbers[i].second, numbers[last].second));
    i = last + 1;
  }
  return join(parts, ",");
}

class OptionWriter {
 public:
  OptionWriter(const PlanView& view, const PlanLayers& layers)
      : view_(view),
        placement_(view.placement),
        layers_(layers),
        devices_(devices_of(view.placement)) {
    for (std::uint32_t i = 0; i < devices_.size(); ++i) designators_.push_back(designator_of(i));
    items_.resize(devices_.size());
  }

  PlanOption write() {
    if (placement_.nodes.empty()) return {};
    find_base();
    add_layers();
    auto text = write_items();
    auto wrong = wrong_nodes(text);
    if (wrong.empty()) return {text, 0};
    add_names(wrong);
    text = write_items();
    if (text.size() > kOptionBytesMax) return {"", placement_.nodes.size()};
    return {text, wrong_nodes(text).size()};
  }

 private:
  /// What rules call a device by; "" when nothing means just this one.
  std::string designator_of(std::uint32_t index) const {
    const PlacedDevice& device = placement_.devices[index];
    std::uint32_t instance = 0;
    for (std::uint32_t i = 0; i < index; ++i) {
      if (placement_.devices[i].provider == device.provider) ++instance;
    }
    for (const std::string& name :
         {device_name(device), device.provider, fmt::format("{}:{}", device.provider, instance)}) {
      if (resolve_designator(name, devices_, DesignatorMode::Extended).provider == index) {
        return name;
      }
    }
    return "";
  }

  void find_base() {
    std::uint64_t most = 0;
    for (std::uint32_t i = 0; i < devices_.size(); ++i) {
      if (designators_[i].empty() || placement_.devices[i].node_count <= most) continue;
      most = placement_.devices[i].node_count;
      base_ = i;
    }
  }

  /// Whole layers that are elsewhere.
  void add_layers() {
    using Numbers = std::vector<std::pair<std::uint64_t, std::string>>;
    std::map<std::pair<std::string, std::string>, std::map<int, Numbers>> groups;
    for (const PlanLayer& layer : layers_.layers) {
      const int device = layer.only_device();
      if (layer.pattern.empty() || device < 0 || static_cast<std::uint32_t>(device) == base_) {
        continue;
      }
      const NumberedPattern parts = split_number(layer.pattern);
      if (parts.digits.empty()) {
        items_[static_cast<std::size_t>(device)].push_back(layer.pattern);
        continue;
      }
      std::uint64_t number = 0;
      std::from_chars(parts.digits.data(), parts.digits.data() + parts.digits.size(), number);
      groups[{std::string(parts.prefix), std::string(parts.separator)}][device].emplace_back(
          number, parts.digits);
    }
    for (auto& [around, by_device] : groups) {
      for (auto& [device, numbers] : by_device) {
        const std::string text = numbers.size() == 1
                                     ? numbers.front().second
                                     : fmt::format("[{}]", ranges_of(std::move(numbers)));
        items_[static_cast<std::size_t>(device)].push_back(around.first + text + around.second);
      }
    }
  }

  std::string write_items() const {
    std::vector<std::string> entries;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].empty() || designators_[i].empty()) continue;
      entries.push_back(fmt::format("{}({})", designators_[i], join(items_[i], ", ")));
    }
    if (!designators_[base_].empty()) entries.push_back(designators_[base_] + "(*)");
    return join(entries, "; ");
  }

  /// Nodes that the text would put elsewhere; all when it cannot be read.
  std::vector<std::uint32_t> wrong_nodes(const std::string& text) const {
    std::vector<std::uint32_t> wrong;
    auto rules = parse_rules({text, "", ""});
    auto matcher = rules.ok() ? RuleMatcher::create(*std::move(rules), devices_)
                              : Result<RuleMatcher>(std::move(rules).take_status());
    for (std::uint32_t i = 0; i < placement_.nodes.size(); ++i) {
      const PlacedNode& node = placement_.nodes[i];
      if (!matcher.ok() || matcher->match(view_.names(i)).provider != node.device) {
        wrong.push_back(i);
      }
    }
    return wrong;
  }

  /// Names of nodes, as far as they have some: exact ones come before all other patterns.
  void add_names(const std::vector<std::uint32_t>& nodes) {
    std::unordered_set<std::string_view> named;
    for (const std::uint32_t i : nodes) {
      const PlacedNode& node = placement_.nodes[i];
      const NodeNames names = view_.names(i);
      if (names.name.empty() && !names.module_path.empty()) continue;
      const std::string_view name = names.name.empty() ? names.output : names.name;
      if (name.empty() || !named.insert(name).second) continue;
      Rule rule;
      rule.kind = PatternKind::ExactName;
      rule.pattern = name;
      rule.expansion = {rule.pattern};
      const std::string text = rule.to_string();
      items_[node.device].push_back(text.substr(1, text.size() - 2));
    }
  }

  const PlanView& view_;
  const Placement& placement_;
  const PlanLayers& layers_;
  std::vector<ProviderDevices> devices_;
  /// By device.
  std::vector<std::string> designators_;
  std::vector<std::vector<std::string>> items_;
  std::uint32_t base_ = 0;
};

}  // namespace

PlanOption placement_option(const PlanView& view, const PlanLayers& layers) {
  return OptionWriter(view, layers).write();
}

}  // namespace sardonyx
