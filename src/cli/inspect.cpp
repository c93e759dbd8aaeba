// sardonyx inspect: what a model file holds; nothing of it is run.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/context_text.h"
#include "cli/summary.h"
#include "cli/table.h"

namespace sardonyx::cli {

namespace {

constexpr std::size_t kTextMax = 100;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return {};
  return printable(found->get<std::string>());
}

/// At most kTextMax bytes, no letter cut.
std::string beginning(const std::string& text) {
  std::size_t end = std::min(kTextMax, text.size());
  while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

/// "[batch,3,?]".
std::string shape_of(const Json& shape) {
  if (!shape.is_array()) return "";
  std::vector<std::string> parts;
  for (const Json& dim : shape) {
    parts.push_back(dim.is_null()     ? "?"
                    : dim.is_string() ? printable(dim.get<std::string>())
                                      : dim.dump());
  }
  return "[" + join(parts, ",") + "]";
}

void print_values(const char* title, const Json& values) {
  fmt::print("{}\n", title);
  std::vector<std::vector<std::string>> rows;
  for (const Json& value : values) {
    rows.push_back({text_of(value, "name"), text_of(value, "type"), shape_of(value["shape"])});
    if (value.contains("has_default")) rows.back().push_back("has a default");
  }
  print_table(rows);
}

void print_head(const Json& model) {
  std::vector<std::string> opsets;
  for (const auto& [domain, version] : model["opset_imports"].items()) {
    opsets.push_back(printable(domain) + " " + version.dump());
  }
  std::vector<std::vector<std::string>> rows = {
      {"format", fmt::format("IR {}, opset {}", model["ir_version"].dump(), join(opsets, ", "))}};
  const std::string producer =
      text_of(model, "producer_name") + " " + text_of(model, "producer_version");
  if (producer != " ") rows.push_back({"producer", producer});
  for (const char* key : {"graph_name", "domain", "doc_string"}) {
    if (const std::string text = text_of(model, key); !text.empty()) {
      rows.push_back({key, text.size() > kTextMax ? beginning(text) + "..." : text});
    }
  }
  print_table(rows);
}

void print_operators(const Json& model) {
  const auto inner = model["subgraph_count"].get<std::size_t>();
  fmt::print("operators ({} nodes{})\n", model["node_count"].dump(),
             inner == 0 ? "" : fmt::format(", in {} subgraphs too", inner));
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : model["operators"]) {
    const std::string domain = text_of(row, "domain");
    rows.push_back({fmt::format("{:>6}", row["count"].dump()), text_of(row, "op_type"),
                    domain == "ai.onnx" ? "" : domain});
  }
  print_table(rows);
}

void print_weights(const Json& weights) {
  fmt::print("weights ({}, {}), the largest:\n", weights["count"].dump(),
             bytes_text(weights["bytes"].get<double>()));
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : weights["largest"]) {
    rows.push_back({bytes_text(row["bytes"].get<double>()), text_of(row, "type"),
                    shape_of(row["shape"]), text_of(row, "name")});
  }
  print_table(rows);
}

void print_rest(const Json& model) {
  if (!model["functions"].empty()) {
    fmt::print("functions\n");
    for (const Json& row : model["functions"]) {
      fmt::print("  {}.{} ({} nodes)\n", text_of(row, "domain"), text_of(row, "name"),
                 row["node_count"].dump());
    }
  }
  if (model["metadata"].empty()) return;
  fmt::print("metadata\n");
  for (const auto& [key, value] : model["metadata"].items()) {
    std::string text = printable(value.get<std::string>());
    if (text.size() > kTextMax) {
      text = fmt::format("{}... ({} bytes)", beginning(text), text.size());
    }
    fmt::print("  {}: {}\n", printable(key), text);
  }
}

bool has_compiled_parts(const Json& model) {
  for (const Json& row : model["operators"]) {
    if (text_of(row, "op_type") == "EPContext") return true;
  }
  return false;
}

/// What the model holds compiled; the rest of it has been printed.
Status inspect_compiled(const InspectCommand& command) {
  SDX_ASSIGN(const Json report, describe_context(command.path, false));
  fmt::print("{}{}{}", compiled_nodes_text(report), containers_text(report), verdict_text(report));
  return {};
}

/// A container of compiled models, or a folder of them.
void print_context(const InspectCommand& command, const Json& report) {
  if (command.json) {
    print_json(report);
  } else {
    fmt::print("{}\n{}{}", command.path, containers_text(report), verdict_text(report));
  }
}

}  // namespace

Status inspect(const InspectCommand& command) {
  auto described = describe(own_api().DescribeModel, command.path.c_str());
  if (!described.ok()) {
    const auto context = describe_context(command.path, false);
    if (!context.ok()) return std::move(described).take_status();
    print_context(command, *context);
    return {};
  }
  Json model = *std::move(described);
  const bool is_compiled = has_compiled_parts(model);
  if (command.json) {
    if (is_compiled) {
      SDX_ASSIGN(model["compiled"], describe_context(command.path, false));
    }
    print_json(model);
    return {};
  }
  fmt::print("{}\n", command.path);
  print_head(model);
  print_values("inputs", model["inputs"]);
  print_values("outputs", model["outputs"]);
  print_operators(model);
  print_weights(model["initializers"]);
  print_rest(model);
  return is_compiled ? inspect_compiled(command) : Status();
}

}  // namespace sardonyx::cli
