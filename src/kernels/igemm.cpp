#include "kernels/igemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/igemm_impl.h"
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

constexpr IgemmTable kGeneric = {Isa::Generic, 4, 2 * generic::F32::kLanes, generic::F32::kLanes,
                                 igemm_run<generic::F32, 4, 2>};

// Rows of [columns] from a source whose columns are next to each other.
void pack_rows(const IgemmSource& source, std::int64_t column, std::int64_t columns,
               std::int64_t width, float* packed) {
  for (std::int64_t tap = 0; tap < source.taps; ++tap) {
    const float* b = source.b + tap * source.tap_stride + column;
    for (std::int64_t k = 0; k < source.depth; ++k, packed += width) {
      std::memcpy(packed, b + k * source.depth_stride, columns * sizeof(float));
      std::fill(packed + columns, packed + width, 0.0F);
    }
  }
}

// Any strides: column by column within a block of rows that stays in the first cache.
void pack_strided(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                  std::int64_t width, float* packed) {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t tap = 0; tap < source.taps; ++tap) {
    for (std::int64_t k0 = 0; k0 < source.depth; k0 += kBlock) {
      const std::int64_t rows = std::min(kBlock, source.depth - k0);
      for (std::int64_t j = 0; j < width; ++j) {
        if (j >= columns) {
          for (std::int64_t k = 0; k < rows; ++k) packed[k * width + j] = 0;
          continue;
        }
        const float* b = source.b + tap * source.tap_stride + k0 * source.depth_stride +
                         (column + j) * source.column_stride;
        for (std::int64_t k = 0; k < rows; ++k) packed[k * width + j] = b[k * source.depth_stride];
      }
      packed += rows * width;
    }
  }
}

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
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::int64_t column = panel * table.tile_columns;
    const auto columns = std::min<std::int64_t>(table.tile_columns, source.columns - column);
    const std::int64_t width = (columns + table.lanes - 1) / table.lanes * table.lanes;
    if (source.column_stride == 1) {
      pack_rows(source, column, columns, width, packed);
    } else {
      pack_strided(source, column, columns, width, packed);
    }
    packed += width * source.taps * source.depth;
  }
}

}  // namespace sardonyx::kernels
