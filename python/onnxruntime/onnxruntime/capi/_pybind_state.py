"""As onnxruntime_pybind11_state."""

from .onnxruntime_pybind11_state import *
