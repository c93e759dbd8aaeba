#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

inline constexpr std::string_view kCudaBudgetKey = "session.resource_cuda_partitioning_settings";
inline constexpr std::string_view kBudgetKey = "session.resource_partitioning_settings";

/// How nodes that may run on several devices are spread over them.
enum class BalancePolicy : std::uint8_t {
  /// The first device is filled, then the next one.
  Sequential,
  /// Every device is filled to the same share of its limit.
  Balanced,
  /// The largest nodes first, so that as many bytes as fit are where they are wanted.
  Fit,
};

/// What one device may hold.
struct DeviceBudget {
  /// As rules name devices: "gpu:0", "cpu", "cuda".
  std::string device;
  /// Empty: as much as the device says it has, or without limit when it does not say.
  std::optional<std::uint64_t> limit_bytes;
};

/// What the budget options of a session ask for.
struct BudgetSettings {
  /// The option that this stands in, for messages.
  std::string_view key;
  std::vector<DeviceBudget> devices;
  BalancePolicy policy = BalancePolicy::Sequential;
  /// As written; see statistics_path(). "" = costs are computed.
  std::string statistics;
};

/// Reads `session.resource_partitioning_settings`; nothing when the text is blank.
///
/// Grammar  entry {(',' | ';') entry}, entry = DEVICE '(' [SIZE] ')' | 'statistics=' FILE |
///          'policy=' ('sequential' | 'balanced' | 'fit'). SIZE = NUMBER [UNIT], UNIT = B, KB, KiB,
///          MB, MiB, GB, GiB, TB, TiB in any case; a number may have a fraction. Without a size
///          the device's own is the limit. A FILE ends at ';' or the end.
/// Errors   InvalidArgument, naming the option and the entry at fault.
Result<std::optional<BudgetSettings>> parse_budget(std::string_view text);

/// Reads `session.resource_cuda_partitioning_settings`, "LIMIT_KIB,FILE" with either left out;
/// nothing when the text is empty. The device is "cuda".
///
/// Errors   InvalidArgument for other than two fields, Internal (the FAIL of ONNX Runtime, whose
///          texts these begin with) for a limit that is no number.
Result<std::optional<BudgetSettings>> parse_cuda_budget(std::string_view text);

/// The size as parse_budget() reads it.
/// Errors   InvalidArgument with the text.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// "1.25 GiB (1342177280 bytes)"; small ones "512 bytes".
std::string describe_bytes(std::uint64_t bytes);

}  // namespace sardonyx
