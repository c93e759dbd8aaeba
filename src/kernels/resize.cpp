#include "kernels/resize.h"

#include <cstddef>
#include <cstring>

#include "kernels/resize_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const ResizeTable kResize;
}
namespace avx512 {
extern const ResizeTable kResize;
}
#endif

namespace {

constexpr ResizeTable kGeneric = {Isa::Generic, resize_axis_rows<generic::F32>,
                                  resize_linear_rows<generic::F32>};

}  // namespace

const ResizeTable& resize_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kResize;
  if (isa == Isa::Avx2) return avx2::kResize;
#endif
  static_cast<void>(isa);
  return kGeneric;
}

namespace {

template <std::int64_t kBytes>
void copy_pixels(const ResizeNearestArgs& args, const std::byte* x, std::byte* y) {
  for (std::int64_t ox = 0; ox < args.out_w; ++ox) {
    std::memcpy(y + ox * kBytes, x + args.x_indices[ox] * kBytes, kBytes);
  }
}

void copy_row(const ResizeNearestArgs& args, const std::byte* x, std::byte* y) {
  switch (args.pixel_bytes) {
    case 1: return copy_pixels<1>(args, x, y);
    case 2: return copy_pixels<2>(args, x, y);
    case 4: return copy_pixels<4>(args, x, y);
    case 8: return copy_pixels<8>(args, x, y);
    case 12: return copy_pixels<12>(args, x, y);
    case 64: return copy_pixels<64>(args, x, y);
    case 128: return copy_pixels<128>(args, x, y);
    default:
      for (std::int64_t ox = 0; ox < args.out_w; ++ox) {
        std::memcpy(y + ox * args.pixel_bytes, x + args.x_indices[ox] * args.pixel_bytes,
                    static_cast<std::size_t>(args.pixel_bytes));
      }
  }
}

}  // namespace

void resize_nearest(const ResizeNearestArgs& args, std::int64_t first, std::int64_t last) {
  const std::int64_t in_row = args.in_w * args.pixel_bytes;
  const std::int64_t out_row = args.out_w * args.pixel_bytes;
  std::int64_t before = -1;
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t from = row / args.out_h * args.in_h + args.y_indices[row % args.out_h];
    std::byte* y = static_cast<std::byte*>(args.y) + row * out_row;
    if (from == before) {
      std::memcpy(y, y - out_row, static_cast<std::size_t>(out_row));
    } else {
      copy_row(args, static_cast<const std::byte*>(args.x) + from * in_row, y);
    }
    before = from;
  }
}

}  // namespace sardonyx::kernels
