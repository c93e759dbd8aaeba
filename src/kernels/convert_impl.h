#pragma once

#include <array>
#include <cstring>

#include "kernels/convert.h"

namespace sardonyx::kernels {

/// The table of an instruction set, whose Lanes convert kLanes elements at a time.
template <typename Lanes>
class Converter {
 public:
  static constexpr ConvertTable table(Isa isa) {
    return {isa, &all<std::uint16_t, float, Lanes::widen_f16>,
            &all<std::uint16_t, float, Lanes::widen_bf16>,
            &all<float, std::uint16_t, Lanes::narrow_f16>,
            &all<float, std::uint16_t, Lanes::narrow_bf16>};
  }

 private:
  template <typename From, typename To, void (*convert)(const From*, To*)>
  static void all(const From* x, std::int64_t count, To* y) {
    std::int64_t i = 0;
    for (; i + Lanes::kLanes <= count; i += Lanes::kLanes) convert(x + i, y + i);
    if (i == count) return;
    const auto rest = static_cast<std::size_t>(count - i);
    std::array<From, Lanes::kLanes> from{};
    std::array<To, Lanes::kLanes> to;
    std::memcpy(from.data(), x + i, rest * sizeof(From));
    convert(from.data(), to.data());
    std::memcpy(y + i, to.data(), rest * sizeof(To));
  }
};

}  // namespace sardonyx::kernels
