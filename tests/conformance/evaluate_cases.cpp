// Runs exported backend tests (see export_cases.py) without Python.
//
//   evaluate_cases [MODE] FOLDER [PART_OF_NAME]
//     by the plain evaluator, or, as MODE says, by the CPU provider (--compiled), or by it after
//     the part went through a container with its weights (--kept) or without (--weightless)
//   evaluate_cases --rows                                prints the operator rows
//
// Each test is a folder with model.onnx, test_data_set_N/{input,output}_I.pb and tolerance.txt.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "context/container.h"
#include "context/source.h"
#include "cpu/provider.h"
#include "ir/element.h"
#include "onnx/reader.h"
#include "ops/evaluate.h"
#include "ops/infer.h"
#include "ops/schema.h"
#include "passes/pipeline.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

bool is_real(DType dtype) {
  return dtype != DType::String && dtype != DType::Complex64 && dtype != DType::Complex128;
}

Status compare_reals(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.dtype() == DType::BFloat16) {
    tolerance.relative = std::max(tolerance.relative, 0x1p-6);
  }
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = read_real(actual.dtype(), actual.data(), i);
    const double e = read_real(expected.dtype(), expected.data(), i);
    const bool is_same = a == e || (std::isnan(a) && std::isnan(e)) ||
                         std::abs(a - e) <= tolerance.absolute + tolerance.relative * std::abs(e);
    if (!is_same) return failure(Code::Runtime, "element {} is {}, expected {}", i, a, e);
  }
  return {};
}

Status compare_tensors(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return failure(Code::Runtime, "is {}{}, expected {}{}", dtype_name(actual.dtype()),
                   actual.shape().to_string(), dtype_name(expected.dtype()),
                   expected.shape().to_string());
  }
  if (is_real(expected.dtype())) return compare_reals(actual, expected, tolerance);
  if (expected.dtype() == DType::String) {
    const auto a = actual.values<std::string>();
    const auto e = expected.values<std::string>();
    for (std::size_t i = 0; i < e.size(); ++i) {
      if (a[i] != e[i])
        return failure(Code::Runtime, "element {} is '{}', not '{}'", i, a[i], e[i]);
    }
    return {};
  }
  const DType part = expected.dtype() == DType::Complex64 ? DType::Float32 : DType::Float64;
  const Shape flat{2 * expected.element_count()};
  return compare_reals(Tensor::view(part, flat, actual.data()),
                       Tensor::view(part, flat, expected.data()), tolerance);
}

Status compare(const Datum& actual, const Datum& expected, Tolerance tolerance) {
  if (expected.tensor() != nullptr && actual.tensor() != nullptr) {
    return compare_tensors(*actual.tensor(), *expected.tensor(), tolerance);
  }
  if (expected.sequence() != nullptr && actual.sequence() != nullptr) {
    const auto& a = actual.sequence()->items;
    const auto& e = expected.sequence()->items;
    if (a.size() != e.size()) {
      return failure(Code::Runtime, "has {} items, expected {}", a.size(), e.size());
    }
    for (std::size_t i = 0; i < e.size(); ++i) {
      Status status = compare(a[i], e[i], tolerance);
      if (!status.ok()) return std::move(status).with(fmt::format("comparing item {}", i));
    }
    return {};
  }
  if (!expected.has_value() && !actual.has_value()) return {};
  return failure(Code::Runtime, "is {}, expected {}", actual.type().to_string(),
                 expected.type().to_string());
}

Result<std::vector<Datum>> read_data(const fs::path& folder, const std::string& stem,
                                     const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<Datum> data;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) {
      const auto& default_value = graph.value(values[i]).default_value;
      data.push_back(default_value != nullptr ? Datum(*default_value) : Datum());
      continue;
    }
    SDX_ASSIGN(Datum datum, read_datum_file(path.string(), graph.value(values[i]).type));
    data.push_back(std::move(datum));
  }
  return data;
}

enum class Mode { Evaluated, Compiled, Kept, Weightless };

