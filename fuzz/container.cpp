// Compiled models all the way: a container's header and index, and a stored part that is loaded and
// run. The first byte says what the rest is:
//
//   'C'  a whole container
//   'I'  an index
//   'P'  a part: a number of blobs and their sizes (16 bits each), their bytes, the program
//   else a model, whose part is compiled, changed in places that its last bytes choose, and loaded:
//        the hashes that would find such changes do not stand in the way
#include "context/container.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "context/container_index.h"
#include "context/source.h"
#include "cpu/provider.h"
#include "fuzz/feeds.h"
#include "onnx/reader.h"
#include "ops/infer.h"
#include "passes/pipeline.h"

namespace {

using namespace sardonyx;
using Bytes = std::vector<std::byte>;

const ArtifactProvider& provider() {
  static const std::unique_ptr<Provider> made = [] {
    set_log_level(Severity::Fatal);
    return make_cpu_provider(std::make_shared<WeightStore>());
  }();
  return *as_artifact(*made);
}

/// A part with its memory; blobs are aligned as a container's are.
struct Part {
  Bytes program;
  std::vector<Tensor> blobs;
  std::vector<Type> inputs;
  std::size_t output_count = 0;

  void add_blob(std::span<const std::byte> bytes) {
    auto blob = Tensor::allocate(DType::UInt8, Shape{static_cast<Dim>(bytes.size())});
    if (!blob.ok()) return;
    if (!bytes.empty()) std::memcpy(blob->mutable_data(), bytes.data(), bytes.size());
    blobs.push_back(std::move(blob).value());
  }
};

void load_and_run(const Part& part) {
  Artifact artifact;
  artifact.program = part.program;
  for (const Tensor& blob : part.blobs) artifact.blobs.push_back({blob.data(), blob.byte_size()});
  artifact.owner = std::make_shared<int>(0);
  const auto compiled = provider().load(artifact, {});
  if (!compiled.ok()) {
    if (compiled.status().to_string().empty()) __builtin_trap();
    return;
  }
  const auto [input_count, output_count] = (*compiled)->end_counts();
  std::vector<Datum> inputs(input_count);
  for (std::size_t i = 0; i < input_count; ++i) {
    const Type type =
        i < part.inputs.size() ? part.inputs[i] : Type::tensor(DType::Float32, Shape{1, 2, 2, 2});
    auto feed = make_feed(type, i + 1);
    if (!feed.ok()) return;
    inputs[i] = std::move(feed).value();
  }
  std::vector<Datum> outputs(output_count);
  const Watchdog watchdog;
  ThreadPool pool(ThreadPoolOptions{1});
  std::mt19937_64 random;
  RunState state{pool, &watchdog.expired(), nullptr, &random};
  const Status status = (*compiled)->run(inputs, outputs, state);
  if (!status.ok() && status.to_string().empty()) __builtin_trap();
}

void read_part(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t count = std::to_integer<std::size_t>(bytes[0]) % 16;
  std::size_t position = 1 + 2 * count;
  if (position > bytes.size()) return;
  Part part;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = std::to_integer<std::size_t>(bytes[1 + 2 * i]) +
                             256 * std::to_integer<std::size_t>(bytes[2 + 2 * i]);
    if (size > bytes.size() - position) return;
    part.add_blob(bytes.subspan(position, size));
    position += size;
  }
  const auto rest = bytes.subspan(position);
  part.program.assign(rest.begin(), rest.end());
  load_and_run(part);
}

void read_container(std::span<const std::byte> bytes) {
  const auto container = Container::from_bytes(bytes, nullptr, "in memory");
  if (!container.ok()) return;
  for (const StoredGraph& graph : (*container)->index().graphs) {
    (void)open_artifact(*container, graph, {});
  }
}

Result<Part> compile_part(std::span<const std::byte> bytes) {
  ReadOptions options;
  options.borrow_bytes = true;
  SDX_ASSIGN(Model model, read_model_from_bytes(bytes, options));
  SDX_TRY(inline_functions(model));
  SDX_TRY(infer_types(model.graph));
  PassOptions passes;
  passes.folded_bytes_max = 1 << 20;
  SDX_TRY(run_passes(PassStage::Common, model.graph, passes));
  const auto writer = ContainerWriter::in_memory();
  SDX_TRY(provider().save(model.graph, {}, writer->begin_graph("m", {})));
  SDX_TRY(writer->finish_graph().take_status());
  SDX_TRY(writer->commit());
  const std::string stored = writer->take_bytes();
  SDX_ASSIGN(const auto container,
             Container::from_bytes(std::as_bytes(std::span(stored)), nullptr, "in memory"));
  const StoredGraph& graph = container->index().graphs.front();
  SDX_ASSIGN(const Artifact artifact, open_artifact(container, graph, {}));
  Part part;
  part.program.assign(artifact.program.begin(), artifact.program.end());
  for (const ArtifactBlob& blob : artifact.blobs) part.add_blob({blob.data, blob.size_bytes});
  for (const ValueId id : model.graph.inputs()) part.inputs.push_back(model.graph.value(id).type);
  return part;
}

void change(Part& part, std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); };
  for (std::size_t i = 0; i <= below(3) && !part.program.empty(); ++i) {
    const std::size_t place = below(part.program.size());
    switch (below(4)) {
      case 0: part.program[place] ^= static_cast<std::byte>(1U << below(8)); break;
      case 1: part.program[place] = static_cast<std::byte>(below(16)); break;
      case 2: part.program[place] = static_cast<std::byte>(random()); break;
      default:
        if (part.blobs.size() > 1)
          std::swap(part.blobs.front(), part.blobs[below(part.blobs.size())]);
    }
  }
}

void compile_and_change(std::span<const std::byte> bytes) {
  auto part = compile_part(bytes);
  if (!part.ok()) return;
  load_and_run(*part);
  std::uint32_t seed = 0;
  for (const std::byte byte : bytes) seed = seed * 31 + std::to_integer<std::uint32_t>(byte);
  std::mt19937 random(seed);
  for (int i = 0; i < 8; ++i) {
    Part changed = *part;
    change(changed, random);
    load_and_run(changed);
  }
}

void read(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto rest = bytes.subspan(1);
  switch (std::to_integer<char>(bytes[0])) {
    case 'C': return read_container(rest);
    case 'I': return (void)decode_index(rest, std::uint64_t{1} << 32);
    case 'P': return read_part(rest);
    default: return compile_and_change(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const std::byte*>(data), size});
  } catch (const std::bad_alloc&) {
    // The C interface answers so too.
  }
  return 0;
}
