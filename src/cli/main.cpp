// The command `sardonyx`: arguments, suggestions for misspelt ones, exit status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/interrupt.h"

namespace sardonyx::cli {

/// What main() runs once the arguments are understood.
using Action = std::function<Status()>;

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongArguments = 2;

constexpr const char* kMainExamples = R"(Examples:
  sardonyx inspect model.onnx                   what is in it
  sardonyx run model.onnx                       does it run? with generated inputs
  sardonyx run model.onnx -i x=x.npy -o out     with an input of yours, outputs to files
  sardonyx bench model.onnx -t 1,2              how fast is it
  sardonyx compile a.onnx b.onnx -o compiled    ahead of time, with one copy of the weights
  sardonyx explain model.onnx                   what runs where, and why
  sardonyx verify compiled/a_ctx.onnx           can it be used here, and is it up to date
  sardonyx cache ls compiled                    a folder of compiled models
"sardonyx COMMAND --help" explains each command with examples.
Exit status: 0 done, 1 failed, 2 wrong arguments.)";

/// Checks for the parser of arguments: a message, or "" when all is well.
std::string check_file_entry(const std::string& entry) {
  return is_file_entry(entry) ? "" : fmt::format("expected NAME=FILE.npy, found '{}'", entry);
}

std::string check_dim_entry(const std::string& entry) {
  return is_dim_entry(entry)
             ? ""
             : fmt::format("expected NAME=SIZE with a size of 0 or more, found '{}'", entry);
}

void add_feed_options(CLI::App& command, FeedOptions& options) {
  command.add_option("-i,--input", options.files, "Input NAME from a .npy file; may be repeated")
      ->type_name("NAME=FILE")
      ->check(&check_file_entry)
      ->allow_extra_args(false);
  command
      .add_option("--inputs", options.bundle, "Several inputs by name, from a .npz or .json file")
      ->type_name("FILE");
  command
      .add_option("-d,--dim", options.dims,
                  "Size of a free dimension of generated inputs, by its symbol (batch=4) or place "
                  "(x:0=4); 1 where nothing is said; may be repeated")
      ->type_name("NAME=SIZE")
      ->check(&check_dim_entry)
      ->allow_extra_args(false);
  command
      .add_option("--seed", options.seed,
                  "Seed of generated inputs and of random operators (default 0)")
      ->type_name("NUMBER");
}

constexpr const char* kRunExamples = R"(Examples:
  sardonyx run model.onnx                             generated inputs, a summary of the outputs
  sardonyx run model.onnx -d batch=4 -d x:2=320       sizes of free dimensions
  sardonyx run model.onnx -i x=image.npy -i n=n.npy   inputs from numpy.save
  sardonyx run model.onnx --inputs feed.npz           inputs from numpy.savez
  sardonyx run model.onnx --inputs feed.json          {"x": [[1, 2], [3, 4]], "text": ["a", "b"]}
  sardonyx run model.onnx --seed 7                    other generated numbers, repeatable
  sardonyx run model.onnx -o results                  results/NAME.npy for each output
  sardonyx run model.onnx -o results --force          the same, over files of an earlier run
  sardonyx run model.onnx --threads 2 --json          two threads; the summary as JSON
Inputs that are not given are generated. Exit status: 0 done, 1 failed, 2 wrong arguments.)";

void add_run(CLI::App& app, Action& action) {
  auto command = std::make_shared<RunCommand>();
  CLI::App& sub = *app.add_subcommand("run", "Run a model once");
  sub.add_option("MODEL", command->path, "ONNX model")->required()->type_name("");
  add_feed_options(sub, command->feeds);
  sub.add_option("-o,--output", command->folder, "Write each output to FOLDER/NAME.npy")
      ->type_name("FOLDER");
  sub.add_flag("--force", command->force, "Let --output overwrite files");
  sub.add_option("--threads", command->threads, "Threads of the run (default: all processors)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  sub.add_flag("--json", command->json, "Print the summary as JSON");
  sub.footer(kRunExamples);
  sub.callback([command, &action] { action = [command] { return run(*command); }; });
}

constexpr const char* kInspectExamples = R"(Examples:
  sardonyx inspect model.onnx                   inputs, outputs, operators, weights, metadata
  sardonyx inspect model.onnx --json            the same for programs
  sardonyx inspect model.onnx --json | jq .operators
  sardonyx inspect model_ctx.onnx               of a compiled one: its data, and who shares it too
  sardonyx inspect sardonyx_weights.bin         a container of compiled models
Exit status: 0 done, 1 failed, 2 wrong arguments.)";

