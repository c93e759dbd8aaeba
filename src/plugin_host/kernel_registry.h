#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "sardonyx/c_api.h"

struct OrtDataType {
  ONNXTensorElementDataType type;
};

/// Which nodes a kernel is for, and where it wants their tensors.
struct OrtKernelDef {
  std::string op_type;
  std::string domain;
  std::string provider;
  int since_start = 1;
  int since_end = 1;
  /// OrtMemTypeDefault where nothing is said: the memory of the provider's device.
  std::map<size_t, OrtMemType> input_memory;
  std::map<size_t, OrtMemType> output_memory;
  /// Element types that a type parameter of the operator (or one of its inputs) may have.
  std::map<std::string, std::vector<ONNXTensorElementDataType>> types;
  /// Inputs whose memory an output may take over.
  std::vector<std::pair<int, int>> aliases;
  std::vector<std::pair<int, int>> mutable_aliases;
};

struct OrtKernelDefBuilder {
  OrtKernelDef def;
};

/// The kernels of a provider.
struct OrtKernelRegistry {
  struct Entry {
    OrtKernelDef def;
    OrtKernelCreateFunc create;
    void* state;
  };
  std::vector<std::unique_ptr<const Entry>> entries;

  /// The first kernel for the node: for its operator, for the version in which that began to mean
  /// what it means here, and for its element types; or null.
  const Entry* find(const sardonyx::Graph& graph, const sardonyx::Node& node) const;
};
