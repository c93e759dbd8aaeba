#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// Numbers a constant that is kept outside the bytes; nothing: its elements go into them.
using NumberConstantFn =
    FunctionRef<Result<std::optional<std::uint32_t>>(const Graph& graph, ValueId value)>;

/// Finds a constant that is kept outside the bytes.
/// Errors   InvalidModel for a number, type or shape that does not fit.
using FindConstantFn =
    FunctionRef<Result<Tensor>(std::uint32_t number, DType dtype, const Shape& shape)>;

/// A graph in few bytes: its live nodes in an order in which they can run, without what runs do
/// not need (documentation, metadata, names of values inside, defaults of inputs).
/// Errors   Unsupported for a node whose operator comes from a program; those of
///          `number_constant`.
Result<std::vector<std::byte>> encode_graph(const Graph& graph, NumberConstantFn number_constant);

/// The graph that encode_graph() wrote. Types are those that were stored: who does not trust the
/// bytes infers them again.
/// Errors   InvalidModel for bytes that are damaged; those of `find_constant`.
Result<Graph> decode_graph(std::span<const std::byte> bytes, FindConstantFn find_constant);

}  // namespace sardonyx
