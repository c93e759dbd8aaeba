"""sardonyx explain: what runs where, and why, without compiling anything."""

import json
import os
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import onnx
import pytest
from conftest import BUILD, save
from onnx import TensorProto, helper, numpy_helper

GPUS = [{"type": "gpu", "memory_bytes": 1 << 30}, {"type": "gpu", "memory_bytes": 1 << 30}]
LAYERS = 6


def layered(path, name="/model/layers.{}/{}"):
    """A chain of layers: MatMul with weights of its own, Relu, Add of a shared bias."""
    value = helper.make_tensor_value_info
    nodes = []
    weights = [numpy_helper.from_array(np.ones((512,), np.float32), "bias")]
    last = "x"
    for layer in range(LAYERS):
        weights.append(numpy_helper.from_array(np.ones((512, 512), np.float32), f"w{layer}"))
        rows = [
            ("MatMul", [last, f"w{layer}"]),
            ("Relu", [f"m{layer}"]),
            ("Add", [f"r{layer}", "bias"]),
        ]
        for (op, inputs), output in zip(rows, (f"m{layer}", f"r{layer}", f"a{layer}")):
            nodes.append(
                helper.make_node(op, inputs, [output], name=name.format(layer, op) if name else "")
            )
        last = f"a{layer}"
    nodes.append(helper.make_node("Neg", [last], ["y"], name="/head/Neg" if name else ""))
    return save(
        path,
        nodes,
        [value("x", TensorProto.FLOAT, [4, 512])],
        [value("y", TensorProto.FLOAT, [4, 512])],
        weights,
    )


@pytest.fixture
def model(tmp_path):
    """The layers, and two GPUs that are not here."""
    (tmp_path / "devices.json").write_text(json.dumps(GPUS))
    return layered(tmp_path / "model.onnx")


RULES = "gpu:0(/model/layers.[0-2]/); gpu:1(/model/layers.[3-5]/)"


def explain(sardonyx, *arguments):
    """The JSON of a run that succeeds."""
    done = sardonyx("explain", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def places(plan):
    """Device of each node by its name."""
    return {node["name"]: node["device"] for node in plan["nodes"]}


def test_layers_go_where_rules_say(sardonyx, model):
    """Devices, layers, copies and memory of a plan for two GPUs that are not here."""
    plan = explain(sardonyx, model, "--devices", "devices.json", "--rules", RULES)
    assert [device["name"] for device in plan["devices"]] == ["gpu:0", "gpu:1", "cpu"]
    assert plan["devices"][0]["node_count"] == 10
    assert plan["devices"][0]["weight_bytes"] == 3 * 512 * 512 * 4 + 512 * 4
    layers = {row["pattern"]: row for row in plan["layers"]}
    assert layers["/model/layers.2/"]["devices"] == [
        {"device": "gpu:0", "device_index": 0, "node_count": 3}
    ]
    assert layers["/model/layers.3/"]["devices"][0]["device"] == "gpu:1"
    cut = [copy for copy in plan["copies"] if (copy["from"], copy["to"]) == ("gpu:0", "gpu:1")]
    assert [copy["bytes"] for copy in cut] == [4 * 512 * 4]
    assert plan["devices"][0]["activation_peak_bytes"] == 2 * 4 * 512 * 4
    assert [(rule["kept"], rule["lost"]) for rule in plan["rules"]] == [(9, 0), (9, 0)]
    assert plan["shared_weights"][0]["name"] == "bias"
    assert plan["shared_weights"][0]["devices"] == ["gpu:0", "gpu:1"]


def test_the_option_reproduces_the_plan(sardonyx, model):
    """Also of a placement that no range describes."""
    rules = RULES + "; cpu(=/model/layers.1/Relu)"
    plan = explain(sardonyx, model, "--devices", "devices.json", "--rules", rules)
    assert plan["unreproduced_nodes"] == 0
    option = plan["options"]["sardonyx.placement"]
    assert "/model/layers.[" in option
    again = explain(sardonyx, model, "--devices", "devices.json", "--rules", option)
    assert places(again) == places(plan)


def test_text_for_people(sardonyx, model):
    """The parts of a summary, and a rule that matches nothing."""
    rules = "gpu:0(/model/layers.[0-2]/, layers.99/); cpu(/model/layers.[3-5]/)"
    done = sardonyx("explain", model, "--devices", "devices.json", "--rules", rules, "--nodes")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for part in (
        "devices",
        "/model/layers.0/",
        "rules (",
        "copies between devices",
        "matches no node",
        "sardonyx.placement=",
        "rule gpu:0(/model/layers.[0-2]/)",
        "/head/Neg",
    ):
        assert part in done.stdout, part


def test_patterns_are_suggested(sardonyx, model, tmp_path):
    """By layers, with separators; and the truth for a model without names."""
    report = explain(sardonyx, model, "--suggest")
    assert report["groups"][0]["range"] == "/model/layers.[0-5]/"
    assert report["groups"][0]["layers"][1] == {"pattern": "/model/layers.1/", "node_count": 3}
    text = sardonyx("explain", model, "--suggest").stdout
    assert "/model/layers.[0-5]/  6 layers, 18 nodes" in text
    nameless = layered(tmp_path / "nameless.onnx", name=None)
    text = sardonyx("explain", nameless, "--suggest").stdout
    assert "no patterns" in text
    assert "19 nodes" in text


def test_a_saved_plan_is_loaded_in_place_of_rules(sardonyx, model, tmp_path):
    """The same placement by another reason, then an edited one."""
    arguments = (model, "--devices", "devices.json")
    plan = explain(sardonyx, *arguments, "--rules", RULES, "--save-plan", "plan.json")
    again = explain(sardonyx, *arguments, "--plan", "plan.json")
    assert places(again) == places(plan)
    assert {node["reason"] for node in again["nodes"]} == {"plan"}
    assert again["warnings"] == []
    assert again["rules"][0]["option"] == "sardonyx.placement_file"
    saved = json.loads((tmp_path / "plan.json").read_text())
    assert saved["format"] == 1
    saved["nodes"][0]["device"] = "gpu:1"
    (tmp_path / "plan.json").write_text(json.dumps(saved))
    edited = explain(sardonyx, *arguments, "--plan", "plan.json")
    assert places(edited)[saved["nodes"][0]["name"]] == "gpu:1"


def test_a_report_is_a_plan(sardonyx, model, tmp_path):
    """What --json prints can be loaded."""
    plan = explain(sardonyx, model, "--devices", "devices.json", "--rules", RULES)
    (tmp_path / "report.json").write_text(json.dumps(plan))
    again = explain(sardonyx, model, "--devices", "devices.json", "--plan", "report.json")
    assert places(again) == places(plan)


def test_plans_of_other_models_are_told(sardonyx, model, tmp_path):
    """Names that are missing on either side: warnings, or errors when the plan is strict."""
    rows = [{"name": "/model/layers.0/Matmul", "device": "cpu"}]
    plan = {"format": 1, "nodes": rows}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    warnings = explain(sardonyx, model, "--plan", "plan.json")["warnings"]
    assert len(warnings) == 2
    assert "'/model/layers.0/Matmul'" in warnings[0]
    assert "does not name 19 of 19 nodes" in warnings[1]
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "strict": True}))
    done = sardonyx("explain", model, "--plan", "plan.json")
    assert done.returncode == 1
    assert "strict" in done.stderr
    done = sardonyx("explain", model, "--plan", "plan.json", "--rules", "cpu(*)")
    assert done.returncode == 1
    assert "sardonyx.placement_file stands for all rules" in done.stderr


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 7, "nodes": []}', "[" * 200000, '{"format":1,"nodes":[1]}']
)
def test_broken_plans_are_errors(sardonyx, model, tmp_path, text):
    """Each names the file."""
    (tmp_path / "plan.json").write_text(text)
    done = sardonyx("explain", model, "--plan", "plan.json")
    assert done.returncode == 1
    assert "plan.json" in done.stderr


