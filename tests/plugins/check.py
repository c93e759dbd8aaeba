"""Run one vendor plugin library in this process, and print how far it came as JSON.

Arguments: a JSON object with name, library, options, model, input shapes and the file that the
outputs of all runs go to. The environment variable RT names the module of the runtime.
"""

import importlib
import json
import os
import sys

import numpy as np

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


def check_models(row, devices, result, outputs):
    """Run models whose feeds and expected outputs lie beside them; note the error of each."""
    for path in row.get("models", []):
        stem = path.removesuffix(".onnx")
        feeds = dict(np.load(stem + ".feed.npz"))
        expected = np.load(stem + ".expected.npz")
        options = ort.SessionOptions()
        options.add_provider_for_devices(devices[:1], row.get("options", {}))
        session = ort.InferenceSession(path, sess_options=options)
        names = [output.name for output in session.get_outputs()]
        error = 0.0
        for name, actual in zip(names, session.run(names, feeds)):
            wanted = np.asarray(expected[name], np.float64)
            scale = max(1.0, float(np.abs(wanted).max(initial=0)))
            error = max(error, float(np.abs(actual - wanted).max(initial=0)) / scale)
            outputs[f"{os.path.basename(stem)}:{name}"] = actual
        result[os.path.basename(stem)] = f"{error:.1e}"
        if not error <= TOLERANCE:
            raise RuntimeError(f"{path}: the largest error is {error:.3g}, allowed {TOLERANCE}")


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
