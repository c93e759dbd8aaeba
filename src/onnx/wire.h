#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <protozero/pbf_reader.hpp>
#include <exception>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sardonyx::onnx {

/// A field has another wire type than its message declares, or a length beyond its message.
class WireError : public protozero::exception {
 public:
  explicit WireError(const char* text) : text_(text) {}
  const char* what() const noexcept override { return text_; }

 private:
  const char* text_;
};

/// The fields of one protobuf message in order. Every access checks wire type and length and throws
/// a protozero::exception when they do not fit: guarded() turns that into a Status.
class Fields {
 public:
  explicit Fields(std::string_view message) : reader_(message.data(), message.size()) {}

  /// Moves to the next field; false at the end.
  bool next() {
    if (!reader_.next()) return false;
    number_ = reader_.tag();
    return true;
  }
  std::uint32_t number() const { return number_; }
  /// Passes over a field of no interest.
  void skip() {
    if (reader_.has_wire_type(protozero::pbf_wire_type::length_delimited)) check_length();
    reader_.skip();
  }

  /// Payload of a string, bytes or message field: a view into the message.
  std::string_view bytes() {
    expect(protozero::pbf_wire_type::length_delimited);
    check_length();
    const protozero::data_view view = reader_.get_view();
    return {view.data(), view.size()};
  }
  std::string text() { return std::string(bytes()); }
  std::int64_t integer() {
    expect(protozero::pbf_wire_type::varint);
    return reader_.get_int64();
  }
  float float32() {
    expect(protozero::pbf_wire_type::fixed32);
    return reader_.get_float();
  }

  /// The field has one payload of bytes: of a repeated number field it is a packed part.
  bool is_packed() const {
    return reader_.has_wire_type(protozero::pbf_wire_type::length_delimited);
  }
  /// Calls sink(std::int64_t) for each number of a repeated varint field, packed or not.
  template <typename Sink>
  void integers(Sink&& sink) {
    if (!is_packed()) return sink(integer());
    const std::string_view part = bytes();
    const char* position = part.data();
    const char* const end = position + part.size();
    while (position != end) {
      sink(static_cast<std::int64_t>(protozero::decode_varint(&position, end)));
    }
  }
  /// Calls sink(T) for each number of a repeated float or double field, packed or not.
  template <typename T, typename Sink>
  void fixed(Sink&& sink) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    std::string_view part;
    if (is_packed()) {
      part = bytes();
      if (part.size() % sizeof(T) != 0) throw WireError("a packed field has an odd length");
    } else {
      expect(sizeof(T) == 4 ? protozero::pbf_wire_type::fixed32
                            : protozero::pbf_wire_type::fixed64);
      part = {reader_.data().data(), sizeof(T)};
      reader_.skip();
    }
    for (std::size_t i = 0; i < part.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, part.data() + i, sizeof(T));
      sink(value);
    }
  }

 private:
  void expect(protozero::pbf_wire_type type) const {
    if (!reader_.has_wire_type(type)) throw WireError("a field has a wrong wire type");
  }
  /// protozero keeps 32 bits of a length: the whole number is looked at first.
  void check_length() const {
    const protozero::data_view rest = reader_.data();
    const char* position = rest.data();
    const char* const end = position + rest.size();
    const std::uint64_t length = protozero::decode_varint(&position, end);
    if (length > static_cast<std::uint64_t>(end - position)) {
      throw WireError("a field is longer than what holds it");
    }
  }

  protozero::pbf_reader reader_;
  std::uint32_t number_ = 0;
};

/// body(), which returns a Status or Result, with protobuf's exceptions turned into a Status.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const protozero::exception& error) {
    return failure(Code::InvalidProtobuf, "the bytes are damaged or cut off: {}", error.what());
  } catch (const std::bad_alloc&) {
    return Status(Code::OutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return failure(Code::Internal, "unexpected: {}", error.what());
  }
}

}  // namespace sardonyx::onnx
