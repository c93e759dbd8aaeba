#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ep/provider.h"
#include "weights/store.h"

namespace sardonyx {

/// What sessions of one process share: providers, packed weights and, when asked for, threads.
class Environment {
 public:
  Environment() : weights_(std::make_shared<WeightStore>()) {}

  const std::shared_ptr<WeightStore>& weights() const { return weights_; }

  /// Providers in order of preference for nodes that nobody places.
  void add_provider(std::shared_ptr<const Provider> provider) {
    providers_.push_back(std::move(provider));
  }
  const std::vector<std::shared_ptr<const Provider>>& providers() const { return providers_; }

  /// The pool of sessions that have none of their own, made at the first call with these options.
  std::shared_ptr<ThreadPool> shared_pool(ThreadPoolOptions options = {});

 private:
  std::shared_ptr<WeightStore> weights_;
  std::vector<std::shared_ptr<const Provider>> providers_;
  std::mutex mutex_;
  std::shared_ptr<ThreadPool> shared_pool_;
};

/// An environment with the built-in providers. Defined in lib/, which wires the parts together.
std::shared_ptr<Environment> make_environment();

}  // namespace sardonyx
