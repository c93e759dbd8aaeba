"""Compiling ahead of time."""

import os
import subprocess
import sys
import threading

import models
import numpy as np
import onnx
import pytest
import sardonyx
from onnx import TensorProto, helper, numpy_helper
from sardonyx import (
    GraphOptimizationLevel,
    InferenceSession,
    ModelCompiler,
    OrtCompileApiFlags,
    OrtExternalInitializerInfo,
    SessionOptions,
    errors,
)

WEIGHTS = np.random.default_rng(0).standard_normal((300, 40), dtype=np.float32)
SHIFT = np.arange(40, dtype=np.float32)
X = np.random.default_rng(1).standard_normal((2, 300), dtype=np.float32)
EXPECTED = np.maximum(X @ WEIGHTS, 0) + SHIFT


def make_model(external=None):
    """y = Relu(x @ weights) + shift, where a feed may replace the shift."""
    weights = numpy_helper.from_array(WEIGHTS, "weights")
    if external:
        external.write_bytes(WEIGHTS.tobytes())
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        for key, value in (("location", external.name), ("length", str(WEIGHTS.nbytes))):
            weights.external_data.add(key=key, value=value)
    nodes = [
        models.node("MatMul", ["x", "weights"], ["product"], name="product"),
        models.node("Relu", ["product"], ["positive"], name="relu"),
        models.node("Add", ["positive", "shift"], ["y"], name="sum"),
    ]
    inputs = [
        models.value("x", TensorProto.FLOAT, ["batch", 300]),
        models.value("shift", TensorProto.FLOAT, [40]),
    ]
    outputs = [models.value("y", TensorProto.FLOAT, ["batch", 40])]
    graph = helper.make_graph(
        nodes, "graph", inputs, outputs, [weights, models.weight("shift", SHIFT)]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made.metadata_props.add(key="author", value="nobody")
    return made


@pytest.fixture
def source(tmp_path):
    """Path of the model, in a folder of its own."""
    path = tmp_path / "source.onnx"
    onnx.save(make_model(), path)
    return path


def files(folder):
    """Names of the files, but for notes about data that was checked before."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".seen")


def run(model, options=None):
    """The model's output, and whether it is right."""
    (y,) = InferenceSession(model, options).run(None, {"x": X})
    np.testing.assert_allclose(y, EXPECTED, rtol=1e-4, atol=1e-4)


def the_node(model):
    """The attributes of the one node that a compiled model should have."""
    (node,) = model.graph.node
    assert (node.op_type, node.domain) == ("EPContext", "com.microsoft")
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def test_a_compiled_model_needs_its_data_and_nothing_else(source, tmp_path):
    ModelCompiler(SessionOptions(), source).compile_to_file()
    assert files(tmp_path) == ["sardonyx_weights.bin", "source.onnx", "source_ctx.onnx"]
    compiled = tmp_path / "source_ctx.onnx"
    attributes = the_node(onnx.load(compiled))
    assert attributes["source"] == b"SardonyxExecutionProvider"
    assert attributes["ep_cache_context"] == b"sardonyx_weights.bin"
    assert (attributes["main_context"], attributes["embed_mode"]) == (1, 0)
    assert attributes["onnx_model_filename"] == b"source.onnx"
    assert WEIGHTS[0].tobytes() not in compiled.read_bytes()
    metadata = {item.key: item.value for item in onnx.load(compiled).metadata_props}
    assert metadata["author"] == "nobody"
    assert metadata["ep_compatibility_info.CPUExecutionProvider"]
    source.unlink()
    run(compiled)
    with pytest.raises(errors.Error, match="not already compiled"):
        ModelCompiler(SessionOptions(), compiled).compile_to_file(tmp_path / "again.onnx")


def test_the_default_name_changes_the_file_name_only(tmp_path):
    folder = tmp_path / "v1.2"
    folder.mkdir()
    onnx.save(make_model(), folder / "model")
    ModelCompiler(SessionOptions(), folder / "model").compile_to_file()
    assert "model_ctx.onnx" in files(folder)
    with pytest.raises(errors.InvalidArgument, match="require an input model path"):
        ModelCompiler(SessionOptions(), (folder / "model").read_bytes()).compile_to_file()


@pytest.mark.parametrize("from_bytes", [False, True])
def test_a_model_can_be_compiled_into_memory(from_bytes, source):
    given = source.read_bytes() if from_bytes else source
    compiler = ModelCompiler(SessionOptions(), given, embed_compiled_data_into_model=True)
    compiled = compiler.compile_to_bytes()
    assert the_node(onnx.load_from_string(compiled))["embed_mode"] == 1
    run(compiled)
    parts = []
    compiler.compile_to_stream(parts.append)
    assert b"".join(parts) == compiled
    assert files(source.parent) == ["source.onnx"]


def test_a_compiled_model_in_memory_finds_its_data_by_the_options(source, tmp_path):
    compiler = ModelCompiler(SessionOptions(), source)
    compiler.set_ep_context_binary_information(f"{tmp_path}/", "other_ctx.onnx")
    compiled = compiler.compile_to_bytes()
    assert the_node(onnx.load_from_string(compiled))["ep_cache_context"] == (
        b"other_ctx_sardonyx.bin"
    )
    assert "other_ctx_sardonyx.bin" in files(tmp_path)
    options = SessionOptions()
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "other_ctx.onnx"))
    run(compiled, options)


