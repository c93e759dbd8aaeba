#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

Dim random_size(Source& source) {
  if (source.chance(0.04)) return 0;
  if (source.chance(0.25)) return source.between(30, 90);
  return source.between(1, 20);
}

struct Batches {
  Shape a;
  Shape b;
};

/// Batch dimensions of two operands that broadcast.
Batches random_batches(Source& source) {
  Batches batches;
  const auto rank = static_cast<int>(source.between(0, 3));
  for (int axis = 0; axis < rank; ++axis) {
    const Dim size = source.between(1, 4);
    batches.a.push_back(source.chance(0.3) ? 1 : size);
    batches.b.push_back(source.chance(0.3) ? 1 : size);
  }
  for (std::int64_t cut = source.between(0, rank); cut > 0; --cut) {
    (source.chance(0.5) && !batches.a.empty() ? batches.a
     : batches.b.empty()                      ? batches.a
                                              : batches.b)
        .erase(0);
    if (batches.a.empty() && batches.b.empty()) break;
  }
  return batches;
}

Shape with(Shape shape, Dim rows, Dim columns) {
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

constexpr Tolerance kFloat{2e-5};

}  // namespace

TEST_CASE("MatMul is as evaluated with batches, vectors, constants and zero sizes") {
  Source source(21);
  for (int turn = 0; turn < 250; ++turn) {
    const Batches batches = random_batches(source);
    const Dim m = random_size(source);
    const Dim n = random_size(source);
    const Dim k = random_size(source);
    NodeCase node("MatMul", 13);
    node.input(source.floats(source.chance(0.1) ? Shape{k} : with(batches.a, m, k)))
        .input(source.floats(source.chance(0.1) ? Shape{k} : with(batches.b, k, n)),
               source.chance(0.4));
    if (source.chance(0.3)) node.unknown_sizes();
    CHECK(node.difference(kFloat) == "");
  }
}

TEST_CASE("large products are as evaluated and do not depend on threads") {
  Source source(22);
  for (const bool is_constant : {false, true}) {
    CHECK(NodeCase("MatMul", 13)
              .input(source.floats({200, 150}))
              .input(source.floats({150, 130}), is_constant)
              .difference(kFloat) == "");
    CHECK(NodeCase("MatMul", 13)
              .input(source.floats({1, 700}))
              .input(source.floats({700, 515}), is_constant)
              .difference(kFloat) == "");
    CHECK(NodeCase("MatMul", 13)
              .input(source.floats({6, 3, 40, 64}))
              .input(source.floats({6, 1, 64, 48}), is_constant)
              .difference(kFloat) == "");
  }
}

TEST_CASE("Gemm is as evaluated with every form of C") {
  Source source(23);
  for (int turn = 0; turn < 300; ++turn) {
    const Dim m = random_size(source);
    const Dim n = source.chance(0.2) ? 1 : random_size(source);
    const Dim k = random_size(source);
    const std::int64_t a_transposed = source.between(0, 1);
    const std::int64_t b_transposed = source.between(0, 1);
    const std::int64_t form = source.between(0, 6);
    NodeCase node("Gemm", form == 0 ? 13 : source.one_of<std::int64_t>({7, 11, 13}));
    node.input(source.floats(a_transposed != 0 ? Shape{k, m} : Shape{m, k}))
        .input(source.floats(b_transposed != 0 ? Shape{n, k} : Shape{k, n}), source.chance(0.4))
        .attribute("transA", a_transposed)
        .attribute("transB", b_transposed);
    if (form == 1) node.input(source.floats({n}), source.chance(0.5));
    if (form == 2) node.input(source.floats({m, n}));
    if (form == 3) node.input(source.floats({m, 1}));
    if (form == 4) node.input(source.floats({1, n}));
    if (form == 5) node.input(source.floats({}));
    if (form == 6) node.input(source.floats({1}));
    if (source.chance(0.4)) node.attribute("alpha", 0.7F);
    if (source.chance(0.2)) node.attribute("beta", 1.3F);
    if (source.chance(0.3)) node.unknown_sizes();
    CHECK(node.difference(kFloat) == "");
  }
}

