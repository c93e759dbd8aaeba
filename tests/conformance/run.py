#!/usr/bin/env python3
"""Run the backend tests of the onnx package against a module with onnxruntime's Python API.

    RT=sardonyx run.py [--native-types] [--kinds node,simple,...] [--filter REGEX] [--jobs N]
                       [--timeout SECONDS] [--lenient] [--list] [--report FILE] [--write]

The environment variable RT names the module (default: sardonyx). Tests run in worker processes: a
crash or a test over the time limit fails that test only. expected_failures.json names the tests
that may fail and why. The exit status is 0 if no other test failed, none crashed and, in a run of
all tests, at least PASSES_MIN passed. The last line printed is "N passed, N failed, N skipped".

With --native-types arrays of bfloat16, float8, int4, ... go to and come from ``run`` as ml_dtypes
arrays; without it they go by OrtValue and IO binding, as onnxruntime's Python module needs it, and
tests with packed types as graph inputs are skipped.

--write makes docs/conformance.md of the results.
"""

import argparse
import collections
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/conformance.md"
EXPECTED = HERE / "expected_failures.json"

PASSES_MIN = 1980
KINDS = {
    "node": "NodeModel",
    "simple": "SimpleModel",
    "pytorch-converted": "PyTorchConvertedModel",
    "pytorch-operator": "PyTorchOperatorModel",
    "light": "RealModel",
}
CRASH = "CRASH"
TIMEOUT = "TIMEOUT"


class Worker:
    """A worker process that is started again after a crash."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.start()

    def start(self):
        """Start the process and read its list of tests."""
        command = [sys.executable, str(HERE / "worker.py")]
        for flag in ("lenient", "native_types"):
            if getattr(self.arguments, flag):
                command.append("--" + flag.replace("_", "-"))
        errors = None if self.arguments.verbose else subprocess.DEVNULL
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            bufsize=1,
        )
        listing = self.process.stdout.readline()
        if not listing:
            sys.exit(f"the module {runtime_name()} cannot be tested; --verbose shows why")
        self.names = json.loads(listing)

    def run(self, name):
        """Result of one test as a dictionary."""
        timer = threading.Timer(self.arguments.timeout, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        expired = not timer.is_alive()
        timer.cancel()
        if answer:
            return json.loads(answer)
        status = self.process.wait()
        message = TIMEOUT if expired else f"{CRASH}, exit status {status}"
        seconds = self.arguments.timeout if expired else 0.0
        self.start()
        return {"name": name, "result": "fail", "message": message, "seconds": seconds}

    def stop(self):
        """Let the process end."""
        self.process.stdin.close()
        self.process.wait()


def runtime_name():
    """Name of the module under test."""
    return os.environ.get("RT", "sardonyx")


def short_name(name):
    """Name of a test without kind and device, as in expected_failures.json."""
    return name.split("::")[1].removesuffix("_cpu")


def choose(names, arguments):
    """Names of the tests that the command line asks for."""
    kinds = {KINDS[kind] for kind in arguments.kinds.split(",")}
    return [
        name
        for name in names
        if name.split("::")[0] in kinds
        and name.endswith("_cpu")
        and re.search(arguments.filter, name)
    ]


def run_all(first, names, arguments):
    """Results of all tests by name."""
    waiting = queue.Queue()
    for name in names:
        waiting.put(name)
    results = {}

    def serve(process):
        """Run tests from the queue until it is empty."""
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                process.stop()
                return
            results[name] = process.run(name)

    workers = [first, *(Worker(arguments) for _ in range(arguments.jobs - 1))]
    threads = [threading.Thread(target=serve, args=(process,)) for process in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def one_line(message, width=200):
    """A message without line breaks, cut to a width."""
    return " ".join(message.split())[:width]


def judge(results, complete):
    """Complaints about the results; none means that the run is good."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    complaints = []
    for name, result in sorted(results.items()):
        message = one_line(result["message"])
        known = short_name(name) in expected
        if result["result"] == "fail" and message.startswith((CRASH, TIMEOUT)):
            complaints.append(f"crash or hang: {name} {message}")
        elif result["result"] == "fail" and not known:
            complaints.append(f"new failure: {name} {message}")
        elif result["result"] == "pass" and known:
            print(f"passes now, take it out of {EXPECTED.name}: {name}")
    passed = sum(result["result"] == "pass" for result in results.values())
    if complete and passed < PASSES_MIN:
        complaints.append(f"{passed} tests passed; at least {PASSES_MIN} are wanted")
    return complaints


