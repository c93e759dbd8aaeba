#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/api.h"
#include "cli/array.h"

namespace sardonyx::cli {

/// An input or output as the model declares it.
struct Port {
  std::string name;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  /// Of a tensor; null for anything else.
  const ElementType* element = nullptr;
  bool has_shape = false;
  /// -1 where the size is not fixed; `symbols` then has its name or "".
  std::vector<std::int64_t> dims;
  std::vector<std::string> symbols;

  /// "tensor(float) [batch,3,?]".
  std::string describe() const;
};

/// A model that is ready to run.
struct Model {
  std::string path;
  Env env;
  Session session;
  std::vector<Port> inputs;
  /// Weights that a feed may replace.
  std::vector<Port> overridable;
  std::vector<Port> outputs;
  double load_ms = 0;
};

Result<Env> make_env();

/// Loads a model, with a progress bar when it takes long and stderr is a terminal; Ctrl-C stops it.
/// `threads` 0 = as many as this process may use.
Result<Model> load_model(Env env, const std::string& path, int threads);

/// Milliseconds of a steady clock.
double now_ms();

/// Runs the model on named values; gives one value per output.
Result<std::vector<Value>> run_model(const Model& model, const std::vector<std::string>& names,
                                     const std::vector<Value>& values,
                                     const OrtRunOptions* options);

}  // namespace sardonyx::cli
