"""Our provider as a plugin library, and the example library: in ONNX Runtime and in Sardonyx.

Each case runs in a process of its own, which registers the library, does its work and ends in one
way or another; a crash at the end is a failure, too.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build/release"))
EXAMPLE_FOLDER = ROOT / "examples/plugin_ep"
OWN = BUILD / "lib/libsardonyx_ep.so"
EXAMPLE = BUILD / "lib/libexample_plugin_ep.so"
HOSTS = ("onnxruntime", "sardonyx")

PRELUDE = """
import gc, importlib, json, os, sys
import numpy as np
ort = importlib.import_module(sys.argv[1])
library, model, folder = sys.argv[2:5]
name = "EP"

def open_session(options=None, choose=None, entries=None, model=model):
    devices = [d for d in ort.get_ep_devices() if d.ep_name == ep_name]
    devices = devices[:1] if choose is None else [d for d in devices if choose(d)][:1]
    assert devices, "no device"
    session_options = ort.SessionOptions()
    session_options.log_severity_level = 3
    for key, value in (entries or {}).items():
        session_options.add_session_config_entry(key, value)
    session_options.add_provider_for_devices(devices, options or {})
    return ort.InferenceSession(model, sess_options=session_options)

def feeds():
    with np.load(folder + "/feeds.npz") as file:
        return {key: file[key] for key in file.files}

def save(outputs):
    np.savez(folder + "/outputs.npz", *outputs)
"""
OWN_PRELUDE = PRELUDE + 'ep_name = "SardonyxExecutionProvider"\n'
EXAMPLE_PRELUDE = PRELUDE + "ep_name = name\n"


def run_script(host, library, model, folder, script, environment=None, prelude=OWN_PRELUDE):
    """Run a script after the prelude in its own process; its last line of output, if any."""
    command = [sys.executable, "-c", prelude + textwrap.dedent(script)]
    done = subprocess.run(
        [*command, host, str(library), str(model), str(folder)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else ""


def save_model(path, nodes, inputs, outputs, weights, opset=17):
    """Write a model of the ONNX domain."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.fixture
def layers(tmp_path):
    """A model of two layers with an open batch, and its feeds."""
    random = np.random.default_rng(5)
    weights = {
        "w0": random.standard_normal((8, 16)).astype(np.float32),
        "b0": random.standard_normal(16).astype(np.float32),
        "w1": random.standard_normal((16, 4)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["m0"], "m0"),
        helper.make_node("Add", ["m0", "b0"], ["a0"], "a0"),
        helper.make_node("Relu", ["a0"], ["r0"], "r0"),
        helper.make_node("MatMul", ["r0", "w1"], ["m1"], "m1"),
        helper.make_node("Softmax", ["m1"], ["s"], "s", axis=-1),
        helper.make_node("Mul", ["s", "s"], ["y"], "y"),
    ]
    path = save_model(
        tmp_path / "layers.onnx",
        nodes,
        [("x", TensorProto.FLOAT, ["batch", 8])],
        [("y", TensorProto.FLOAT, ["batch", 4])],
        weights,
    )
    x = random.standard_normal((3, 8)).astype(np.float32)
    np.savez(tmp_path / "feeds.npz", x=x)
    hidden = np.maximum(x @ weights["w0"] + weights["b0"], 0) @ weights["w1"]
    exponents = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    soft = exponents / exponents.sum(axis=-1, keepdims=True)
    return path, soft * soft


def outputs_in(folder):
    """What a script has saved."""
    with np.load(folder / "outputs.npz") as file:
        return [file[key] for key in file.files]


RUN = """
ort.register_execution_provider_library(name, library)
session = open_session(entries={"session.disable_cpu_ep_fallback": "1"})
save(session.run(None, feeds()))
"""


@pytest.mark.parametrize("host", HOSTS)
def test_a_model_runs_on_it_alone(host, layers, tmp_path):
    """Nothing of the model is left to another provider."""
    model, expected = layers
    run_script(host, OWN, model, tmp_path, RUN)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
