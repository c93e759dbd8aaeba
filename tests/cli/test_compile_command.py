"""sardonyx compile, verify, cache, and inspect of what they make."""

import json
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD, save
from onnx import TensorProto, helper, numpy_helper

SIZE = 256
RANDOM = np.random.default_rng(5)
SHARED = [RANDOM.standard_normal((SIZE, SIZE)).astype(np.float32) / 16 for _ in range(4)]
OWN = {name: RANDOM.standard_normal((SIZE, SIZE)).astype(np.float32) / 16 for name in "abc"}
WEIGHT_BYTES = SIZE * SIZE * 4


def save_chain(path, last):
    """Four shared layers and one of the model's own: x @ w0 ... @ w3 @ last, with Relu between."""
    value = helper.make_tensor_value_info
    nodes = []
    weights = []
    current = "x"
    for i, weight in enumerate([*SHARED, last]):
        nodes.append(helper.make_node("MatMul", [current, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        current = f"r{i}"
    return save(
        path,
        nodes,
        [value("x", TensorProto.FLOAT, ["rows", SIZE])],
        [value(current, TensorProto.FLOAT, ["rows", SIZE])],
        weights,
    )


@pytest.fixture
def chains(tmp_path):
    """Paths of two models that share four of five weights."""
    return [save_chain(tmp_path / f"{name}.onnx", OWN[name]) for name in "ab"]


@pytest.fixture
def compiled(sardonyx, chains, tmp_path):
    """The folder with both of them compiled."""
    done = sardonyx("compile", *chains, "-o", "out")
    assert done.returncode == 0, done.stderr
    return tmp_path / "out"


def run_on(sardonyx, tmp_path, model, folder):
    """The output of a model on a fixed input."""
    x = np.random.default_rng(1).standard_normal((3, SIZE)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    done = sardonyx("run", model, "-i", "x=x.npy", "-o", folder, "--force")
    assert done.returncode == 0, done.stderr
    return np.load(tmp_path / folder / "r4.npy")


def test_models_are_compiled_into_one_container(sardonyx, chains, compiled, tmp_path):
    """N models, one container with each weight once; they run as their sources do."""
    names = {path.name for path in compiled.iterdir() if not path.name.endswith(".seen")}
    assert names == {"a_ctx.onnx", "b_ctx.onnx", "sardonyx_weights.bin"}
    unique = 6 * WEIGHT_BYTES
    size = (compiled / "sardonyx_weights.bin").stat().st_size
    assert unique <= size <= 1.01 * unique + 65536
    for source in chains:
        expected = run_on(sardonyx, tmp_path, source, "expected")
        found = run_on(sardonyx, tmp_path, compiled / f"{source.stem}_ctx.onnx", "found")
        np.testing.assert_array_equal(found, expected)


def test_a_model_that_comes_later_shares_too(sardonyx, compiled, tmp_path):
    """The container grows by the one weight that it did not have."""
    before = (compiled / "sardonyx_weights.bin").stat().st_size
    third = save_chain(tmp_path / "c.onnx", OWN["c"])
    done = sardonyx("compile", third, "-o", compiled, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["models"][0]["output"].endswith("c_ctx.onnx")
    assert report["models"][0]["compiled_parts"] == 1
    (data,) = report["data"]
    assert data["bytes"] - before < WEIGHT_BYTES + 65536
    assert data["saved_bytes"] >= 8 * WEIGHT_BYTES
    for name in "abc":
        assert sardonyx("verify", compiled / f"{name}_ctx.onnx", "--full").returncode == 0


def test_outputs_are_not_overwritten_without_force(sardonyx, chains, compiled):
    """Neither in silence nor when two models would have one name."""
    done = sardonyx("compile", *chains, "-o", compiled)
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert sardonyx("compile", *chains, "-o", compiled, "--force").returncode == 0
    done = sardonyx("compile", chains[0], chains[0], "-o", "twice")
    assert done.returncode == 1
    assert "a_ctx.onnx" in done.stderr


def test_models_are_compiled_with_a_plugin_library(sardonyx, tmp_path):
    """They share the file that the library writes, and are loaded with the library."""
    sources = []
    for name in "ab":
        weights = [numpy_helper.from_array(SHARED[0], "w"), numpy_helper.from_array(OWN[name], "v")]
        value = helper.make_tensor_value_info
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("MatMul", ["m", "v"], ["r4"]),
        ]
        ends = [value(end, TensorProto.FLOAT, [3, SIZE]) for end in ("x", "r4")]
        sources.append(save(tmp_path / f"{name}.onnx", nodes, ends[:1], ends[1:], weights))
    library = f"example_ep={BUILD / 'lib/libexample_plugin_ep.so'}"
    done = sardonyx("compile", *sources, "-o", "out", "--plugin", library)
    assert done.returncode == 0, done.stderr
    names = set()
    for source in sources:
        path = tmp_path / "out" / f"{source.stem}_ctx.onnx"
        (node,) = onnx.load(path).graph.node
        assert node.op_type == "EPContext"
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        names.add(attributes["ep_cache_context"].decode())
        assert sardonyx("verify", path).returncode == 0
    (data,) = names
    assert 3 * WEIGHT_BYTES <= (tmp_path / "out" / data).stat().st_size < 3.5 * WEIGHT_BYTES
    assert sardonyx("compile", sources[0], "-o", "no", "--plugin", "x=/nowhere.so").returncode == 1
    assert not (tmp_path / "no").exists()


def test_what_cannot_be_compiled_leaves_nothing(sardonyx, tmp_path):
    """A broken model: an error that names it, and no folder."""
    (tmp_path / "broken.onnx").write_text("no model")
    done = sardonyx("compile", "broken.onnx", "-o", "out")
    assert done.returncode == 1
    assert "broken.onnx" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_model_can_hold_its_data(sardonyx, chains, tmp_path):
    """--embed: one file."""
    done = sardonyx("compile", chains[0], "-o", "one", "--embed")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["a_ctx.onnx"]
    assert sardonyx("verify", "one/a_ctx.onnx", "--full").returncode == 0
    expected = run_on(sardonyx, tmp_path, chains[0], "expected")
    np.testing.assert_array_equal(run_on(sardonyx, tmp_path, "one/a_ctx.onnx", "found"), expected)


def test_weights_can_stay_in_the_source(sardonyx, chains, tmp_path):
    """--weightless: a small container, which is good for that source alone."""
    done = sardonyx("compile", chains[0], "-o", "light", "--weightless")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "light/sardonyx_weights.bin").stat().st_size < 65536
    assert sardonyx("verify", "light/a_ctx.onnx", "--full").returncode == 0
    run_on(sardonyx, tmp_path, "light/a_ctx.onnx", "found")
    save_chain(chains[0], OWN["c"])
    done = sardonyx("verify", "light/a_ctx.onnx", "--full")
    assert done.returncode == 1
    assert "w4" in done.stdout
    assert "w0" not in done.stdout
    chains[0].unlink()
    done = sardonyx("verify", "light/a_ctx.onnx")
    assert done.returncode == 1
    assert "missing" in done.stdout


def test_verify_tells_what_is_wrong(sardonyx, chains, compiled):
    """Up to date; a source that changed; a container with one bit flipped; no compiled model."""
    done = sardonyx("verify", compiled / "a_ctx.onnx", compiled / "b_ctx.onnx")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("usable") == 2
    report = json.loads(sardonyx("verify", compiled / "a_ctx.onnx", "--json").stdout)
    assert report["ms"] > 0
    save_chain(chains[0], OWN["c"])
    done = sardonyx("verify", compiled / "a_ctx.onnx", compiled / "b_ctx.onnx")
    assert done.returncode == 1
    assert "stale" in done.stdout
    assert "1 of 2" in done.stderr
    container = compiled / "sardonyx_weights.bin"
    data = bytearray(container.read_bytes())
    data[len(data) // 2] ^= 4
    container.write_bytes(data)
    assert "damaged" in sardonyx("verify", compiled / "b_ctx.onnx").stdout
    assert "damaged" in sardonyx("verify", compiled / "b_ctx.onnx", "--full").stdout
    done = sardonyx("verify", chains[1])
    assert done.returncode == 1
    assert "not compiled" in done.stdout


def test_inspect_shows_what_is_compiled(sardonyx, compiled):
    """Graphs, blobs, who shares what, sizes, sources, build and instruction set."""
    text = sardonyx("inspect", compiled / "a_ctx.onnx").stdout
    for part in (
        "EPContext",
        "compiled parts (1)",
        "SardonyxExecutionProvider",
        "shared with b_ctx.onnx",
        "a.onnx",
        "usable",
        "layouts",
    ):
        assert part in text
    report = json.loads(sardonyx("inspect", compiled / "a_ctx.onnx", "--json").stdout)
    (container,) = report["compiled"]["containers"]
    assert container["build"] == report["compiled"]["here"]["build"]
    assert {graph["model"] for graph in container["graphs"]} == {"a_ctx.onnx", "b_ctx.onnx"}
    assert container["graphs"][0]["sources"][0]["state"] == "unchanged"
    done = sardonyx("inspect", compiled / "sardonyx_weights.bin")
    assert done.returncode == 0
    assert "b_ctx.onnx" in done.stdout


def test_the_cache_is_listed_checked_and_cleaned(sardonyx, compiled, tmp_path):
    """gc drops the graph of a model that is gone, and keeps the other one usable."""
    assert "models (2)" in sardonyx("cache", "ls", compiled).stdout
    assert sardonyx("cache", "verify", compiled, "--full").returncode == 0
    assert "all of it is in use" in sardonyx("cache", "gc", compiled).stdout
    (compiled / "b_ctx.onnx").unlink()
    listing = json.loads(sardonyx("cache", "ls", compiled, "--json").stdout)
    assert listing["containers"][0]["unused_graph_count"] == 1
    container = compiled / "sardonyx_weights.bin"
    before = container.stat().st_size
    assert "would drop" in sardonyx("cache", "gc", compiled, "--dry-run").stdout
    assert container.stat().st_size == before
    done = sardonyx("cache", "gc", compiled)
    assert done.returncode == 0, done.stderr
    assert "b_ctx.onnx" in done.stdout
    assert container.stat().st_size <= before - WEIGHT_BYTES
    assert sardonyx("cache", "verify", compiled, "--full").returncode == 0
    run_on(sardonyx, tmp_path, compiled / "a_ctx.onnx", "found")


def test_the_cache_is_not_cleaned_in_doubt(sardonyx, compiled):
    """A model that cannot be read may use anything."""
    (compiled / "b_ctx.onnx").write_text("cut short")
    before = (compiled / "sardonyx_weights.bin").stat().st_size
    done = sardonyx("cache", "gc", compiled)
    assert done.returncode == 1
    assert "b_ctx.onnx" in done.stderr
    assert (compiled / "sardonyx_weights.bin").stat().st_size == before
    assert sardonyx("cache", "verify", compiled).returncode == 1
    assert sardonyx("cache", "ls", compiled / "missing").returncode == 1


def test_interrupted_compilation_leaves_nothing_half_done(tmp_path):
    """After Ctrl-C there is a whole model, or none of its files."""
    weights = [
        numpy_helper.from_array(np.full((1024, 1024), i, np.float32), f"w{i}") for i in range(24)
    ]
    nodes = [
        helper.make_node("MatMul", ["x" if i == 0 else f"m{i - 1}", f"w{i}"], [f"m{i}"])
        for i in range(24)
    ]
    value = helper.make_tensor_value_info
    model = save(
        tmp_path / "big.onnx",
        nodes,
        [value("x", TensorProto.FLOAT, [1, 1024])],
        [value("m23", TensorProto.FLOAT, [1, 1024])],
        weights,
    )
    command = [BUILD / "bin/sardonyx", "compile", str(model), "-o", str(tmp_path / "out")]
    for delay_s in (0.02, 0.05, 0.1):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        out = tmp_path / "out"
        names = {path.name for path in out.iterdir()} if out.exists() else set()
        if process.returncode == 0:
            onnx.load(out / "big_ctx.onnx")
            break
        assert not {name for name in names if name.endswith((".onnx", ".tmp"))}
