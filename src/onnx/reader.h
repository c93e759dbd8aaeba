#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// A file of external data that the caller holds in memory.
struct MemoryFile {
  /// As tensors name it: their `location`.
  std::string location;
  std::span<const std::byte> bytes;
  /// Keeps the bytes alive; null when the caller does as long as the model is used.
  std::shared_ptr<const void> owner;
};

/// What a model cannot say itself.
struct ReadOptions {
  /// Folder of the external data of a model from bytes; "" = the current one. For a model from a
  /// file it is the file's.
  std::string external_data_folder;
  /// External data found here is not looked for among the files.
  std::vector<MemoryFile> memory_files;
  /// Initializers by name that take the place of the model's, whose bytes are then not looked at.
  /// Element type and shape must be the model's.
  std::unordered_map<std::string, Tensor> initializers;
  /// Keeps the bytes of a model from bytes alive.
  std::shared_ptr<const void> owner;
  /// Without `owner`: the caller keeps the bytes as long as the model is used. Otherwise they are
  /// copied once.
  bool borrow_bytes = false;
};

/// A misaligned initializer up to this size is copied, a larger one stays a view into its file
/// (see Tensor).
inline constexpr std::size_t kAlignedCopyBytes = std::size_t{64} << 10;

/// What a model says a dimension of an input stands for ("DATA_BATCH"), whatever its name or size.
struct DimDenotation {
  ValueId input = kNoValue;
  int axis = 0;
  std::string text;
};

/// The ONNX model in a file. Initializers are views into the mapped file or into mapped files of
/// external data, which must lie in the model's folder (or, when the model is a link, in the folder
/// of what it leads to); numbers in typed fields (int32_data ...) are decoded.
///
/// Numbers  Names are resolved: a value that a subgraph uses from outside is captured, at every
///          level between. Trailing left-out inputs are dropped. Before IR version 4 an initializer
///          that is listed as input is a constant and no input; from 4 on it is an input with a
///          default. Nodes keep the file's order, which need not be topological.
/// Cost     near-linear in nodes; 40,000 nodes take under 0.3 s. Weights are not touched.
/// Errors   NoSuchFile, InvalidProtobuf, InvalidModel, Unsupported; the message names the file and,
///          where they are known, node, operator and tensor. Nothing in a file causes a crash, or
///          memory out of proportion to its size. Files of 4 GiB and more must use external data.
/// `denotations` takes those of the main graph's inputs; it may be null.
Result<Model> read_model(const std::string& path, const ReadOptions& options = {},
                         std::vector<DimDenotation>* denotations = nullptr);
/// The same for a model in memory.
Result<Model> read_model_from_bytes(std::span<const std::byte> bytes,
                                    const ReadOptions& options = {},
                                    std::vector<DimDenotation>* denotations = nullptr);

/// What a model says about itself, with neither graph nor functions; the graph is not looked at.
/// Errors   NoSuchFile, InvalidProtobuf, Unsupported.
Result<Model> read_model_head(const std::string& path);
Result<Model> read_model_head_from_bytes(std::span<const std::byte> bytes);

/// The tensor in a file that holds a TensorProto.
Result<Tensor> read_tensor_file(const std::string& path);
/// The datum in a file that holds a TensorProto, SequenceProto, OptionalProto, MapProto or
/// SparseTensorProto, as `type` says.
Result<Datum> read_datum_file(const std::string& path, const Type& type);
/// The same for a message in memory; its bytes are copied where the datum needs them.
Result<Datum> read_datum(std::span<const std::byte> bytes, const Type& type);

}  // namespace sardonyx
