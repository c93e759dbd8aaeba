#!/usr/bin/env python3
"""Compare a module's results on the test models with ONNX Runtime's.

    RT=sardonyx compare.py FOLDER [MODEL ...] [--threads N] [--list]

FOLDER holds NAME.onnx or NAME/model.onnx; without names all models in it are compared. The inputs
are those of inputs.py. Each line tells the largest |a - b| / (1 + |b|) over all float outputs; the
detections of a detector are matched by box first. Float models have to stay within 2e-4. Results
of quantised models may differ by a rounding that flips a quantised value, so they are judged by
the relative distance of the whole output; whether integer kernels are exact is tested elsewhere.
Where one flip changes the length of the output, every node is judged alone, on our inputs of it.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

import numpy as np
import onnx

from inputs import make_inputs, model_name

BOUND = 2e-4
# Models with quantised activations, and the bound on |a - b|_2 / |b|_2 of each output.
QUANTISED = {
    "tashkeel_bilstm_int8": 0.05,
    "resnet50_int8_qdq": 0.05,
    "bert_base_int8_dyn": 0.05,
    "llama_small_q4": 0.05,
}
NODE_BY_NODE = {"kokoro82m_int8"}
DETECTORS = {"ssdlite320_mobilenet_v3"}


def find_models(folder, names):
    """Paths of the chosen models by name."""
    paths = [*folder.glob("*.onnx"), *folder.glob("*/model.onnx")]
    found = {model_name(path): path for path in sorted(paths)}
    if missing := set(names) - set(found):
        sys.exit(f"not in {folder}: {', '.join(sorted(missing))}")
    return {name: found[name] for name in names or found}


def run(module, model, feed, threads):
    """Outputs by name of a model in a file or in bytes."""
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    model = model if isinstance(model, bytes) else str(model)
    session = module.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, feed)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, outputs, strict=True))


def difference(ours, theirs):
    """Largest |a - b| / (1 + |b|), infinite where shape or NaN differ."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if theirs.size == 0:
        return 0.0
    if theirs.dtype.kind != "f":
        return (
            float(np.max(ours != theirs)) if theirs.dtype.kind in "OUSb" else integers(ours, theirs)
        )
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    same = (a == b) | np.isnan(b)
    with np.errstate(invalid="ignore"):
        relative = np.abs(a - b) / (1 + np.abs(b))
    return float(np.max(np.where(same, 0.0, relative)))


def integers(ours, theirs):
    """Largest difference of integers as a float."""
    return float(np.max(np.abs(ours.astype(np.float64) - theirs.astype(np.float64))))


def distance(ours, theirs):
    """|a - b|_2 / |b|_2; infinite where shapes differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def match_detections(ours, theirs):
    """Our detections in the order of theirs: each takes the nearest box of its label."""
    boxes, scores, labels = (ours[key] for key in ("boxes", "scores", "labels"))
    if boxes.shape != theirs["boxes"].shape:
        return ours
    left = list(range(len(boxes)))
    order = []
    for box, score, label in zip(
        *(theirs[key] for key in ("boxes", "scores", "labels")), strict=True
    ):

        def far(index, box=box, score=score, label=label):
            """How badly one of our detections fits."""
            apart = np.abs(boxes[index] - box).max() + np.abs(scores[index] - score)
            return apart + (1e9 if labels[index] != label else 0)

        best = min(left, key=far)
        left.remove(best)
        order.append(best)
    return {"boxes": boxes[order], "scores": scores[order], "labels": labels[order]}


def compare(name, ours, theirs):
    """Whether the outputs of a model are close enough, and the measure as text."""
    if list(ours) != list(theirs):
        return False, f"outputs {list(ours)} instead of {list(theirs)}"
    if name in DETECTORS:
        ours = match_detections(ours, theirs)
    if name in QUANTISED:
        worst = max(distance(ours[key], theirs[key]) for key in theirs)
        return worst <= QUANTISED[name], f"relative distance {worst:.2e}"
    key = max(theirs, key=lambda output: difference(ours[output], theirs[output]))
    worst = difference(ours[key], theirs[key])
    return worst <= BOUND, f"{worst:.2e} ({key})"


def all_values(model):
    """The model with the results of all nodes as outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    known = {output.name for output in model.graph.output}
    for node in model.graph.node:
        names = [name for name in node.output if name and name not in known]
        made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return made


def nodes_alone(model, values):
    """The model with each node fed from graph inputs, and the feed for it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    results = {name for node in model.graph.node for name in node.output if name}
    feed = {}
    for node in made.graph.node:
        for i, name in enumerate(node.input):
            if name in results:
                node.input[i] = f"{name}:fed"
                feed[f"{name}:fed"] = values[name]
    for name, value in feed.items():
        element = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        made.graph.input.append(onnx.helper.make_tensor_value_info(name, element, value.shape))
    return made, feed


def compare_nodes(module, reference, path, feed, threads):
    """Whether each node of the model is right on its own inputs, and the measure as text."""
    model = onnx.load(path)
    ours = run(module, all_values(model).SerializeToString(), feed, threads)
    alone, fed = nodes_alone(model, ours)
    theirs = run(reference, all_values(alone).SerializeToString(), feed | fed, threads)
    steps = {
        name for node in model.graph.node if "Quantize" in node.op_type for name in node.output
    }
    worst, where = 0.0, ""
    for name, value in theirs.items():
        found = difference(ours[name], value)
        if name in steps and value.dtype.kind in "iu" and found <= 1:
            continue
        if found > worst:
            worst, where = found, name
    return worst <= BOUND, f"{worst:.2e} over {len(theirs)} nodes ({where})"


def main():
    """Compare the chosen models and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    arguments = parser.parse_args()
    models = find_models(arguments.folder, arguments.names)
    if arguments.list:
        print("\n".join(models))
        return
    if not models:
        sys.exit(f"no models in {arguments.folder}; `make models` makes them")
    tested = importlib.import_module(os.environ.get("RT", "sardonyx"))
    judge = importlib.import_module("onnxruntime")
    failed = 0
    for name, path in models.items():
        feed = make_inputs(path)
        try:
            if name in NODE_BY_NODE:
                good, measure = compare_nodes(tested, judge, path, feed, arguments.threads)
            else:
                ours = run(tested, path, feed, arguments.threads)
                good, measure = compare(name, ours, run(judge, path, feed, 1))
        except Exception as error:  # noqa: BLE001
            good, measure = False, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        failed += not good
        print(f"{'ok' if good else 'FAILED':7} {name}: {measure}", flush=True)
    print(f"{len(models) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
