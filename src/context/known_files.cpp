#include "context/known_files.h"

#include <chrono>
#include <thread>

#include "base/atomic_file.h"
#include "base/bytes.h"

namespace sardonyx {

namespace {

constexpr std::string_view kMagic("SDXSEEN1", 8);
/// Older entries than this many are dropped: a container has few sources.
constexpr std::size_t kEntries_max = 256;

}  // namespace

KnownFiles KnownFiles::beside(const std::string& container_path) {
  KnownFiles known;
  if (container_path.empty()) return known;
  known.path_ = container_path + ".seen";
  const auto file = MappedFile::open(known.path_);
  if (!file.ok() || (*file)->size() < sizeof(Hash128)) return known;
  const auto bytes = (*file)->bytes();
  const auto content = bytes.subspan(sizeof(Hash128));
  ByteReader reader(bytes, "list of known files");
  if (reader.hash() != hash_bytes(content)) return known;
  const auto magic = reader.raw(kMagic.size());
  if (std::memcmp(magic.data(), kMagic.data(), magic.size()) != 0) return known;
  while (reader.ok() && !reader.at_end()) {
    const auto identity = reader.fixed<FileIdentity>();
    const Hash128 hash = reader.hash();
    if (reader.ok()) known.contents_.emplace(identity, hash);
  }
  return known;
}

std::optional<Hash128> KnownFiles::content(const FileIdentity& identity) const {
  const auto found = contents_.find(identity);
  if (found == contents_.end()) return std::nullopt;
  return found->second;
}

Result<Hash128> KnownFiles::content_of(const std::string& path) {
  SDX_ASSIGN(const FileIdentity identity, identify_file(path));
  if (const auto known = content(identity)) return *known;
  SDX_ASSIGN(const auto file, MappedFile::open(path));
  const Hash128 hash = file->hash();
  wait_until_distinct(file->identity());
  add(file->identity(), hash);
  return hash;
}

void KnownFiles::add(const FileIdentity& identity, const Hash128& content) {
  const auto [entry, is_new] = contents_.try_emplace(identity, content);
  if (!is_new && entry->second == content) return;
  entry->second = content;
  is_changed_ = true;
}

void KnownFiles::save() const {
  if (!is_changed_ || path_.empty()) return;
  ByteWriter writer;
  writer.raw(std::as_bytes(std::span(kMagic)));
  std::size_t skipped = contents_.size() > kEntries_max ? contents_.size() - kEntries_max : 0;
  for (const auto& [identity, hash] : contents_) {
    if (skipped > 0) {
      --skipped;
      continue;
    }
    writer.fixed(identity);
    writer.hash(hash);
  }
  ByteWriter whole;
  whole.hash(hash_bytes(writer.bytes()));
  whole.raw(writer.bytes());
  auto file = AtomicFile::create(path_);
  if (!file.ok() || !file->append(whole.bytes()).ok()) return;
  (void)file->commit();
}

void wait_until_distinct(const FileIdentity& identity) {
  using std::chrono::system_clock;
  constexpr std::chrono::milliseconds kStep(12);
  const system_clock::time_point changed{std::chrono::duration_cast<system_clock::duration>(
      std::chrono::nanoseconds(identity.changed_ns))};
  const auto now = system_clock::now();
  // A time in the future says nothing about steps: a clock was set back.
  if (changed <= now && now - changed < kStep) std::this_thread::sleep_for(kStep);
}

}  // namespace sardonyx
