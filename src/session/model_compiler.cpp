#include "session/model_compiler.h"

#include "session/compile.h"
#include "session/context_model.h"
#include "session/load.h"
#include "session/pool.h"

namespace sardonyx {

namespace {

Result<Model> read_input(const ModelInput& input, const SessionOptions& options,
                         std::vector<DimDenotation>& denotations) {
  SDX_TRY(report_progress(options, LoadStage::Read));
  if (!input.path.empty()) return read_model(input.path, options.read, &denotations);
  if (input.model != nullptr) return *input.model;
  return read_model_from_bytes(input.bytes, options.read, &denotations);
}

Status compile(Model model, std::span<const DimDenotation> denotations, Environment& environment,
               const SessionOptions& options, const ContextOptions& context) {
  SDX_TRY(check_not_compiled(model));
  const std::vector<std::string> sources = source_files(model);
  SDX_TRY(prepare_model(model, options, denotations));
  name_borders(model.graph);
  SDX_TRY(report_progress(options, LoadStage::Compile));
  SDX_ASSIGN(const auto pool, make_pool(environment, options));
  PlacedModel placed(std::move(model), environment, options, *pool);
  SDX_TRY(place_model(placed));
  // Parts of the session's own providers have to be compiled for them to make their nodes.
  const std::size_t own_count = placed.own_providers.size();
  SDX_ASSIGN(const auto parts, compile_parts(placed, [&](const PlannedPart& part) {
               return part.provider < own_count;
             }));
  SDX_TRY(write_context_model(placed, parts, sources, context, ContainerFiles(options)));
  // Who wants to stop now is too late.
  static_cast<void>(report_progress(options, LoadStage::Ready));
  return {};
}

}  // namespace

Status compile_to_model(Environment& environment, const ModelInput& input,
                        const SessionOptions& options, const ContextOptions& context) {
  SDX_TRY(check_context_output(context));
  std::vector<DimDenotation> denotations;
  SDX_ASSIGN(Model model, read_input(input, options, denotations));
  const std::string name = input.path.empty() ? "a model from memory" : "'" + input.path + "'";
  return compile(std::move(model), denotations, environment, options, context)
      .with("compiling " + name);
}

}  // namespace sardonyx
