#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

std::size_t file_count(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a mapped file shows the file's bytes and its real path") {
  const TemporaryFolder folder;
  write_text(folder / "file", "hello");
  fs::create_symlink("file", folder / "link");
  const auto file = MappedFile::open(folder / "link");
  REQUIRE_MESSAGE(file.ok(), file.status().to_string());
  CHECK(text_of(**file) == "hello");
  CHECK((*file)->path() == fs::canonical(folder / "file").string());
  CHECK((*file)->identity().size_bytes == 5);
}

TEST_CASE("an empty file is mapped too") {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(write_text(folder / "empty", ""));
  REQUIRE(file.ok());
  CHECK((*file)->bytes().empty());
}

TEST_CASE("a file is mapped once, however it is named, until it changes") {
  const TemporaryFolder folder;
  write_text(folder / "file", "hello");
  fs::create_hard_link(folder / "file", folder / "same");
  const auto first = MappedFile::open(folder / "file");
  const auto second = MappedFile::open(folder / "same");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->get() == second->get());
  fs::remove(folder / "file");
  write_text(folder / "file", "other");
  const auto third = MappedFile::open(folder / "file");
  REQUIRE(third.ok());
  CHECK(third->get() != first->get());
  CHECK(text_of(**third) == "other");
  CHECK(text_of(**first) == "hello");
}

TEST_CASE("a mapping is found by an address inside and gone when nobody holds it") {
  const TemporaryFolder folder;
  auto file = MappedFile::open(write_text(folder / "file", "hello"));
  REQUIRE(file.ok());
  const std::byte* const start = (*file)->bytes().data();
  CHECK(MappedFile::containing(start) == *file);
  CHECK(MappedFile::containing(start + 4) == *file);
  CHECK(MappedFile::containing(start + 5) == nullptr);
  CHECK(MappedFile::containing(start - 1) != *file);
  CHECK(MappedFile::containing(nullptr) == nullptr);
  *file = nullptr;
  CHECK(MappedFile::containing(start) == nullptr);
}

TEST_CASE("threads that open one file at once share it") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder / "file", "hello");
  std::vector<std::shared_ptr<const MappedFile>> files(8);
  std::vector<std::thread> threads;
  for (auto& file : files) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) MappedFile::open(path).ok();
      file = *MappedFile::open(path);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& file : files) CHECK(text_of(*file) == "hello");
}

TEST_CASE("what cannot be mapped is an error that names the path and the reason") {
  const TemporaryFolder folder;
  const auto error = [](const std::string& path) {
    return MappedFile::open(path).status().to_string();
  };
  CHECK(MappedFile::open(folder / "missing").status().code() == Code::NoSuchFile);
  CHECK(error(folder / "missing").find("missing': No such file") != std::string::npos);
  CHECK(error(folder.path().string()).find("is a folder") != std::string::npos);
  CHECK(error("/dev/null").find("is a device") != std::string::npos);
  REQUIRE(std::system(("mkfifo " + (folder / "pipe")).c_str()) == 0);
  CHECK(error(folder / "pipe").find("is a pipe") != std::string::npos);
  CHECK(!MappedFile::open("").ok());
}

TEST_CASE("the identity of a file changes when it is written or replaced") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder / "file", "hello");
  const auto before = identify_file(path);
  REQUIRE(before.ok());
  CHECK(*before == *identify_file(path));
  write_text(path, "longer text");
  CHECK(!(*before == *identify_file(path)));
  CHECK(!identify_file(folder / "missing").ok());
}

TEST_CASE("an atomic file appears with all its bytes when it is committed") {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  auto file = AtomicFile::create(path);
  REQUIRE(file.ok());
  std::string expected;
  std::mt19937 random(3);
  for (const std::size_t size : {3, 70000, 0, 65536, 1, 200000, 65535, 5}) {
    std::string chunk(size, '\0');
    for (char& c : chunk) c = static_cast<char>(random());
    REQUIRE(file->append(bytes_of(chunk)).ok());
    expected += chunk;
    CHECK(file->size() == expected.size());
  }
  REQUIRE(file->pad_to(4096).ok());
  expected.resize((expected.size() + 4095) / 4096 * 4096, '\0');
  REQUIRE(file->append(bytes_of("end")).ok());
  REQUIRE(file->overwrite(2, bytes_of("HEAD")).ok());
  expected.replace(2, 4, "HEAD");
  expected += "end";
  CHECK(!fs::exists(path));
  REQUIRE(file->commit().ok());
  CHECK(read_text(path) == expected);
  CHECK(file_count(folder) == 1);
}

TEST_CASE("an atomic file that is not committed leaves what was there") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder / "out", "before");
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file.ok());
    REQUIRE(file->append(bytes_of("after")).ok());
    CHECK(file_count(folder) == 2);
  }
  CHECK(read_text(path) == "before");
  CHECK(file_count(folder) == 1);
}

TEST_CASE("a moved atomic file is written once") {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "out");
  REQUIRE(file.ok());
  REQUIRE(file->append(bytes_of("a")).ok());
  AtomicFile moved = std::move(*file);
  REQUIRE(moved.append(bytes_of("b")).ok());
  REQUIRE(moved.commit().ok());
  CHECK(read_text(folder / "out") == "ab");
}

TEST_CASE("of two writers of one path the last to commit wins, whole") {
  const TemporaryFolder folder;
  auto first = AtomicFile::create(folder / "out");
  auto second = AtomicFile::create(folder / "out");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  REQUIRE(first->append(bytes_of("first")).ok());
  REQUIRE(second->append(bytes_of("second")).ok());
  REQUIRE(second->commit().ok());
  REQUIRE(first->commit().ok());
  CHECK(read_text(folder / "out") == "first");
  CHECK(file_count(folder) == 1);
}

TEST_CASE("a file that cannot be made is an error with the path") {
  const TemporaryFolder folder;
  const auto file = AtomicFile::create(folder / "missing/out");
  REQUIRE(!file.ok());
  CHECK(file.status().to_string().find("missing/out") != std::string::npos);
  CHECK(!AtomicFile::create("").ok());
  auto over = AtomicFile::create(folder / "out");
  REQUIRE(over.ok());
  CHECK(!over->overwrite(0, bytes_of("x")).ok());
}
