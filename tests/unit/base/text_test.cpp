#include "base/text.h"

#include <doctest/doctest.h>

using namespace sardonyx;

TEST_CASE("parts are joined with the separator between them") {
  CHECK(join({}, ", ") == "");
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join({"", "b"}, ",") == ",b");
}

TEST_CASE("the nearest candidate is found for a misspelt word and none for another word") {
  const std::vector<std::string> commands = {"run", "inspect", "bench"};
  CHECK(nearest("inspct", commands) == "inspect");
  CHECK(nearest("Bench", commands) == "bench");
  CHECK(nearest("rnu", commands) == "");
  CHECK(nearest("rum", commands) == "run");
  CHECK(nearest("compile", commands) == "");
  CHECK(nearest("x", {}) == "");
}
