#include "kernels/gemv_impl.h"

#include "kernels/avx2/simd.h"

namespace sardonyx::kernels::avx2 {

extern const GemvTable kGemv;
const GemvTable kGemv = {Isa::Avx2, gemv_rows<F32>, gemv_columns<F32>, gemv_finish<F32>};

}  // namespace sardonyx::kernels::avx2
