#!/usr/bin/env python3
"""Run placement rules on ONNX Runtime and on Sardonyx, side by side, and print what differs.

    compare_with_onnxruntime.py [--all]     --all prints the rows that agree as well

Each runtime has a process of its own in which Sardonyx's plugin library gives virtual devices. A
row is a configuration: is it accepted, with which words is it refused, is anything logged, and
where does each node run? Differences that docs/placement.md lists say so; the exit status is 1 if
there is another one.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build/release"))
LIBRARY = BUILD / "lib/libsardonyx_ep.so"
DEVICES = "gpu:memory=16777216,vendor=0x10de,name=NVIDIA; npu:memory=16777216"
EP_NAME = "SardonyxExecutionProvider"

NAMES = "session.name_based_layer_assignment"
ANNOTATIONS = "session.layer_assignment_settings"

RULE_LINE = re.compile(r"layer|placement|rule", re.IGNORECASE)

# What differs, and is meant to (docs/placement.md).
MISSING = "a missing device is a WARNING that names the devices there are"
TOLD = "accepted with a warning"
PROCESSOR = "cpu(...) means the CPU provider beside another one on the processor"
CUDA = "cuda without a provider of that name means gpu:nvidia"
CUT = "ONNX Runtime has no answer to a plugin's nodes around the processor's"

# Of every node of the model: name and annotation.
NODES = [
    ("/model/embed/Gather", None),
    ("/model/layers.1/q/Abs", "Prefix1Suffix"),
    ("/model/layers.1/mlp/Neg", "PreSuffix"),
    ("/model/layers.10/q/Abs", "AB"),
    ("/model/layers.10/mlp/Neg", "ABC"),
    ("/model/norm/Abs", "A"),
    ("/lm_head/Neg", "Other"),
]
OPERATORS = ["Abs", "Neg", "Floor", "Ceil", "Round", "Sign", "Exp"]

GRAMMAR = [
    "cpu(layers.1/)",
    "cpu()",
    "cpu( )",
    "cpu(=)",
    "cpu(= )",
    ";;",
    " ",
    "",
    "cpu (a);;",
    "cpu(a)(b)",
    "cpu(a) junk",
    "cpu(a(b),c)",
    "cpu((a)",
    "cpu(a))",
    "cpu(a),gpu(b)",
    "cpu",
    " cpu",
    "cpu(a",
    "cpu(a;b)",
    "cpu)a(",
    "(a)",
    "cpu(a);gpu",
    "cpu(a);gpu(a)",
    "cpu(a,a)",
    "  cpu(a) ;  gpu( a ) ",
    "cpu(=a,=a)",
    "cpu(=a);gpu( = a )",
    "Device1Annotation1",
    "Device1(Annotation1",
    "Device1Annotation1)",
    "Device1)Annotation1(",
    "EP1(=Ann1); EP2(=Ann1)",
]
ONLY_NAMES = [
    "cpu(=layers.1/)",
    "cpu(= layers.1/ )",
    "cpu(a,=a)",
    "cpu(==a)",
]
DESIGNATORS = [
    "cpu",
    "gpu",
    "GPU",
    "gpu:0",
    "gpu:1",
    "gpu:nvidia",
    "gpu:amd",
    "cuda",
    "dml",
    "npu",
    "fpga",
    "accelerator",
    "foo",
    "CPUExecutionProvider",
    "cpuexecutionprovider",
    EP_NAME,
    EP_NAME + ":0",
]
MATCHING = {
    NAMES: [
        "gpu(layers.1)",
        "gpu(layers.1/)",
        "gpu(layers.1); cpu(layers.10)",
        "cpu(layers.1); gpu(layers.10)",
        "gpu(layers.); npu(layers.1/)",
        "cpu(mlp); gpu(q/A)",
        "gpu(q/A, embed); cpu(mlp)",
        "gpu(/model/); cpu(/model/layers.10)",
        "cpu(Layers.1)",
        "cpu(layers.[0-9]/)",
        "cpu(/)",
        "gpu(/)",
    ],
    ANNOTATIONS: [
        "gpu(Prefix1, Pre)",
        "gpu(Pre); cpu(Prefix1)",
        "cpu(Prefix1); gpu(Pre)",
        "gpu(A, =AB)",
        "cpu(=AB); gpu(A)",
        "cpu(A); gpu(AB)",
        "gpu(AB); cpu(A)",
        "gpu(=A)",
        "cpu(=Other, Prefix); gpu(A)",
        "gpu(=Nothing)",
        "cpu(layers.1/)",
    ],
}
# The processor gets nodes in the middle of those of the other device.
CUTS = ["gpu(layers.1/); cpu(layers.10)", "gpu(/model/); cpu(/model/layers.10)"]
BOTH = [("cpu(a)", "cpu(b)"), ("cpu", "cpu"), (" ", " "), (" ", "cpu(a)"), ("cpu(/)", "")]


def rows():
    """Yield (group, entries, device that the session has beside the CPU provider)."""
    for key in (NAMES, ANNOTATIONS):
        for text in GRAMMAR:
            yield "grammar", {key: text}, "GPU"
    for text in ONLY_NAMES:
        yield "grammar", {NAMES: text}, "GPU"
    for names, annotations in BOTH:
        yield "both options", {NAMES: names, ANNOTATIONS: annotations}, "GPU"
    for device in ("GPU", "NPU", "CPU", None):
        for designator in DESIGNATORS:
            yield "designators", {NAMES: f"{designator}(layers.1/)"}, device
    for key, texts in MATCHING.items():
        for text in texts:
            yield "matching", {key: text}, "GPU"
    for text in CUTS:
        yield "chain", {NAMES: text}, "GPU"


def save_model(path, is_chain):
    """Write the nodes one after the other, or all of them side by side."""
    nodes, value = [], "x"
    for i, (name, annotation) in enumerate(NODES):
        node = helper.make_node(OPERATORS[i], [value], [f"v{i}"], name)
        if annotation is not None:
            entry = node.metadata_props.add()
            entry.key, entry.value = "layer_ann", annotation
        nodes.append(node)
        value = f"v{i}" if is_chain else "x"
    outputs = [value] if is_chain else [f"v{i}" for i in range(len(NODES))]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)


class Captured:
    """What the process writes to its standard error in a block."""

    def __enter__(self):
        """Send file descriptor 2 to a file."""
        self.file = tempfile.TemporaryFile()
        self.kept = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        self.text = ""
        return self

    def __exit__(self, *_):
        """Bring it back and read the file."""
        os.dup2(self.kept, 2)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


def run_row(ort, model, entries, device):
    """What a runtime makes of a configuration."""
    options = ort.SessionOptions()
    options.log_severity_level = 2
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    if device is not None:
        chosen = [
            d for d in ort.get_ep_devices() if d.ep_name == EP_NAME and d.device.type.name == device
        ]
        options.add_provider_for_devices(chosen[:1], {})
    result = {"error": "", "placed": {}}
    with Captured() as captured:
        try:
            session = ort.InferenceSession(model, sess_options=options)
            for part in session.get_provider_graph_assignment_info():
                for node in part.get_nodes():
                    result["placed"][node.name] = part.ep_name
        except Exception as error:  # noqa: BLE001
            # Sardonyx says in further lines where it happened.
            text = str(error).split("\n  while ")[0]
            result["error"] = re.sub(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", r"\1: ", text)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", captured.text).splitlines()
    result["log"] = [line for line in lines if RULE_LINE.search(line)]
    return result


def serve(module, folder):
    """Run the rows of standard input in this process; print one line of JSON for each."""
    ort = importlib.import_module(module)
    ort.register_execution_provider_library("rules", str(LIBRARY))
    for entries, device, is_chain in json.load(sys.stdin):
        model = str(Path(folder) / ("chain.onnx" if is_chain else "nodes.onnx"))
        print(json.dumps(run_row(ort, model, entries, device)), flush=True)
    sys.stdout.flush()
    os._exit(0)


def run_all(module, folder, cases):
    """Answers of a runtime to all rows."""
    done = subprocess.run(
        [sys.executable, __file__, "--serve", module, folder],
        input=json.dumps(cases),
        env={**os.environ, "SARDONYX_VIRTUAL_DEVICES": DEVICES},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(answers) != len(cases):
        sys.exit(f"{module} ended after {len(answers)} rows: {done.stderr[-2000:]}")
    return answers


def severity(lines):
    """Severity of the worst line, in both runtimes' spelling; empty when nothing was logged."""
    text = "\n".join(lines)
    if re.search(r"\[E:|ERROR|\berror\b", text):
        return "E"
    return "W" if lines else ""


