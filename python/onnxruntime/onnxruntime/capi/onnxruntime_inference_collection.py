"""Sessions and values, under the name of onnxruntime's own module."""

from sardonyx import (
    InferenceSession,
    IOBinding,
    ModelCompiler,
    OrtDevice,
    OrtDeviceVendorId,
    OrtValue,
    SparseTensor,
    copy_tensors,
)

from . import _pybind_state as C

__all__ = [
    "C",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "SparseTensor",
    "copy_tensors",
]
