"""Normalisations written in pieces give the same result whether they are fused or not."""

import numpy as np
import pytest

from common import TensorProto, initializer, make_model, make_node, run_model, value

ROUNDS = 30
EPSILON = 1e-5


def pattern(centred, scale, bias, axes, flip):
    """Nodes and weights of LayerNorm (centred) or RMSNorm in pieces."""
    nodes = []
    tensor = "x"
    if centred:
        nodes.append(make_node("ReduceMean", ["x"], ["mean"], axes=axes, keepdims=1))
        nodes.append(make_node("Sub", ["x", "mean"], ["centred"]))
        tensor = "centred"
    nodes += [
        make_node("Pow", [tensor, "two"], ["square"]),
        make_node("ReduceMean", ["square"], ["variance"], axes=axes, keepdims=1),
        make_node("Add", ["epsilon", "variance"] if flip else ["variance", "epsilon"], ["shifted"]),
        make_node("Sqrt", ["shifted"], ["deviation"]),
        make_node("Div", [tensor, "deviation"], ["normed"]),
        make_node("Mul", ["scale", "normed"] if flip else ["normed", "scale"], ["scaled"]),
        make_node("Add", ["scaled", "bias"], ["y"]),
    ]
    weights = [
        initializer("two", np.array(2, np.float32)),
        initializer("epsilon", np.array(EPSILON, np.float32)),
        initializer("scale", scale),
        initializer("bias", bias),
    ]
    return nodes, weights


def expected_result(x, centred, scale, bias, axes):
    """The same in float64."""
    x = x.astype(np.float64)
    if centred:
        x = x - x.mean(axis=tuple(axes), keepdims=True)
    variance = (x * x).mean(axis=tuple(axes), keepdims=True)
    return x / np.sqrt(variance + EPSILON) * scale + bias


def random_operand(generator, shape):
    """A scale or bias that broadcasts with ``shape``, sometimes making the result larger."""
    kind = generator.integers(0, 5)
    if kind == 0:
        dims = (shape[-1],)
    elif kind == 1:
        dims = ()
    elif kind == 2:
        dims = tuple(d if generator.random() < 0.5 else 1 for d in shape)
    elif kind == 3:
        dims = (3, *shape)
    else:
        dims = tuple(5 if d == 1 else d for d in shape)
    return generator.standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("centred", [True, False])
def test_random_broadcasts_of_scale_and_bias(centred):
    """The result has the shape and the values of the graph as it is written."""
    generator = np.random.default_rng(3)
    for _ in range(ROUNDS):
        rank = int(generator.integers(1, 4))
        shape = tuple(int(generator.choice([1, 2, 5, 8])) for _ in range(rank))
        axes = [-1] if generator.random() < 0.7 else [int(generator.integers(0, rank))]
        scale = random_operand(generator, shape)
        bias = random_operand(generator, np.broadcast_shapes(shape, scale.shape))
        x = generator.standard_normal(shape).astype(np.float32)
        nodes, weights = pattern(centred, scale, bias, axes, bool(generator.integers(0, 2)))
        declared = [value("x", TensorProto.FLOAT, list(shape))]
        outputs = [value("y", TensorProto.FLOAT, None)]
        model = make_model(nodes, declared, outputs, weights, opset=13)
        expected = expected_result(x, centred, scale, bias, axes)
        for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
            result = run_model(model, {"x": x}, level)[0]
            assert result.shape == expected.shape, (shape, scale.shape, bias.shape)
            np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4)