TEST_CASE("FusedMatMul is as evaluated with transposed operands and alpha") {
  Source source(24);
  for (int turn = 0; turn < 200; ++turn) {
    const Batches batches = random_batches(source);
    const Dim m = random_size(source);
    const Dim n = random_size(source);
    const Dim k = random_size(source);
    const std::int64_t a_transposed = source.between(0, 1);
    const std::int64_t b_transposed = source.between(0, 1);
    NodeCase node("FusedMatMul", 1, "com.microsoft");
    node.input(source.floats(a_transposed != 0 ? with(batches.a, k, m) : with(batches.a, m, k)))
        .input(source.floats(b_transposed != 0 ? with(batches.b, n, k) : with(batches.b, k, n)),
               source.chance(0.3))
        .attribute("transA", a_transposed)
        .attribute("transB", b_transposed)
        .attribute("alpha", source.chance(0.5) ? 1.0F : 0.25F);
    CHECK(node.difference(kFloat) == "");
  }
}

TEST_CASE("products that passes make are as evaluated with bias, sum and activation") {
  Source source(25);
  for (int turn = 0; turn < 200; ++turn) {
    const Batches batches = random_batches(source);
    const Dim m = random_size(source);
    const Dim n = random_size(source);
    const Dim k = random_size(source);
    Shape result;
    const int rank = std::max(batches.a.rank(), batches.b.rank());
    for (int axis = 0; axis < rank; ++axis) {
      const int ia = axis - rank + batches.a.rank();
      const int ib = axis - rank + batches.b.rank();
      const Dim da = ia >= 0 ? batches.a[ia] : 1;
      const Dim db = ib >= 0 ? batches.b[ib] : 1;
      result.push_back(std::max(da, db));
    }
    NodeCase node("MatMul", 1, "ai.sardonyx");
    node.input(source.floats(with(batches.a, m, k)))
        .input(source.floats(with(batches.b, k, n)), source.chance(0.4));
    const bool has_sum = source.chance(0.4);
    if (source.chance(0.5)) {
      node.constant(source.floats({n}));
    } else if (has_sum) {
      node.no_input();
    }
    if (has_sum) node.input(source.floats(with(result, m, n)));
    if (source.chance(0.4)) node.attribute("alpha", 0.5F);
    const char* activation = source.one_of({"", "Relu", "Tanh", "Sigmoid", "Gelu"});
    if (*activation != 0) node.attribute("activation", std::string(activation));
    CHECK(node.difference(kFloat) == "");
  }
}

TEST_CASE("products of block-quantised weights are as evaluated") {
  Source source(26);
  for (int turn = 0; turn < 80; ++turn) {
    const std::int64_t bits = source.one_of<std::int64_t>({2, 4, 8});
    const std::int64_t block = source.one_of<std::int64_t>({16, 32, 64, 128});
    const std::int64_t n = source.between(1, 90);
    const std::int64_t k =
        source.chance(0.3) ? source.between(1, 300) : block * source.between(1, 4);
    const std::int64_t blocks = (k + block - 1) / block;
    NodeCase node("MatMulNBits", 1, "com.microsoft");
    node.input(source.floats({source.between(1, 2), source.between(1, 9), k}))
        .constant(source.bytes(DType::UInt8, {n, blocks, block * bits / 8}))
        .constant(source.floats({n * blocks}, 0.01F, 0.1F));
    if (source.chance(0.6)) {
      node.constant(source.bytes(DType::UInt8, {n * ((blocks * bits + 7) / 8)}));
    } else {
      node.no_input();
    }
    if (source.chance(0.3)) node.no_input().constant(source.floats({n}));
    node.attribute("N", n).attribute("K", k).attribute("bits", bits).attribute("block_size", block);
    CHECK(node.difference({1e-4}) == "");
  }
}
