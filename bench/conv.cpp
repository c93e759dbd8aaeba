// Rates of the convolution kernels on one thread: bench_conv [conv | depthwise |
// winograd].
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/conv.h"
#include "kernels/depthwise.h"
#include "kernels/winograd.h"

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

struct Layer {
  std::int64_t size, in, out, kernel, stride;
  std::int64_t dims = 2, dilation = 1;
};

ConvShape shape_of(const Layer& layer) {
  ConvShape s;
  s.in_channels = layer.in;
  s.out_channels = layer.out;
  for (std::size_t a = static_cast<std::size_t>(3 - layer.dims); a < 3; ++a) {
    s.in[a] = layer.size;
    s.kernel[a] = layer.kernel;
    s.stride[a] = layer.stride;
    s.dilation[a] = layer.dilation;
    s.pad[a] = layer.dilation * (layer.kernel - 1) / 2;
    s.out[a] = (layer.size - 1) / layer.stride + 1;
  }
  return s;
}

double operations(const ConvShape& s) {
  return 2.0 * static_cast<double>(s.out_pixels() * s.out_channels * s.group_in() * s.taps());
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<void, Free>;
Bytes aligned(std::int64_t bytes) {
  return Bytes(std::aligned_alloc(64, static_cast<std::size_t>(bytes + 127) / 64 * 64));
}

void conv(Isa isa, const Layer& layer) {
  const ConvShape s = shape_of(layer);
  const auto x = filled(s.in_channels * s.in_pixels());
  const auto w = filled(s.out_channels * s.group_in() * s.taps());
  auto y = filled(s.out_channels * s.out_pixels());
  char name[80];
  std::snprintf(name, sizeof name, "conv %ldD %ldx s%ld d%ld %ld %ld>%ld", layer.dims, layer.kernel,
                layer.stride, layer.dilation, layer.size, layer.in, layer.out);
  const ConvPlan plan = plan_conv(s, isa);
  const Bytes packed = aligned(conv_packed_floats(plan) * 4);
  const Bytes scratch = aligned(plan.source_scratch_bytes);
  pack_conv_weights(plan, w.data(), 0, plan.panels, static_cast<float*>(packed.get()));
  ConvArgs args;
  args.x = x.data();
  args.x_stride = s.in_channels;
  args.y = y.data();
  args.y_stride = s.out_channels;
  args.packed = static_cast<const float*>(packed.get());
  args.epilogue.bias = w.data();
  args.epilogue.activation.kind = ActivationKind::Relu;
  const auto run = [&] { conv_nhwc(plan, args, 0, plan.tiles, 0, plan.panels, scratch.get()); };
  report(name, isa, fastest(run), operations(s));
  args.packed = nullptr;
  args.source = w.data();
  report("  from source", isa, fastest(run), operations(s));
  const ConvNchwPlan nchw = plan_conv_nchw(s, isa);
  const Bytes gathered = aligned(nchw.scratch_bytes);
  ConvNchwArgs first;
  first.x = x.data();
  first.weights = w.data();
  first.bias = w.data();
  first.y = y.data();
  first.activation.kind = ActivationKind::Relu;
  const double seconds = fastest([&] { conv_nchw(nchw, first, 0, nchw.tiles, gathered.get()); });
  report("  channels first", isa, seconds, operations(s));
}

void winograd(Isa isa, const Layer& layer) {
  const ConvShape s = shape_of(layer);
  if (!winograd_fits(s)) return;
  const auto x = filled(s.in_channels * s.in_pixels());
  const auto w = filled(s.out_channels * s.in_channels * 9);
  auto y = filled(s.out_channels * s.out_pixels());
  const WinogradPlan plan = plan_winograd(s, isa);
  const Bytes packed = aligned(winograd_packed_floats(plan) * 4);
  const Bytes scratch = aligned(plan.scratch_bytes);
  pack_winograd_weights(plan, w.data(), 0, plan.panels, static_cast<float*>(packed.get()));
  ConvArgs args;
  args.x = x.data();
  args.x_stride = s.in_channels;
  args.y = y.data();
  args.y_stride = s.out_channels;
  args.packed = static_cast<const float*>(packed.get());
  args.epilogue.bias = w.data();
  args.epilogue.activation.kind = ActivationKind::Relu;
  char name[80];
  std::snprintf(name, sizeof name, "winograd %ld %ld>%ld", layer.size, layer.in, layer.out);
  const double seconds = fastest(
      [&] { conv_winograd(plan, args, 0, plan.units, 0, plan.panels, scratch.get()); });
  report(name, isa, seconds, operations(s));
}

constexpr Layer kLayers[] = {
    {224, 3, 64, 7, 2},    {56, 64, 64, 1, 1},     {56, 64, 64, 3, 1},    {56, 64, 256, 1, 1},
    {56, 256, 64, 1, 1},   {56, 256, 512, 1, 2},   {28, 128, 128, 3, 1},  {28, 128, 512, 1, 1},
    {28, 512, 128, 1, 1},  {14, 256, 256, 3, 1},   {14, 256, 1024, 1, 1}, {14, 1024, 256, 1, 1},
    {7, 512, 512, 3, 1},   {7, 512, 2048, 1, 1},   {7, 2048, 512, 1, 1},  {56, 128, 128, 3, 2},
    {320, 3, 16, 3, 2},    {160, 16, 32, 3, 2},    {80, 32, 32, 3, 1},    {112, 32, 32, 3, 1},
        {1000, 256, 256, 3, 1, 1},
    {1000, 64, 64, 7, 1, 1, 3}, {4000, 128, 128, 11, 1, 1, 5},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  for (const Isa isa : {Isa::Avx2, Isa::Avx512}) {
    if (!isa_supported(isa)) continue;
    for (const Layer& layer : kLayers) {
      if (part.empty() || part == "winograd") winograd(isa, layer);
      if (part.empty() || part == "conv") conv(isa, layer);
    }
    if (!part.empty() && part != "depthwise") continue;
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