void add_inspect(CLI::App& app, Action& action) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App& sub = *app.add_subcommand("inspect", "Show what a model file holds");
  sub.add_option("MODEL", command->path, "ONNX model, or a container of compiled models")
      ->required()
      ->type_name("");
  sub.add_flag("--json", command->json, "Print JSON");
  sub.footer(kInspectExamples);
  sub.callback([command, &action] { action = [command] { return inspect(*command); }; });
}

constexpr const char* kBenchExamples = R"(Examples:
  sardonyx bench model.onnx                     three seconds of runs on all processors
  sardonyx bench model.onnx -t 1,2              on one thread, then on two
  sardonyx bench model.onnx -n 200 --warmup 20  200 runs, after 20 that do not count
  sardonyx bench model.onnx --seconds 10        as many runs as fit in ten seconds
  sardonyx bench model.onnx -d batch=8          sizes of free dimensions
  sardonyx bench model.onnx -i x=x.npy          inputs from files (also --inputs, see run --help)
  sardonyx bench model.onnx --seed 7            other generated inputs
  sardonyx bench model.onnx --json              for programs
Each number of threads is measured in a process of its own, so that memory is what this model
takes. "first run" includes work that loading put off. Exit status: 0 done, 1 failed, 2 wrong
arguments.)";

void add_bench(CLI::App& app, Action& action) {
  auto command = std::make_shared<BenchCommand>();
  CLI::App& sub = *app.add_subcommand("bench", "Measure load, latency and memory of a model");
  sub.add_option("MODEL", command->path, "ONNX model")->required()->type_name("");
  sub.add_option("-t,--threads", command->threads, "Numbers of threads (default: all processors)")
      ->type_name("N,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  CLI::Option* runs = sub.add_option("-n,--runs", command->runs, "Number of runs to measure")
                          ->type_name("N")
                          ->check(CLI::Range(1, 1000000000));
  sub.add_option("--seconds", command->seconds, "Time to measure for (default 3)")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0))
      ->excludes(runs);
  sub.add_option("--warmup", command->warmup, "Runs before, beside the first (default 3)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
  add_feed_options(sub, command->feeds);
  sub.add_flag("--json", command->json, "Print JSON");
  sub.footer(kBenchExamples);
  sub.callback([command, &action] { action = [command] { return bench(*command); }; });
}

constexpr const char* kCompileExamples = R"(Examples:
  sardonyx compile a.onnx b.onnx -o compiled    a_ctx.onnx, b_ctx.onnx and one sardonyx_weights.bin
  sardonyx compile c.onnx -o compiled           another one later: weights that are there are shared
  sardonyx compile a.onnx -o compiled --force   again, over the former one
  sardonyx compile a.onnx -o compiled --embed   one file with everything
  sardonyx compile a.onnx -o compiled --weightless            weights stay in a.onnx
  sardonyx compile a.onnx -o compiled --weightless=external   those of its external data do
  sardonyx compile a.onnx -o compiled --level basic           fewer graph passes before
  sardonyx compile a.onnx -o out --plugin QNNExecutionProvider=libonnxruntime_providers_qnn.so \
      --provider-option backend_type=htp        by a vendor's compiler
  sardonyx compile a.onnx -o out --plugin ep=libep.so --provider ep
  sardonyx compile a.onnx -o out -C sardonyx.compile_cpu_parts=1   a session entry
  sardonyx compile a.onnx -o compiled --json    what was written, for programs
