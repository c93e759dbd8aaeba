#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"
#include "ops/real_tensor.h"

namespace sardonyx {

namespace {

Status infer_non_max_suppression(InferContext& context) {
  const Shape* boxes = context.shape(0);
  const Shape* scores = context.shape(1);
  context.set_shape(0, {kUnknownDim, 3});
  if (boxes == nullptr || scores == nullptr) return {};
  const auto agree = [](Dim a, Dim b) { return !is_known(a) || !is_known(b) || a == b; };
  if (boxes->rank() != 3 || scores->rank() != 3 || !agree((*boxes)[2], 4) ||
      !agree((*boxes)[0], (*scores)[0]) || !agree((*boxes)[1], (*scores)[2])) {
    return context.error("expected boxes [N,B,4] and scores [N,C,B], found {} and {}",
                         boxes->to_string(), scores->to_string());
  }
  return {};
}

/// A box by its corners.
struct Box {
  float y1;
  float x1;
  float y2;
  float x2;

  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box read_box(const float* values, bool is_centered) {
  if (is_centered) {
    const float half_width = values[2] / 2.0F;
    const float half_height = values[3] / 2.0F;
    return {values[1] - half_height, values[0] - half_width, values[1] + half_height,
            values[0] + half_width};
  }
  return {std::min(values[0], values[2]), std::min(values[1], values[3]),
          std::max(values[0], values[2]), std::max(values[1], values[3])};
}

/// Whether the intersection of the boxes is above `threshold` of their union.
bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0.0F && width > 0.0F)) return false;
  const float shared = height * width;
  const float area_a = a.area();
  const float area_b = b.area();
  const float together = area_a + area_b - shared;
  if (shared <= 0.0F || area_a <= 0.0F || area_b <= 0.0F || together <= 0.0F) return false;
  return shared / together > threshold;
}

struct Thresholds {
  std::int64_t most_boxes = 0;
  float overlap = 0.0F;
  bool has_score = false;
  float score = 0.0F;
  bool is_centered = false;
};

Result<Thresholds> read_thresholds(const EvalContext& context) {
  Thresholds thresholds;
  const auto first = [&](std::size_t i) -> const Tensor* {
    const Tensor* tensor = context.tensor_or_null(i);
    return tensor != nullptr && tensor->element_count() > 0 ? tensor : nullptr;
  };
  if (const Tensor* most = first(2)) {
    thresholds.most_boxes = std::max<std::int64_t>(0, most->values<std::int64_t>()[0]);
  }
  if (const Tensor* overlap = first(3)) thresholds.overlap = overlap->values<float>()[0];
  if (const Tensor* score = first(4)) {
    thresholds.has_score = true;
    thresholds.score = score->values<float>()[0];
  }
  if (!(thresholds.overlap >= 0.0F && thresholds.overlap <= 1.0F)) {
    return context.error("iou_threshold {} is outside [0, 1]", thresholds.overlap);
  }
  thresholds.is_centered = context.attributes().get_int("center_point_box", 0) != 0;
  return thresholds;
}

/// A number that grows as the score falls; equal for equal scores, greatest for NaN.
std::uint32_t descending_key(float score) {
  if (std::isnan(score)) return ~std::uint32_t{0};
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // -0 is 0
  const std::uint32_t ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

using RankedBoxes = std::vector<std::pair<std::uint32_t, std::int64_t>>;

/// Boxes whose score passes, best first; equal scores keep their order, NaN comes last.
void rank_boxes(std::span<const float> scores, const Thresholds& thresholds, RankedBoxes& order) {
  order.clear();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!thresholds.has_score || scores[i] > thresholds.score) {
      order.emplace_back(descending_key(scores[i]), static_cast<std::int64_t>(i));
    }
  }
  std::sort(order.begin(), order.end());
}

