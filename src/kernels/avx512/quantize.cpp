#include "kernels/quantize_impl.h"

#include "kernels/avx512/simd.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Simd {
  using F32 = avx512::F32;
  using I32 = avx512::I32;
};

}  // namespace

extern const QuantizeTable kQuantize;
const QuantizeTable kQuantize = make_quantize_table<Simd>(Isa::Avx512);

}  // namespace sardonyx::kernels::avx512
