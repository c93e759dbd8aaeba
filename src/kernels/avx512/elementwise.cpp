#include "kernels/elementwise_impl.h"

#include "kernels/avx512/simd.h"

namespace sardonyx::kernels::avx512 {

extern const ElementwiseTable kElementwise;
const ElementwiseTable kElementwise = make_elementwise_table<F32>(Isa::Avx512);

}  // namespace sardonyx::kernels::avx512
