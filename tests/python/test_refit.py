"""Other weights in a session that lives."""

import numpy as np
import onnx
import pytest
import sardonyx as sx
from onnx import TensorProto, helper, numpy_helper

SIZE = 64


def write_model(path, weights):
    """y = Relu(x W0 + b) W1."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", SIZE])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return str(path)


@pytest.fixture
def weights():
    """Weights of the model."""
    random = np.random.default_rng(2)
    return {
        "w0": random.standard_normal((SIZE, SIZE)).astype(np.float32),
        "b": random.standard_normal(SIZE).astype(np.float32),
        "w1": random.standard_normal((SIZE, SIZE)).astype(np.float32),
    }


X = np.random.default_rng(1).standard_normal((3, SIZE)).astype(np.float32)


def test_a_session_runs_with_its_new_weights_and_others_keep_the_old(weights, tmp_path):
    path = write_model(tmp_path / "m.onnx", weights)
    session, other = sx.InferenceSession(path), sx.InferenceSession(path)
    (old,) = session.run(None, {"x": X})
    changed = {**weights, "w1": weights["w1"] * 2 + 1, "b": weights["b"] - 3}
    np.save(tmp_path / "b.npy", changed["b"])
    sx.refit(session, {"w1": changed["w1"], "b": tmp_path / "b.npy"})
    fresh = sx.InferenceSession(write_model(tmp_path / "new.onnx", changed))
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], fresh.run(None, {"x": X})[0])
    np.testing.assert_array_equal(other.run(None, {"x": X})[0], old)


def test_what_was_set_before_stays_set(weights, tmp_path):
    session = sx.InferenceSession(write_model(tmp_path / "m.onnx", weights))
    changed = {**weights, "w1": -weights["w1"], "b": weights["b"] + 1}
    sx.refit(session, {"w1": changed["w1"]})
    sx.refit(session, {"b": changed["b"]})
    fresh = sx.InferenceSession(write_model(tmp_path / "new.onnx", changed))
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], fresh.run(None, {"x": X})[0])


def test_what_does_not_fit_is_named_and_changes_nothing(weights, tmp_path):
    path = write_model(tmp_path / "m.onnx", weights)
    session = sx.InferenceSession(path)
    (old,) = session.run(None, {"x": X})
    with pytest.raises(Exception, match="no initializer 'w2'.*did you mean"):
        sx.refit(session, {"w2": weights["w1"]})
    with pytest.raises(Exception, match=r"initializer 'w1' is float of shape \[64,64\]"):
        sx.refit(session, {"w0": weights["w0"] * 2, "w1": weights["w1"][:3]})
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], old)
    with open(path, "ab") as file:
        file.write(b"")
    onnx.save(onnx.load(path), path)
    with pytest.raises(Exception, match="has changed since the session was made"):
        sx.refit(session, {"w1": weights["w1"]})


def test_a_session_from_bytes_says_that_it_cannot(weights, tmp_path):
    path = write_model(tmp_path / "m.onnx", weights)
    with open(path, "rb") as file:
        session = sx.InferenceSession(file.read())
    with pytest.raises(Exception, match="models from a file"):
        sx.refit(session, {"w1": weights["w1"]})
