#pragma once

#include <vector>

#include "base/cpu_features.h"

namespace sardonyx {

/// The instruction sets that kernels can be tested for on this processor.
inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::Generic, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

}  // namespace sardonyx