A model that is being compiled when Ctrl-C comes leaves nothing behind; those before it are done.
Exit status: 0 done, 1 failed, 2 wrong arguments.)";

/// "" for KEY=VALUE.
std::string check_entry(const std::string& entry) {
  const std::size_t at = entry.find('=');
  return at != std::string::npos && at > 0
             ? ""
             : fmt::format("expected KEY=VALUE, found '{}'", entry);
}

template <typename Command>
void add_providers(CLI::App& sub, Command& command, const char* providers_help) {
  const auto add = [&](const char* name, std::vector<std::string>& texts, const char* help,
                       const char* type) {
    return sub.add_option(name, texts, help)->type_name(type)->allow_extra_args(false);
  };
  add("--plugin", command.plugins, "Register a provider library; may be repeated", "NAME=FILE")
      ->check(&check_entry);
  add("--provider", command.providers, providers_help, "NAME");
  add("--provider-option", command.provider_options, "Option of the providers; may be repeated",
      "KEY=VALUE")
      ->check(&check_entry);
  add("-C,--config", command.entries, "Session configuration entry; may be repeated", "KEY=VALUE")
      ->check(&check_entry);
}

void add_compile(CLI::App& app, Action& action) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App& sub = *app.add_subcommand("compile", "Compile models ahead of time into one folder");
  sub.add_option("MODEL", command->paths, "ONNX models")->required()->type_name("");
  sub.add_option("-o,--output", command->folder, "Folder of the compiled models")
      ->required()
      ->type_name("FOLDER");
  sub.add_flag("--embed", command->embed, "Put the data into the models, not into a file beside");
  sub.add_option("--level", command->level,
                 "Graph passes before (default: all, or none for providers of vendors)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"none", "basic", "extended", "all"}));
  sub.add_flag("--weightless{all}", command->weightless,
               "Leave weights in the source: external (those of external data) or all")
      ->check(CLI::IsMember({"external", "all"}));
  add_providers(
      sub, *command,
      "Compile with this provider (default: those of --plugin, else the CPU); may be repeated");
  sub.add_flag("--force", command->force, "Overwrite compiled models");
  sub.add_flag("--json", command->json, "Print JSON");
  sub.footer(kCompileExamples);
  sub.callback([command, &action] { action = [command] { return compile(*command); }; });
}

constexpr const char* kExplainExamples = R"(Examples:
  sardonyx explain model.onnx                   devices, layers, rules, copies, warnings
  sardonyx explain model.onnx --suggest         patterns that rules can use, layer by layer
  sardonyx explain model.onnx --devices d.json --rules 'gpu:0(layers.[0-7]/); gpu:1(layers.[8-15]/)'
  sardonyx explain model.onnx --devices d.json --budget 'gpu:0(8GiB), cpu(24GiB)'
  sardonyx explain model.onnx --plugin ep=libep.so --rules 'ep(layers.0/)' --nodes
  sardonyx explain model.onnx -d batch=8        with sizes of free dimensions
  sardonyx explain model.onnx --html plan.html  a page to look at, in one file
  sardonyx explain model.onnx --save-plan plan.json   a plan to edit ...
  sardonyx explain model.onnx --plan plan.json  ... to check, and to load by
                                                sardonyx.placement_file=plan.json
  sardonyx explain model.onnx --json | jq .layers
A file of devices: [{"type": "gpu", "vendor": "NVIDIA", "memory_bytes": 8589934592}, {"type":
"npu", "operators": ["MatMul", "Add"]}]. Nothing is compiled, and weights are not read.
Exit status: 0 done, 1 failed, 2 wrong arguments.)";

