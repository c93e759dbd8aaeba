#include "placement/budget.h"

#include <doctest/doctest.h>

#include <random>

using namespace sardonyx;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

BudgetSettings parsed(std::string_view text) {
  auto settings = parse_budget(text);
  REQUIRE_MESSAGE(settings.ok(), settings.status().to_string());
  REQUIRE(settings->has_value());
  return **settings;
}

std::string refusal(std::string_view text) {
  const auto settings = parse_budget(text);
  REQUIRE_MESSAGE(!settings.ok(), std::string(text));
  CHECK(settings.status().code() == Code::InvalidArgument);
  return settings.status().message();
}

}  // namespace

TEST_CASE("sizes have units, with and without a fraction") {
  CHECK(*parse_bytes("0") == 0);
  CHECK(*parse_bytes("17") == 17);
  CHECK(*parse_bytes("17B") == 17);
  CHECK(*parse_bytes("2KB") == 2000);
  CHECK(*parse_bytes("2KiB") == 2048);
  CHECK(*parse_bytes(" 3 mb ") == 3000000);
  CHECK(*parse_bytes("3MiB") == std::uint64_t{3} << 20);
  CHECK(*parse_bytes("1.5GiB") == kGiB + kGiB / 2);
  CHECK(*parse_bytes("0.25gb") == 250000000);
  CHECK(*parse_bytes("1TiB") == 1024 * kGiB);
  CHECK(*parse_bytes("18446744073709551615") == UINT64_MAX);
}

TEST_CASE("what is no size is refused with its text") {
  for (const char* text : {"", "GiB", "1.GiB", ".5GiB", "1.2.3", "-1", "1e3", "1 GiB x", "8Gi",
                           "18446744073709551616", "99999999999TiB", "nan", "0x10"}) {
    const auto bytes = parse_bytes(text);
    REQUIRE_MESSAGE(!bytes.ok(), text);
    CHECK(bytes.status().message().find("'" + std::string(text) + "'") != std::string::npos);
  }
}

TEST_CASE("a budget names devices, limits, a policy and a statistics file") {
  const BudgetSettings some = parsed("gpu:0(8GiB), gpu:1(8GiB), cpu(24GiB)");
  REQUIRE(some.devices.size() == 3);
  CHECK(some.devices[0].device == "gpu:0");
  CHECK(some.devices[1].device == "gpu:1");
  CHECK(some.devices[2].device == "cpu");
  CHECK(some.devices[0].limit_bytes == 8 * kGiB);
  CHECK(some.devices[2].limit_bytes == 24 * kGiB);
  CHECK(some.policy == BalancePolicy::Sequential);
  CHECK(some.statistics.empty());
  CHECK(some.key == kBudgetKey);
  const BudgetSettings more =
      parsed(" gpu ( 1.5 GiB ) ; npu() ; policy = balanced; statistics = a, b.csv ;");
  REQUIRE(more.devices.size() == 2);
  CHECK(more.devices[0].device == "gpu");
  CHECK(more.devices[0].limit_bytes == kGiB + kGiB / 2);
  CHECK(!more.devices[1].limit_bytes.has_value());
  CHECK(more.policy == BalancePolicy::Balanced);
  CHECK(more.statistics == "a, b.csv");
  CHECK(parsed("cpu(1);policy=fit").policy == BalancePolicy::Fit);
  CHECK(parsed("statistics=s(1).csv;cpu(1)").statistics == "s(1).csv");
  CHECK(!parse_budget("")->has_value());
  CHECK(!parse_budget("  ")->has_value());
}

