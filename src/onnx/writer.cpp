#include "onnx/writer.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/graph_writer.h"
#include "onnx/tensor_writer.h"

namespace sardonyx {

namespace {

using namespace onnx;

namespace fs = std::filesystem;

std::int64_t ir_version_of(const Model& model) {
  const std::int64_t needed = model.functions.empty() ? 4 : 8;
  return std::max(model.ir_version, needed);
}

std::string write_head(const Model& model) {
  std::string message;
  append_integer(message, model_field::kIrVersion, ir_version_of(model));
  append_bytes(message, model_field::kProducerName, model.producer_name);
  append_bytes(message, model_field::kProducerVersion, model.producer_version);
  append_bytes(message, model_field::kDomain, model.domain);
  append_integer(message, model_field::kModelVersion, model.model_version);
  append_bytes(message, model_field::kDocString, model.doc_string);
  for (const auto& [domain, version] : model.opset_imports) {
    std::string import;
    append_bytes(import, opset_field::kDomain, domain);
    append_integer(import, opset_field::kVersion, version);
    append_bytes(message, model_field::kOpsetImport, import);
  }
  for (const auto& [key, value] : model.metadata) {
    append_entry(message, model_field::kMetadata, key, value);
  }
  return message;
}

/// All but the graph, up to the head of its field.
Result<std::string> write_front(const Model& model, GraphWriter& writer,
                                std::uint64_t graph_bytes) {
  std::string message = write_head(model);
  for (const Function& function : model.functions) {
    SDX_ASSIGN(const std::string encoded, writer.write_function(function));
    append_bytes(message, model_field::kFunctions, encoded);
  }
  append_head(message, model_field::kGraph, graph_bytes);
  if (message.size() + graph_bytes > kMaxMessageBytes) {
    return failure(Code::InvalidArgument,
                   "the model would have {} bytes, more than the {} that a file may have; give an "
                   "external_data_file for its weights",
                   message.size() + graph_bytes, kMaxMessageBytes);
  }
  return message;
}

/// The external file in `folder`, or nothing when none is asked for.
Result<std::optional<AtomicFile>> create_external(const WriteOptions& options,
                                                  const fs::path& folder) {
  std::optional<AtomicFile> file;
  if (options.external_data_file.empty()) return file;
  const fs::path name(options.external_data_file);
  if (name.is_absolute() || std::find(name.begin(), name.end(), fs::path("..")) != name.end()) {
    return failure(Code::InvalidArgument,
                   "the external data file '{}' must lie in the model's folder: expected a "
                   "relative path without '..'",
                   options.external_data_file);
  }
  SDX_ASSIGN(file, AtomicFile::create((folder / name).string()));
  return file;
}

/// The external file as a sink.
class FileSink final : public ExternalSink {
 public:
  explicit FileSink(AtomicFile& file) : file_(file) {}
  Status append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Status pad_to(std::size_t alignment_bytes) override { return file_.pad_to(alignment_bytes); }
  std::uint64_t size() const override { return file_.size(); }

 private:
  AtomicFile& file_;
};

}  // namespace

struct StagedModel::Impl {
  std::string front;
  PartedMessage graph;
  std::optional<AtomicFile> external;
  std::optional<AtomicFile> file;
};

StagedModel::StagedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StagedModel::StagedModel(StagedModel&&) noexcept = default;
StagedModel::~StagedModel() = default;

std::uint64_t StagedModel::size_bytes() const {
  return impl_->front.size() + impl_->graph.size_bytes();
}

Status StagedModel::for_each(FunctionRef<Status(std::string_view)> take) const {
  SDX_TRY(take(impl_->front));
  return impl_->graph.for_each(take);
}

Status StagedModel::commit() {
  if (impl_->external) SDX_TRY(impl_->external->commit());
  return impl_->file ? impl_->file->commit() : Status();
}

Result<StagedModel> stage_model(const Model& model, const std::string& path,
                                const WriteOptions& options) {
  auto staged = std::make_unique<StagedModel::Impl>();
  const auto stage = [&]() -> Status {
    fs::path folder = options.external_data_folder;
    if (!path.empty()) {
      folder = fs::path(path).parent_path();
      SDX_ASSIGN(staged->file, AtomicFile::create(path));
    }
    std::optional<FileSink> file_sink;
    ExternalSink* sink = options.external_sink;
    if (sink == nullptr) {
      SDX_ASSIGN(staged->external, create_external(options, folder));
      if (staged->external) sink = &file_sink.emplace(*staged->external);
    }
    GraphWriter writer(model, options, sink);
    SDX_ASSIGN(staged->graph, writer.write_main());
    SDX_ASSIGN(staged->front, write_front(model, writer, staged->graph.size_bytes()));
    if (staged->external) SDX_TRY(staged->external->sync());
    if (!staged->file) return {};
    const auto append = [&](std::string_view part) {
      return staged->file->append(std::as_bytes(std::span(part)));
    };
    SDX_TRY(append(staged->front));
    SDX_TRY(staged->graph.for_each(append));
    return staged->file->sync();
  };
  Status status = stage();
  if (status.ok()) return StagedModel(std::move(staged));
  return path.empty() ? std::move(status)
                      : std::move(status).with(fmt::format("writing '{}'", path));
}

Status write_model(const Model& model, const std::string& path, const WriteOptions& options) {
  SDX_ASSIGN(StagedModel staged, stage_model(model, path, options));
  return staged.commit().with(fmt::format("writing '{}'", path));
}

Result<std::string> write_model_to_bytes(const Model& model, const WriteOptions& options) {
  SDX_ASSIGN(StagedModel staged, stage_model(model, "", options));
  std::string bytes;
  bytes.reserve(staged.size_bytes());
  SDX_TRY(staged.for_each([&](std::string_view part) {
    bytes += part;
    return Status();
  }));
  SDX_TRY(staged.commit());
  return bytes;
}

Status write_datum_file(const Datum& datum, const std::string& path) {
  SDX_ASSIGN(const std::string bytes, write_datum(datum));
  SDX_ASSIGN(AtomicFile file, AtomicFile::create(path));
  SDX_TRY(file.append(std::as_bytes(std::span(std::string_view(bytes)))));
  return file.commit();
}

}  // namespace sardonyx
