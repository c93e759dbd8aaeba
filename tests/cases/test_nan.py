"""A NaN never gets lost in a minimum or maximum."""

import numpy as np
import pytest

from common import (
    FLOAT_TYPES,
    initializer,
    make_model,
    make_node,
    make_session,
    onnx_type,
    run_model,
    value,
)

ROUNDS = 40


def with_nans(generator, shape, dtype):
    """Random values; a random number of them, often none or one, are NaN."""
    array = generator.standard_normal(shape).astype(dtype)
    flat = array.reshape(-1)
    if flat.size:
        count = generator.choice([0, 1, 1, 2, max(1, flat.size // 2), flat.size])
        flat[generator.permutation(flat.size)[:count]] = np.nan
    return flat.reshape(shape)


def random_shape(generator, rank_max=4):
    """A shape with small and with longer dims."""
    rank = generator.integers(1, rank_max + 1)
    return tuple(int(generator.choice([1, 2, 3, 7, 16, 17, 33])) for _ in range(rank))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("op", "reference"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
def test_a_reduction_with_a_nan_gives_nan(op, reference, dtype):
    """Any rank, any axes, with and without kept dims, wherever the NaN stands."""
    generator = np.random.default_rng(1)
    for _ in range(ROUNDS):
        shape = random_shape(generator)
        rank = len(shape)
        axes = sorted(generator.permutation(rank)[: generator.integers(1, rank + 1)].tolist())
        keep = int(generator.integers(0, 2))
        model = make_model(
            [make_node(op, ["x", "axes"], ["y"], keepdims=keep)],
            [value("x", onnx_type(dtype), [None] * rank)],
            [value("y", onnx_type(dtype), None)],
            [initializer("axes", np.array(axes, np.int64))],
        )
        x = with_nans(generator, shape, dtype)
        result = run_model(model, {"x": x})[0]
        wide = x.astype(np.float64)
        expected = reference(wide, axis=tuple(axes), keepdims=bool(keep))
        np.testing.assert_array_equal(result.astype(np.float64), expected, str((shape, axes)))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_every_length_and_place_of_a_single_nan(op):
    """One NaN in vectors of all lengths around the widths of vector registers."""
    model = make_model(
        [make_node(op, ["x", "axes"], ["y"], keepdims=0)],
        [value("x", onnx_type(np.float32), ["a", "b"])],
        [value("y", onnx_type(np.float32), ["c"])],
        [initializer("axes", np.array([1], np.int64))],
    )
    session = make_session(model)
    for length in [*range(1, 40), 63, 64, 65, 127, 129, 257]:
        x = np.tile(np.arange(length, dtype=np.float32), (length, 1))
        np.fill_diagonal(x, np.nan)
        result = session.run(None, {"x": x})[0]
        assert np.isnan(result).all(), f"lost at {np.flatnonzero(~np.isnan(result))} of {length}"


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("op", "reference"), [("Max", np.maximum), ("Min", np.minimum)])
def test_min_and_max_keep_a_nan_of_any_operand(op, reference, dtype):
    """Two to four operands with random broadcasting, as feeds and as constants."""
    generator = np.random.default_rng(2)
    for _ in range(ROUNDS):
        full = random_shape(generator)
        count = int(generator.integers(2, 5))
        operands = []
        for _ in range(count):
            keep = generator.integers(0, len(full))
            shape = tuple(d if generator.random() < 0.6 else 1 for d in full[keep:])
            operands.append(with_nans(generator, shape, dtype))
        names = [f"x{i}" for i in range(count)]
        constant = int(generator.integers(-1, count))
        inputs = [
            value(name, onnx_type(dtype), [None] * array.ndim)
            for i, (name, array) in enumerate(zip(names, operands, strict=True))
            if i != constant
        ]
        weights = [initializer(names[constant], operands[constant])] if constant >= 0 else []
        model = make_model(
            [make_node(op, names, ["y"])], inputs, [value("y", onnx_type(dtype), None)], weights
        )
        feed = {n: a for i, (n, a) in enumerate(zip(names, operands, strict=True)) if i != constant}
        result = run_model(model, feed)[0]
        expected = operands[0].astype(np.float64)
        for operand in operands[1:]:
            expected = reference(expected, operand.astype(np.float64))
        np.testing.assert_array_equal(result.astype(np.float64), expected)
