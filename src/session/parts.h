#pragma once

#include <memory>
#include <vector>

#include "ep/provider.h"
#include "ir/part.h"

namespace sardonyx {

/// One part of a model and what it needs of the whole.
struct CompiledPart {
  /// Keeps the provider alive as long as what it compiled.
  std::shared_ptr<const Provider> provider;
  std::unique_ptr<Compiled> compiled;
  /// Values of the whole graph.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// Parts that run one after the other, each on what those before it made. A result is dropped
/// after the last part that uses it. Results stay in the memory of who made them; where a part
/// needs one elsewhere, one of the `movers` copies it.
std::unique_ptr<Compiled> join_parts(const Graph& whole, std::vector<CompiledPart> parts,
                                     Providers movers);

}  // namespace sardonyx