TEST_CASE("a budget that is wrong is refused with the entry at fault") {
  CHECK(refusal("gpu:0") ==
        "entry 'gpu:0' of session.resource_partitioning_settings: expected '(' after the device");
  CHECK(refusal("gpu:0(8GiB").find("expected ')' at its end") != std::string::npos);
  CHECK(refusal("(8GiB)").find("expected a device before '('") != std::string::npos);
  CHECK(refusal("gpu(lots)").find("'lots' should be a size") != std::string::npos);
  CHECK(refusal("gpu(1),GPU(2)").find("has a limit before") != std::string::npos);
  CHECK(refusal("gpu(1);policy=fair").find("found 'fair'") != std::string::npos);
  CHECK(refusal("gpu(1);polcy=fit").find("did you mean 'policy'?") != std::string::npos);
  CHECK(refusal("gpu(1);statistics=").find("should name a file") != std::string::npos);
  CHECK(refusal("policy=fit").find("should name a device") != std::string::npos);
  CHECK(refusal(";;").find("should name a device") != std::string::npos);
}

TEST_CASE("the CUDA budget takes what ONNX Runtime 1.32.0 takes") {
  const auto limited = parse_cuda_budget("1024,");
  REQUIRE(limited.ok());
  REQUIRE(limited->has_value());
  CHECK((*limited)->devices[0].device == "cuda");
  CHECK((*limited)->devices[0].limit_bytes == std::uint64_t{1} << 20);
  CHECK((*limited)->statistics.empty());
  const auto open = parse_cuda_budget(",");
  REQUIRE((open.ok() && open->has_value()));
  CHECK(!(*open)->devices[0].limit_bytes.has_value());
  CHECK(!parse_cuda_budget("")->has_value());
  CHECK((*parse_cuda_budget(", a b.csv"))->statistics == " a b.csv");
  CHECK((*parse_cuda_budget("0,"))->devices[0].limit_bytes == 0);
  CHECK((*parse_cuda_budget("0x10,"))->devices[0].limit_bytes == 16 * 1024);
  CHECK((*parse_cuda_budget("18014398509481983,"))->devices[0].limit_bytes == UINT64_MAX - 1023);
}

TEST_CASE("the CUDA budget refuses what ONNX Runtime 1.32.0 refuses, with its codes and texts") {
  for (const char* text : {"1024", "1,2,3", ",,"}) {
    const auto settings = parse_cuda_budget(text);
    REQUIRE_MESSAGE(!settings.ok(), text);
    CHECK(settings.status().code() == Code::InvalidArgument);
    CHECK(settings.status().message().starts_with(
        "Invalid format for: session.resource_cuda_partitioning_settings : expecting comma "
        "separated fields"));
  }
  for (const char* text : {"abc,", "-1,", " 10 ,", "1.5,", "+5,", "10abc,", "lots,none.csv"}) {
    const auto settings = parse_cuda_budget(text);
    REQUIRE_MESSAGE(!settings.ok(), text);
    CHECK(settings.status().code() == Code::Internal);
    const std::string limit = std::string(text).substr(0, std::string(text).find(','));
    CHECK(settings.status().message().starts_with("Failed to parse value: \"" + limit + "\""));
  }
  for (const char* text : {"18014398509481984,", "18446744073709551615,"}) {
    const auto settings = parse_cuda_budget(text);
    REQUIRE_MESSAGE(!settings.ok(), text);
    CHECK(settings.status().code() == Code::Internal);
    CHECK(settings.status().message().starts_with("Integer overflow"));
  }
}

TEST_CASE("no text makes the readers of budgets fail otherwise than by a message") {
  std::mt19937 random(5);
  constexpr std::string_view kLetters = "gpu:0(),;=8GiB. 1policystatx";
  for (int turn = 0; turn < 4000; ++turn) {
    std::string text;
    for (int i = static_cast<int>(random() % 30); i > 0; --i) {
      text += kLetters[random() % kLetters.size()];
    }
    const auto settings = parse_budget(text);
    if (settings.ok() && settings->has_value()) CHECK(!(*settings)->devices.empty());
    if (!settings.ok()) CHECK(!settings.status().message().empty());
    (void)parse_cuda_budget(text);
  }
}

TEST_CASE("sizes are told with their exact number") {
  CHECK(describe_bytes(0) == "0 bytes");
  CHECK(describe_bytes(1023) == "1023 bytes");
  CHECK(describe_bytes(1536) == "1.50 KiB (1536 bytes)");
  CHECK(describe_bytes(kGiB + kGiB / 4) == "1.25 GiB (1342177280 bytes)");
}
