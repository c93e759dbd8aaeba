#!/usr/bin/env python3
"""Compare how long a fresh process takes to its first output: compiled model against ONNX Runtime.

    first_output.py PROGRAM [--models-folder models] [--models NAME,...] [--least-mb 50]
                    [--threads 1] [--rounds 3]

PROGRAM is bench_first_output (`ninja bench_first_output`). Every model (NAME.onnx with
NAME.feed.npz) above a size is compiled once; then processes of both libraries run it in turns, with
the files in the page cache: Sardonyx the compiled model, ONNX Runtime the plain one. Per model: the
medians of the time from the start of the process to its first output, less a median run. The plain
model with Sardonyx stands beside it. The last columns are processor time, for busy machines.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import sardonyx

RUNS = 5


def write_feed(path, source):
    """The arrays of a feed as the program reads them."""

    def number(value):
        return int(value).to_bytes(8, "little", signed=True)

    with np.load(source) as feed, open(path, "wb") as file:
        file.write(number(len(feed.files)))
        for name in feed.files:
            array = np.ascontiguousarray(feed[name]).reshape(feed[name].shape)
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            text = name.encode()
            file.write(number(len(text)) + text + number(kind) + number(array.ndim))
            file.writelines(number(dim) for dim in array.shape)
            file.write(number(array.nbytes) + array.tobytes())


def library_of(module):
    """The shared library behind a Python module."""
    folder = Path(module.__file__).parent
    found = sorted(folder.rglob("libonnxruntime.so.1*"))
    if not found:
        found = sorted(folder.parent.parent.rglob("lib/libonnxruntime.so.1*"))
    if not found:
        sys.exit(f"no libonnxruntime.so.1 near {folder}")
    return found[0]


def measure(program, library, model, feed, threads):
    """Milliseconds to the first output less those of a run; and the same in processor time."""
    command = [program, library, model, feed, threads, RUNS, time.monotonic_ns()]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False)  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    first, run, first_cpu, run_cpu = map(float, done.stdout.split())
    return first - run, first_cpu - run_cpu


def main():
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--models-folder", type=Path, default=Path("models"))
    parser.add_argument("--models", default="")
    parser.add_argument("--least-mb", type=float, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ours, theirs = library_of(sardonyx), library_of(onnxruntime)
    names = [name for name in arguments.models.split(",") if name] or sorted(
        path.stem
        for path in arguments.models_folder.glob("*.onnx")
        if path.stat().st_size > arguments.least_mb * 1e6
    )
    print("| model | compiled ms | plain ms | ONNX Runtime ms | compiled / ONNX Runtime |", end="")
    print(" CPU ms | ONNX Runtime | ratio |\n|---|---|---|---|---|---|---|---|")
    for name in names:
        source = (arguments.models_folder / f"{name}.onnx").resolve()
        with tempfile.TemporaryDirectory(dir=arguments.models_folder) as folder:
            compiled, feed = Path(folder) / "m_ctx.onnx", Path(folder) / "feed"
            write_feed(feed, source.with_name(f"{name}.feed.npz"))
            sardonyx.ModelCompiler(sardonyx.SessionOptions(), source).compile_to_file(compiled)
            ways = ((ours, compiled), (ours, source), (theirs, source))
            rounds = [
                [measure(arguments.program, *way, feed, arguments.threads) for way in ways]
                for _ in range(arguments.rounds + 1)
            ][1:]
        wall, cpu = (
            [statistics.median(one[way][kind] for one in rounds) for way in range(len(ways))]
            for kind in range(2)
        )
        print(
            f"| {name} | {wall[0]:.1f} | {wall[1]:.1f} | {wall[2]:.1f} | {wall[0] / wall[2]:.3f} |"
            f" {cpu[0]:.1f} | {cpu[2]:.1f} | {cpu[0] / cpu[2]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
