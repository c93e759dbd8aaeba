// Compiling a model ahead of time: what the options of OrtCompileApi come to.
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/compile_options.h"
#include "capi/graph_view.h"
#include "capi/model_editor.h"
#include "capi/session_creation.h"
#include "capi/status.h"
#include "session/model_compiler.h"

namespace sardonyx::capi {

namespace {

namespace fs = std::filesystem;

/// A block of the caller's allocator, which is his when he is told of it.
class Block {
 public:
  explicit Block(const OutputBuffer& target) : target_(target) {
    *target_.data = nullptr;
    *target_.size = 0;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (data_ != nullptr) target_.allocator->Free(target_.allocator, data_);
  }

  Status allocate(std::uint64_t size_bytes) {
    size_bytes_ = static_cast<size_t>(size_bytes);
    data_ = target_.allocator->Alloc(target_.allocator, size_bytes_);
    if (data_ != nullptr || size_bytes_ == 0) return {};
    return failure(Code::OutOfMemory, "the allocator of an output buffer gave no {} bytes",
                   size_bytes);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  void hand_over() {
    *target_.data = std::exchange(data_, nullptr);
    *target_.size = size_bytes_;
  }

 private:
  OutputBuffer target_;
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
};

/// Remembers where the initializers of a model stand, until they are copied into one block.
class GatheredInitializers final : public ExternalSink {
 public:
  Status append(std::span<const std::byte> bytes) override {
    pieces_.push_back({size_bytes_, bytes});
    size_bytes_ += bytes.size();
    return {};
  }
  Status pad_to(std::size_t alignment_bytes) override {
    size_bytes_ += (alignment_bytes - size_bytes_ % alignment_bytes) % alignment_bytes;
    return {};
  }
  std::uint64_t size() const override { return size_bytes_; }

  Status copy_to(Block& block) const {
    SDX_TRY(block.allocate(size_bytes_));
    std::uint64_t end = 0;
    for (const auto& [offset, bytes] : pieces_) {
      std::memset(block.data() + end, 0, offset - end);
      if (!bytes.empty()) std::memcpy(block.data() + offset, bytes.data(), bytes.size());
      end = offset + bytes.size();
    }
    return {};
  }

 private:
  std::vector<std::pair<std::uint64_t, std::span<const std::byte>>> pieces_;
  std::uint64_t size_bytes_ = 0;
};

/// One call of CompileModel.
class Compilation {
 public:
  Compilation(const OrtEnv& env, const OrtModelCompilationOptions& options)
      : env_(env), options_(options) {}

  Status run();

 private:
  Status set_input();
  Status set_output();
  Status set_initializers();
  Status set_initializer_file(const InitializerFile& file);
  Result<std::optional<ExternalLocation>> locate(const InitializerLocator& locator,
                                                 const Value& value) const;
  std::optional<OrtExternalInitializerInfo> source_of(const Value& value) const;
  void set_data();
  OrtSessionOptions session_options() const;