/// The boxes that suppress others, in chunks that a box is held against at once.
class KeptBoxes {
 public:
  std::int64_t size() const { return size_; }
  void clear() {
    chunks_.clear();
    size_ = 0;
  }
  void add(const Box& box) {
    const auto lane = static_cast<std::size_t>(size_ % kLanes);
    if (lane == 0) chunks_.emplace_back();
    Chunk& chunk = chunks_.back();
    chunk.y1[lane] = box.y1;
    chunk.x1[lane] = box.x1;
    chunk.y2[lane] = box.y2;
    chunk.x2[lane] = box.x2;
    ++size_;
  }
  /// Whether any box overlaps this one.
  bool overlap(const Box& box, float threshold) const {
    for (const Chunk& chunk : chunks_) {
      if (!chunk.touches(box)) continue;
      for (std::size_t i = 0; i < kLanes; ++i) {
        const Box other{chunk.y1[i], chunk.x1[i], chunk.y2[i], chunk.x2[i]};
        if (overlaps(box, other, threshold)) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t kLanes = 16;

  /// Lanes without a box are empty boxes, which touch none.
  struct Chunk {
    std::array<float, kLanes> y1{};
    std::array<float, kLanes> x1{};
    std::array<float, kLanes> y2{};
    std::array<float, kLanes> x2{};

    bool touches(const Box& box) const {
      int any = 0;
      for (std::size_t i = 0; i < kLanes; ++i) {
        const float bottom = y2[i] < box.y2 ? y2[i] : box.y2;
        const float top = box.y1 < y1[i] ? y1[i] : box.y1;
        const float right = x2[i] < box.x2 ? x2[i] : box.x2;
        const float left = box.x1 < x1[i] ? x1[i] : box.x1;
        any |= static_cast<int>(bottom - top > 0.0F) & static_cast<int>(right - left > 0.0F);
      }
      return any != 0;
    }
  };

  std::vector<Chunk> chunks_;
  std::int64_t size_ = 0;
};

Status evaluate_non_max_suppression(EvalContext& context) {
  const Tensor& boxes = context.tensor(0);
  const Tensor& scores = context.tensor(1);
  SDX_ASSIGN(const Thresholds thresholds, read_thresholds(context));
  const std::int64_t count = boxes.dim(1);
  const std::int64_t classes = scores.dim(1);
  std::vector<std::int64_t> found;
  RankedBoxes order;
  KeptBoxes kept;
  for (std::int64_t pair = 0; pair < scores.dim(0) * classes && count > 0; ++pair) {
    SDX_TRY(context.check_cancelled());
    const std::int64_t batch = pair / classes;
    const float* batch_boxes = boxes.values<float>().data() + batch * count * 4;
    rank_boxes(scores.values<float>().subspan(static_cast<std::size_t>(pair * count),
                                              static_cast<std::size_t>(count)),
               thresholds, order);
    kept.clear();
    for (const auto& [key, i] : order) {
      if (kept.size() >= thresholds.most_boxes) break;
      const Box box = read_box(batch_boxes + i * 4, thresholds.is_centered);
      if (kept.overlap(box, thresholds.overlap)) continue;
      kept.add(box);
      found.insert(found.end(), {batch, pair % classes, i});
    }
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0, Shape{static_cast<Dim>(found.size() / 3), 3}));
  if (y != nullptr) {
    std::copy(found.begin(), found.end(), y->mutable_values<std::int64_t>().begin());
  }
  return {};
}

/// The shape [rois, C, height, width], after checking the input and `columns` of the rois.
Status set_pooled_shape(InferContext& context, Dim columns, Dim height, Dim width) {
  const Shape* input = context.shape(0);
  const Shape* rois = context.shape(1);
  if (height < 0 || width < 0) {
    return context.error("an output of {} by {} is not possible", height, width);
  }
  if (input != nullptr && input->rank() != 4) {
    return context.error("expected an input [N,C,H,W], found {}", input->to_string());
  }
  if (rois != nullptr && (rois->rank() != 2 || (is_known((*rois)[1]) && (*rois)[1] != columns))) {
    return context.error("expected rois [R,{}], found {}", columns, rois->to_string());
  }
  const Shape* batches = context.shape(2);
  if (columns == 4 && batches != nullptr && rois != nullptr) {
    const Dim expected = (*rois)[0];
    if (batches->rank() != 1 ||
        (is_known(expected) && is_known((*batches)[0]) && expected != (*batches)[0])) {
      return context.error("expected batch indices [{}], found {}", expected, batches->to_string());
    }
  }
  context.set_shape(0, {rois != nullptr ? (*rois)[0] : kUnknownDim,
                        input != nullptr ? (*input)[1] : kUnknownDim, height, width});
  return {};
}

Status infer_roi_align(InferContext& context) {
  const Attributes& attributes = context.attributes();
  return set_pooled_shape(context, 4, attributes.get_int("output_height", 1),
                          attributes.get_int("output_width", 1));
}

/// Four neighbours of a point and their weights.
template <typename Real>
struct Corners {
  std::array<std::int64_t, 4> position{};
  std::array<Real, 4> weight{};
};

template <typename Real>
Corners<Real> corners_at(Real y, Real x, std::int64_t height, std::int64_t width) {
  Corners<Real> corners;
  if (!(y >= Real{-1} && y <= static_cast<Real>(height) && x >= Real{-1} &&
        x <= static_cast<Real>(width))) {
    return corners;
  }
  y = std::max(y, Real{0});
  x = std::max(x, Real{0});
  const auto clamp = [](Real& value, std::int64_t size) {
    const auto low = static_cast<std::int64_t>(value);
    if (low < size - 1) return std::pair(low, low + 1);
    value = static_cast<Real>(size - 1);
    return std::pair(size - 1, size - 1);
  };
  const auto [top, bottom] = clamp(y, height);
  const auto [left, right] = clamp(x, width);
  const Real down = y - static_cast<Real>(top);
  const Real along = x - static_cast<Real>(left);
  corners.position = {top * width + left, top * width + right, bottom * width + left,
                      bottom * width + right};
  corners.weight = {(1 - down) * (1 - along), (1 - down) * along, down * (1 - along), down * along};
  return corners;
}

/// How RoiAlign cuts a region into bins and samples them.
template <typename Real>
struct RoiGrid {
  Real top;
  Real left;
  Real bin_height;
  Real bin_width;
  std::int64_t rows;
  std::int64_t columns;
};

template <typename Real>
Result<RoiGrid<Real>> roi_grid(const EvalContext& context, const Real* roi, std::int64_t height,
                               std::int64_t width) {
  const Attributes& attributes = context.attributes();
  const auto scale = static_cast<Real>(attributes.get_float("spatial_scale", 1.0F));
  const bool is_shifted =
      context.version() >= 16 &&
      attributes.get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const Real shift = is_shifted ? Real(0.5) : Real(0);
  RoiGrid<Real> grid{};
  grid.left = roi[0] * scale - shift;
  grid.top = roi[1] * scale - shift;
  Real roi_width = roi[2] * scale - shift - grid.left;
  Real roi_height = roi[3] * scale - shift - grid.top;
  if (!is_shifted) {
    roi_width = std::max(roi_width, Real{1});
    roi_height = std::max(roi_height, Real{1});
  }
  grid.bin_height = roi_height / static_cast<Real>(height);
  grid.bin_width = roi_width / static_cast<Real>(width);
  const std::int64_t ratio = attributes.get_int("sampling_ratio", 0);
  const Real rows = ratio > 0 ? static_cast<Real>(ratio) : std::ceil(grid.bin_height);
  const Real columns = ratio > 0 ? static_cast<Real>(ratio) : std::ceil(grid.bin_width);
  constexpr Real kMostSamples = Real{1 << 20};
  if (!(rows * columns <= kMostSamples && rows <= kMostSamples && columns <= kMostSamples)) {
    return context.error("a region [{}, {}, {}, {}] needs too many samples", roi[0], roi[1], roi[2],
                         roi[3]);
  }
  grid.rows = std::max<std::int64_t>(0, static_cast<std::int64_t>(rows));
  grid.columns = std::max<std::int64_t>(0, static_cast<std::int64_t>(columns));
  return grid;
}

/// Fills `corners` with the samples of the bin at (ph, pw).
template <typename Real>
void sample_bin(const RoiGrid<Real>& grid, std::int64_t ph, std::int64_t pw, const Tensor& x,
                std::vector<Corners<Real>>& corners) {
  corners.clear();
  for (std::int64_t i = 0; i < grid.rows; ++i) {
    const Real y = grid.top + (static_cast<Real>(ph) +
                               (static_cast<Real>(i) + Real(0.5)) / static_cast<Real>(grid.rows)) *
                                  grid.bin_height;
    for (std::int64_t k = 0; k < grid.columns; ++k) {
      const Real across =
          grid.left + (static_cast<Real>(pw) +
                       (static_cast<Real>(k) + Real(0.5)) / static_cast<Real>(grid.columns)) *
                          grid.bin_width;
      corners.push_back(corners_at(y, across, x.dim(2), x.dim(3)));
    }
  }
}

template <typename Real>
Real pool_bin(const std::vector<Corners<Real>>& corners, const Real* plane, bool is_max) {
  Real result{0};
  bool is_first = true;
  for (const Corners<Real>& sample : corners) {
    std::array<Real, 4> parts;
    for (std::size_t k = 0; k < 4; ++k) parts[k] = sample.weight[k] * plane[sample.position[k]];
    if (is_max) {
      const Real best = *std::max_element(parts.begin(), parts.end());
      result = is_first ? best : std::max(result, best);
      is_first = false;
    } else {
      result += parts[0] + parts[1] + parts[2] + parts[3];
    }
  }
  if (is_max) return result;
  return result / static_cast<Real>(std::max<std::size_t>(1, corners.size()));
}

Status check_batch(const EvalContext& context, std::int64_t batch, std::int64_t size) {
  if (batch >= 0 && batch < size) return {};
  return context.error("batch index {} is outside [0, {})", batch, size);
}

template <typename Real>
Status roi_align(EvalContext& context, const Tensor& x, const Tensor& rois, Tensor& y) {
  const std::string mode = context.attributes().get_string("mode", "avg");
  if (mode != "avg" && mode != "max") {
    return context.error("mode '{}' is neither avg nor max", mode);
  }
  const auto batches = context.ints(2);
  const std::int64_t plane = x.dim(2) * x.dim(3);
  const auto* data = reinterpret_cast<const Real*>(x.data());
  auto* to = reinterpret_cast<Real*>(y.mutable_data());
  const std::int64_t bins = y.dim(2) * y.dim(3);
  std::vector<Corners<Real>> corners;
  for (std::int64_t r = 0; r < y.dim(0); ++r) {
    const std::int64_t batch = batches[static_cast<std::size_t>(r)];
    SDX_TRY(check_batch(context, batch, x.dim(0)));
    SDX_ASSIGN(
        const auto grid,
        roi_grid(context, reinterpret_cast<const Real*>(rois.data()) + r * 4, y.dim(2), y.dim(3)));
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      sample_bin(grid, bin / y.dim(3), bin % y.dim(3), x, corners);
      for (std::int64_t c = 0; c < x.dim(1); ++c) {
        to[(r * x.dim(1) + c) * bins + bin] =
            pool_bin(corners, data + (batch * x.dim(1) + c) * plane, mode == "max");
      }
    }
  }
  return {};
}

Status evaluate_roi_align(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const Tensor& given = context.tensor(0);
  if (given.dim(2) == 0 || given.dim(3) == 0) {
    return context.error("an empty input {} cannot be pooled", given.shape().to_string());
  }
  SDX_ASSIGN(const Tensor x, as_real(given));
  SDX_ASSIGN(const Tensor rois, as_real(context.tensor(1)));
  SDX_ASSIGN(Tensor real, Tensor::allocate(x.dtype(), y->shape()));
  SDX_TRY(x.dtype() == DType::Float64 ? roi_align<double>(context, x, rois, real)
                                      : roi_align<float>(context, x, rois, real));
  write_real_tensor(real, *y);
  return {};
}

Status infer_max_roi_pool(InferContext& context) {
  const auto& pooled = context.attributes().get_ints("pooled_shape");
  if (pooled.size() != 2) {
    return context.error("pooled_shape has {} elements, expected 2", pooled.size());
  }
  return set_pooled_shape(context, 5, pooled[0], pooled[1]);
}

/// The input rows (or columns) of bin `bin` out of `bins`, inside [0, size).
std::pair<std::int64_t, std::int64_t> bin_range(double start, double length, std::int64_t bin,
                                                std::int64_t bins, std::int64_t size) {
  const double step = length / static_cast<double>(bins);
  const auto clamp = [&](double value) {
    return static_cast<std::int64_t>(std::clamp(value, 0.0, static_cast<double>(size)));
  };
  return {clamp(start + std::floor(static_cast<double>(bin) * step)),
          clamp(start + std::ceil(static_cast<double>(bin + 1) * step))};
}

float max_in(const float* plane, std::int64_t width, std::pair<std::int64_t, std::int64_t> rows,
             std::pair<std::int64_t, std::int64_t> columns) {
  if (rows.first >= rows.second || columns.first >= columns.second) return 0.0F;
  float best = plane[rows.first * width + columns.first];
  for (std::int64_t row = rows.first; row < rows.second; ++row) {
    for (std::int64_t column = columns.first; column < columns.second; ++column) {
      const float value = plane[row * width + column];
      if (value > best || std::isnan(value)) best = value;
    }
  }
  return best;
}

Status evaluate_max_roi_pool(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  SDX_ASSIGN(const Tensor x, to_dtype(context.tensor(0), DType::Float32));
  SDX_ASSIGN(const Tensor rois, to_dtype(context.tensor(1), DType::Float32));
  SDX_ASSIGN(Tensor real, Tensor::allocate(DType::Float32, y->shape()));
  const double scale = static_cast<double>(context.attributes().get_float("spatial_scale", 1.0F));
  const std::int64_t channels = x.dim(1);
  float* to = real.mutable_values<float>().data();
  for (std::int64_t r = 0; r < y->dim(0); ++r) {
    const float* roi = rois.values<float>().data() + r * 5;
    for (int k = 0; k < 5; ++k) {
      if (!std::isfinite(roi[k])) return context.error("region {} holds {}", r, roi[k]);
    }
    const auto batch = static_cast<std::int64_t>(std::clamp(roi[0], -1.0F, 0x1p40F));
    SDX_TRY(check_batch(context, batch, x.dim(0)));
    const double left = std::round(static_cast<double>(roi[1]) * scale);
    const double top = std::round(static_cast<double>(roi[2]) * scale);
    const double width =
        std::max(std::round(static_cast<double>(roi[3]) * scale) - left + 1.0, 1.0);
    const double height =
        std::max(std::round(static_cast<double>(roi[4]) * scale) - top + 1.0, 1.0);
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* plane = x.values<float>().data() + (batch * channels + c) * x.dim(2) * x.dim(3);
      for (std::int64_t ph = 0; ph < y->dim(2); ++ph) {
        for (std::int64_t pw = 0; pw < y->dim(3); ++pw) {
          *to++ = max_in(plane, x.dim(3), bin_range(top, height, ph, y->dim(2), x.dim(2)),
                         bin_range(left, width, pw, y->dim(3), x.dim(3)));
        }
      }
    }
  }
  write_real_tensor(real, *y);
  return {};
}

