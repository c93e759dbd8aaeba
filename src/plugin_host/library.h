#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "ir/tensor.h"
#include "plugin_host/context_node.h"
#include "sardonyx/c_api.h"

namespace sardonyx::plugin_host {

/// A plugin library that is loaded, with the factories that it made. Whatever uses a factory or
/// anything that one made shares it: with its last user the factories are released and the library
/// is closed.
class Library {
 public:
  /// Opens the file and calls its CreateEpFactories.
  /// Errors   NoSuchFile; InvalidArgument for what is no plugin library; those of the library.
  static Result<std::shared_ptr<Library>> load(const std::string& registration,
                                               const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The name that it was registered under; errors call it by that.
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  const std::vector<OrtEpFactory*>& factories() const { return factories_; }

  /// The name of the factory's provider, its vendor and its version.
  Result<std::string> factory_name(const OrtEpFactory& factory) const;
  Result<std::string> factory_vendor(const OrtEpFactory& factory) const;
  /// "" for a factory without version.
  Result<std::string> factory_version(const OrtEpFactory& factory) const;
  /// What copies tensors between the factory's devices and the processor; null when it has nothing.
  OrtDataTransferImpl* transfer(const OrtEpFactory& factory) const;

  /// A tensor that lives on a device of the library already, or what `make` makes. Sessions share
  /// constants in this way, by content and place.
  Result<Tensor> shared_constant(const void* place, const Hash128& content, const Tensor& like,
                                 const std::function<Result<Tensor>()>& make) const;

  /// Files that its providers owe to models that were compiled.
  PromisedFiles& promised_files() const { return promised_files_; }

 private:
  Library(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {}
  Status open();
  Status create_factories();
  Status create_transfers();

  struct SharedConstant {
    void* data;
    std::weak_ptr<const void> owner;
  };

  std::string name_;
  std::string path_;
  void* handle_ = nullptr;
  ReleaseEpApiFactoryFn release_ = nullptr;
  std::vector<OrtEpFactory*> factories_;
  std::map<const OrtEpFactory*, OrtDataTransferImpl*> transfers_;
  mutable PromisedFiles promised_files_;
  mutable std::mutex constants_mutex_;
  mutable std::map<std::pair<const void*, Hash128>, SharedConstant> constants_;
};

/// A relative path means the folder of this library, and only that.
std::string resolve_library_path(const std::string& path);

}  // namespace sardonyx::plugin_host
