"""Tiny models do not expand to gigabytes while they are loaded."""

import json

import numpy as np
import onnx
import pytest

from common import TensorProto, initializer, last_line, make_model, make_node, run_child, value

LIMIT_MIB = 300

CODE = """
import json, resource, sys
from common import error_of, make_session, memory, runtime

runtime()
before = memory()["Rss"]
error = error_of(lambda: make_session(sys.argv[1]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([peak - before, error]))
"""


def expansions(generator):
    """Yield (operator, its inputs, constants, attributes), each with 2 GiB or more of result."""
    rows = 1 << int(generator.integers(10, 18))
    columns = (1 << 29) // rows
    shape = np.array([rows, columns], np.int64)
    one = np.ones((1, 1), np.float32)
    yield "ConstantOfShape", ["shape"], {"shape": shape}, {}
    yield "Expand", ["one", "shape"], {"one": one, "shape": shape}, {}
    yield "Tile", ["one", "shape"], {"one": one, "shape": shape}, {}
    bounds = {"start": 0, "limit": 5e8, "step": 1}
    constants = {name: np.array(number, np.float32) for name, number in bounds.items()}
    yield "Range", list(bounds), constants, {}
    pads = np.array([0, 0, rows, columns], np.int64)
    yield "Pad", ["one", "pads"], {"one": one, "pads": pads}, {}
    image = np.ones((1, 1, 1, 1), np.float32)
    scales = np.array([1, 1, rows, columns], np.float32)
    yield "Resize", ["image", "", "scales"], {"image": image, "scales": scales}, {}
    depth = np.array(columns, np.int64)
    indices = np.zeros(rows, np.int64)
    values = np.array([0, 1], np.float32)
    constants = {"indices": indices, "depth": depth, "values": values}
    yield "OneHot", ["indices", "depth", "values"], constants, {}
    size = np.array(1 << 15, np.int64)
    yield "HannWindow", ["size"], {"size": size * (1 << 14)}, {}
    column, row = np.ones((rows, 1), np.float32), np.ones((1, columns), np.float32)
    yield "MatMul", ["column", "row"], {"column": column, "row": row}, {}
    yield "Add", ["column", "row"], {"column": column, "row": row}, {}


def bomb(op, inputs, constants, attributes):
    """Model that adds the sum of the expanded constant to its input."""
    return make_model(
        [
            make_node(op, inputs, ["big"], name="expansion", **attributes),
            make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
            make_node("Add", ["x", "sum"], ["y"]),
        ],
        [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
        [initializer(name, array) for name, array in constants.items()],
    )


CASES = list(expansions(np.random.default_rng(8)))


@pytest.mark.parametrize(("op", "inputs", "constants", "attributes"), CASES)
def test_loading_stays_small(tmp_path, op, inputs, constants, attributes):
    """The model is refused with the node's name, or loaded unfolded."""
    path = tmp_path / "bomb.onnx"
    path.write_bytes(bomb(op, inputs, constants, attributes).SerializeToString())
    status, output, errors = run_child(CODE, path, timeout=100)
    assert status == 0, errors[-300:]
    growth, error = json.loads(last_line(output))
    assert growth < LIMIT_MIB
    if error is not None:
        assert "expansion" in error or "big" in error


def test_a_bomb_inside_a_branch(tmp_path):
    """The bound holds for subgraphs too."""
    big = onnx.helper.make_graph(
        [
            make_node("ConstantOfShape", ["shape"], ["big"], name="expansion"),
            make_node("ReduceSum", ["big"], ["inner"], keepdims=0),
        ],
        "then",
        [],
        [value("inner", TensorProto.FLOAT, [])],
    )
    small = onnx.helper.make_graph(
        [make_node("Identity", ["zero"], ["outer"])],
        "else",
        [],
        [value("outer", TensorProto.FLOAT, [])],
    )
    model = make_model(
        [
            make_node("If", ["condition"], ["sum"], then_branch=big, else_branch=small),
            make_node("Add", ["x", "sum"], ["y"]),
        ],
        [value("x", TensorProto.FLOAT, [1]), value("condition", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT, [1])],
        [
            initializer("shape", np.array([1 << 15, 1 << 14], np.int64)),
            initializer("zero", np.array(0, np.float32)),
        ],
    )
    path = tmp_path / "bomb.onnx"
    path.write_bytes(model.SerializeToString())
    status, output, errors = run_child(CODE, path, timeout=100)
    assert status == 0, errors[-300:]
    assert json.loads(last_line(output))[0] < LIMIT_MIB
