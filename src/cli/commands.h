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

struct CompileCommand {
  std::vector<std::string> paths;
  std::string folder;
  bool embed = false;
  /// "none", "basic", "extended", "all"; "": all on the CPU, none for other providers.
  std::string level;
  /// "", "external" or "all": weights that stay in the source.
  std::string weightless;
  /// Libraries to register, "NAME=FILE".
  std::vector<std::string> plugins;
  /// Names of providers in order; empty: those of the plugins.
  std::vector<std::string> providers;
  /// "KEY=VALUE" each.
  std::vector<std::string> provider_options;
  std::vector<std::string> entries;
  bool force = false;
  bool json = false;
};

struct ExplainCommand {
  std::string path;
  /// Values of the options of placement; "" for those that are not set.
  std::string rules;
  std::string names;
  std::string annotations;
  std::string budget;
  std::string plan;
  /// A file that describes devices.
  std::string devices;
  /// As of CompileCommand.
  std::vector<std::string> plugins;
  std::vector<std::string> providers;
  std::vector<std::string> provider_options;
  std::vector<std::string> entries;
  /// "SYMBOL=SIZE" each.
  std::vector<std::string> dims;
  bool suggest = false;
  bool nodes = false;
  bool json = false;
  /// Files to write; "" for none.
  std::string html;
  std::string save_plan;
  bool force = false;
};

struct VerifyCommand {
  std::vector<std::string> paths;
  bool full = false;
  bool json = false;
};

struct CacheCommand {
  std::string folder;
  bool full = false;
  bool dry_run = false;
  bool json = false;
};

/// One file each: run once, show what is in a file, measure, compile ahead of time, say what runs
/// where, check compiled models, keep a folder of them.
Status run(const RunCommand& command);
Status inspect(const InspectCommand& command);
Status bench(const BenchCommand& command);
Status compile(const CompileCommand& command);
Status explain(const ExplainCommand& command);
Status verify(const VerifyCommand& command);
Status list_cache(const CacheCommand& command);
Status verify_cache(const CacheCommand& command);
Status collect_cache(const CacheCommand& command);

}  // namespace sardonyx::cli