def differences(theirs, ours):
    """Texts for what two answers to one row differ in."""
    found = []
    if theirs["error"] != ours["error"]:
        found.append(f"error: {theirs['error']!r} | {ours['error']!r}")
    if theirs["placed"] != ours["placed"]:
        for name in sorted({*theirs["placed"], *ours["placed"]}):
            pair = theirs["placed"].get(name), ours["placed"].get(name)
            if pair[0] != pair[1]:
                found.append(f"{name}: {pair[0]} | {pair[1]}")
    if bool(theirs["log"]) != bool(ours["log"]) or severity(theirs["log"]) != severity(ours["log"]):
        found.append(f"log: {theirs['log'][:1]} | {ours['log'][:1]}")
    return found


def why_meant(group, entries, device, theirs, ours):
    """Which difference of docs/placement.md it is; empty for none of them."""
    text = next(iter(entries.values()))
    if device == "CPU" and text.startswith("cpu("):
        return PROCESSOR
    if device == "GPU" and text.startswith("cuda("):
        return CUDA
    if group == "chain" and "CreateSupportedPartitionNodeGroups" in theirs["error"]:
        return "" if ours["error"] else CUT
    if theirs["placed"] == ours["placed"] and theirs["error"] == ours["error"]:
        if severity(ours["log"]) != "W":
            return ""
        return MISSING if theirs["log"] else TOLD
    return ""


def main():
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--serve", nargs=2, metavar=("MODULE", "FOLDER"))
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
        return 0
    table = list(rows())
    cases = [(entries, device, group == "chain") for group, entries, device in table]
    with tempfile.TemporaryDirectory() as folder:
        for is_chain, name in ((False, "nodes.onnx"), (True, "chain.onnx")):
            save_model(str(Path(folder) / name), is_chain)
        theirs_all = run_all("onnxruntime", folder, cases)
        ours_all = run_all("sardonyx", folder, cases)
    counts = {"same": 0, "meant": 0, "unexpected": 0}
    for (group, entries, device), theirs, ours in zip(table, theirs_all, ours_all, strict=True):
        found = differences(theirs, ours)
        why = why_meant(group, entries, device, theirs, ours) if found else ""
        kind = "same" if not found else "meant" if why else "unexpected"
        counts[kind] += 1
        if kind == "same" and not arguments.all:
            continue
        text = " + ".join(repr(value) for value in entries.values())
        print(f"{kind:10} {group}, {device or 'no device'}: {text}{'  -- ' + why if why else ''}")
        for line in found:
            print(f"           {line}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["unexpected"] else 0


if __name__ == "__main__":
    sys.exit(main())
