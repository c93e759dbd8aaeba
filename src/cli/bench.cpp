// sardonyx bench: load, latency and memory of a model, for one or more numbers of threads.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"
#include "cli/feeds.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/summary.h"

namespace sardonyx::cli {

namespace {

Result<Json> process_memory() {
  SDX_ASSIGN(const Json memory, describe(own_api().DescribeMemory));
  return memory["process"];
}

/// The time that a share of the runs does not exceed; `times` is sorted.
double percentile(const std::vector<double>& times, double share) {
  const auto rank = std::ceil(share * static_cast<double>(times.size()));
  return times[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

/// Times of the runs in milliseconds, sorted.
Result<std::vector<double>> time_runs(const BenchCommand& command, const Model& model,
                                      const Feeds& feeds, const OrtRunOptions* options,
                                      int threads) {
  Progress progress(fmt::format("{}, {} threads", command.path, threads));
  std::vector<double> times;
  const double start = now_ms();
  const double limit_ms = command.seconds * 1000;
  while (true) {
    const double before = now_ms();
    const auto count = static_cast<int>(times.size());
    const double done = command.runs > 0 ? static_cast<double>(count) / command.runs
                                         : (before - start) / limit_ms;
    if (done >= 1 && count > 0) break;
    progress.update(done, fmt::format("{} runs", count));
    SDX_TRY(run_model(model, feeds.names, feeds.values, options).take_status());
    times.push_back(now_ms() - before);
  }
  std::sort(times.begin(), times.end());
  return times;
}

Json growth(const Json& before, const Json& after) {
  Json json = Json::object();
  for (const char* key : {"rss_bytes", "pss_bytes", "anonymous_bytes"}) {
    if (!before.contains(key) || !after.contains(key)) continue;
    json[key] = after[key].get<std::int64_t>() - before[key].get<std::int64_t>();
  }
  return json;
}

Result<Json> measure(const BenchCommand& command, int threads) {
  SDX_TRY(check(own_api().SetRandomSeed(command.feeds.seed)));
  SDX_ASSIGN(Env env, make_env());
  SDX_ASSIGN(const Json memory_before, process_memory());
  SDX_ASSIGN(const Model model, load_model(std::move(env), command.path, threads));
  SDX_ASSIGN(const Json memory_loaded, process_memory());
  SDX_ASSIGN(const Feeds feeds, make_feeds(model, command.feeds));
  OrtRunOptions* raw = nullptr;
  SDX_TRY(check(api().CreateRunOptions(&raw)));
  const RunOptions options(raw);
  const InterruptScope scope(raw);
  const double start = now_ms();
  SDX_TRY(run_model(model, feeds.names, feeds.values, raw)
              .take_status()
              .with(fmt::format("running '{}'{}", command.path, explain_generated(model, feeds))));
  const double first_ms = now_ms() - start;
  for (int i = 0; i < command.warmup; ++i) {
    SDX_TRY(run_model(model, feeds.names, feeds.values, raw).take_status());
  }
  SDX_ASSIGN(const std::vector<double> times, time_runs(command, model, feeds, raw, threads));
  SDX_ASSIGN(const Json memory_after, process_memory());
  double sum = 0;
  for (const double time : times) sum += time;
  const double mean = sum / static_cast<double>(times.size());
  return Json{{"threads", threads},
              {"load_ms", model.load_ms},
              {"first_run_ms", first_ms},
              {"runs", times.size()},
              {"min_ms", times.front()},
              {"median_ms", percentile(times, 0.5)},
              {"p90_ms", percentile(times, 0.9)},
              {"p99_ms", percentile(times, 0.99)},
              {"mean_ms", mean},
              {"memory_growth",
               {{"load", growth(memory_before, memory_loaded)},
                {"load_and_runs", growth(memory_before, memory_after)}}}};
}

/// What the child writes: the measurement, or {"error"}.
std::string measured_text(const BenchCommand& command, int threads) {
  auto measured = measure(command, threads);
  const Json report = measured.ok() ? *measured : Json{{"error", measured.status().text()}};
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

/// Measures in a process of its own.
Result<Json> measure_apart(const BenchCommand& command, int threads) {
  int ends[2];
  std::fflush(nullptr);
  if (pipe(ends) != 0) return failure("no pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return failure("no process: {}", std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    write_all(ends[1], measured_text(command, threads));
    std::_Exit(0);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int outcome = 0;
  while (waitpid(child, &outcome, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(outcome)) {
    return failure("measuring was ended by signal {}", WTERMSIG(outcome));
  }
  Json report = Json::parse(text, nullptr, false);
  if (!report.is_object()) return Status("measuring gave no result");
  if (report.contains("error")) return Status(report["error"].get<std::string>());
  return report;
}

void print_row(const Json& row) {
  const auto number = [&](const char* key) { return row[key].get<double>(); };
  fmt::print("{:>7} {:>9.1f} {:>9.2f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>7}",
             row["threads"].dump(), number("load_ms"), number("first_run_ms"), number("min_ms"),
             number("median_ms"), number("p90_ms"), number("p99_ms"), row["runs"].dump());
  const Json& memory = row["memory_growth"]["load_and_runs"];
  for (const char* key : {"rss_bytes", "pss_bytes", "anonymous_bytes"}) {
    fmt::print(" {:>9}", memory.contains(key) ? bytes_text(memory[key].get<double>()) : "-");
  }
  fmt::print("\n");
}

}  // namespace

Status bench(const BenchCommand& command) {
  std::vector<int> counts = command.threads;
  if (counts.empty()) {
    counts.push_back(static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  }
  Json results = Json::array();
  for (const int threads : counts) {
    SDX_ASSIGN(Json row, measure_apart(command, threads));
    if (!command.json && results.empty()) {
      fmt::print("{}: times in ms, growth of memory by load and runs\n", command.path);
      fmt::print("{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}\n", "threads",
                 "load", "first run", "min", "median", "p90", "p99", "runs", "RSS", "PSS",
                 "anonymous");
    }
    if (!command.json) print_row(row);
    results.push_back(std::move(row));
  }
  if (command.json) {
    SDX_ASSIGN(const Json build, describe(own_api().DescribeBuild));
    const Json report = {{"model", command.path}, {"build", build}, {"results", results}};
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
  }
  return {};
}

}  // namespace sardonyx::cli
