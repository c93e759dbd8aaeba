#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kFileBytes = 1 << 20;

std::shared_ptr<const MappedFile> mapped(const std::string& path) {
  auto file = MappedFile::open(path);
  REQUIRE_MESSAGE(file.ok(), file.status().to_string());
  return *file;
}

std::string large_file(const TemporaryFolder& folder, std::string_view name) {
  return write_text(folder / name, std::string(kFileBytes, 'a'));
}

char byte_at(const MappedFile& file, std::size_t i) {
  return static_cast<char>(*const_cast<const volatile std::byte*>(&file.bytes()[i]));
}

struct sigaction current_action() {
  struct sigaction action{};
  REQUIRE(::sigaction(SIGBUS, nullptr, &action) == 0);
  return action;
}

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags;
}

/// A program's own handler: mends the fault of its own mapping, and calls the one before it for
/// others if it is told to.
struct Own {
  static inline void* mapping = nullptr;
  static inline int calls = 0;
  static inline bool passes_on = false;
  static inline struct sigaction before{};

  static void handle(int number, siginfo_t* info, void* context) {
    ++calls;
    if (passes_on && info->si_addr != mapping) return before.sa_sigaction(number, info, context);
    ::mmap(mapping, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  explicit Own(bool chain) {
    calls = 0;
    passes_on = chain;
    struct sigaction action{};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    REQUIRE(::sigaction(SIGBUS, &action, &before) == 0);
  }
  ~Own() { ::sigaction(SIGBUS, &before, nullptr); }
};

/// A mapping that is no MappedFile, of a file that is empty by now.
struct ForeignMapping {
  explicit ForeignMapping(const TemporaryFolder& folder) {
    const std::string path = large_file(folder, "foreign");
    std::FILE* file = std::fopen(path.c_str(), "r");
    REQUIRE(file != nullptr);
    Own::mapping = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
    std::fclose(file);
    REQUIRE(Own::mapping != MAP_FAILED);
    fs::resize_file(path, 0);
  }
  ~ForeignMapping() { ::munmap(Own::mapping, 4096); }
  char read() const { return *static_cast<const volatile char*>(Own::mapping); }
};

/// Exit status of `body` in a process of its own; -1 when it was ended by a signal.
template <typename Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Not a sanitizer's handler, which would end the process in its own way.
    ::signal(SIGBUS, SIG_DFL);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("what a file loses while it is mapped reads as zeros, and the mapping says so") {
  const TemporaryFolder folder;
  const auto cut = mapped(large_file(folder, "cut"));
  const auto whole = mapped(large_file(folder, "whole"));
  CHECK(!FaultGuard::any_damaged());
  fs::resize_file(cut->path(), 8192);
  CHECK(byte_at(*cut, 8191) == 'a');
  CHECK(!cut->is_damaged());
  CHECK(cut->is_cut());
  CHECK(byte_at(*cut, 500'000) == 0);
  CHECK(byte_at(*cut, kFileBytes - 1) == 0);
  CHECK(byte_at(*cut, 8192) == 0);
  CHECK(byte_at(*cut, 8191) == 'a');
  CHECK(cut->is_damaged());
  CHECK(FaultGuard::any_damaged());
  CHECK(!whole->is_damaged());
  CHECK(!whole->is_cut());
  CHECK(byte_at(*whole, kFileBytes - 1) == 'a');
  CHECK(cut_file(*cut).to_string() == "'" + cut->path() +
                                          "' was cut short while it was mapped: it had 1048576 "
                                          "bytes when it was opened");
}

TEST_CASE("damage is forgotten with the mapping, and the file is mapped anew") {
  const TemporaryFolder folder;
  auto file = mapped(large_file(folder, "file"));
  fs::resize_file(file->path(), 0);
  CHECK(byte_at(*file, 0) == 0);
  write_text(file->path(), std::string(kFileBytes, 'b'));
  const auto again = mapped(file->path());
  CHECK(again != file);
  CHECK(byte_at(*again, 0) == 'b');
  CHECK(!again->is_damaged());
  CHECK(byte_at(*file, 0) == 0);
  file.reset();
  CHECK(!FaultGuard::any_damaged());
}

TEST_CASE("a file that was replaced by another one is whole") {
  const TemporaryFolder folder;
  const auto file = mapped(large_file(folder, "file"));
  fs::rename(write_text(folder / "short", "b"), file->path());
  CHECK(!file->is_cut());
  CHECK(byte_at(*file, kFileBytes - 1) == 'a');
}

TEST_CASE("many files are guarded, in any order of opening and closing") {
  const TemporaryFolder folder;
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (int i = 0; i < 150; ++i) {
    files.push_back(mapped(large_file(folder, std::to_string(i))));
    if (i % 3 == 2) files[static_cast<std::size_t>(i) / 2].reset();
  }
  for (const auto& file : files) {
    if (file != nullptr) fs::resize_file(file->path(), 0);
  }
  const auto is_bad = [](const auto& file) {
    return file != nullptr && (byte_at(*file, 4096) != 0 || !file->is_damaged());
  };
  CHECK(std::none_of(files.begin(), files.end(), is_bad));
}

TEST_CASE("the handler comes with the first file and goes with the last") {
  const TemporaryFolder folder;
  const auto before = current_action();
  auto first = mapped(large_file(folder, "first"));
  auto second = mapped(large_file(folder, "second"));
  const auto ours = current_action();
  CHECK(!is_same(ours, before));
  CHECK((ours.sa_flags & SA_ONSTACK) != 0);
  first.reset();
  CHECK(is_same(current_action(), ours));
  second.reset();
  CHECK(is_same(current_action(), before));
}

TEST_CASE("a fault elsewhere goes to the handler that was there before") {
  const TemporaryFolder folder;
  const Own own(false);
  const auto file = mapped(large_file(folder, "file"));
  const ForeignMapping foreign(folder);
  CHECK(foreign.read() == 0);
  CHECK(Own::calls == 1);
  fs::resize_file(file->path(), 0);
  CHECK(byte_at(*file, 0) == 0);
  CHECK(file->is_damaged());
  CHECK(Own::calls == 1);
}

TEST_CASE("a handler that came later and calls ours leaves both at work") {
  const TemporaryFolder folder;
  auto file = mapped(large_file(folder, "file"));
  {
    const Own own(true);
    const ForeignMapping foreign(folder);
    const auto second = mapped(large_file(folder, "second"));
    CHECK(foreign.read() == 0);
    fs::resize_file(file->path(), 0);
    CHECK(byte_at(*file, 0) == 0);
    CHECK(file->is_damaged());
    CHECK(Own::calls == 2);
    // The last file goes while their handler is above ours, and keeps it.
    file.reset();
  }
  const auto third = mapped(large_file(folder, "third"));
  fs::resize_file(third->path(), 0);
  CHECK(byte_at(*third, 0) == 0);
  CHECK(third->is_damaged());
}

TEST_CASE("a forked child is guarded too") {
  const TemporaryFolder folder;
  const auto file = mapped(large_file(folder, "file"));
  const pid_t child = ::fork();
  if (child == 0) {
    fs::resize_file(file->path(), 0);
    ::_exit(byte_at(*file, 0) == 0 && file->is_damaged() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(!file->is_damaged());
  CHECK(byte_at(*file, 0) == 0);
  CHECK(file->is_damaged());
}

TEST_CASE("without a guard, or for a fault elsewhere, a process ends as it always did") {
  const TemporaryFolder folder;
  const std::string path = large_file(folder, "file");
  const auto reads_cut = [&] {
    const auto file = MappedFile::open(path);
    fs::resize_file(path, 0);
    return byte_at(**file, 0) == 0 && (*file)->is_damaged();
  };
  const auto reads_foreign = [&] {
    const auto file = MappedFile::open(write_text(folder / "other", "b"));
    const ForeignMapping foreign(folder);
    return foreign.read() == 0;
  };
  const auto is_sent = [&] {
    const auto file = MappedFile::open(write_text(folder / "other", "b"));
    ::raise(SIGBUS);
    return true;
  };
  CHECK(in_child(reads_cut) == 0);
  CHECK(in_child(reads_foreign) == -1);
  CHECK(in_child(is_sent) == -1);
  ::setenv("SARDONYX_NO_SIGBUS", "1", 1);
  large_file(folder, "file");
  CHECK(in_child(reads_cut) == -1);
  ::unsetenv("SARDONYX_NO_SIGBUS");
}
