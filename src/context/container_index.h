#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "context/container.h"

namespace sardonyx {

/// The index as it stands in a container.
std::vector<std::byte> encode_index(const ContainerIndex& index);

/// Reads it back. Every range is checked to lie between the header and `end`.
/// Errors   InvalidModel for what is damaged.
Result<ContainerIndex> decode_index(std::span<const std::byte> bytes, std::uint64_t end);

/// Whether bytes begin as a container's do.
bool begins_as_container(std::span<const std::byte> bytes);

/// The header of a container with one slot.
std::vector<std::byte> encode_header(const ContainerSlot& slot);
/// A slot, and where it stands: those of one generation and the next lie apart.
std::vector<std::byte> encode_slot(ContainerSlot slot);
std::uint64_t slot_offset(std::uint64_t generation);
/// The slot of the latest generation that is whole and whose index ends by `end`.
/// Errors   InvalidModel for what is no container or damaged; Unsupported for another version.
Result<ContainerSlot> decode_header(std::span<const std::byte> bytes, std::uint64_t end);

}  // namespace sardonyx
