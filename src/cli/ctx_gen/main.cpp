// ep_weight_sharing_ctx_gen: compiles models for a device so that they share compiled data. It
// takes the place of the tool of that name: its options, messages and exit statuses.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/ctx_gen/generate.h"
#include "cli/interrupt.h"

namespace sardonyx::cli::ctx_gen {

namespace {

int run(int argument_count, char** arguments) {
  const auto parsed = parse_arguments(argument_count, arguments);
  if (!parsed.ok()) {
    fmt::print(stderr, "{}\n\n{}", parsed.status().text(), usage());
    return kFailed;
  }
  if ((*parsed).wants_help) {
    fmt::print("{}", usage());
    return kFailed;
  }
  for (const std::string& note : (*parsed).notes) fmt::print("{}\n", note);
  for (const std::string& warning : (*parsed).warnings) fmt::print(stderr, "{}\n", warning);
  catch_interrupts();
  return generate(*parsed);
}

}  // namespace

}  // namespace sardonyx::cli::ctx_gen

int main(int argument_count, char** arguments) {
  try {
    return sardonyx::cli::ctx_gen::run(argument_count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "Failed to generate context cache file: {}\n", error.what());
  }
  return sardonyx::cli::ctx_gen::kFailed;
}
