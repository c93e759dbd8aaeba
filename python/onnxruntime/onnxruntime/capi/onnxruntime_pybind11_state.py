"""Classes, functions and exceptions of the runtime, under the name of onnxruntime's own module."""

import sardonyx
from sardonyx import enums, errors, sparse

globals().update({name: getattr(sardonyx, name) for name in sardonyx.__all__})
globals().update({name: getattr(enums, name) for name in enums.__all__})
globals().update({name: getattr(errors, name) for name in errors.__all__})
globals().update({name: getattr(sparse, name) for name in sparse.__all__})

kNextPowerOfTwo = enums.ArenaExtendStrategy.kNextPowerOfTwo
kSameAsRequested = enums.ArenaExtendStrategy.kSameAsRequested


def has_collective_ops():
    """Operators over several machines are not part of this runtime."""
    return False


def get_default_session_options():
    """Fresh session options."""
    return sardonyx.SessionOptions()