Status infer_crop_and_resize(InferContext& context) {
  const auto size = context.ints(3);
  if (!size) return {};
  if (size->size() != 2) {
    return context.error("crop_size has {} elements, expected 2", size->size());
  }
  return set_pooled_shape(context, 4, (*size)[0], (*size)[1]);
}

/// Where output `i` of `count` looks along an axis of `size` between the relative ends.
float crop_coordinate(float begin, float end, std::int64_t i, std::int64_t count,
                      std::int64_t size) {
  const auto last = static_cast<float>(size - 1);
  if (count <= 1) return 0.5F * (begin + end) * last;
  return begin * last +
         static_cast<float>(i) * (end - begin) * last / static_cast<float>(count - 1);
}

float crop_value(const float* plane, float y, float x, std::int64_t width, bool is_nearest) {
  if (is_nearest) {
    return plane[static_cast<std::int64_t>(std::round(y)) * width +
                 static_cast<std::int64_t>(std::round(x))];
  }
  const auto top = static_cast<std::int64_t>(std::floor(y));
  const auto left = static_cast<std::int64_t>(std::floor(x));
  const auto bottom = static_cast<std::int64_t>(std::ceil(y));
  const auto right = static_cast<std::int64_t>(std::ceil(x));
  const float down = y - std::floor(y);
  const float along = x - std::floor(x);
  const auto row = [&](std::int64_t r) {
    const float begin = plane[r * width + left];
    return begin + (plane[r * width + right] - begin) * along;
  };
  const float upper = row(top);
  return upper + (row(bottom) - upper) * down;
}

