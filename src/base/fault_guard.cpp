#include "base/fault_guard.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

namespace sardonyx {

/// Read by the signal handler, so written in an order that never shows a range that is not there:
/// `end` is the last to come and the first to go.
struct FaultGuard::Range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> is_damaged{false};
};

namespace {

using Range = FaultGuard::Range;

/// Ranges in a list that only grows: the handler walks it without a lock.
struct Block {
  std::array<Range, 64> ranges;
  std::atomic<Block*> next{nullptr};
};

/// Lives in the library's own memory: a signal may come before or after anything else does.
struct State {
  Block first;
  std::atomic<std::uint32_t> damaged_count{0};
  std::uintptr_t page_bytes = 4096;
  struct sigaction previous{};
  // What follows is for those who install and remove, under the mutex.
  std::mutex mutex;
  std::size_t guard_count = 0;
  bool is_installed = false;
};

constinit State g_state;

Range* find(std::uintptr_t address) {
  for (Block* block = &g_state.first; block != nullptr;
       block = block->next.load(std::memory_order_acquire)) {
    for (Range& range : block->ranges) {
      const std::uintptr_t end = range.end.load(std::memory_order_acquire);
      const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);
      const bool is_inside = address < end && begin <= address;
      if (is_inside && range.end.load(std::memory_order_acquire) == end) return &range;
    }
  }
  return nullptr;
}

/// Puts zeros in the place of what the file lost: the page that was touched and all after it.
/// Marked first: who reads the zeros finds the mark.
bool cover(const void* touched) {
  const auto address = reinterpret_cast<std::uintptr_t>(touched);
  Range* range = find(address);
  if (range == nullptr) return false;
  if (!range->is_damaged.exchange(true)) g_state.damaged_count.fetch_add(1);
  const std::uintptr_t page = address & ~(g_state.page_bytes - 1);
  const std::uintptr_t end = range->end.load(std::memory_order_relaxed);
  const std::uintptr_t bytes = (end - page + g_state.page_bytes - 1) & ~(g_state.page_bytes - 1);
  void* zeros = ::mmap(reinterpret_cast<void*>(page), bytes, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return zeros != MAP_FAILED;
}

/// Whether the signal is that of an instruction that could not be finished.
bool is_fault(const siginfo_t& info) {
  return info.si_code == BUS_ADRALN || info.si_code == BUS_ADRERR || info.si_code == BUS_OBJERR
#ifdef BUS_MCEERR_AR
         || info.si_code == BUS_MCEERR_AR
#endif
      ;
}

/// Does what would have been done without us.
void forward(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = g_state.previous;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
    return;
  }
  // A fault cannot be ignored: the system ends the process.
  if (previous.sa_handler == SIG_IGN && !is_fault(*info)) return;
  struct sigaction fallback{};
  fallback.sa_handler = SIG_DFL;
  ::sigaction(number, &fallback, nullptr);
  // A fault comes again with the instruction, what was sent does not.
  if (!is_fault(*info)) static_cast<void>(::raise(number));
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (!is_fault(*info) || !cover(info->si_addr)) forward(number, info, context);
  errno = error;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 &&
         (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

bool is_switched_off() {
  const char* text = std::getenv("SARDONYX_NO_SIGBUS");
  return text != nullptr && *text != '\0' && !(text[0] == '0' && text[1] == '\0');
}

/// Under the mutex. A handler that is above ours is taken to call it; the default one is not.
void install() {
  struct sigaction current{};
  if (::sigaction(SIGBUS, nullptr, &current) != 0 || is_ours(current)) return;
  if (g_state.is_installed && !is_default(current)) return;
  g_state.page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  g_state.previous = current;
  struct sigaction ours = current;
  ours.sa_sigaction = on_bus_error;
  // Go and Java run their threads on small stacks and demand that handlers use the other one.
  ours.sa_flags = (current.sa_flags & (SA_NODEFER | SA_RESTART)) | SA_SIGINFO | SA_ONSTACK;
  g_state.is_installed = ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

/// Under the mutex. Whether the handler is gone.
bool remove() {
  struct sigaction current{};
  if (::sigaction(SIGBUS, nullptr, &current) != 0) return false;
  if (is_ours(current) && ::sigaction(SIGBUS, &g_state.previous, nullptr) != 0) return false;
  g_state.is_installed = !is_ours(current) && !is_default(current);
  return !g_state.is_installed;
}

/// Somebody's handler calls ours: its code must not go away.
void stay_in_memory() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&on_bus_error), &self) == 0) return;
  static_cast<void>(::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
}

/// When the library is unloaded, or the process ends, while somebody still has a guard.
__attribute__((destructor)) void remove_at_unload() {
  if (g_state.is_installed) static_cast<void>(remove());
}

/// Under the mutex. A range that is not in use; null when there is no memory.
Range* free_range() {
  for (Block* block = &g_state.first;; block = block->next.load(std::memory_order_relaxed)) {
    for (Range& range : block->ranges) {
      if (range.end.load(std::memory_order_relaxed) == 0) return &range;
    }
    if (block->next.load(std::memory_order_relaxed) != nullptr) continue;
    std::unique_ptr<Block> added(new (std::nothrow) Block);
    if (added == nullptr) return nullptr;
    // Never freed: the handler may walk through it at any time.
    block->next.store(added.release(), std::memory_order_release);
  }
}

}  // namespace

FaultGuard::FaultGuard(std::span<const std::byte> bytes) {
  if (bytes.empty() || is_switched_off()) return;
  const std::lock_guard lock(g_state.mutex);
  range_ = free_range();
  if (range_ == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  range_->is_damaged.store(false);
  range_->begin.store(begin, std::memory_order_release);
  range_->end.store(begin + bytes.size(), std::memory_order_release);
  ++g_state.guard_count;
  install();
}

FaultGuard::~FaultGuard() {
  if (range_ == nullptr) return;
  bool is_gone = true;
  {
    const std::lock_guard lock(g_state.mutex);
    range_->end.store(0, std::memory_order_release);
    range_->begin.store(0, std::memory_order_release);
    if (range_->is_damaged.exchange(false)) g_state.damaged_count.fetch_sub(1);
    if (--g_state.guard_count == 0 && g_state.is_installed) is_gone = remove();
  }
  if (!is_gone) stay_in_memory();
}

bool FaultGuard::is_damaged() const { return range_ != nullptr && range_->is_damaged.load(); }

bool FaultGuard::any_damaged() {
  return g_state.damaged_count.load(std::memory_order_relaxed) != 0;
}

}  // namespace sardonyx
