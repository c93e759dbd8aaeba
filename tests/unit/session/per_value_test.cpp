#include "session/per_value.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace sardonyx;

TEST_CASE("items are made empty, as many as asked for, and end with the list") {
  for (const std::size_t count : {0, 1, 15, 16, 17, 40}) {
    const auto shared = std::make_shared<int>(1);
    {
      PerValue<std::shared_ptr<int>> items(count);
      CHECK(items.data().size() == count);
      for (auto& item : items.data()) {
        CHECK(item == nullptr);
        item = shared;
      }
      CHECK(shared.use_count() == static_cast<long>(count) + 1);
    }
    CHECK(shared.use_count() == 1);
    PerValue<int> numbers(count);
    for (const int number : numbers.data()) CHECK(number == 0);
  }
}
