"""Models in ONNX Runtime's .ort format, as ONNX Runtime writes them."""

import numpy as np
import onnx
import onnxruntime
import pytest
import sardonyx
from models import TensorProto, model_of, node, value
from onnx import helper, numpy_helper

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def in_ort_format(model, path, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = level
    options.add_session_config_entry("session.save_model_format", "ORT")
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options)


def layered():
    weight = numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "w")
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("LeakyRelu", ["m"], ["l"], alpha=0.25),
        node("Transpose", ["l"], ["y"], perm=[1, 0]),
    ]
    return model_of(
        nodes,
        [value("x", TensorProto.FLOAT, ["n", 4])],
        [value("y", TensorProto.FLOAT, [2, "n"])],
        [weight],
    )


def branching():
    def branch(kind, name):
        made = node(kind, ["x"], [name])
        return helper.make_graph([made], name, [], [value(name, TensorProto.FLOAT, [3, 4])])

    limit = numpy_helper.from_array(np.float32(0), "limit")
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "limit"], ["up"]),
        node("If", ["up"], ["y"], then_branch=branch("Exp", "a"), else_branch=branch("Neg", "b")),
    ]
    return model_of(
        nodes,
        [value("x", TensorProto.FLOAT, [3, 4])],
        [value("y", TensorProto.FLOAT, [3, 4])],
        [limit],
    )


@pytest.mark.parametrize("make", [layered, branching])
@pytest.mark.parametrize("from_file", [True, False])
def test_models_run_as_those_they_were_made_from(make, from_file, tmp_path):
    path = tmp_path / "model.ort"
    reference = in_ort_format(make(), path)
    session = sardonyx.InferenceSession(str(path) if from_file else path.read_bytes())
    for ours, theirs in zip(session.get_inputs(), reference.get_inputs(), strict=True):
        assert (ours.name, ours.type, ours.shape) == (theirs.name, theirs.type, theirs.shape)
    for feed in (X - 1, X + 1):
        expected = reference.run(None, {"x": feed})
        np.testing.assert_allclose(session.run(None, {"x": feed})[0], expected[0], atol=1e-5)


def test_strings_and_metadata_are_kept(tmp_path):
    words = onnx.helper.make_tensor("words", TensorProto.STRING, [2], [b"one", "zwölf".encode()])
    model = model_of(
        [node("Identity", ["words"], ["y"])], [], [value("y", TensorProto.STRING, [2])], [words]
    )
    model = onnx.load_from_string(model)
    helper.set_model_props(model, {"author": "Jürgen"})
    path = tmp_path / "model.ort"
    in_ort_format(model, path)
    session = sardonyx.InferenceSession(str(path))
    assert session.run(None, {})[0].tolist() == ["one", "zwölf"]
    assert session.get_modelmeta().custom_metadata_map == {"author": "Jürgen"}


def load(data):
    """The text of the error, if there is one: any error is right, a crash is not."""
    try:
        sardonyx.InferenceSession(data)
    except sardonyx.errors.Error as error:
        return str(error)
    return None


def test_damaged_bytes_are_errors(tmp_path):
    path = tmp_path / "model.ort"
    in_ort_format(branching(), path)
    good = path.read_bytes()
    random = np.random.default_rng(1)
    assert "cut short" in load(good[: len(good) // 2])
    for length in range(8, len(good), 97):
        load(good[:length])
    for _ in range(300):
        damaged = bytearray(good)
        for position in random.integers(8, len(good), 3):
            damaged[position] = random.integers(0, 256)
        assert load(bytes(damaged)) != ""
