#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace sardonyx {

/// One dimension: a size >= 0, kUnknownDim, or a symbol (any value below kUnknownDim), which is an
/// unknown size that is the same wherever the symbol stands in one model.
using Dim = std::int64_t;
inline constexpr Dim kUnknownDim = -1;
constexpr bool is_known(Dim dim) { return dim >= 0; }
constexpr bool is_symbol(Dim dim) { return dim < kUnknownDim; }

/// Dimensions of a tensor; a value type without heap memory, at most kMaxRank of them.
class Shape {
 public:
  static constexpr int kMaxRank = 16;

  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::span<const Dim>(dims.begin(), dims.size())) {}
  /// `dims` must not be longer than kMaxRank: readers check it with fits().
  explicit Shape(std::span<const Dim> dims) {
    assert(fits(dims.size()));
    for (const Dim dim : dims) dims_[static_cast<std::size_t>(rank_++)] = dim;
  }
  static Shape filled(int rank, Dim dim) {
    Shape shape;
    for (int i = 0; i < rank; ++i) shape.push_back(dim);
    return shape;
  }
  static constexpr bool fits(std::size_t rank) { return rank <= kMaxRank; }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  Dim operator[](int axis) const {
    assert(axis >= 0 && axis < rank_);
    return dims_[static_cast<std::size_t>(axis)];
  }
  Dim& operator[](int axis) {
    assert(axis >= 0 && axis < rank_);
    return dims_[static_cast<std::size_t>(axis)];
  }
  const Dim* begin() const { return dims_.data(); }
  const Dim* end() const { return dims_.data() + rank_; }
  std::span<const Dim> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  void push_back(Dim dim) {
    assert(rank_ < kMaxRank);
    dims_[static_cast<std::size_t>(rank_++)] = dim;
  }
  void insert(int axis, Dim dim);
  void erase(int axis);

  /// All dimensions are sizes.
  bool is_static() const;
  /// Number of elements; nothing if a dimension is unknown or the product does not fit. Zeros are
  /// left out of that test, so that no partial product of a shape that passes can overflow.
  std::optional<std::int64_t> element_count() const;
  /// Product of the dimensions [first, last); they must be static and their product must fit.
  std::int64_t product(int first, int last) const;

  /// "[2,?,s3]": unknown sizes as ?, symbols by number.
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<Dim, kMaxRank> dims_{};
  int rank_ = 0;
};

/// The names of a model's symbolic dimensions.
class SymbolTable {
 public:
  /// The symbol with that name, made if it is new.
  Dim intern(const std::string& name);
  /// Name of a symbol; "" for any other dimension.
  const std::string& name(Dim dim) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, Dim> dims_;
};

/// Row-major strides in elements; the shape must be static.
Shape strides_of(const Shape& shape);

/// `axis` counted from the front, or nothing if it is outside [-rank, rank).
std::optional<int> normalize_axis(std::int64_t axis, int rank);

}  // namespace sardonyx
