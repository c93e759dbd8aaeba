"""Exceptions that the runtime raises, one per error code of its C interface.

All of them are ``Error``, so ``except sardonyx.errors.Error`` catches whatever the runtime reports.
The text has the form ``[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : what went wrong``. Where Python
has an exception of its own for the case, the class is that too: ``InvalidArgument`` is a
``ValueError``, ``NotImplemented`` a ``NotImplementedError``.
"""

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Error",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "RuntimeException",
]


class Error(Exception):
    """Any error that the runtime reports."""


class Fail(Error, RuntimeError):
    """Something failed for which there is no more exact code."""


class InvalidArgument(Error, ValueError):
    """An argument, a feed or an option does not fit."""


class NoSuchFile(Error, FileNotFoundError):
    """A model or one of its data files is missing."""


class NoModel(Error):
    """No model was found under that name."""


class EngineError(Error):
    """A device or its driver reported a failure."""


class RuntimeException(Error, RuntimeError):
    """The data of this run does not fit: an index out of range, shapes that do not match."""


class InvalidProtobuf(Error, ValueError):
    """The bytes are not an ONNX model."""


class ModelLoaded(Error):
    """The session is in the wrong state for this call."""


class NotImplemented(Error, NotImplementedError):
    """The request is valid, but this build cannot do it."""


class InvalidGraph(Error, ValueError):
    """The model's graph breaks a rule of ONNX."""


class EPFail(Error):
    """An execution provider failed."""


class ModelLoadCanceled(Error):
    """Loading was cancelled with SessionOptions.set_load_cancellation_flag."""


class ModelRequiresCompilation(Error):
    """The model has to be compiled, and the options forbid it."""


class NotFound(Error):
    """What was asked for does not exist."""


class DeviceReset(Error):
    """A device was lost and has to be set up again."""
