#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"

namespace sardonyx {

/// The processors (from 0) that each worker of a pool may use.
using Affinities = std::vector<std::vector<int>>;

/// Reads "1,2;3-4": workers are parted by semicolons, processors count from 1.
/// Errors   InvalidArgument for anything else.
Result<Affinities> parse_affinities(std::string_view text);

/// Makes threads of the standard library, the first bound to the first set of processors and so on;
/// further ones run where the system puts them.
ThreadFunctions bound_threads(Affinities affinities);

}  // namespace sardonyx
