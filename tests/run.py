#!/usr/bin/env python3
"""Build and run the tests; print what each step's own runner says about itself at the end.

    run.py [--all] [--only STEP,...] [--list]

A step that fails does not keep the others from running. Logs are in build/logs/. The exit status
is 0 if every step passed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build/release"
LOGS = ROOT / "build/logs"
JOBS = str(len(os.sched_getaffinity(0)))

# Lines in which a runner sums up: pytest, ctest, doctest, tidy, the conformance runner.
SUMMARY = re.compile(
    r"\d+ (passed|failed)|^\d+% tests passed|tidy: \d+ errors|Total Test time", re.MULTILINE
)


@dataclass(frozen=True)
class Step:
    """One part of the tests; it runs after the steps named in `needs` have passed."""

    name: str
    commands: tuple
    needs: tuple = ()
    only_all: bool = False


def configure(preset, *options):
    """Command that configures a build folder."""
    return ("cmake", "--preset", preset, *options)


def build(preset):
    """Command that builds a preset."""
    return ("cmake", "--build", "--preset", preset, "-j", JOBS)


def ctest(preset, *options):
    """Command that runs the C++ tests of a preset."""
    return ("ctest", "--preset", preset, "-j", JOBS, *options)


def python(*arguments):
    """Command for the interpreter of the virtual environment."""
    return (sys.executable, *arguments)


PYTEST = ("-m", "pytest", "-q", "-m", "not timed")
STEPS = (
    Step("style", (python("tools/tidy.py"), python("-m", "pytest", "-q", "tests/tools"))),
    Step(
        "build release",
        (configure("release", f"-DPython_EXECUTABLE={sys.executable}"), build("release")),
    ),
    Step("unit tests", (ctest("release"),), ("build release",)),
    Step("python tests", (python(*PYTEST, "tests/python"),), ("build release",)),
    Step("interface tests", (python(*PYTEST, "tests/abi"),), ("build release",)),
    Step("command line tests", (python(*PYTEST, "tests/cli"),), ("build release",)),
    Step("install tests", (python(*PYTEST, "tests/install"),), ("build release",)),
    Step("case tests", (python(*PYTEST, "tests/cases"),), ("build release",)),
    Step("drop-in tests", (python(*PYTEST, "tests/dropin"),), ("build release",)),
    Step("model tests", (python(*PYTEST, "tests/models"),), ("build release",)),
    Step(
        "conformance",
        (python("tests/conformance/run.py", "--native-types", "--jobs", JOBS),),
        ("build release",),
    ),
    Step("build asan", (configure("asan"), build("asan"))),
    Step("sanitized tests", (ctest("asan"),), ("build asan",)),
    Step("sanitized interface", (python("tests/abi/sanitize.py", "address"),), ("build asan",)),
    Step(
        "timed cases",
        (python("-m", "pytest", "-q", "-m", "timed", "tests/cases"),),
        ("build release",),
        only_all=True,
    ),
    Step(
        "all models",
        (python("tests/models/compare.py", "models"),),
        ("build release",),
        only_all=True,
    ),
    Step("build tsan", (configure("tsan"), build("tsan")), only_all=True),
    Step("thread sanitizer", (ctest("tsan"),), ("build tsan",), only_all=True),
    Step(
        "interface on the thread sanitizer",
        (python("tests/abi/sanitize.py", "thread"),),
        ("build tsan",),
        only_all=True,
    ),
)


def environment():
    """Environment of the steps: the package of the build tree is the module under test."""
    path = os.pathsep.join(filter(None, [str(RELEASE / "python"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "RT": "sardonyx"}


def run_command(command, log):
    """Run one command; its output goes to the terminal and to the log. Returns its success."""
    print("$ " + " ".join(command), flush=True)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        log.write(line)
    return process.wait() == 0


def run_step(step):
    """Run the commands of a step until one fails; returns its success and its summary lines."""
    path = LOGS / f"{step.name.replace(' ', '-')}.log"
    with open(path, "w", encoding="utf-8") as log:
        good = all(run_command(command, log) for command in step.commands)
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if SUMMARY.search(line)]
    # doctest prints a line per program; ctest's own two lines sum them up.
    return good, [re.sub(r"^=+ | =+$", "", line) for line in lines][-4:]


def run_steps(steps):
    """Run the steps; returns rows of (name, verdict, seconds, summary lines)."""
    rows = []
    passed = set()
    chosen = {step.name for step in steps}
    for step in steps:
        if missing := [name for name in step.needs if name in chosen and name not in passed]:
            rows.append((step.name, "not run", 0.0, [f"needs '{missing[0]}'"]))
            continue
        print(f"\n--- {step.name}", flush=True)
        start = time.monotonic()
        good, summary = run_step(step)
        rows.append((step.name, "ok" if good else "FAILED", time.monotonic() - start, summary))
        if good:
            passed.add(step.name)
    return rows


def main():
    """Run the chosen steps and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also what needs long or all models")
    parser.add_argument("--only", help="names of steps, with commas between them")
    parser.add_argument("--list", action="store_true", help="print the names of the steps")
    arguments = parser.parse_args()
    steps = [step for step in STEPS if arguments.all or arguments.only or not step.only_all]
    if arguments.only:
        names = arguments.only.split(",")
        if unknown := set(names) - {step.name for step in STEPS}:
            parser.error(f"no such step: {', '.join(sorted(unknown))}")
        steps = [step for step in STEPS if step.name in names]
    if arguments.list:
        print("\n".join(step.name for step in steps))
        return
    LOGS.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    rows = run_steps(steps)
    print("\n--- summary")
    for name, verdict, seconds, summary in rows:
        print(f"{verdict:8} {name} ({seconds:.0f} s)")
        for line in summary:
            print(f"           {line}")
    bad = [name for name, verdict, _, _ in rows if verdict != "ok"]
    print(f"{len(rows) - len(bad)} of {len(rows)} steps passed in {time.monotonic() - start:.0f} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
