"""Feeds that do not fit are refused, and the message says what was expected and what was found."""

import numpy as np
import pytest

from common import (
    TensorProto,
    error_of,
    initializer,
    make_model,
    make_node,
    make_session,
    onnx_type,
    value,
)


def identity(dtype, shape):
    """Session that adds x to itself."""
    element = onnx_type(dtype)
    node = make_node("Add", ["x", "x"], ["y"])
    return make_session(
        make_model([node], [value("x", element, shape)], [value("y", element, None)])
    )


def refusal(session, feed):
    """Message of the refused run; the test fails if it is accepted."""
    error = error_of(lambda: session.run(None, feed))
    assert error is not None, f"accepted: { {key: np.shape(array) for key, array in feed.items()} }"
    return error


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(1,), (3,), (1, 1), (2, 2)])
def test_a_scalar_input_refuses_arrays_of_a_higher_rank(dtype, shape):
    """Even those of one element."""
    session = identity(dtype, [])
    assert session.run(None, {"x": np.array(1, dtype)})[0] == 2
    error = refusal(session, {"x": np.ones(shape, dtype)}).lower()
    assert "rank" in error or "shape" in error


def test_random_shapes_that_do_not_fit():
    """The message names the input and both numbers of the dim that differs."""
    generator = np.random.default_rng(4)
    for _ in range(40):
        rank = int(generator.integers(1, 5))
        declared = [
            int(d) if generator.random() < 0.6 else f"d{i}"
            for i, d in enumerate(generator.integers(1, 9, rank))
        ]
        if all(isinstance(dim, str) for dim in declared):
            declared[0] = 4
        session = identity(np.float32, declared)
        good = [dim if isinstance(dim, int) else int(generator.integers(1, 9)) for dim in declared]
        assert session.run(None, {"x": np.ones(good, np.float32)})[0].shape == tuple(good)
        fixed = [i for i, dim in enumerate(declared) if isinstance(dim, int)]
        place = int(generator.choice(fixed))
        wrong = list(good)
        wrong[place] += int(generator.integers(1, 40))
        error = refusal(session, {"x": np.ones(wrong, np.float32)})
        for word in ("x", str(good[place]), str(wrong[place])):
            assert word in error, error
        error = refusal(session, {"x": np.ones([*good, 1], np.float32)}).lower()
        assert "rank" in error or "shape" in error


NAMES = {
    np.float32: "float",
    np.float64: "double",
    np.int32: "int32",
    np.int64: "int64",
    np.uint8: "uint8",
    np.float16: "float16",
}


@pytest.mark.parametrize("fed", NAMES)
@pytest.mark.parametrize("declared", NAMES)
def test_another_element_type_is_refused_by_both_names(declared, fed):
    """No silent cast."""
    session = identity(declared, ["n"])
    array = np.ones(3, fed)
    if declared == fed:
        assert session.run(None, {"x": array})[0].dtype == declared
        return
    error = refusal(session, {"x": array})
    for word in ("x", NAMES[declared], NAMES[fed]):
        assert word in error, error


def test_unknown_and_missing_names_are_told():
    """Both the name that was given and those that there are."""
    nodes = [make_node("Add", ["left", "right"], ["y"])]
    declared = [value(name, TensorProto.FLOAT, ["n"]) for name in ("left", "right")]
    session = make_session(make_model(nodes, declared, [value("y", TensorProto.FLOAT, ["n"])]))
    array = np.ones(2, np.float32)
    error = refusal(session, {"left": array, "rihgt": array})
    assert "rihgt" in error or "right" in error
    error = refusal(session, {"left": array})
    assert "right" in error
    error = error_of(lambda: session.run(["z"], {"left": array, "right": array}))
    assert error is not None
    assert "z" in error


def test_an_input_with_a_default_may_be_left_out_or_given():
    """An initializer that is also an input."""
    nodes = [make_node("Add", ["x", "k"], ["y"])]
    declared = [value(name, TensorProto.FLOAT, [2]) for name in ("x", "k")]
    weights = [initializer("k", np.array([10, 20], np.float32))]
    session = make_session(
        make_model(nodes, declared, [value("y", TensorProto.FLOAT, [2])], weights)
    )
    x = np.array([1, 2], np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [11, 22]
    assert session.run(None, {"x": x, "k": -x})[0].tolist() == [0, 0]
