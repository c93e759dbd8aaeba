#include <doctest/doctest.h>

#include "messages.h"

using namespace messages;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string typed(std::uint32_t number, std::initializer_list<std::int64_t> values) {
  return field(number, varints(values));
}

Bytes decoded_bytes(DType dtype, std::vector<std::int64_t> dims, const std::string& data) {
  const auto read_tensor = read_initializer(tensor("w", dtype, std::move(dims), data));
  REQUIRE_MESSAGE(read_tensor.ok(), read_tensor.status().to_string());
  return elements<std::uint8_t>(*read_tensor);
}

std::string error_of_tensor(const std::string& message) {
  const auto result = read_initializer(message);
  return result.ok() ? "" : result.status().to_string();
}

}  // namespace

TEST_CASE("raw data is the tensor, whatever its element type") {
  const auto floats = read_initializer(
      tensor("w", DType::Float32, {2, 2}, raw_data(raw<float>({1, 2.5F, -3, 4}))));
  REQUIRE(floats.ok());
  CHECK(floats->shape() == Shape{2, 2});
  CHECK(elements<float>(*floats) == std::vector<float>{1, 2.5F, -3, 4});
  const auto scalar =
      read_initializer(tensor("w", DType::Int64, {}, raw_data(raw<std::int64_t>({-7}))));
  REQUIRE(scalar.ok());
  CHECK(scalar->rank() == 0);
  CHECK(elements<std::int64_t>(*scalar) == std::vector<std::int64_t>{-7});
}

TEST_CASE("typed fields are decoded into their element type") {
  const auto int32 = tensor_field::kInt32Data;
  CHECK(decoded_bytes(DType::Int8, {3}, typed(int32, {-1, 127, -128})) == Bytes{255, 127, 128});
  CHECK(decoded_bytes(DType::UInt8, {2}, typed(int32, {255, 0})) == Bytes{255, 0});
  CHECK(decoded_bytes(DType::Bool, {3}, typed(int32, {1, 0, 2})) == Bytes{1, 0, 1});
  CHECK(decoded_bytes(DType::Float8E4M3FN, {2}, typed(int32, {0x38, 0x7f})) == Bytes{0x38, 0x7f});
  CHECK(decoded_bytes(DType::Int16, {1}, typed(int32, {-2})) == Bytes{0xfe, 0xff});
  CHECK(decoded_bytes(DType::Float16, {1}, typed(int32, {0x3c00})) == Bytes{0x00, 0x3c});
  CHECK(decoded_bytes(DType::BFloat16, {1}, typed(int32, {0x3f80})) == Bytes{0x80, 0x3f});
  CHECK(decoded_bytes(DType::Int32, {1}, typed(int32, {-2})) == Bytes{0xfe, 0xff, 0xff, 0xff});
  CHECK(decoded_bytes(DType::UInt32, {1}, typed(tensor_field::kUInt64Data, {0xfffffffe})) ==
        Bytes{0xfe, 0xff, 0xff, 0xff});
  CHECK(decoded_bytes(DType::UInt64, {1}, typed(tensor_field::kUInt64Data, {-1})) ==
        Bytes(8, 0xff));
  CHECK(decoded_bytes(DType::Int64, {1}, typed(tensor_field::kInt64Data, {-1})) == Bytes(8, 0xff));
}

TEST_CASE("elements below a byte come packed, several to a number") {
  const auto int32 = tensor_field::kInt32Data;
  CHECK(decoded_bytes(DType::UInt4, {3}, typed(int32, {0x21, 0x03})) == Bytes{0x21, 0x03});
  CHECK(decoded_bytes(DType::Int4, {2, 2}, raw_data("\x1f\x78")) == Bytes{0x1f, 0x78});
  CHECK(decoded_bytes(DType::Float4E2M1, {1}, typed(int32, {0x7})) == Bytes{0x7});
  CHECK(decoded_bytes(DType::UInt2, {5}, typed(int32, {0xe4, 0x02})) == Bytes{0xe4, 0x02});
  CHECK(decoded_bytes(DType::Int2, {4}, raw_data("\x1b")) == Bytes{0x1b});
}

