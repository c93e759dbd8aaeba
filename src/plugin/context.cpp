#include "plugin/context.h"

#include <algorithm>
#include <filesystem>

#include "base/build_id.h"
#include "base/text.h"
#include "context/context_node.h"
#include "context/origins.h"
#include "context/source.h"
#include "ops/infer.h"
#include "passes/pipeline.h"
#include "plugin/options.h"

namespace sardonyx::plugin {

namespace {

namespace fs = std::filesystem;

/// Hosts of this version on have functions for compiled data.
constexpr std::uint32_t kDataFunctions_since = 31;
constexpr std::uint32_t kSourceBuffer_since = 29;

Result<Weightless> weightless_of(const std::string& mode, const std::string& older) {
  if (mode == "1") return Weightless::ExternalOnly;
  if (mode == "2" || (mode.empty() && older == "1")) return Weightless::All;
  if (mode.empty() || mode == "0") return Weightless::None;
  return failure(Code::InvalidArgument, "ep.enable_weightless_mode is '{}', expected 0, 1 or 2",
                 mode);
}

/// The attributes of a node for the host, released with this object.
class OpAttributes {
 public:
  explicit OpAttributes(const Host& host) : host_(host) {}
  ~OpAttributes() {
    for (OrtOpAttr* attribute : attributes_) host_.api->ReleaseOpAttr(attribute);
  }
  OpAttributes(const OpAttributes&) = delete;
  OpAttributes& operator=(const OpAttributes&) = delete;

  /// A number or a text.
  Status add(const char* name, const Attribute& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      return add(name, number, 1, ORT_OP_ATTR_INT);
    }
    const auto& text = std::get<std::string>(value);
    constexpr std::size_t kLongest = 0x7fffffff;
    if (text.size() >= kLongest) {
      return failure(Code::Unsupported,
                     "the compiled model has {} bytes, too many to be embedded: keep it in files "
                     "beside the model (ep.context_embed_mode = 0)",
                     text.size());
    }
    return add(name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING);
  }
  std::vector<OrtOpAttr*>& all() { return attributes_; }

 private:
  Status add(const char* name, const void* data, int size, OrtOpAttrType type) {
    OrtOpAttr* made = nullptr;
    SDX_TRY(host_.take(host_.api->CreateOpAttr(name, data, size, type, &made)));
    attributes_.push_back(made);
    return {};
  }

  const Host& host_;
  std::vector<OrtOpAttr*> attributes_;
};

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> all;
  for (const std::string& name : names) all.push_back(name.c_str());
  return all;
}

/// The node that stands for the fused one. Its inputs and outputs are in the order of the graph's.
Result<OrtNode*> make_node(const Host& host, const OrtNode& fused, const Graph& graph,
                           OpAttributes& attributes) {
  const char* name = nullptr;
  SDX_TRY(host.take(host.api->Node_GetName(&fused, &name)));
  std::vector<std::string> inputs;
  for (const ValueId id : graph.inputs()) inputs.push_back(graph.value(id).name);
  std::vector<std::string> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(graph.value(id).name);
  const auto input_names = pointers(inputs);
  const auto output_names = pointers(outputs);
  const OrtModelEditorApi* editor = host.api->GetModelEditorApi();
  OrtNode* node = nullptr;
  SDX_TRY(host.take(editor->CreateNode("EPContext", "com.microsoft", name, input_names.data(),
                                       input_names.size(), output_names.data(), output_names.size(),
                                       attributes.all().data(), attributes.all().size(), &node)));
  return node;
}

/// Where the container goes that stands beside the compiled model.
Result<fs::path> container_path(const ContextOptions& options, const std::string& model_path) {
  const std::string& beside = options.output_path.empty() ? model_path : options.output_path;
  if (beside.empty()) {
    return failure(Code::InvalidArgument,
                   "there is no place for the compiled weights: give the compiled model a path "
                   "(ep.context_file_path) or embed them (ep.context_embed_mode = 1)");
  }
  return fs::path(beside).parent_path() / kContainerName;
}

Result<std::string> write_graph(ContainerWriter& writer, const std::string& model_name,
                                const ArtifactProvider& provider, const CompileOptions& options,
                                const Graph& graph, const std::string& model_path) {
  SDX_ASSIGN(auto sources, sources_of(graph, model_path));
  ArtifactWriter& part = writer.begin_graph(model_name, std::move(sources));
  SDX_TRY(provider.save(graph, options, part));
  SDX_ASSIGN(std::string key, writer.finish_graph());
  SDX_TRY(writer.commit());
  return key;
}

Result<std::shared_ptr<const Container>> read_with_function(const Host& host,
                                                            const ContextOptions& options,
                                                            const std::string& name) {
  OrtAllocator* allocator = nullptr;
  SDX_TRY(host.take(host.api->GetAllocatorWithDefaultOptions(&allocator)));
  void* data = nullptr;
  std::size_t size = 0;
  SDX_TRY(host.take(options.read(options.read_state, name.c_str(), allocator, &data, &size)));
  std::shared_ptr<const void> owner(data, [allocator](const void* block) {
    allocator->Free(allocator, const_cast<void*>(block));
  });
  return Container::from_bytes({static_cast<const std::byte*>(data), size}, owner,
                               "'" + name + "' that the program read");
}

