#include "cli/context_text.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/summary.h"

namespace sardonyx::cli {

namespace {

constexpr std::size_t kLargest_count = 5;
constexpr std::size_t kHash_chars = 12;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : printable(found->get<std::string>());
}

std::string bytes_of(const Json& json, const char* key) { return bytes_text(json.value(key, 0.0)); }

std::string joined(const Json& names) {
  std::vector<std::string> parts;
  for (const Json& name : names) parts.push_back(printable(name.get<std::string>()));
  return join(parts, ", ");
}

std::string graph_text(const Json& graph) {
  const std::string model = text_of(graph, "model");
  std::string text = fmt::format(
      "    {}  {}...  program {}, {} in {} blobs\n", model.empty() ? "(no file)" : model,
      text_of(graph, "key").substr(0, kHash_chars), bytes_of(graph, "program_bytes"),
      bytes_of(graph, "blob_bytes"), graph["blob_count"].dump());
  if (graph.contains("is_used") && !graph["is_used"].get<bool>()) {
    text += "      no model in this folder names it\n";
  }
  if (!graph["shared_with"].empty()) {
    text += fmt::format("      {} shared with {}\n", bytes_of(graph, "shared_bytes"),
                        joined(graph["shared_with"]));
  }
  if (graph["source_weight_count"] != 0) {
    text +=
        fmt::format("      {} weights, {}, stay in the source\n",
                    graph["source_weight_count"].dump(), bytes_of(graph, "source_weight_bytes"));
  }
  for (const Json& source : graph["sources"]) {
    text += fmt::format(
        "      {} {} ({}, {})\n", source["is_model"].get<bool>() ? "from" : "weights from",
        text_of(source, "path"), bytes_of(source, "bytes"), text_of(source, "state"));
  }
  return text;
}

std::string blobs_text(const Json& container) {
  std::string text = "  layouts\n";
  for (const Json& row : container["layouts"]) {
    text += fmt::format("    {:>9}  {:>5} blobs  {}\n", bytes_of(row, "bytes"), row["count"].dump(),
                        text_of(row, "layout"));
  }
  std::vector<const Json*> largest;
  for (const Json& blob : container["blobs"]) largest.push_back(&blob);
  std::stable_sort(largest.begin(), largest.end(), [](const Json* a, const Json* b) {
    return a->value("bytes", 0.0) > b->value("bytes", 0.0);
  });
  largest.resize(std::min(largest.size(), kLargest_count));
  text += "  largest blobs\n";
  for (const Json* blob : largest) {
    text += fmt::format("    {:>9}  {}  {}...  {}\n", bytes_of(*blob, "bytes"),
                        text_of(*blob, "layout"), text_of(*blob, "hash").substr(0, kHash_chars),
                        joined((*blob)["used_by"]));
  }
  return text;
}

}  // namespace

Result<Json> describe_context(const std::string& path, bool checks_all) {
  return describe(own_api().DescribeContext, path.c_str(), checks_all ? 1 : 0);
}

std::string compiled_nodes_text(const Json& report) {
  std::string text = fmt::format("compiled parts ({})\n", report["compiled_nodes"].size());
  for (const Json& node : report["compiled_nodes"]) {
    const bool is_embedded = node["is_embedded"].get<bool>();
    text += fmt::format(
        "  {}  by {}, data {} ({})\n", text_of(node, "partition_name"), text_of(node, "source"),
        is_embedded ? "in the model"
                    : "in " + std::filesystem::path(text_of(node, "data_path")).filename().string(),
        bytes_of(node, "data_bytes"));
  }
  return text;
}

std::string containers_text(const Json& report) {
  std::string text;
  for (const Json& container : report["containers"]) {
    if (!container.contains("blobs")) continue;  // damaged: the verdict says how
    const std::string path = text_of(container, "path");
    text += fmt::format("container {} ({}, generation {}, build {}, {})\n",
                        path.empty() ? "in the model" : path, bytes_of(container, "bytes"),
                        container["generation"].dump(), text_of(container, "build"),
                        text_of(container, "isa"));
    text += fmt::format("  graphs ({}); {} in {} blobs, {} saved by sharing\n",
                        container["graphs"].size(), bytes_of(container, "blob_bytes"),
                        container["blob_count"].dump(), bytes_of(container, "saved_bytes"));
    for (const Json& graph : container["graphs"]) text += graph_text(graph);
    if (!container["blobs"].empty()) text += blobs_text(container);
  }
  return text;
}

std::string verdict_text(const Json& report) {
  std::string text = text_of(report, "verdict") + '\n';
  for (const Json& problem : report["problems"]) {
    text += fmt::format("  {}: {}: {}\n", text_of(problem, "kind"), text_of(problem, "file"),
                        text_of(problem, "message"));
  }
  return text;
}

void print_json(const Json& report) {
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace sardonyx::cli
