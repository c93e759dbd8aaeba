#include "kernels/avx2/simd.h"
#include "kernels/pool_impl.h"

namespace sardonyx::kernels::avx2 {

extern const PoolTable kPool;
const PoolTable kPool = pool_table_for<F32>(Isa::Avx2);

}  // namespace sardonyx::kernels::avx2
