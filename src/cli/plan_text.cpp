#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/summary.h"
#include "cli/table.h"

namespace sardonyx::cli {

namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kLayersMax = 200;
constexpr std::size_t kCopiesMax = 8;
constexpr std::size_t kSharedMax = 5;

std::string text_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_string()) return {};
  return printable(found->get<std::string>());
}

std::string bytes_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || !found->is_number() ? "?" : bytes_text(found->get<double>());
}

std::string count_of(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// "rule 60, capability 4" for each device.
std::map<std::size_t, std::string> reasons_of(const Json& plan) {
  std::map<std::size_t, std::map<std::string, std::size_t>> counts;
  for (const Json& node : plan["nodes"]) {
    ++counts[node["device_index"].get<std::size_t>()][text_of(node, "reason")];
  }
  std::map<std::size_t, std::string> texts;
  for (const auto& [device, reasons] : counts) {
    std::vector<std::string> parts;
    for (const auto& [reason, count] : reasons) {
      parts.push_back(fmt::format("{} {}", reason, count));
    }
    texts[device] = join(parts, ", ");
  }
  return texts;
}

void print_devices(const Json& plan) {
  Rows rows = {{"device", "nodes", "weights", "activations", "limit", "why", "provider"}};
  auto reasons = reasons_of(plan);
  for (std::size_t i = 0; i < plan["devices"].size(); ++i) {
    const Json& device = plan["devices"][i];
    const auto unsized_count = device.value("unsized_values", std::size_t{0});
    std::string values = bytes_of(device, "activation_peak_bytes");
    if (unsized_count != 0) values += fmt::format(" + {} unsized", unsized_count);
    rows.push_back({text_of(device, "name"), device["node_count"].dump(),
                    bytes_of(device, "weight_bytes"), values,
                    device["limit_bytes"].is_null() ? "-" : bytes_of(device, "limit_bytes"),
                    reasons[i].empty() ? "-" : reasons[i], text_of(device, "provider")});
  }
  fmt::print("devices\n");
  print_table(rows);
}

/// "gpu:0", or "gpu:0 12 nodes, cpu 3 nodes".
std::string devices_of(const Json& layer) {
  if (layer["devices"].size() == 1) return text_of(layer["devices"][0], "device");
  std::vector<std::string> parts;
  for (const Json& device : layer["devices"]) {
    parts.push_back(fmt::format("{} {}", text_of(device, "device"), device["node_count"].dump()));
  }
  return join(parts, " + ");
}

void print_layers(const Json& plan) {
  Rows rows = {{"layer", "device", "nodes", "weights"}};
  for (const Json& layer : plan["layers"]) {
    if (rows.size() > kLayersMax) break;
    rows.push_back({layer["pattern"].is_null() ? "(no pattern)" : text_of(layer, "pattern"),
                    devices_of(layer), layer["node_count"].dump(),
                    bytes_of(layer, "weight_bytes")});
  }
  fmt::print("layers\n");
  print_table(rows);
  if (plan["layers"].size() > kLayersMax) {
    fmt::print("  and {} more; --json has all\n", plan["layers"].size() - kLayersMax);
  }
}

void print_rules(const Json& plan) {
  if (plan["rules"].empty()) return;
  Rows rows = {{"kept", "lost", "rule", ""}};
  for (const Json& rule : plan["rules"]) {
    rows.push_back({rule["kept"].dump(), rule["lost"].dump(), text_of(rule, "text"),
                    text_of(rule, "why_not")});
  }
  fmt::print("rules (nodes that are where they say, and that are not)\n");
  print_table(rows);
  std::map<std::string, std::size_t> reasons;
  for (const Json& node : plan["nodes"]) {
    if (const std::string why = text_of(node, "why_not"); !why.empty()) ++reasons[why];
  }
  for (const auto& [why, count] : reasons) {
    fmt::print("  {} elsewhere: {}\n", count_of(count, "node", "nodes"), why);
  }
}

void print_copies(const Json& plan) {
  std::vector<Json> copies = plan["copies"];
  if (copies.empty()) return;
  double bytes = 0;
  const auto size = [](const Json& row) {
    return row["bytes"].is_number() ? row["bytes"].get<double>() : 0;
  };
  for (const Json& copy : copies) bytes += size(copy);
  std::stable_sort(copies.begin(), copies.end(),
                   [&](const Json& a, const Json& b) { return size(a) > size(b); });
  const auto unsized_count = std::count_if(copies.begin(), copies.end(),
                                           [&](const Json& copy) { return size(copy) == 0; });
  fmt::print("copies between devices ({}, {}{})\n", copies.size(), bytes_text(bytes),
             unsized_count == 0 ? "" : fmt::format(" + {} unsized", unsized_count));
  Rows rows;
  for (const Json& copy : copies) {
    if (rows.size() == kCopiesMax) break;
    rows.push_back({fmt::format("{} -> {}", text_of(copy, "from"), text_of(copy, "to")),
                    bytes_of(copy, "bytes"), text_of(copy, "value")});
  }
  print_table(rows);
  if (copies.size() > kCopiesMax) fmt::print("  and {} more\n", copies.size() - kCopiesMax);
}

void print_shared(const Json& plan) {
  const Json& shared = plan["shared_weights"];
  if (shared.empty()) return;
  fmt::print("weights that several nodes use\n");
  Rows rows;
  for (const Json& weight : shared) {
    if (rows.size() == kSharedMax) break;
    std::vector<std::string> devices;
    for (const Json& device : weight["devices"]) devices.push_back(printable(device));
    rows.push_back({bytes_of(weight, "bytes"), weight["node_count"].dump() + " nodes",
                    join(devices, ", "), text_of(weight, "name")});
  }
  print_table(rows);
  if (shared.size() > kSharedMax) fmt::print("  and {} more\n", shared.size() - kSharedMax);
}

void print_nodes(const Json& plan) {
  Rows rows = {{"device", "reason", "operator", "node", ""}};
  for (const Json& node : plan["nodes"]) {
    std::string reason = text_of(node, "reason");
    if (const std::string rule = text_of(node, "rule"); !rule.empty()) reason += " " + rule;
    const std::string name = text_of(node, "name");
    rows.push_back({text_of(node, "device"), reason, text_of(node, "op_type"),
                    name.empty() ? "output " + text_of(node, "output") : name,
                    text_of(node, "why_not")});
  }
  fmt::print("nodes\n");
  print_table(rows);
}

void print_options(const Json& plan) {
  const std::string text = text_of(plan["options"], "sardonyx.placement");
  if (text.empty()) {
    fmt::print("the same as an option: too long; --save-plan writes it to a file\n");
    return;
  }
  fmt::print("the same as an option\n  sardonyx.placement={}\n", text);
  const auto lost_count = plan.value("unreproduced_nodes", std::size_t{0});
  if (lost_count != 0) {
    fmt::print("  but for {} that no pattern tells from others\n",
               count_of(lost_count, "node", "nodes"));
  }
}

}  // namespace