TEST_CASE("6-bit floats take a byte each in memory and six bits in raw data") {
  // 1, 2, 3, 63 in a stream of low bits first: 000001 000010 000011 111111.
  const std::string packed = {'\x81', '\x30', '\xfc'};
  CHECK(decoded_bytes(DType::Float6E2M3, {4}, raw_data(packed)) == Bytes{1, 2, 3, 63});
  CHECK(decoded_bytes(DType::Float6E3M2, {3}, raw_data(std::string({'\x81', '\x30', '\x00'}))) ==
        Bytes{1, 2, 3});
  CHECK(decoded_bytes(DType::Float6E3M2, {2}, typed(tensor_field::kInt32Data, {5, 0x7f})) ==
        Bytes{5, 63});
  CHECK(contains_text(
      error_of_tensor(tensor("w", DType::Float6E2M3, {4}, raw_data("\x01\x01\x01\x01"))),
      "must have 3 bytes of data, found 4"));
}

TEST_CASE("floats, doubles and complex numbers are read packed and one by one") {
  const std::string packed = field(tensor_field::kFloatData, raw<float>({1, 2, 3, 4}));
  std::string single;
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F}) {
    append_float(single, tensor_field::kFloatData, value);
  }
  for (const std::string& data : {packed, single}) {
    const auto floats = read_initializer(tensor("w", DType::Float32, {4}, data));
    REQUIRE(floats.ok());
    CHECK(elements<float>(*floats) == std::vector<float>{1, 2, 3, 4});
    const auto complex = read_initializer(tensor("w", DType::Complex64, {2}, data));
    REQUIRE(complex.ok());
    CHECK(elements<float>(*complex) == std::vector<float>{1, 2, 3, 4});
  }
  const std::string in_two_parts = field(tensor_field::kFloatData, raw<float>({1, 2, 3})) +
                                   field(tensor_field::kFloatData, raw<float>({4}));
  const auto joined = read_initializer(tensor("w", DType::Float32, {4}, in_two_parts));
  REQUIRE(joined.ok());
  CHECK(elements<float>(*joined) == std::vector<float>{1, 2, 3, 4});
  const auto doubles = read_initializer(
      tensor("w", DType::Float64, {1}, field(tensor_field::kDoubleData, raw<double>({0.1}))));
  REQUIRE(doubles.ok());
  CHECK(elements<double>(*doubles) == std::vector<double>{0.1});
}

TEST_CASE("strings are read, empty ones too") {
  const std::string data = field(tensor_field::kStringData, "abc") +
                           field(tensor_field::kStringData, "") +
                           field(tensor_field::kStringData, std::string_view("\xff\0x", 3));
  const auto strings = read_initializer(tensor("w", DType::String, {3}, data));
  REQUIRE(strings.ok());
  CHECK(elements<std::string>(*strings) ==
        std::vector<std::string>{"abc", "", std::string("\xff\0x", 3)});
  CHECK(contains_text(error_of_tensor(tensor("w", DType::String, {2}, data)), "does not fit"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::String, {1}, raw_data("abc"))),
                      "strings as raw data"));
}

TEST_CASE("raw bools other than 0 and 1 become 1") {
  CHECK(decoded_bytes(DType::Bool, {3}, raw_data({"\x00\x02\x01", 3})) == Bytes{0, 1, 1});
}

TEST_CASE("empty tensors need no data") {
  for (const DType dtype : {DType::Float32, DType::String, DType::Int4, DType::Float6E2M3}) {
    const auto empty = read_initializer(tensor("w", dtype, {0, 5}, ""));
    REQUIRE(empty.ok());
    CHECK(empty->shape() == Shape{0, 5});
    CHECK(empty->byte_size() == 0);
  }
}

