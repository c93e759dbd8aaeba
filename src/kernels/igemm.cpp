#include "kernels/igemm.h"

#include <algorithm>

#include "kernels/igemm_impl.h"
#include "kernels/igemm_pack_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const IgemmTable kIgemm;
}
namespace avx512 {
extern const IgemmTable kIgemm;
}
#endif

namespace {

using generic::F32;

constexpr IgemmTable kGeneric = {Isa::Generic,  4,                    2 * F32::kLanes,
                                 F32::kLanes,   igemm_run<F32, 4, 2>, igemm_pack_panels<F32>};

}  // namespace

const IgemmTable& igemm_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kIgemm;
  if (isa == Isa::Avx2) return avx2::kIgemm;
#endif
  return kGeneric;
}

std::int64_t igemm_panels(const IgemmTable& table, std::int64_t columns) {
  return (columns + table.tile_columns - 1) / table.tile_columns;
}

std::int64_t igemm_panel_offset(const IgemmTable& table, std::int64_t panel,
                                std::int64_t b_depth) {
  return panel * table.tile_columns * b_depth;
}

std::int64_t igemm_packed_floats(const IgemmTable& table, std::int64_t columns,
                                 std::int64_t b_depth) {
  return (columns + table.lanes - 1) / table.lanes * table.lanes * b_depth;
}

void igemm_pack(const IgemmTable& table, const IgemmSource& source, std::int64_t first,
                std::int64_t last, float* packed) {
  const std::int64_t column = first * table.tile_columns;
  const std::int64_t end = std::min(source.columns, last * table.tile_columns);
  if (column < end) table.pack(source, column, end - column, packed);
}

}  // namespace sardonyx::kernels
