#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// Where an initializer is said to stand: a range of a file beside the model.
struct ExternalLocation {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

/// Takes the large initializers of a model, in place of a file.
class ExternalSink {
 public:
  virtual ~ExternalSink() = default;
  /// The bytes stay where they are as long as the model.
  virtual Status append(std::span<const std::byte> bytes) = 0;
  /// Appends zeros until the size is a multiple of `alignment_bytes` (at least 1).
  virtual Status pad_to(std::size_t alignment_bytes) = 0;
  virtual std::uint64_t size() const = 0;
};

/// How a model is written.
struct WriteOptions {
  /// Name of a file beside the model that takes the large initializers; "" = they stay inside.
  std::string external_data_file;
  /// Initializers of at least that size go to the external file.
  std::size_t external_threshold_bytes = 1024;
  /// Initializers in the external file start at multiples of this, so that they can be mapped.
  std::size_t alignment_bytes = 4096;
  /// That holds for those of at least so many bytes; smaller ones start at multiples of the other.
  std::size_t alignment_minimum_bytes = 0;
  std::size_t small_alignment_bytes = 1;
  /// For a model that goes to no file: the folder of the external file; "" = the current one.
  std::string external_data_folder;
  /// Takes what would go to the external file, whose name the model then only mentions.
  ExternalSink* external_sink = nullptr;
  /// Asked first for each dense initializer: a location is written as it is and the bytes are not.
  std::function<Result<std::optional<ExternalLocation>>(const Value&)> locate;
};

/// A model that is written beside the place where it will stand, or held ready in memory.
class StagedModel {
 public:
  StagedModel(StagedModel&&) noexcept;
  ~StagedModel();

  std::uint64_t size_bytes() const;
  /// Hands on the bytes of a model that goes to no file, part by part.
  Status for_each(FunctionRef<Status(std::string_view)> take) const;
  /// Makes the external data appear, then the model. Without it nothing is left of either.
  Status commit();

 private:
  struct Impl;
  friend Result<StagedModel> stage_model(const Model&, const std::string&, const WriteOptions&);
  explicit StagedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Writes a model all but the last step. With the path "" it goes to no file: its weights are then
/// borrowed from `model`. Numbers and errors as write_model().
Result<StagedModel> stage_model(const Model& model, const std::string& path,
                                const WriteOptions& options = {});

/// Writes the model to a file, which appears whole or not at all; the weights are not gathered in
/// memory before. Overwriting the file that the model was read from is safe.
///
/// Numbers  Live nodes in topological order; constants as initializers, those that nothing uses are
///          left out. Values without a name or with one that is taken get a new one; main inputs
///          and outputs keep theirs. ir_version is raised to 4 (8 with functions) if it is lower.
/// Errors   InvalidArgument when a file cannot be written or the model without external data would
///          have 2 GiB or more, InvalidModel when the graph has a cycle.
Status write_model(const Model& model, const std::string& path, const WriteOptions& options = {});
/// The same into memory.
Result<std::string> write_model_to_bytes(const Model& model, const WriteOptions& options = {});

/// A datum as TensorProto, SparseTensorProto, SequenceProto or MapProto; nothing as an empty
/// OptionalProto.
Result<std::string> write_datum(const Datum& datum);
/// A datum as OptionalProto, with or without a value.
Result<std::string> write_optional(const Datum& datum);
Status write_datum_file(const Datum& datum, const std::string& path);

}  // namespace sardonyx
