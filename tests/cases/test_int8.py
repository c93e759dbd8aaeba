"""Quantised convolutions and products are exact for every type and zero point, and quick."""

import time

import numpy as np
import pytest

from common import (
    TensorProto,
    initializer,
    make_model,
    make_node,
    make_session,
    onnx_type,
    run_model,
    value,
)

ROUNDS = 12


def random_integers(generator, shape, dtype):
    """The full range of a type, the extremes often."""
    info = np.iinfo(dtype)
    array = generator.integers(info.min, info.max, shape, endpoint=True)
    extreme = generator.random(shape) < 0.3
    return np.where(extreme, generator.choice([info.min, info.max], shape), array).astype(dtype)


def convolve(x, w, stride, pads, group):
    """Exact 2-D convolution of int64 arrays; ``x`` is already shifted by its zero point."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    kernel = w.shape[2:]
    rows = (x.shape[2] - kernel[0]) // stride + 1
    columns = (x.shape[3] - kernel[1]) // stride + 1
    result = np.zeros((x.shape[0], w.shape[0], rows, columns), np.int64)
    inner, outer = w.shape[1], w.shape[0] // group
    for g in range(group):
        part = x[:, g * inner : (g + 1) * inner]
        weights = w[g * outer : (g + 1) * outer]
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                window = part[
                    :, :, i : i + stride * rows : stride, j : j + stride * columns : stride
                ]
                window = window[:, :, :rows, :columns]
                result[:, g * outer : (g + 1) * outer] += np.einsum(
                    "nchw,oc->nohw", window, weights[:, :, i, j]
                )
    return result


@pytest.mark.parametrize("w_type", [np.int8, np.uint8])
@pytest.mark.parametrize("x_type", [np.int8, np.uint8])
def test_conv_integer_is_exact(x_type, w_type):
    """Random sizes, strides, pads and groups, depthwise too, with random zero points."""
    generator = np.random.default_rng(12)
    for _ in range(ROUNDS):
        group = int(generator.choice([1, 1, 2, 8]))
        inner = 1 if group == 8 else int(generator.integers(1, 20))
        outer = int(generator.integers(1, 6))
        kernel = [int(k) for k in generator.choice([1, 3], 2)]
        stride = int(generator.integers(1, 3))
        pads = [int(p) for p in generator.integers(0, 2, 4)]
        size = [int(s) for s in generator.integers(4, 12, 2)]
        x = random_integers(generator, (1, group * inner, *size), x_type)
        w = random_integers(generator, (group * outer, inner, *kernel), w_type)
        x_zero = random_integers(generator, (), x_type)
        w_zero = random_integers(generator, (), w_type)
        attributes = {"strides": [stride] * 2, "pads": pads, "group": group}
        model = make_model(
            [make_node("ConvInteger", ["x", "w", "x_zero", "w_zero"], ["y"], **attributes)],
            [value("x", onnx_type(x_type), list(x.shape))],
            [value("y", TensorProto.INT32, None)],
            [initializer("w", w), initializer("x_zero", x_zero), initializer("w_zero", w_zero)],
        )
        expected = convolve(
            x.astype(np.int64) - int(x_zero),
            w.astype(np.int64) - int(w_zero),
            stride,
            pads,
            group,
        )
        result = run_model(model, {"x": x}, threads=int(generator.integers(1, 3)))[0]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
@pytest.mark.parametrize("a_type", [np.int8, np.uint8])
def test_matmul_integer_is_exact(a_type, b_type):
    """No saturation of pairs at the extremes, for depths around the widths of registers."""
    generator = np.random.default_rng(13)
    for depth in (1, 2, 3, 4, 5, 31, 32, 63, 64, 65, 200, 1000):
        rows, columns = (int(n) for n in generator.integers(1, 40, 2))
        a = random_integers(generator, (rows, depth), a_type)
        b = random_integers(generator, (depth, columns), b_type)
        a[0], b[:, 0] = np.iinfo(a_type).max, np.iinfo(b_type).max
        a_zero = random_integers(generator, (), a_type)
        b_zero = random_integers(generator, (columns,), b_type)
        constant = generator.random() < 0.5
        inputs = [value("a", onnx_type(a_type), ["m", "k"])]
        weights = [initializer("a_zero", a_zero), initializer("b_zero", b_zero)]
        feed = {"a": a}
        if constant:
            weights.append(initializer("b", b))
        else:
            inputs.append(value("b", onnx_type(b_type), ["k", "n"]))
            feed["b"] = b
        model = make_model(
            [make_node("MatMulInteger", ["a", "b", "a_zero", "b_zero"], ["y"])],
            inputs,
            [value("y", TensorProto.INT32, None)],
            weights,
        )
        expected = (a.astype(np.int64) - int(a_zero)) @ (
            b.astype(np.int64) - b_zero.astype(np.int64)
        )
        np.testing.assert_array_equal(run_model(model, feed)[0], expected)


SIDE = 56
CHANNELS = 32
SCALE = 0.02
WEIGHT_SCALE = 0.002
SHAPE = [1, CHANNELS, SIDE, SIDE]


def network(zero_point=None, relu=True, dilation=1, layers=5, shape=SHAPE):
    """Stack of convolutions; in QDQ form if ``zero_point`` is an int8 or uint8 value."""
    generator = np.random.default_rng(0)
    quantised = zero_point is not None
    weights = []
    nodes = []

    def quantise(tensor, name):
        """Append a QuantizeLinear and DequantizeLinear pair; returns the new tensor."""
        nodes.append(make_node("QuantizeLinear", [tensor, "scale", "zero"], [f"{name}_q"]))
        nodes.append(make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [f"{name}_d"]))
        return f"{name}_d"

    tensor = "x"
    if quantised:
        weights += [
            initializer("scale", np.array(SCALE, np.float32)),
            initializer("zero", np.array(zero_point)),
            initializer("weight_scale", np.array(WEIGHT_SCALE, np.float32)),
            initializer("weight_zero", np.array(0, np.int8)),
        ]
        tensor = quantise("x", "input")
    channels = shape[1]
    for i in range(layers):
        full = (generator.standard_normal((channels, channels, 3, 3)) * 0.05).astype(np.float32)
        rounded = np.clip(full / WEIGHT_SCALE, -127, 127).astype(np.int8)
        weights.append(initializer(f"w{i}", rounded if quantised else full))
        weight = f"w{i}"
        if quantised:
            inputs = [weight, "weight_scale", "weight_zero"]
            nodes.append(make_node("DequantizeLinear", inputs, [f"{weight}_d"]))
            weight = f"{weight}_d"
        window = {"pads": [dilation] * 4, "dilations": [dilation] * 2}
        nodes.append(make_node("Conv", [tensor, weight], [f"conv{i}"], **window))
        tensor = f"conv{i}"
        if relu:
            nodes.append(make_node("Relu", [tensor], [f"relu{i}"]))
            tensor = f"relu{i}"
        if quantised:
            tensor = quantise(tensor, f"layer{i}")
    nodes.append(make_node("Identity", [tensor], ["y"]))
    declared = [value(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    return make_model(nodes, declared[:1], declared[1:], weights)


def quantised_result(x, zero_point, relu, layers):
    """What the network computes, by exact integer sums."""
    generator = np.random.default_rng(0)
    info = np.iinfo(type(zero_point))
    zero = int(zero_point)

    def quantise(array):
        """Integers of the activation type."""
        return np.clip(np.rint(array / np.float32(SCALE)) + zero, info.min, info.max)

    integers = quantise(x)
    channels = x.shape[1]
    for _ in range(layers):
        full = (generator.standard_normal((channels, channels, 3, 3)) * 0.05).astype(np.float32)
        rounded = np.clip(full / WEIGHT_SCALE, -127, 127).astype(np.int8).astype(np.int64)
        sums = convolve(integers.astype(np.int64) - zero, rounded, 1, [1] * 4, 1)
        real = sums * (np.float64(np.float32(SCALE)) * np.float64(np.float32(WEIGHT_SCALE)))
        integers = quantise(np.maximum(real, 0) if relu else real)
    return (integers - zero) * np.float32(SCALE)


ZERO_POINTS = [np.int8(0), np.int8(-128), np.int8(7), np.uint8(0), np.uint8(128), np.uint8(200)]


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("zero_point", ZERO_POINTS, ids=lambda z: f"{z.dtype}-{z}")
def test_a_quantised_network_is_right_for_every_zero_point(zero_point, relu):
    """One layer to the step; ties may round either way, since the sum is scaled in float."""
    generator = np.random.default_rng(14)
    shape = [1, 8, 9, 11]
    x = generator.standard_normal(shape).astype(np.float32)
    model = network(zero_point, relu, layers=1, shape=shape)
    result = run_model(model, {"x": x})[0]
    steps = np.abs(result - quantised_result(x, zero_point, relu, 1)) / SCALE
    assert steps.max() < 1.01
    assert np.mean(steps > 0.5) < 0.002


def best_milliseconds(model):
    """Shortest of several runs on one thread."""
    session = make_session(model, threads=1)
    feed = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)}
    times = []
    for _ in range(20):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


@pytest.mark.timed
def test_every_zero_point_is_as_quick_as_the_quickest():
    """Within 1.1 times, and the quickest is not slower than float32 without Winograd."""
    times = {
        (f"{zero.dtype} {zero}", relu): best_milliseconds(network(zero, relu))
        for zero, relu in (
            (np.int8(0), False),
            (np.int8(0), True),
            (np.uint8(0), True),
            (np.uint8(128), False),
            (np.uint8(128), True),
        )
    }
    best = min(times.values())
    assert {key: ms for key, ms in times.items() if ms > 1.1 * best} == {}, times
    assert best <= best_milliseconds(network(dilation=2)), times
