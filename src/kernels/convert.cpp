#include "kernels/convert.h"

#include "base/small_floats.h"
#include "kernels/convert_impl.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const ConvertTable kConvert;
}
namespace avx512 {
extern const ConvertTable kConvert;
}
#endif

namespace {

struct Lanes {
  static constexpr std::int64_t kLanes = 8;
  static void widen_f16(const std::uint16_t* x, float* y) {
    for (std::int64_t i = 0; i < kLanes; ++i) y[i] = to_float(Half{x[i]});
  }
  static void widen_bf16(const std::uint16_t* x, float* y) {
    for (std::int64_t i = 0; i < kLanes; ++i) y[i] = to_float(BFloat16{x[i]});
  }
  static void narrow_f16(const float* x, std::uint16_t* y) {
    for (std::int64_t i = 0; i < kLanes; ++i) y[i] = to_half(x[i]).bits;
  }
  static void narrow_bf16(const float* x, std::uint16_t* y) {
    for (std::int64_t i = 0; i < kLanes; ++i) y[i] = to_bfloat16(x[i]).bits;
  }
};

constexpr ConvertTable kGeneric = Converter<Lanes>::table(Isa::Generic);

}  // namespace

const ConvertTable& convert_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kConvert;
  if (isa == Isa::Avx2) return avx2::kConvert;
#endif
  return kGeneric;
}

}  // namespace sardonyx::kernels