@pytest.mark.parametrize(
    ("folder", "name", "message"),
    [
        ("", "m.onnx", "output_dir or model_name is empty."),
        ("./", "", "output_dir or model_name is empty."),
        (".", "m.onnx", "output_dir is not a valid directory."),
    ],
)
def test_information_about_the_data_is_checked(folder, name, message, source):
    compiler = ModelCompiler(SessionOptions(), source)
    with pytest.raises(errors.InvalidArgument, match=message):
        compiler.set_ep_context_binary_information(folder, name)


def test_the_data_can_be_written_and_read_by_functions(source, tmp_path):
    """Callers who encrypt."""
    kept = {}
    compiler = ModelCompiler(SessionOptions(), source)
    compiler.set_ep_context_data_write_func(
        lambda name, data: kept.__setitem__(name, bytes(value ^ 0x5A for value in data.read()))
    )
    target = tmp_path / "secret_ctx.onnx"
    compiler.compile_to_file(target)
    assert files(tmp_path) == ["secret_ctx.onnx", "source.onnx"]
    ((name, data),) = kept.items()
    assert the_node(onnx.load(target))["ep_cache_context"].decode() == name
    assert WEIGHTS[0].tobytes() not in data
    options = SessionOptions()
    options.set_ep_context_data_read_func(
        lambda wanted, buffer: buffer.write(bytes(value ^ 0x5A for value in kept[wanted])),
        1 << 30,
    )
    run(target, options)
    compiler.clear_ep_context_data_write_func()
    compiler.compile_to_file(target)
    assert "sardonyx_weights.bin" in files(tmp_path)


@pytest.mark.parametrize("where", ["stream", "data", "location"])
def test_what_a_function_raises_ends_the_work_and_leaves_nothing(where, source, tmp_path):
    def fail(*_):
        raise ValueError("the disk is on fire")

    locate = fail if where == "location" else None
    compiler = ModelCompiler(SessionOptions(), source, get_initializer_location_func=locate)
    if where == "data":
        compiler.set_ep_context_data_write_func(fail)
    with pytest.raises(errors.Fail, match="the disk is on fire"):
        if where == "stream":
            compiler.compile_to_stream(fail)
        else:
            compiler.compile_to_file(tmp_path / "out.onnx")
    assert files(tmp_path) == ["source.onnx"]


