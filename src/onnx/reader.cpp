#include "onnx/reader.h"

#include <cstring>
#include <limits>
#include <optional>

#include "base/mapped_file.h"
#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/graph_reader.h"
#include "onnx/ort_format.h"
#include "onnx/wire.h"

namespace sardonyx {

namespace {

using namespace onnx;

constexpr std::int64_t kNewestIrVersion = 14;
/// protozero and protobuf's own encoding of lengths end here.
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint32_t>::max();

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The fields of a ModelProto that are read in an order of their own.
struct ModelParts {
  std::optional<std::string_view> graph;
  std::vector<std::string_view> opset_imports;
  std::vector<std::string_view> functions;
};

ModelParts read_parts(std::string_view message, Model& model) {
  ModelParts parts;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case model_field::kIrVersion: model.ir_version = fields.integer(); break;
      case model_field::kProducerName: model.producer_name = fields.bytes(); break;
      case model_field::kProducerVersion: model.producer_version = fields.bytes(); break;
      case model_field::kDomain: model.domain = fields.bytes(); break;
      case model_field::kModelVersion: model.model_version = fields.integer(); break;
      case model_field::kDocString: model.doc_string = fields.bytes(); break;
      case model_field::kGraph: parts.graph = fields.bytes(); break;
      case model_field::kOpsetImport: parts.opset_imports.push_back(fields.bytes()); break;
      case model_field::kMetadata: model.metadata.push_back(read_entry(fields.bytes())); break;
      case model_field::kFunctions: parts.functions.push_back(fields.bytes()); break;
      default: fields.skip();
    }
  }
  return parts;
}

/// Tells files that people take for models from damaged ones.
Status check_kind(std::string_view bytes) {
  if (bytes.empty()) return failure(Code::InvalidProtobuf, "the model is empty (0 bytes)");
  if (bytes.starts_with("version https://git-lfs")) {
    return failure(Code::InvalidProtobuf,
                   "the file is a Git LFS pointer, not the model; 'git lfs pull' fetches it");
  }
  if (bytes.size() > kMaxBytes) {
    return failure(Code::Unsupported,
                   "the model has {} bytes; a model of 4 GiB or more must keep its weights in "
                   "external data",
                   bytes.size());
  }
  return {};
}

Status read_imports(const ModelParts& parts, Model& model, GraphContext& context) {
  for (const std::string_view import : parts.opset_imports) {
    SDX_TRY(read_opset_import(import, model.opset_imports, context.opsets));
  }
  if (!model.opset_imports.empty()) return {};
  if (model.ir_version >= 3) {
    return failure(Code::InvalidModel,
                   "the model imports no operator set (opset_import), as ir_version 3 and later "
                   "must; its ir_version is {}",
                   model.ir_version);
  }
  // What the format meant before models could say it.
  model.opset_imports.emplace_back("", 1);
  context.opsets.emplace("", 1);
  return {};
}

Status check_ir_version(std::int64_t version) {
  if (version >= 1 && version <= kNewestIrVersion) return {};
  return failure(version < 1 ? Code::InvalidModel : Code::Unsupported,
                 "the model's ir_version is {}, expected 1 to {}", version, kNewestIrVersion);
}

Status read_message(const Source& source, const ReadOptions& options,
                    std::vector<DimDenotation>* denotations, Model& model) {
  SDX_TRY(check_kind(source.bytes));
  const ModelParts parts = read_parts(source.bytes, model);
  if (!parts.graph) {
    return failure(Code::InvalidProtobuf, "the bytes hold no graph: this is not an ONNX model");
  }
  SDX_TRY(check_ir_version(model.ir_version));
  GraphContext context;
  context.source = source;
  context.options = &options;
  context.ir_version = model.ir_version;
  context.symbols = &model.symbols;
  SDX_TRY(read_imports(parts, model, context));
  for (const std::string_view message : parts.functions) {
    SDX_ASSIGN(Function function, read_function(message, context));
    model.functions.push_back(std::move(function));
  }
  SDX_TRY(check_functions(model.functions));
  context.denotations = denotations;
  SDX_ASSIGN(const auto graph, read_graph(*parts.graph, context, nullptr, 0));
  model.graph = std::move(*graph);
  return {};
}

Result<Model> read(Source source, const std::string& path, const ReadOptions& options,
                   std::vector<DimDenotation>* denotations) {
  Model model;
  model.path = path;
  if (onnx::is_ort_format(source.bytes)) {
    SDX_ASSIGN(auto converted, onnx::onnx_of_ort_format(source.bytes));
    auto owner = std::make_shared<const std::string>(std::move(converted));
    source.bytes = *owner;
    source.file.clear();
    source.owner = std::move(owner);
  }
  ExternalData external(path, options);
  source.external = &external;
  SDX_TRY(guarded([&] { return read_message(source, options, denotations, model); }));
  if (source.owner) model.keep_alive.push_back(source.owner);
  external.add_files_to(model.keep_alive);
  return model;
}

}  // namespace

Result<Model> read_model(const std::string& path, const ReadOptions& options,
                         std::vector<DimDenotation>* denotations) {
  const std::string place = fmt::format("reading '{}'", path);
  SDX_ASSIGN(auto file, MappedFile::open(path));
  Source source;
  source.bytes = as_text(file->bytes());
  source.file = file->path();
  source.owner = std::move(file);
  auto model = read(std::move(source), path, options, denotations);
  if (!model.ok()) return std::move(model).take_status().with(place);
  return model;
}

Result<Model> read_model_from_bytes(std::span<const std::byte> bytes, const ReadOptions& options,
                                    std::vector<DimDenotation>* denotations) {
  Source source;
  source.bytes = as_text(bytes);
  source.owner = options.owner;
  if (!options.owner && !options.borrow_bytes) {
    SDX_ASSIGN(Tensor copy, Tensor::allocate(DType::UInt8, {static_cast<Dim>(bytes.size())}));
    if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
    source.bytes = {reinterpret_cast<const char*>(copy.data()), bytes.size()};
    source.owner = copy.owner();
  }
  auto model = read(std::move(source), "", options, denotations);
  if (!model.ok()) return std::move(model).take_status().with("reading a model from memory");
  return model;
}

Result<Model> read_model_head_from_bytes(std::span<const std::byte> bytes) {
  Model model;
  Status status = guarded([&]() -> Status {
    SDX_TRY(check_kind(as_text(bytes)));
    if (read_parts(as_text(bytes), model).graph) return {};
    return failure(Code::InvalidProtobuf, "the bytes hold no graph: this is not an ONNX model");
  });
  if (!status.ok()) return status;
  return model;
}

Result<Model> read_model_head(const std::string& path) {
  SDX_ASSIGN(const auto file, MappedFile::open(path));
  auto model = read_model_head_from_bytes(file->bytes());
  if (!model.ok()) return std::move(model).take_status().with(fmt::format("reading '{}'", path));
  return model;
}

}  // namespace sardonyx
