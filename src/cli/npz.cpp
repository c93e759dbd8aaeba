#include "cli/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>


namespace sardonyx::cli {

namespace {

constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEntryMagic = 0x02014b50;
constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
/// Deflate packs zeros at most about a thousand to one: more is a lie.
constexpr std::uint64_t kDeflateRatioMax = 1040;

using Bytes = std::span<const std::byte>;

template <typename T>
T load(Bytes bytes, std::size_t offset) {
  T number{};
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

/// One row of the archive's table of contents.
struct Entry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t checksum = 0;
  std::uint32_t packed_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t offset = 0;
};

std::optional<std::size_t> find_end(Bytes bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const std::size_t last = bytes.size() - kEndBytes;
  // The end record is followed by a comment of at most 64 KiB.
  const std::size_t first = last > 0xffff ? last - 0xffff : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (load<std::uint32_t>(bytes, at) == kEndMagic) return at;
  }
  return std::nullopt;
}

Status damaged() { return Status("the .npz file is damaged or cut"); }

Result<std::vector<Entry>> read_table(Bytes bytes) {
  const auto end = find_end(bytes);
  if (!end) return Status("this is no .npz file: it has no zip directory");
  const auto count = load<std::uint16_t>(bytes, *end + 10);
  std::size_t at = load<std::uint32_t>(bytes, *end + 16);
  std::vector<Entry> entries;
  for (int i = 0; i < count; ++i) {
    if (at > bytes.size() || bytes.size() - at < kEntryBytes) return damaged();
    const Bytes row = bytes.subspan(at);
    if (load<std::uint32_t>(row, 0) != kEntryMagic) return damaged();
    const std::size_t name_bytes = load<std::uint16_t>(row, 28);
    if (row.size() - kEntryBytes < name_bytes) return damaged();
    entries.push_back({{reinterpret_cast<const char*>(row.data()) + kEntryBytes, name_bytes},
                       load<std::uint16_t>(row, 8),
                       load<std::uint16_t>(row, 10),
                       load<std::uint32_t>(row, 16),
                       load<std::uint32_t>(row, 20),
                       load<std::uint32_t>(row, 24),
                       load<std::uint32_t>(row, 42)});
    at += kEntryBytes + name_bytes + load<std::uint16_t>(row, 30) + load<std::uint16_t>(row, 32);
  }
  return entries;
}

Status inflate_into(Bytes packed, std::vector<std::byte>& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return Status("no memory to decompress");
  }
  // zlib takes a pointer to bytes that it does not change.
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int outcome = inflate(&stream, Z_FINISH);
  const bool is_whole = outcome == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return is_whole ? Status() : damaged();
}

Result<std::vector<std::byte>> unpack(Bytes bytes, const Entry& entry) {
  static constexpr std::uint32_t kInExtraField = 0xffffffffU;
  if (entry.packed_bytes == kInExtraField || entry.size_bytes == kInExtraField ||
      entry.offset == kInExtraField) {
    return failure("member '{}' is 4 GiB or larger: pass it as .npy file",
                   entry.name);
  }
  if ((entry.flags & 1U) != 0 || (entry.method != 0 && entry.method != 8)) {
    return failure("member '{}' is encrypted or compressed by method {}: only plain and deflated "
                   "members are supported",
                   entry.name, entry.method);
  }
  if (entry.offset > bytes.size() || bytes.size() - entry.offset < kLocalBytes) return damaged();
  const Bytes local = bytes.subspan(entry.offset);
  if (load<std::uint32_t>(local, 0) != kLocalMagic) return damaged();
  const std::size_t start =
      kLocalBytes + load<std::uint16_t>(local, 26) + load<std::uint16_t>(local, 28);
  if (local.size() < start || local.size() - start < entry.packed_bytes) return damaged();
  const Bytes packed = local.subspan(start, entry.packed_bytes);
  if (entry.method == 0 && entry.size_bytes != entry.packed_bytes) return damaged();
  if (entry.size_bytes > (entry.packed_bytes + 64) * kDeflateRatioMax) return damaged();
  std::vector<std::byte> out(entry.size_bytes);
  if (entry.method == 0) {
    std::copy(packed.begin(), packed.end(), out.begin());
  } else {
    SDX_TRY(inflate_into(packed, out));
  }
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(out.data()),
                         static_cast<uInt>(out.size()));
  if (sum != entry.checksum) {
    return failure("member '{}' is damaged: its checksum is wrong",
                   entry.name);
  }
  return out;
}

}  // namespace

Result<std::vector<NpzMember>> read_npz(std::span<const std::byte> bytes) {
  SDX_ASSIGN(const std::vector<Entry> entries, read_table(bytes));
  std::vector<NpzMember> members;
  for (const Entry& entry : entries) {
    SDX_ASSIGN(std::vector<std::byte> content, unpack(bytes, entry));
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    members.push_back({std::move(name), std::move(content)});
  }
  return members;
}

}  // namespace sardonyx::cli
