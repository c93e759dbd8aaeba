#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// One build of a component, for one kind of device.
struct PackageVariant {
  using Entries = std::vector<std::pair<std::string, std::string>>;

  std::string name;
  std::string folder;
  /// Name of the execution provider that it is for; "" = none.
  std::string provider;
  /// "cpu", "gpu" or "npu"; "" = any device of the provider.
  std::string device;
  /// Opaque to all but the provider.
  std::string compatibility;
  /// "" when the variant is for other readers of the package.
  std::string model_file;
  /// What to set for a session; values that are paths are resolved.
  Entries session_options;
  Entries provider_options;
};

struct PackageComponent {
  std::string name;
  std::vector<PackageVariant> variants;
};

/// A model package: a folder with a manifest.json that lists components (parts of an application's
/// model), each in variants for different devices. Schema version 1.
///
/// Nothing outside the folder is reached unless the manifest's layout is "installed".
class ModelPackage {
 public:
  /// Errors   NoSuchFile; InvalidModel for a manifest that does not follow the schema, for unknown
  ///          fields of its version and for paths that lead out of the package.
  static Result<ModelPackage> open(const std::string& folder);

  std::int64_t schema_version() const { return schema_version_; }
  /// In the manifest's order.
  const std::vector<PackageComponent>& components() const { return components_; }
  const PackageComponent* find_component(std::string_view name) const;

  /// Where a reference leads: a path relative to `base` ("" = the package), or
  /// "sha256:<hex>[/path]" to a shared asset.
  /// Errors   InvalidModel for an asset that is not there and for a path out of the package;
  ///          NoSuchFile when it has to exist and does not.
  Result<std::string> resolve(const std::string& base, const std::string& reference,
                              bool must_exist) const;

 private:
  friend class PackageReader;

  ModelPackage() = default;

  std::string root_;
  bool is_installed_ = false;
  std::int64_t schema_version_ = 1;
  std::vector<PackageComponent> components_;
  /// Folders of shared assets by "sha256:<hex>".
  std::map<std::string, std::string, std::less<>> assets_;
};

/// Keys of session options whose values are paths, which a package resolves.
bool is_package_path_option(std::string_view key);

}  // namespace sardonyx
