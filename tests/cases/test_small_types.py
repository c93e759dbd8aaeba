"""Arrays of bfloat16, float8, int4 and so on go in and out of run() as ml_dtypes arrays."""

import ml_dtypes
import numpy as np
import pytest

from common import SMALL_TYPES, make_model, make_node, onnx_type, run_model, value

ROUNDS = 12


def random_small(generator, dtype):
    """Random array of a small type, of odd sizes too, so that packed types end inside a byte."""
    shape = tuple(int(d) for d in generator.integers(1, 6, generator.integers(0, 4)))
    if np.dtype(dtype).name in ("int4", "uint4"):
        low, high = (-8, 8) if dtype is ml_dtypes.int4 else (0, 16)
        return generator.integers(low, high, shape).astype(dtype)
    return np.asarray(generator.uniform(-3, 3, shape), np.float32).astype(dtype)


def model_of(node, taken, given, opset=23):
    """Model of one node from x to y."""
    return make_model(
        [node],
        [value("x", onnx_type(taken), None)],
        [value("y", onnx_type(given), None)],
        (),
        opset,
    )


def check_equal(result, expected):
    """Same type, same shape, same values."""
    assert isinstance(result, np.ndarray)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", SMALL_TYPES)
def test_a_small_type_goes_in_and_out(dtype):
    """By Identity, bit for bit."""
    generator = np.random.default_rng(5)
    for _ in range(ROUNDS):
        x = random_small(generator, dtype)
        check_equal(
            run_model(model_of(make_node("Identity", ["x"], ["y"]), dtype, dtype), {"x": x})[0], x
        )


@pytest.mark.parametrize("wide", [np.float32, np.float16])
@pytest.mark.parametrize("dtype", SMALL_TYPES)
def test_a_small_type_is_cast_in_both_directions(dtype, wide):
    """To a wide float and back."""
    generator = np.random.default_rng(6)
    for _ in range(ROUNDS):
        x = random_small(generator, dtype)
        widen = make_node("Cast", ["x"], ["y"], to=onnx_type(wide))
        check_equal(run_model(model_of(widen, dtype, wide), {"x": x})[0], x.astype(wide))
        narrow = make_node("Cast", ["x"], ["y"], to=onnx_type(dtype))
        check_equal(run_model(model_of(narrow, wide, dtype), {"x": x.astype(wide)})[0], x)


@pytest.mark.parametrize("dtype", SMALL_TYPES)
def test_an_array_that_is_not_dense_is_read_right(dtype):
    """A transposed view, and every second element."""
    generator = np.random.default_rng(7)
    full = np.asarray(generator.integers(0, 4, (6, 5)), np.float32).astype(dtype)
    model = model_of(make_node("Identity", ["x"], ["y"]), dtype, dtype)
    for view in (full.T, full[::2], full[:, ::-1]):
        check_equal(run_model(model, {"x": view})[0], np.ascontiguousarray(view))
