#include <array>
#include <string>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// Picks elements of type T, which stands for all types of its size.
template <typename T>
void select(const BroadcastPlan& plan, const Tensor& condition, const Tensor& x, const Tensor& y,
            Tensor& z) {
  const auto* chosen = reinterpret_cast<const std::uint8_t*>(condition.data());
  const T* from_x = reinterpret_cast<const T*>(x.data());
  const T* from_y = reinterpret_cast<const T*>(y.data());
  T* to = reinterpret_cast<T*>(z.mutable_data());
  const std::array<std::int64_t, 3> steps = {plan.moves[0], plan.moves[1], plan.moves[2]};
  for_each_run(plan, [&](std::int64_t at_z, const auto& at) {
    const std::uint8_t* c = chosen + at[0];
    const T* a = from_x + at[1];
    const T* b = from_y + at[2];
    T* out = to + at_z;
    for (std::int64_t i = 0; i < plan.run; ++i) {
      out[i] = c[i * steps[0]] != 0 ? a[i * steps[1]] : b[i * steps[2]];
    }
  });
}

Status evaluate_where(EvalContext& context) {
  const Tensor& condition = context.tensor(0);
  const Tensor& x = context.tensor(1);
  const Tensor& y = context.tensor(2);
  SDX_ASSIGN(Tensor * z, context.allocate(0));
  if (z == nullptr) return {};
  const std::array shapes = {condition.shape(), x.shape(), y.shape()};
  const BroadcastPlan plan = plan_broadcast(z->shape(), shapes);
  if (x.dtype() == DType::String) {
    select<std::string>(plan, condition, x, y, *z);
    return {};
  }
  switch (dtype_bits(x.dtype())) {
    case 8: select<std::uint8_t>(plan, condition, x, y, *z); return {};
    case 16: select<std::uint16_t>(plan, condition, x, y, *z); return {};
    case 32: select<std::uint32_t>(plan, condition, x, y, *z); return {};
    case 64: select<std::uint64_t>(plan, condition, x, y, *z); return {};
    case 128: select<std::array<std::uint64_t, 2>>(plan, condition, x, y, *z); return {};
    default: return context.error("Where does not take tensor({})", dtype_name(x.dtype()));
  }
}

constexpr OpSchema kRows[] = {
    {"", "Where", 9, {"BTT>T", kAllClassic}, "", infer_broadcast, evaluate_where},
    {"", "Where", 16, {"BTT>T", kAllClassic | set_of(DType::BFloat16)}, "", infer_broadcast,
     evaluate_where},
};

}  // namespace

std::span<const OpSchema> where_schemas() { return kRows; }

}  // namespace sardonyx
