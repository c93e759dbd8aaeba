#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/tensor.h"
#include "sardonyx/c_api.h"

namespace sardonyx::capi {

/// Named tensors that a run takes as inputs beside those that are fed.
struct LoraParameters {
  std::vector<std::pair<std::string, Tensor>> tensors;
};

/// Reads an adapter file: a flatbuffer with the identifier TORT.
///
/// Numbers  tensors view the bytes where their alignment allows it; `owner` keeps those.
/// Errors   InvalidArgument that says what is wrong where; nothing is read outside the bytes.
Result<LoraParameters> read_lora(std::span<const std::byte> bytes,
                                 const std::shared_ptr<const void>& owner);

}  // namespace sardonyx::capi

struct OrtLoraAdapter {
  std::shared_ptr<const sardonyx::capi::LoraParameters> parameters;
};
