#include "base/hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

using namespace sardonyx;

TEST_CASE("bytes that come in pieces have the hash of the whole") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(std::string_view(text)));
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{100}, std::size_t{4096}, text.size()}) {
    Hasher hasher;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      hasher.add(bytes.subspan(begin, std::min(piece, bytes.size() - begin)));
    }
    CHECK(hasher.result() == hash_bytes(bytes));
  }
  CHECK(Hasher().result() == hash_bytes({}));
  CHECK(hash_bytes({}) != hash_bytes(bytes));
}
