#include "kernels/gemv_impl.h"

#include "kernels/avx512/simd.h"

namespace sardonyx::kernels::avx512 {

extern const GemvTable kGemv;
const GemvTable kGemv = {Isa::Avx512, gemv_rows<F32>, gemv_columns<F32>, gemv_finish<F32>};

}  // namespace sardonyx::kernels::avx512
