#pragma once

#include "kernels/int8_gemm.h"

namespace sardonyx::kernels::avx512 {

/// The int8 product by AMX tiles, from the panels that the AVX512 kernel takes. Returns how many of
/// the first rows are done: none if this processor or these sizes are not for it.
std::int64_t int8_amx_run(const Int8GemmArgs& args);

}  // namespace sardonyx::kernels::avx512
