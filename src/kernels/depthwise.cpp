#include "kernels/depthwise.h"

#include "kernels/depthwise_impl.h"
#include "kernels/simd_generic.h"
#include "kernels/transpose.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const DepthwiseTable kDepthwise;
}
namespace avx512 {
extern const DepthwiseTable kDepthwise;
}
#endif

namespace {

constexpr DepthwiseTable kGeneric = {Isa::Generic, depthwise_nhwc_rows<generic::F32>,
                                     depthwise_nchw_planes<generic::F32>};

}  // namespace

const DepthwiseTable& depthwise_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kDepthwise;
  if (isa == Isa::Avx2) return avx2::kDepthwise;
#endif
  static_cast<void>(isa);
  return kGeneric;
}

void pack_depthwise_weights(const float* weights, std::int64_t channels, std::int64_t taps,
                            float* packed) {
  constexpr std::int64_t kBytes = sizeof(float);
  transpose_matrix(weights, taps * kBytes, channels, taps, kBytes, packed, channels * kBytes);
}

}  // namespace sardonyx::kernels
