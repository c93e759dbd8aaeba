#include "cpu/provider.h"
#include "session/environment.h"

namespace sardonyx {

std::shared_ptr<Environment> make_environment() {
  auto environment = std::make_shared<Environment>();
  environment->add_provider(make_cpu_provider(environment->weights()));
  return environment;
}

}  // namespace sardonyx
