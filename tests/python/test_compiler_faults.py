"""Compiled models whose writers are ended or run out of room."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
import sardonyx as sx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 256
X = np.random.default_rng(1).standard_normal((2, WIDTH)).astype(np.float32)

COMPILE = """
import sys
import sardonyx as sx
print("begin", flush=True)
sx.ModelCompiler(sx.SessionOptions(), sys.argv[1]).compile_to_file(sys.argv[2])
"""
LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
"""


def write_model(path, seed, layers=8):
    """A chain of products with weights of its own; the first layers are those of all seeds."""
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        source = np.random.default_rng(i if i < layers // 2 else 100 * seed + i)
        array = source.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5
        weights.append(numpy_helper.from_array(array, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", WIDTH])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return str(path)


def compile_model(model, target):
    """Compile into a file."""
    sx.ModelCompiler(sx.SessionOptions(), model).compile_to_file(str(target))


def result(path):
    """The output of a model."""
    return sx.InferenceSession(str(path)).run(None, {"x": X})[0]


def test_a_writer_that_is_killed_harms_no_compiled_model(tmp_path):
    first = write_model(tmp_path / "a.onnx", 1)
    second = write_model(tmp_path / "b.onnx", 2)
    out = tmp_path / "out"
    out.mkdir()
    compile_model(first, out / "a_ctx.onnx")
    expected, other = result(first), result(second)
    delays = random.Random(4)
    killed = 0
    for _ in range(15):
        child = subprocess.Popen(
            [sys.executable, "-c", COMPILE, second, str(out / "b_ctx.onnx")],
            stdout=subprocess.PIPE,
        )
        child.stdout.readline()
        time.sleep(delays.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        np.testing.assert_array_equal(result(out / "a_ctx.onnx"), expected)
        if (out / "b_ctx.onnx").exists():
            np.testing.assert_array_equal(result(out / "b_ctx.onnx"), other)
            os.remove(out / "b_ctx.onnx")
    assert killed > 0
    compile_model(second, out / "b_ctx.onnx")
    np.testing.assert_array_equal(result(out / "a_ctx.onnx"), expected)
    np.testing.assert_array_equal(result(out / "b_ctx.onnx"), other)
    assert not list(out.glob("sardonyx_weights.bin.*.tmp"))


def test_what_memory_held_before_does_not_reach_a_container(tmp_path):
    """Tiles are padded with zeros: equal models make equal files, and nothing leaks into them."""
    chance = np.random.default_rng(6)

    def weight(name, *shape):
        return numpy_helper.from_array(chance.standard_normal(shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "c3"], ["a"], kernel_shape=[3, 3]),
        helper.make_node("Conv", ["a", "c1"], ["b"], kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["b", "shape"], ["c"]),
        helper.make_node("MatMul", ["c", "m"], ["y"]),
    ]
    weights = [
        weight("c3", 7, 5, 3, 3),
        weight("c1", 37, 7, 1, 1),
        weight("m", 37, 53),
        numpy_helper.from_array(np.array([-1, 37]), "shape"),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5, 9, 9]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 53]),
    ]
    graph = helper.make_graph(nodes, "odd", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    made = []
    for pattern in ("1", "170"):
        out = tmp_path / pattern
        out.mkdir()
        subprocess.run(
            [sys.executable, "-c", COMPILE, str(tmp_path / "m.onnx"), str(out / "m_ctx.onnx")],
            env={**os.environ, "MALLOC_PERTURB_": pattern},
            stdout=subprocess.PIPE,
            check=True,
        )
        made.append((out / "sardonyx_weights.bin").read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("has_container", [False, True])
def test_a_full_disk_leaves_everything_as_it_was(has_container, tmp_path):
    small = write_model(tmp_path / "a.onnx", 1, layers=1)
    large = write_model(tmp_path / "b.onnx", 2)
    out = tmp_path / "out"
    out.mkdir()
    if has_container:
        compile_model(small, out / "a_ctx.onnx")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + COMPILE, large, str(out / "b_ctx.onnx")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_two_writers_at_once_both_succeed(tmp_path):
    models = [write_model(tmp_path / f"{i}.onnx", i) for i in range(3)]
    out = tmp_path / "out"
    out.mkdir()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE, model, str(out / f"{i}_ctx.onnx")],
            stdout=subprocess.PIPE,
        )
        for i, model in enumerate(models)
    ]
    assert [child.wait() for child in children] == [0, 0, 0]
    for i, model in enumerate(models):
        np.testing.assert_array_equal(result(out / f"{i}_ctx.onnx"), result(model))
    shared = 4 * WIDTH * WIDTH * 4
    assert (out / "sardonyx_weights.bin").stat().st_size < 4 * shared + 100_000