def test_shapes_that_depend_on_data_come_out(host, tmp_path):
    """The size of an output is known after the run only; texts go in and out."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Identity", ["texts"], ["same"]),
        helper.make_node("Shape", ["texts"], ["shape"]),
    ]
    model = save_model(
        tmp_path / "m.onnx",
        nodes,
        [("x", TensorProto.FLOAT, [4]), ("texts", TensorProto.STRING, ["n"])],
        [
            ("places", TensorProto.INT64, [1, "found"]),
            ("same", TensorProto.STRING, ["n"]),
            ("shape", TensorProto.INT64, [1]),
        ],
        {},
    )
    script = """
    ort.register_execution_provider_library(name, library)
    session = open_session()
    feed = {"x": np.float32([0, 2, 0, 3]), "texts": np.array(["a", "", "äö"], dtype=object)}
    for _ in range(2):
        places, same, shape = session.run(None, feed)
        assert places.tolist() == [[1, 3]], places
        assert same.tolist() == ["a", "", "äö"], same
        assert shape.tolist() == [3]
    """
    run_script(host, OWN, model, tmp_path, script)


def branch(name, value, outer="x"):
    """A branch of an If that adds a constant of its own to a value from outside."""
    return helper.make_graph(
        [helper.make_node("Add", [outer, f"c_{name}"], [f"y_{name}"])],
        name,
        [],
        [helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.full(2, value, np.float32), f"c_{name}")],
    )


@pytest.mark.parametrize("host", HOSTS)
def test_control_flow_is_taken_with_what_is_inside(host, tmp_path):
    """The condition, both branches, and values that they use of the graph around them."""
    nodes = [
        helper.make_node("Greater", ["x0", "zero"], ["condition"]),
        helper.make_node(
            "If", ["condition"], ["y"], then_branch=branch("a", 10), else_branch=branch("b", 20)
        ),
    ]
    model = save_model(
        tmp_path / "m.onnx",
        nodes,
        [("x", TensorProto.FLOAT, [2]), ("x0", TensorProto.FLOAT, [])],
        [("y", TensorProto.FLOAT, [2])],
        {"zero": np.float32(0)},
    )
    script = """
    ort.register_execution_provider_library(name, library)
    session = open_session(entries={"session.disable_cpu_ep_fallback": "1"})
    x = np.float32([1, 2])
    assert session.run(None, {"x": x, "x0": np.array(1, np.float32)})[0].tolist() == [11, 12]
    assert session.run(None, {"x": x, "x0": np.array(-1, np.float32)})[0].tolist() == [21, 22]
    """
    run_script(host, OWN, model, tmp_path, script)


@pytest.mark.parametrize("host", HOSTS)
def test_a_branch_uses_a_value_that_a_pass_renamed(host, tmp_path):
    """Two inverse transposes go, so that the branch sees what was before them."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("Transpose", ["sum"], ["turned"], perm=[1, 0]),
        helper.make_node("Transpose", ["turned"], ["back"], perm=[1, 0]),
        helper.make_node(
            "If",
            ["condition"],
            ["y"],
            then_branch=branch("a", 10, "back"),
            else_branch=branch("b", 20, "back"),
        ),
    ]
    model = save_model(
        tmp_path / "m.onnx",
        nodes,
        [("x", TensorProto.FLOAT, [1, 2]), ("condition", TensorProto.BOOL, [])],
        [("y", TensorProto.FLOAT, [1, 2])],
        {},
    )
    script = """
    ort.register_execution_provider_library(name, library)
    feed = {"x": np.float32([[1, 2]]), "condition": np.array(True)}
    assert open_session().run(None, feed)[0].tolist() == [[12, 14]]
    """
    run_script(host, OWN, model, tmp_path, script)


@pytest.mark.parametrize("host", HOSTS)
def test_weights_in_a_file_of_their_own(host, layers, tmp_path):
    """They are read where they are."""
    model, expected = layers
    proto = onnx.load(model)
    outside = tmp_path / "outside.onnx"
    onnx.save(proto, outside, save_as_external_data=True, location="weights.bin", size_threshold=16)
    run_script(host, OWN, outside, tmp_path, RUN)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
