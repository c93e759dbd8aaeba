"""Programs written for ONNX Runtime, from their packages, unmodified, on the mirror package.

They run in a virtual environment of their own, which has no onnxruntime but ours.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def run(python, code):
    """Lines that the code prints, the first of which says where onnxruntime came from."""
    path = os.pathsep.join([str(BUILD / "python"), str(BUILD / "mirror")])
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
