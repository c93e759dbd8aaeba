"""sardonyx.plan(), Plan, and what sessions tell of their placement."""

import json

import numpy as np
import pytest
import sardonyx
from models import TensorProto, model_of, node, value, weight

GPUS = [{"type": "gpu"}, {"type": "gpu"}]


def chain():
    """Four layers of MatMul and Relu."""
    nodes = []
    weights = []
    last = "x"
    for layer in range(4):
        weights.append(weight(f"w{layer}", np.eye(3, dtype=np.float32)))
        name = f"/layers.{layer}"
        nodes.append(node("MatMul", [last, f"w{layer}"], [f"m{layer}"], name=f"{name}/MatMul"))
        last = "y" if layer == 3 else f"r{layer}"
        nodes.append(node("Relu", [f"m{layer}"], [last], name=f"{name}/Relu"))
    ends = [value(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    return model_of(nodes, ends[:1], ends[1:], weights)


@pytest.fixture
def path(tmp_path):
    """The chain in a file."""
    file = tmp_path / "chain.onnx"
    file.write_bytes(chain())
    return file


def places(plan):
    """Device of each node."""
    return {row["name"]: row["device"] for row in plan["nodes"]}


def test_a_plan_is_made_for_devices_that_are_not_here(path):
    """By entries, and by session options."""
    rules = {"sardonyx.placement": "gpu:0(/layers.[0-1]/); gpu:1(/layers.[2-3]/)"}
    plan = sardonyx.plan(path, rules, GPUS)
    assert places(plan)["/layers.1/Relu"] == "gpu:0"
    assert places(plan)["/layers.2/MatMul"] == "gpu:1"
    assert repr(plan) == "Plan({'gpu:0': 4, 'gpu:1': 4, 'cpu': 0})"
    options = sardonyx.SessionOptions()
    options.add_session_config_entry("sardonyx.placement", plan.option)
    assert places(sardonyx.plan(path, options, GPUS)) == places(plan)


def test_devices_are_read_from_a_file(path, tmp_path):
    """As explain --devices reads them."""
    file = tmp_path / "devices.json"
    file.write_text(json.dumps(GPUS))
    assert len(sardonyx.plan(path, None, file)["devices"]) == 3


def test_a_plan_becomes_a_page_and_a_file(path, tmp_path):
    """Whole files, and the page as text."""
    plan = sardonyx.plan(path, {"sardonyx.placement": "gpu:1(/layers.0/); cpu(*)"}, GPUS)
    text = plan.to_html(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == text
    assert text.startswith("<!doctype html>")
    plan.save(tmp_path / "plan.json", strict=True)
    saved = json.loads((tmp_path / "plan.json").read_text())
    assert saved["strict"] is True
    entries = {"sardonyx.placement_file": tmp_path / "plan.json"}
    again = sardonyx.plan(path, entries, GPUS)
    assert places(again) == places(plan)
    assert {row["reason"] for row in again["nodes"]} == {"plan"}
    with pytest.raises(sardonyx.errors.InvalidArgument, match="strict"):
        sardonyx.plan(path, entries)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "chain.onnx",
        "plan.html",
        "plan.json",
    ]


def test_a_session_loads_a_plan(path, tmp_path, session_of):
    """Its placement has the reason "plan", and the results are those of no plan."""
    sardonyx.plan(path).save(tmp_path / "plan.json")
    options = sardonyx.SessionOptions()
    options.add_session_config_entry("sardonyx.placement_file", str(tmp_path / "plan.json"))
    session = session_of(chain(), options)
    placement = session.placement()
    assert isinstance(placement, sardonyx.Plan)
    assert {row["reason"] for row in placement["nodes"]} == {"plan"}
    assert placement.to_html().startswith("<!doctype html>")
    x = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_a_page_of_something_else_is_an_error():
    """It says what is missing."""
    with pytest.raises(sardonyx.errors.InvalidArgument, match="devices"):
        sardonyx.Plan({"nodes": []}).to_html()


def test_patterns_are_suggested(path):
    """Layer by layer."""
    (group,) = sardonyx.suggest_patterns(path)["groups"]
    assert group["range"] == "/layers.[0-3]/"
    assert [layer["node_count"] for layer in group["layers"]] == [2, 2, 2, 2]


def test_the_assignment_has_device_and_reason(session_of):
    """Every node with the name that it has in the model."""
    options = sardonyx.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_session_config_entry("sardonyx.placement", "cpu(/layers.0/)")
    groups = session_of(chain(), options).get_provider_graph_assignment_info()
    nodes = {row.name: row for group in groups for row in group.get_nodes()}
    assert len(nodes) == 8
    assert nodes["/layers.0/Relu"].device == "cpu"
    assert nodes["/layers.0/Relu"].reason == "rule: cpu(/layers.0/)"
    assert nodes["/layers.3/Relu"].reason == "capability"
    assert {group.device for group in groups} == {"cpu"}