/// The part as it is read back from a container.
Result<std::unique_ptr<Compiled>> kept(const Model& model, Mode mode) {
  const auto provider = make_cpu_provider(std::make_shared<WeightStore>());
  const ArtifactProvider* keeper = as_artifact(*provider);
  CompileOptions options;
  options.model = &model;
  options.weightless = mode == Mode::Weightless ? Weightless::All : Weightless::None;
  SDX_ASSIGN(auto sources, sources_of(model));
  const auto writer = ContainerWriter::in_memory();
  ArtifactWriter& part = writer->begin_graph("model_ctx.onnx", std::move(sources));
  SDX_TRY(keeper->save(model.graph, options, part));
  SDX_ASSIGN(const std::string key, writer->finish_graph());
  SDX_TRY(writer->commit());
  auto bytes = std::make_shared<const std::string>(writer->take_bytes());
  SDX_ASSIGN(auto container,
             Container::from_bytes(std::as_bytes(std::span(*bytes)), bytes, "in memory"));
  SDX_ASSIGN(const StoredGraph* graph, container->find(key));
  SDX_ASSIGN(const Artifact artifact, open_artifact(container, *graph, {}));
  return keeper->load(artifact, options);
}

Status run_case(const fs::path& folder, Mode mode) {
  SDX_ASSIGN(Model model, read_model((folder / "model.onnx").string()));
  const Graph declared = model.graph;
  Tolerance tolerance;
  std::ifstream(folder / "tolerance.txt") >> tolerance.relative >> tolerance.absolute;
  SDX_TRY(inline_functions(model));
  SDX_TRY(infer_types(model.graph));
  std::unique_ptr<Compiled> compiled;
  if (mode != Mode::Evaluated) {
    PassOptions options;
    options.keeps_weights = mode == Mode::Weightless;
    SDX_TRY(run_passes(PassStage::Common, model.graph, options));
  }
  if (mode == Mode::Compiled) {
    const auto provider = make_cpu_provider(std::make_shared<WeightStore>());
    SDX_ASSIGN(compiled, provider->compile(model.graph, {}));
  } else if (mode != Mode::Evaluated) {
    SDX_ASSIGN(compiled, kept(model, mode));
  }
  for (int set = 0; fs::exists(folder / fmt::format("test_data_set_{}", set)); ++set) {
    const fs::path data = folder / fmt::format("test_data_set_{}", set);
    SDX_ASSIGN(auto inputs, read_data(data, "input", declared, declared.inputs()));
    SDX_ASSIGN(auto expected, read_data(data, "output", declared, declared.outputs()));
    std::vector<Datum> outputs(expected.size());
    if (compiled != nullptr) {
      ThreadPool pool(ThreadPoolOptions{1});
      std::mt19937_64 random;
      RunState state{pool, nullptr, nullptr, &random};
      SDX_TRY(compiled->run(inputs, outputs, state));
    } else {
      SDX_ASSIGN(Evaluator evaluator, Evaluator::create(model.graph));
      SDX_ASSIGN(outputs, evaluator.run(inputs, {}, {}));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      Status status = compare(outputs[i], expected[i], tolerance);
      if (!status.ok()) return std::move(status).with(fmt::format("comparing output {}", i));
    }
  }
  return {};
}

int run_cases(const fs::path& root, const std::string& part, Mode mode) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) {
    const bool is_wanted = entry.path().filename().string().find(part) != std::string::npos;
    if (is_wanted && fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  int passed = 0;
  for (const fs::path& folder : folders) {
    const Status status = run_case(folder, mode);
    passed += status.ok();
    if (status.ok()) continue;
    std::string text = status.to_string();
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::printf("FAIL %s %s\n", folder.filename().c_str(), text.c_str());
    std::fflush(stdout);
  }
  const int failed = static_cast<int>(folders.size()) - passed;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

void print_rows() {
  for (const OpSchema& row : all_schemas()) {
    const Signature& types = row.signature;
    std::printf("%s\t%s\t%d\t%s\t%s\t%u\t%x %x %x %x\n", std::string(row.domain).c_str(),
                std::string(row.name).c_str(), row.since, types.text, row.attributes, row.flags,
                types.t, types.u, types.v, types.w);
  }
}

}  // namespace
}  // namespace sardonyx

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--rows"}) {
    sardonyx::print_rows();
    return 0;
  }
  using sardonyx::Mode;
  Mode mode = Mode::Evaluated;
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--compiled") mode = Mode::Compiled;
  if (first == "--kept") mode = Mode::Kept;
  if (first == "--weightless") mode = Mode::Weightless;
  if (mode != Mode::Evaluated) arguments.erase(arguments.begin());
  if (arguments.empty() || arguments.size() > 2) {
    std::fputs("usage: evaluate_cases [--compiled|--kept|--weightless] FOLDER [PART] | --rows\n",
               stderr);
    return 2;
  }
  return sardonyx::run_cases(arguments[0], arguments.size() > 1 ? arguments[1] : "", mode);
}
