#!/usr/bin/env python3
"""Write small models as seeds for the fuzz targets.

    make_seeds.py FOLDER [--all]

One test model of the onnx package per operator and kind of attribute; with --all every one below
8 KiB. The committed corpus is made without --all; inputs that once broke something stand beside
them, named after what they broke.
"""

import argparse
from pathlib import Path

from onnx.backend.test.loader import load_model_tests

BYTES_MAX = 8192
SEED_BYTES_MAX = 700


def models(bytes_max):
    """Yield (name, bytes, signature) of the package's small models."""
    for kind in ("node", "simple"):
        for test in load_model_tests(kind=kind):
            if test.model is not None:
                content = test.model.SerializeToString()
                graph = test.model.graph
            else:
                path = Path(test.model_dir) / "model.onnx"
                content = path.read_bytes()
                graph = None
            if len(content) <= bytes_max:
                yield test.name, content, signature(graph, test.name)


def signature(graph, name):
    """What a model exercises: its first operator and the form of what goes in and out."""
    if graph is None:
        return name
    kinds = [value.type.WhichOneof("value") for value in (*graph.input, *graph.output)]
    return graph.node[0].op_type, len(graph.node) > 1, *sorted(set(map(str, kinds)))


def main():
    """Write the seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    seen = set()
    for name, content, key in models(BYTES_MAX if arguments.all else SEED_BYTES_MAX):
        if arguments.all or key not in seen:
            seen.add(key)
            (arguments.folder / f"{name}.onnx").write_bytes(content)
    print(f"{len(list(arguments.folder.iterdir()))} seeds in {arguments.folder}")


if __name__ == "__main__":
    main()
