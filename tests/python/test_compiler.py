"""Compiling ahead of time."""

import models
import numpy as np
import onnx
import pytest
import sardonyx
from sardonyx import ModelCompiler, OrtCompileApiFlags, SessionOptions, errors

WEIGHTS = np.arange(300 * 4, dtype=np.float32).reshape(300, 4)
X = np.ones((2, 300), np.float32)
EXPECTED = X @ WEIGHTS


@pytest.fixture
def source(tmp_path):
    """Path of a model with a weight."""
    message = onnx.load_from_string(models.matmul(WEIGHTS))
    del message.graph.input[1]
    path = tmp_path / "source.onnx"
    onnx.save(message, path)
    return path


def result_of(model):
    (y,) = sardonyx.InferenceSession(model).run(None, {"x": X})
    return y


def test_a_compiled_file_runs(source, tmp_path):
    target = tmp_path / "compiled.onnx"
    ModelCompiler(SessionOptions(), source).compile_to_file(target)
    np.testing.assert_allclose(result_of(target), EXPECTED, rtol=1e-5)


def test_compiled_bytes_run(source):
    compiler = ModelCompiler(
        SessionOptions(), source.read_bytes(), embed_compiled_data_into_model=True
    )
    np.testing.assert_allclose(result_of(compiler.compile_to_bytes()), EXPECTED, rtol=1e-5)


def test_a_function_can_take_the_compiled_model(source):
    parts = []
    compiler = ModelCompiler(SessionOptions(), source, embed_compiled_data_into_model=True)
    compiler.compile_to_stream(parts.append)
    np.testing.assert_allclose(result_of(b"".join(parts)), EXPECTED, rtol=1e-5)


def test_what_the_function_raises_is_reported(source):
    def write(_):
        raise OSError("the disk is full")

    compiler = ModelCompiler(SessionOptions(), source, embed_compiled_data_into_model=True)
    with pytest.raises(errors.Error, match="the disk is full"):
        compiler.compile_to_stream(write)


def test_an_existing_file_can_be_protected(source, tmp_path):
    target = tmp_path / "compiled.onnx"
    target.write_bytes(b"precious")
    compiler = ModelCompiler(
        SessionOptions(), source, flags=OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    )
    with pytest.raises(errors.Error, match="exists"):
        compiler.compile_to_file(target)
    assert target.read_bytes() == b"precious"


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(errors.Error, match=r"nothing\.onnx"):
        ModelCompiler(SessionOptions(), tmp_path / "nothing.onnx").compile_to_bytes()
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
