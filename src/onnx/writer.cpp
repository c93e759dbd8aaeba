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

/// Encodes the model and hands its parts to emit(std::string_view) -> Status, then commits the
/// external file.
template <typename Emit>
Status write_parts(const Model& model, const WriteOptions& options, const fs::path& folder,
                   Emit&& emit) {
  SDX_ASSIGN(auto external, create_external(options, folder));
  GraphWriter writer(model, options, external ? &*external : nullptr);
  SDX_ASSIGN(const PartedMessage graph, writer.write_main());
  SDX_ASSIGN(const std::string front, write_front(model, writer, graph.size_bytes()));
  SDX_TRY(emit(front));
  SDX_TRY(graph.for_each(emit));
  return external ? external->commit() : Status();
}

}  // namespace

Status write_model(const Model& model, const std::string& path, const WriteOptions& options) {
  const auto write = [&]() -> Status {
    SDX_ASSIGN(AtomicFile file, AtomicFile::create(path));
    SDX_TRY(write_parts(model, options, fs::path(path).parent_path(), [&](std::string_view part) {
      return file.append(std::as_bytes(std::span(part)));
    }));
    return file.commit();
  };
  return write().with(fmt::format("writing '{}'", path));
}

Result<std::string> write_model_to_bytes(const Model& model, const WriteOptions& options) {
  std::string bytes;
  SDX_TRY(write_parts(model, options, options.external_data_folder, [&](std::string_view part) {
    bytes += part;
    return Status();
  }));
  return bytes;
}

Status write_datum_file(const Datum& datum, const std::string& path) {
  SDX_ASSIGN(const std::string bytes, write_datum(datum));
  SDX_ASSIGN(AtomicFile file, AtomicFile::create(path));
  SDX_TRY(file.append(std::as_bytes(std::span(std::string_view(bytes)))));
  return file.commit();
}

}  // namespace sardonyx
