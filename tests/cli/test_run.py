"""sardonyx run: inputs from files and generated, outputs, errors."""

import json

import numpy as np
import pytest
from conftest import save
from onnx import TensorProto, helper

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
K = np.array([10], np.int64)
Y = X @ np.arange(6, dtype=np.float32).reshape(3, 2) + 10


def save_inputs(folder, form):
    """Write X and K in one of the forms; returns the arguments that name them."""
    if form == "npy":
        np.save(folder / "x.npy", X)
        np.save(folder / "k.npy", K)
        return ["-i", "x=x.npy", "--input", "k=k.npy"]
    if form == "fortran":
        np.save(folder / "x.npy", np.asfortranarray(X))
        np.save(folder / "k.npy", K)
        return ["-i", "x=x.npy", "-i", "k=k.npy"]
    if form == "npz":
        np.savez(folder / "in.npz", x=X, k=K)
        return ["--inputs", "in.npz"]
    if form == "compressed":
        np.savez_compressed(folder / "in.npz", x=X, k=K)
        return ["--inputs", "in.npz"]
    (folder / "in.json").write_text(json.dumps({"x": X.tolist(), "k": K.tolist()}))
    return ["--inputs", "in.json"]


@pytest.mark.parametrize("form", ["npy", "fortran", "npz", "compressed", "json"])
def test_inputs_of_every_form_give_the_right_output(sardonyx, linear, tmp_path, form):
    """The output that is written equals numpy's, and the model is named by its path."""
    done = sardonyx("run", linear, *save_inputs(tmp_path, form), "-o", "out")
    assert done.returncode == 0, done.stderr
    written = np.load(tmp_path / "out/y.npy")
    assert written.dtype == np.float32
    np.testing.assert_array_equal(written, Y)


def test_the_summary_as_json(sardonyx, linear, tmp_path):
    """Inputs with their source, outputs with their numbers, times."""
    done = sardonyx("run", linear, *save_inputs(tmp_path, "npz"), "--json", "--threads", 1)
    report = json.loads(done.stdout)
    assert [row["source"] for row in report["inputs"]] == ["in.npz", "in.npz"]
    (output,) = report["outputs"]
    assert output["name"] == "y"
    assert output["type"] == "tensor(float)"
    assert output["shape"] == [2, 2]
    assert (output["min"], output["max"]) == (Y.min(), Y.max())
    assert output["mean"] == pytest.approx(Y.mean())
    assert output["first"] == Y.ravel().tolist()
    assert report["load_ms"] > 0
    assert report["run_ms"] > 0


def test_generated_inputs_are_repeatable_and_sized(sardonyx, linear):
    """The same seed gives the same numbers; -d sets a dimension by symbol or by place."""
    first = [
        json.loads(sardonyx("run", linear, "--json", *more).stdout)["outputs"][0]
        for more in ([], [], ["--seed", "1"], ["-d", "batch=5"], ["-d", "x:0=4"])
    ]
    assert first[0] == first[1]
    assert first[0]["first"] != first[2]["first"]
    assert [row["shape"] for row in first] == [[1, 2], [1, 2], [1, 2], [5, 2], [4, 2]]


def test_a_failure_on_generated_inputs_names_each_free_dimension_once(sardonyx, tmp_path):
    """By its symbol where that tells something, else by its place."""
    value = helper.make_tensor_value_info
    path = save(
        tmp_path / "window.onnx",
        [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3])],
        [
            value("x", TensorProto.FLOAT, ["batch", 1, "?", None]),
            value("z", TensorProto.FLOAT, ["batch"]),
        ],
        [value("y", TensorProto.FLOAT, None)],
    )
    done = sardonyx("run", path)
    assert done.returncode != 0
    assert done.stderr.rstrip().endswith("says otherwise: batch, x:2, x:3")


def test_text_goes_in_and_out(sardonyx, identity, tmp_path):
    """Strings of .npy files keep their letters."""
    texts = np.array(["a", "größer", "漢字 😀"])
    np.save(tmp_path / "x.npy", texts)
    done = sardonyx("run", identity(TensorProto.STRING), "-i", "x=x.npy", "-o", ".")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").tolist() == texts.tolist()


