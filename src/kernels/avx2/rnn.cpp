#include "kernels/avx2/simd.h"
#include "kernels/rnn_impl.h"

namespace sardonyx::kernels::avx2 {

extern const RnnTable kRnn;
const RnnTable kRnn = {Isa::Avx2, lstm_rows<F32>, gru_reset_rows<F32>, gru_output_rows<F32>};

}  // namespace sardonyx::kernels::avx2
