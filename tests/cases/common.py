"""Common functions of the case tests. The environment variable RT names the module under test."""

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = [
    "FLOAT_TYPES",
    "INTEGER_TYPES",
    "SMALL_TYPES",
    "TensorProto",
    "error_of",
    "initializer",
    "last_line",
    "make_model",
    "make_node",
    "make_session",
    "memory",
    "mlp_model",
    "onnx_type",
    "run_child",
    "run_model",
    "runtime",
    "save_external",
    "value",
]

make_node = helper.make_node

FLOAT_TYPES = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
INTEGER_TYPES = (
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
)
# Types that numpy itself does not have.
SMALL_TYPES = (
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.int4,
    ml_dtypes.uint4,
    ml_dtypes.float4_e2m1fn,
)


def runtime():
    """Return the module under test."""
    return importlib.import_module(os.environ.get("RT", "sardonyx"))


def onnx_type(dtype):
    """Element type of ONNX for a numpy type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def value(name, element_type, shape):
    """Declare a graph input or output."""
    return helper.make_tensor_value_info(name, element_type, shape)


def initializer(name, array):
    """Make a weight."""
    return numpy_helper.from_array(np.array(array, order="C"), name)


def make_model(nodes, inputs, outputs, weights=(), opset=18, ir_version=10):
    """Make a model of one graph."""
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )


def make_session(model, level=None, threads=None):
    """Create a session from a model, bytes or a path."""
    module = runtime()
    options = module.SessionOptions()
    options.log_severity_level = 4
    if level is not None:
        options.graph_optimization_level = getattr(module.GraphOptimizationLevel, level)
    if threads is not None:
        options.intra_op_num_threads = threads
    source = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    return module.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_model(model, feed, level=None, threads=1):
    """Outputs of one run."""
    return make_session(model, level, threads).run(None, feed)


def error_of(action):
    """Message of the error that a call raises, on one line; None if it raises none."""
    try:
        action()
    except Exception as error:  # noqa: BLE001
        return " ".join(str(error).split())
    return None


def mlp_model(size, layers):
    """Chain of ``layers`` MatMul nodes with random ``size`` x ``size`` weights."""
    generator = np.random.default_rng(0)
    weights = []
    nodes = []
    tensor = "x"
    for layer in range(layers):
        array = generator.standard_normal((size, size), dtype=np.float32)
        weights.append(initializer(f"w{layer}", array))
        output = "y" if layer == layers - 1 else f"t{layer}"
        nodes.append(make_node("MatMul", [tensor, f"w{layer}"], [output]))
        tensor = output
    shape = ["batch", size]
    declared = [value(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    return make_model(nodes, declared[:1], declared[1:], weights)


def save_external(model, folder):
    """Save a model with one external data file into a folder; returns the path as a string."""
    path = os.path.join(folder, "m.onnx")
    onnx.save(
        model,
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="m.data",
        size_threshold=1024,
    )
    return path


def memory():
    """Resident, anonymous and proportional memory of this process in MiB."""
    sizes = {}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        parts = line.split()
        if len(parts) >= 2 and parts[1].isdigit():
            sizes[parts[0].rstrip(":")] = int(parts[1]) / 1024
    return {name: sizes.get(name, 0.0) for name in ("Rss", "Anonymous", "Pss")}


def run_child(code, *arguments, timeout=120):
    """Run Python code in a child process; returns (status, standard output, standard error).

    The code can import ``common`` and finds ``arguments`` in sys.argv[1:]. The status is
    "timeout" if the child did not end in time.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": path},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timeout", "", ""
    return done.returncode, done.stdout, done.stderr


def last_line(text):
    """Last line that is not empty, or an empty string."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
