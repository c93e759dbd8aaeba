#pragma once

#include <cstdint>
#include <random>

namespace sardonyx {

/// Makes random numbers of this process repeatable from here on. Each thread that runs models has
/// a generator of its own: after a call, the n-th thread to run one gets the n-th stream of the
/// seed, so that a program that runs models one after the other gets the same numbers each time.
/// Thread-safe; runs that are under way finish with their former generator.
void set_random_seed(std::int64_t seed);

/// This thread's generator; seeded by the system as long as nobody sets a seed.
std::mt19937_64& random_generator();

}  // namespace sardonyx
