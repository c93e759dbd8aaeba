#include "cpu/registry.h"

#include <map>
#include <vector>

#include "cpu/node_kernel.h"

namespace sardonyx {

namespace {

/// The one table: every family of kernels. Earlier families are asked first.
constexpr std::span<const KernelRow> (*kFamilies[])() = {
    cast_kernels,           control_flow_kernels, concat_kernels,    conv_kernels,
    conv_transpose_kernels, elementwise_kernels,  int8_conv_kernels, int8_matmul_kernels,
    matmul_nbits_kernels,   matmul_kernels,       pool_kernels,      quantize_kernels,
    recurrent_kernels,      row_kernels,          transpose_kernels,
};

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, std::vector<const KernelRow*>>& kernel_index() {
  static const auto* index = [] {
    auto* map = new std::map<Key, std::vector<const KernelRow*>>;
    for (const auto family : kFamilies) {
      for (const KernelRow& row : family()) (*map)[{row.domain, row.name}].push_back(&row);
    }
    return map;
  }();
  return *index;
}

/// Facts that hold for operators without a row of their own.
unsigned evaluator_flags(const OpSchema& schema) {
  unsigned flags = Instruction::kPlain;
  if (schema.has(kNondeterministic)) flags |= Instruction::kNeverKnown;
  if (!schema.domain.empty()) return flags;
  if (schema.name == "Shape" || schema.name == "Size") flags |= Instruction::kShapesOnly;
  for (const std::string_view name : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}) {
    if (schema.name == name) flags |= Instruction::kView;
  }
  return flags;
}

bool is_view_of_tensor(const KernelRequest& request) {
  return request.type(0).is_tensor() && request.dtype(0) != DType::String &&
         request.node().outputs.size() == 1;
}

}  // namespace

Result<ChosenKernel> choose_kernel(const KernelRequest& request) {
  const OpSchema& schema = request.schema();
  if (const auto found = kernel_index().find({schema.domain, schema.name});
      found != kernel_index().end()) {
    for (const KernelRow* row : found->second) {
      if (row->since > schema.since) continue;
      SDX_ASSIGN(auto kernel, row->create(request));
      if (kernel != nullptr) return ChosenKernel{std::move(kernel), row->flags};
    }
  }
  SDX_ASSIGN(auto kernel, create_evaluate_kernel(request));
  unsigned flags = evaluator_flags(schema);
  if ((flags & Instruction::kView) != 0 && !is_view_of_tensor(request)) {
    flags &= ~static_cast<unsigned>(Instruction::kView);
  }
  return ChosenKernel{std::move(kernel), flags};
}

}  // namespace sardonyx
