#include "context/container.h"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "context/source.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;

namespace {

std::vector<std::byte> bytes_of(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    bytes[i] = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

/// Adds a graph of one blob for each seed; its key.
std::string add_graph(ContainerWriter& writer, const std::string& name,
                      const std::vector<unsigned>& seeds, std::size_t blob_bytes) {
  ArtifactWriter& part = writer.begin_graph(name, {});
  for (const unsigned seed : seeds) {
    const auto bytes = bytes_of(blob_bytes, seed);
    const BlobKey key{hash_bytes(bytes), bytes.size(), "source"};
    const auto number = part.add_blob(key, bytes.size(), [&](std::span<std::byte> target) {
      std::memcpy(target.data(), bytes.data(), bytes.size());
      return Status();
    });
    REQUIRE(number.ok());
  }
  part.set_program(bytes_of(100, static_cast<unsigned>(name.size()) + seeds.front()));
  auto key = writer.finish_graph();
  REQUIRE(key.ok());
  return *key;
}

std::string write_graph(const std::string& path, const std::string& name,
                        const std::vector<unsigned>& seeds, std::size_t blob_bytes = 5000) {
  auto writer = ContainerWriter::extend(path, nullptr);
  REQUIRE_MESSAGE(writer.ok(), writer.status().to_string());
  const std::string key = add_graph(**writer, name, seeds, blob_bytes);
  const Status status = (*writer)->commit();
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return key;
}

/// Whether the graph's blobs are those of the seeds.
bool has(const std::string& path, const std::string& key, const std::vector<unsigned>& seeds,
         std::size_t blob_bytes = 5000) {
  auto container = Container::open(path, Container::Check::UnlessKnown);
  REQUIRE_MESSAGE(container.ok(), container.status().to_string());
  const auto graph = (*container)->find(key);
  if (!graph.ok()) return false;
  auto artifact = open_artifact(*container, **graph, {});
  REQUIRE_MESSAGE(artifact.ok(), artifact.status().to_string());
  REQUIRE(artifact->blobs.size() == seeds.size());
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto expected = bytes_of(blob_bytes, seeds[i]);
    if (artifact->blobs[i].size_bytes != expected.size()) return false;
    if (std::memcmp(artifact->blobs[i].data, expected.data(), expected.size()) != 0) return false;
    CHECK(reinterpret_cast<std::uintptr_t>(artifact->blobs[i].data) % 64 == 0);
  }
  return true;
}

std::string error_of(const std::string& path) {
  const auto container = Container::open(path, Container::Check::UnlessKnown);
  return container.ok() ? "" : container.status().to_string();
}

void flip_bit(const std::string& path, std::uint64_t bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  char byte = 0;
  file.get(byte);
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

}  // namespace

TEST_CASE("graphs of several models share equal blobs of one container") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string first = write_graph(path, "a_ctx.onnx", {1, 2, 3});
  const auto size = std::filesystem::file_size(path);
  const std::string second = write_graph(path, "b_ctx.onnx", {3, 2, 4});
  CHECK(has(path, first, {1, 2, 3}));
  CHECK(has(path, second, {3, 2, 4}));
  // One new blob, one program and one index.
  CHECK(std::filesystem::file_size(path) < size + 5000 + 1500);
  const auto container = Container::open(path, Container::Check::All);
  REQUIRE(container.ok());
  CHECK((*container)->index().blobs.size() == 4);
  CHECK((*container)->generation() == 2);
}

TEST_CASE("a reader of the former generation lives on while a writer adds to the container") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string first = write_graph(path, "a_ctx.onnx", {1, 2});
  const auto old = Container::open(path, Container::Check::UnlessKnown);
  REQUIRE(old.ok());
  const std::string second = write_graph(path, "b_ctx.onnx", {2, 3});
  CHECK((*old)->find(first).ok());
  CHECK(!(*old)->find(second).ok());
  CHECK((*old)->check_all().ok());
}

TEST_CASE("a writer that stops before commit leaves the container as it was") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  {
    auto writer = ContainerWriter::extend(path, nullptr);
    REQUIRE(writer.ok());
    add_graph(**writer, "a_ctx.onnx", {1}, 5000);
  }
  CHECK(!std::filesystem::exists(path));
  const std::string key = write_graph(path, "a_ctx.onnx", {1, 2});
  const auto size = std::filesystem::file_size(path);
  {
    auto writer = ContainerWriter::extend(path, nullptr);
    REQUIRE(writer.ok());
    add_graph(**writer, "b_ctx.onnx", {7, 8, 9}, 300000);
  }
  CHECK(std::filesystem::file_size(path) == size);
  CHECK(has(path, key, {1, 2}));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("remains after the last generation do no harm and are cut off by the next writer") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string key = write_graph(path, "a_ctx.onnx", {1, 2});
  {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    file << std::string(100000, 'x');
  }
  CHECK(has(path, key, {1, 2}));
  const std::string second = write_graph(path, "b_ctx.onnx", {2});
  CHECK(has(path, key, {1, 2}));
  CHECK(has(path, second, {2}));
  CHECK(std::filesystem::file_size(path) < 20000);
}

