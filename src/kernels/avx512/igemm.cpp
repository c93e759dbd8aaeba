#include "kernels/avx512/simd.h"
#include "kernels/igemm_impl.h"

namespace sardonyx::kernels::avx512 {

extern const IgemmTable kIgemm;
const IgemmTable kIgemm = {Isa::Avx512, 8, 3 * F32::kLanes, F32::kLanes, igemm_run<F32, 8, 3>};

}  // namespace sardonyx::kernels::avx512
