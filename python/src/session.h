#pragma once

#include "arrays.h"

namespace sardonyx::python {

using SessionHandle = Handle<OrtSession, &OrtApi::ReleaseSession>;

/// One graph input, output or overridable initializer.
struct Port {
  std::string name;
  TypeTree type;
};

/// A session, and what is asked of it on every call, read once.
struct Session {
  SessionHandle handle;
  nb::object kept;  // model bytes and options that the session may point into
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Port> initializers;
  std::vector<const char*> output_names;

  /// The input or overridable initializer of that name; null when there is none.
  const Port* find_feed(const char* name) const;
};

}  // namespace sardonyx::python
