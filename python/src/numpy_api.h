#pragma once

// One import of numpy's C interface for all source files of the module.
#define PY_ARRAY_UNIQUE_SYMBOL sardonyx_numpy
#ifndef SARDONYX_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
