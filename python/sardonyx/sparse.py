"""Sparse tensors."""

import numpy as np

from . import _native
from .enums import OrtSparseFormat

__all__ = ["SparseBlockSparseView", "SparseCooView", "SparseCsrView", "SparseTensor"]

COO_INDICES, CSR_INNER_INDICES, CSR_OUTER_INDICES, BLOCK_INDICES = range(4)


class SparseCooView:
    """Indices of a tensor in coordinate format."""

    def __init__(self, value):
        self._value = value

    def indices(self):
        """Return flat indices of shape [n], or coordinates of shape [n, 2]."""
        return _native.sparse_indices(self._value, COO_INDICES)


class SparseCsrView:
    """Indices of a tensor in compressed row format."""

    def __init__(self, value):
        self._value = value

    def inner(self):
        """Return the column of each value."""
        return _native.sparse_indices(self._value, CSR_INNER_INDICES)

    def outer(self):
        """Return where each row starts, and the end."""
        return _native.sparse_indices(self._value, CSR_OUTER_INDICES)


class SparseBlockSparseView:
    """Indices of a tensor in blocks."""

    def __init__(self, value):
        self._value = value

    def indices(self):
        """Return the place of each block."""
        return _native.sparse_indices(self._value, BLOCK_INDICES)


class SparseTensor:
    """A tensor of which only some values are stored."""

    def __init__(self, sparse_tensor):
        self._value = getattr(sparse_tensor, "_value", sparse_tensor)

    @staticmethod
    def sparse_coo_from_numpy(dense_shape, values, coo_indices, ort_device=None):
        """Make a tensor in coordinate format; indices are flat [n] or coordinates [n, 2]."""
        indices = np.asarray(coo_indices, np.int64).ravel().tolist()
        shape = np.asarray(dense_shape).tolist()
        return SparseTensor(_native.make_sparse(np.asarray(values), shape, indices, [], False))

    @staticmethod
    def sparse_csr_from_numpy(dense_shape, values, inner_indices, outer_indices, ort_device=None):
        """Make a tensor in compressed row format."""
        inner = np.asarray(inner_indices, np.int64).tolist()
        outer = np.asarray(outer_indices, np.int64).tolist()
        shape = np.asarray(dense_shape).tolist()
        return SparseTensor(_native.make_sparse(np.asarray(values), shape, inner, outer, True))

    def values(self):
        """Return the stored values."""
        return _native.sparse_values(self._value)

    def dense_shape(self):
        """Return the shape of the whole tensor."""
        return self._value.shape()

    def format(self):
        """Return the layout."""
        return OrtSparseFormat(_native.sparse_format(self._value))

    def data_type(self):
        """Return the type, for example 'sparse_tensor(float)'."""
        return self._value.data_type()

    def device_name(self):
        """Return where the data is."""
        return self._value.device_name()

    def as_coo_view(self):
        """Return the indices of a tensor in coordinate format."""
        return SparseCooView(self._value)

    def as_csrc_view(self):
        """Return the indices of a tensor in compressed row format."""
        return SparseCsrView(self._value)

    def as_blocksparse_view(self):
        """Return the indices of a tensor in blocks."""
        return SparseBlockSparseView(self._value)
