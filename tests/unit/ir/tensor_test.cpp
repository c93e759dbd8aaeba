#include "ir/tensor.h"

#include <doctest/doctest.h>

#include <vector>

#include "ir/attribute.h"
#include "ir/datum.h"

using namespace sardonyx;

namespace {

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a tensor's memory starts at a multiple of 64 bytes, whatever its size") {
  for (const Dim size : {0, 1, 63, 64, 65, 1000}) {
    const auto tensor = Tensor::allocate(DType::UInt8, Shape{size});
    REQUIRE(tensor.ok());
    CHECK(reinterpret_cast<std::uintptr_t>(tensor->data()) % kAlignment_bytes == 0);
    CHECK(tensor->byte_size() == static_cast<std::size_t>(size));
  }
}

TEST_CASE("sizes that do not fit are errors, not attempts") {
  const Dim large = Dim{1} << 40;
  for (const Shape& shape : {Shape{large, large}, Shape{large << 20}, Shape{0, large, large},
                             Shape{kUnknownDim}}) {
    const auto tensor = Tensor::allocate(DType::Float32, shape);
    REQUIRE(!tensor.ok());
    CHECK(tensor.status().code() == Code::OutOfMemory);
  }
}

TEST_CASE("a copy shares its elements, a clone does not") {
  Tensor first = *make_tensor<float>({2}, {1, 2});
  const Tensor shared = first;
  const Tensor copy = *clone(first);
  first.mutable_values<float>()[0] = 9;
  CHECK(elements<float>(shared) == std::vector<float>{9, 2});
  CHECK(elements<float>(copy) == std::vector<float>{1, 2});
  const Tensor strings = *make_tensor<std::string>({2}, {"a", "b"});
  CHECK(elements<std::string>(*clone(strings)) == std::vector<std::string>{"a", "b"});
  CHECK(first.reshaped({1, 2}).shape() == Shape{1, 2});
}

TEST_CASE("a misaligned view is told and can be had aligned") {
  const Tensor bytes = *Tensor::allocate(DType::UInt8, Shape{12});
  const Tensor good = Tensor::view(DType::Float32, Shape{2}, bytes.data(), bytes.owner());
  CHECK(good.is_aligned());
  CHECK(aligned(good)->data() == good.data());
  const Tensor odd = Tensor::view(DType::Float32, Shape{2}, bytes.data() + 1, bytes.owner());
  CHECK(!odd.is_aligned());
  CHECK(aligned(odd)->is_aligned());
}

TEST_CASE("a sparse tensor of packed elements becomes dense") {
  // Values 1, 2, 3 at the places 0, 3 and 4 of six.
  const std::byte packed[] = {std::byte{0x21}, std::byte{0x03}};
  const SparseTensor sparse{Shape{2, 3},
                            Tensor::view(DType::UInt4, Shape{3}, packed),
                            *make_tensor<std::int64_t>({3}, {0, 3, 4})};
  const auto dense = densify(sparse);
  REQUIRE(dense.ok());
  CHECK(elements<std::uint8_t>(*dense) == std::vector<std::uint8_t>{0x01, 0x20, 0x03});
}

TEST_CASE("a sparse tensor of strings becomes dense") {
  const SparseTensor sparse{Shape{3}, *make_tensor<std::string>({1}, {"x"}),
                            *make_tensor<std::int64_t>({1, 1}, {2})};
  CHECK(elements<std::string>(*densify(sparse)) == std::vector<std::string>{"", "", "x"});
}

TEST_CASE("parts of a sparse tensor that do not fit each other are refused") {
  const Tensor two = *make_tensor<float>({2}, {1, 2});
  const Tensor one_index = *make_tensor<std::int64_t>({1}, {0});
  const Tensor pairs = *make_tensor<std::int64_t>({2, 2}, {0, 0, 1, 3});
  const Dim large = Dim{1} << 40;
  CHECK(!check_sparse({Shape{4}, two, one_index}).ok());
  CHECK(!check_sparse({Shape{4}, two, pairs}).ok());
  CHECK(!check_sparse({Shape{2, 3}, two, pairs}).ok());
  CHECK(check_sparse({Shape{2, 4}, two, pairs}).ok());
  CHECK(!check_sparse({Shape{large, large}, two, pairs}).ok());
  CHECK(!densify({Shape{4}, two, one_index}).ok());
}

TEST_CASE("attributes are found by name and type, with a fallback") {
  Attributes attributes;
  attributes.set("axis", std::int64_t{2});
  attributes.set("alpha", 0.5F);
  attributes.set("axis", std::int64_t{3});
  CHECK(attributes.size() == 2);
  CHECK(attributes.get_int("axis", 0) == 3);
  CHECK(attributes.get_int("alpha", 7) == 7);
  CHECK(attributes.get_int("missing", 7) == 7);
  CHECK(attributes.get_float("alpha", 0) == 0.5F);
  CHECK(attributes.get_ints("missing").empty());
  CHECK(attribute_kind(*attributes.find("alpha")) == "float");
  CHECK(attribute_kind(AttributeReference{"a"}) == "reference");
  attributes.erase("axis");
  CHECK(!attributes.has("axis"));
}

TEST_CASE("a datum knows its type") {
  CHECK(Datum().type().kind == Type::Kind::Optional);
  CHECK(Datum(*make_tensor<float>({2}, {1, 2})).type().to_string() == "tensor(float)");
  const auto sequence = std::make_shared<const Sequence>(Sequence{Type::tensor(DType::Int8), {}});
  CHECK(Datum(sequence).type().to_string() == "seq(tensor(int8))");
}
