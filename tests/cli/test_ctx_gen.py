"""ep_weight_sharing_ctx_gen: arguments, the flow on the CPU and with plugin libraries."""

import json
import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BUILD, save
from onnx import TensorProto, helper, numpy_helper

EXAMPLE = BUILD / "lib/libexample_plugin_ep.so"
SIZE = 64
WEIGHT = np.random.default_rng(2).standard_normal((SIZE, SIZE)).astype(np.float32)


@pytest.fixture
def tool(tmp_path):
    """Run the tool in an empty folder, where it finds no vendor's library by itself."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/python3"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)

    def run(*arguments, **environment):
        variables = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        variables.pop("LD_LIBRARY_PATH", None)
        variables.pop("SARDONYX_PLUGIN_PATH", None)
        return subprocess.run(
            [BUILD / "bin/ep_weight_sharing_ctx_gen", *map(str, arguments)],
            cwd=tmp_path,
            env={**variables, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def save_model(path, scale):
    """y = relu(x @ shared + bias); the bias is the model's own."""
    value = helper.make_tensor_value_info
    return save(
        path,
        [
            helper.make_node("MatMul", ["x", "w"], ["product"]),
            helper.make_node("Add", ["product", "b"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["y"]),
        ],
        [value("x", TensorProto.FLOAT, [2, SIZE])],
        [value("y", TensorProto.FLOAT, [2, SIZE])],
        [
            numpy_helper.from_array(WEIGHT, "w"),
            numpy_helper.from_array(np.full(SIZE, scale, np.float32), "b"),
        ],
    )


@pytest.fixture
def models(tmp_path):
    """Two models in a folder whose name has a dot, as the tool takes them."""
    folder = tmp_path / "v1.2"
    folder.mkdir()
    paths = [save_model(folder / f"{name}.onnx", i) for i, name in enumerate(("m.0", "m1"))]
    return ",".join(str(path) for path in paths)


@pytest.fixture
def config(tmp_path):
    """Write a plugin configuration; keys that are None are left out."""

    def write(**changes):
        content = {
            "ep_library_registration_name": "example_ep",
            "ep_library_path": str(EXAMPLE),
            "selected_ep_name": "example_ep",
            **changes,
        }
        path = tmp_path / "config.json"
        path.write_text(
            json.dumps({key: item for key, item in content.items() if item is not None})
        )
        return path

    return write


def context_nodes(path):
    """Attributes of the EPContext nodes of a model."""
    return [
        {item.name: helper.get_attribute_value(item) for item in node.attribute}
        for node in onnx.load(path).graph.node
        if node.op_type == "EPContext"
    ]


def test_the_help_teaches_every_key(tool):
    """All options of qnn with their defaults, and the recommended ways."""
    done = tool("-h")
    assert done.returncode == 255
    for word in (
        *("backend_type", "backend_path", "vtcm_mb", "soc_model", "htp_arch", "extended_udma"),
        *("htp_graph_finalization_optimization_mode", "enable_htp_fp16_precision"),
        *("offload_graph_io_quantization", "enable_htp_spill_fill_buffer"),
        *("ModelCompiler", "sardonyx compile", "selected_ep_device_indices", "-C", "-v"),
    ):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "ERROR: Did not specify model paths"),
        (["-e", "cpu", ""], "ERROR: Did not specify model paths"),
        (["-e", "cpu", "a.onnx,,b.onnx"], "a model path is empty"),
        (["-e", "cpu", "a.onnx", "b.onnx"], "'b.onnx' is one argument too many"),
        (["-e", "cuda", "a.onnx"], "The execution provider is not included in this tool."),
        (["-x", "a.onnx"], "unknown option"),
        (["-C", "key", "a.onnx"], "Use a '|' to separate the key and value"),
        (["-C", "|value", "a.onnx"], "the key is empty"),
        (["-C", "key|", "a.onnx"], "the value is empty"),
        (["-C", "k|1 k|2", "a.onnx"], "'k' is given twice"),
        (["-C", "k|1", "-C", "k|2", "a.onnx"], "'k' is given twice"),
        (["-i", "soc_model", "a.onnx"], "Use a '|'"),
        (["-i", "htp_performance_mode|burst", "a.onnx"], "Choose from options: [backend_type"),
        (["-i", "extended_udma|2", "a.onnx"], "Wrong value for extended_udma. select from: 0, 1"),
        (["-i", "enable_htp_fp16_precision|x", "a.onnx"], "Wrong value for enable_htp_fp16_"),
        (
            ["-i", "htp_graph_finalization_optimization_mode|4", "a.onnx"],
            "Wrong value for htp_graph_finalization_optimization_mode. select from: 0, 1, 2, 3",
        ),
        (["-i", "backend_type|htp backend_path|x.so", "a.onnx"], "not both"),
    ],
)
def test_wrong_arguments_are_named(tool, arguments, message):
    """Status 255, the message, and the help."""
    done = tool(*arguments)
    assert done.returncode == 255
    assert message in done.stderr
    assert "Options:" in done.stderr


