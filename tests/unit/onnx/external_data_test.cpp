#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/mapped_file.h"
#include "messages.h"
#include "unit/temporary_folder.h"

using namespace messages;
namespace fs = std::filesystem;

namespace {

const std::string kNumbers = raw<float>({0, 1, 2, 3});

std::string model_with(std::string_view location, std::string_view offset = "0",
                       std::string_view length = "16") {
  return model(
      initializer(tensor("w", DType::Float32, {4}, external(location, offset, length))) +
      output("w"));
}

/// "" when the model in the file reads with the right numbers.
std::string outcome(const std::string& path) {
  const auto result = read_model(path);
  if (!result.ok()) return result.status().to_string();
  const Tensor& w = *result->graph.value(find(result->graph, "w")).constant;
  return elements<float>(w) == std::vector<float>{0, 1, 2, 3} ? "" : "wrong numbers";
}

std::string outcome_of(const TemporaryFolder& folder, const std::string& bytes) {
  return outcome(write_text(folder / "m.onnx", bytes));
}

}  // namespace

TEST_CASE("external data is a view into the mapped file, with its origin") {
  const TemporaryFolder folder;
  write_text(folder / "m.data", std::string(64, 'x') + kNumbers);
  const auto result =
      read_model(write_text(folder / "m.onnx", model_with("m.data", "64", "16")));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const Value& w = result->graph.value(find(result->graph, "w"));
  CHECK(elements<float>(*w.constant) == std::vector<float>{0, 1, 2, 3});
  const auto file = MappedFile::containing(w.constant->data());
  REQUIRE(file);
  CHECK(reinterpret_cast<const std::byte*>(w.constant->data()) == file->bytes().data() + 64);
  REQUIRE(w.origin);
  CHECK(w.origin->file == fs::canonical(folder / "m.data").string());
  CHECK(w.origin->offset == 64);
  CHECK(w.origin->length == 16);
}

TEST_CASE("models that name one file share its mapping") {
  const TemporaryFolder folder;
  write_text(folder / "m.data", kNumbers);
  const auto first = read_model(write_text(folder / "a.onnx", model_with("m.data")));
  const auto second = read_model(write_text(folder / "b.onnx", model_with("m.data")));
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->graph.value(0).constant->data() == second->graph.value(0).constant->data());
}

TEST_CASE("the weights inside a model file are views with their place in the file") {
  const TemporaryFolder folder;
  const std::string bytes =
      model(initializer(tensor("w", DType::UInt8, {4}, raw_data("wxyz"))) + output("w"));
  const auto result = read_model(write_text(folder / "m.onnx", bytes));
  REQUIRE(result.ok());
  const Value& w = result->graph.value(find(result->graph, "w"));
  REQUIRE(w.origin);
  CHECK(bytes.substr(w.origin->offset, w.origin->length) == "wxyz");
  CHECK(MappedFile::containing(w.constant->data())->path() == w.origin->file);
}

TEST_CASE("offset and length may be left out") {
  const TemporaryFolder folder;
  write_text(folder / "m.data", kNumbers);
  CHECK(outcome_of(folder, model_with("m.data", "", "")) == "");
}

TEST_CASE("external data may lie in a folder below and behind links that stay inside") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  write_text(folder / "sub/m.data", kNumbers);
  CHECK(outcome_of(folder, model_with("sub/m.data")) == "");
  CHECK(outcome_of(folder, model_with("./sub/m.data")) == "");
  fs::create_symlink("sub/m.data", folder / "link.data");
  CHECK(outcome_of(folder, model_with("link.data")) == "");
}

TEST_CASE("locations out of the model's folder are refused with the reason") {
  const TemporaryFolder outside;
  const std::string secret = write_text(outside / "secret.bin", kNumbers);
  fs::create_directory(outside / "model");
  const std::string home = outside / "model";
  fs::create_symlink(secret, home + "/link.bin");
  fs::create_symlink(outside.path(), home + "/folder");
  const auto refusal = [&](std::string_view location) {
    return outcome(write_text(home + "/m.onnx", model_with(location)));
  };
  CHECK(contains_text(refusal("../secret.bin"), "'..'"));
  CHECK(contains_text(refusal("x/../../secret.bin"), "'..'"));
  CHECK(contains_text(refusal(secret), "absolute"));
  CHECK(contains_text(refusal("/proc/self/environ"), "absolute"));
  CHECK(contains_text(refusal("link.bin"), "out of the model's folder"));
  CHECK(contains_text(refusal("folder/secret.bin"), "out of the model's folder"));
  CHECK(contains_text(refusal(""), "the location is empty"));
  CHECK(contains_text(refusal("."), "folder"));
  CHECK(contains_text(refusal("folder"), "out of the model's folder"));
  CHECK(contains_text(refusal(std::string_view("a\0b", 3)), "zero byte"));
  CHECK(contains_text(refusal("missing.bin"), "missing.bin"));
  CHECK(contains_text(refusal("missing.bin"), "tensor 'w'"));
  CHECK(contains_text(refusal("missing.bin"), "m.onnx"));
}

