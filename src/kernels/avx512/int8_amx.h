#pragma once

#include "kernels/int8_gemm.h"

namespace sardonyx::kernels::avx512 {

/// The int8 product by AMX tiles, from the panels that the AVX512 kernel takes.
/// False, and nothing done, if this processor or these sizes are not for it.
bool int8_amx_run(const Int8GemmArgs& args);

}  // namespace sardonyx::kernels::avx512
