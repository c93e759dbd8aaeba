"""Programs written for ONNX Runtime, from their packages, unmodified, on the mirror package.

They run in a virtual environment of their own, which has no onnxruntime but ours.
"""

import ast
import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
REQUIREMENTS = ROOT / "packaging/requirements-dropin.txt"

OCR = """
import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

image = Image.new("RGB", (420, 80), "white")
ImageDraw.Draw(image).text((10, 20), "Sardonyx 2026", fill="black", font=ImageFont.load_default(32))
lines, _ = RapidOCR()(np.array(image))
print(onnxruntime.__file__)
print([text.strip() for _, text, _ in lines])
"""

FILE_TYPE = """
import onnxruntime
from magika import Magika

content = b"#include <stdio.h>\\nint main(void) { puts(\\"hi\\"); return 0; }\\n"
print(onnxruntime.__file__)
print(Magika().identify_bytes(content).output.label)
"""

SPEECH = """
import onnxruntime
import torch
from silero_vad import load_silero_vad

model = load_silero_vad(onnx=True)
time = torch.arange(0, 3 * 16000) / 16000
# A buzz whose loudness and pitch go up and down as those of syllables do, in the middle second.
pitch = 120 + 30 * torch.sin(2 * torch.pi * 3 * time)
phase = 2 * torch.pi * torch.cumsum(pitch / 16000, 0)
voice = sum(torch.sin(k * phase) / k for k in range(1, 25))
loud = (0.5 - 0.5 * torch.cos(2 * torch.pi * 4 * time)) * ((time > 1) & (time < 2))
print(onnxruntime.__file__)
print([round(model(chunk, 16000).item(), 4) for chunk in (0.2 * voice * loud).split(512)[:90]])
"""


TOKENIZER = """
import base64
import numpy as np
import onnxruntime
from onnxruntime_extensions import get_library_path

options = onnxruntime.SessionOptions()
options.register_custom_ops_library(get_library_path())
session = onnxruntime.InferenceSession(base64.b64decode("MODEL"), options)
print(onnxruntime.__file__)
print([ids.tolist() for ids in session.run(None, {"text": np.array(["The quick brown foxes"])})])
"""
EXTENSIONS = "onnxruntime-extensions==0.15.2"


def tokenizer_model():
    """Model of one node, a tokenizer of onnxruntime-extensions, in base64."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "brown", "fox", "##es"]
    text = helper.make_tensor_value_info("text", TensorProto.STRING, [1])
    names = ["ids", "types", "mask"]
    node = helper.make_node(
        "BertTokenizer",
        ["text"],
        names,
        domain="ai.onnx.contrib",
        vocab_file="\n".join(words),
        do_lower_case=1,
        strip_accents=1,
    )
    outputs = [helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in names]
    graph = helper.make_graph([node], "tokenizer", [text], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return base64.b64encode(model.SerializeToString()).decode()


@pytest.fixture(scope="session")
def interpreter():
    """Python of the environment, made at the first use and kept in the build folder."""
    folder = ROOT / "build/dropin"
    python = folder / "bin/python"
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--retries", "5", "--no-deps"]
        subprocess.run([*install, "-r", str(REQUIREMENTS)], check=True)
        stamp.write_text(REQUIREMENTS.read_text())
    return python


def run(python, code, *packages):
    """Last line that the code prints; the one before it says where onnxruntime came from."""
    path = os.pathsep.join([str(BUILD / "python"), str(BUILD / "mirror"), *map(str, packages)])
    done = subprocess.run(
        [str(python), "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.strip().splitlines()
    assert str(BUILD / "mirror") in lines[-2]
    return lines[-1]


def test_rapidocr_reads_a_line(interpreter):
    assert run(interpreter, OCR) == "['Sardonyx 2026']"


def test_magika_tells_a_c_program(interpreter):
    assert run(interpreter, FILE_TYPE) == "c"


def test_silero_vad_says_what_it_says_on_onnx_runtime():
    """Its interface takes torch tensors, so it runs where `make models` put torch."""
    python = ROOT / "build/export-venv/bin/export-python"
    if not python.exists():
        pytest.skip("there is no torch: `make models` makes the environment that has it")
    package = ROOT / "build/dropin-silero"
    if not (package / "silero_vad").exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--retries", "5", "--no-deps"]
        install += ["--target", str(package), "silero-vad==6.2.3", "packaging==26.4"]
        subprocess.run(install, check=True)
    ours = ast.literal_eval(run(python, SPEECH, package))
    reference = subprocess.run(
        [str(python), "-c", SPEECH],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    theirs = ast.literal_eval(reference.stdout.strip().splitlines()[-1])
    assert len(ours) == 90
    assert max(theirs) > 0.1
    assert ours == pytest.approx(theirs, abs=2e-4)


def test_extensions_tokenize_a_sentence(interpreter):
    """What is expected is what it says on ONNX Runtime 1.32.0."""
    package = ROOT / "build/dropin-extensions"
    if not (package / "onnxruntime_extensions").exists():
        install = [str(interpreter), "-m", "pip", "install", "-q", "--no-deps"]
        done = subprocess.run(
            [*install, "--target", str(package), EXTENSIONS], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"{EXTENSIONS} cannot be installed: {done.stderr.decode()[-300:]}")
    printed = run(interpreter, TOKENIZER.replace("MODEL", tokenizer_model()), package)
    assert ast.literal_eval(printed) == [[2, 5, 6, 7, 8, 9, 3], [0] * 7, [1] * 7]
