"""ModelCompiler: compile a model ahead of time."""

import os
from contextlib import contextmanager

from . import _native, environment
from .enums import GraphOptimizationLevel, OrtCompileApiFlags, OrtWeightlessSupport
from .errors import InvalidArgument

__all__ = [
    "ModelCompiler",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtExternalInitializerInfo",
]


class OrtEpContextDataBuffer:
    """Takes the data that a reading function provides; see set_ep_context_data_read_func."""

    def __init__(self):
        self.max_size = None
        self._data = None

    @property
    def is_allocated(self):
        """Was memory asked for?"""
        return self._data is not None

    @property
    def size(self):
        """Bytes that were asked for."""
        return len(self._data) if self.is_allocated else 0

    def allocate(self, size):
        """Ask for memory, once; returns a writable memoryview."""
        if self.is_allocated:
            raise RuntimeError("the buffer is allocated already")
        if self.max_size is not None and size > self.max_size:
            raise ValueError(f"{size} bytes exceed the configured maximum size {self.max_size}")
        self._data = bytearray(size)
        return memoryview(self._data)

    def write(self, data):
        """Set the content, as much as was asked for, or else as much as it is."""
        memory = memoryview(self._data) if self.is_allocated else self.allocate(len(data))
        if len(data) != len(memory):
            raise ValueError(f"{len(data)} bytes were written, but {len(memory)} allocated")
        memory[:] = data

    def _content(self):
        if not self.is_allocated:
            raise RuntimeError("the function must allocate its output buffer")
        return bytes(self._data)


class OrtEpContextData:
    """Compiled data that a writing function gets, good until it returns."""

    def __init__(self, data):
        self._view = memoryview(data)

    @property
    def size(self):
        """Bytes that there are."""
        return len(self._open())

    def read(self, offset=0, length=None):
        """Copy some of the bytes, by default all."""
        view = self._open()
        end = len(view) if length is None else offset + length
        if not 0 <= offset <= end <= len(view):
            raise ValueError(
                f"bytes {offset} to {end} are not within the {len(view)} that there are"
            )
        return bytes(view[offset:end])

    def __bytes__(self):
        return self.read()

    def __len__(self):
        return self.size

    def _open(self):
        if self._view is None:
            raise RuntimeError("the data is gone: it may be read until the function returns")
        return self._view

    def _close(self):
        self._view = None


class OrtExternalInitializerInfo:
    """A place in a file that holds a weight."""

    def __init__(self, filepath, file_offset, byte_size):
        self.filepath = os.fspath(filepath)
        self.file_offset = int(file_offset)
        self.byte_size = int(byte_size)


class ModelCompiler:
    """Compiles a model for the providers of some session options.

    >>> compiler = ModelCompiler(options, "model.onnx")
    >>> compiler.compile_to_file("model_ctx.onnx")

    The result is a small model whose nodes name the compiled data: beside it in a file, or inside
    with embed_compiled_data_into_model. Loading it is quick, and its weights are mapped.
    """

    def __init__(
        self,
        sess_options,
        input_model_path_or_bytes,
        embed_compiled_data_into_model=False,
        external_initializers_file_path=None,
        external_initializers_size_threshold=1024,
        flags=OrtCompileApiFlags.NONE,
        graph_optimization_level=GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func=None,
        weightless_mode=None,
    ):
        if external_initializers_file_path and get_initializer_location_func:
            raise ValueError(
                "give external_initializers_file_path or get_initializer_location_func, not both"
            )
        path = data = None
        if isinstance(input_model_path_or_bytes, (str, os.PathLike)):
            path = os.fsdecode(os.fspath(input_model_path_or_bytes))
        elif isinstance(input_model_path_or_bytes, (bytes, bytearray, memoryview)):
            data = bytes(input_model_path_or_bytes)
        else:
            kind = type(input_model_path_or_bytes)
            raise TypeError(f"Unable to load from type '{kind}': expected a path or bytes")
        self._options = sess_options
        self._applied = sess_options._apply()
        environment.apply_logger(self._applied)
        self._native = _native.Compiler(self._applied, path, data)
        self._native.set_embed(bool(embed_compiled_data_into_model))
        self._native.set_flags(int(flags))
        self._native.set_level(int(graph_optimization_level))
        if external_initializers_file_path:
            file = os.fspath(external_initializers_file_path)
            self._native.set_initializers_file(file, int(external_initializers_size_threshold))
        if get_initializer_location_func:
            self._native.set_locator(self._locator(get_initializer_location_func))
        if weightless_mode is not None:
            self._native.set_weightless_mode(int(OrtWeightlessSupport(weightless_mode)))

    @staticmethod
    def _locator(function):
        """The user's function in the form that the native module calls."""

        def locate(name, array, info):
            value = _native.OrtValue.ortvalue_from_numpy(array)
            given = OrtExternalInitializerInfo(*info) if info else None
            place = function(name, value, given)
            return (place.filepath, place.file_offset, place.byte_size) if place else None

        return locate

    @contextmanager
    def _cancellable(self):
        """The session options' set_load_cancellation_flag() reaches the work inside."""
        live = self._options._live
        live.append(self._applied)
        try:
            self._applied.set_cancelled(self._options._cancelled)
            yield
        finally:
            live.remove(self._applied)

    def compile_to_file(self, output_model_path=None):
        """Write the compiled model to a file; by default beside the source, with '_ctx' added."""
        with self._cancellable():
            if output_model_path is None:
                self._native.compile_to_default()
            else:
                self._native.compile_to_file(os.fspath(output_model_path))

    def compile_to_bytes(self):
        """Return the compiled model as bytes."""
        with self._cancellable():
            return self._native.compile_to_bytes()

    def compile_to_stream(self, write_function):
        """Hand the compiled model to a function, part by part as bytes."""
        if not callable(write_function):
            raise TypeError(f"a stream is a function that takes bytes, found {write_function!r}")
        with self._cancellable():
            self._native.compile_to_stream(write_function)

    def set_ep_context_binary_information(self, output_directory, model_name):
        """Set the folder and the name that the compiled data's file is derived from."""
        folder = os.fspath(output_directory)
        if not folder or not model_name:
            raise InvalidArgument(
                "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : output_dir or model_name is empty."
            )
        self._native.set_binary_information(folder, os.fspath(model_name))

    def set_ep_context_data_write_func(self, write_func):
        """Hand compiled data to a function (name, OrtEpContextData) instead of writing files."""
        if not callable(write_func):
            raise TypeError(f"expected a function of a name and data, found {write_func!r}")

        def write(name, content):
            data = OrtEpContextData(content)
            try:
                write_func(name, data)
            finally:
                data._close()

        self._native.set_write_data(write)

    def clear_ep_context_data_write_func(self):
        """Write compiled data to files again."""
        self._native.set_write_data(None)
