#include "base/cpu_features.h"

#include <array>
#include <cstdlib>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/log.h"

namespace sardonyx {

namespace {

constexpr std::array kIsas = {Isa::Generic, Isa::Neon, Isa::Avx2, Isa::Avx512};

Isa choose() {
  Isa best = Isa::Generic;
  for (const Isa isa : kIsas) {
    if (isa_supported(isa)) best = isa;
  }
  const char* forced = std::getenv("SARDONYX_ISA");
  if (forced == nullptr || *forced == '\0') return best;
  for (const Isa isa : kIsas) {
    if (isa_name(isa) != forced) continue;
    if (isa_supported(isa)) return isa;
    log(Severity::Warning, "SARDONYX_ISA={} is not supported by this processor; using {}", forced,
        isa_name(best));
    return best;
  }
  log(Severity::Warning, "SARDONYX_ISA={} is not one of generic, avx2, avx512, neon; using {}",
      forced, isa_name(best));
  return best;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::Generic: return "generic";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: return "neon";
  }
  return "unknown";
}

bool isa_supported(Isa isa) {
  switch (isa) {
    case Isa::Generic: return true;
#if defined(__x86_64__)
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    case Isa::Avx512:
      return isa_supported(Isa::Avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    case Isa::Neon: return false;
#elif defined(__aarch64__)
    case Isa::Neon: return true;
    case Isa::Avx2:
    case Isa::Avx512: return false;
#else
    default: return false;
#endif
  }
  return false;
}

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

#if defined(__x86_64__) && defined(__linux__)

namespace {

bool request_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTileAndInt8 = 3U << 24;
  if ((d & kTileAndInt8) != kTileAndInt8) return false;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3U << 17;
  if ((low & kTileState) != kTileState) return false;
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool amx_int8_usable() {
  static const bool usable = request_amx();
  return usable;
}

#else

bool amx_int8_usable() { return false; }

#endif

}  // namespace sardonyx
