#pragma once

#include <memory>

#include "ep/provider.h"
#include "weights/store.h"

namespace sardonyx {

/// The built-in provider of the processor this runs on.
std::unique_ptr<Provider> make_cpu_provider(std::shared_ptr<WeightStore> weights);

}  // namespace sardonyx
