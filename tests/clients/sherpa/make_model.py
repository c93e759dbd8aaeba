"""A tiny model of speaker embeddings, with the metadata that sherpa-onnx looks for.

make_model.py PATH
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = 80
SIZE = 16
METADATA = {
    "framework": "wespeaker",
    "language": "English",
    "url": "",
    "comment": "random weights",
    "sample_rate": "16000",
    "output_dim": str(SIZE),
    "normalize_samples": "1",
    "feature_normalize_type": "global-mean",
}


def main():
    """A convolution over time, the mean, and a projection."""
    random = np.random.default_rng(5)

    def weight(name, *shape):
        array = (random.standard_normal(shape) * 0.1).astype(np.float32)
        return numpy_helper.from_array(array, name)

    nodes = [
        helper.make_node("Transpose", ["feats"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "k", "kb"], ["c"], kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("Gemm", ["mean", "w", "b"], ["embs"]),
    ]
    graph = helper.make_graph(
        nodes,
        "speakers",
        [helper.make_tensor_value_info("feats", TensorProto.FLOAT, ["B", "T", FEATURES])],
        [helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["B", SIZE])],
        [weight("k", 32, FEATURES, 3), weight("kb", 32), weight("w", 32, SIZE), weight("b", SIZE)],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, METADATA)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
