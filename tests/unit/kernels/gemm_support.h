#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/cpu_features.h"

namespace sardonyx {

/// The instruction sets that this processor can run.
inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::Generic, Isa::Avx2, Isa::Avx512}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

/// Repeatable random sizes and values.
struct Random {
  std::mt19937 engine{42};
  std::int64_t upto(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(engine);
  }
  std::vector<float> floats(std::int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(engine);
    return values;
  }
};

}  // namespace sardonyx
