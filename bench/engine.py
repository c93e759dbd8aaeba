#!/usr/bin/env python3
"""One measurement of one engine in a process of its own; called by run.py.

    engine.py ENGINE MODEL FEED.npz THREADS SECONDS

Prints one JSON object: load_ms, first_ms, median_ms, best_ms, cpu_ms (processor time of a run),
runs, and the growth of rss, pss and anonymous memory in MiB over the state after the import.
"""

import importlib
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

RUNS_MIN = 5
RUNS_MAX = 2000


def memory():
    """Memory of this process in MiB."""
    sizes = {}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        parts = line.split()
        if len(parts) >= 2 and parts[1].isdigit():
            sizes[parts[0].rstrip(":")] = int(parts[1]) / 1024
    return {"rss": sizes["Rss"], "pss": sizes["Pss"], "anonymous": sizes["Anonymous"]}


def session_engine(name):
    """Loader for a module with onnxruntime's Python API."""
    module = importlib.import_module(name)

    def load(path, threads):
        """Function from a feed to the outputs."""
        options = module.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda feed: session.run(None, feed)

    return load


def openvino_engine():
    """Loader for OpenVINO in float32."""
    import openvino

    core = openvino.Core()

    def load(path, threads):
        """Function from a feed to the outputs."""
        config = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        request = core.compile_model(path, "CPU", config).create_infer_request()
        return lambda feed: request.infer(feed, share_inputs=True, share_outputs=True)

    return load


def milliseconds(action, *arguments):
    """Result of a call and its time."""
    start = time.perf_counter()
    result = action(*arguments)
    return result, (time.perf_counter() - start) * 1e3


def measure(load, path, feed, threads, seconds):
    """Load, run once, then run for some seconds."""
    before = memory()
    run, load_ms = milliseconds(load, path, threads)
    _, first_ms = milliseconds(run, feed)
    for _ in range(2):
        run(feed)
    times = []
    end = time.perf_counter() + seconds
    cpu = time.process_time()
    while (time.perf_counter() < end or len(times) < RUNS_MIN) and len(times) < RUNS_MAX:
        times.append(milliseconds(run, feed)[1])
    cpu_ms = (time.process_time() - cpu) * 1e3 / len(times)
    after = memory()
    return {
        "load_ms": load_ms,
        "first_ms": first_ms,
        "median_ms": statistics.median(times),
        "best_ms": min(times),
        "cpu_ms": cpu_ms,
        "runs": len(times),
        **{f"{key}_mib": after[key] - before[key] for key in after},
    }


def main():
    """Measure and print."""
    engine, path, feed_path, threads, seconds = sys.argv[1:]
    load = openvino_engine() if engine == "openvino" else session_engine(engine)
    with np.load(feed_path) as stored:
        feed = {name: stored[name] for name in stored.files}
    print(json.dumps(measure(load, path, feed, int(threads), float(seconds))))


if __name__ == "__main__":
    main()
