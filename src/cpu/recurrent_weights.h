#pragma once

#include <memory>

#include "cpu/kernel_request.h"
#include "cpu/recurrent_direction.h"
#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"
#include "kernels/quantize.h"
#include "weights/store.h"

namespace sardonyx {

/// Packed weights of all directions of a node; null where they are read as they lie.
struct PackedRecurrence {
  std::shared_ptr<const PackedBlob> input;
  std::shared_ptr<const PackedBlob> state;
};

/// Packs float weights [directions, gates, depth], if they are constant and there is room.
Result<PackedRecurrence> pack_float_recurrence(const KernelRequest& request,
                                               const RecurrentPlan& plan);
/// The same for 8-bit weights [directions, depth, gates].
Result<PackedRecurrence> pack_int8_recurrence(const KernelRequest& request);

/// Float weights of one direction, packed or as the model has them.
class FloatWeights final : public DirectionWeights {
 public:
  FloatWeights(const RecurrentPlan& plan, const PackedRecurrence& packed, std::int64_t direction,
               const float* x, const float* input, const float* state, ScratchCursor& scratch);

  bool splits_input() const override { return input_.packed != nullptr; }
  void multiply_input(std::int64_t first, std::int64_t rows, float* out) override;
  void multiply_state(const float* h, std::int64_t begin, std::int64_t end, float* out) override;

 private:
  struct Matrix {
    const float* values = nullptr;
    const float* packed = nullptr;
    std::int64_t depth = 0;
  };
  kernels::GemmArgs arguments(const Matrix& matrix, std::int64_t rows, std::int64_t begin,
                              std::int64_t end) const;

  const RecurrentPlan& plan_;
  const float* x_;
  Matrix input_;
  Matrix state_;
  std::byte* scratch_;
};

/// One 8-bit weight [depth, gates] of one direction.
struct Int8Weight {
  const std::byte* values = nullptr;
  const std::byte* packed = nullptr;
  bool is_signed = true;
  std::int64_t depth = 0;
  const float* scales = nullptr;  // one, or one per gate
  bool scale_per_gate = false;
  const std::uint8_t* zeros = nullptr;  // one, or one per gate, of the weight's type
  bool zero_per_gate = false;
};

/// X as a whole in 8 bits, for all directions.
struct QuantizedInput {
  const std::uint8_t* values = nullptr;
  kernels::Quantization quantization;
};

/// 8-bit weights of one direction, by which X and each state are quantised as a whole.
class Int8Weights final : public DirectionWeights {
 public:
  Int8Weights(const RecurrentPlan& plan, const QuantizedInput& x, const Int8Weight& input,
              const Int8Weight& state, ScratchCursor& scratch);

  bool splits_input() const override { return input_.packed != nullptr; }
  void multiply_input(std::int64_t first, std::int64_t rows, float* out) override;
  void multiply_state(const float* h, std::int64_t begin, std::int64_t end, float* out) override;
  /// To be called before the others, once X is quantised.
  void begin();

 private:
  /// Room for what belongs to one weight.
  struct Buffers {
    float* scales;
    std::int32_t* zeros;
    bool has_zeros;
  };
  Buffers buffers_for(ScratchCursor& scratch) const;
  kernels::Int8MatrixArgs arguments(const Int8Weight& weight, const Buffers& buffers,
                                    std::int64_t rows) const;
  void set_zeros(const Int8Weight& weight, Buffers& buffers) const;
  void set_scales(const Int8Weight& weight, const Buffers& buffers, float scale) const;

  const RecurrentPlan& plan_;
  const QuantizedInput& x_;
  Int8Weight input_;
  Int8Weight state_;
  Buffers input_buffers_;
  Buffers state_buffers_;
  std::uint8_t* quantized_state_;
  std::byte* scratch_;
};

/// The `direction`th part of input `index`, whose scale and zero point follow at `scale_index`.
Int8Weight int8_weight(const KernelContext& context, std::size_t index, std::size_t scale_index,
                       const PackedBlob* packed, std::int64_t direction);

}  // namespace sardonyx
