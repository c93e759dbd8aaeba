#include "kernels/igemm_impl.h"

#include "kernels/avx512/simd.h"
#include "kernels/igemm_pack_impl.h"

namespace sardonyx::kernels::avx512 {

extern const IgemmTable kIgemm;
const IgemmTable kIgemm = {Isa::Avx512,    12,                  2 * F32::kLanes,
                           F32::kLanes,  igemm_run<F32, 12, 2>, igemm_pack_panels<F32>};

}  // namespace sardonyx::kernels::avx512
