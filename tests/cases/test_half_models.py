"""A model of 16-bit floats computes in floats: right, as quick as in float32, cast at its rim."""

import json
import time

import ml_dtypes
import numpy as np
import pytest

from common import (
    initializer,
    make_model,
    make_node,
    make_session,
    onnx_type,
    run_model,
    runtime,
    value,
)

HALVES = (np.float16, ml_dtypes.bfloat16)


def convolutions(dtype, channels=16, size=28, layers=3):
    """A residual net of convolutions, and the shape that it takes."""
    generator = np.random.default_rng(channels)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        array = generator.standard_normal((channels, channels, 3, 3)) * 0.05
        weights.append(initializer(f"w{i}", array.astype(dtype)))
        nodes += [
            make_node("Conv", [last, f"w{i}"], [f"conv{i}"], pads=[1] * 4),
            make_node("Relu", [f"conv{i}"], [f"relu{i}"]),
            make_node("Add", [f"relu{i}", last], [f"sum{i}"]),
        ]
        last = f"sum{i}"
    nodes.append(make_node("GlobalAveragePool", [last], ["y"]))
    return finish(nodes, weights, dtype, [1, channels, size, size])


def perceptron(dtype, size=96, layers=3):
    """Products with SiLU and a normalisation, and the shape that they take."""
    generator = np.random.default_rng(size)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        array = generator.standard_normal((size, size)) / np.sqrt(size)
        weights.append(initializer(f"w{i}", array.astype(dtype)))
        weights.append(initializer(f"s{i}", np.ones(size, dtype)))
        nodes += [
            make_node("MatMul", [last, f"w{i}"], [f"product{i}"]),
            make_node("Sigmoid", [f"product{i}"], [f"gate{i}"]),
            make_node("Mul", [f"product{i}", f"gate{i}"], [f"silu{i}"]),
            make_node("LayerNormalization", [f"silu{i}", f"s{i}"], [f"norm{i}"]),
        ]
        last = f"norm{i}"
    nodes.append(make_node("Softmax", [last], ["y"]))
    return finish(nodes, weights, dtype, [8, size])


def loop(dtype):
    """A loop whose body computes on a value of the graph around it, and the shape that it takes."""
    state = [value("last", onnx_type(dtype), [4, 4])]
    next_state = [value("next", onnx_type(dtype), [4, 4])]
    flag = [value("go", onnx_type(np.bool_), [])]
    body = make_model(
        [
            make_node("MatMul", ["last", "w"], ["product"]),
            make_node("Tanh", ["product"], ["next"]),
            make_node("Identity", ["go"], ["go_on"]),
        ],
        [value("i", onnx_type(np.int64), []), *flag, *state],
        [value("go_on", onnx_type(np.bool_), []), *next_state],
    ).graph
    array = np.random.default_rng(4).standard_normal((4, 4)).astype(dtype)
    weights = [initializer("w", array), initializer("n", np.array(3, np.int64))]
    nodes = [make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    return finish(nodes, weights, dtype, [4, 4])


def finish(nodes, weights, dtype, shape):
    """The model of the nodes from x to y."""
    element = onnx_type(dtype)
    model = make_model(
        nodes, [value("x", element, shape)], [value("y", element, None)], weights, opset=22
    )
    return model, shape


MODELS = (convolutions, perceptron, loop)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("dtype", HALVES)
def test_results_are_those_in_float32(make, dtype):
    """To the precision of the type, and of the type that the model declares."""
    model, shape = make(dtype)
    wide, _ = make(np.float32)
    x = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    found = run_model(model, {"x": x})[0]
    expected = run_model(wide, {"x": x.astype(np.float32)})[0]
    assert found.dtype == dtype
    error = np.abs(found.astype(np.float32) - expected) / (1 + np.abs(expected))
    assert error.max() < (4e-3 if dtype == np.float16 else 3e-2)


@pytest.mark.parametrize("make", (convolutions, perceptron))
@pytest.mark.parametrize("dtype", HALVES)
def test_only_the_rim_is_cast(make, dtype, tmp_path):
    """One cast of the input and one of the output, whatever lies between."""
    model, shape = make(dtype)
    module = runtime()
    options = module.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = module.InferenceSession(model.SerializeToString(), options)
    session.run(None, {"x": np.zeros(shape, dtype)})
    with open(session.end_profiling()) as file:
        events = [event for event in json.load(file) if event["cat"] == "Node"]
    operators = [event["args"]["op_name"] for event in events]
    assert operators.count("Cast") == 2, operators


@pytest.mark.timed
@pytest.mark.parametrize("make", (convolutions, perceptron))
def test_float16_is_as_quick_as_float32(make):
    """Within 1.15 times, the best of interleaved runs on one thread."""
    sessions = {}
    for dtype in (np.float16, np.float32):
        model, shape = make(dtype, layers=6)
        sessions[dtype] = make_session(model, threads=1), {"x": np.ones(shape, dtype)}
    best = dict.fromkeys(sessions, np.inf)
    for _ in range(60):
        for dtype, (session, feed) in sessions.items():
            start = time.perf_counter()
            session.run(None, feed)
            best[dtype] = min(best[dtype], time.perf_counter() - start)
    assert best[np.float16] <= 1.15 * best[np.float32], best
