#include "kernels/avx2/simd.h"
#include "kernels/depthwise_impl.h"

namespace sardonyx::kernels::avx2 {

extern const DepthwiseTable kDepthwise;
const DepthwiseTable kDepthwise = {Isa::Avx2, depthwise_nhwc_rows<F32>,
                                   depthwise_nchw_planes<F32>};

}  // namespace sardonyx::kernels::avx2