TEST_CASE("a folder with a name that begins like the model's is outside") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "model");
  fs::create_directory(folder / "model2");
  write_text(folder / "model2/m.data", kNumbers);
  fs::create_symlink("../model2/m.data", folder / "model/m.data");
  CHECK(contains_text(outcome(write_text(folder / "model/m.onnx", model_with("m.data"))),
                      "out of the model's folder"));
}

TEST_CASE("what is no regular file is refused") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  CHECK(contains_text(outcome_of(folder, model_with("sub")), "is a folder"));
  REQUIRE(std::system(("mkfifo " + (folder / "pipe")).c_str()) == 0);
  CHECK(contains_text(outcome_of(folder, model_with("pipe")), "is a pipe"));
}

TEST_CASE("a cache that links from a snapshot to a folder of blobs works") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshots/x/onnx");
  write_text(folder / "blobs/aaa", model_with("m.data"));
  write_text(folder / "blobs/bbb", kNumbers);
  fs::create_symlink("../../../blobs/aaa", folder / "snapshots/x/onnx/m.onnx");
  fs::create_symlink("../../../blobs/bbb", folder / "snapshots/x/onnx/m.data");
  CHECK(outcome(folder / "snapshots/x/onnx/m.onnx") == "");
  // The cache's folder of blobs is no licence to go anywhere else.
  write_text(folder / "secret", kNumbers);
  fs::remove(folder / "snapshots/x/onnx/m.data");
  fs::create_symlink("../../../secret", folder / "snapshots/x/onnx/m.data");
  CHECK(contains_text(outcome(folder / "snapshots/x/onnx/m.onnx"), "out of the model's folder"));
}

TEST_CASE("a link to a model finds the data beside the model") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  write_text(folder / "real/m.onnx", model_with("m.data"));
  write_text(folder / "real/m.data", kNumbers);
  fs::create_symlink("real/m.onnx", folder / "link.onnx");
  CHECK(outcome(folder / "link.onnx") == "");
}

TEST_CASE("a model from bytes finds its data in the given folder and nowhere else") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "data");
  write_text(folder / "data/m.data", kNumbers);
  write_text(folder / "secret", kNumbers);
  ReadOptions options;
  options.external_data_folder = folder / "data";
  CHECK(error_of(model_with("m.data"), options) == "");
  CHECK(contains_text(error_of(model_with("../secret"), options), "'..'"));
  CHECK(contains_text(error_of(model_with(folder / "secret"), options), "absolute"));
  options.external_data_folder = folder / "nowhere";
  CHECK(contains_text(error_of(model_with("m.data"), options), "nowhere"));
}

TEST_CASE("external data from memory needs no file") {
  ReadOptions options;
  options.memory_files.push_back(
      {"m.data", std::as_bytes(std::span(std::string_view(kNumbers))), nullptr});
  const auto result = read(model_with("m.data"), options);
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->graph.value(0).constant) == std::vector<float>{0, 1, 2, 3});
  CHECK(contains_text(error_of(model_with("m.data", "4", "16"), options), "too few"));
}

TEST_CASE("given initializers replace the model's, whose file may be missing") {
  ReadOptions options;
  options.initializers["w"] = *make_tensor<float>({4}, {4, 5, 6, 7});
  const auto result = read(model_with("missing.data"), options);
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->graph.value(0).constant) == std::vector<float>{4, 5, 6, 7});
  options.initializers["w"] = *make_tensor<float>({2}, {4, 5});
  CHECK(contains_text(error_of(model_with("missing.data"), options),
                      "the given initializer 'w' is float [2], the model's is float [4]"));
}

TEST_CASE("ranges beyond the file and odd numbers are refused") {
  const TemporaryFolder folder;
  write_text(folder / "m.data", kNumbers);
  const auto refusal = [&](std::string_view offset, std::string_view length) {
    return outcome_of(folder, model_with("m.data", offset, length));
  };
  CHECK(refusal("0", "16") == "");
  CHECK(contains_text(refusal("1", "16"), "has 16 bytes, too few for 16 bytes at offset 1"));
  CHECK(contains_text(refusal("18446744073709551615", "16"), "too few"));
  CHECK(contains_text(refusal("18446744073709551616", "16"), "expected a number of bytes"));
  CHECK(contains_text(refusal("-1", "16"), "expected a number of bytes"));
  CHECK(contains_text(refusal("1x", "16"), "expected a number of bytes"));
  CHECK(contains_text(refusal("0", "15"), "must have 16 bytes of data, found 15"));
  CHECK(contains_text(refusal("0", "17"), "found 17"));
  write_text(folder / "m.data", "");
  CHECK(contains_text(refusal("0", "16"), "has 0 bytes"));
}
