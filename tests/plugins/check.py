"""Run one vendor plugin library in this process, and print how far it came as JSON.

Arguments: a JSON object with name, library, options, model, input shapes and the file that the
outputs of all runs go to. The environment variable RT names the module of the runtime.
"""

import importlib
import json
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from compare import DETECTORS, NODE_BY_NODE, QUANTISED, distance, match_detections

ort = importlib.import_module(os.environ.get("RT", "sardonyx"))

TOLERANCE = 1e-4


def feeds_of(session, shapes):
    """Random inputs by name; sizes that the model leaves open come from shapes."""
    random = np.random.default_rng(7)
    feeds = {}
    for value in session.get_inputs():
        sizes = [size if isinstance(size, int) else shapes.get(size, 1) for size in value.shape]
        feeds[value.name] = random.standard_normal(sizes).astype(np.float32)
    return feeds


def error_of(actual, wanted):
    """The largest difference in shares of the largest wanted number, where that is above 1."""
    if actual.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(actual, wanted) else np.inf
    if actual.shape != wanted.shape:
        return np.inf
    wanted = np.asarray(wanted, np.float64)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    return float(np.abs(actual - wanted).max(initial=0)) / scale


def check_models(row, devices, result, outputs):
    """Run models whose feeds and expected outputs lie beside them; note the error of each.

    Detections are matched by box first. Bounds of quantised models are in tests/models/compare.py;
    those that are judged by nodes there are only compared between runtimes here.
    """
    faults = []
    for path in map(pathlib.Path, row.get("models", [])):
        stem = path.parent if path.name == "model.onnx" else path.with_suffix("")
        name = stem.name
        feeds = dict(np.load(f"{stem}.feed.npz"))
        expected = dict(np.load(f"{stem}.expected.npz"))
        options = ort.SessionOptions()
        options.add_provider_for_devices(devices[:1], row.get("options", {}))
        session = ort.InferenceSession(str(path), sess_options=options)
        names = [output.name for output in session.get_outputs()]
        made = dict(zip(names, session.run(names, feeds), strict=True))
        outputs.update({f"{name}:{output}": array for output, array in made.items()})
        if name in DETECTORS:
            made = match_detections(made, expected)
        judge = distance if name in QUANTISED else error_of
        error = max(judge(made[output], expected[output]) for output in names)
        result[name] = f"{error:.1e}"
        allowed = QUANTISED.get(name, np.inf if name in NODE_BY_NODE else TOLERANCE)
        if not error <= allowed:
            faults.append(f"{path}: the largest error is {error:.3g}, allowed {allowed}")
    if faults:
        raise RuntimeError("; ".join(faults))


def node_count(session, names):
    """How many nodes of the model the plugin runs."""
    parts = session.get_provider_graph_assignment_info()
    return sum(len(part.get_nodes()) for part in parts if part.ep_name in names)


def check(row, result, outputs):
    """Take the steps one by one, noting each in result, and what the runs gave in outputs."""
    ort.register_execution_provider_library(row["name"], row["library"])
    result["register"] = "ok"
    names = row.get("ep_names", [row["name"]])
    devices = [device for device in ort.get_ep_devices() if device.ep_name in names]
    result["devices"] = f"{len(devices)}"
    if not devices:
        raise RuntimeError("the library offers no device")
    plain = ort.InferenceSession(row["model"], providers=["CPUExecutionProvider"])
    feeds = feeds_of(plain, row.get("shapes", {}))
    expected = plain.run(None, feeds)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", row.get("no_fallback", "0"))
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices(devices[:1], row.get("options", {}))
    session = ort.InferenceSession(row["model"], sess_options=options)
    result["session"] = f"{node_count(session, names)} nodes"
    if node_count(session, names) == 0:
        raise RuntimeError("the plugin runs no node of the model")
    session.run(None, feeds)
    actual = session.run(None, feeds)
    outputs.update({f"mlp:{index}": array for index, array in enumerate(actual)})
    error = max(float(np.abs(a - b).max()) for a, b in zip(actual, expected))
    result["run"] = f"{error:.1e}"
    if not error <= TOLERANCE:
        raise RuntimeError(f"the largest error is {error:.3g}, allowed is {TOLERANCE}")
    check_models(row, devices, result, outputs)
    del session, options
    ort.unregister_execution_provider_library(row["name"])
    result["unregister"] = "ok"


def main():
    """Print the steps that were passed, and the error that ended them."""
    row, result, outputs = json.loads(sys.argv[1]), {}, {}
    try:
        check(row, result, outputs)
    except Exception as error:  # noqa: BLE001 (vendors raise what they like)
        result["error"] = f"{type(error).__name__}: {error}"
    np.savez(row["outputs"], **outputs)
    print("RESULT " + json.dumps(result), flush=True)


main()
