#!/usr/bin/env python3
"""Compare Sardonyx, ONNX Runtime and OpenVINO on the test models, side by side.

    run.py [--models NAME,...] [--models-folder FOLDER] [--engines NAME,...] [--threads 1,2]
           [--rounds N] [--seconds S] [--json FILE] [--no-history]

Every measurement runs in a process of its own (engine.py). A round measures all engines one after
the other, in another order each time, so that a slow moment of the machine meets all of them; the
ratios are medians over the rounds of the ratios within a round. "load" is load + first run - median
run, so that work put off to the first run counts. Results go to bench/history.jsonl, one line per
call, and with --json to a file of their own.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
HISTORY = HERE / "history.jsonl"
sys.path.insert(0, str(ROOT / "tests/models"))

from inputs import make_inputs, model_name

BASE = "onnxruntime"
TITLES = {"sardonyx": "Sardonyx", "onnxruntime": "ORT", "openvino": "OpenVINO"}


def find_models(folder, names):
    """Paths of the chosen models by name, small ones first."""
    paths = [*folder.glob("*.onnx"), *folder.glob("*/model.onnx")]
    found = {model_name(path): path for path in sorted(paths, key=lambda p: p.stat().st_size)}
    if missing := set(names) - set(found):
        sys.exit(f"not in {folder}: {', '.join(sorted(missing))}; `make models` makes them")
    return {name: path for name, path in found.items() if not names or name in names}


def measure(engine, path, feed, threads, seconds):
    """One measurement, or the reason why there is none."""
    command = [sys.executable, str(HERE / "engine.py"), engine, str(path), feed, str(threads)]
    try:
        done = subprocess.run(
            [*command, str(seconds)], capture_output=True, text=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": "no result after 600 s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return {"error": lines[-1][:300]}


def warm(path):
    """Bring a model's files into the page cache."""
    files = path.parent.iterdir() if path.name == "model.onnx" else [path]
    for file in files:
        with open(file, "rb") as stream:
            while stream.read(1 << 24):
                pass


def measure_model(path, arguments):
    """Measurements of one model: {engine: {threads: [one per round]}}."""
    results = {engine: {str(t): [] for t in arguments.threads} for engine in arguments.engines}
    failed = set()
    warm(path)
    with tempfile.TemporaryDirectory() as folder:
        import numpy as np

        feed = os.path.join(folder, "feed.npz")
        np.savez(feed, **make_inputs(path))
        for round_number in range(arguments.rounds):
            turn = round_number % len(arguments.engines)
            order = arguments.engines[turn:] + arguments.engines[:turn]
            for threads in arguments.threads:
                for engine in order:
                    if engine in failed:
                        continue
                    one = measure(engine, path, feed, threads, arguments.seconds)
                    results[engine][str(threads)].append(one)
                    if "error" in one:
                        failed.add(engine)
    return results


def summarize(results):
    """Medians over the rounds, with real load, and ratios to ONNX Runtime where it ran."""
    summary = {}
    for engine, by_threads in results.items():
        for threads, rounds in by_threads.items():
            if not rounds or any("error" in one for one in rounds):
                errors = [one["error"] for one in rounds if "error" in one]
                summary.setdefault(engine, {})[threads] = {"error": (errors or ["not run"])[0]}
                continue
            row = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
            row["real_load_ms"] = statistics.median(map(real_load, rounds))
            base = results.get(BASE, {}).get(threads, [])
            if len(base) == len(rounds) and not any("error" in one for one in base):
                pairs = list(zip(base, rounds, strict=True))
                row["speed"] = statistics.median(b["median_ms"] / o["median_ms"] for b, o in pairs)
                row["load"] = statistics.median(real_load(o) / real_load(b) for b, o in pairs)
            summary.setdefault(engine, {})[threads] = row
    return summary


def real_load(one):
    """Load time with the work that was put off to the first run."""
    return max(one["load_ms"] + one["first_ms"] - one["median_ms"], 1e-3)


