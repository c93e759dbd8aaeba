"""Errors name the node (or its output), the operator and the tensor, at load and at run."""

import numpy as np
import onnx
import pytest

from common import (
    TensorProto,
    error_of,
    initializer,
    make_model,
    make_node,
    make_session,
    value,
)

NAME = "my_bad_node"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
FIXED = value("x", FLOAT, ["n", 4])
FREE = value("x", FLOAT, ["a", "b"])
ROWS = np.ones((2, 4), np.float32)


def one_node(op, inputs, graph_input=FIXED, weights=(), **attributes):
    """Model of one named node with output y."""
    node = make_node(op, inputs, ["y"], name=NAME, **attributes)
    return make_model([node], [graph_input], [value("y", FLOAT, None)], weights)


def weight(name, *shape, dtype=np.float32):
    """Weight of ones."""
    return initializer(name, np.ones(shape, dtype))


def numbers(name, *values):
    """Weight of int64 numbers."""
    return initializer(name, np.array(values, np.int64))


def load_errors():
    """Yield (title, model, words that the message must hold)."""
    fixed = value("x", FLOAT, [2, 4])
    concat = one_node("Concat", ["x", "k"], fixed, [weight("k", 2, 5)], axis=0)
    yield "shapes that do not fit", concat, [NAME]
    product = one_node("MatMul", ["x", "k"], fixed, [weight("k", 3, 3)])
    yield "inner dims that differ", product, [NAME, "MatMul", "4", "3"]
    types = one_node("Add", ["x", "k_tensor"], weights=[weight("k_tensor", 4, dtype=np.int64)])
    yield "types that do not fit", types, [NAME, "k_tensor"]
    yield "unknown operator", one_node("Frobnicate", ["x"]), [NAME, "Frobnicate"]
    yield "tensor that nobody makes", one_node("Relu", ["nope"]), [NAME, "nope"]
    axis = one_node("Softmax", ["x"], fixed, axis=7)
    yield "axis outside the rank", axis, [NAME, "7"]
    permutation = one_node("Transpose", ["x"], fixed, perm=[0, 0])
    yield "permutation that is none", permutation, [NAME, "Transpose"]
    yield "missing attribute", one_node("Cast", ["x"]), [NAME, "Cast", "to"]
    yield "too many inputs", one_node("Relu", ["x", "x"]), [NAME, "Relu"]
    twice = make_model(
        [make_node("Relu", ["x"], ["y"], name="first"), make_node("Neg", ["x"], ["y"], name=NAME)],
        [FIXED],
        [value("y", FLOAT, None)],
    )
    yield "tensor made twice", twice, ["y"]
    cycle = make_model(
        [
            make_node("Add", ["x", "b"], ["a"], name=NAME),
            make_node("Neg", ["a"], ["b"], name="other_node"),
            make_node("Relu", ["b"], ["y"]),
        ],
        [FIXED],
        [value("y", FLOAT, None)],
    )
    yield "a cycle", cycle, ["b"]


def run_errors():
    """Yield (title, model, feed, words that the message must hold)."""
    model = one_node("MatMul", ["x", "k"], FREE, [weight("k", 5, 5)])
    yield "MatMul", model, {"x": ROWS}, [NAME, "MatMul"]
    shape = numbers("k", 3, 3)
    yield "Reshape", one_node("Reshape", ["x", "k"], FREE, [shape]), {"x": ROWS}, [NAME, "Reshape"]
    nodes = [
        make_node("Relu", ["x"], ["hidden"]),
        make_node("Reshape", ["hidden", "k"], ["out_tensor"]),
    ]
    model = make_model(nodes, [FREE], [value("out_tensor", FLOAT, None)], [shape])
    yield "node without a name", model, {"x": ROWS}, ["out_tensor"]
    index = value("i", INT64, [1])
    node = make_node("Gather", ["x", "i"], ["y"], name=NAME)
    model = make_model([node], [FIXED, index], [value("y", FLOAT, None)])
    yield "index out of range", model, {"x": ROWS, "i": np.array([9])}, [NAME, "9"]
    yield "Concat", *feed_pair("Concat", axis=0), [NAME, "Concat"]
    yield "Add", *feed_pair("Add"), [NAME, "Add"]
    expand = make_node("Expand", ["x", "s"], ["y"], name=NAME)
    model = make_model([expand], [FREE, value("s", INT64, [2])], [value("y", FLOAT, None)])
    yield "Expand", model, {"x": ROWS, "s": np.array([2, 3])}, [NAME, "Expand"]
    conv = one_node("Conv", ["x", "k"], value("x", FLOAT, None), [weight("k", 1, 2, 3, 3)])
    yield "channels", conv, {"x": np.ones((1, 3, 8, 8), np.float32)}, [NAME, "Conv"]
    top = make_node("TopK", ["x", "k"], ["v", "y"], name=NAME)
    model = make_model([top], [FREE, value("k", INT64, [1])], [value("y", INT64, None)])
    yield "TopK", model, {"x": ROWS, "k": np.array([99])}, [NAME, "99"]


