"""Layers on devices that are not there: two virtual GPUs and an NPU of our own plugin library.

Their memory faults when it is touched without a copy, so that a session that computes the right
values has copied all that it had to.
"""

import json
import os
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
LLAMA = BUILD / "models/llama_small.onnx"

PRELUDE = """
import json, sys
import numpy as np
import sardonyx as sx

library, model, feed_path = sys.argv[1:4]
sx.register_execution_provider_library("EP.virtual", library)
devices = [d for d in sx.get_ep_devices() if d.ep_name == "SardonyxExecutionProvider"]
gpus = [d for d in devices if int(d.device.type) == 1]
npus = [d for d in devices if int(d.device.type) == 2]
feeds = dict(np.load(feed_path))

def open_session(entries, chosen, profile=False, optimized=""):
    options = sx.SessionOptions()
    options.enable_profiling = profile
    options.optimized_model_filepath = optimized
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if chosen:
        options.add_provider_for_devices(chosen, {})
    return sx.InferenceSession(model, options)

def places(session):
    return {node["name"]: node["device"] for node in session.placement()["nodes"]}

def difference(a, b):
    return max(float(np.max(np.abs(x - y) / (1 + np.abs(y)))) for x, y in zip(a, b))
"""


def run(script, model, feeds, folder=None):
    """Run a script after the prelude in a process of its own: the JSON of its last line."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)]
        + [str(BUILD / "lib/libsardonyx_ep.so"), str(model), str(feeds)],
        env={**os.environ, "SARDONYX_VIRTUAL_DEVICES": "gpu; gpu; npu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder or Path(model).parent,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


def make_layers(path, count):
    """`count` layers that each use the one before and a value that is made at the start."""
    random = np.random.default_rng(3)
    nodes = [helper.make_node("Relu", ["x"], ["mask"], "embed/Relu")]
    weights = []
    last = "x"
    for i in range(count):
        weights.append(
            numpy_helper.from_array(random.standard_normal((16, 16)).astype(np.float32), f"w{i}")
        )
        prefix = f"/model/layers.{i}"
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], f"{prefix}/mlp/MatMul"),
            helper.make_node("Add", [f"m{i}", "mask"], [f"a{i}"], f"{prefix}/mlp/Add"),
            helper.make_node("Tanh", [f"a{i}"], [f"t{i}"], f"{prefix}/act/Tanh"),
        ]
        last = f"t{i}"
    nodes.append(helper.make_node("Softmax", [last], ["y"], "head/Softmax", axis=-1))
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    np.savez(path.with_suffix(".npz"), x=random.standard_normal((4, 16)).astype(np.float32))
    return path


def cut_edges(path, places):
    """Values that a node makes and a node on another device uses: one copy for each such device."""
    nodes = [n for n in onnx.load(path, load_external_data=False).graph.node if n.name in places]
    makers = {output: places[n.name] for n in nodes for output in n.output}
    return {
        (value, places[n.name])
        for n in nodes
        for value in n.input
        if value in makers and makers[value] != places[n.name]
    }


CHECK_COPIES = """
    entries = {"sardonyx.placement": RULES}
    plain = open_session({}, []).run(None, feeds)
    session = open_session(entries, gpus, profile=True, optimized=OPTIMIZED)
    found = session.run(None, feeds)
    placement = session.placement()
    with open(session.end_profiling()) as file:
        events = json.load(file)
    copies = [
        event["name"].removesuffix("_kernel_time")
        for event in events
        if event.get("args", {}).get("op_name", "").startswith("Memcpy")
    ]
    print(json.dumps({
        "difference": difference(found, plain),
        "places": places(session),
        "copies": [[c["value"], c["to"]] for c in placement["copies"]],
        "copied": copies,
        "inputs": list(feeds),
    }))
"""


def check_copies(path, feeds, rules, folder):
    """What is copied, by the plan and by the run's profile, is what the cut edges ask for."""
    placed = folder / "placed.onnx"
    script = CHECK_COPIES.replace("RULES", repr(rules)).replace("OPTIMIZED", repr(str(placed)))
    result = run(script, path, feeds, folder)
    edges = cut_edges(placed, result["places"])
    assert result["difference"] < 1e-4
    assert {tuple(copy) for copy in result["copies"]} == edges
    assert len(result["copies"]) == len(edges)
    made = sorted(name for name in result["copied"] if name not in result["inputs"])
    assert made == sorted(value for value, _ in edges)
    return result


