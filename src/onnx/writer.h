#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// Where an initializer is said to stand: a range of a file beside the model.
struct ExternalLocation {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

/// How a model is written.
struct WriteOptions {
  /// Name of a file beside the model that takes the large initializers; "" = they stay inside.
  std::string external_data_file;
  /// Initializers of at least that size go to the external file.
  std::size_t external_threshold_bytes = 1024;
  /// Initializers in the external file start at multiples of this, so that they can be mapped.
  std::size_t alignment_bytes = 4096;
  /// For write_model_to_bytes: the folder of the external file; "" = the current one.
  std::string external_data_folder;
  /// Asked first for each dense initializer: a location is written as it is and the bytes are not.
  std::function<std::optional<ExternalLocation>(const Value&)> locate;
};

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
