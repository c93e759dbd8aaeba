#include "ir/make_map.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sardonyx;

TEST_CASE("a map is in the order of its keys, and of equal keys the first one counts") {
  const auto map = make_map(*make_tensor<std::string>({3}, {"pear", "fig", "pear"}),
                            *make_tensor<float>({3}, {1, 2, 3}));
  REQUIRE(map.ok());
  const auto keys = (*map)->keys.values<std::string>();
  const auto values = (*map)->values.values<float>();
  CHECK(std::vector<std::string>(keys.begin(), keys.end()) ==
        std::vector<std::string>{"fig", "pear"});
  CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{2, 1});
}

TEST_CASE("maps refuse keys that are no keys and other numbers of values") {
  const auto numbers = *make_tensor<float>({2}, {1, 2});
  CHECK(make_map(numbers, numbers).status().code() == Code::InvalidArgument);
  const auto keys = *make_tensor<std::int64_t>({3}, {1, 2, 3});
  CHECK(make_map(keys, numbers).status().code() == Code::InvalidArgument);
}
