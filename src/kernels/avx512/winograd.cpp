#include "kernels/avx512/simd.h"
#include "kernels/winograd_impl.h"

namespace sardonyx::kernels::avx512 {

extern const WinogradTable kWinograd;
const WinogradTable kWinograd = {winograd_input<F32>, winograd_output<F32>};

}  // namespace sardonyx::kernels::avx512
