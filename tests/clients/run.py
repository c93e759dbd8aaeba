"""Build real programs of other projects and run each on ONNX Runtime and on Sardonyx.

    run.py [--only NAME,...] [--list] [--build FOLDER] [--models FOLDER] [--cache FOLDER] [-v]

A client prints lines "what = words". What it prints on ONNX Runtime has to be what it prints on
Sardonyx: numbers to within 1e-4, all else word for word. Packages and what is built of them stay in
the cache folder. A client whose toolchain or package is missing is listed as not run, and says why.
The exit status is 0 if no client failed.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import models
from clients import CLIENTS
from work import NotRun, Work

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 900
BOUND = 1e-4
BRACKETS = re.compile(r"[\[\](){},]")
SIDES = ("reference", "sardonyx")


def run_side(command):
    """Lines of a client by their names; an error as the line "failure"."""
    try:
        done = subprocess.run(
            command.argv,
            env=command.env,
            cwd=command.cwd,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"no end after {TIMEOUT_S} s"
    lines = {}
    for line in command.read(done.stdout).splitlines():
        name, equals, words = line.partition(" = ")
        if equals:
            lines[name] = BRACKETS.sub(" ", words).split()
    if done.returncode != 0 and not command.may_fail:
        tail = (done.stdout[-600:] + done.stderr[-1200:]).strip()
        return lines, f"ended with {done.returncode}: {tail}"
    return lines, None if lines else f"printed nothing: {done.stderr[-600:]}"


def same_word(ours, theirs):
    """Whether two words are equal, or numbers within the bound."""
    if ours == theirs:
        return True
    try:
        return abs(float(ours) - float(theirs)) <= BOUND * (1 + abs(float(theirs)))
    except ValueError:
        return False


def differences(ours, theirs):
    """What differs, a line each."""
    found = [f"{name}: missing" for name in theirs if name not in ours]
    found += [f"{name}: only on Sardonyx" for name in ours if name not in theirs]
    for name in theirs:
        pair = ours.get(name, theirs[name]), theirs[name]
        if len(pair[0]) == len(pair[1]) and all(map(same_word, *pair)):
            continue
        found.append(f"{name}: {' '.join(pair[0])[:300]}, expected {' '.join(pair[1])[:300]}")
    return found


def judge(client, work):
    """Verdict of a client and the lines that explain it."""
    try:
        commands = {side: client.prepare(work)(side) for side in SIDES}
    except NotRun as reason:
        return "not run", [str(reason)]
    results = {}
    for side in SIDES:
        results[side], failure = run_side(commands[side])
        if failure is not None and side == "reference":
            return "not run", [f"on ONNX Runtime it {failure}"]
        if failure is not None:
            theirs = results["reference"]
            return "failed", [*differences(results[side], theirs)[:5], f"it {failure}"]
    theirs = client.expected(results["reference"])
    ours = {name: words for name, words in results["sardonyx"].items() if name in theirs}
    found = differences(ours if client.is_suite else results["sardonyx"], theirs)
    if found:
        return "failed", found
    return "passed", [f"{len(theirs)} checks equal"]


def main():
    """Run the chosen clients and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="build folder")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="larger models")
    default = Path.home() / ".cache/sardonyx/clients"
    parser.add_argument("--cache", type=Path, default=default, help="where packages go")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all differences")
    arguments = parser.parse_args()
    if arguments.list:
        for name, client in CLIENTS.items():
            print(f"{name:14} {client.title}")
        return 0
    names = arguments.only.split(",") if arguments.only else list(CLIENTS)
    if unknown := set(names) - set(CLIENTS):
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    work = Work(arguments.cache, arguments.build.resolve())
    models.write_all(work.models, arguments.models)
    verdicts = []
    for name in names:
        verdict, lines = judge(CLIENTS[name], work)
        verdicts.append(verdict)
        if verdict == "failed":
            print(f"{name:14} failed: {CLIENTS[name].title}", flush=True)
            for line in lines if arguments.verbose else lines[:12]:
                print(f"{'':14}   {line}", flush=True)
        else:
            print(f"{name:14} {verdict}: {lines[0]}", flush=True)
    print(", ".join(f"{verdicts.count(v)} {v}" for v in ("passed", "failed", "not run")))
    return 1 if "failed" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
