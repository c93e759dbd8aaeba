#include "base/status.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "base/checked.h"
#include "base/text.h"

using namespace sardonyx;

namespace {

Result<int> half(int number) {
  if (number % 2 == 0) return number / 2;
  return failure(Code::InvalidArgument, "expected an even number, found {}", number);
}

Result<int> quarter(int number) {
  SDX_ASSIGN(const int once, half(number));
  return half(once);
}

Status check_quarter(int number) {
  SDX_TRY(quarter(number).take_status());
  return {};
}

}  // namespace

TEST_CASE("a status is one pointer wide and success is empty") {
  static_assert(sizeof(Status) == sizeof(void*));
  CHECK(Status().ok());
  CHECK(Status().to_string() == "ok");
}

TEST_CASE("a failure keeps its code and message through every layer") {
  CHECK(*quarter(8) == 2);
  const auto result = quarter(6);
  REQUIRE(!result.ok());
  CHECK(result.status().code() == Code::InvalidArgument);
  CHECK(result.status().message() == "expected an even number, found 3");
  CHECK(check_quarter(8).ok());
  CHECK(check_quarter(6).message() == "expected an even number, found 3");
}

TEST_CASE("places are told innermost first, and only for failures") {
  const Status status =
      failure(Code::InvalidModel, "wrong").with("reading node 'n'").with("loading 'm'");
  CHECK(status.to_string() == "wrong\n  while reading node 'n'\n  while loading 'm'");
  CHECK(status.message() == "wrong");
  CHECK(Status().with("loading").ok());
}

TEST_CASE("checked arithmetic says when a result does not fit") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  CHECK(*checked_multiply(3, -4) == -12);
  CHECK(*checked_multiply(0, kMax) == 0);
  CHECK(!checked_multiply(kMax, 2));
  CHECK(!checked_multiply(std::numeric_limits<std::int64_t>::min(), -1));
  CHECK(*checked_add(kMax, -1) == kMax - 1);
  CHECK(!checked_add(kMax, 1));
}