def test_ranges_share_a_model_between_two_gpus_and_the_processor(tmp_path):
    path = make_layers(tmp_path / "layers.onnx", 12)
    result = check_copies(
        path,
        path.with_suffix(".npz"),
        "gpu:0(layers.[0-5]/); gpu:1(layers.[6-11]/); cpu(embed, head)",
        tmp_path,
    )
    places = result["places"]
    assert places["/model/layers.5/act/Tanh"] == "gpu:0"
    assert places["/model/layers.6/mlp/MatMul"] == "gpu:1"
    assert places["embed/Relu"] == places["head/Softmax"] == "cpu"


def test_layers_may_go_back_and_forth(tmp_path):
    path = make_layers(tmp_path / "layers.onnx", 5)
    rules = "gpu:1(layers.0/, layers.2/, layers.4/); cpu(layers.3/); gpu:0(layers.1/)"
    check_copies(path, path.with_suffix(".npz"), rules, tmp_path)


@pytest.mark.parametrize("kind", ["mlp/MatMul", "mlp/Add", "act/"])
def test_single_operators_of_all_layers_move(tmp_path, kind):
    path = make_layers(tmp_path / "layers.onnx", 4)
    check_copies(path, path.with_suffix(".npz"), f"cpu({kind})", tmp_path)


def test_llama_is_shared_by_ranges(tmp_path):
    if not LLAMA.exists():
        pytest.skip(f"{LLAMA.name} is made by 'make models'")
    result = check_copies(
        LLAMA,
        LLAMA.with_suffix(".feed.npz"),
        "gpu:0(layers.[0-3]/); gpu:1(layers.[4-7]/); cpu(embed_tokens, lm_head)",
        tmp_path,
    )
    assert {"gpu:0", "gpu:1", "cpu"} <= set(result["places"].values())


def test_names_and_annotations_work_as_in_onnxruntime(tmp_path):
    path = make_layers(tmp_path / "layers.onnx", 11)
    model = onnx.load(path)
    for node in model.graph.node:
        if "/layers.3/" in node.name:
            node.metadata_props.add(key="layer_ann", value="decoder_3")
    onnx.save(model, path)
    result = run(
        """
        by_name = open_session(
            {"session.name_based_layer_assignment": "gpu:1(layers.1); gpu:0(layers.10)"}, gpus)
        by_annotation = open_session(
            {"session.layer_assignment_settings": "npu(decoder_)"}, gpus[:1] + npus)
        print(json.dumps([places(by_name), places(by_annotation)]))
        """,
        path,
        path.with_suffix(".npz"),
    )
    by_name, by_annotation = result
    assert by_name["/model/layers.1/mlp/Add"] == "gpu:1"
    assert by_name["/model/layers.10/mlp/Add"] == "gpu:0"
    assert by_name["/model/layers.2/mlp/Add"] == "gpu:0"
    assert by_annotation["/model/layers.3/mlp/Add"] == "npu:0"
    assert by_annotation["/model/layers.4/mlp/Add"] == "gpu:0"


def test_a_budget_moves_the_last_layers(tmp_path):
    path = make_layers(tmp_path / "layers.onnx", 6)
    result = run(
        """
        key = "session.resource_partitioning_settings"
        plain = open_session({}, []).run(None, feeds)
        session = open_session({key: "gpu:0(4KiB), gpu:1(4KiB)"}, gpus)
        report = session.placement()
        print(json.dumps({
            "difference": difference(session.run(None, feeds), plain),
            "places": places(session),
            "reasons": [n["reason"] for n in report["nodes"]],
            "limits": [d["limit_bytes"] for d in report["devices"]],
        }))
        """,
        path,
        path.with_suffix(".npz"),
    )
    assert result["difference"] < 1e-4
    assert result["places"]["/model/layers.0/mlp/MatMul"] == "gpu:0"
    assert result["places"]["/model/layers.5/mlp/MatMul"] == "cpu"
    assert set(result["places"].values()) == {"gpu:0", "gpu:1", "cpu"}
    assert "budget" in result["reasons"]
    assert result["limits"] == [4096, 4096, None]
