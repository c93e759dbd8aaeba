#pragma once

#include "sardonyx/c_api.h"

namespace sardonyx::capi {

/// What OrtGetApiBase() returns, and what libraries of operators and providers are handed: by this
/// name, because the exported one may be another library's in a process that has two.
const OrtApiBase& api_base();

}  // namespace sardonyx::capi
