#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"

namespace sardonyx {

/// Gathers numbers and texts in the form that ByteReader reads: little-endian, whole numbers in as
/// many bytes as they need.
class ByteWriter {
 public:
  /// 7 bits a byte, low ones first.
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value));
  }
  /// Small magnitudes take few bytes.
  void signed_number(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  /// The bytes of a plain value as they stand in memory.
  template <typename T>
  void fixed(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    number(text.size());
    raw(std::as_bytes(std::span(text)));
  }
  void hash(const Hash128& hash) {
    fixed(hash.low);
    fixed(hash.high);
  }

  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what ByteWriter wrote, believing nothing. After the first error every read answers zero
/// and status() has the error: callers check it before they use what they read, and in loops.
/// Errors   InvalidModel, in a message that names what is read.
class ByteReader {
 public:
  /// `what` names the contents in messages ("index") and has to outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail("a number of more than 64 bits");
    return 0;
  }
  std::int64_t signed_number() {
    const std::uint64_t bits = number();
    return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  template <typename T>
  T fixed() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto found = raw(sizeof(T));
    if (found.size() == sizeof(T)) std::memcpy(&value, found.data(), sizeof(T));
    return value;
  }
  /// That many bytes where they stand; none after an error.
  std::span<const std::byte> raw(std::uint64_t count) {
    if (!status_.ok()) return {};
    if (count > bytes_.size() - position_) {
      fail(fmt::format("{} bytes", count));
      return {};
    }
    const auto found = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += found.size();
    return found;
  }
  std::string_view text() {
    const auto found = raw(number());
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  Hash128 hash() {
    Hash128 hash;
    hash.low = fixed<std::uint64_t>();
    hash.high = fixed<std::uint64_t>();
    return hash;
  }
  /// How many items follow that take at least `item_bytes` each (at least 1).
  std::size_t count(std::size_t item_bytes = 1) {
    const std::uint64_t count = number();
    if (count <= (bytes_.size() - position_) / item_bytes) return static_cast<std::size_t>(count);
    fail(fmt::format("{} items", count));
    return 0;
  }
  /// A number below `bound`: an index, or an enumerator.
  std::size_t below(std::size_t bound, std::string_view name) {
    const std::uint64_t value = number();
    if (status_.ok() && value < bound) return static_cast<std::size_t>(value);
    refuse(fmt::format("{} {} is not below {}", name, value, bound));
    return 0;
  }

  bool ok() const { return status_.ok(); }
  /// The error, if there is one; the reader has none afterwards.
  Status take_status() { return std::move(status_); }
  const Status& status() const { return status_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return position_ == bytes_.size(); }
  /// Sets the error, unless there is one.
  void refuse(const std::string& message) {
    if (!status_.ok()) return;
    status_ = failure(Code::InvalidModel, "the {} is damaged: {} (byte {} of {})", what_, message,
                      position_, bytes_.size());
  }

 private:
  void fail(const std::string& wanted) { refuse("expected " + wanted + ", but it is cut short"); }

  std::span<const std::byte> bytes_;
  std::string_view what_;
  std::size_t position_ = 0;
  Status status_;
};

}  // namespace sardonyx
