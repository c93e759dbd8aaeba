// Model bytes through the reader alone: whatever they are, the answer is a model or an error.
#include "onnx/reader.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  sardonyx::ReadOptions options;
  options.borrow_bytes = true;
  const auto model = sardonyx::read_model_from_bytes(bytes, options);
  return !model.ok() && model.status().to_string().empty() ? 1 : 0;
}
