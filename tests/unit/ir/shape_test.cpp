#include "ir/shape.h"

#include <doctest/doctest.h>

#include "ir/dtype.h"
#include "ir/type.h"

using namespace sardonyx;

TEST_CASE("the number of elements is known when all sizes are and the product fits") {
  const Dim large = Dim{1} << 40;
  CHECK(*Shape{}.element_count() == 1);
  CHECK(*Shape{2, 3}.element_count() == 6);
  CHECK(*Shape{2, 0, 3}.element_count() == 0);
  CHECK(!Shape{2, kUnknownDim}.element_count());
  CHECK(!Shape{2, -5}.element_count());
  CHECK(!Shape{0, kUnknownDim}.element_count());
  CHECK(!Shape{large, large}.element_count());
  CHECK(!Shape{0, large, large}.element_count());
}

TEST_CASE("axes are inserted and erased in place") {
  Shape shape{2, 3, 4};
  shape.insert(1, 9);
  CHECK(shape == Shape{2, 9, 3, 4});
  shape.insert(4, 7);
  CHECK(shape == Shape{2, 9, 3, 4, 7});
  shape.erase(0);
  CHECK(shape == Shape{9, 3, 4, 7});
  shape.erase(3);
  CHECK(shape == Shape{9, 3, 4});
  CHECK(shape.product(1, 3) == 12);
  CHECK(shape.product(1, 1) == 1);
}

TEST_CASE("a shape is shown with unknown sizes and symbols") {
  SymbolTable symbols;
  const Dim n = symbols.intern("n");
  const Dim m = symbols.intern("m");
  CHECK(symbols.intern("n") == n);
  CHECK(symbols.name(n) == "n");
  CHECK(symbols.name(m) == "m");
  CHECK(symbols.name(3).empty());
  CHECK(symbols.name(kUnknownDim).empty());
  CHECK(symbols.name(-100).empty());
  CHECK(Shape{2, kUnknownDim, n, m}.to_string() == "[2,?,s0,s1]");
  CHECK(Shape{}.to_string() == "[]");
}

TEST_CASE("strides are row-major") {
  CHECK(strides_of(Shape{2, 3, 4}) == Shape{12, 4, 1});
  CHECK(strides_of(Shape{}) == Shape{});
  CHECK(strides_of(Shape{5}) == Shape{1});
}

TEST_CASE("axes count from the end when they are negative") {
  CHECK(*normalize_axis(1, 3) == 1);
  CHECK(*normalize_axis(-1, 3) == 2);
  CHECK(*normalize_axis(-3, 3) == 0);
  CHECK(!normalize_axis(3, 3));
  CHECK(!normalize_axis(-4, 3));
  CHECK(!normalize_axis(0, 0));
}

TEST_CASE("bytes of packed elements are rounded up to whole bytes") {
  CHECK(*dtype_bytes(DType::Float32, 3) == 12);
  CHECK(*dtype_bytes(DType::Int4, 3) == 2);
  CHECK(*dtype_bytes(DType::UInt2, 5) == 2);
  CHECK(*dtype_bytes(DType::Float6E2M3, 5) == 5);
  CHECK(*dtype_bytes(DType::String, 2) == 2 * sizeof(std::string));
  CHECK(!dtype_bytes(DType::Float32, Dim{1} << 60));
  CHECK(!dtype_bytes(DType::Float32, -1));
}

TEST_CASE("element types have ONNX's numbers, names and alignments") {
  CHECK(*dtype_from_onnx(1) == DType::Float32);
  CHECK(*dtype_from_onnx(28) == DType::Float6E3M2);
  CHECK(!dtype_from_onnx(29));
  CHECK(!dtype_from_onnx(-1));
  CHECK(dtype_name(DType::Float64) == "double");
  CHECK(dtype_alignment(DType::Float64) == 8);
  CHECK(dtype_alignment(DType::Complex128) == 8);
  CHECK(dtype_alignment(DType::Float16) == 2);
  CHECK(dtype_alignment(DType::Int4) == 1);
}

TEST_CASE("types are written as ONNX Runtime writes them") {
  const Type tensor = Type::tensor(DType::Float32);
  CHECK(tensor.to_string() == "tensor(float)");
  CHECK(Type::sequence(tensor).to_string() == "seq(tensor(float))");
  CHECK(Type::optional(Type::sequence(tensor)).to_string() == "optional(seq(tensor(float)))");
  CHECK(Type::map(DType::Int64, tensor).to_string() == "map(int64,tensor(float))");
  CHECK(Type{}.to_string() == "unknown");
}
