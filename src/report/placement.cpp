#include <map>

#include "base/text.h"
#include "placement/describe.h"
#include "placement/designator.h"
#include "report/json.h"
#include "report/report.h"

namespace sardonyx {

namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

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
          {"weight_bytes", device.weight_bytes}};
}

Json node_row(const PlacedNode& node, const Placement& placement) {
  Json row = {{"name", node.name},
              {"domain", node.domain},
              {"op_type", node.op_type},
              {"device", device_name(placement.devices[node.device])},
              {"device_index", node.device},
              {"part", node.part},
              {"reason", placement_reason_name(node.reason)},
              {"rule", node.rule == kNone ? Json() : Json(placement.rules[node.rule].text)},
              {"why_not", optional_text(node.why_not)},
              {"weight_bytes", node.weight_bytes},
              {"output_bytes", node.output_bytes}};
  return row;
}

Json rows_of(const Placement& placement) {
  Json devices = Json::array();
  for (const PlacedDevice& device : placement.devices) devices.push_back(device_row(device));
  Json nodes = Json::array();
  for (const PlacedNode& node : placement.nodes) nodes.push_back(node_row(node, placement));
  Json copies = Json::array();
  for (const PlacedCopy& copy : placement.copies) {
    copies.push_back({{"value", copy.value},
                      {"from", device_name(placement.devices[copy.from])},
                      {"to", device_name(placement.devices[copy.to])},
                      {"bytes", copy.bytes == 0 ? Json() : Json(copy.bytes)}});
  }
  Json rules = Json::array();
  for (const PlacedRule& rule : placement.rules) {
    rules.push_back({{"text", rule.text},
                     {"option", rule.option},
                     {"kept", rule.kept},
                     {"lost", rule.lost},
                     {"why_not", optional_text(rule.why_not)}});
  }
  return {{"format", 1},
          {"devices", std::move(devices)},
          {"nodes", std::move(nodes)},
          {"copies", std::move(copies)},
          {"rules", std::move(rules)},
          {"warnings", placement.warnings}};
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
  static const std::vector<std::string> kFields = {"provider", "type",         "vendor", "vendor_id",
                                                   "ordinal",  "memory_bytes", "operators"};
  for (const auto& [key, value] : row.items()) {
    if (std::find(kFields.begin(), kFields.end(), key) != kFields.end()) continue;
    const std::string guess = nearest(key, kFields);
    return failure(Code::InvalidArgument, "a device has no field \"{}\"{}; its fields are: {}", key,
                   guess.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", guess),
                   join(kFields, ", "));
  }
  return {};
}

Result<ImaginedDevice> read_device(const Json& row, std::map<DeviceType, std::uint32_t>& counts) {
  if (!row.is_object()) {
    return failure(Code::InvalidArgument, "a device should be an object, found {}",
                   row.type_name());
  }
  SDX_TRY(check_fields(row));
  ImaginedDevice device;
  SDX_ASSIGN(device.description.type, read_type(row.value("type", std::string("gpu"))));
  std::uint32_t& next = counts[device.description.type];
  device.description.ordinal = row.value("ordinal", next);
  next = *device.description.ordinal + 1;
  device.provider = row.value("provider", fmt::format("{}ExecutionProvider",
                                                      device_word(device.description.type)));
  device.description.vendor = row.value("vendor", std::string());
  device.description.vendor_id = row.value("vendor_id", 0U);
  device.description.memory_bytes = row.value("memory_bytes", std::uint64_t{0});
  device.operators = row.value("operators", std::vector<std::string>());
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
  std::map<DeviceType, std::uint32_t> counts;
  try {
    for (const Json& row : rows) {
      SDX_ASSIGN(ImaginedDevice device, read_device(row, counts));
      devices.push_back(std::move(device));
    }
  } catch (const Json::exception& error) {
    return failure(Code::InvalidArgument, "a device's field is of another type: {}", error.what());
  }
  return devices;
}

std::string describe_placement(const Placement& placement) { return to_text(rows_of(placement)); }

std::string describe_plan(const Plan& plan) {
  Json json = rows_of(plan.placement);
  Json removed = Json::array();
  for (const RemovedNode& node : plan.removed) {
    removed.push_back(
        {{"name", node.name}, {"domain", node.domain}, {"op_type", node.op_type}});
  }
  json["removed"] = std::move(removed);
  return to_text(json);
}

}  // namespace sardonyx
