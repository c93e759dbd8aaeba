#include "kernels/transpose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

using namespace sardonyx::kernels;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::int64_t product(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

Bytes expected(const std::vector<std::int64_t>& dims, const std::vector<int>& axes,
               std::int64_t bytes, const Bytes& x) {
  Bytes y(x.size());
  const std::int64_t total = product(dims);
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i;
    std::int64_t from = 0;
    for (std::size_t o = axes.size(); o-- > 0;) {
      const auto axis = static_cast<std::size_t>(axes[o]);
      std::int64_t stride = 1;
      for (std::size_t j = axis + 1; j < dims.size(); ++j) stride *= dims[j];
      from += rest % dims[axis] * stride;
      rest /= dims[axis];
    }
    std::memcpy(&y[static_cast<std::size_t>(i * bytes)],
                &x[static_cast<std::size_t>(from * bytes)], static_cast<std::size_t>(bytes));
  }
  return y;
}

Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

Bytes by_units(const TransposePlan& plan, const Bytes& x, std::int64_t step) {
  Bytes y(x.size());
  for (std::int64_t unit = 0; unit < plan.units; unit += step) {
    transpose_units(plan, x.data(), y.data(), unit, std::min(unit + step, plan.units));
  }
  return y;
}

}  // namespace

TEST_CASE("any permutation of any shape moves every element to its place") {
  std::mt19937 random(7);
  const std::int64_t sizes[] = {1, 2, 4, 8, 16, 3, 12, 20};
  for (int round = 0; round < 400; ++round) {
    const auto rank = static_cast<std::size_t>(random() % 6);
    std::vector<std::int64_t> dims(rank);
    for (auto& dim : dims) {
      dim = random() % 4 == 0 ? 1 : 1 + static_cast<std::int64_t>(random() % 9);
    }
    if (rank > 0 && round % 3 == 0) {
      dims[random() % rank] = 30 + static_cast<std::int64_t>(random() % 150);
    }
    std::vector<int> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    const std::int64_t bytes = sizes[random() % 8];
    const Bytes x = random_bytes(static_cast<std::size_t>(product(dims) * bytes), random);
    const TransposePlan plan = plan_transpose(dims, axes, bytes);
    const Bytes right = expected(dims, axes, bytes, x);
    CHECK(by_units(plan, x, plan.units + 1) == right);
    CHECK(by_units(plan, x, 3) == right);
  }
}

TEST_CASE("axes that move together become one, so NCHW to NHWC is one matrix per image") {
  const std::vector<std::int64_t> dims = {2, 3, 5, 7};
  const std::vector<int> axes = {0, 2, 3, 1};
  const TransposePlan plan = plan_transpose(dims, axes, 4);
  CHECK(plan.kind == TransposePlan::Kind::Tiles);
  CHECK(plan.outer_count == 1);
  CHECK(plan.rows == 35);
  CHECK(plan.cols == 3);
}

TEST_CASE("a permutation that only moves axes of length 1 is a copy") {
  const std::vector<std::int64_t> dims = {1, 6, 1, 5};
  const std::vector<int> axes = {1, 2, 0, 3};
  CHECK(plan_transpose(dims, axes, 4).kind == TransposePlan::Kind::Copy);
}

TEST_CASE("an empty tensor has no units") {
  const std::vector<std::int64_t> dims = {4, 0, 3};
  const std::vector<int> axes = {2, 1, 0};
  CHECK(plan_transpose(dims, axes, 4).units == 0);
}

TEST_CASE("sixty axes of length 1 around two long ones are no problem") {
  std::vector<std::int64_t> dims(62, 1);
  dims[10] = 6;
  dims[50] = 5;
  std::vector<int> axes(62);
  std::iota(axes.rbegin(), axes.rend(), 0);
  std::mt19937 random(3);
  const Bytes x = random_bytes(120, random);
  CHECK(by_units(plan_transpose(dims, axes, 4), x, 100) == expected(dims, axes, 4, x));
}

TEST_CASE("a matrix with strides is transposed and nothing beside it is touched") {
  std::mt19937 random(11);
  for (const std::int64_t bytes : {1, 2, 4, 8, 16}) {
    const std::int64_t rows = 37;
    const std::int64_t cols = 141;
    const Bytes x = random_bytes(static_cast<std::size_t>(rows * (cols + 5) * bytes), random);
    Bytes y(static_cast<std::size_t>(cols * (rows + 3) * bytes), 0xee);
    transpose_matrix(x.data(), (cols + 5) * bytes, rows, cols, bytes, y.data(), (rows + 3) * bytes);
    bool right = true;
    for (std::int64_t c = 0; c < cols; ++c) {
      for (std::int64_t r = 0; r < rows + 3; ++r) {
        const std::uint8_t* got = &y[static_cast<std::size_t>((c * (rows + 3) + r) * bytes)];
        const Bytes untouched(16, 0xee);
        const auto from = static_cast<std::size_t>((r * (cols + 5) + c) * bytes);
        const std::uint8_t* want = r < rows ? &x[from] : untouched.data();
        right = right && std::memcmp(got, want, static_cast<std::size_t>(bytes)) == 0;
      }
    }
    CHECK(right);
  }
}
