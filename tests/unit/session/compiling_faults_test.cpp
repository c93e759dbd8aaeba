// Compiling is ended, or finds the disk full, at every call by which it changes a file.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "context/container.h"
#include "onnx/writer.h"
#include "session/environment.h"
#include "session/model_compiler.h"
#include "unit/small_graph.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;

namespace {

enum class Fault { None, Kill, FullDisk };

/// What happens at the call that is counted to; a disk stays full.
struct {
  Fault fault = Fault::None;
  int strikes_at = 0;
  int calls = 0;
  bool is_full() const { return fault == Fault::FullDisk && calls >= strikes_at; }
} faults;

/// Counts a call; true if this one is struck.
bool strikes() { return faults.fault != Fault::None && ++faults.calls == faults.strikes_at; }

/// Ends the process before the call that is struck.
void maybe_kill() {
  if (strikes() && faults.fault == Fault::Kill) ::kill(::getpid(), SIGKILL);
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int no_space() {
  errno = ENOSPC;
  return -1;
}

}  // namespace

// These stand before the ones of the C library for all of this program.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if ((flags & O_CREAT) != 0) {
    maybe_kill();
    if (faults.is_full()) return no_space();
  }
  return real<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  const bool is_struck = strikes();
  const auto write = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (is_struck) (void)write(descriptor, bytes, size / 2, offset);
  if (is_struck && faults.fault == Fault::Kill) ::kill(::getpid(), SIGKILL);
  return faults.is_full() ? no_space() : write(descriptor, bytes, size, offset);
}

int fsync(int descriptor) {
  maybe_kill();
  return faults.is_full() ? no_space() : real<int(int)>("fsync")(descriptor);
}

int ftruncate(int descriptor, off_t size) noexcept {
  maybe_kill();
  return real<int(int, off_t)>("ftruncate")(descriptor, size);
}

int rename(const char* from, const char* to) noexcept {
  maybe_kill();
  return real<int(const char*, const char*)>("rename")(from, to);
}

int unlink(const char* path) noexcept {
  maybe_kill();
  return real<int(const char*)>("unlink")(path);
}

int remove(const char* path) noexcept {
  maybe_kill();
  return real<int(const char*)>("remove")(path);
}
}

namespace {

constexpr Dim kSize = 128;

/// y = Relu(x W1) W2; models of all seeds share W1.
void write_source(const std::string& path, unsigned seed) {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{kUnknownDim, kSize});
  const ValueId w1 = small.constant(random_floats(Shape{kSize, kSize}, 7));
  const ValueId w2 = small.constant(random_floats(Shape{kSize, kSize}, seed));
  const ValueId hidden = small.node("Relu", {small.node("MatMul", {x, w1})});
  small.output(small.node("MatMul", {hidden, w2}));
  small.infer();
  Model model;
  model.ir_version = 8;
  model.opset_imports = {{"", 18}};
  model.graph = small.graph;
  const Status status = write_model(model, path);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

Status compile(const std::string& source, const std::string& target) {
  ContextOptions context;
  context.model_path = target;
  context.write = default_layout();
  SessionOptions options;
  options.thread_count = 1;
  auto environment = make_environment();
  return compile_to_model(*environment, {source, {}, nullptr}, options, context);
}

std::vector<float> result_of(const std::string& path) {
  SessionOptions options;
  options.thread_count = 1;
  const auto session = Session::load(make_environment(), path, options);
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  const std::string_view input = (*session)->inputs()[0].name;
  const std::string_view output = (*session)->outputs()[0].name;
  const Datum x(random_floats(Shape{3, kSize}, 11));
  Datum y;
  const Status status = (*session)->run({&input, 1}, {&x, 1}, {&output, 1}, {&y, 1});
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return values_of<float>(y);
}

/// The files' bytes, but for notes about what was checked, and for the header of the container: one
/// half of it counts, the other may name what is not there any more.
std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".seen")) continue;
    all[path] = read_text(path);
    if (path.ends_with(kContainerName)) all[path].erase(0, kHeader_bytes);
  }
  return all;
}

/// A folder with two models, of which one may be compiled into another folder already.
struct Scene {
  TemporaryFolder sources;
  TemporaryFolder out;
  bool has_first;
  std::vector<float> first;
  std::vector<float> second;

  explicit Scene(bool compiles_first) : has_first(compiles_first) {
    write_source(sources / "a.onnx", 1);
    write_source(sources / "b.onnx", 2);
    first = result_of(sources / "a.onnx");
    second = result_of(sources / "b.onnx");
    if (!has_first) return;
    const Status status = compile(sources / "a.onnx", out / "a_ctx.onnx");
    REQUIRE_MESSAGE(status.ok(), status.to_string());
  }
  Status compile_second() { return compile(sources / "b.onnx", out / "b_ctx.onnx"); }
  bool has_second() const { return std::filesystem::exists(out / "b_ctx.onnx"); }
  void check() const {
    if (has_first) CHECK(result_of(out / "a_ctx.onnx") == first);
    if (has_second()) CHECK(result_of(out / "b_ctx.onnx") == second);
  }
};

/// How a process of its own ended that compiled the second model with a fault at a call.
int wait_status(Scene& scene, int call) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    faults = {Fault::Kill, call, 0};
    const bool is_good = scene.compile_second().ok();
    ::_exit(is_good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a writer that is killed at any of its calls harms nothing and leaves no rubbish") {
  for (const bool has_first : {false, true}) {
    int call = 1;
    for (;; ++call) {
      CAPTURE(call);
      Scene scene(has_first);
      const int status = wait_status(scene, call);
      if (!WIFSIGNALED(status)) {
        CHECK(WEXITSTATUS(status) == 0);
        break;
      }
      CHECK(WTERMSIG(status) == SIGKILL);
      scene.check();
      const Status again = scene.compile_second();
      REQUIRE_MESSAGE(again.ok(), again.to_string());
      scene.check();
      for (const auto& [path, bytes] : contents(scene.out.path())) {
        CHECK_MESSAGE(!path.ends_with(".tmp"), path);
      }
    }
    MESSAGE("killed at each of " << call - 1 << " calls");
    CHECK(call > 10);
  }
}

TEST_CASE("a disk that is full from any call on leaves everything as it was") {
  for (const bool has_first : {false, true}) {
    int refusals = 0;
    for (int call = 1;; ++call) {
      CAPTURE(call);
      Scene scene(has_first);
      const auto before = contents(scene.out.path());
      faults = {Fault::FullDisk, call, 0};
      const Status status = scene.compile_second();
      const bool was_full = faults.is_full();
      faults = {};
      if (status.ok()) {
        CHECK(scene.has_second());
      } else {
        ++refusals;
        CHECK(status.to_string().find("No space left on device") != std::string::npos);
        CHECK(!scene.has_second());
        CHECK(contents(scene.out.path()) == before);
      }
      scene.check();
      if (!was_full) break;
    }
    CHECK(refusals > 5);
  }
}
