"""What all sessions of the process share: the library, the log, threads."""

import os
from pathlib import Path

from . import _native

__all__ = [
    "library_path",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]

LIBRARY = "libonnxruntime.so.1"

callback = None


def library_path():
    """Path of the runtime library: SARDONYX_LIBRARY if it is set, else the package's own."""
    named = os.environ.get("SARDONYX_LIBRARY")
    return named if named else str(Path(__file__).parent / "lib" / LIBRARY)


_native.load_library(library_path())


def set_default_logger_severity(level):
    """Log messages of this level and above: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal."""
    if int(level) not in range(5):
        raise RuntimeError(f"Invalid logging severity: {level}; expected 0 to 4")
    _native.set_environment_severity(int(level))


def set_default_logger_verbosity(level):
    """Accept a level for verbose messages; SessionOptions.log_verbosity_level sets a session's."""
    int(level)


def set_default_logger_callback(function):
    """Hand the log of sessions made from now on to a function.

    It is called as function(level, category, logid, location, message), from any thread.
    None returns to the standard error stream.
    """
    global callback
    callback = function


def apply_logger(native):
    """Install the logger callback in native options."""
    if callback is not None:
        native.set_logger(callback)


def set_global_thread_pool_sizes(intra_op_num_threads=0, inter_op_num_threads=0):
    """Make thread pools that sessions with use_per_session_threads = False share.

    Call it before the first session is made.
    """
    if not _native.set_environment_threads(int(intra_op_num_threads), int(inter_op_num_threads)):
        raise RuntimeError("set_global_thread_pool_sizes must be called before the first session")


def set_seed(value):
    """Seed the random operators of sessions made from now on."""
    if _native.is_own_library():
        _native.set_random_seed(int(value))