Result<std::shared_ptr<const Container>> container_of(const Host& host,
                                                      const ContextOptions& options,
                                                      const Node& node,
                                                      const std::string& model_path) {
  if (node.attributes.get_int("embed_mode", 1) != 0) return embedded_container(node);
  if (options.read != nullptr) {
    return read_with_function(host, options, node.attributes.get_string("ep_cache_context", ""));
  }
  const fs::path model(model_path.empty() ? options.output_path : model_path);
  return named_container(node, model.parent_path());
}

}  // namespace

Result<ContextOptions> read_context_options(
    const Host& host, const OrtSessionOptions& session,
    const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto entry = [&](std::string_view key) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const auto& it) { return it.first == key; });
    return found == entries.end() ? std::string() : found->second;
  };
  ContextOptions options;
  options.is_wanted = entry("ep.context_enable") == "1";
  options.embeds = entry("ep.context_embed_mode") == "1";
  options.output_path = entry("ep.context_file_path");
  options.node_prefix = entry("ep.context_node_name_prefix");
  options.source_path = entry("ep.context_source_model_path");
  options.ignores_stale_source = entry(kIgnoreStaleEntry) == "1";
  SDX_ASSIGN(options.weightless,
             weightless_of(entry("ep.enable_weightless_mode"), entry("ep.enable_weightless")));
  if (host.version >= kSourceBuffer_since) {
    const void* data = nullptr;
    std::size_t size = 0;
    SDX_TRY(
        host.take(host.ep->SessionOptionsGetWeightlessSourceModelBuffer(&session, &data, &size)));
    options.source_bytes = {static_cast<const std::byte*>(data), size};
  }
  if (host.version < kDataFunctions_since) return options;
  OrtEpContextConfig* config = nullptr;
  SDX_TRY(host.take(host.ep->SessionOptionsGetEpContextConfig(&session, &config)));
  Status status = host.take(
      host.ep->EpContextConfigGetEpContextDataReadFunc(config, &options.read, &options.read_state));
  if (status.ok()) {
    status = host.take(host.ep->EpContextConfigGetEpContextDataWriteFunc(config, &options.write,
                                                                         &options.write_state));
  }
  host.ep->ReleaseEpContextConfig(config);
  SDX_TRY(std::move(status));
  return options;
}

bool is_own_context(const Node& node) {
  return is_context_node(node) && node.attributes.get_string("source", "") == kEpName;
}

Result<OrtNode*> keep_part(const Host& host, const ContextOptions& options,
                           const ArtifactProvider& provider, const CompileOptions& compile_options,
                           ReadGraph read, const std::string& model_path, const OrtNode& fused) {
  Model model;
  model.path = model_path;
  CompileOptions own = compile_options;
  own.model = &model;
  own.weightless = options.weightless;
  PassOptions passes;
  passes.keeps_weights = own.weightless != Weightless::None;
  SDX_TRY(run_passes(PassStage::Common, read.graph, passes));
  const std::string model_name = fs::path(options.output_path).filename().string();
  OpAttributes attributes(host);
  std::string key;
  std::string content(kContainerName);
  // The folder stays locked until the host has the name of the graph.
  std::unique_ptr<ContainerWriter> writer;
  if (options.embeds || options.write != nullptr) {
    writer = ContainerWriter::in_memory();
    SDX_ASSIGN(key, write_graph(*writer, model_name, provider, own, read.graph, model_path));
    std::string bytes = writer->take_bytes();
    if (options.embeds) {
      content = std::move(bytes);
    } else {
      content = fs::path(model_name).stem().string() + "_sardonyx.bin";
      SDX_TRY(host.take(
          options.write(options.write_state, content.c_str(), bytes.data(), bytes.size())));
    }
  } else {
    SDX_ASSIGN(const fs::path path, container_path(options, model_path));
    SDX_ASSIGN(writer, ContainerWriter::extend(path.string(), nullptr));
    SDX_ASSIGN(key, write_graph(*writer, model_name, provider, own, read.graph, model_path));
  }
  StoredNode stored;
  stored.partition_name = options.node_prefix + key;
  stored.data = std::move(content);
  stored.is_embedded = options.embeds;
  stored.source = kEpName;
  stored.model_name = fs::path(model_path).filename().string();
  for (const auto& [name, value] : attributes_of(std::move(stored))) {
    SDX_TRY(attributes.add(name.c_str(), value));
  }
  return make_node(host, fused, read.graph, attributes);
}

Result<std::unique_ptr<Compiled>> load_part(const Host& host, const ContextOptions& options,
                                            const ArtifactProvider& provider,
                                            const CompileOptions& compile_options,
                                            const Graph& graph, const std::string& model_path) {
  NodeId id = 0;
  while (id < graph.node_count() && !is_own_context(graph.node(id))) ++id;
  const Node& node = graph.node(id);
  SDX_ASSIGN(auto container, container_of(host, options, node, model_path));
  SourceLookup lookup;
  lookup.buffer = options.source_bytes;
  lookup.model_path = options.source_path;
  lookup.refuses_stale = !options.ignores_stale_source;
  SDX_ASSIGN(LoadedContext loaded,
             load_stored(std::move(container), graph, node, provider, compile_options, lookup));
  return std::move(loaded.compiled);
}

}  // namespace sardonyx::plugin