def test_initializers_that_stay_are_embedded_placed_or_put_into_a_file(source, tmp_path):
    target = tmp_path / "out.onnx"
    ModelCompiler(SessionOptions(), source).compile_to_file(target)
    (shift,) = onnx.load(target).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(shift), SHIFT)

    ModelCompiler(
        SessionOptions(),
        source,
        external_initializers_file_path="out.bin",
        external_initializers_size_threshold=0,
    ).compile_to_file(target)
    (shift,) = onnx.load(target, load_external_data=False).graph.initializer
    places = {item.key: item.value for item in shift.external_data}
    assert places == {"location": "out.bin", "offset": "0", "length": "160"}
    run(target)

    asked = []

    def locate(name, value, info):
        asked.append((name, value.numpy().tolist(), info))
        return OrtExternalInitializerInfo("out.bin", 0, 160)

    (tmp_path / "out.bin").write_bytes(SHIFT.tobytes())
    ModelCompiler(SessionOptions(), source, get_initializer_location_func=locate).compile_to_file(
        target
    )
    assert asked == [("shift", SHIFT.tolist(), None)]
    run(target)
    with pytest.raises(ValueError, match="not both"):
        ModelCompiler(
            SessionOptions(),
            source,
            external_initializers_file_path="a",
            get_initializer_location_func=locate,
        )


def test_a_compiled_model_does_not_need_external_data_of_its_source(tmp_path):
    data = tmp_path / "weights.bin"
    onnx.save(make_model(data), tmp_path / "source.onnx")
    ModelCompiler(SessionOptions(), tmp_path / "source.onnx").compile_to_file()
    data.unlink()
    (tmp_path / "source.onnx").unlink()
    run(tmp_path / "source_ctx.onnx")


def test_flags_say_what_is_an_error(source, tmp_path):
    target = tmp_path / "out.onnx"
    target.write_bytes(b"precious")
    compiler = ModelCompiler(
        SessionOptions(), source, flags=OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    )
    with pytest.raises(errors.Fail, match="exists already. Please remove the EP context model"):
        compiler.compile_to_file(target)
    assert target.read_bytes() == b"precious"
    ModelCompiler(SessionOptions(), source).compile_to_file(target)
    run(target)
    empty = models.model_of([], [], [models.value("y", TensorProto.FLOAT, [1])],
                            [models.weight("y", [1.0])])  # fmt: skip
    ModelCompiler(SessionOptions(), empty).compile_to_bytes()
    compiler = ModelCompiler(
        SessionOptions(), empty, flags=OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    )
    with pytest.raises(errors.Fail, match="Unable to compile any nodes"):
        compiler.compile_to_bytes()


def test_outputs_that_cannot_be_written_are_refused(source, tmp_path):
    before = source.read_bytes()
    compiler = ModelCompiler(SessionOptions(), source)
    with pytest.raises(errors.InvalidArgument, match="should not point to a folder"):
        compiler.compile_to_file(tmp_path)
    with pytest.raises(errors.InvalidArgument, match="failed: No such file or directory"):
        compiler.compile_to_file(tmp_path / "missing" / "x_ctx.onnx")
    (tmp_path / "link.onnx").symlink_to(source)
    for target in (source, tmp_path / "link.onnx"):
        with pytest.raises(errors.InvalidArgument, match="overwrite its own source"):
            compiler.compile_to_file(target)
    with pytest.raises(errors.InvalidArgument, match="Input model path does not exist"):
        ModelCompiler(SessionOptions(), tmp_path / "missing.onnx").compile_to_file(
            tmp_path / "out.onnx"
        )
    assert source.read_bytes() == before
    assert files(tmp_path) == ["link.onnx", "source.onnx"]