def test_files_are_not_overwritten(sardonyx, model, tmp_path):
    """Models never, others by --force."""
    before = model.read_bytes()
    (tmp_path / "other.onnx").write_bytes(b"model")
    (tmp_path / "page.html").write_text("mine")
    for arguments in (
        ("--html", "model.onnx", "--force"),
        ("--save-plan", "./model.onnx", "--force"),
        ("--html", "other.onnx", "--force"),
        ("--html", "page.html"),
        ("--html", "one", "--save-plan", "one"),
    ):
        done = sardonyx("explain", model, *arguments)
        assert done.returncode == 1, arguments
    assert model.read_bytes() == before
    assert (tmp_path / "page.html").read_text() == "mine"
    assert sardonyx("explain", model, "--html", "page.html", "--force").returncode == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "devices.json",
        "model.onnx",
        "other.onnx",
        "page.html",
    ]


def test_misspelt_options_get_a_hint(sardonyx, model):
    """As those of other commands."""
    done = sardonyx("explain", model, "--sugest")
    assert done.returncode == 2
    assert "did you mean '--suggest'?" in done.stderr


def test_free_dimensions_get_sizes(sardonyx, linear):
    """Values are sized, then."""
    unsized = explain(sardonyx, linear)["devices"][0]
    sized = explain(sardonyx, linear, "-d", "batch=8")["devices"][0]
    assert unsized["unsized_values"] > 0
    assert sized["unsized_values"] == 0
    assert sized["activation_peak_bytes"] >= 8 * 2 * 4