void print_plan(const std::string& path, const Json& plan, bool with_nodes) {
  fmt::print("{}: {} to run", path, count_of(plan["nodes"].size(), "node", "nodes"));
  if (const std::size_t count = plan["removed"].size(); count != 0) {
    fmt::print("; {} more known or needed by nobody", count);
  }
  fmt::print("\n");
  print_devices(plan);
  print_layers(plan);
  print_rules(plan);
  print_copies(plan);
  print_shared(plan);
  if (with_nodes) print_nodes(plan);
  if (!plan["warnings"].empty()) fmt::print("warnings\n");
  for (const Json& warning : plan["warnings"]) fmt::print("  {}\n", printable(warning));
  print_options(plan);
}

void print_suggestions(const std::string& path, const Json& report) {
  if (report["groups"].empty() && report["others"].empty()) {
    fmt::print(
        "{}: no patterns: the names of its {} tell no layers apart. Rules can still name single "
        "nodes (=name), annotations (@layer), or all (*); a plan file names nodes one by one.\n",
        path, count_of(report["unnamed_nodes"].get<std::size_t>(), "node", "nodes"));
    return;
  }
  fmt::print("{}: patterns from {}\n", path, text_of(report, "from"));
  for (const Json& group : report["groups"]) {
    fmt::print("{}  {}, {}\n", text_of(group, "range"),
               count_of(group["layers"].size(), "layer", "layers"),
               count_of(group["node_count"].get<std::size_t>(), "node", "nodes"));
    Rows rows;
    for (const Json& layer : group["layers"]) {
      rows.push_back({text_of(layer, "pattern"), layer["node_count"].dump() + " nodes"});
    }
    print_table(rows);
  }
  if (report["groups"].empty()) fmt::print("no layers; other parts:\n");
  if (!report["groups"].empty() && !report["others"].empty()) fmt::print("other parts\n");
  Rows rows;
  for (const Json& other : report["others"]) {
    rows.push_back({text_of(other, "pattern"), other["node_count"].dump() + " nodes"});
  }
  print_table(rows);
  if (const auto count = report["unnamed_nodes"].get<std::size_t>(); count != 0) {
    fmt::print("{} that none of these takes\n", count_of(count, "node", "nodes"));
  }
  if (!report["groups"].empty()) {
    fmt::print("for example\n  sardonyx explain {} --rules 'gpu:0({})'\n", path,
               text_of(report["groups"][0], "range"));
  }
}

}  // namespace sardonyx::cli