def count_by_kind(results):
    """Rows (kind, passed, failed, skipped)."""
    counts = collections.Counter(
        (name.split("::")[0], result["result"]) for name, result in results.items()
    )
    kinds = sorted({kind for kind, _ in counts})
    return [(kind, *(counts[kind, key] for key in ("pass", "fail", "skip"))) for kind in kinds]


def write_page(results, arguments):
    """Write docs/conformance.md."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    totals = collections.Counter(result["result"] for result in results.values())
    flags = " --native-types" if arguments.native_types else ""
    lines = [
        "# Conformance",
        "",
        f"The {len(results)} tests of the `onnx` package {metadata.version('onnx')}, run by",
        f"`tests/conformance/run.py{flags} --write`, which writes this page:",
        f"**{totals['pass']} pass, {totals['fail']} fail, {totals['skip']} are skipped.**",
        "",
        "| kind | passed | failed | skipped |",
        "|---|---|---|---|",
        *(f"| {kind} | {a} | {b} | {c} |" for kind, a, b, c in count_by_kind(results)),
        "",
        "## Why the rest fails",
        "",
    ]
    reasons = collections.defaultdict(list)
    for name, result in sorted(results.items()):
        if result["result"] != "pass":
            reason = expected.get(short_name(name)) or one_line(result["message"])
            reasons[reason].append(short_name(name))
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        lines += [f"- {reason} ({len(names)}): " + ", ".join(f"`{name}`" for name in names)]
    if not reasons:
        lines.append("Nothing fails.")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_results(results, arguments):
    """Print the numbers, and with --list every test that did not pass."""
    if arguments.list:
        for name, result in sorted(results.items()):
            if result["result"] != "pass":
                print(f"{result['result']} {name} {one_line(result['message'])}")
    for kind, passed, failed, skipped in count_by_kind(results):
        print(f"{kind}: {passed} passed, {failed} failed, {skipped} skipped")


def parse_arguments():
    """Command line of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--filter", default="", help="regular expression on Kind::test_name")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--timeout", type=float, default=60, help="seconds per test")
    parser.add_argument("--lenient", action="store_true", help="rtol 1e-3, atol 1e-5 at least")
    parser.add_argument("--native-types", action="store_true", help="use ml_dtypes arrays")
    parser.add_argument("--list", action="store_true", help="print every test that did not pass")
    parser.add_argument("--report", help="write all results to this JSON file")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--verbose", action="store_true", help="show what the workers print")
    return parser.parse_args()


def main():
    """Run the chosen tests and report."""
    arguments = parse_arguments()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("ONNX_HOME", scratch)
        first = Worker(arguments)
        names = choose(first.names, arguments)
        results = run_all(first, names, arguments)
    complete = not arguments.filter and set(arguments.kinds.split(",")) == set(KINDS)
    if arguments.report:
        ordered = sorted(results.values(), key=lambda result: result["name"])
        report = {"runtime": runtime_name(), "results": ordered}
        Path(arguments.report).write_text(json.dumps(report, indent=0), encoding="utf-8")
    if arguments.write and complete:
        write_page(results, arguments)
    print_results(results, arguments)
    complaints = judge(results, complete)
    for complaint in complaints:
        print(complaint)
    totals = collections.Counter(result["result"] for result in results.values())
    print(f"conformance of {runtime_name()} in {time.monotonic() - start:.0f} s:")
    print(f"{totals['pass']} passed, {totals['fail']} failed, {totals['skip']} skipped")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