def test_hostile_names_stay_data(sardonyx, tmp_path):
    """Markup, quotes and bytes that are no UTF-8 in a page and in an option."""
    value = helper.make_tensor_value_info
    name = "</script><script>document.title='taken'</script>\"'; cpu(x)"
    path = save(
        tmp_path / "hostile.onnx",
        [helper.make_node("Relu", ["x"], ["r"], name=name), helper.make_node("Neg", ["r"], ["y"])],
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    done = sardonyx("explain", path, "--html", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "document.title='taken'</script>" not in page
    assert page.count("<script") == 2


def browser():
    """A Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("SARDONYX_BROWSER") or next(filter(None, map(shutil.which, names)), None)


def in_browser(*arguments):
    """What headless Chromium prints."""
    command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=10000", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def colours_of(path):
    """Colours of a PNG of 8 bits per channel, with their shares."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    channels = {2: 3, 6: 4}[kind]
    packed = b""
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    image = np.zeros((height, width * channels), np.uint8)
    for y in range(height):
        image[y] = unfilter(raw[y, 0], raw[y, 1:], image[y - 1] if y else None, channels)
    pixels = image.reshape(-1, channels)[:, :3]
    values, counts = np.unique(pixels, axis=0, return_counts=True)
    return {tuple(map(int, value)): int(count) for value, count in zip(values, counts)}


def unfilter(kind, row, above, channels):
    """One row of a PNG."""
    above = np.zeros_like(row) if above is None else above
    if kind == 0:
        return row
    if kind == 2:
        return row + above
    left = np.zeros(channels, np.int64)
    corner = np.zeros(channels, np.int64)
    result = np.empty_like(row)
    for i in range(0, len(row), channels):
        up = above[i : i + channels].astype(np.int64)
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            steps = np.abs(np.stack([up - corner, left - corner, left + up - 2 * corner]))
            guess = np.where(
                (steps[0] <= steps[1]) & (steps[0] <= steps[2]),
                left,
                np.where(steps[1] <= steps[2], up, corner),
            )
        left = (row[i : i + channels] + guess) & 255
        corner = up
        result[i : i + channels] = left
    return result


needs_browser = pytest.mark.skipif(
    browser() is None, reason="no Chromium here: the page is not looked at (apt install chromium)"
)


@needs_browser
def test_the_page_shows_the_plan(sardonyx, model, tmp_path):
    """In a real browser: devices' colours, layers, rows, and nothing in the console."""
    done = sardonyx(
        "explain", model, "--devices", "devices.json", "--rules", RULES, "--html", "p.html"
    )
    assert done.returncode == 0, done.stderr
    address = (tmp_path / "p.html").as_uri()
    picture = tmp_path / "page.png"
    in_browser("--window-size=1000,1200", f"--screenshot={picture}", address)
    colours = colours_of(picture)
    for device in ((0x0B, 0x63, 0xB5), (0xB8, 0x50, 0x0A)):
        assert colours.get(device, 0) > 2000, device
    page = in_browser("--dump-dom", address)
    assert 'data-ready="1"' in page
    assert len(re.findall(r'class="layer"', page)) == LAYERS + 1
    assert "/model/layers.5/Relu" in page
    assert "19 nodes on 2 devices" in page


@needs_browser
def test_a_page_of_many_nodes_has_few_elements(sardonyx, tmp_path):
    """40,000 nodes are searched, and only those in sight are drawn."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"], name=f"/layers.{i // 100}/Neg_{i}")
        for i in range(40000)
    ]
    ends = [value("v0", TensorProto.FLOAT, [2]), value("v40000", TensorProto.FLOAT, [2])]
    path = save(tmp_path / "many.onnx", nodes, ends[:1], ends[1:])
    done = sardonyx("explain", path, "--html", "many.html")
    assert done.returncode == 0, done.stderr
    page = in_browser("--dump-dom", (tmp_path / "many.html").as_uri())
    assert 'data-ready="1"' in page
    assert "40,000 nodes" in page
    assert page.count('class="row"') < 100


@needs_browser
def test_hostile_names_do_not_run(sardonyx, tmp_path):
    """The page keeps its title and shows the name as text."""
    value = helper.make_tensor_value_info
    name = "</script><img src=x onerror=\"document.title='taken'\">"
    path = save(
        tmp_path / "hostile.onnx",
        [helper.make_node("Relu", ["x"], ["y"], name=name)],
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    assert sardonyx("explain", path, "--html", "page.html").returncode == 0
    page = in_browser("--dump-dom", (tmp_path / "page.html").as_uri())
    assert 'data-ready="1"' in page
    assert "<title>taken" not in page
    assert "<img" not in page


def test_plugins_are_asked(sardonyx, model):
    """A provider of a library takes part, when it is built."""
    library = BUILD / "lib/libsardonyx_ep.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    plan = explain(
        sardonyx, model, "--plugin", f"ep={library}", "--provider", "SardonyxExecutionProvider"
    )
    providers = [device["provider"] for device in plan["devices"]]
    assert "SardonyxExecutionProvider" in providers


def test_the_saved_plan_loads_with_equal_results(sardonyx, model, tmp_path):
    """A plan for the CPU changes nothing but the reason."""
    done = sardonyx("explain", model, "--save-plan", "plan.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "plan.json").read_text())["nodes"]
    names = [node.name for node in onnx.load(model).graph.node]
    assert {row["name"] for row in rows} <= set(names)
    assert {row["device"] for row in rows} == {"cpu"}
