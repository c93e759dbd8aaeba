// Rates of the kernels on one thread: bench_kernels [part of a case's name].
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/igemm.h"
#include "kernels/int8_gemm.h"
#include "kernels/nbits_gemm.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

constexpr Isa kIsas[] = {Isa::Generic, Isa::Avx2, Isa::Avx512};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The least time of a call, over about half a second.
double fastest(const std::function<void()>& call) {
  call();
  double best = 1e30;
  const double start = cpu_seconds();
  int calls = 1;
  while (cpu_seconds() - start < 0.4) {
    const double begin = cpu_seconds();
    for (int i = 0; i < calls; ++i) call();
    const double each = (cpu_seconds() - begin) / calls;
    best = std::min(best, each);
    if (each * calls < 1e-3) calls *= 2;
  }
  return best;
}

template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t count)
      : data_(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 127) / 64 * 64))) {
    for (std::int64_t i = 0; i < count; ++i) data_[i] = static_cast<T>(i * 37 % 101);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() { return data_; }

 private:
  T* data_;
};

bool wanted(const char* filter, const std::string& name) {
  return filter == nullptr || name.find(filter) != std::string::npos;
}

void report(const std::string& name, double seconds, double operations, double bytes) {
  std::printf("%-44s %10.2f us %8.1f G/s %7.1f GB/s\n", name.c_str(), seconds * 1e6,
              operations / seconds * 1e-9, bytes / seconds * 1e-9);
  std::fflush(stdout);
}

std::string label(Isa isa, const char* kind, std::int64_t m, std::int64_t n, std::int64_t k) {
  char text[128];
  std::snprintf(text, sizeof(text), "%s %s m%lld n%lld k%lld", std::string(isa_name(isa)).c_str(),
                kind, static_cast<long long>(m), static_cast<long long>(n),
                static_cast<long long>(k));
  return text;
}

struct Sizes {
  std::int64_t m, n, k;
};

void bench_igemm(const char* filter, Isa isa, Sizes s) {
  const std::string name = label(isa, "igemm", s.m, s.n, s.k);
  if (!wanted(filter, name)) return;
  const IgemmTable& table = igemm_table(isa);
  Buffer<float> a(s.m * s.k), b(s.n * s.k), c(s.m * s.n);
  Buffer<float> packed(igemm_packed_floats(table, s.n, s.k));
  igemm_pack(table, {b.get(), s.n, 1, s.k, 1, s.n, 0}, 0, igemm_panels(table, s.n), packed.get());
  std::vector<const float*> rows;
  for (std::int64_t row = 0; row < s.m; ++row) rows.push_back(a.get() + row * s.k);
  IgemmArgs args;
  args.rows = s.m, args.columns = s.n, args.depth = s.k, args.a = rows.data();
  args.b = packed.get(), args.b_depth = s.k, args.c = c.get(), args.c_stride = s.n;
  const double seconds = fastest([&] { table.run(args); });
  report(name, seconds, 2.0 * static_cast<double>(s.m * s.n * s.k),
         4.0 * static_cast<double>(s.n * s.k));
}

// B where it is: [k, n] or [n, k], in one of the formats.
void bench_gemm(const char* filter, Isa isa, Sizes s, bool transposed, FloatFormat format) {
  const char* formats[] = {"f32", "f16", "bf16"};
  const std::string kind =
      std::string(transposed ? "gemm [n,k] " : "gemm [k,n] ") + formats[static_cast<int>(format)];
  const std::string name = label(isa, kind.c_str(), s.m, s.n, s.k);
  if (!wanted(filter, name)) return;
  Buffer<float> a(s.m * s.k), b(s.n * s.k), c(s.m * s.n);
  GemmArgs args;
  args.m = s.m, args.n = s.n, args.k = s.k;
  args.a = a.get(), args.a_stride = s.k;
  args.b = b.get(), args.b_transposed = transposed, args.b_stride = transposed ? s.k : s.n;
  args.b_format = format;
  args.c = c.get(), args.c_stride = s.n;
  Buffer<float> scratch(static_cast<std::int64_t>(gemm_scratch_bytes(args, isa) / sizeof(float)));
  const double seconds = fastest([&] { gemm(args, scratch.get(), isa); });
  report(name, seconds, 2.0 * static_cast<double>(s.m * s.n * s.k),
         static_cast<double>(format_bytes(format) * s.n * s.k));
}

