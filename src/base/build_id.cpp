#include "base/build_id.h"

#include "base/cpu_features.h"
#include "source_id.h"

namespace sardonyx {

std::string_view build_id() { return SARDONYX_VERSION "-" SARDONYX_SOURCE_ID; }

std::string_view packing_isa() {
  const Isa isa = active_isa();
  return isa == Isa::Avx512 && amx_int8_usable() ? "avx512+amx" : isa_name(isa);
}

}  // namespace sardonyx
