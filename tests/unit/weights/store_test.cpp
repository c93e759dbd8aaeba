#include "weights/store.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using namespace sardonyx;

namespace {

Tensor weight(std::initializer_list<float> values) {
  auto tensor = make_tensor<float>(Shape{static_cast<Dim>(values.size())}, values);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

}  // namespace

TEST_CASE("equal contents in one layout are filled once and share one blob") {
  WeightStore store;
  const Tensor first = weight({1, 2, 3, 4});
  const Tensor second = weight({1, 2, 3, 4});
  REQUIRE(first.data() != second.data());
  int fills = 0;
  const auto fill = [&](std::byte* target) {
    ++fills;
    std::memset(target, 7, 32);
  };
  auto a = store.get(first, "packed:a", 32, fill);
  auto b = store.get(second, "packed:a", 32, fill);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a->get() == b->get());
  CHECK(fills == 1);
  CHECK(store.live_bytes() == 32);
  CHECK((*a)->bytes.get()[31] == std::byte{7});
  CHECK(reinterpret_cast<std::uintptr_t>((*a)->bytes.get()) % 64 == 0);
}

TEST_CASE("other contents and other layouts have blobs of their own") {
  WeightStore store;
  const auto fill = [](std::byte* target) { std::memset(target, 0, 16); };
  auto a = store.get(weight({1, 2}), "packed:a", 16, fill);
  auto b = store.get(weight({1, 3}), "packed:a", 16, fill);
  auto c = store.get(weight({1, 2}), "packed:b", 16, fill);
  REQUIRE((a.ok() && b.ok() && c.ok()));
  CHECK(a->get() != b->get());
  CHECK(a->get() != c->get());
  CHECK(store.live_bytes() == 48);
}

TEST_CASE("a blob that nobody holds is released and made again when asked for") {
  WeightStore store;
  int fills = 0;
  const auto fill = [&](std::byte* target) {
    ++fills;
    std::memset(target, fills, 16);
  };
  {
    CHECK(store.get(weight({5}), "packed:a", 16, fill).ok());
  }
  CHECK(store.live_bytes() == 0);
  auto again = store.get(weight({5}), "packed:a", 16, fill);
  REQUIRE(again.ok());
  CHECK(fills == 2);
  CHECK((*again)->bytes.get()[0] == std::byte{2});
}

TEST_CASE("threads that ask at once get the same blob, filled whole") {
  WeightStore store;
  const Tensor source = weight({1, 2, 3});
  std::vector<std::shared_ptr<const PackedBlob>> blobs(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    threads.emplace_back([&, i] {
      auto got = store.get(source, "packed:a", 4096,
                           [](std::byte* target) { std::memset(target, 9, 4096); });
      if (got.ok()) blobs[i] = *got;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& blob : blobs) {
    REQUIRE(blob != nullptr);
    CHECK(blob.get() == blobs[0].get());
    CHECK(blob->bytes.get()[4095] == std::byte{9});
  }
  CHECK(store.live_bytes() == 4096);
}
