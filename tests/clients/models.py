"""The small models that the client programs run, and feeds of larger ones.

Every client fills an input with the same numbers, ((i % 7) - 3) / 4 for element i, so that results
can be compared between libraries and between languages.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ML = "ai.onnx.ml"
OWN = "test.clients"
TYPES = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "string": TensorProto.STRING,
}
# Those of `make models` that some clients run: no quantised values, results within 1e-4.
LARGER = ("ppocrv2_cls", "silero_vad", "magika_v3_3", "mobilenet_v3_large", "chars2vec_en300")


def value(name, dtype, shape):
    """A graph input or output that is a tensor."""
    return helper.make_tensor_value_info(name, dtype, shape)


def sequence(name, dtype):
    """A graph input or output that is a sequence of tensors."""
    element = helper.make_tensor_type_proto(dtype, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(element))


def model_of(nodes, inputs, outputs, weights=(), opset=20):
    """A model whose graph is called "small"."""
    graph = helper.make_graph(nodes, "small", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)]
    opsets.append(helper.make_opsetid(OWN, 1))
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=9, producer_name="Sardonyx clients"
    )


def numbers(*shape):
    """Weights that are the same everywhere."""
    array = np.arange(np.prod(shape), dtype=np.float32)
    return (np.sin(array * 1.7) * 0.5).reshape(shape)


def mlp():
    """A layer with weights, and every kind of metadata."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
        helper.make_node("Add", ["m", "b"], ["a"], "sum"),
        helper.make_node("Relu", ["a"], ["y"], "relu"),
    ]
    weights = [numpy_helper.from_array(numbers(8, 4), "w")]
    weights.append(numpy_helper.from_array(numbers(4), "b"))
    model = model_of(
        nodes,
        [value("x", TensorProto.FLOAT, ["batch", 8])],
        [value("y", TensorProto.FLOAT, ["batch", 4])],
        weights,
    )
    model.domain = "org.example"
    model.model_version = 7
    model.doc_string = "A small network"
    model.graph.doc_string = "One layer"
    helper.set_model_props(model, {"author": "Jürgen", "kind": "mlp", "empty": ""})
    return model


def overridable():
    """A layer whose bias is an input with a default."""
    model = mlp()
    model.graph.input.append(value("b", TensorProto.FLOAT, [4]))
    return model


def identity(dtype):
    """Hands its input on."""
    node = helper.make_node("Identity", ["x"], ["y"], "identity")
    return model_of([node], [value("x", dtype, ["n"])], [value("y", dtype, ["n"])])


def strings():
    """Joins two tensors of texts element by element."""
    node = helper.make_node("StringConcat", ["a", "b"], ["y"], "join")
    inputs = [value("a", TensorProto.STRING, ["n"]), value("b", TensorProto.STRING, ["n"])]
    return model_of([node], inputs, [value("y", TensorProto.STRING, ["n"])])


def sequence_out():
    """Makes a sequence of two tensors, and its length."""
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"], "construct"),
        helper.make_node("SequenceLength", ["s"], ["n"], "length"),
    ]
    inputs = [value("a", TensorProto.FLOAT, ["n"]), value("b", TensorProto.FLOAT, ["m"])]
    outputs = [sequence("s", TensorProto.FLOAT), value("n", TensorProto.INT64, [])]
    return model_of(nodes, inputs, outputs)


def sequence_in():
    """Joins the tensors of a sequence."""
    node = helper.make_node("ConcatFromSequence", ["s"], ["y"], "join", axis=0)
    return model_of([node], [sequence("s", TensorProto.FLOAT)], [value("y", 1, ["n"])])


def map_out():
    """A dictionary for each row of scores; its labels are not in order."""
    labels = ["pear", "apple", "fig"]
    node = helper.make_node("ZipMap", ["x"], ["z"], "zip", domain=ML, classlabels_strings=labels)
    scores = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.STRING, scores))
    return model_of([node], [value("x", 1, ["n", 3])], [helper.make_value_info("z", kind)])


def map_in():
    """The entries of a dictionary in the order of a vocabulary."""
    words = [3, 1, 2, 9]
    node = helper.make_node(
        "DictVectorizer", ["d"], ["y"], "vectorize", domain=ML, int64_vocabulary=words
    )
    entry = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    kind = helper.make_map_type_proto(TensorProto.INT64, entry)
    return model_of([node], [helper.make_value_info("d", kind)], [value("y", 1, [1, 4])])


