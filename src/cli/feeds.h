#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/model.h"

namespace sardonyx::cli {

/// Options of commands that run a model.
struct FeedOptions {
  /// "NAME=FILE.npy".
  std::vector<std::string> files;
  /// A .npz or .json file with several inputs; "" = none.
  std::string bundle;
  /// "NAME=SIZE": a symbolic dimension, or "INPUT:AXIS".
  std::vector<std::string> dims;
  std::int64_t seed = 0;

  /// Sizes by name, from `dims`.
  std::map<std::string, std::int64_t> sizes() const;
};

/// Whether the text is NAME=FILE, or NAME=SIZE with a size of 0 or more.
bool is_file_entry(const std::string& entry);
bool is_dim_entry(const std::string& entry);

/// What one run is fed.
struct Feeds {
  std::vector<std::string> names;
  std::vector<Array> arrays;
  /// "x.npy", "in.npz" or "generated".
  std::vector<std::string> sources;
  std::vector<Value> values;
};

/// Inputs from the files, and generated ones for the rest: shapes as declared, sizes that are not
/// fixed 1 unless given; integers 0 or 1, floats from the standard normal distribution, empty
/// texts. The same seed gives the same numbers everywhere.
/// Errors   name the file, the input, what was expected and found.
Result<Feeds> make_feeds(const Model& model, const FeedOptions& options);

/// After a failed run: that inputs were generated, and which sizes could be given; "" when none.
std::string explain_generated(const Model& model, const Feeds& feeds);

}  // namespace sardonyx::cli
