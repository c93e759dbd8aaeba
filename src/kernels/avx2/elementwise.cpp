#include "kernels/elementwise_impl.h"

#include "kernels/avx2/simd.h"

namespace sardonyx::kernels::avx2 {

extern const ElementwiseTable kElementwise;
const ElementwiseTable kElementwise = make_elementwise_table<F32>(Isa::Avx2);

}  // namespace sardonyx::kernels::avx2
