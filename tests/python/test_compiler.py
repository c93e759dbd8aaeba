"""Compiling ahead of time."""

import models
import numpy as np
import onnx
import pytest
import sardonyx
from sardonyx import ModelCompiler, SessionOptions, errors

WEIGHTS = np.arange(300 * 4, dtype=np.float32).reshape(300, 4)


@pytest.fixture
def source(tmp_path):
    """Path of a model with a weight."""
    message = onnx.load_from_string(models.matmul(WEIGHTS))
    del message.graph.input[1]
    path = tmp_path / "source.onnx"
    onnx.save(message, path)
    return path


def test_compiling_says_that_it_is_not_there(source, tmp_path):
    """The interface is there and names itself; what exists is not touched."""
    target = tmp_path / "compiled.onnx"
    target.write_bytes(b"precious")
    with pytest.raises(errors.NotImplemented, match="OrtCompileApi"):
        ModelCompiler(SessionOptions(), source).compile_to_file(target)
    assert target.read_bytes() == b"precious"


def test_a_source_of_another_type_is_refused():
    with pytest.raises(TypeError, match="int"):
        ModelCompiler(SessionOptions(), 3)


def test_a_buffer_of_compiled_data_is_allocated_once():
    buffer = sardonyx.OrtEpContextDataBuffer()
    buffer.max_size = 4
    with pytest.raises(ValueError, match="maximum size 4"):
        buffer.write(b"12345")
    assert not buffer.is_allocated
    buffer.allocate(2)[:] = b"ab"
    assert buffer.size == 2
    with pytest.raises(RuntimeError, match="already"):
        buffer.write(b"cd")
