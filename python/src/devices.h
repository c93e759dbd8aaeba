#pragma once

#include "api.h"

namespace sardonyx::python {

/// The OrtEpDevice inside a Python object. Throws TypeError for other objects.
const OrtEpDevice* device_in(nb::handle object);

/// A Python OrtEpDevice; the environment owns the device itself.
nb::object make_device(const OrtEpDevice* device);

/// The adapter inside a Python LoraAdapter. Throws TypeError for other objects.
const OrtLoraAdapter* adapter_in(nb::handle object);

/// The OrtMemoryInfo inside a Python object. Throws TypeError for other objects.
const OrtMemoryInfo* memory_in(nb::handle object);

/// A Python OrtMemoryInfo that copies nothing; `memory` must outlive it.
nb::object make_memory(const OrtMemoryInfo* memory);

}  // namespace sardonyx::python