@pytest.mark.parametrize("vendor", ["qnn", "tensorrt", "openvino", "vitisai"])
def test_a_missing_vendor_library_is_explained(tool, models, vendor):
    """Which package to install, and that a variable can say where the library is."""
    done = tool("-e", vendor, models)
    assert done.returncode == 1
    assert "install" in done.stderr
    assert "SARDONYX_PLUGIN_PATH" in done.stderr
    assert "ERROR: Failed to initialize session for plugin EP" in done.stderr


def test_models_for_the_cpu_share_one_container(tool, sardonyx, models, tmp_path):
    """The steps are printed; names get _ctx before the last dot of the file name."""
    done = tool("-e", "cpu", models)
    assert done.returncode == 0, done.stderr
    first, second = models.split(",")
    for line in (
        f"Model file path: {first}",
        f"Generating context cache model for: {first}",
        f"Generating context cache model for: {second}",
        "Generation done!",
    ):
        assert line in done.stdout
    folder = tmp_path / "v1.2"
    for name in ("m.0_ctx.onnx", "m1_ctx.onnx"):
        (node,) = context_nodes(folder / name)
        assert node["ep_cache_context"] == b"sardonyx_weights.bin"
        assert node["embed_mode"] == 0
        assert sardonyx("verify", folder / name, "--full").returncode == 0
        assert sardonyx("run", folder / name).returncode == 0
    assert (folder / "sardonyx_weights.bin").stat().st_size < 1.5 * WEIGHT.nbytes + 8192
    again = tool("-e", "cpu", models)
    assert again.returncode == 255
    assert "Failed to generate context cache file:" in again.stderr
    assert "exists already" in again.stderr


def test_what_the_tool_sets_is_protected(tool, models, tmp_path):
    """The known messages, on the known streams; other entries reach the session."""
    entries = "ep.context_enable|0 ep.context_embed_mode|1 ep.context_file_path|x.onnx"
    done = tool("-e", "cpu", "-C", f"{entries} ep.context_node_name_prefix|left_", models)
    assert done.returncode == 0, done.stderr
    assert "Need to enable ep context cache." in done.stderr
    assert "Only support non-embed model for weight sharing." in done.stderr
    assert "Not support to specify the generated Onnx context cache file name." in done.stdout
    assert onnx.load(tmp_path / "v1.2/m1_ctx.onnx").graph.node[0].name.startswith("left_")
    assert not (tmp_path / "x.onnx").exists()


def test_a_plugin_by_its_name(tool, sardonyx, models, config, tmp_path):
    """Models share the file that the plugin writes; -e and -i do not count."""
    done = tool("-p", config(), "-e", "qnn", "-v", models)
    assert done.returncode == 0, done.stderr
    assert "example_ep" in done.stdout
    assert "Generation done!" in done.stdout
    names = set()
    for name in ("m.0_ctx.onnx", "m1_ctx.onnx"):
        nodes = context_nodes(tmp_path / "v1.2" / name)
        assert nodes
        names |= {node["ep_cache_context"].decode() for node in nodes}
        assert sardonyx("verify", tmp_path / "v1.2" / name).returncode == 0
    (data,) = names
    assert (tmp_path / "v1.2" / data).stat().st_size < 1.5 * WEIGHT.nbytes + 8192