TEST_CASE("small misaligned raw data is copied, large stays a view") {
  for (std::size_t shift = 0; shift < 8; ++shift) {
    for (const std::int64_t count : {16, 1 << 16}) {
      const std::string data(static_cast<std::size_t>(count) * 4, '\x11');
      // The document string moves the data through all alignments.
      const std::string bytes =
          model(field(graph_field::kDocString, std::string(shift, 'x')) +
                initializer(tensor("w", DType::Float32, {count}, raw_data(data))) +
                output("w"));
      ReadOptions options;
      options.borrow_bytes = true;
      const auto result = read(bytes, options);
      REQUIRE(result.ok());
      const Tensor& w = *result->graph.value(find(result->graph, "w")).constant;
      const char* start = reinterpret_cast<const char*>(w.data());
      const bool is_view = start >= bytes.data() && start < bytes.data() + bytes.size();
      CHECK((is_view || w.is_aligned()));
      CHECK((is_view || count == 16));
      CHECK(std::memcmp(w.data(), data.data(), data.size()) == 0);
    }
  }
}

TEST_CASE("data that does not fit the shape is refused with both sizes") {
  const std::string four = raw_data(raw<float>({1, 2, 3, 4}));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {5}, four)),
                      "tensor 'w' (float) of shape [5] must have 20 bytes of data, found 16"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float64, {4}, four)),
                      "must have 32 bytes"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {1}, "")), "does not fit"));
  const std::string two = typed(tensor_field::kInt32Data, {1, 2});
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Int8, {1}, two)), "does not fit"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Int8, {3}, two)), "does not fit"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Int64, {2}, two)), "must not be in"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Int64, {2},
                                             two + typed(tensor_field::kInt64Data, {1, 2}))),
                      "two fields"));
}

TEST_CASE("dimensions and element types out of range are refused by number") {
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {-2}, "")),
                      "tensor 'w' has the negative dimension -2"));
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {huge, huge}, "")),
                      "does not fit into memory"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {0, huge, huge}, "")),
                      "does not fit into memory"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Float32, {huge}, "")), "does not fit"));
  CHECK(contains_text(
      error_of_tensor(tensor("w", DType::Float32, std::vector<std::int64_t>(17, 1), "")),
      "more than 16 dimensions"));
  CHECK(contains_text(error_of_tensor(tensor("w", static_cast<DType>(99), {1}, "")),
                      "unknown element type 99"));
  CHECK(contains_text(error_of_tensor(tensor("w", DType::Undefined, {1}, "")),
                      "no element type"));
  CHECK(contains_text(
      error_of_tensor(tensor("w", DType::Float32, {1}, field(tensor_field::kSegment, ""))),
      "segments"));
}

TEST_CASE("a sparse initializer is a constant of the dense type") {
  const std::string sparse =
      field(sparse_field::kValues,
            tensor("s", DType::Float32, {2}, raw_data(raw<float>({5, 6})))) +
      field(sparse_field::kIndices,
            tensor("", DType::Int64, {2, 2}, raw_data(raw<std::int64_t>({0, 1, 1, 2})))) +
      integer(sparse_field::kDims, 2) + integer(sparse_field::kDims, 3);
  const auto result =
      read(model(field(graph_field::kSparseInitializer, sparse) + output("s")));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const Value& value = result->graph.value(find(result->graph, "s"));
  REQUIRE(value.sparse_constant);
  CHECK(*value.type.shape == Shape{2, 3});
  const auto dense = densify(*value.sparse_constant);
  REQUIRE(dense.ok());
  CHECK(elements<float>(*dense) == std::vector<float>{0, 5, 0, 0, 0, 6});
}

TEST_CASE("sparse indices outside the shape are refused") {
  for (const std::int64_t index : {std::int64_t{6}, std::int64_t{-1}}) {
    const std::string sparse =
        field(sparse_field::kValues,
              tensor("s", DType::Float32, {1}, raw_data(raw<float>({5})))) +
        field(sparse_field::kIndices,
              tensor("", DType::Int64, {1}, raw_data(raw<std::int64_t>({index})))) +
        integer(sparse_field::kDims, 2) + integer(sparse_field::kDims, 3);
    CHECK(contains_text(
        error_of(model(field(graph_field::kSparseInitializer, sparse) + output("s"))),
        "index 0 of a sparse tensor lies outside its shape [2,3]"));
  }
}