void add_placement_options(CLI::App& sub, ExplainCommand& command) {
  sub.add_option("--rules", command.rules, "Rules as of sardonyx.placement")->type_name("TEXT");
  CLI::Option* names =
      sub.add_option("--names", command.names, "Rules as of session.name_based_layer_assignment")
          ->type_name("TEXT");
  sub.add_option("--annotations", command.annotations,
                 "Rules as of session.layer_assignment_settings")
      ->type_name("TEXT")
      ->excludes(names);
  sub.add_option("--budget", command.budget,
                 "Memory of devices, as of session.resource_partitioning_settings")
      ->type_name("TEXT");
  sub.add_option("--plan", command.plan, "A plan file in place of rules")->type_name("FILE");
  sub.add_option("--devices", command.devices, "Plan for the devices that this file describes")
      ->type_name("FILE");
}

/// "" for SYMBOL=SIZE.
std::string check_symbol_entry(const std::string& entry) {
  const std::string_view size = std::string_view(entry).substr(entry.find('=') + 1);
  const bool is_good = is_dim_entry(entry) && entry.find(':') == std::string::npos;
  return is_good && size.size() <= 18
             ? ""
             : fmt::format("expected SYMBOL=SIZE, found '{}'", entry);
}

void add_explain(CLI::App& app, Action& action) {
  auto command = std::make_shared<ExplainCommand>();
  CLI::App& sub = *app.add_subcommand("explain", "Say which nodes would run where, and why");
  sub.add_option("MODEL", command->path, "ONNX model")->required()->type_name("");
  add_placement_options(sub, *command);
  add_providers(sub, *command,
                "Use this provider (default: those of --plugin); may be repeated");
  sub.add_option("-d,--dim", command->dims, "Size of a free dimension; may be repeated")
      ->type_name("SYMBOL=SIZE")
      ->check(&check_symbol_entry)
      ->allow_extra_args(false);
  sub.add_flag("--suggest", command->suggest, "Print patterns that rules can use, and end");
  sub.add_flag("--nodes", command->nodes, "Print every node");
  sub.add_flag("--json", command->json, "Print JSON");
  sub.add_option("--html", command->html, "Write a page that shows it")->type_name("FILE");
  sub.add_option("--save-plan", command->save_plan, "Write a plan file")->type_name("FILE");
  sub.add_flag("--force", command->force, "Overwrite files of --html and --save-plan");
  sub.footer(kExplainExamples);
  sub.callback([command, &action] { action = [command] { return explain(*command); }; });
}

