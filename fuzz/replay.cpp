// Stands in for libFuzzer: runs a target on files and on simple mutations of them, always the same.
//
//   fuzz_TARGET [--mutations N] FILE_OR_FOLDER ...
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// A copy with one to four changes: bits, bytes, lengths, parts removed or repeated.
Bytes mutate(Bytes bytes, std::mt19937& random) {
  static constexpr std::uint8_t kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  const auto below = [&](std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); };
  for (std::size_t change = 0; change <= below(4) && !bytes.empty(); ++change) {
    const std::size_t place = below(bytes.size());
    const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(place);
    const std::size_t length = std::min(1 + below(16), bytes.size() - place);
    const auto end = position + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0: *position ^= static_cast<std::uint8_t>(1U << below(8)); break;
      case 1: *position = kExtremes[below(std::size(kExtremes))]; break;
      case 2: *position = static_cast<std::uint8_t>(random()); break;
      case 3: bytes.erase(position, end); break;
      case 4: bytes.resize(place); break;
      default: {
        const Bytes part(position, end);
        bytes.insert(position, part.begin(), part.end());
      }
    }
  }
  return bytes;
}

std::vector<std::filesystem::path> files_of(const char* argument) {
  if (!std::filesystem::is_directory(argument)) return {argument};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argument)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A model may ask for all memory there is: with less it is refused sooner. Sanitizers need address
/// space of their own and have an option for this.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr rlim_t kDataBytesMax = rlim_t{384} << 20;
  const rlimit limit{kDataBytesMax, kDataBytesMax};
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

}  // namespace

int main(int count, char** arguments) {
  limit_memory();
  int mutations = 0;
  std::size_t runs = 0;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--mutations") == 0 && i + 1 < count) {
      mutations = std::atoi(arguments[++i]);
      continue;
    }
    for (const auto& path : files_of(arguments[i])) {
      const Bytes bytes = read_file(path);
      std::mt19937 random(static_cast<std::uint32_t>(bytes.size()));
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      for (int n = 0; n < mutations; ++n) {
        const Bytes mutated = mutate(bytes, random);
        // Left behind for the debugger when this input ends the process.
        if (std::getenv("SARDONYX_FUZZ_KEEP") != nullptr) {
          std::ofstream("last_input", std::ios::binary)
              .write(reinterpret_cast<const char*>(mutated.data()),
                     static_cast<std::streamsize>(mutated.size()));
        }
        LLVMFuzzerTestOneInput(mutated.data(), mutated.size());
      }
      runs += 1 + static_cast<std::size_t>(mutations);
    }
  }
  std::printf("%zu inputs passed\n", runs);
  return runs == 0 ? 1 : 0;
}
