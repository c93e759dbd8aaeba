#include "kernels/gemv.h"

#include "kernels/gemv_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const GemvTable kGemv;
}
namespace avx512 {
extern const GemvTable kGemv;
}
#endif

namespace {

using generic::F32;

constexpr GemvTable kGeneric = {Isa::Generic, gemv_rows<F32>, gemv_columns<F32>, gemv_finish<F32>};

}  // namespace

const GemvTable& gemv_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kGemv;
  if (isa == Isa::Avx2) return avx2::kGemv;
#endif
  return kGeneric;
}

}  // namespace sardonyx::kernels