def test_a_wrong_option_is_named(host, layers, tmp_path):
    """The message says what was expected."""
    script = """
    ort.register_execution_provider_library(name, library)
    try:
        open_session({"threads": "many"})
    except Exception as error:
        print(json.dumps(str(error)))
    """
    text = run_script(host, OWN, layers[0], tmp_path, script)
    assert "expected a number from 0 to 1024, found 'many'" in json.loads(text)


ENDINGS = {
    "everything lives": "",
    "unregistered last": "del session; gc.collect()\n"
    "ort.unregister_execution_provider_library(name)",
    "unregistered first": "ort.unregister_execution_provider_library(name)\ndel session",
    "twice": "del session; gc.collect()\nort.unregister_execution_provider_library(name)\n"
    "ort.register_execution_provider_library(name, library)\n"
    "open_session().run(None, feeds())",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("host", HOSTS)
def test_every_end_is_clean(host, ending, layers, tmp_path):
    """In whatever order a program lets go."""
    if host == "onnxruntime" and ending == "unregistered first":
        pytest.skip("ONNX Runtime closes the library below its sessions")
    run_script(host, OWN, layers[0], tmp_path, RUN + ENDINGS[ending])


DEVICES = "gpu:memory=16777216; gpu:memory=33554432,ordinal=1; npu:memory=1048576"


@pytest.mark.parametrize("which", ["GPU", "NPU"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_model_runs_on_a_virtual_device(host, which, layers, tmp_path):
    """Tensors are in memory that faults when it is touched without a copy."""
    script = """
    ort.register_execution_provider_library(name, library)
    devices = [d for d in ort.get_ep_devices() if d.ep_name == ep_name]
    kinds = [d.device.type.name for d in devices]
    assert kinds == ["CPU", "GPU", "GPU", "NPU"], kinds
    sizes = [d.device.metadata.get("memory_bytes") for d in devices]
    assert sizes == [None, "16777216", "33554432", "1048576"], sizes
    session = open_session(choose=lambda d: d.device.type.name == "WHICH")
    for _ in range(3):
        outputs = session.run(None, feeds())
    save(outputs)
    """.replace("WHICH", which)
    environment = {"SARDONYX_VIRTUAL_DEVICES": DEVICES}
    run_script(host, OWN, layers[0], tmp_path, script, environment)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
def test_a_part_on_a_device_and_a_part_elsewhere(host, tmp_path):
    """Sequences cannot leave a part, so that what makes them runs in ordinary memory."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("SequenceConstruct", ["sum", "x"], ["pair"]),
        helper.make_node("SequenceAt", ["pair", "first"], ["again"]),
        helper.make_node("Mul", ["again", "again"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [
            helper.make_tensor_sequence_value_info("pair", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [3]),
        ],
        [numpy_helper.from_array(np.array(0), "first")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    script = """
    ort.register_execution_provider_library(name, library)
    session = open_session(choose=lambda d: d.device.type.name == "GPU")
    for _ in range(2):
        pair, y = session.run(None, {"x": np.float32([1, 2, 3])})
        assert [item.tolist() for item in pair] == [[2, 4, 6], [1, 2, 3]], pair
        assert y.tolist() == [4, 16, 36], y
    """
    environment = {"SARDONYX_VIRTUAL_DEVICES": DEVICES}
    run_script(host, OWN, tmp_path / "m.onnx", tmp_path, script, environment)


ON_DEVICE = """
ort.register_execution_provider_library(name, library)
data = np.arange(6, dtype=np.float32)
value = ort.OrtValue.ortvalue_from_numpy(data, "gpu", 1, 0x5D5D)
other = ort.OrtValue.ortvalue_from_shape_and_type([6], np.float32, "npu", 0, 0x5D5D)
ort.copy_tensors([value], [other])
assert (value.numpy() == data).all() and (other.numpy() == data).all()
try:
    large = ort.OrtValue.ortvalue_from_shape_and_type([1 << 20], np.float32, "npu", 0, 0x5D5D)
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(np.zeros(1 << 20, np.float32))], [large])
except Exception as error:
    print("refused", flush=True)
"""


@pytest.mark.parametrize("host", HOSTS)
def test_memory_of_a_virtual_device(host, layers, tmp_path):
    """It is reached by copies, from device to device too, and it ends."""
    environment = {"SARDONYX_VIRTUAL_DEVICES": DEVICES}
    text = run_script(host, OWN, layers[0], tmp_path, ON_DEVICE, environment)
    assert text == "refused"


def test_touching_memory_of_a_virtual_device_faults(layers, tmp_path):
    """Without a copy, the process ends by a signal."""
    script = ON_DEVICE + "import ctypes; ctypes.c_float.from_address(value.data_ptr()).value"
    done = subprocess.run(
        [sys.executable, "-c", OWN_PRELUDE + script]
        + ["onnxruntime", str(OWN), str(layers[0]), str(tmp_path)],
        env={**os.environ, "SARDONYX_VIRTUAL_DEVICES": DEVICES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "refused"
    assert done.returncode == -signal.SIGSEGV


def test_wrong_virtual_devices_are_refused(layers, tmp_path):
    """Registration says what was expected."""
    script = """
    try:
        ort.register_execution_provider_library(name, library)
    except Exception as error:
        print(json.dumps(str(error)))
    """
    environment = {"SARDONYX_VIRTUAL_DEVICES": "tpu"}
    text = run_script("onnxruntime", OWN, layers[0], tmp_path, script, environment)
    assert "expected gpu or npu, found 'tpu'" in json.loads(text)


COMPILE_AND_RUN = """
    mode, embed, source = {mode!r}, {embed}, model
    def options(entries):
        devices = [d for d in ort.get_ep_devices() if d.ep_name == ep_name][:1]
        made = ort.SessionOptions()
        made.log_severity_level = 3
        made.add_provider_for_devices(devices, {{}})
        for key, value in entries.items():
            made.add_session_config_entry(key, value)
        return made
    ort.register_execution_provider_library(name, library)
    weightless = {{}} if mode == "0" else {{"ep.enable_weightless_mode": mode}}
    compiled = folder + "/compiled_ctx.onnx"
    ort.ModelCompiler(
        options(weightless), source, embed_compiled_data_into_model=embed
    ).compile_to_file(compiled)
    moved = folder + "/moved.onnx"
    os.rename(source, moved)
    entries = {{"ep.context_source_model_path": moved}} if mode == "2" else {{}}
    session = ort.InferenceSession(compiled, sess_options=options(entries))
    save(session.run(None, feeds()))
    if mode == "2":
        try:
            ort.InferenceSession(compiled, sess_options=options({{}}))
            print("loaded without its weights")
        except Exception as error:
            print(str(error).replace("\\n", " "))
    else:
        print("done")
"""


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("mode", ["0", "1", "2"])
def test_compiled_models_run_without_or_with_their_source(mode, embed, layers, tmp_path):
    model, expected = layers
    text = run_script(
        "onnxruntime", OWN, model, tmp_path, COMPILE_AND_RUN.format(mode=mode, embed=embed)
    )
    np.testing.assert_allclose(outputs_in(tmp_path)[0], expected, rtol=1e-5, atol=1e-6)
    nodes = onnx.load(tmp_path / "compiled_ctx.onnx").graph.node
    assert [node.op_type for node in nodes] == ["EPContext"]
    assert (tmp_path / "sardonyx_weights.bin").exists() == (not embed)
    if mode == "2":
        assert "cannot open" in text
        weight = numpy_helper.to_array(onnx.load(tmp_path / "moved.onnx").graph.initializer[0])
        files = [tmp_path / "compiled_ctx.onnx", *tmp_path.glob("*.bin")]
        assert not any(weight.tobytes() in file.read_bytes() for file in files)


@pytest.mark.parametrize("mode", ["compile", "kernel"])
@pytest.mark.parametrize("host", HOSTS)
def test_the_example_runs_a_part(host, mode, layers, tmp_path):
    """What it does not know stays with the built-in provider."""
    model, expected = layers
    script = """
    ort.register_execution_provider_library(name, library)
    save(open_session({"mode": "MODE"}).run(None, feeds()))
    """.replace("MODE", mode)
    run_script(host, EXAMPLE, model, tmp_path, script, prelude=EXAMPLE_PRELUDE)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], expected, rtol=1e-5, atol=1e-6)


FAULTS = ["CreateEp", "GetCapability", "Compile", "CreateState", "Compute"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("host", HOSTS)
def test_the_example_fails_where_it_is_told_to(host, fault, layers, tmp_path):
    """An error, and the process goes on."""
    script = """
    ort.register_execution_provider_library(name, library)
    try:
        session = open_session({"fault": "FAULT"})
        session.run(None, feeds())
    except Exception as error:
        print(json.dumps(str(error)))
    save(open_session().run(None, feeds()))
    """.replace("FAULT", fault)
    text = run_script(host, EXAMPLE, layers[0], tmp_path, script, prelude=EXAMPLE_PRELUDE)
    if host == "sardonyx" or fault not in ("GetCapability", "CreateState"):
        assert f"asked to fail in {fault}" in json.loads(text)
    elif fault == "CreateState":  # ONNX Runtime drops the message
        assert "Create state function failed" in json.loads(text)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("embed", ["0", "1"])
def test_the_example_writes_and_reads_compiled_models(embed, layers, tmp_path):
    """By the options of a session, in ONNX Runtime."""
    script = """
    ort.register_execution_provider_library(name, library)
    compiled = folder + "/layers_ctx.onnx"
    entries = {"ep.context_enable": "1", "ep.context_embed_mode": "EMBED",
               "ep.context_file_path": compiled}
    open_session(entries=entries)
    save(open_session(model=compiled).run(None, feeds()))
    """.replace("EMBED", embed)
    run_script("onnxruntime", EXAMPLE, layers[0], tmp_path, script, prelude=EXAMPLE_PRELUDE)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)
    nodes = [node.op_type for node in onnx.load(tmp_path / "layers_ctx.onnx").graph.node]
    assert nodes.count("EPContext") == 2, nodes
    assert len(list(tmp_path.glob("*.bin"))) == (1 if embed == "0" else 0)


@pytest.mark.parametrize("stop", ["last", "never", "first"])
def test_the_example_shares_weights(stop, layers, tmp_path):
    """Two models, one file, whether the end of the group is announced or not."""
    first = layers[0]
    second = tmp_path / "second.onnx"
    second.write_bytes(first.read_bytes())
    script = """
    ort.register_execution_provider_library(name, library)
    for index, stem in enumerate(["layers", "second"]):
        entries = {"ep.context_enable": "1", "ep.context_embed_mode": "0",
                   "ep.context_file_path": f"{folder}/{stem}_ctx.onnx",
                   "ep.share_ep_contexts": "1"}
        if {"last": 1, "first": 0}.get("STOP") == index:
            entries["ep.stop_share_ep_contexts"] = "1"
        open_session(entries=entries, model=f"{folder}/{stem}.onnx")
    for stem in ["second", "layers"]:
        session = open_session(entries={"ep.share_ep_contexts": "1"},
                               model=f"{folder}/{stem}_ctx.onnx")
        save(session.run(None, feeds()))
    """.replace("STOP", stop)
    run_script("onnxruntime", EXAMPLE, first, tmp_path, script, prelude=EXAMPLE_PRELUDE)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)
    files = sorted(tmp_path.glob("*.bin"))
    assert len(files) == (2 if stop == "first" else 1)
    weights = 4 * (8 * 16 + 16 + 16 * 4)
    assert files[0].stat().st_size < weights + 2048


def test_the_example_refuses_a_damaged_file(layers, tmp_path):
    """A byte of a weight that changed is noticed."""
    script = """
    ort.register_execution_provider_library(name, library)
    compiled = folder + "/layers_ctx.onnx"
    open_session(entries={"ep.context_enable": "1", "ep.context_file_path": compiled})
    file = folder + "/layers_ctx_EP.bin"
    data = bytearray(open(file, "rb").read())
    data[200] ^= 1
    open(file, "wb").write(data)
    try:
        open_session(model=compiled)
    except Exception as error:
        print(json.dumps(str(error)))
    """
    text = run_script("onnxruntime", EXAMPLE, layers[0], tmp_path, script, prelude=EXAMPLE_PRELUDE)
    assert "is damaged" in json.loads(text)


def test_the_example_runs_without_copies_of_weights(layers, tmp_path):
    """Weights stay inputs when a weightless mode is asked for."""
    script = """
    ort.register_execution_provider_library(name, library)
    entries = {"ep.enable_weightless_mode": "2"}
    save(open_session(entries=entries).run(None, feeds()))
    """
    run_script("onnxruntime", EXAMPLE, layers[0], tmp_path, script, prelude=EXAMPLE_PRELUDE)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "file", ["example_plugin_ep_config.json", "example_plugin_ep_config_by_index.json"]
)
def test_the_configurations_choose_a_device(host, file, layers, tmp_path):
    """By the provider's name, or by the device's place in the list of all."""
    config = json.loads((EXAMPLE_FOLDER / file).read_text())
    script = f"""
    config = {config!r}
    ort.register_execution_provider_library(config["ep_library_registration_name"], library)
    devices = ort.get_ep_devices()
    if "selected_ep_name" in config:
        devices = [d for d in devices if d.ep_name == config["selected_ep_name"]]
    else:
        devices = [devices[index] for index in config["selected_ep_device_indices"]]
    assert {{d.ep_name for d in devices}} == {{"example_ep"}}, [d.ep_name for d in devices]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, config.get("default_ep_options", {{}}))
    save(ort.InferenceSession(model, sess_options=options).run(None, feeds()))
    """
    run_script(host, EXAMPLE, layers[0], tmp_path, script, prelude=EXAMPLE_PRELUDE)
    np.testing.assert_allclose(outputs_in(tmp_path)[0], layers[1], rtol=1e-5, atol=1e-6)


def test_the_helper_names_library_and_provider():
    """For programs that register the library themselves."""
    from sardonyx import plugin

    assert Path(plugin.get_library_path()).name == "libsardonyx_ep.so"
    assert plugin.get_ep_names() == [plugin.ep_name()] == ["SardonyxExecutionProvider"]


@pytest.mark.parametrize("library", [OWN, EXAMPLE], ids=["own", "example"])
def test_the_libraries_export_two_functions(library):
    """Nothing else is seen from outside."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1] for line in text.splitlines()}
    assert names == {"CreateEpFactories", "ReleaseEpFactory"}


