#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ep/provider.h"
#include "ir/graph.h"
#include "session/environment.h"

namespace sardonyx {

/// One operator of the library outside any model, compiled when it first meets operands of some
/// types. Runs from several threads at once.
class SingleOp {
  struct Private {};

 public:
  SingleOp(Private, std::shared_ptr<Environment> environment, Node node, std::size_t output_count)
      : environment_(std::move(environment)), node_(std::move(node)), output_count_(output_count) {}
  /// `node` tells domain, operator, version and attributes; its inputs and outputs are ignored.
  /// Errors   Unsupported for an operator that the library does not have.
  static Result<std::unique_ptr<SingleOp>> create(std::shared_ptr<Environment> environment,
                                                  Node node, std::size_t output_count);

  /// An input without value is left out. An output that holds a tensor of the right type and
  /// shape is written into; others are filled.
  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& state);

 private:
  struct Variant {
    std::vector<Type> inputs;
    std::unique_ptr<Compiled> compiled;
  };
  Result<Compiled*> variant_for(std::span<const Datum> inputs, int thread_count);

  std::shared_ptr<Environment> environment_;
  Node node_;
  std::size_t output_count_;
  std::mutex mutex_;
  std::vector<Variant> variants_;
};

}  // namespace sardonyx
