#include "plugin_host/library.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_base.h"
#include "capi/kernel_info.h"
#include "plugin_host/callbacks.h"

namespace sardonyx::plugin_host {

namespace {

/// Room for factories that a library is offered.
constexpr std::size_t kFactoriesMax = 4;

}  // namespace

std::string resolve_library_path(const std::string& path) {
  const std::filesystem::path given(path);
  if (given.is_absolute()) return path;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&resolve_library_path), &info) == 0 ||
      info.dli_fname == nullptr) {
    return path;
  }
  std::error_code error;
  const auto own = std::filesystem::absolute(info.dli_fname, error);
  return error ? path : (own.parent_path() / given).string();
}

Result<std::shared_ptr<Library>> Library::load(const std::string& registration,
                                               const std::string& path) {
  std::shared_ptr<Library> library(new Library(registration, path));
  SDX_TRY(library->open());
  SDX_TRY(library->create_factories());
  SDX_TRY(library->create_transfers());
  return library;
}

Status Library::open() {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) {
    return failure(Code::NoSuchFile, "plugin library '{}': there is no file '{}'", name_, path_);
  }
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    return failure(Code::InvalidArgument, "plugin library '{}' cannot be loaded: {}", name_,
                   reason != nullptr ? reason : path_);
  }
  release_ = reinterpret_cast<ReleaseEpApiFactoryFn>(dlsym(handle_, "ReleaseEpFactory"));
  if (dlsym(handle_, "CreateEpFactories") != nullptr && release_ != nullptr) return {};
  return failure(Code::InvalidArgument,
                 "plugin library '{}': '{}' is no plugin library: it does not export "
                 "CreateEpFactories and ReleaseEpFactory",
                 name_, path_);
}

Status Library::create_factories() {
  const auto create = reinterpret_cast<CreateEpApiFactoriesFn>(dlsym(handle_, "CreateEpFactories"));
  OrtEpFactory* made[kFactoriesMax] = {};
  std::size_t count = 0;
  // Factories that a library made before it failed are its own to release.
  SDX_TRY(guarded_call(name_, "CreateEpFactories", [&] {
    return create(name_.c_str(), &capi::api_base(), &capi::default_logger(), made, kFactoriesMax,
                  &count);
  }));
  if (count > kFactoriesMax) {
    return failure(Code::InvalidArgument,
                   "plugin library '{}': CreateEpFactories says that it made {} factories, but "
                   "had room for {}",
                   name_, count, kFactoriesMax);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (made[i] == nullptr) {
      return failure(Code::InvalidArgument,
                     "plugin library '{}': factory {} of CreateEpFactories is a null pointer",
                     name_, i);
    }
    factories_.push_back(made[i]);
  }
  for (const OrtEpFactory* factory : factories_) {
    const bool is_complete = factory->GetName != nullptr && factory->GetVendor != nullptr &&
                             factory->GetSupportedDevices != nullptr &&
                             factory->CreateEp != nullptr && factory->ReleaseEp != nullptr;
    SDX_TRY(require_callback(
        name_, "GetName, GetVendor, GetSupportedDevices, CreateEp or ReleaseEp", is_complete));
  }
  return {};
}

Status Library::create_transfers() {
  for (OrtEpFactory* factory : factories_) {
    const auto create = callback(*factory, &OrtEpFactory::CreateDataTransfer, 23);
    if (create == nullptr) continue;
    OrtDataTransferImpl* made = nullptr;
    SDX_TRY(guarded_call(name_, "CreateDataTransfer", [&] { return create(factory, &made); }));
    if (made == nullptr) continue;
    // Released with the library also when it is incomplete.
    transfers_.emplace(factory, made);
    const bool is_complete =
        made->Release != nullptr && made->CanCopy != nullptr && made->CopyTensors != nullptr;
    SDX_TRY(require_callback(name_, "OrtDataTransferImpl::Release, CanCopy or CopyTensors",
                             is_complete));
  }
  return {};
}

OrtDataTransferImpl* Library::transfer(const OrtEpFactory& factory) const {
  const auto found = transfers_.find(&factory);
  return found == transfers_.end() ? nullptr : found->second;
}

Result<Tensor> Library::shared_constant(const void* place, const Hash128& content,
                                        const Tensor& like,
                                        const std::function<Result<Tensor>()>& make) const {
  const std::lock_guard lock(constants_mutex_);
  SharedConstant& shared = constants_[{place, content}];
  if (auto owner = shared.owner.lock()) {
    return Tensor::view(like.dtype(), like.shape(), shared.data, std::move(owner));
  }
  auto made = make();
  if (!made.ok()) return made;
  shared = {made->mutable_data(), made->owner()};
  std::erase_if(constants_, [](const auto& entry) { return entry.second.owner.expired(); });
  return made;
}

Library::~Library() {
  // Whoever could end a group has gone by now; it is said what is lost.
  promised_files_.finish();
  for (const auto& entry : transfers_) {
    OrtDataTransferImpl* transfer = entry.second;
    if (transfer->Release == nullptr) continue;
    guarded_void(name_, "OrtDataTransferImpl::Release", [&] { transfer->Release(transfer); });
  }
  for (OrtEpFactory* factory : factories_) {
    const Status status =
        guarded_call(name_, "ReleaseEpFactory", [&] { return release_(factory); });
    if (!status.ok()) log(Severity::Error, "{}", status.message());
  }
  if (handle_ != nullptr) dlclose(handle_);
}

Result<std::string> Library::factory_name(const OrtEpFactory& factory) const {
  return read_text(name_, "GetName", [&] { return factory.GetName(&factory); });
}

Result<std::string> Library::factory_vendor(const OrtEpFactory& factory) const {
  return read_text(name_, "GetVendor", [&] { return factory.GetVendor(&factory); }, true);
}

Result<std::string> Library::factory_version(const OrtEpFactory& factory) const {
  const auto get = callback(factory, &OrtEpFactory::GetVersion, 23);
  if (get == nullptr) return std::string();
  return read_text(name_, "GetVersion", [&] { return get(&factory); }, true);
}

}  // namespace sardonyx::plugin_host