@pytest.mark.parametrize("library", [OWN, EXAMPLE], ids=["own", "example"])
@pytest.mark.parametrize("version", ["1.22.1", "9.9.9", "abc"])
def test_a_runtime_that_is_too_old_is_told_so(library, version):
    """The message says which version of the interface is needed."""
    messages = []
    asked = []
    create_status = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p)(
        lambda code, text: messages.append(text.decode()) or 1
    )
    table = (ctypes.c_void_p * 512)(ctypes.cast(create_status, ctypes.c_void_p))
    get_api = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_uint32)(
        lambda number: asked.append(number) or ctypes.addressof(table)
    )
    text = ctypes.create_string_buffer(version.encode())
    get_version = ctypes.CFUNCTYPE(ctypes.c_size_t)(lambda: ctypes.addressof(text))
    base = (ctypes.c_void_p * 2)(
        ctypes.cast(get_api, ctypes.c_void_p), ctypes.cast(get_version, ctypes.c_void_p)
    )
    create = ctypes.CDLL(str(library)).CreateEpFactories
    create.restype = ctypes.c_size_t
    factories = (ctypes.c_void_p * 4)()
    count = ctypes.c_size_t(0)
    answer = create(b"EP", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count))
    assert answer == 1
    assert asked == [1]
    assert count.value == 0
    assert f"version {23 if library == OWN else 24} of the interface" in messages[0]
