"""The session entry sardonyx.cache_dir: compiled models that sessions keep of their own accord."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
import sardonyx as sx
from onnx import TensorProto, helper, numpy_helper

SIZE = 128
X = np.random.default_rng(1).standard_normal((2, SIZE)).astype(np.float32)


def save(path, seed):
    """y = relu(x @ w)."""
    weight = np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Relu", ["m"], ["y"]),
        ],
        "graph",
        [value("x", TensorProto.FLOAT, ["rows", SIZE])],
        [value("y", TensorProto.FLOAT, ["rows", SIZE])],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return str(path)


def run(path, folder=None, **entries):
    """The output of a session with that folder."""
    options = sx.SessionOptions()
    if folder is not None:
        options.add_session_config_entry("sardonyx.cache_dir", str(folder))
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    session = sx.InferenceSession(path, options)
    assert [item.name for item in session.get_inputs()] == ["x"]
    assert session.get_inputs()[0].shape == ["rows", SIZE]
    return session.run(None, {"x": X})[0]


def models_in(folder):
    """Names and times of the compiled models in the folder."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*_ctx.onnx")}


@pytest.fixture
def model(tmp_path):
    """A model, what it gives, and a folder that is not there yet."""
    path = save(tmp_path / "m.onnx", 1)
    return path, run(path), tmp_path / "cache"


def test_the_second_session_finds_what_the_first_compiled(model):
    """The results are equal, and nothing is compiled twice."""
    path, expected, folder = model
    np.testing.assert_array_equal(run(path, folder), expected)
    first = models_in(folder)
    assert len(first) == 1
    assert (folder / "sardonyx_weights.bin").exists()
    np.testing.assert_array_equal(run(path, folder), expected)
    assert models_in(folder) == first


def test_other_bytes_and_other_options_are_other_models(model, tmp_path):
    """The key has both; the path is not in it."""
    path, expected, folder = model
    run(path, folder)
    copy = tmp_path / "copy.onnx"
    copy.write_bytes((tmp_path / "m.onnx").read_bytes())
    np.testing.assert_array_equal(run(str(copy), folder), expected)
    assert len(models_in(folder)) == 1
    run(path, folder, session__graph_optimization_level="disable_all")
    assert len(models_in(folder)) == 2
    save(tmp_path / "m.onnx", 2)
    changed = run(path, folder)
    np.testing.assert_array_equal(changed, run(path))
    assert np.abs(changed - expected).max() > 0.1
    assert len(models_in(folder)) == 3


def test_a_model_from_memory_is_kept_by_its_bytes(model, tmp_path):
    """Equal bytes are one model, others are another."""
    path, expected, folder = model
    content = (tmp_path / "m.onnx").read_bytes()
    for _ in range(2):
        np.testing.assert_array_equal(run(content, folder), expected)
        assert len(models_in(folder)) == 1
    save(tmp_path / "m.onnx", 2)
    changed = run((tmp_path / "m.onnx").read_bytes(), folder)
    np.testing.assert_array_equal(changed, run(path))
    assert len(models_in(folder)) == 2


@pytest.mark.parametrize("damage", ["container", "model", "no container", "cut"])
def test_what_is_damaged_is_made_again(model, damage):
    """The session runs all the same, and the next one finds it whole."""
    path, expected, folder = model
    run(path, folder)
    container = folder / "sardonyx_weights.bin"
    (compiled,) = folder.glob("*_ctx.onnx")
    if damage == "container":
        data = bytearray(container.read_bytes())
        data[len(data) // 2] ^= 1
        container.write_bytes(data)
    elif damage == "model":
        compiled.write_bytes(compiled.read_bytes()[:40])
    elif damage == "no container":
        container.unlink()
    else:
        container.write_bytes(container.read_bytes()[:5000])
    np.testing.assert_array_equal(run(path, folder), expected)
    before = models_in(folder)
    np.testing.assert_array_equal(run(path, folder), expected)
    assert models_in(folder) == before


def test_a_folder_that_cannot_be_made_is_an_error(model, tmp_path):
    """It names the entry."""
    path, _, _ = model
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match=r"sardonyx\.cache_dir"):
        run(path, tmp_path / "file")


def test_without_the_entry_nothing_is_written(model, tmp_path):
    """It is off by default."""
    path, _, _ = model
    before = sorted(item.name for item in tmp_path.iterdir())
    run(path)
    assert sorted(item.name for item in tmp_path.iterdir()) == before


def test_two_processes_may_use_a_folder_at_once(model):
    """Both get the right result."""
    path, expected, folder = model
    code = (
        "import sys; sys.path[:0] = eval(sys.argv[1]); import numpy as np, sardonyx as sx;"
        "o = sx.SessionOptions(); o.add_session_config_entry('sardonyx.cache_dir', sys.argv[3]);"
        "s = sx.InferenceSession(sys.argv[2], o);"
        f"x = np.random.default_rng(1).standard_normal((2, {SIZE})).astype(np.float32);"
        "print(float(s.run(None, {'x': x})[0].sum()))"
    )
    command = [sys.executable, "-c", code, repr(sys.path), path, str(folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert float(output) == pytest.approx(float(expected.sum()))
