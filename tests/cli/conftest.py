"""Common parts of the tests of the command line."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build/release"))


@pytest.fixture
def sardonyx(tmp_path):
    """Run the command in an empty folder; returns the finished process."""

    def run(*arguments):
        return subprocess.run(
            [BUILD / "bin/sardonyx", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def save(path, nodes, inputs, outputs, weights=()):
    """Write a model of one graph."""
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(weights))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="tests"
    )
    helper.set_model_props(model, {"author": "somebody"})
    onnx.save(model, path)
    return path


@pytest.fixture
def linear(tmp_path):
    """y = x @ w + k on x [batch,3]; k is int64, cast to float."""
    value = helper.make_tensor_value_info
    return save(
        tmp_path / "linear.onnx",
        [
            helper.make_node("MatMul", ["x", "w"], ["product"], name="product_node"),
            helper.make_node("Cast", ["k"], ["offset"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["product", "offset"], ["y"], name="sum_node"),
        ],
        [
            value("x", TensorProto.FLOAT, ["batch", 3]),
            value("k", TensorProto.INT64, [1]),
        ],
        [value("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")],
    )


@pytest.fixture
def identity(tmp_path):
    """Make y = x of an element type."""

    def make(element_type):
        value = helper.make_tensor_value_info
        return save(
            tmp_path / "identity.onnx",
            [helper.make_node("Identity", ["x"], ["y"])],
            [value("x", element_type, ["n"])],
            [value("y", element_type, ["n"])],
        )

    return make
