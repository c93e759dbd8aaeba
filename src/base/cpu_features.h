#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace sardonyx {

/// Instruction sets that kernels are built for, worst first.
enum class Isa : std::uint8_t { Generic, Avx2, Avx512, Neon };

/// "generic", "avx2", "avx512" or "neon".
std::string_view isa_name(Isa isa);

/// Whether this processor (and its operating system) can run kernels built for `isa`.
/// Avx512 means F, BW, DQ, VL and VNNI.
bool isa_supported(Isa isa);

/// The set that kernels are chosen for: the best supported one, or the one that the environment
/// variable SARDONYX_ISA names if it is supported. Fixed at the first call.
Isa active_isa();

/// Whether int8 products may use AMX tiles: the processor has them, and the operating system lets
/// this process use them, which the first call asks for. They speed up the Avx512 kernels.
bool amx_int8_usable();

}  // namespace sardonyx