  const OrtEnv& env_;
  const OrtModelCompilationOptions& options_;
  ModelInput input_;
  std::optional<Model> built_;
  ContextOptions context_;
  std::optional<Block> model_block_;
  std::optional<Block> initializer_block_;
  GatheredInitializers gathered_;
  /// Of the model's file, for telling its own initializers from external ones.
  std::string real_input_;
  std::string real_folder_;
};

Status Compilation::set_input() {
  if (const auto* path = std::get_if<std::string>(&options_.input)) {
    input_.path = *path;
    std::error_code error;
    if (!fs::exists(*path, error)) {
      return failure(Code::InvalidArgument, "Input model path does not exist: \"{}\"", *path);
    }
    real_input_ = fs::canonical(*path, error).string();
    real_folder_ = fs::path(real_input_).parent_path().string();
  } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&options_.input)) {
    input_.bytes = *bytes;
  } else if (const auto* model = std::get_if<const OrtModel*>(&options_.input)) {
    if ((*model)->graph == nullptr) {
      return Status(Code::InvalidArgument,
                    "OrtModel has no graph. Call AddGraphToModel before compilation.");
    }
    SDX_ASSIGN(built_, to_model(**model));
    input_.model = &*built_;
  } else {
    return Status(
        Code::InvalidArgument,
        "Input model to compile must be specified via file path, memory buffer, or OrtModel");
  }
  return {};
}

Status Compilation::set_output() {
  if (const auto* path = std::get_if<std::string>(&options_.output)) {
    context_.model_path = *path;
  } else if (const auto* buffer = std::get_if<OutputBuffer>(&options_.output)) {
    Block& block = model_block_.emplace(*buffer);
    context_.take = [&block](const StagedModel& model) -> Status {
      SDX_TRY(block.allocate(model.size_bytes()));
      std::byte* next = block.data();
      return model.for_each([&](std::string_view part) {
        if (!part.empty()) std::memcpy(next, part.data(), part.size());
        next += part.size();
        return Status();
      });
    };
  } else if (const auto* function = std::get_if<WriteFunction>(&options_.output)) {
    context_.take = [write = *function](const StagedModel& model) -> Status {
      return model.for_each([&](std::string_view part) -> Status {
        if (part.empty()) return {};
        return take_status(write.function(write.state, part.data(), part.size()))
            .with("handing on the compiled model");
      });
    };
  } else if (!input_.path.empty()) {
    context_.model_path = context_path_of(input_.path);
  } else {
    return Status(Code::InvalidArgument,
                  "Unable to generate an output model path: require an input model path if the "
                  "location of the output model (e.g., file, buffer, or stream) is not specified.");
  }
  return {};
}

Status Compilation::set_initializer_file(const InitializerFile& file) {
  WriteOptions& write = context_.write;
  write.external_threshold_bytes = file.threshold_bytes;
  write.external_data_folder = options_.data_folder;
  fs::path path(file.path);
  if (path.is_absolute()) {
    // Models name their external data from their own folder.
    std::error_code error;
    const fs::path folder = context_.model_path.empty()
                                ? fs::path(options_.data_folder)
                                : fs::path(context_.model_path).parent_path();
    path = fs::weakly_canonical(path, error)
               .lexically_relative(fs::weakly_canonical(fs::absolute(folder, error), error));
  }
  write.external_data_file = path.empty() ? file.path : path.string();
  return {};
}

Status Compilation::set_initializers() {
  WriteOptions& write = context_.write;
  write = default_layout();
  if (options_.has_alignment) {
    write.alignment_bytes = std::max<size_t>(1, options_.alignment_bytes);
    write.alignment_minimum_bytes = options_.alignment_minimum_bytes;
    write.small_alignment_bytes = 1;
  }
  if (const auto* file = std::get_if<InitializerFile>(&options_.initializers)) {
    return set_initializer_file(*file);
  }
  if (const auto* buffer = std::get_if<InitializerBuffer>(&options_.initializers)) {
    Block& block = initializer_block_.emplace(buffer->buffer);
    write.external_data_file = buffer->name;
    write.external_threshold_bytes = buffer->threshold_bytes;
    write.external_sink = &gathered_;
    context_.before_commit = [this, &block] { return gathered_.copy_to(block); };
  } else if (const auto* locator = std::get_if<InitializerLocator>(&options_.initializers)) {
    write.locate = [this, locator](const Value& value) { return locate(*locator, value); };
  }
  return {};
}

/// Where the source has the initializer, if that is outside of the model's own file.
std::optional<OrtExternalInitializerInfo> Compilation::source_of(const Value& value) const {
  const WeightOrigin* origin = value.origin.get();
  if (origin == nullptr || origin->file == real_input_) return std::nullopt;
  const std::string prefix = real_folder_ + "/";
  const bool is_below = !real_folder_.empty() && origin->file.starts_with(prefix);
  return OrtExternalInitializerInfo{is_below ? origin->file.substr(prefix.size()) : origin->file,
                                    static_cast<int64_t>(origin->offset),
                                    static_cast<size_t>(origin->length)};
}

Result<std::optional<ExternalLocation>> Compilation::locate(const InitializerLocator& locator,
                                                            const Value& value) const {
  std::optional<ExternalLocation> location;
  const Tensor* tensor = value.constant ? &*value.constant : value.default_value.get();
  if (tensor == nullptr) return location;
  const OrtValue handle{Datum(*tensor), cpu_memory_info()};
  const auto source = source_of(value);
  OrtExternalInitializerInfo* chosen = nullptr;
  Status status = take_status(locator.function(locator.state, value.name.c_str(), &handle,
                                               source ? &*source : nullptr, &chosen));
  const std::unique_ptr<OrtExternalInitializerInfo> owned(chosen);
  if (!status.ok()) return std::move(status).with("placing initializer '" + value.name + "'");
  if (chosen == nullptr) return location;
  location =
      ExternalLocation{chosen->file, static_cast<std::uint64_t>(chosen->offset), chosen->byte_size};
  return location;
}

void Compilation::set_data() {
  context_.embeds = options_.embeds;
  context_.optimizes_parts = true;
  context_.data_folder = options_.data_folder;
  context_.data_name = options_.data_name;
  constexpr std::uint32_t kIfNothing = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
  constexpr std::uint32_t kIfExists = OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS;
  context_.needs_compiled_nodes = (options_.flags & kIfNothing) != 0;
  context_.keeps_existing = (options_.flags & kIfExists) != 0;
  const auto& entries = options_.session.options.entries;
  if (const auto prefix = entries.find("ep.context_node_name_prefix"); prefix != entries.end()) {
    context_.name_prefix = prefix->second;
  }
  const EpContextData data = options_.session.ep_context_data;
  if (data.write == nullptr) return;
  context_.write_data = [data](const std::string& name, std::span<const std::byte> bytes) {
    return take_status(data.write(data.write_state, name.c_str(), bytes.data(), bytes.size()))
        .with("handing on the compiled data '" + name + "'");
  };
}

/// What providers see.
OrtSessionOptions Compilation::session_options() const {
  OrtSessionOptions session = options_.session;
  session.options.optimization_level = options_.optimization_level;
  auto& entries = session.options.entries;
  entries["ep.context_enable"] = "1";
  entries["ep.context_embed_mode"] = options_.embeds ? "1" : "0";
  entries["session.disable_model_compile"] = "0";
  entries["session.compile_only"] = "1";
  if (!options_.data_name.empty()) {
    entries["ep.context_file_path"] =
        (fs::path(options_.data_folder) / options_.data_name).string();
  } else if (!context_.model_path.empty()) {
    entries["ep.context_file_path"] = context_.model_path;
  }
  return session;
}

Status Compilation::run() {
  SDX_TRY(set_input());
  SDX_TRY(set_output());
  SDX_TRY(set_initializers());
  set_data();
  const OrtSessionOptions session = session_options();
  SDX_ASSIGN(const auto level, severity_of(session));
  const SessionLog scope(session.log_sink, level);
  SDX_ASSIGN(SessionOptions chosen, complete_options(env_, session));
  if (input_.path.empty() && input_.model == nullptr) {
    chosen = for_model_bytes(std::move(chosen));
    // The caller keeps them for the time of the call.
    chosen.read.borrow_bytes = true;
  }
  SDX_TRY(compile_to_model(*options_.environment, input_, chosen, context_));
  if (model_block_) model_block_->hand_over();
  if (initializer_block_) initializer_block_->hand_over();
  return {};
}

}  // namespace

namespace compile_api {

OrtStatus* CompileModel(const OrtEnv* env,
                        const OrtModelCompilationOptions* model_options) noexcept {
  OrtStatus* status = guarded("CompileModel", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(model_options, "model_options"));
    return Compilation(*env, *model_options).run();
  });
  return of_cancelled_load(model_options == nullptr ? nullptr : &model_options->session, status);
}

}  // namespace compile_api

}  // namespace sardonyx::capi
