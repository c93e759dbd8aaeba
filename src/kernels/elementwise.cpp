#include "kernels/elementwise.h"

#include "kernels/elementwise_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const ElementwiseTable kElementwise;
}
namespace avx512 {
extern const ElementwiseTable kElementwise;
}
#endif

const ElementwiseTable& elementwise_table(Isa isa) {
  static constexpr ElementwiseTable kGeneric = make_elementwise_table<generic::F32>(Isa::Generic);
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kElementwise;
  if (isa == Isa::Avx2) return avx2::kElementwise;
#endif
  return kGeneric;
}

}  // namespace sardonyx::kernels
