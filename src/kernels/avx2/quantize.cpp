#include "kernels/quantize_impl.h"

#include "kernels/avx2/simd.h"

namespace sardonyx::kernels::avx2 {

namespace {

struct Simd {
  using F32 = avx2::F32;
  using I32 = avx2::I32;
};

}  // namespace

extern const QuantizeTable kQuantize;
const QuantizeTable kQuantize = make_quantize_table<Simd>(Isa::Avx2);

}  // namespace sardonyx::kernels::avx2
