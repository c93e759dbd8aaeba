#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/datum.h"
#include "ir/shape.h"
#include "ir/type.h"
#include "onnx/writer.h"

namespace sardonyx::onnx {

/// Protobuf messages of 2 GiB and more cannot be read by others.
inline constexpr std::uint64_t kMaxMessageBytes = (std::uint64_t{1} << 31) - 1;

/// Appends a length-delimited field: its head, then the payload.
void append_bytes(std::string& message, std::uint32_t field, std::string_view payload);
/// The head alone: field number, wire type and length of a payload that follows.
void append_head(std::string& message, std::uint32_t field, std::uint64_t payload_bytes);
void append_integer(std::string& message, std::uint32_t field, std::int64_t value);
void append_float(std::string& message, std::uint32_t field, float value);
/// A StringStringEntryProto.
void append_entry(std::string& message, std::uint32_t field, std::string_view key,
                  std::string_view value);

/// A TensorProto without its elements: name, type, dimensions.
std::string tensor_head(std::string_view name, const Tensor& tensor);
/// Whether the elements can be written by raw_data or external data just as they are in memory.
bool is_written_as_it_is(const Tensor& tensor);
/// A whole TensorProto.
/// Errors   InvalidArgument when it would have 2 GiB or more.
Result<std::string> encode_tensor(std::string_view name, const Tensor& tensor);
/// A TensorProto that refers to an external file.
std::string encode_external(std::string_view name, const Tensor& tensor,
                            const ExternalLocation& location);
/// A SparseTensorProto.
Result<std::string> encode_sparse(std::string_view name, const SparseTensor& sparse);

/// A TypeProto; symbols without a table or a name are unknown dimensions.
std::string encode_type(const Type& type, const SymbolTable* symbols);
/// A ValueInfoProto.
std::string encode_value_info(std::string_view name, const Type& type, const SymbolTable* symbols);

}  // namespace sardonyx::onnx