def test_a_plugin_by_the_positions_of_its_devices(tool, models, config):
    """The positions are those of the list that -v prints."""
    listing = tool("-p", config(), "-v", models.replace("m.0", "none")).stdout
    (line,) = [line for line in listing.splitlines() if "example_ep" in line and "," in line]
    index = int(line.split()[0])
    done = tool("-p", config(selected_ep_name=None, selected_ep_device_indices=[index]), models)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selected_ep_name": None}, "exactly one of 'selected_ep_name' or"),
        ({"selected_ep_device_indices": [0]}, "exactly one of 'selected_ep_name' or"),
        (
            {"selected_ep_name": None, "selected_ep_device_indices": [99]},
            "ERROR: Selected EP device index is out of range (max is ",
        ),
        (
            {"selected_ep_name": None, "selected_ep_device_indices": []},
            "ERROR: No EP devices were selected",
        ),
        ({"selected_ep_name": "nobody"}, "ERROR: No EP devices were selected"),
        ({"ep_library_path": None}, "key 'ep_library_path' is missing"),
        ({"ep_library_registration_name": 3}, "should be a text, found 3"),
        ({"default_ep_options": {"a": 1}}, "should be a text, found 1"),
        ({"default_ep_option": {}}, "did you mean 'default_ep_options'?"),
        ({"ep_library_path": "none.so"}, "none.so"),
    ],
)
def test_wrong_configurations_are_explained(tool, models, config, changes, message):
    """Status 1, what is wrong, and which library it is about."""
    done = tool("-p", config(**changes), models)
    assert done.returncode == 1
    assert message in done.stderr
    assert "ERROR: Failed to initialize session for plugin EP" in done.stderr


def test_text_that_is_no_json_is_answered_with_a_sample(tool, models, tmp_path):
    """And a file that is not there with its path."""
    (tmp_path / "bad.json").write_text("{")
    done = tool("-p", "bad.json", models)
    assert done.returncode == 1
    assert "ERROR: JSON parse error:" in done.stderr
    sample = done.stderr.split("This is an example valid JSON configuration:\n")[1]
    json.loads(sample.split("ERROR")[0])
    done = tool("-p", "none.json", models)
    assert "ERROR: Failed to open plugin EP configuration file at path: none.json" in done.stderr


def test_a_vendor_library_is_found_by_the_variable(tool, models, tmp_path):
    """A library of the vendor's name is used with -e, and options go to it."""
    package = tmp_path / "packages/onnxruntime_qnn/capi"
    package.mkdir(parents=True)
    shutil.copy(EXAMPLE, package / "libonnxruntime_providers_qnn.so")
    options = "soc_model|60 enable_htp_spill_fill_buffer|1"
    done = tool("-i", options, models, SARDONYX_PLUGIN_PATH=str(tmp_path / "packages"))
    assert done.returncode == 0, done.stderr
    assert "Start to update the generated Onnx model to reflect the max_size." in done.stdout
    assert "has no max_size: nothing was changed." in done.stdout
    assert context_nodes(tmp_path / "v1.2/m1_ctx.onnx")


def test_a_vendor_library_is_found_in_the_packages_of_python(tool, models, tmp_path):
    """As pip installs it."""
    package = tmp_path / "site/onnxruntime_qnn"
    package.mkdir(parents=True)
    shutil.copy(EXAMPLE, package / "libonnxruntime_providers_qnn.so")
    (tmp_path / "bin/python3").write_text(f"#!/bin/sh\necho\necho {tmp_path}/site\n")
    done = tool(models)
    assert done.returncode == 0, done.stderr
