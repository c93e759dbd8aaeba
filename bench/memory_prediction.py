#!/usr/bin/env python3
"""Compare the memory that a plan predicts with what the operating system shows after a run.

    memory_prediction.py [--models-folder FOLDER] [--models NAME,...] [--threads N]

Each model (NAME.onnx, or NAME/*.onnx, with NAME.feed.npz) is planned in one process, with the
shapes of its feed as the largest ones, and loaded and run in another. What grows there is counted
after loading and after the run, the larger: anonymous memory (packed weights, arenas, programs) and
the pages of the model's files that are mapped in. The prediction must not be under that, and at
most 5 % and 4 MiB over it; planning a model of more than 1 GiB must touch less than 32 MiB.
Ends with status 1 when that does not hold.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

MODELS = (
    "resnet50,mobilenet_v3_large,unet,yolov8n_like,resnet50_int8_qdq,bert_base,vit_b_16,"
    "whisper_tiny_encoder,llama_small,llama_small_q4,distilgpt2_like,llama_310m"
)
MIB = 2**20
OVER_SHARE = 0.05
OVER_BYTES = 4 * MIB
LARGE_BYTES = 2**30
TOUCHED_BYTES = 32 * MIB


def model_path(folder, name):
    """The model's file."""
    path = folder / f"{name}.onnx"
    return path if path.exists() else next((folder / name).glob("*.onnx"))


def memory_of_process(folder):
    """Anonymous bytes, and bytes of files below a folder that are mapped in."""
    anonymous = mapped = 0
    is_model = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if words[0] == "Anonymous:":
            anonymous += int(words[1]) * 1024
        elif words[0] == "Rss:" and is_model:
            mapped += int(words[1]) * 1024
        elif "-" in words[0]:
            is_model = words[-1].startswith(str(folder.resolve()))
    return anonymous, mapped


def resident_bytes():
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def options_of(threads):
    """Options of sessions and plans."""
    import sardonyx

    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    return options


def plan(path, feed, threads):
    """What a plan predicts, and what planning takes."""
    import sardonyx

    options = options_of(threads)
    shapes = ";".join(f"{key}:[{','.join(map(str, feed[key].shape))}]" for key in feed)
    options.add_session_config_entry("session.max_shape_override", shapes)
    options.add_session_config_entry("session.resource_partitioning_settings", "cpu(64TiB)")
    base = resident_bytes()
    times = []
    touched = None
    for _ in range(5):
        began = time.perf_counter()
        made = sardonyx.plan(str(path), options)
        times.append(time.perf_counter() - began)
        touched = resident_bytes() - base if touched is None else touched
    need = sum(device["need_bytes"] for device in made["devices"])
    return {"need": need, "ms": min(times) * 1e3, "touched": touched}


def warm_up():
    """Loads what the library needs for any model."""
    import numpy as np
    import sardonyx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = sardonyx.InferenceSession(model.SerializeToString())
    session.run(None, {"x": np.ones((4, 4), np.float32)})


def run(folder, path, feed, threads):
    """What grows when the model is loaded and run."""
    import sardonyx

    warm_up()
    memory_of_process(folder)  # what reading takes is there before it is counted
    base = sum(memory_of_process(folder))
    session = sardonyx.InferenceSession(str(path), options_of(threads))
    loaded = sum(memory_of_process(folder)) - base
    results = session.run(None, feed)
    after = sum(memory_of_process(folder)) - base
    del results
    return {"loaded": loaded, "grown": max(loaded, after)}


def work(step, folder, name, threads):
    """What a measured process does."""
    import numpy as np

    path = model_path(folder, name)
    feed = dict(np.load(folder / f"{name}.feed.npz"))
    told = plan(path, feed, threads) if step == "plan" else run(folder, path, feed, threads)
    print(json.dumps(told | {"file": path.stat().st_size}))


def measure(step, folder, name, threads):
    """The answer of a process of its own."""
    command = [sys.executable, __file__, "--work", step, "--models-folder", str(folder)]
    command += ["--models", name, "--threads", str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def compare(folder, name, threads):
    """One row; whether the prediction holds."""
    planned = measure("plan", folder, name, threads)
    ran = measure("run", folder, name, threads)
    over = planned["need"] - ran["grown"]
    holds = 0 <= over <= OVER_SHARE * ran["grown"] + OVER_BYTES
    if planned["file"] > LARGE_BYTES:
        holds = holds and planned["touched"] < TOUCHED_BYTES
    print(
        f"| {name} | {planned['need'] / MIB:.1f} | {ran['grown'] / MIB:.1f} | "
        f"{over / MIB:+.1f} ({over / ran['grown']:+.1%}) | {planned['ms']:.0f} | "
        f"{planned['touched'] / MIB:.1f} | {'yes' if holds else 'NO'} |",
        flush=True,
    )
    return holds


def main():
    """Compares all models, or does the work of one process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models-folder", type=Path, default=Path("models"))
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", choices=("plan", "run"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.models.split(",")
    if given.work:
        work(given.work, given.models_folder, names[0], given.threads)
        return 0
    print("| model | predicted MiB | grown MiB | over | plan ms | touched MiB | holds |")
    print("|---|---|---|---|---|---|---|")
    held = [compare(given.models_folder, name, given.threads) for name in names]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