Status evaluate_crop_and_resize(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::string mode = context.attributes().get_string("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest") {
    return context.error("mode '{}' is neither bilinear nor nearest", mode);
  }
  const float outside = context.attributes().get_float("extrapolation_value", 0.0F);
  SDX_ASSIGN(const Tensor x, to_dtype(context.tensor(0), DType::Float32));
  SDX_ASSIGN(const Tensor rois, to_dtype(context.tensor(1), DType::Float32));
  SDX_ASSIGN(Tensor real, Tensor::allocate(DType::Float32, y->shape()));
  const auto batches = context.ints(2);
  const std::int64_t planes = y->dim(0) * y->dim(1);
  float* to = real.mutable_values<float>().data();
  for (std::int64_t p = 0; p < planes; ++p) {
    const std::int64_t r = p / y->dim(1);
    const std::int64_t batch = batches[static_cast<std::size_t>(r)];
    SDX_TRY(check_batch(context, batch, x.dim(0)));
    const float* roi = rois.values<float>().data() + r * 4;
    const float* plane =
        x.values<float>().data() + (batch * x.dim(1) + p % y->dim(1)) * x.dim(2) * x.dim(3);
    for (std::int64_t i = 0; i < y->dim(2); ++i) {
      const float row = crop_coordinate(roi[0], roi[2], i, y->dim(2), x.dim(2));
      for (std::int64_t k = 0; k < y->dim(3); ++k) {
        const float column = crop_coordinate(roi[1], roi[3], k, y->dim(3), x.dim(3));
        const bool is_inside = row >= 0.0F && row <= static_cast<float>(x.dim(2) - 1) &&
                               column >= 0.0F && column <= static_cast<float>(x.dim(3) - 1);
        *to++ = is_inside ? crop_value(plane, row, column, x.dim(3), mode == "nearest") : outside;
      }
    }
  }
  write_real_tensor(real, *y);
  return {};
}