constexpr const char* kVerifyExamples = R"(Examples:
  sardonyx verify a_ctx.onnx           header, index, build, instruction set; states of the sources
  sardonyx verify a_ctx.onnx --full    all bytes of its data and of the sources, too
  sardonyx verify compiled/*_ctx.onnx compiled/sardonyx_weights.bin
  sardonyx verify a_ctx.onnx --json    for programs
What differs is named. Exit status: 0 usable, 1 not usable, or no compiled model, 2 wrong
arguments.)";

void add_verify(CLI::App& app, Action& action) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App& sub = *app.add_subcommand("verify", "Check compiled models without loading them");
  sub.add_option("MODEL", command->paths, "Compiled models, or containers of them")
      ->required()
      ->type_name("");
  sub.add_flag("--full", command->full, "Read and check all bytes");
  sub.add_flag("--json", command->json, "Print JSON");
  sub.footer(kVerifyExamples);
  sub.callback([command, &action] { action = [command] { return verify(*command); }; });
}

constexpr const char* kCacheExamples = R"(Examples:
  sardonyx cache ls compiled                models, containers, who shares what, what is unused
  sardonyx cache ls compiled --json         the same for programs
  sardonyx cache verify compiled --full     check everything; without --full headers and sources
  sardonyx cache gc compiled --dry-run      what would be dropped
  sardonyx cache gc compiled                drop graphs that no model of the folder names
gc changes nothing when a model in the folder cannot be read; programs that use the folder are not
disturbed. Exit status: 0 done, 1 failed or problems found, 2 wrong arguments.)";

void add_cache(CLI::App& app, Action& action) {
  auto command = std::make_shared<CacheCommand>();
  CLI::App& sub = *app.add_subcommand("cache", "List, check and clean a folder of compiled models");
  sub.require_subcommand(1);
  sub.footer(kCacheExamples);
  using Function = Status (*)(const CacheCommand&);
  const auto add = [&](const char* name, const char* help, Function function) {
    CLI::App* part = sub.add_subcommand(name, help);
    part->add_option("FOLDER", command->folder, "Folder of compiled models")
        ->required()
        ->type_name("");
    part->add_flag("--json", command->json, "Print JSON");
    part->footer(kCacheExamples);
    part->callback([command, &action, function] {
      action = [command, function] { return function(*command); };
    });
    return part;
  };
  add("ls", "What is there", &list_cache);
  add("verify", "Check everything that is there", &verify_cache)
      ->add_flag("--full", command->full, "Read and check all bytes");
  add("gc", "Drop what no model of the folder uses", &collect_cache)
      ->add_flag("--dry-run", command->dry_run, "Only say what would be dropped");
}

std::string version_text() {
  std::string isa = "?";
  if (const auto build = describe(own_api().DescribeBuild); build.ok()) {
    isa = (*build)["isa"]["active"].get<std::string>();
  }
  return fmt::format("sardonyx {} (interface of ONNX Runtime {}, {})", own_api().GetVersionString(),
                     OrtGetApiBase()->GetVersionString(), isa);
}

/// "--threads" for an option that a command has; what follows '=' is cut.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// What is wrong with the first argument that nobody knows; "" when all are known.
std::string explain_unknown(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App& current = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  for (const std::string& extra : app.remaining(true)) {
    const bool is_option = extra.size() > 1 && extra[0] == '-';
    const std::string word = extra.substr(0, extra.find('='));
    const std::string guess =
        nearest(word, is_option ? option_names(current)
                      : chosen.empty() ? commands : std::vector<std::string>());
    const char* kind = is_option ? "option" : chosen.empty() ? "command" : "argument";
    return fmt::format("unknown {} '{}'{}", kind, word,
                       guess.empty() ? "" : fmt::format("; did you mean '{}'?", guess));
  }
  return "";
}

int report_wrong_arguments(const CLI::App& app, const CLI::ParseError& error) {
  const std::string unknown = explain_unknown(app);
  const auto chosen = app.get_subcommands();
  const std::string help =
      chosen.empty() ? "sardonyx --help" : fmt::format("sardonyx {} --help", chosen[0]->get_name());
  fmt::print(stderr, "sardonyx: {}\nSee \"{}\".\n", unknown.empty() ? error.what() : unknown, help);
  return kWrongArguments;
}

int run_action(const Action& action) {
  const Status status = action();
  if (std::fflush(stdout) != 0) {
    fmt::print(stderr, "sardonyx: cannot write the output\n");
    return kFailed;
  }
  if (status.ok()) return kDone;
  if (interrupted()) {
    fmt::print(stderr, "sardonyx: interrupted\n");
  } else {
    fmt::print(stderr, "sardonyx: {}\n", status.text());
  }
  return kFailed;
}

int run_command(int argument_count, char** arguments) {
  CLI::App app("Runs, inspects, measures and compiles ONNX models.", "sardonyx");
  app.set_version_flag("--version", version_text, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kMainExamples);
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);
  Action action;
  add_run(app, action);
  add_inspect(app, action);
  add_bench(app, action);
  add_compile(app, action);
  add_explain(app, action);
  add_verify(app, action);
  add_cache(app, action);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& success) {
    app.exit(success);
    return kDone;
  } catch (const CLI::ParseError& error) {
    return report_wrong_arguments(app, error);
  }
  catch_interrupts();
  return run_action(action);
}

}  // namespace

}  // namespace sardonyx::cli

int main(int argument_count, char** arguments) {
  try {
    return sardonyx::cli::run_command(argument_count, arguments);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sardonyx: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "sardonyx: {}\n", error.what());
  }
  return sardonyx::cli::kFailed;
}
