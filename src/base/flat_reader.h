#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sardonyx {

/// A flatbuffer of which nothing is believed: every position is checked before it is read.
/// Errors   the code that it was made with, in messages that name what is read.
class FlatReader {
 public:
  struct Vector {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  /// `what` names the contents in messages ("adapter") and has to outlive the reader.
  FlatReader(std::span<const std::byte> bytes, Code code, std::string_view what)
      : bytes_(bytes), code_(code), what_(what) {}

  template <typename T>
  Result<T> read(std::size_t position) const {
    if (position > bytes_.size() || bytes_.size() - position < sizeof(T)) {
      return failure(code_, "the {} is cut short: it points to byte {} of {}", what_, position,
                     bytes_.size());
    }
    T value;
    std::memcpy(&value, bytes_.data() + position, sizeof(T));
    return value;
  }

  /// What the unsigned offset at `position` points to.
  Result<std::size_t> follow(std::size_t position) const {
    SDX_ASSIGN(const auto offset, read<std::uint32_t>(position));
    return position + offset;
  }

  /// The position of a table's field; 0 when it is left out.
  Result<std::size_t> field(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const auto back, read<std::int32_t>(table));
    const std::int64_t vtable = static_cast<std::int64_t>(table) - back;
    if (vtable < 0) return failure(code_, "the {} has a table before itself", what_);
    const auto at = static_cast<std::size_t>(vtable);
    SDX_ASSIGN(const auto vtable_bytes, read<std::uint16_t>(at));
    const std::size_t entry = 4 + 2 * std::size_t{slot};
    if (entry + 2 > vtable_bytes) return std::size_t{0};
    SDX_ASSIGN(const auto offset, read<std::uint16_t>(at + entry));
    return offset == 0 ? std::size_t{0} : table + offset;
  }

  /// A number, or `otherwise` when it is left out.
  template <typename T>
  Result<T> number(std::size_t table, std::uint32_t slot, T otherwise = T{}) const {
    SDX_ASSIGN(const std::size_t position, field(table, slot));
    if (position == 0) return otherwise;
    return read<T>(position);
  }

  /// The position of the table that a field holds; 0 when it is left out.
  Result<std::size_t> table(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const std::size_t position, field(table, slot));
    if (position == 0) return std::size_t{0};
    return follow(position);
  }

  /// A vector field, whose items are known to lie inside the bytes; empty when it is left out.
  Result<Vector> vector(std::size_t table, std::uint32_t slot, std::size_t item_bytes) const {
    SDX_ASSIGN(const std::size_t position, field(table, slot));
    if (position == 0) return Vector{};
    SDX_ASSIGN(const std::size_t start, follow(position));
    return vector_at(start, item_bytes);
  }

  /// A view of the text in a field; "" when it is left out.
  Result<std::string_view> text(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const Vector found, vector(table, slot, 1));
    return view(found);
  }

  /// A view of item `index` of a vector of texts.
  Result<std::string_view> text_item(const Vector& texts, std::size_t index) const {
    SDX_ASSIGN(const std::size_t start, item(texts, index));
    SDX_ASSIGN(const Vector found, vector_at(start, 1));
    return view(found);
  }

  /// The table that is item `index` of a vector of tables.
  Result<std::size_t> item(const Vector& tables, std::size_t index) const {
    return follow(tables.begin + index * sizeof(std::uint32_t));
  }

  const std::byte* at(std::size_t position) const { return bytes_.data() + position; }

 private:
  Result<Vector> vector_at(std::size_t start, std::size_t item_bytes) const {
    SDX_ASSIGN(const auto count, read<std::uint32_t>(start));
    const std::size_t begin = start + sizeof(std::uint32_t);
    if (count > (bytes_.size() - begin) / item_bytes) {
      return failure(code_, "the {} is cut short: {} items at byte {} of {} do not fit", what_,
                     count, begin, bytes_.size());
    }
    return Vector{begin, count};
  }

  std::string_view view(const Vector& found) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + found.begin, found.count};
  }

  std::span<const std::byte> bytes_;
  Code code_;
  std::string_view what_;
};

}  // namespace sardonyx
