"""A tiny Llama with random weights, in a folder that onnxruntime-genai loads.

make_model.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS = 2
HEADS = 4
KEY_HEADS = 2
HEAD = 16
HIDDEN = HEADS * HEAD
INNER = 96
VOCABULARY = 128
LONGEST = 64
MS = "com.microsoft"


class Builder:
    """Collects nodes and weights."""

    def __init__(self):
        self.random = np.random.default_rng(11)
        self.nodes = []
        self.weights = []

    def weight(self, name, *shape, scale=0.3):
        """A random weight."""
        array = (self.random.standard_normal(shape) * scale).astype(np.float32)
        return self.constant(name, array)

    def constant(self, name, array):
        """A weight of given values."""
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, output, domain="", **attributes):
        """A node; its first output."""
        outputs = [output] if isinstance(output, str) else output
        name = outputs[0] + "_node"
        self.nodes.append(
            helper.make_node(kind, inputs, outputs, name, domain=domain, **attributes)
        )
        return outputs[0]

    def normalise(self, value, name):
        """Root mean square normalisation."""
        scale = self.constant(f"{name}.scale", np.ones(HIDDEN, np.float32))
        inputs = [value, scale]
        return self.node("SimplifiedLayerNormalization", inputs, name, axis=-1, epsilon=1e-5)

    def linear(self, value, name, inputs, outputs):
        """A product with a weight."""
        return self.node("MatMul", [value, self.weight(f"{name}.w", inputs, outputs)], name)


def rotary():
    """Cosines and sines of the positions."""
    angles = np.outer(np.arange(LONGEST), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def lengths(build):
    """Lengths that the attention needs, from the mask."""
    one = build.constant("one", np.array([1], np.int64))
    total = build.node("ReduceSum", ["attention_mask", one], "mask_sum", keepdims=0)
    before = build.node("Sub", [total, one], "mask_before")
    seqlens = build.node("Cast", [before], "seqlens_k", to=TensorProto.INT32)
    shape = build.node("Shape", ["attention_mask"], "mask_shape")
    second = build.constant("second", np.array(1, np.int64))
    length = build.node("Gather", [shape, second], "mask_length", axis=0)
    return seqlens, build.node("Cast", [length], "total_length", to=TensorProto.INT32)


def layer(build, i, hidden, seqlens, total):
    """One layer; its output."""
    key_size = KEY_HEADS * HEAD
    x = build.normalise(hidden, f"norm1.{i}")
    query = build.linear(x, f"q.{i}", HIDDEN, HIDDEN)
    key = build.linear(x, f"k.{i}", HIDDEN, key_size)
    value = build.linear(x, f"v.{i}", HIDDEN, key_size)
    past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
    present = [f"present.{i}.key", f"present.{i}.value"]
    inputs = [query, key, value, *past, seqlens, total, "cos", "sin"]
    attributes = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "do_rotary": 1}
    mixed = build.node("GroupQueryAttention", inputs, [f"mix.{i}", *present], MS, **attributes)
    mixed = build.linear(mixed, f"o.{i}", HIDDEN, HIDDEN)
    hidden = build.node("Add", [hidden, mixed], f"mid.{i}")
    x = build.normalise(hidden, f"norm2.{i}")
    gate = build.linear(x, f"gate.{i}", HIDDEN, INNER)
    switch = build.node("Sigmoid", [gate], f"switch.{i}")
    open_gate = build.node("Mul", [gate, switch], f"open.{i}")
    up = build.linear(x, f"up.{i}", HIDDEN, INNER)
    down = build.node("Mul", [open_gate, up], f"inner.{i}")
    down = build.linear(down, f"down.{i}", INNER, HIDDEN)
    return build.node("Add", [hidden, down], f"out.{i}")


def make_model():
    """The model with a cache of keys and values."""
    build = Builder()
    build.weight("embeddings", VOCABULARY, HIDDEN, scale=1.0)
    for name, array in zip(("cos", "sin"), rotary(), strict=True):
        build.constant(name, array)
    seqlens, total = lengths(build)
    hidden = build.node("Gather", ["embeddings", "input_ids"], "hidden", axis=0)
    for i in range(LAYERS):
        hidden = layer(build, i, hidden, seqlens, total)
    x = build.normalise(hidden, "norm")
    build.node("MatMul", [x, build.weight("head.w", HIDDEN, VOCABULARY)], "logits")
    make = helper.make_tensor_value_info
    inputs = [make("input_ids", TensorProto.INT64, ["batch", "sequence"])]
    inputs.append(make("attention_mask", TensorProto.INT64, ["batch", "total"]))
    outputs = [make("logits", TensorProto.FLOAT, ["batch", "sequence", VOCABULARY])]
    for i in range(LAYERS):
        for part in ("key", "value"):
            past = ["batch", KEY_HEADS, "past", HEAD]
            present = ["batch", KEY_HEADS, "total", HEAD]
            inputs.append(make(f"past_key_values.{i}.{part}", TensorProto.FLOAT, past))
            outputs.append(make(f"present.{i}.{part}", TensorProto.FLOAT, present))
    graph = helper.make_graph(build.nodes, "llama", inputs, outputs, build.weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def config():
    """What onnxruntime-genai wants to know of the model."""
    decoder = {
        "session_options": {"log_id": "genai", "provider_options": []},
        "filename": "model.onnx",
        "head_size": HEAD,
        "hidden_size": HIDDEN,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KEY_HEADS,
    }
    model = {
        "bos_token_id": 1,
        "context_length": LONGEST,
        "decoder": decoder,
        "eos_token_id": 127,
        "pad_token_id": 0,
        "type": "llama",
        "vocab_size": VOCABULARY,
    }
    search = {"do_sample": False, "max_length": LONGEST, "num_beams": 1, "top_k": 1}
    return {"model": model, "search": search}


def main():
    """Write model.onnx and genai_config.json."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(make_model(), folder / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(config(), indent=1))


if __name__ == "__main__":
    main()