@pytest.mark.parametrize("name", ["FLOAT16", "DOUBLE", "BOOL", "UINT8", "INT16", "COMPLEX64"])
def test_element_types_go_in_and_out(sardonyx, identity, tmp_path, name):
    """Every type that numpy has is read and written as it is."""
    dtype = {"FLOAT16": "f2", "DOUBLE": "f8", "BOOL": "?", "UINT8": "u1", "INT16": "i2"}
    array = np.array([0, 1, 1, 0, 1]).astype(dtype.get(name, "c8"))
    np.save(tmp_path / "x.npy", array)
    done = sardonyx("run", identity(getattr(TensorProto, name)), "-i", "x=x.npy", "-o", ".")
    assert done.returncode == 0, done.stderr
    written = np.load(tmp_path / "y.npy")
    assert written.dtype == array.dtype
    np.testing.assert_array_equal(written, array)


def test_bfloat16_passes_as_raw_bytes(sardonyx, identity, tmp_path):
    """ml_dtypes saves it as V2."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2, 3e38], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    done = sardonyx("run", identity(TensorProto.BFLOAT16), "-i", "x=x.npy", "-o", ".")
    assert done.returncode == 0, done.stderr
    written = np.load(tmp_path / "y.npy").view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(written, array)
    assert "min -2" in done.stdout


def test_files_are_overwritten_only_by_force(sardonyx, linear, tmp_path):
    """A second run into the same folder fails and leaves the file as it was."""
    (tmp_path / "y.npy").write_text("mine")
    refused = sardonyx("run", linear, "-o", ".")
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert (tmp_path / "y.npy").read_text() == "mine"
    assert sardonyx("run", linear, "-o", ".", "--force").returncode == 0
    assert np.load(tmp_path / "y.npy").shape == (1, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no .npy file"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "cut"),
        (b"\x93NUMPY\x01\x00\x10\x00" + b" " * 16, "'descr'"),
        (None, "do not fit"),
    ],
)
def test_damaged_arrays_are_refused_by_name(sardonyx, linear, tmp_path, content, message):
    """The message says what is wrong and names the file."""
    if content is None:
        np.save(tmp_path / "good.npy", X)
        content = (tmp_path / "good.npy").read_bytes()[:-1]
    (tmp_path / "bad.npy").write_bytes(content)
    done = sardonyx("run", linear, "-i", "x=bad.npy")
    assert done.returncode == 1
    assert message in done.stderr
    assert "bad.npy" in done.stderr


def test_damaged_archives_are_refused(sardonyx, linear, tmp_path):
    """No byte of a .npz file can be changed to make the command crash or read wrong numbers."""
    np.savez_compressed(tmp_path / "good.npz", x=X, k=K)
    good = (tmp_path / "good.npz").read_bytes()
    random = np.random.default_rng(0)
    for _ in range(25):
        bad = bytearray(good)
        bad[random.integers(len(bad))] ^= int(random.integers(1, 256))
        (tmp_path / "bad.npz").write_bytes(bad)
        done = sardonyx("run", linear, "--inputs", "bad.npz", "--json")
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 0:
            source = {row["name"]: row["source"] for row in json.loads(done.stdout)["inputs"]}
            if set(source.values()) == {"bad.npz"}:
                assert json.loads(done.stdout)["outputs"][0]["first"] == Y.ravel().tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"x": [[1, 2, 3], [4]], "k": [1]}', "different lengths"),
        ('{"x": [[1, "a", 3]], "k": [1]}', "tensor(float)"),
        ('{"k": [1.5]}', "tensor(int64)"),
        ("[1]", "expected JSON"),
        ('{"z": 1}', "no input 'z'"),
        ('{"x": [1, 2, 3]}', "rank"),
    ],
)
def test_json_that_does_not_fit_is_refused(sardonyx, linear, tmp_path, text, message):
    """What was expected and found."""
    (tmp_path / "in.json").write_text(text)
    done = sardonyx("run", linear, "--inputs", "in.json")
    assert done.returncode == 1
    assert message in done.stderr


def test_misspelt_inputs_and_dimensions_get_a_suggestion(sardonyx, identity, linear, tmp_path):
    """Names of the model are suggested."""
    assert "did you mean 'batch'" in sardonyx("run", linear, "-d", "bacth=2").stderr
    np.save(tmp_path / "x.npy", X)
    done = sardonyx("run", linear, "-i", "z=x.npy")
    assert done.returncode == 1
    assert "its inputs are: x, k" in done.stderr
