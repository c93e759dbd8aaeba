#!/usr/bin/env python3
"""Compare the memory of several processes, and of several sessions, that run one model.

    processes.py [--engines NAME,...] [--processes N] [--sessions N] [--layers N] [--width N]

The model is a chain of matrix products and Relus (24 layers of 1536 x 1536 floats: 216 MiB), with
its weights in a file of their own. Every engine runs it in N processes at once; when all have run
it, their proportional set sizes (what a process has, shared pages counted by their share) are
added. Then one process opens N sessions, and what each more of them takes is told. The times are
from the start of a process to its first output, less a median run.

Engines: sardonyx (the plain model), compiled and weightless (as compiled models), onnxruntime,
openvino.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENGINES = ("sardonyx", "compiled", "weightless", "onnxruntime", "openvino")
BATCH = 1


def write_model(folder, layers, width):
    """A chain of matrix products; returns the path of the model."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(3)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        array = (random.standard_normal((width, width)) / width**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], f"product{i}"))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"h{i}"], f"relu{i}"))
        last = f"h{i}"
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [BATCH, width])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [BATCH, width])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "mlp.onnx"
    onnx.save(model, path, save_as_external_data=True, location="mlp.data", size_threshold=0)
    return path


def compile_models(path):
    """The compiled forms of the model by engine."""
    import sardonyx

    compiled = {}
    for engine, entries in (("compiled", {}), ("weightless", {"ep.enable_weightless_mode": "2"})):
        options = sardonyx.SessionOptions()
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        target = path.parent / engine / "mlp_ctx.onnx"
        target.parent.mkdir()
        sardonyx.ModelCompiler(options, str(path)).compile_to_file(str(target))
        compiled[engine] = target
    return compiled


def opener(engine):
    """A function that opens a model and returns one that runs it on an array."""
    if engine == "openvino":
        import openvino

        core = openvino.Core()

        def open_openvino(path):
            compiled = core.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1})
            return lambda x: compiled([x])[0]

        return open_openvino
    import importlib

    module = importlib.import_module("onnxruntime" if engine == "onnxruntime" else "sardonyx")

    def open_session(path):
        options = module.SessionOptions()
        options.intra_op_num_threads = 1
        session = module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})[0]

    return open_session


def memory_mib(field):
    """A sum over the mappings of this process."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def work(engine, path, width, sessions):
    """What a measured process does: runs, waits until all have, tells its memory."""
    import numpy as np

    x = np.ones((BATCH, width), np.float32)
    open_model = opener(engine)
    base = memory_mib("Pss")
    began = time.perf_counter()
    runs = [open_model(path)]
    sums = [float(runs[0](x).sum())]
    first_ms = (time.perf_counter() - began) * 1e3
    times = []
    for _ in range(20):
        began = time.perf_counter()
        runs[0](x)
        times.append((time.perf_counter() - began) * 1e3)
    one = memory_mib("Pss")
    for _ in range(sessions - 1):
        runs.append(open_model(path))
        sums.append(float(runs[-1](x).sum()))
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    print(
        json.dumps(
            {
                "base_mib": base,
                "pss_mib": memory_mib("Pss"),
                "private_mib": memory_mib("Private_Dirty"),
                "more_mib": (memory_mib("Pss") - one) / max(1, sessions - 1),
                "first_ms": first_ms - statistics.median(times),
                "run_ms": statistics.median(times),
                "sum": sums[0],
                "is_same": all(value == sums[0] for value in sums),
            }
        ),
        flush=True,
    )
    sys.stdin.readline()


def measure(engine, path, width, processes, sessions):
    """The results of all processes; every one is alive while any tells its memory."""
    command = [sys.executable, __file__, "--work", engine, str(path), str(width), str(sessions)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    results = []
    try:
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        results = [json.loads(child.stdout.readline()) for child in children]
        for child in children:
            child.communicate("\n", timeout=60)
    except (json.JSONDecodeError, BrokenPipeError):
        return []
    finally:
        for child in children:
            child.kill()
    return results


def main():
    """Measure all engines, one after the other, and print a table."""
    if sys.argv[1:2] == ["--work"]:
        engine, path, width, sessions = sys.argv[2:6]
        work(engine, path, int(width), int(sessions))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1536)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = write_model(Path(name), arguments.layers, arguments.width)
        models = compile_models(path)
        weights_mib = arguments.layers * arguments.width**2 * 4 / 2**20
        print(f"{weights_mib:.0f} MiB of weights; {arguments.processes} processes\n")
        print("| engine | sum of PSS MiB | private MiB each | first - run ms | run ms |", end="")
        print(" MiB for each more session |\n|---|---|---|---|---|---|")
        for engine in arguments.engines.split(","):
            model = models.get(engine, path)
            results = measure(engine, model, arguments.width, arguments.processes, 1)
            alone = measure(engine, model, arguments.width, 1, arguments.sessions)
            if not results or not alone:
                print(f"| {engine} | not measured: a process ended early |")
                continue
            print(
                f"| {engine} | {sum(one['pss_mib'] for one in results):.0f}"
                f" | {statistics.median(one['private_mib'] for one in results):.0f}"
                f" | {statistics.median(one['first_ms'] for one in results):.0f}"
                f" | {alone[0]['run_ms']:.1f} | {alone[0]['more_mib']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
