"""Files that are cut short while a session has them mapped: errors, and the process lives."""

import os
import subprocess
import sys

import models
import numpy as np
import onnx
import pytest
from models import TensorProto

ROWS = 200_000

SCRIPT = """
import os
import sys
import numpy as np
import sardonyx

cut = sardonyx.InferenceSession("cut.onnx")
whole = sardonyx.InferenceSession("whole.onnx")
feed = {"x": np.full((1, 8), 199_999, np.int64)}
assert np.array_equal(cut.run(None, feed)[0], whole.run(None, feed)[0])
os.truncate("cut.bin", os.path.getsize("cut.bin") // 2)
for turn in range(3):
    try:
        print(cut.run(None, feed)[0].shape)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
assert whole.run(None, feed)[0].shape == (1, 8, 4)
try:
    sardonyx.InferenceSession("cut.onnx")
except Exception as error:
    print("again:", str(error).splitlines()[0])
print("alive")
"""


def save(folder, name):
    """A model that reads rows of a table that lies in a file beside it."""
    table = np.arange(ROWS * 4, dtype=np.float32).reshape(ROWS, 4)
    model = models.model_of(
        [models.node("Gather", ["table", "x"], ["y"])],
        [models.value("x", TensorProto.INT64, [1, 8])],
        [models.value("y", TensorProto.FLOAT, [1, 8, 4])],
        [models.weight("table", table)],
    )
    onnx.save(
        onnx.load_from_string(model),
        folder / f"{name}.onnx",
        save_as_external_data=True,
        location=f"{name}.bin",
    )


def run(folder, **environment):
    """The script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with two models."""
    save(tmp_path, "cut")
    save(tmp_path, "whole")
    return tmp_path


def test_a_run_that_reads_what_a_file_lost_is_an_error_that_names_it(folder):
    done = run(folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line in lines[:3]:
        assert f"'{folder.resolve() / 'cut.bin'}' was cut short while it was mapped" in line
    assert "too few for" in lines[3]
    assert lines[4:] == ["alive"]


def test_the_handler_can_be_switched_off(folder):
    assert run(folder, SARDONYX_NO_SIGBUS="1").returncode < 0