def geometric_mean(values):
    """Geometric mean, or nothing of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def cell(row, key, digits=4):
    """One number for a table."""
    if row is None or "error" in row or row.get(key) is None:
        return "-"
    return f"{row[key]:.{digits}g}"


def print_table(title, columns, rows):
    """Print a table in Markdown."""
    print(f"\n{title}")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def print_speed(summaries, engines, threads):
    """Median runs and speeds relative to ONNX Runtime, with geometric means."""
    titles = [TITLES.get(engine, engine) for engine in engines]
    others = [engine for engine in engines if engine != BASE]
    for count in map(str, threads):
        columns = ["model", *(f"{title} ms" for title in titles)]
        columns += [f"{TITLES.get(engine, engine)} x" for engine in others]
        rows = []
        for name, summary in summaries.items():
            numbers = [cell(summary[engine][count], "median_ms") for engine in engines]
            speeds = [cell(summary[engine][count], "speed", 3) for engine in others]
            rows.append([name, *numbers, *speeds])
        means = []
        for engine in others:
            speeds = [summary[engine][count].get("speed") for summary in summaries.values()]
            mean = geometric_mean([speed for speed in speeds if speed])
            means.append("-" if mean is None else f"{mean:.3g}")
        rows.append(["geometric mean", *[""] * len(engines), *means])
        print_table(
            f"Median run, {count} thread(s); x = ORT / engine, more is faster", columns, rows
        )


def print_load(summaries, engines, threads):
    """Load and first run."""
    count = str(threads[0])
    columns = ["model"]
    for engine in engines:
        title = TITLES.get(engine, engine)
        columns += [f"{title} load ms", f"{title} first ms", f"{title} real ms"]
    others = [engine for engine in engines if engine != BASE]
    columns += [f"{TITLES.get(engine, engine)} / ORT" for engine in others]
    rows = []
    for name, summary in summaries.items():
        row = [name]
        for engine in engines:
            keys = ("load_ms", "first_ms", "real_load_ms")
            row += [cell(summary[engine][count], key) for key in keys]
        rows.append(row + [cell(summary[engine][count], "load", 3) for engine in others])
    title = f"Load, {count} thread(s); real = load + first run - median run"
    print_table(title, columns, rows)


def print_memory(summaries, engines, threads):
    """Growth of memory by load and runs."""
    count = str(threads[0])
    columns = ["model"]
    for engine in engines:
        columns += [f"{TITLES.get(engine, engine)} {kind}" for kind in ("RSS", "PSS", "anonymous")]
    rows = []
    for name, summary in summaries.items():
        row = [name]
        for engine in engines:
            keys = ("rss_mib", "pss_mib", "anonymous_mib")
            row += [cell(summary[engine][count], key) for key in keys]
        rows.append(row)
    print_table(f"Memory growth in MiB after the runs, {count} thread(s)", columns, rows)


def processor():
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit():
    """Commit of the tree, with + if it has changes."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def parse_arguments():
    """Command line of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", default="", help="names, with commas between them; default: all"
    )
    parser.add_argument("--models-folder", type=Path, default=ROOT / "models")
    parser.add_argument("--engines", default="sardonyx,onnxruntime,openvino")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of runs in a measurement")
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument("--no-history", action="store_true")
    arguments = parser.parse_args()
    arguments.engines = arguments.engines.split(",")
    arguments.threads = [int(count) for count in arguments.threads.split(",")]
    return arguments


def main():
    """Measure, print and keep."""
    arguments = parse_arguments()
    names = [name for name in arguments.models.split(",") if name]
    models = find_models(arguments.models_folder, names)
    if not models:
        sys.exit(f"no models in {arguments.models_folder}; `make models` makes them")
    measured, summaries = {}, {}
    for number, (name, path) in enumerate(models.items(), 1):
        measured[name] = measure_model(path, arguments)
        summaries[name] = summarize(measured[name])
        line = [f"{number}/{len(models)} {name}:"]
        for engine in arguments.engines:
            row = summaries[name][engine][str(arguments.threads[0])]
            line.append(f"{engine} " + row.get("error", f"{row.get('median_ms', 0):.4g} ms"))
        print("  ".join(line), file=sys.stderr, flush=True)
    print_speed(summaries, arguments.engines, arguments.threads)
    print_load(summaries, arguments.engines, arguments.threads)
    print_memory(summaries, arguments.engines, arguments.threads)
    record = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "processor": processor(),
        "rounds": arguments.rounds,
        "models": summaries,
    }
    if arguments.json:
        whole = {**record, "measurements": measured}
        arguments.json.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    if not arguments.no_history:
        with open(HISTORY, "a", encoding="utf-8") as file:
            file.write(json.dumps(rounded(record)) + "\n")


def rounded(value):
    """The same with floats of five digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