def feed_pair(op, **attributes):
    """Model of two free inputs and a feed that does not fit."""
    node = make_node(op, ["x", "z"], ["y"], name=NAME, **attributes)
    declared = [FREE, value("z", FLOAT, ["c", "d"])]
    model = make_model([node], declared, [value("y", FLOAT, None)])
    return model, {"x": ROWS, "z": np.ones((3, 3), np.float32)}


@pytest.mark.parametrize(("title", "model", "words"), list(load_errors()))
def test_a_model_that_is_wrong_is_refused_by_name(title, model, words):
    """At load, so that nothing wrong reaches a run."""
    error = error_of(lambda: make_session(model))
    assert error is not None, title
    assert [word for word in words if word not in error] == [], error


@pytest.mark.parametrize(("title", "model", "feed", "words"), list(run_errors()))
def test_data_that_do_not_fit_are_refused_by_name(title, model, feed, words):
    """At run."""
    error = error_of(lambda: make_session(model).run(None, feed))
    assert error is not None, title
    assert [word for word in words if word not in error] == [], error


def test_a_node_of_a_subgraph_is_named():
    """The message names the inner node, for branches and for loop bodies."""
    body = onnx.helper.make_graph(
        [make_node("Reshape", ["x", "k"], ["inner"], name=NAME)],
        "then",
        [],
        [value("inner", FLOAT, None)],
    )
    other = onnx.helper.make_graph(
        [make_node("Identity", ["x"], ["same"])], "else", [], [value("same", FLOAT, None)]
    )
    node = make_node("If", ["c"], ["y"], name="outer_node", then_branch=body, else_branch=other)
    declared = [FREE, value("c", TensorProto.BOOL, [])]
    model = make_model([node], declared, [value("y", FLOAT, None)], [numbers("k", 3, 3)])
    session = make_session(model)
    error = error_of(lambda: session.run(None, {"x": ROWS, "c": np.array(True)}))
    assert error is not None
    assert NAME in error
    assert np.array_equal(session.run(None, {"x": ROWS, "c": np.array(False)})[0], ROWS)


def test_a_file_that_is_no_model_is_refused_by_path(tmp_path):
    """Missing, empty, and garbage files."""
    generator = np.random.default_rng(9)
    missing = tmp_path / "missing.onnx"
    assert "missing.onnx" in error_of(lambda: make_session(str(missing)))
    for content in (b"", b"\x00" * 100, generator.bytes(1000), b"<html></html>"):
        path = tmp_path / "garbage.onnx"
        path.write_bytes(content)
        error = error_of(lambda path=path: make_session(str(path)))
        assert error is not None
        assert "garbage.onnx" in error


def test_a_newer_opset_is_refused_by_number():
    """And by its domain's name if that is unknown."""
    model = make_model(
        [make_node("Relu", ["x"], ["y"])], [FIXED], [value("y", FLOAT, None)], opset=99
    )
    assert "99" in error_of(lambda: make_session(model))
    node = make_node("Relu", ["x"], ["y"], domain="org.unheard.of", name=NAME)
    model = make_model([node], [FIXED], [value("y", FLOAT, None)])
    model.opset_import.append(onnx.helper.make_opsetid("org.unheard.of", 1))
    error = error_of(lambda: make_session(model))
    assert "org.unheard.of" in error