constexpr OpSchema kRows[] = {
    {"",
     "NonMaxSuppression",
     10,
     {"FFiff>I"},
     "center_point_box:i",
     infer_non_max_suppression,
     evaluate_non_max_suppression,
     kDataDependentShape},
    {"",
     "NonMaxSuppression",
     11,
     {"FFiff>I"},
     "center_point_box:i",
     infer_non_max_suppression,
     evaluate_non_max_suppression,
     kDataDependentShape},
    {"",
     "RoiAlign",
     10,
     {"TTI>T", kFloats},
     "mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f",
     infer_roi_align,
     evaluate_roi_align},
    {"",
     "RoiAlign",
     16,
     {"TTI>T", kFloats},
     "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i "
     "spatial_scale:f",
     infer_roi_align,
     evaluate_roi_align},
    {"",
     "RoiAlign",
     22,
     {"TTI>T", kFloatsBf16},
     "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i "
     "spatial_scale:f",
     infer_roi_align,
     evaluate_roi_align},
    {"",
     "MaxRoiPool",
     1,
     {"TT>T", kFloats},
     "pooled_shape:is! spatial_scale:f",
     infer_max_roi_pool,
     evaluate_max_roi_pool},
    {"",
     "MaxRoiPool",
     22,
     {"TT>T", kFloatsBf16},
     "pooled_shape:is! spatial_scale:f",
     infer_max_roi_pool,
     evaluate_max_roi_pool},
    {"com.microsoft",
     "CropAndResize",
     1,
     {"TTUN>T", kFloats, set_of(DType::Int32, DType::Int64)},
     "mode:s extrapolation_value:f",
     infer_crop_and_resize,
     evaluate_crop_and_resize},
};

}  // namespace

std::span<const OpSchema> detection_schemas() { return kRows; }

}  // namespace sardonyx