def loop():
    """Multiplies a matrix by another as many times as it is told."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "w"], ["next"], "step"),
            helper.make_node("Identity", ["on"], ["on_out"], "go"),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, [])]
        + [value("state", TensorProto.FLOAT, [64, 64])],
        [value("on_out", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [64, 64])],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)]
    weights = [numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")]
    inputs = [value("n", TensorProto.INT64, []), value("x", TensorProto.FLOAT, [64, 64])]
    return model_of(nodes, inputs, [value("y", TensorProto.FLOAT, [64, 64])], weights)


def custom():
    """Two operators that the program itself has to bring."""
    nodes = [
        helper.make_node("Blend", ["x", "w"], ["m"], "blend", domain=OWN, share=0.25),
        helper.make_node("Steps", ["m"], ["y"], "steps", domain=OWN, sizes=[1, 2, 3]),
    ]
    weights = [numpy_helper.from_array(numbers(6), "w")]
    return model_of(nodes, [value("x", 1, [6])], [value("y", TensorProto.INT64, [6])], weights)


def lora():
    """A product whose second, low-rank part an adapter brings."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["base"], "base"),
        helper.make_node("MatMul", ["x", "down"], ["low"], "low"),
        helper.make_node("MatMul", ["low", "up"], ["delta"], "delta"),
        helper.make_node("Add", ["base", "delta"], ["y"], "sum"),
    ]
    weights = [numpy_helper.from_array(numbers(4, 4), "w")]
    weights.append(numpy_helper.from_array(np.zeros((4, 0), np.float32), "down"))
    weights.append(numpy_helper.from_array(np.zeros((0, 4), np.float32), "up"))
    inputs = [value("x", 1, ["n", 4]), value("down", 1, [4, "r"]), value("up", 1, ["r", 4])]
    return model_of(nodes, inputs, [value("y", 1, ["n", 4])], weights)


def write_adapter(path):
    """The parts for lora(), in the file format of adapters."""
    import onnxruntime

    adapter = onnxruntime.AdapterFormat()
    adapter.set_adapter_version(1)
    adapter.set_model_version(1)
    parts = {"down": numbers(4, 2), "up": numbers(2, 4)}
    values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in parts.items()}
    adapter.set_parameters(values)
    adapter.export_adapter(str(path))


def write_larger(folder, models):
    """Feeds of larger models: a list of "name type dims..." lines, and a file of bytes for each."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
    from inputs import make_inputs

    names = []
    for name in LARGER:
        source = models / f"{name}.onnx"
        if not source.exists():
            continue
        target = folder / "larger" / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "path.txt").write_text(str(source.resolve()))
        lines = []
        for index, (key, array) in enumerate(make_inputs(source).items()):
            array.tofile(target / f"{index}.bin")
            lines.append(" ".join([key, str(array.dtype), *map(str, array.shape)]))
        (target / "feed.txt").write_text("\n".join(lines) + "\n")
        names.append(name)
    (folder / "larger.txt").write_text("".join(f"{name}\n" for name in names))


def write_all(folder, models):
    """Write all models into the folder; `models` is the folder of the larger ones."""
    folder.mkdir(parents=True, exist_ok=True)
    small = {
        "mlp": mlp(),
        "overridable": overridable(),
        "strings": strings(),
        "sequence_out": sequence_out(),
        "sequence_in": sequence_in(),
        "map_out": map_out(),
        "map_in": map_in(),
        "loop": loop(),
        "custom": custom(),
        "lora": lora(),
    }
    small |= {f"identity_{name}": identity(dtype) for name, dtype in TYPES.items()}
    for name, model in small.items():
        onnx.save(model, folder / f"{name}.onnx")
    (folder / "garbage.onnx").write_bytes(b"\x12\x07 no model at all")
    unknown = mlp()
    unknown.graph.node[2].op_type = "NoSuchOperator"
    onnx.save(unknown, folder / "unknown_operator.onnx")
    (folder / "external.data").unlink(missing_ok=True)
    onnx.save(
        mlp(),
        folder / "external.onnx",
        save_as_external_data=True,
        location="external.data",
        size_threshold=0,
    )
    write_adapter(folder / "lora.onnx_adapter")
    write_larger(folder, models)
