#include "session/environment.h"

namespace sardonyx {

std::shared_ptr<ThreadPool> Environment::shared_pool(ThreadPoolOptions options) {
  const std::lock_guard lock(mutex_);
  if (shared_pool_ == nullptr) shared_pool_ = std::make_shared<ThreadPool>(std::move(options));
  return shared_pool_;
}

}  // namespace sardonyx