TEST_CASE("graphs that no compiled model names any more are dropped, and their bytes in time") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string old = write_graph(path, "a_ctx.onnx", {1, 2, 3, 4});
  write_text(folder / "a_ctx.onnx", "partition " + old);
  const std::string renewed = write_graph(path, "a_ctx.onnx", {5});
  // Both stand until the model names the new one.
  CHECK(has(path, old, {1, 2, 3, 4}));
  write_text(folder / "a_ctx.onnx", "partition " + renewed);
  const std::string other = write_graph(path, "b_ctx.onnx", {6});
  CHECK(!has(path, old, {1, 2, 3, 4}));
  CHECK(has(path, renewed, {5}));
  CHECK(has(path, other, {6}));
  CHECK(std::filesystem::file_size(path) < 20000);
}

TEST_CASE("a graph that is newer than what its model names is kept: its model is being written") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string old = write_graph(path, "a_ctx.onnx", {1});
  write_text(folder / "a_ctx.onnx", "partition " + old);
  const std::string first_part = write_graph(path, "a_ctx.onnx", {5});
  const std::string second_part = write_graph(path, "a_ctx.onnx", {6});
  CHECK(has(path, first_part, {5}));
  CHECK(has(path, second_part, {6}));
}

TEST_CASE("equal graphs of two models are kept for each") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string first = write_graph(path, "a_ctx.onnx", {1});
  const std::string second = write_graph(path, "b_ctx.onnx", {1});
  CHECK(first != second);
  CHECK(has(path, first, {1}));
  CHECK(has(path, second, {1}));
}

TEST_CASE("every flipped bit is found, wherever it is, or does not matter") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string key = write_graph(path, "a_ctx.onnx", {1, 2}, 1000);
  const std::string whole = read_text(path);
  unsigned random = 5;
  for (int round = 0; round < 300; ++round) {
    write_text(path, whole);
    const int flips = round % 3 == 0 ? 64 : 1;
    for (int i = 0; i < flips; ++i) {
      random = random * 1664525U + 1013904223U;
      flip_bit(path, random % (whole.size() * 8));
    }
    const auto container = Container::open(path, Container::Check::UnlessKnown);
    if (!container.ok()) continue;
    // In padding, or in the slot that does not count.
    CHECK(has(path, key, {1, 2}, 1000));
  }
}

TEST_CASE("a changed container of the same size and time is found out") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  const std::string key = write_graph(path, "a_ctx.onnx", {1, 2}, 100000);
  const auto time = std::filesystem::last_write_time(path);
  CHECK(has(path, key, {1, 2}, 100000));
  flip_bit(path, 8 * 50000);
  std::filesystem::last_write_time(path, time);
  CHECK(error_of(path).find("weights are damaged: blob 0") != std::string::npos);
}

TEST_CASE(
    "what is no container, of another version, cut short or empty is refused with the reason") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  CHECK(error_of(path).find("cannot open") != std::string::npos);
  write_text(path, "");
  CHECK(error_of(path).find("cut short") != std::string::npos);
  write_text(path, std::string(10000, 'a'));
  CHECK(error_of(path).find("does not begin as a container") != std::string::npos);
  std::filesystem::remove(path);
  write_graph(path, "a_ctx.onnx", {1, 2});
  const std::string whole = read_text(path);
  write_text(path, whole.substr(0, whole.size() - 1));
  CHECK(error_of(path).find("cut short") != std::string::npos);
  std::string other = whole;
  other[8] = 9;
  write_text(path, other);
  CHECK(error_of(path).find("its format has version 9, this build reads version 1") !=
        std::string::npos);
}

TEST_CASE("two writers at once both get their graphs in") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  std::string keys[4];
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      auto writer = ContainerWriter::extend(path, nullptr);
      keys[i] = add_graph(**writer, "m" + std::to_string(i), {i + 1, 100}, 5000);
      (void)(*writer)->commit();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < 4; ++i) CHECK(has(path, keys[i], {i + 1, 100}));
}

TEST_CASE("waiting for another writer can be cancelled") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  auto first = ContainerWriter::extend(path, nullptr);
  REQUIRE(first.ok());
  const std::atomic<bool> cancel{true};
  const auto second = ContainerWriter::extend(path, &cancel);
  REQUIRE(!second.ok());
  CHECK(second.status().code() == Code::Cancelled);
}
