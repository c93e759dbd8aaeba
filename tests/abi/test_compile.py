"""OrtCompileApi: its own messages, who wins, and results in memory."""

import ctypes

import onnx
import pytest
from interface import Failure, model_bytes
from onnx import TensorProto, helper

SET = "ModelCompilationOptions_Set"
Write = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
WriteNamed = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
)
Locate = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)


def model_with_defaults():
    """y = x + b, where feeds may replace the initializers a (5 floats), b (8192) and c (5)."""
    floats = {"a": 5, "b": 8192, "c": 5}
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, [size], [0.5] * size)
        for name, size in floats.items()
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])
        for name, size in {"x": 8192, **floats}.items()
    ]
    nodes = [
        helper.make_node("Add", ["x", "b"], ["y"]),
        helper.make_node("Add", ["a", "c"], ["z"]),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yz"]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


class Output:
    """Where the library puts a block and its size."""

    def __init__(self):
        self.data = ctypes.c_void_p(0x1234)
        self.size = ctypes.c_size_t(77)

    def pointers(self):
        return ctypes.byref(self.data), ctypes.byref(self.size)

    def take(self, api, allocator):
        """The bytes; the block is given back."""
        content = ctypes.string_at(self.data.value, self.size.value)
        api.AllocatorFree(allocator, self.data)
        return content


class Compiler:
    """Options of a compilation; setters by the rest of their names."""

    def __init__(self, api, env, options):
        self.api = api
        self.env = env
        self.table = api.table("OrtCompileApi")
        self.handle = api.make(
            "CreateModelCompilationOptionsFromSessionOptions", env, options, table="OrtCompileApi"
        )

    def set(self, name, *arguments):
        getattr(self.table, SET + name)(self.handle, *arguments)
        return self

    def error(self, name, *arguments):
        """Code and message of a setter that refuses."""
        with pytest.raises(Failure) as error:
            self.set(name, *arguments)
        return error.value.code, error.value.message

    def compile(self):
        self.table.CompileModel(self.env, self.handle)

    def compile_error(self):
        with pytest.raises(Failure) as error:
            self.compile()
        return error.value.code, error.value.message


@pytest.fixture
def compiler(api, env, options):
    """Options of a compilation."""
    made = Compiler(api, env, options)
    yield made
    made.table.ReleaseModelCompilationOptions(made.handle)


@pytest.fixture
def source(tmp_path):
    """The path of a model."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model_bytes())
    return str(path)


def places(model):
    """Offsets of the initializers that stand outside."""
    return {
        item.name: int({entry.key: entry.value for entry in item.external_data}["offset"])
        for item in model.graph.initializer
        if item.external_data
    }


def test_the_setters_say_what_is_wrong(compiler, allocator):
    out = Output()
    data, size = out.pointers()
    null = None
    for name, arguments, message in [
        ("InputModelPath", ("",), "Invalid input model: path string is empty"),
        ("InputModelFromBuffer", (null, 3), "Invalid input model: data pointer is null"),
        ("InputModelFromBuffer", (b"x", 0), "Invalid input model: data size is 0"),
        ("InputModel", (null,), "Invalid input model: OrtModel pointer is null"),
        ("OutputModelPath", ("",), "Invalid output model path: path is empty"),
        ("OutputModelWriteFunc", (null, null), "OrtWriteBufferFunc function for output model"),
        ("OutputModelExternalInitializersFile", ("", 0), "Invalid external initializer file"),
        ("OutputModelGetInitializerLocationFunc", (null, null), "OrtGetInitializerLocationFunc"),
        (
            "OutputModelExternalInitializersAlignment",
            (3, 0),
            "External initializer alignment must be zero or a power of two",
        ),
        (
            "OutputModelExternalInitializersBuffer",
            (null, 0, allocator, data, size),
            "External initializer logical file name is null",
        ),
        (
            "OutputModelExternalInitializersBuffer",
            ("/w.bin", 0, allocator, data, size),
            "External initializer logical file name must be a non-empty relative path",
        ),
        (
            "OutputModelExternalInitializersBuffer",
            ("w", 0, null, data, size),
            "External initializer buffer allocator is null",
        ),
        ("EpContextBinaryInformation", (".", "m"), "output_dir is not a valid directory."),
        ("EpContextBinaryInformation", ("", "m"), "Invalid output directory: path is empty"),
        ("EpContextBinaryInformation", ("./", ""), "Invalid model name: string is empty"),
        ("GraphOptimizationLevel", (4,), "graph_optimization_level with value 4 is invalid."),
        ("WeightlessMode", (3,), "weightless_mode with value 3 is invalid."),
    ]:
        code, text = compiler.error(name, *arguments)
        assert (code, text[: len(message)]) == (2, message), name
    for level in (0, 1, 2, 3, 99):
        compiler.set("GraphOptimizationLevel", level)
    for folder in ("./", "abc.d"):
        compiler.set("EpContextBinaryInformation", folder, "m")
    compiler.set("Flags", 0xFFFC)
    compiler.set("EpContextDataWriteFunc", None, None)


def test_two_buffers_need_two_places(compiler, allocator):
    out = Output()
    compiler.set("OutputModelBuffer", allocator, *out.pointers())
    other = Output()
    for data, size in [
        (out.pointers()[0], other.pointers()[1]),
        (other.pointers()[0], out.pointers()[1]),
    ]:
        code, message = compiler.error(
            "OutputModelExternalInitializersBuffer", "w", 0, allocator, data, size
        )
        assert (code, "require distinct output pointer locations" in message) == (2, True)


def test_the_input_has_to_be_given_and_to_exist(compiler, tmp_path, source):
    assert compiler.compile_error()[1].startswith(
        "Input model to compile must be specified via file path, memory buffer, or OrtModel"
    )
    model = model_bytes()
    compiler.set("InputModelFromBuffer", model, len(model))
    code, message = compiler.compile_error()
    assert code == 2
    assert message.startswith("Unable to generate an output model path: require an input model")
    compiler.set("InputModelPath", "missing.onnx")
    assert compiler.compile_error()[1].startswith('Input model path does not exist: "missing.onnx"')
    # What was set last counts.
    compiler.set("InputModelPath", source)
    compiler.compile()
    assert (tmp_path / "m_ctx.onnx").exists()


def test_results_in_memory_belong_to_the_caller(api, env, options, allocator, compiler, session_of):
    model = model_bytes()
    out = Output()
    compiler.set("InputModelFromBuffer", model, len(model))
    compiler.set("OutputModelBuffer", allocator, *out.pointers())
    compiler.set("EpContextEmbedMode", True)
    compiler.compile()
    compiled = out.take(api, allocator)
    (node,) = onnx.load_from_string(compiled).graph.node
    assert node.op_type == "EPContext"
    session_of(compiled)
    # A failure tells of nothing.
    compiler.set("InputModelFromBuffer", b"nonsense", 8)
    out.data.value = 0x1234
    compiler.compile_error()
    assert (out.data.value, out.size.value) == (None, 0)


def test_the_model_can_go_to_a_function(compiler, tmp_path, source, api):
    parts = []
    write = Write(lambda _, data, size: parts.append(ctypes.string_at(data, size)))
    compiler.set("InputModelPath", source).set("EpContextEmbedMode", True)
    compiler.set("OutputModelWriteFunc", write, None)
    compiler.compile()
    assert onnx.load_from_string(b"".join(parts)).graph.node
    fail = Write(lambda *_: api.pointer("OrtApi", "CreateStatus")(1, b"full"))
    compiler.set("OutputModelWriteFunc", fail, None)
    code, message = compiler.compile_error()
    assert (code, message.startswith("full")) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_initializers_have_the_layout_that_was_asked_for(api, allocator, compiler, tmp_path):
    model = model_with_defaults()
    target = tmp_path / "out.onnx"
    compiler.set("InputModelFromBuffer", model, len(model)).set("OutputModelPath", str(target))
    compiler.set("OutputModelExternalInitializersFile", "out.bin", 0)
    layouts = {
        None: {"a": 0, "b": 64, "c": 32832},
        (0, 0): {"a": 0, "b": 20, "c": 32788},
        (4096, 100): {"a": 0, "b": 4096, "c": 36864},
    }
    for alignment, expected in layouts.items():
        if alignment:
            compiler.set("OutputModelExternalInitializersAlignment", *alignment)
        compiler.compile()
        assert places(onnx.load(target, load_external_data=False)) == expected
    # In memory, which was set last.
    out = Output()
    compiler.set("OutputModelExternalInitializersBuffer", "w.bin", 100, allocator, *out.pointers())
    (tmp_path / "out.bin").unlink()
    compiler.compile()
    content = out.take(api, allocator)
    assert places(onnx.load(target, load_external_data=False)) == {"b": 0}
    assert content == b"\x00\x00\x00\x3f" * 8192
    assert not list(tmp_path.glob("*w.bin"))


def test_a_function_places_initializers(compiler, tmp_path):
    model = model_with_defaults()
    target = tmp_path / "out.onnx"
    asked = []
    locate = Locate(lambda _, name, value, info, out: asked.append((name, bool(value), info)))
    compiler.set("InputModelFromBuffer", model, len(model)).set("OutputModelPath", str(target))
    compiler.set("OutputModelGetInitializerLocationFunc", locate, None)
    compiler.compile()
    assert sorted(asked) == [(name, True, None) for name in (b"a", b"b", b"c")]
    assert places(onnx.load(target)) == {}


def test_options_are_those_of_the_moment_they_were_given(api, env, options, tmp_path, source):
    api.AddSessionConfigEntry(options, "ep.context_node_name_prefix", "early_")
    compiler = Compiler(api, env, options)
    api.AddSessionConfigEntry(options, "ep.context_node_name_prefix", "late_")
    compiler.set("InputModelPath", source)
    compiler.compile()
    compiler.table.ReleaseModelCompilationOptions(compiler.handle)
    (node,) = onnx.load(tmp_path / "m_ctx.onnx").graph.node
    assert node.name.startswith("early_")


def test_compiled_data_can_go_to_a_function(compiler, tmp_path, source, api, env, options):
    kept = {}
    write = WriteNamed(
        lambda _, name, data, size: kept.__setitem__(name, ctypes.string_at(data, size))
    )
    compiler.set("InputModelPath", source).set("EpContextDataWriteFunc", write, None)
    compiler.compile()
    (name,) = kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m_ctx.onnx"]
    (node,) = onnx.load(tmp_path / "m_ctx.onnx").graph.node
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    assert attributes["ep_cache_context"] == name
    # Cleared, it goes to a file again.
    compiler.set("EpContextDataWriteFunc", None, None)
    compiler.compile()
    assert (tmp_path / "sardonyx_weights.bin").exists()
