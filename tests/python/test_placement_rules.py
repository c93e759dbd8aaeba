"""Placement rules through sessions: against ONNX Runtime, and what is said about mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import sardonyx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build/release"))


def test_rules_differ_from_onnxruntime_as_listed_only():
    """Every row of the grammar, the designators and the matching, on both runtimes."""
    done = subprocess.run(
        [sys.executable, ROOT / "tests/placement/compare_with_onnxruntime.py"],
        env={**os.environ, "SARDONYX_BUILD": str(BUILD)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " 0 unexpected" in done.stdout


def model_of(nodes):
    """Relu nodes side by side with names and metadata."""
    made, outputs = [], []
    for i, (name, metadata) in enumerate(nodes):
        node = helper.make_node("Relu", ["x"], [f"y{i}"], name)
        for key, value in metadata.items():
            entry = node.metadata_props.add()
            entry.key, entry.value = key, value
        made.append(node)
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [2]))
    graph = helper.make_graph(
        made, "test", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], outputs
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    onnx.checker.check_model(model)
    return model.SerializeToString()


def scopes(*names):
    """What PyTorch's newer exporter writes about a node's modules."""
    return {"pkg.torch.onnx.name_scopes": str(["", *names])}


LAYERS = model_of(
    [(f"/model/layers.{i}/mlp/Relu", {"layer_ann": f"decoder_{i}"}) for i in range(12)]
)
NUMBERED = model_of(
    [
        ("node_relu_7", scopes("layer1", "layer1.0", "layer1.0.relu", "relu")),
        ("node_relu_8", scopes("layer2", "layer2.0", "relu_1")),
        ("", {}),
    ]
)


def open_session(model, capfd, **entries):
    """A session on the processor, and what it says."""
    options = sardonyx.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(OPTIONS[key], value)
    capfd.readouterr()
    session = sardonyx.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    x = np.float32([-1, 1])
    for y in session.run(None, {"x": x}):
        np.testing.assert_array_equal(y, np.maximum(x, 0))
    return session, capfd.readouterr().err


OPTIONS = {
    "own": "sardonyx.placement",
    "names": "session.name_based_layer_assignment",
    "annotations": "session.layer_assignment_settings",
}

SAID = [
    ({"names": "cpu(layers.99/)"}, "goes from 0 to 11"),
    ({"names": "cpu(/modle/layers.5/)"}, "nearest: '/model/layers.5/'"),
    ({"names": "cpu(layers.1)"}, "in which another digit follows (2 of 3"),
    ({"names": "cpu(layers.)(x)"}, "after the ')' is ignored"),
    ({"names": "gpu(layers.1/)"}, "could not be mapped to any available Execution Provider"),
    ({"annotations": "cpu(encoder)"}, "annotations are 'decoder_0'"),
    ({"own": "gpu:0(layers.[0-5]/); cpu(*)"}, "rule 'gpu:0(layers.[0-5]/)' is skipped"),
    ({"own": "cpu(layers.[0-20]/, x)"}, "pattern 'x' of 'cpu' matches no node"),
]


@pytest.mark.parametrize(("entries", "said"), SAID)
def test_a_rule_that_does_not_do_what_it_says_is_told(entries, said, capfd):
    """Each mistake is a warning; the session runs."""
    _, text = open_session(LAYERS, capfd, **entries)
    assert said in text


@pytest.mark.parametrize(
    "entries",
    [
        {"names": "cpu(layers.)"},
        {"names": "cpu(layers.1/, layers.11/)"},
        {"annotations": "cpu(=decoder_1, decoder_2)"},
        {"own": "strict; cpu(layers.[0-11]/)"},
        {"own": 'cpu(~"layers\\.[1-3]/mlp", @decoder_, *)'},
    ],
)
def test_a_rule_that_does_what_it_says_is_not_talked_about(entries, capfd):
    """No line."""
    _, text = open_session(LAYERS, capfd, **entries)
    assert text == ""


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("strict; npu(layers.1/)", "a strict placement rule cannot be kept"),
        ("cpu!(layers.99/)", "a strict placement rule cannot be kept"),
        ("cpu(layers.*)", "'*' inside a pattern means nothing"),
        ("cpu(a(b))", "has to stand in quotes"),
        ('cpu(~"(")', "regular expression '('"),
        ("gpu:0(l[0-3]/); gpu:1(l[3-7]/)", "'l3/' stands in both"),
    ],
)
def test_a_mistake_in_the_own_option_is_an_error(option, said, capfd):
    """With the place, or what cannot be kept."""
    with pytest.raises(Exception, match=r"placement") as caught:
        open_session(LAYERS, capfd, own=option)
    assert said in str(caught.value)


def test_nodes_with_numbers_for_names_are_known_by_their_module(capfd):
    """Spelled as by PyTorch's older exporter, or as the module is named; or by their output."""
    for option in ("cpu(/layer1/layer1.0/relu/, layer2.0)", "cpu(layer[1-2].0)", "cpu(y2, layer)"):
        _, text = open_session(NUMBERED, capfd, own="strict; " + option)
        assert text == ""
    _, text = open_session(NUMBERED, capfd, names="cpu(/layer1/layer1.0/relu/)")
    assert text == ""
