#include <doctest/doctest.h>

#include "messages.h"
#include "onnx/writer.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

const Type kTensor = Type::tensor(DType::Float32);

Tensor floats(std::initializer_list<float> values) {
  return *make_tensor<float>({static_cast<Dim>(values.size())}, values);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(std::string_view(text)));
}

std::shared_ptr<const Sequence> sequence_of(std::vector<Datum> items, const Type& element) {
  return std::make_shared<const Sequence>(Sequence{element, std::move(items)});
}

}  // namespace

TEST_CASE("a tensor survives a file") {
  const TemporaryFolder folder;
  REQUIRE(write_datum_file(floats({1, 2, 3}), folder / "t.pb").ok());
  const auto tensor_read = read_tensor_file(folder / "t.pb");
  REQUIRE(tensor_read.ok());
  CHECK(elements<float>(*tensor_read) == std::vector<float>{1, 2, 3});
}

TEST_CASE("sequences keep order, and their element type when they are empty") {
  const auto written = write_datum(sequence_of({floats({1}), floats({2, 3})}, kTensor));
  REQUIRE(written.ok());
  const auto result = read_datum(bytes_of(*written), Type::sequence(kTensor));
  REQUIRE(result.ok());
  REQUIRE(result->sequence()->items.size() == 2);
  CHECK(elements<float>(*result->sequence()->items[1].tensor()) == std::vector<float>{2, 3});
  const auto nothing = write_datum(sequence_of({}, kTensor));
  const auto empty = read_datum(bytes_of(*nothing), Type::sequence(kTensor));
  REQUIRE(empty.ok());
  CHECK(empty->type().to_string() == "seq(tensor(float))");
}

TEST_CASE("sequences of sequences are read") {
  const Type inner = Type::sequence(kTensor);
  const auto written = write_datum(sequence_of({sequence_of({floats({4})}, kTensor)}, inner));
  REQUIRE(written.ok());
  const auto result = read_datum(bytes_of(*written), Type::sequence(inner));
  REQUIRE(result.ok());
  const Datum& item = result->sequence()->items.at(0);
  CHECK(elements<float>(*item.sequence()->items.at(0).tensor()) == std::vector<float>{4});
}

TEST_CASE("optionals are read with and without a value") {
  const Type type = Type::optional(kTensor);
  const auto full = write_optional(floats({7}));
  REQUIRE(full.ok());
  const auto some = read_datum(bytes_of(*full), type);
  REQUIRE(some.ok());
  CHECK(elements<float>(*some->tensor()) == std::vector<float>{7});
  const auto none = read_datum({}, type);
  REQUIRE(none.ok());
  CHECK(!none->has_value());
  const Type of_sequence = Type::optional(Type::sequence(kTensor));
  const auto sequence = write_optional(sequence_of({floats({1})}, kTensor));
  const auto result = read_datum(bytes_of(*sequence), of_sequence);
  REQUIRE(result.ok());
  CHECK(result->sequence()->items.size() == 1);
}

TEST_CASE("maps keep keys and values") {
  const auto strings = std::make_shared<const Map>(
      Map{*make_tensor<std::string>({2}, {"a", "b"}), floats({1, 2})});
  const auto written = write_datum(strings);
  REQUIRE(written.ok());
  const auto result = read_datum(bytes_of(*written), Type::map(DType::String, kTensor));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(elements<std::string>(result->map()->keys) == std::vector<std::string>{"a", "b"});
  CHECK(elements<float>(result->map()->values) == std::vector<float>{1, 2});
  const auto numbers = std::make_shared<const Map>(
      Map{*make_tensor<std::int64_t>({1}, {-5}), *make_tensor<std::string>({1}, {"x"})});
  const auto other = write_datum(numbers);
  const auto again = read_datum(bytes_of(*other), Type::map(DType::Int64, kTensor));
  REQUIRE(again.ok());
  CHECK(elements<std::int64_t>(again->map()->keys) == std::vector<std::int64_t>{-5});
  CHECK(elements<std::string>(again->map()->values) == std::vector<std::string>{"x"});
}

TEST_CASE("data that does not fit its type is an error") {
  CHECK(!read_datum(bytes_of("\x08"), kTensor).ok());
  CHECK(!read_datum({}, kTensor).ok());
  CHECK(!read_datum({}, Type{}).ok());
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested = field(sequence_field::kSequences, nested);
  const auto deep = read_datum(bytes_of(nested), Type::sequence(Type{}));
  REQUIRE(!deep.ok());
  CHECK(contains_text(deep.status().to_string(), "nested more than 32 deep"));
  const std::string outside = tensor("t", DType::Float32, {1}, external("x", "", ""));
  const auto file = read_datum(bytes_of(outside), kTensor);
  REQUIRE(!file.ok());
  CHECK(contains_text(file.status().to_string(), "no part of a model"));
}
