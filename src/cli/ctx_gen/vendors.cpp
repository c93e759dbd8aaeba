#include "cli/ctx_gen/vendors.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace sardonyx::cli::ctx_gen {

namespace {

namespace fs = std::filesystem;

/// How deep inside a package a library may lie.
constexpr int kDepth_max = 3;

const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor> kVendors = {
      {"qnn",
       "QNNExecutionProvider",
       {"libonnxruntime_providers_qnn.so"},
       "pip install onnxruntime-qnn"},
      {"tensorrt",
       "NvTensorRTRTXExecutionProvider",
       {"libonnxruntime_providers_nv_tensorrt_rtx.so"},
       "pip install onnxruntime-ep-nv-tensorrt-rtx"},
      {"openvino",
       "OpenVINOExecutionProvider",
       {"libonnxruntime_providers_openvino_plugin.so"},
       "pip install onnxruntime-ep-openvino"},
      {"vitisai",
       "VitisAIExecutionProvider",
       {"libonnxruntime_providers_vitisai.so", "libonnxruntime_vitisai_ep.so"},
       "install AMD's Ryzen AI software, which has the provider library"},
  };
  return kVendors;
}

std::vector<std::string> split_paths(const char* text) {
  std::vector<std::string> paths;
  std::string path;
  for (; text != nullptr; ++text) {
    if (*text != ':' && *text != '\0') {
      path += *text;
      continue;
    }
    if (!path.empty()) paths.push_back(std::move(path));
    path.clear();
    if (*text == '\0') break;
  }
  return paths;
}

/// The folders that `python3` imports from; none when there is no python3.
std::vector<std::string> python_folders() {
  std::vector<std::string> folders;
  std::FILE* pipe = popen("python3 -c 'import sys; print(chr(10).join(sys.path))' 2>&-", "r");
  if (pipe == nullptr) return folders;
  std::string line;
  for (int letter = 0; (letter = std::fgetc(pipe)) != EOF;) {
    if (letter != '\n') {
      line += static_cast<char>(letter);
      continue;
    }
    if (!line.empty()) folders.push_back(std::move(line));
    line.clear();
  }
  pclose(pipe);
  return folders;
}

/// The file of one of the names in a folder, or, with `searches_packages`, in the packages there
/// whose names begin as such do.
std::string find_in(const fs::path& folder, const Vendor& vendor, bool searches_packages) {
  std::error_code error;
  for (const char* library : vendor.libraries) {
    if (fs::is_regular_file(folder / library, error)) return (folder / library).string();
  }
  if (!searches_packages) return "";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path package = entry->path();
    if (!package.filename().string().starts_with("onnxruntime") || !fs::is_directory(package)) {
      continue;
    }
    std::error_code inner;
    for (fs::recursive_directory_iterator file(package, inner), last; !inner && file != last;
         file.increment(inner)) {
      if (file.depth() >= kDepth_max) file.disable_recursion_pending();
      for (const char* library : vendor.libraries) {
        if (file->path().filename() == library) return file->path().string();
      }
    }
  }
  return "";
}

}  // namespace

const Vendor* find_vendor(std::string_view name) {
  for (const Vendor& vendor : vendors()) {
    if (name == vendor.name) return &vendor;
  }
  return nullptr;
}

Result<std::string> find_library(const Vendor& vendor) {
  std::error_code error;
  for (const std::string& path : split_paths(std::getenv("SARDONYX_PLUGIN_PATH"))) {
    if (fs::is_regular_file(path, error)) {
      for (const char* library : vendor.libraries) {
        if (fs::path(path).filename() == library) return fs::absolute(path).string();
      }
      continue;
    }
    const std::string found = find_in(path, vendor, true);
    if (!found.empty()) return fs::absolute(found).string();
  }
  for (const std::string& folder : python_folders()) {
    const std::string found = find_in(folder, vendor, true);
    if (!found.empty()) return found;
  }
  std::vector<std::string> folders = split_paths(std::getenv("LD_LIBRARY_PATH"));
  folders.insert(folders.end(), {"/usr/local/lib", "/usr/lib", "/usr/lib64"});
  for (const std::string& folder : folders) {
    const std::string found = find_in(folder, vendor, false);
    if (!found.empty()) return fs::absolute(found).string();
  }
  return failure(
      "no provider library '{}' for -e {}: {}, or say where it is in SARDONYX_PLUGIN_PATH (looked "
      "for there, in the packages of python3, in LD_LIBRARY_PATH and in the system's folders)",
      vendor.libraries.front(), vendor.name, vendor.advice);
}

}  // namespace sardonyx::cli::ctx_gen
