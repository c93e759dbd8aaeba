#pragma once

#include "api.h"

namespace sardonyx::python {

/// A configured OrtSessionOptions and the Python objects that it points into.
struct Options {
  Options();
  OptionsHandle handle;
  nb::list kept;
};

struct RunOptions {
  RunOptions();
  Handle<OrtRunOptions, &OrtApi::ReleaseRunOptions> handle;
  nb::list kept;
  bool terminate = false;
};

}  // namespace sardonyx::python
