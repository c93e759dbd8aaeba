#include "kernels/avx512/simd.h"
#include "kernels/pool_impl.h"

namespace sardonyx::kernels::avx512 {

extern const PoolTable kPool;
const PoolTable kPool = pool_table_for<F32>(Isa::Avx512);

}  // namespace sardonyx::kernels::avx512
