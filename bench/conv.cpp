// Rates of the convolution kernels on one thread: bench_conv [part of a case's name].
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/depthwise.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double fastest(const std::function<void()>& call) {
  call();
  double best = 1e30;
  int calls = 1;
  for (const double start = cpu_seconds(); cpu_seconds() - start < 0.3;) {
    const double begin = cpu_seconds();
    for (int i = 0; i < calls; ++i) call();
    const double each = (cpu_seconds() - begin) / calls;
    best = std::min(best, each);
    if (each * calls < 1e-3) calls *= 2;
  }
  return best;
}

std::vector<float> filled(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 37 % 101) / 64 - 0.7F;
  }
  return values;
}

void report(const char* name, Isa isa, double seconds, double operations) {
  std::printf("%-40s %-8s %10.1f us %8.1f GFLOP/s\n", name, std::string(isa_name(isa)).c_str(),
              seconds * 1e6, operations / seconds * 1e-9);
  std::fflush(stdout);
}

void depthwise(Isa isa, std::int64_t size, std::int64_t channels, std::int64_t kernel,
               std::int64_t stride) {
  DepthwiseArgs args;
  DepthwiseShape& s = args.shape;
  s.channels = channels;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.out_h = s.out_w = (size - 1) / stride + 1;
  const auto x = filled(size * size * channels);
  const auto w = filled(kernel * kernel * channels);
  auto y = filled(s.out_h * s.out_w * channels);
  args.x = x.data();
  args.weights = w.data();
  args.bias = w.data();
  args.y = y.data();
  args.x_stride = args.y_stride = channels;
  args.activation.kind = ActivationKind::Relu;
  const double seconds =
      fastest([&] { depthwise_table(isa).nhwc_rows(args, 0, s.out_h); });
  char name[80];
  std::snprintf(name, sizeof name, "depthwise %ldx%ld s%ld %ldx%ldx%ld", kernel, kernel, stride,
                size, size, channels);
  const std::int64_t products = s.out_h * s.out_w * channels * kernel * kernel;
  report(name, isa, seconds, 2.0 * static_cast<double>(products));
}

}  // namespace

int main(int, char**) {
  for (const Isa isa : {Isa::Avx2, Isa::Avx512}) {
    depthwise(isa, 112, 32, 3, 1);
    depthwise(isa, 112, 96, 3, 2);
    depthwise(isa, 56, 144, 3, 1);
    depthwise(isa, 28, 192, 3, 1);
    depthwise(isa, 14, 384, 3, 1);
    depthwise(isa, 14, 512, 3, 1);
    depthwise(isa, 7, 960, 3, 1);
    depthwise(isa, 28, 120, 5, 1);
    depthwise(isa, 14, 480, 5, 1);
    depthwise(isa, 56, 72, 5, 2);
    depthwise(isa, 7, 960, 5, 1);
    depthwise(isa, 56, 96, 7, 1);
    depthwise(isa, 14, 384, 7, 1);
    depthwise(isa, 14, 384, 9, 1);
  }
}
