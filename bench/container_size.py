#!/usr/bin/env python3
"""Compile models into one folder and compare the container's size with what it should be.

    container_size.py [--weightless] [--folder DIR] MODEL[@NAME=SIZE,...] ...

A model that is followed by @ has those dimensions of its inputs fixed first, so that one model
gives several (model.onnx@seq=32,past=0 and model.onnx@seq=1,past=32). Expected is at most 1.01
times the bytes of all different weights, and 64 KiB, and 256 bytes a node; with --weightless 64
KiB, 256 bytes a node and 160 bytes a weight. Also tells the memory that compiling took: the growth
of the largest resident size over the size of the model.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo

CONTAINER = "sardonyx_weights.bin"
COMPILE = """
import re, sys
import sardonyx as sx

def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

options = sx.SessionOptions()
if sys.argv[3] == "1":
    options.add_session_config_entry("ep.enable_weightless_mode", "2")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
sx.ModelCompiler(options, sys.argv[1]).compile_to_file(sys.argv[2])
print(status("VmHWM") - before)
"""


def tensors_of(graph):
    """All weights: initializers, and values of Constant nodes, of subgraphs too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield attribute.t
            for inner in (attribute.g, *attribute.graphs):
                yield from tensors_of(inner)


def node_count(graph):
    """Nodes, with those of subgraphs."""
    inner = (
        sub for node in graph.node for item in node.attribute for sub in (item.g, *item.graphs)
    )
    return len(graph.node) + sum(node_count(sub) for sub in inner)


def add_weights(path, seen):
    """Note the size of every weight by its content; returns counts of nodes and weights."""
    model = onnx.load(path, load_external_data=False)
    count = 0
    for tensor in tensors_of(model.graph):
        count += 1
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            info = ExternalDataInfo(tensor)
            with open(path.parent / info.location, "rb") as file:
                file.seek(info.offset or 0)
                content = file.read(info.length or -1)
        else:
            content = onnx.numpy_helper.to_array(tensor).tobytes()
        seen[hashlib.sha1(content).digest()] = len(content)
    return node_count(model.graph), count


def fix_dimensions(source, sizes, target):
    """A model with fixed dimensions; its external data is linked beside it."""
    model = onnx.load(source, load_external_data=False)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = int(sizes[dim.dim_param])
    del model.graph.value_info[:]
    for tensor in tensors_of(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            location = ExternalDataInfo(tensor).location
            if not (target.parent / location).exists():
                os.link(source.parent / location, target.parent / location)
    onnx.save(model, target)


def main():
    """Compile, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--weightless", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to work; by default beside the first")
    arguments = parser.parse_args()
    beside = Path(arguments.models[0].split("@")[0]).resolve().parent
    with tempfile.TemporaryDirectory(dir=arguments.folder or beside) as name:
        folder = Path(name)
        out = folder / "out"
        out.mkdir()
        seen, nodes, weights = {}, 0, 0
        for number, text in enumerate(arguments.models):
            path, _, fixed = text.partition("@")
            path = Path(path).resolve()
            if fixed:
                target = folder / f"{number}.onnx"
                fix_dimensions(path, dict(pair.split("=") for pair in fixed.split(",")), target)
                path = target
            before = sum(seen.values())
            own_nodes, own_weights = add_weights(path, seen)
            nodes, weights = nodes + own_nodes, weights + own_weights
            command = [sys.executable, "-c", COMPILE, path, out / f"{number}_ctx.onnx",
                       "1" if arguments.weightless else "0"]  # fmt: skip
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                                  check=False)  # fmt: skip
            if done.returncode != 0:
                sys.exit(done.stderr)
            print(
                f"{text}: {own_nodes} nodes, {own_weights} weights, "
                f"{(sum(seen.values()) - before) / 1e6:.1f} MB of them new; container "
                f"{(out / CONTAINER).stat().st_size} B; memory {float(done.stdout):.0f} MiB",
                flush=True,
            )
        size, unique = (out / CONTAINER).stat().st_size, sum(seen.values())
        bar = 65536 + 256 * nodes + (160 * weights if arguments.weightless else 1.01 * unique)
        print(f"different weights {unique} B, expected at most {bar:.0f} B: {size / bar:.4f} of it")


if __name__ == "__main__":
    main()