// Weights within -range..range: beyond 64 two of them may exceed what AVX2's fast form takes.
void bench_int8(const char* filter, Isa isa, Sizes s, int range, bool packed, Int8Output output) {
  const std::string kind = std::string(packed ? "int8 packed " : "int8 source ") +
                           (output == Int8Output::U8 ? "u8" : "f32") + " weights" +
                           std::to_string(range);
  const std::string name = label(isa, kind.c_str(), s.m, s.n, s.k);
  if (!wanted(filter, name)) return;
  const Int8GemmTable& table = int8_gemm_table(isa);
  Buffer<std::uint8_t> a(s.m * s.k);
  Buffer<std::int8_t> b(s.n * s.k);
  for (std::int64_t i = 0; i < s.m * s.k; ++i) a.get()[i] = static_cast<std::uint8_t>(i * 13);
  for (std::int64_t i = 0; i < s.n * s.k; ++i) {
    b.get()[i] = static_cast<std::int8_t>(i * 7 % (2 * range + 1) - range);
  }
  Buffer<float> c(s.m * s.n);
  Buffer<std::byte> packed_b(int8_packed_bytes(table, s.n, s.k));
  Int8MatrixArgs args;
  args.m = s.m, args.n = s.n, args.k = s.k;
  args.a = a.get(), args.a_stride = s.k, args.b = b.get(), args.b_stride = s.n;
  args.c = c.get(), args.c_stride = s.n;
  const float scale = 1e-4F;
  args.epilogue.scale = &scale;
  args.epilogue.output = output;
  args.epilogue.a_zero = 120;
  if (packed) {
    const std::int64_t panels = (s.n + table.tile_columns - 1) / table.tile_columns;
    int8_pack(table, {b.get(), true, s.n, s.k, 1, s.n}, 0, panels, packed_b.get());
    args.packed_b = packed_b.get();
  }
  Buffer<std::byte> scratch(static_cast<std::int64_t>(int8_gemm_scratch_bytes(args, isa)));
  const double seconds = fastest([&] { int8_gemm(args, scratch.get(), isa); });
  report(name, seconds, 2.0 * static_cast<double>(s.m * s.n * s.k), static_cast<double>(s.n * s.k));
}

void bench_nbits(const char* filter, Isa isa, Sizes s, int bits, bool int8) {
  const std::string kind = "nbits" + std::to_string(bits) + (int8 ? " int8" : " f32");
  const std::string name = label(isa, kind.c_str(), s.m, s.n, s.k);
  if (!wanted(filter, name)) return;
  Buffer<float> a(s.m * s.k), c(s.m * s.n), scales(s.n * s.k / 32);
  Buffer<std::uint8_t> b(s.n * s.k * bits / 8);
  NbitsArgs args;
  args.m = s.m, args.n = s.n, args.k = s.k, args.bits = bits, args.int8_activations = int8;
  args.a = a.get(), args.a_stride = s.k, args.b = b.get(), args.scales = scales.get();
  args.c = c.get(), args.c_stride = s.n;
  Buffer<std::byte> scratch(static_cast<std::int64_t>(nbits_gemm_scratch_bytes(args, isa)));
  const double seconds = fastest([&] { nbits_gemm(args, scratch.get(), isa); });
  report(name, seconds, 2.0 * static_cast<double>(s.m * s.n * s.k),
         static_cast<double>(s.n * s.k * bits / 8));
}

}  // namespace

int main(int argc, char** argv) {
  const char* filter = argc > 1 ? argv[1] : nullptr;
  for (const Isa isa : kIsas) {
    if (!isa_supported(isa)) continue;
    for (const Sizes s : {Sizes{128, 768, 768},
                          {128, 4096, 4096},
                          {128, 3072, 768},
                          {128, 768, 3072},
                          {16, 768, 768},
                          {1, 768, 768},
                          {3136, 64, 576},
                          {196, 256, 1024},
                          {49, 512, 4608}}) {
      bench_igemm(filter, isa, s);
    }
    for (const std::int64_t m : {1, 2, 4, 8, 12, 16, 24, 32, 128}) {
      for (const bool transposed : {false, true}) {
        bench_gemm(filter, isa, {m, 768, 768}, transposed, FloatFormat::F32);
        bench_gemm(filter, isa, {m, 4096, 4096}, transposed, FloatFormat::F32);
        bench_gemm(filter, isa, {m, 4096, 4096}, transposed, FloatFormat::F16);
      }
    }
    for (const Sizes s : {Sizes{128, 768, 768},
                          {128, 3072, 768},
                          {16, 768, 768},
                          {1, 768, 768},
                          {1, 4096, 4096},
                          {3136, 64, 576},
                          {196, 256, 1024}}) {
      bench_int8(filter, isa, s, 63, true, Int8Output::U8);
      bench_int8(filter, isa, s, 127, true, Int8Output::U8);
      bench_int8(filter, isa, s, 127, true, Int8Output::F32);
      bench_int8(filter, isa, s, 127, false, Int8Output::U8);
    }
    for (const std::int64_t m : {1, 4, 8, 16, 128}) {
      bench_nbits(filter, isa, {m, 4096, 4096}, 4, false);
      bench_nbits(filter, isa, {m, 4096, 4096}, 4, true);
      bench_nbits(filter, isa, {m, 4096, 4096}, 8, true);
    }
  }
  return 0;
}
