#pragma once

#include <span>

#include "cpu/kernel_request.h"

namespace sardonyx {

/// Rows of one family; each is defined in the file of that name (registry.cpp lists them).
std::span<const KernelRow> cast_kernels();
std::span<const KernelRow> control_flow_kernels();
std::span<const KernelRow> concat_kernels();
std::span<const KernelRow> conv_kernels();
std::span<const KernelRow> conv_transpose_kernels();
std::span<const KernelRow> elementwise_kernels();
std::span<const KernelRow> int8_conv_kernels();
std::span<const KernelRow> int8_matmul_kernels();
std::span<const KernelRow> matmul_nbits_kernels();
std::span<const KernelRow> matmul_kernels();
std::span<const KernelRow> pool_kernels();
std::span<const KernelRow> quantize_kernels();
std::span<const KernelRow> recurrent_kernels();
std::span<const KernelRow> row_kernels();
std::span<const KernelRow> transpose_kernels();

/// What serves a node: a kernel and the facts that planning may use about it.
struct ChosenKernel {
  std::unique_ptr<Kernel> kernel;
  unsigned flags = Instruction::kPlain;
};

/// The first row that serves the node, or the plain evaluator.
Result<ChosenKernel> choose_kernel(const KernelRequest& request);

}  // namespace sardonyx
