#include "session/context_options.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/text.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

bool is_on(const SessionOptions& options, const char* key) { return options.entry(key) == "1"; }

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLargeBytes = (std::size_t{1} << 20) + 1;
constexpr std::size_t kSmallAlignment_bytes = 64;

}  // namespace

WriteOptions default_layout() {
  WriteOptions layout;
  layout.alignment_bytes = kPageBytes;
  layout.alignment_minimum_bytes = kLargeBytes;
  layout.small_alignment_bytes = kSmallAlignment_bytes;
  return layout;
}

std::string context_path_of(const std::string& model_path) {
  fs::path path(model_path);
  return path.replace_filename(path.stem().string() + "_ctx.onnx").string();
}

Result<std::optional<ContextOptions>> context_options_of(const SessionOptions& options,
                                                         const std::string& model_path) {
  std::optional<ContextOptions> result;
  if (!is_on(options, "ep.context_enable")) return result;
  ContextOptions& context = result.emplace();
  context.model_path = options.entry("ep.context_file_path");
  if (context.model_path.empty()) {
    if (model_path.empty()) {
      return Status(Code::Internal,
                    "Inference session with a model loaded from bytes was configured with "
                    "EPContext model generation enabled but without a valid location (e.g., file "
                    "or buffer) for the output model. Please specify a valid ep.context_file_path "
                    "via SessionOption configs or use the OrtCompileApi to compile a model to a "
                    "file or buffer.");
    }
    context.model_path = context_path_of(model_path);
  }
  context.embeds = is_on(options, "ep.context_embed_mode");
  context.name_prefix = options.entry("ep.context_node_name_prefix");
  context.keeps_existing = true;
  context.skips_plain_copy = true;
  context.write = default_layout();
  context.write.external_data_file =
      options.entry("ep.context_model_external_initializers_file_name");
  context.write.external_threshold_bytes = 0;
  return result;
}

Status check_context_output(const ContextOptions& options) {
  const fs::path path = options.model_path;
  if (path.empty()) return {};
  std::error_code error;
  if (fs::is_directory(path, error) || !path.has_filename()) {
    return Status(Code::InvalidArgument, "context_file_path should not point to a folder.");
  }
  if (options.keeps_existing && fs::exists(path, error)) {
    return failure(Code::Internal,
                   "Failed to generate EP context model since the file '\"{}\"' exists already. "
                   "Please remove the EP context model if you want to re-generate it.",
                   path.string());
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(folder, error)) return {};
  const int reason = fs::exists(folder, error) ? ENOTDIR : ENOENT;
  return failure(Code::InvalidArgument, "open file \"{}\" failed: {}", path.string(),
                 std::strerror(reason));
}

Status check_not_source(const std::string& output, std::span<const std::string> sources) {
  auto written = identify_file(output);
  if (!written.ok()) return {};
  for (const std::string& source : sources) {
    auto read = identify_file(source);
    if (!read.ok() || read->device != written->device || read->inode != written->inode) continue;
    return failure(Code::InvalidArgument,
                   "the compiled model would overwrite its own source: '{}' is the file '{}'",
                   output, source);
  }
  return {};
}

}  // namespace sardonyx
