"""Small models for the tests of the Python package."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

__all__ = [
    "TensorProto",
    "cast",
    "identity",
    "long_loop",
    "matmul",
    "model_of",
    "node",
    "relu",
    "two_inputs",
    "two_outputs",
    "value",
    "weight",
]

node = helper.make_node
value = helper.make_tensor_value_info


def weight(name, array):
    """An initializer."""
    return numpy_helper.from_array(np.asarray(array), name)


def model_of(nodes, inputs, outputs, weights=(), opset=21):
    """Bytes of a model of one graph."""
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(weights))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString()


def relu(shape=("batch", 3)):
    """y = Relu(x) on float32."""
    return model_of(
        [node("Relu", ["x"], ["y"], name="the_relu")],
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
    )


def identity(element_type, shape=("n",)):
    """y = x on any type."""
    return model_of(
        [node("Identity", ["x"], ["y"])],
        [value("x", element_type, shape)],
        [value("y", element_type, shape)],
    )


def cast(source, target, shape=("n",)):
    """y = x in another type."""
    return model_of(
        [node("Cast", ["x"], ["y"], to=target)],
        [value("x", source, shape)],
        [value("y", target, shape)],
    )


def matmul(weights):
    """y = x @ w, with a weight that a feed may replace."""
    rows, columns = weights.shape
    return model_of(
        [node("MatMul", ["x", "w"], ["y"])],
        [
            value("x", TensorProto.FLOAT, ["batch", rows]),
            value("w", TensorProto.FLOAT, weights.shape),
        ],
        [value("y", TensorProto.FLOAT, ["batch", columns])],
        [weight("w", weights)],
    )


def two_outputs():
    """a = x + x, b = x * x."""
    return model_of(
        [node("Add", ["x", "x"], ["a"]), node("Mul", ["x", "x"], ["b"])],
        [value("x", TensorProto.FLOAT, ["n"])],
        [value("a", TensorProto.FLOAT, ["n"]), value("b", TensorProto.FLOAT, ["n"])],
    )


def two_inputs():
    """y = first + second."""
    return model_of(
        [node("Add", ["first", "second"], ["y"])],
        [value("first", TensorProto.FLOAT, ["n"]), value("second", TensorProto.FLOAT, ["n"])],
        [value("y", TensorProto.FLOAT, ["n"])],
    )


def long_loop():
    """A loop that would run for centuries."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["go_on"]), node("Add", ["v", "one"], ["v_next"])],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, [1]),
        ],
        [value("go_on", TensorProto.BOOL, []), value("v_next", TensorProto.FLOAT, [1])],
        [weight("one", np.ones(1, np.float32))],
    )
    return model_of(
        [node("Loop", ["count", "condition", "x"], ["y"], body=body)],
        [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
        [weight("count", np.array(1 << 62)), weight("condition", np.array(True))],
    )
