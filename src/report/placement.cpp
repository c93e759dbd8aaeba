#include <algorithm>
#include <map>

#include "base/text.h"
#include "placement/describe.h"
#include "placement/designator.h"
#include "report/json.h"
#include "report/plan_layers.h"
#include "report/plan_memory.h"
#include "report/plan_options.h"
#include "report/report.h"

namespace sardonyx {

namespace {

constexpr std::uint32_t kNone = 0xffffffffU;
constexpr std::uint32_t kPointsMax = 600;
constexpr std::size_t kSharedWeightsMax = 100;
constexpr std::size_t kSharedNodesMax = 64;

Json optional_text(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json device_row(const PlacedDevice& device) {
  Json parts = Json::array();
  for (const DeviceDescription& one : device.devices) {
    parts.push_back({{"type", std::string(device_word(one.type))},
                     {"vendor", optional_text(one.vendor)},
                     {"ordinal", one.ordinal ? Json(*one.ordinal) : Json()},
                     {"memory_bytes", one.memory_bytes == 0 ? Json() : Json(one.memory_bytes)}});
  }
  return {{"name", device_name(device)},
          {"provider", device.provider},
          {"devices", std::move(parts)},
          {"node_count", device.node_count},
          {"weight_bytes", device.weight_bytes},
          {"limit_bytes", device.limit_bytes ? Json(*device.limit_bytes) : Json()},
          {"need_bytes", device.need_bytes ? Json(*device.need_bytes) : Json()}};
}

Json node_row(const PlanView& view, std::size_t index) {
  const Placement& placement = view.placement;
  const PlacedNode& node = placement.nodes[index];
  const NodeNames names = view.names(index);
  Json row = {{"name", node.name}};
  if (node.name.empty() && !names.output.empty()) row["output"] = names.output;
  if (!names.module_path.empty()) row["module_path"] = names.module_path;
  row["domain"] = node.domain;
  row["op_type"] = node.op_type;
  row["device"] = device_name(placement.devices[node.device]);
  row["device_index"] = node.device;
  row["part"] = node.part;
  row["reason"] = placement_reason_name(node.reason);
  row["rule"] = node.rule == kNone ? Json() : Json(placement.rules[node.rule].text);
  row["why_not"] = optional_text(node.why_not);
  row["weight_bytes"] = node.weight_bytes;
  row["output_bytes"] = node.output_bytes;
  return row;
}

/// What was summed up as a number of bytes.
std::uint64_t whole(double bytes) {
  constexpr double kMost = 9e18;
  return static_cast<std::uint64_t>(std::min(bytes, kMost));
}

/// `memory` of sessions is empty: they know no lifetimes.
Json device_rows(const PlanView& view, const PlanMemory& memory) {
  const Placement& placement = view.placement;
  const bool is_known = !view.details.names.empty();
  Json rows = Json::array();
  for (std::size_t i = 0; i < placement.devices.size(); ++i) {
    const PlacedDevice& device = placement.devices[i];
    const DeviceMemory& values = memory.devices[i];
    Json row = device_row(device);
    row["activation_peak_bytes"] = is_known ? Json(whole(values.peak_bytes)) : Json();
    row["activation_peak_node"] = values.peak_bytes > 0 ? Json(values.peak_node) : Json();
    row["unsized_values"] = values.unsized_count;
    const double all_bytes = values.peak_bytes + static_cast<double>(device.weight_bytes);
    row["estimated_bytes"] = is_known ? Json(whole(all_bytes)) : Json();
    rows.push_back(std::move(row));
  }
  return rows;
}

Json node_rows(const PlanView& view, const PlanLayers& layers) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < view.placement.nodes.size(); ++i) {
    rows.push_back(node_row(view, i));
    rows.back()["layer"] = layers.layer_of[i];
  }
  return rows;
}

Json layer_rows(const Placement& placement, const PlanLayers& layers) {
  Json rows = Json::array();
  for (const PlanLayer& layer : layers.layers) {
    Json devices = Json::array();
    for (std::size_t i = 0; i < layer.nodes_by_device.size(); ++i) {
      if (layer.nodes_by_device[i] == 0) continue;
      devices.push_back({{"device", device_name(placement.devices[i])},
                         {"device_index", i},
                         {"node_count", layer.nodes_by_device[i]}});
    }
    rows.push_back({{"pattern", layer.pattern.empty() ? Json() : Json(layer.pattern)},
                    {"devices", std::move(devices)},
                    {"node_count", layer.node_count},
                    {"weight_bytes", layer.weight_bytes},
                    {"output_bytes", layer.output_bytes}});
  }
  return rows;
}

Json shared_rows(const PlanView& view) {
  const Placement& placement = view.placement;
  Json rows = Json::array();
  for (const PlacedWeight& weight : view.details.shared_weights) {
    if (rows.size() == kSharedWeightsMax) break;
    std::vector<std::uint32_t> nodes = weight.nodes;
    if (nodes.size() > kSharedNodesMax) nodes.resize(kSharedNodesMax);
    std::vector<std::string> devices;
    for (const std::uint32_t node : weight.nodes) {
      std::string name = device_name(placement.devices[placement.nodes[node].device]);
      if (std::find(devices.begin(), devices.end(), name) == devices.end()) {
        devices.push_back(std::move(name));
      }
    }
    rows.push_back({{"name", weight.name},
                    {"bytes", weight.bytes},
                    {"node_count", weight.nodes.size()},
                    {"nodes", nodes},
                    {"devices", devices}});
  }
  return rows;
}

Json memory_row(const PlanMemory& memory) {
  Json points = Json::array();
  for (const DeviceMemory& device : memory.devices) {
    Json row = Json::array();
    for (const double bytes : device.points) row.push_back(whole(bytes));
    points.push_back(std::move(row));
  }
  return {{"nodes_per_point", memory.step}, {"activation_bytes", std::move(points)}};
}

Json copy_rows(const Placement& placement) {
  Json rows = Json::array();
  for (const PlacedCopy& copy : placement.copies) {
    rows.push_back({{"value", copy.value},
                    {"from", device_name(placement.devices[copy.from])},
                    {"to", device_name(placement.devices[copy.to])},
                    {"bytes", copy.bytes == 0 ? Json() : Json(copy.bytes)}});
  }
  return rows;
}

Json rule_rows(const Placement& placement) {
  Json rows = Json::array();
  for (const PlacedRule& rule : placement.rules) {
    rows.push_back({{"text", rule.text},
                    {"option", rule.option},
                    {"kept", rule.kept},
                    {"lost", rule.lost},
                    {"why_not", optional_text(rule.why_not)}});
  }
  return rows;
}

Json rows_of(const PlanView& view) {
  const Placement& placement = view.placement;
  const PlanLayers layers = find_layers(view);
  const PlanMemory memory = memory_over_time(placement, view.details, kPointsMax);
  const PlanOption option = placement_option(view, layers);
  return {{"format", 1},
          {"devices", device_rows(view, memory)},
          {"layers", layer_rows(placement, layers)},
          {"nodes", node_rows(view, layers)},
          {"copies", copy_rows(placement)},
          {"rules", rule_rows(placement)},
          {"warnings", placement.warnings},
          {"options", {{std::string(kPlacementOption), optional_text(option.text)}}},
          {"unreproduced_nodes", option.lost_count},
          {"shared_weights", shared_rows(view)},
          {"memory", memory_row(memory)}};
}

Result<DeviceType> read_type(const std::string& word) {
  for (const DeviceType type :
       {DeviceType::Cpu, DeviceType::Gpu, DeviceType::Npu, DeviceType::Fpga}) {
    if (word == device_word(type)) return type;
  }
  return failure(Code::InvalidArgument,
                 "\"type\" of a device should be cpu, gpu, npu or fpga, found '{}'", word);
}

/// Errors   InvalidArgument for a field that no device has.
Status check_fields(const Json& row) {
  static const std::vector<std::string> kFields = {
      "provider", "type", "vendor", "vendor_id", "ordinal", "memory_bytes", "operators"};
  for (const auto& [key, value] : row.items()) {
    if (std::find(kFields.begin(), kFields.end(), key) != kFields.end()) continue;
    const std::string guess = nearest(key, kFields);
    return failure(Code::InvalidArgument, "a device has no field \"{}\"{}; its fields are: {}", key,
                   guess.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", guess),
                   join(kFields, ", "));
  }
  return {};
}

/// Errors   InvalidArgument for a field that is there and no text.
Result<std::string> text_field(const Json& row, const char* key, std::string fallback) {
  if (!row.contains(key)) return fallback;
  if (row[key].is_string()) return row[key].get<std::string>();
  return failure(Code::InvalidArgument, "\"{}\" of a device should be a text, found {}", key,
                 row[key].dump());
}

/// Errors   InvalidArgument for a field that is there and no number from 0 to `most`.
Result<std::uint64_t> number_field(const Json& row, const char* key, std::uint64_t fallback,
                                   std::uint64_t most) {
  if (!row.contains(key)) return fallback;
  if (row[key].is_number_unsigned() && row[key].get<std::uint64_t>() <= most) {
    return row[key].get<std::uint64_t>();
  }
  return failure(Code::InvalidArgument, "\"{}\" of a device should be from 0 to {}, found {}", key,
                 most, row[key].dump());
}

Result<std::vector<std::string>> operators_of(const Json& row) {
  std::vector<std::string> operators;
  if (!row.contains("operators")) return operators;
  const Json& list = row["operators"];
  if (!list.is_array()) {
    return failure(Code::InvalidArgument, "\"operators\" of a device should be a list, found {}",
                   list.type_name());
  }
  for (const Json& each : list) {
    if (!each.is_string()) {
      return failure(Code::InvalidArgument, "\"operators\" of a device should be texts, found {}",
                     each.dump());
    }
    operators.push_back(each.get<std::string>());
  }
  return operators;
}

/// `counts` has the next number of each type.
Result<ImaginedDevice> read_device(const Json& row, std::map<DeviceType, std::uint64_t>& counts) {
  if (!row.is_object()) {
    return failure(Code::InvalidArgument, "a device should be an object, found {}",
                   row.type_name());
  }
  SDX_TRY(check_fields(row));
  constexpr std::uint64_t kMost32 = 0xffffffffU;
  constexpr std::uint64_t kMost64 = 0xffffffffffffffffU;
  ImaginedDevice device;
  SDX_ASSIGN(const std::string word, text_field(row, "type", "gpu"));
  SDX_ASSIGN(device.description.type, read_type(word));
  std::uint64_t& next = counts[device.description.type];
  SDX_ASSIGN(const std::uint64_t ordinal, number_field(row, "ordinal", next, kMost32));
  next = ordinal + 1;
  device.description.ordinal = static_cast<std::uint32_t>(ordinal);
  SDX_ASSIGN(device.provider, text_field(row, "provider", word + "ExecutionProvider"));
  SDX_ASSIGN(device.description.vendor, text_field(row, "vendor", ""));
  SDX_ASSIGN(const std::uint64_t vendor_id, number_field(row, "vendor_id", 0, kMost32));
  device.description.vendor_id = static_cast<std::uint32_t>(vendor_id);
  SDX_ASSIGN(device.description.memory_bytes, number_field(row, "memory_bytes", 0, kMost64));
  SDX_ASSIGN(device.operators, operators_of(row));
  return device;
}

}  // namespace

Result<std::vector<ImaginedDevice>> read_devices(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return Status(Code::InvalidArgument, "the description of devices is not JSON");
  }
  const Json& rows = json.is_object() && json.contains("devices") ? json["devices"] : json;
  if (!rows.is_array()) {
    return Status(Code::InvalidArgument,
                  "the description of devices should be a list of them, or {\"devices\": […]}");
  }
  std::vector<ImaginedDevice> devices;
  std::map<DeviceType, std::uint64_t> counts;
  for (const Json& row : rows) {
    SDX_ASSIGN(ImaginedDevice device, read_device(row, counts));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string describe_placement(const Placement& placement) {
  return to_text(rows_of({placement, PlacementDetails()}));
}

std::string describe_plan(const Plan& plan) {
  Json json = rows_of({plan.placement, plan.details});
  Json removed = Json::array();
  for (const RemovedNode& node : plan.removed) {
    removed.push_back({{"name", node.name}, {"domain", node.domain}, {"op_type", node.op_type}});
  }
  json["removed"] = std::move(removed);
  return to_text(json);
}

}  // namespace sardonyx
