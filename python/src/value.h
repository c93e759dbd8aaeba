#pragma once

#include "arrays.h"

namespace sardonyx::python {

/// The OrtValue of Python: a value, and what its memory belongs to.
struct Value {
  ValueHandle handle;
  nb::object owner;
};

/// A Python OrtValue that takes `value` over.
nb::object make_value(ValueHandle value, nb::object owner = {});

/// The value inside a Python OrtValue; null when the object is none.
Value* value_in(nb::handle object);

}  // namespace sardonyx::python
