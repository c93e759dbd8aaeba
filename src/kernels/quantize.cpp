#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantize_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const QuantizeTable kQuantize;
}
namespace avx512 {
extern const QuantizeTable kQuantize;
}
#endif

namespace {

struct Simd {
  using F32 = generic::F32;
  using I32 = generic::I32;
};

constexpr QuantizeTable kGeneric = make_quantize_table<Simd>(Isa::Generic);

}  // namespace

const QuantizeTable& quantize_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kQuantize;
  if (isa == Isa::Avx2) return avx2::kQuantize;
#endif
  return kGeneric;
}

Quantization dynamic_quantization(MinMax range) {
  if (range.max == range.min) return {};
  Quantization q;
  q.scale = (range.max - range.min) / 255.0F;
  const float zero = std::nearbyint(-range.min / q.scale);
  q.zero = static_cast<std::int32_t>(std::min(255.0F, std::max(0.0F, zero)));
  return q;
}

}  // namespace sardonyx::kernels
