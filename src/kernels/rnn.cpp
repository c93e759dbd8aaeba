#include "kernels/rnn.h"

#include "kernels/rnn_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const RnnTable kRnn;
}
namespace avx512 {
extern const RnnTable kRnn;
}
#endif

namespace {

constexpr RnnTable kGeneric = {Isa::Generic, lstm_rows<generic::F32>, gru_reset_rows<generic::F32>,
                               gru_output_rows<generic::F32>};

}  // namespace

const RnnTable& rnn_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kRnn;
  if (isa == Isa::Avx2) return avx2::kRnn;
#endif
  static_cast<void>(isa);
  return kGeneric;
}

}  // namespace sardonyx::kernels
