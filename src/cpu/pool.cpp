#include "kernels/pool.h"

#include <algorithm>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"
#include "ops/convolve.h"
#include "ops/window.h"

namespace sardonyx {

namespace {

/// Max, average and global pooling of floats, in either layout.
class PoolKernel final : public NodeKernel {
 public:
  PoolKernel(const KernelRequest& request, bool is_channels_last)
      : NodeKernel(request), is_channels_last_(is_channels_last) {
    const std::string_view name = schema().name;
    is_max_ = name == "MaxPool" || name == "GlobalMaxPool";
    is_global_ = name.starts_with("Global");
  }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    kernels::PoolArgs args;
    SDX_TRY(set_shape(x.shape(), args.shape));
    if (context.output(0).element_count() == 0) return {};
    args.x = x.data();
    args.y = context.output(0).mutable_data();
    args.x_stride = args.y_stride = args.shape.channels;
    args.count_padding = attributes().get_int("count_include_pad", 0) != 0;
    const kernels::PoolTable& table = kernels::pool_table();
    const std::int64_t window = args.shape.kernel[0] * args.shape.kernel[1] * args.shape.kernel[2];
    if (is_channels_last_) {
      run_rows(context, args, is_max_ ? table.max_nhwc_f32 : table.average_nhwc_f32, window);
      return {};
    }
    const auto planes = is_max_ ? table.max_nchw_f32 : table.average_nchw_f32;
    const std::int64_t count = args.shape.batch * args.shape.channels;
    context.pool().parallel_for(
        count, grain(args.shape.out_pixels() * window),
        [&](std::int64_t begin, std::int64_t end) { planes(args, begin, end); });
    return {};
  }

 private:
  static std::int64_t grain(std::int64_t work) {
    constexpr std::int64_t kChunk = 1 << 16;
    return std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, work));
  }

  /// A global pooling has one row an image: channels are split instead.
  static void run_rows(KernelContext& context, const kernels::PoolArgs& args,
                       kernels::PoolTable::Rows rows, std::int64_t window) {
    const std::int64_t count = args.shape.out_rows();
    if (count > 1) {
      const std::int64_t work = args.shape.out[2] * args.shape.channels * window;
      context.pool().parallel_for(count, grain(work), [&](std::int64_t begin, std::int64_t end) {
        rows(args, begin, end, 0, args.shape.channels);
      });
      return;
    }
    const std::int64_t least = std::max<std::int64_t>(64, grain(window * args.shape.out[2]));
    context.pool().parallel_for(
        args.shape.channels, least,
        [&](std::int64_t begin, std::int64_t end) { rows(args, 0, count, begin, end); });
  }

  Status set_shape(const Shape& x, kernels::PoolShape& shape) const {
    const Shape first = is_channels_last_ ? channels_first_shape(x) : x;
    const int rank = first.rank() - 2;
    shape.batch = first[0];
    shape.channels = first[1];
    if (is_global_) {
      for (int i = 0; i < rank; ++i) {
        const auto axis = static_cast<std::size_t>(3 - rank + i);
        shape.in[axis] = shape.kernel[axis] = first[2 + i];
      }
      return {};
    }
    SDX_ASSIGN(Window window, read_window(attributes(), rank));
    SDX_TRY(set_kernel(window, attributes(), nullptr));
    Shape spatial;
    for (int i = 0; i < rank; ++i) spatial.push_back(first[2 + i]);
    SDX_TRY(slide(window, attributes(), spatial, attributes().get_int("ceil_mode", 0) != 0));
    for (int i = 0; i < rank; ++i) {
      const auto axis = static_cast<std::size_t>(3 - rank + i);
      shape.in[axis] = window[i].input;
      shape.out[axis] = window[i].output;
      shape.kernel[axis] = window[i].kernel;
      shape.stride[axis] = window[i].stride;
      shape.dilation[axis] = window[i].dilation;
      shape.pad[axis] = window[i].pad_begin;
      shape.pad_end[axis] = window[i].pad_end;
    }
    return {};
  }

  bool is_channels_last_;
  bool is_max_ = false;
  bool is_global_ = false;
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const Shape* x = request.shape(0);
  const bool fits = request.dtype(0) == DType::Float32 && x != nullptr && x->rank() >= 3 &&
                    x->rank() <= 5 && !request.has_output(1);
  if (!fits) return std::unique_ptr<Kernel>();
  const bool is_channels_last = request.node().domain == "ai.sardonyx";
  return std::unique_ptr<Kernel>(std::make_unique<PoolKernel>(request, is_channels_last));
}

constexpr KernelRow kRows[] = {
    {"ai.sardonyx", "MaxPool", 1, create},
    {"ai.sardonyx", "AveragePool", 1, create},
    {"ai.sardonyx", "GlobalAveragePool", 1, create},
    {"ai.sardonyx", "GlobalMaxPool", 1, create},
    {"", "MaxPool", 1, create},
    {"", "AveragePool", 1, create},
    {"", "GlobalAveragePool", 1, create},
    {"", "GlobalMaxPool", 1, create},
};

}  // namespace

std::span<const KernelRow> pool_kernels() { return kRows; }

}  // namespace sardonyx
