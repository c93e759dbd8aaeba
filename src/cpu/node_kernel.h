#pragma once

#include <vector>

#include "cpu/kernel_request.h"
#include "exec/kernel.h"
#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

/// A kernel whose output types follow from the operator's row. Fast kernels derive from it and
/// add run() (and scratch_bytes()).
class NodeKernel : public Kernel {
 public:
  explicit NodeKernel(const KernelRequest& request);

  Status infer(std::span<const Type* const> types, std::span<const Tensor* const> data,
               std::span<Type> outputs) const override;

 protected:
  const Node& node() const { return node_; }
  const OpSchema& schema() const { return schema_; }
  const Attributes& attributes() const { return node_.attributes; }

 private:
  Status check_inputs(std::span<const Type* const> types) const;

  Node node_;
  const OpSchema& schema_;
  /// Output element types when load-time inference told all of them; else empty, and the signature
  /// is checked again at run time.
  std::vector<Type> output_types_;
  /// Element types that the kernel was chosen for; Undefined where nothing was known.
  std::vector<DType> input_dtypes_;
};

/// The plain evaluator as a kernel: serves every operator that has no faster one.
Result<std::unique_ptr<Kernel>> create_evaluate_kernel(const KernelRequest& request);

}  // namespace sardonyx
