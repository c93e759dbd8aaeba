#include "kernels/avx2/simd.h"
#include "kernels/resize_impl.h"

namespace sardonyx::kernels::avx2 {

extern const ResizeTable kResize;
const ResizeTable kResize = {Isa::Avx2, resize_axis_rows<F32>, resize_linear_rows<F32>};

}  // namespace sardonyx::kernels::avx2
