#include <doctest/doctest.h>

#include "placement/statistics.h"
#include "session/session.h"
#include "unit/onnx/messages.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

constexpr const char* kOption = "session.collect_node_memory_stats_to_file";

/// y = Relu(x * w) of x float[N,256], with nodes "mm" and "rl".
std::string product() {
  const std::vector<float> ones(256 * 256, 1.0F);
  const std::string_view bytes(reinterpret_cast<const char*>(ones.data()), ones.size() * 4);
  return model(input("x", Type::tensor(DType::Float32, Shape{kUnknownDim, 256})) +
               initializer(tensor("w", DType::Float32, {256, 256}, raw_data(bytes))) +
               node("MatMul", {"x", "w"}, {"t"}, "mm") + node("Relu", {"t"}, {"y"}, "rl") +
               output("y"));
}

Result<std::unique_ptr<Session>> load(const std::string& bytes, const std::string& path) {
  SessionOptions options;
  options.entries[kOption] = path;
  return Session::load_bytes(make_environment(), std::as_bytes(std::span(std::string_view(bytes))),
                             options);
}

void run(Session& session, Dim rows) {
  auto x = Tensor::allocate(DType::Float32, Shape{rows, 256});
  REQUIRE(x.ok());
  for (float& value : x->mutable_values<float>()) value = 1;
  const std::string_view input_names[] = {"x"};
  const Datum inputs[] = {Datum(std::move(x).value())};
  const std::string_view output_names[] = {"y"};
  Datum outputs[1];
  const Status status = session.run(input_names, inputs, output_names, outputs);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

NodeMemory row(const std::string& path, std::string_view name) {
  const auto statistics = NodeStatistics::read(path);
  REQUIRE_MESSAGE(statistics.ok(), statistics.status().to_string());
  for (const auto& [key, memory] : statistics->rows()) {
    if (key.starts_with(std::string(name) + "_")) return memory;
  }
  FAIL("no row of " << std::string(name));
  return {};
}

}  // namespace

TEST_CASE("every node has a row with the true sizes of its own values, however it is fused") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.csv";
  const auto session = load(product(), path);
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  CHECK(!std::filesystem::exists(path));
  run(**session, 64);
  const NodeMemory mm = row(path, "mm");
  CHECK(mm.input_bytes == 64 * 256 * 4);
  CHECK(mm.initializer_bytes == 256 * 256 * 4);
  CHECK(mm.output_bytes == 64 * 256 * 4);
  const NodeMemory rl = row(path, "rl");
  CHECK(rl.input_bytes == 64 * 256 * 4);
  CHECK(rl.initializer_bytes == 0);
  CHECK(rl.output_bytes == 64 * 256 * 4);
}

TEST_CASE("the file holds the most of all runs, and the keys of ONNX Runtime") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.csv";
  const auto session = load(product(), path);
  REQUIRE(session.ok());
  for (const Dim rows : {64, 8, 65, 1}) run(**session, rows);
  CHECK(row(path, "mm").input_bytes == 65 * 256 * 4);
  CHECK(read_text(path).find("\nmm_") != std::string::npos);
}

TEST_CASE("statistics that cannot be written fail the session, naming the folder") {
  const auto session = load(product(), "/no/such/folder/stats.csv");
  REQUIRE(!session.ok());
  CHECK(session.status().to_string().find("'/no/such/folder'") != std::string::npos);
}

TEST_CASE("sizes that depend on data are those that runs met") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.csv";
  const auto session =
      load(model(input("x", Type::tensor(DType::Float32, Shape{kUnknownDim, 256})) +
                 node("NonZero", {"x"}, {"i"}, "nz") + node("Neg", {"i"}, {"y"}, "id") +
                 output("y", Type::tensor(DType::Int64))),
           path);
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  run(**session, 2);
  CHECK(row(path, "nz").output_bytes == 2 * 512 * 8);
  CHECK(row(path, "id").input_bytes == 2 * 512 * 8);
}
