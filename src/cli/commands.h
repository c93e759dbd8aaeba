#pragma once

#include <string>
#include <vector>

#include "cli/feeds.h"
#include "cli/outcome.h"

namespace sardonyx::cli {

struct RunCommand {
  std::string path;
  FeedOptions feeds;
  std::string folder;
  bool force = false;
  int threads = 0;
  bool json = false;
};

struct InspectCommand {
  std::string path;
  bool json = false;
};

struct BenchCommand {
  std::string path;
  FeedOptions feeds;
  /// Empty: all processors.
  std::vector<int> threads;
  /// 0: as many as fit in `seconds`.
  int runs = 0;
  double seconds = 3;
  int warmup = 3;
  bool json = false;
};

/// One file each: run once, show what is in a file, measure.
Status run(const RunCommand& command);
Status inspect(const InspectCommand& command);
Status bench(const BenchCommand& command);

}  // namespace sardonyx::cli
