"""Loading takes time in proportion to the number of nodes."""

import time

import numpy as np
import pytest

from common import TensorProto, initializer, make_model, make_node, make_session, value

pytestmark = pytest.mark.timed

CONSTANTS = ("k", "c")


def residual(nodes, tensor, i):
    """Four elementwise nodes around a shortcut."""
    nodes += [
        make_node("Mul", [tensor, "k"], [f"mul{i}"]),
        make_node("Add", [f"mul{i}", "c"], [f"add{i}"]),
        make_node("Sigmoid", [f"add{i}"], [f"sigmoid{i}"]),
        make_node("Sub", [f"sigmoid{i}", tensor], [f"sub{i}"]),
    ]
    return f"sub{i}"


def reshaping(nodes, tensor, i):
    """Transposes and reshapes that cancel out."""
    nodes += [
        make_node("Transpose", [tensor], [f"turned{i}"], perm=[1, 0]),
        make_node("Transpose", [f"turned{i}"], [f"back{i}"], perm=[1, 0]),
        make_node("Identity", [f"back{i}"], [f"same{i}"]),
        make_node("Relu", [f"same{i}"], [f"relu{i}"]),
    ]
    return f"relu{i}"


def foldable(nodes, tensor, i):
    """Constants to fold in every step."""
    nodes += [
        make_node("Add", ["k", "c"], [f"sum{i}"]),
        make_node("Exp", [f"sum{i}"], [f"exp{i}"]),
        make_node("Mul", [tensor, f"exp{i}"], [f"mul{i}"]),
        make_node("Tanh", [f"mul{i}"], [f"tanh{i}"]),
    ]
    return f"tanh{i}"


def branching(nodes, tensor, i):
    """All steps read the graph's input; one value has very many users."""
    nodes += [
        make_node("Mul", ["x", "k"], [f"mul{i}"]),
        make_node("Neg", [f"mul{i}"], [f"neg{i}"]),
        make_node("Abs", [f"neg{i}"], [f"abs{i}"]),
        make_node("Add", [tensor, f"abs{i}"], [f"add{i}"]),
    ]
    return f"add{i}"


def seconds(step, count):
    """Processor time to load a chain of ``count`` nodes."""
    nodes = []
    tensor = "x"
    for i in range(count // 4):
        tensor = step(nodes, tensor, i)
    nodes.append(make_node("Identity", [tensor], ["y"]))
    declared = [value(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    weights = [initializer(name, np.ones(4, np.float32)) for name in CONSTANTS]
    content = make_model(nodes, declared[:1], declared[1:], weights).SerializeToString()
    start = time.process_time()
    make_session(content, threads=1)
    return time.process_time() - start


@pytest.mark.parametrize("step", [residual, reshaping, foldable, branching])
def test_forty_thousand_nodes_load_within_two_seconds(step):
    """And not in more than twenty times the time of 4,000."""
    few = seconds(step, 4000)
    many = seconds(step, 40000)
    assert many < 2
    assert many < 20 * few + 0.3
