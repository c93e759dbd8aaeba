"""refit(): other weights in a session that lives."""

import os

import numpy as np

from . import _native

__all__ = ["refit"]


def refit(session, weights):
    """Give initializers of a session's model other elements.

    >>> sardonyx.refit(session, {"encoder.weight": array, "encoder.bias": "bias.npy"})

    The values are arrays, or paths of .npy files, of the initializers' types and shapes. Runs that
    have begun end with the old weights; other sessions are not touched. Weights that stay the same
    are not packed again. Either all values are taken or, after an error, none.
    """
    arrays = {}
    for name, value in weights.items():
        is_path = isinstance(value, (str, os.PathLike))
        arrays[name] = np.load(value, mmap_mode="r") if is_path else np.asarray(value)
    values = [_native.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
    session._sess.refit(list(arrays), values)