def test_outputs_have_names_of_their_own(source, tmp_path):
    ModelCompiler(SessionOptions(), source).compile_to_file()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(errors.InvalidArgument, match="would both go to"):
        ModelCompiler(SessionOptions(), source).compile_to_file(tmp_path / "sardonyx_weights.bin")
    for name in ("sardonyx_weights.bin", "a_ctx.onnx", "./a_ctx.onnx"):
        compiler = ModelCompiler(
            SessionOptions(),
            source,
            external_initializers_file_path=name,
            external_initializers_size_threshold=0,
        )
        with pytest.raises(errors.InvalidArgument, match="would both go to"):
            compiler.compile_to_file(tmp_path / "a_ctx.onnx")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_pipes_and_devices_are_not_replaced(source, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(errors.InvalidArgument, match="a device, pipe or socket"):
        ModelCompiler(SessionOptions(), source).compile_to_file(pipe)
    assert pipe.is_fifo()
    options = SessionOptions()
    options.optimized_model_filepath = pipe
    with pytest.raises(errors.InvalidArgument, match="a device, pipe or socket"):
        InferenceSession(source, options)
    assert pipe.is_fifo()
    assert files(tmp_path) == ["pipe", "source.onnx"]


FULL_DISK = """
import resource, sys
import sardonyx as sx

compiler = sx.ModelCompiler(sx.SessionOptions(), sys.argv[1], sys.argv[3] == "embed")
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    compiler.compile_to_file(sys.argv[2])
except sx.errors.Error as error:
    print(error)
"""


@pytest.mark.parametrize("where", ["embed", "beside"])
def test_a_disk_that_fills_up_leaves_everything_as_it_was(where, source, tmp_path):
    """Files that may not grow fail like a full disk."""
    target = tmp_path / "out.onnx"
    target.write_bytes(b"precious")
    arguments = [sys.executable, "-c", FULL_DISK, str(source), str(target), where]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    assert "File too large" in done.stdout
    assert target.read_bytes() == b"precious"
    assert files(tmp_path) == ["out.onnx", "source.onnx"]


def test_one_compiler_compiles_once_at_a_time(source):
    compiler = ModelCompiler(SessionOptions(), source, embed_compiled_data_into_model=True)
    told = []

    def again(_):
        try:
            compiler.compile_to_bytes()
        except errors.Fail as error:
            told.append(str(error))

    compiler.compile_to_stream(again)
    assert told
    assert all("Compilation is already in progress" in text for text in told)
    run(compiler.compile_to_bytes())


def test_compilers_of_one_folder_share_weights(source, tmp_path):
    """Two models with the same weights: one copy of them."""
    other = make_model()
    other.graph.node.append(models.node("Neg", ["y"], ["z"]))
    other.graph.output.append(models.value("z", TensorProto.FLOAT, ["batch", 40]))
    onnx.save(other, tmp_path / "other.onnx")
    ModelCompiler(SessionOptions(), source).compile_to_file()
    container = tmp_path / "sardonyx_weights.bin"
    first = container.stat().st_size
    ModelCompiler(SessionOptions(), tmp_path / "other.onnx").compile_to_file()
    assert container.stat().st_size - first < WEIGHTS.nbytes / 2
    run(tmp_path / "source_ctx.onnx")


def test_options_count_as_they_were_when_the_compiler_was_made(source, tmp_path):
    options = SessionOptions()
    options.add_session_config_entry("ep.context_node_name_prefix", "early_")
    compiler = ModelCompiler(options, source)
    options.add_session_config_entry("ep.context_node_name_prefix", "late_")
    compiler.compile_to_file(tmp_path / "out.onnx")
    assert the_node(onnx.load(tmp_path / "out.onnx"))["partition_name"].startswith(b"early_")


def test_the_level_is_that_of_the_compiler(source):
    for level in GraphOptimizationLevel.__members__.values():
        compiler = ModelCompiler(
            SessionOptions(),
            source,
            embed_compiled_data_into_model=True,
            graph_optimization_level=level,
        )
        run(compiler.compile_to_bytes())
    with pytest.raises((errors.InvalidArgument, ValueError), match="4"):
        ModelCompiler(SessionOptions(), source, graph_optimization_level=4)


def test_compiling_can_be_cancelled_from_another_thread(source, tmp_path):
    options = SessionOptions()
    compiler = ModelCompiler(options, source)

    def write(*_):
        thread = threading.Thread(target=options.set_load_cancellation_flag, args=(True,))
        thread.start()
        thread.join()

    compiler.set_ep_context_data_write_func(write)
    with pytest.raises(errors.ModelLoadCanceled):
        compiler.compile_to_file(tmp_path / "out.onnx")
    assert files(tmp_path) == ["source.onnx"]
    options.set_load_cancellation_flag(False)
    compiler.clear_ep_context_data_write_func()
    compiler.compile_to_file(tmp_path / "out.onnx")
    run(tmp_path / "out.onnx")


def test_progress_is_told_while_weights_are_written(tmp_path, monkeypatch):
    layers = 20
    weights = [models.weight(f"w{i}", WEIGHTS[:40] * (i + 1)) for i in range(layers)]
    nodes = [models.node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    ends = [models.value(name, TensorProto.FLOAT, [1, 40]) for name in ("x0", f"x{layers}")]
    source = tmp_path / "source.onnx"
    source.write_bytes(models.model_of(nodes, ends[:1], ends[1:], weights))
    heard = []

    def compile_model(stop_at=None):
        def report(stage, done, total):
            heard.append((stage, done / total))
            return stop_at is not None and done / total > stop_at

        options = SessionOptions()
        options.set_progress_function(report)
        ModelCompiler(options, source).compile_to_file()

    # In the middle of the weights.
    with pytest.raises(errors.Fail, match="progress function"):
        compile_model(stop_at=0.85)
    assert heard[-1][0] == "compile"
    assert files(tmp_path) == ["source.onnx"]
    heard.clear()
    compile_model()
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert [stage for stage, _ in heard].count("compile") > layers / 2
    assert list(dict.fromkeys(stage for stage, _ in heard)) == [
        "read", "check", "optimize", "compile", "write", "ready",
    ]  # fmt: skip
    (tmp_path / "source_ctx.onnx").unlink()
    (tmp_path / "sardonyx_weights.bin").unlink()

    def fail(*_):
        raise ValueError("no more")

    options = SessionOptions()
    options.set_progress_function(fail)
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(str(info.exc_value)))
    with pytest.raises(errors.Fail, match="progress function"):
        ModelCompiler(options, source).compile_to_file()
    assert told == ["no more"]
    options.set_progress_function(None)
    ModelCompiler(options, source).compile_to_file()


def context_options(**entries):
    """Options of a session that writes a compiled model."""
    options = SessionOptions()
    for key, value in {"enable": "1", **entries}.items():
        options.add_session_config_entry(f"ep.context_{key}", value)
    return options


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_session_writes_a_compiled_model_when_told_to(embed, source, tmp_path):
    run(source, context_options(embed_mode=embed, node_name_prefix="a_"))
    attributes = the_node(onnx.load(tmp_path / "source_ctx.onnx"))
    assert attributes["embed_mode"] == int(embed)
    assert attributes["partition_name"].startswith(b"a_")
    source.unlink()
    run(tmp_path / "source_ctx.onnx")


def test_a_session_refuses_places_for_its_compiled_model(source, tmp_path):
    run(source, context_options())
    with pytest.raises(errors.Fail, match="exists already. Please remove the EP context model"):
        InferenceSession(source, context_options())
    with pytest.raises(errors.InvalidArgument, match="should not point to a folder"):
        InferenceSession(source, context_options(file_path=str(tmp_path)))
    with pytest.raises(errors.Fail, match="without a valid location"):
        InferenceSession(source.read_bytes(), context_options())
    run(source.read_bytes(), context_options(file_path=str(tmp_path / "b_ctx.onnx")))
    run(tmp_path / "b_ctx.onnx")


def test_written_data_is_read_in_parts_while_the_function_runs(source):
    kept = []

    def write(_, data):
        first = data.read(0, 100)
        assert first + data.read(100) == data.read() == bytes(data)
        assert data.size == len(data)
        with pytest.raises(ValueError, match="not within"):
            data.read(data.size, 1)
        kept.append(data)

    compiler = ModelCompiler(SessionOptions(), source)
    compiler.set_ep_context_data_write_func(write)
    compiler.compile_to_bytes()
    with pytest.raises(RuntimeError, match="gone"):
        kept[0].read()


def test_a_source_of_another_type_is_refused():
    with pytest.raises(TypeError, match="int"):
        ModelCompiler(SessionOptions(), 3)


def test_a_buffer_of_compiled_data_is_allocated_once():
    buffer = sardonyx.OrtEpContextDataBuffer()
    buffer.max_size = 4
    with pytest.raises(ValueError, match="maximum size 4"):
        buffer.write(b"12345")
    assert not buffer.is_allocated
    buffer.allocate(2)[:] = b"ab"
    assert buffer.size == 2
    with pytest.raises(RuntimeError, match="already"):
        buffer.allocate(2)
    with pytest.raises(ValueError, match="3 bytes were written, but 2 allocated"):
        buffer.write(b"cde")
    buffer.write(b"cd")
    assert buffer._content() == b"cd"
