#!/usr/bin/env python3
"""Worker of the conformance runner: holds the runtime under test and runs tests by name.

    worker.py [--lenient] [--native-types]

It writes the list of tests as one JSON line, then reads names from standard input and answers each
with a JSON line. The environment variable RT names the module (default: sardonyx).
"""

import argparse
import importlib
import json
import os
import sys
import time
import unittest
import warnings

# Element types by the name that the session reports for an output.
BOUND_OUTPUTS = {
    "tensor(bfloat16)": "bfloat16",
    "tensor(float8e4m3fn)": "float8_e4m3fn",
    "tensor(float8e4m3fnuz)": "float8_e4m3fnuz",
    "tensor(float8e5m2)": "float8_e5m2",
    "tensor(float8e5m2fnuz)": "float8_e5m2fnuz",
}
BOUND_INPUTS = set(BOUND_OUTPUTS.values())
REFUSED_INPUTS = {"int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float8_e8m0fnu"}

# Tolerances of --lenient are at least these.
LENIENT_RTOL = 1e-3
LENIENT_ATOL = 1e-5


class Feeder:
    """Runs one session on the inputs of a test and returns plain arrays."""

    def __init__(self, runtime, session, native_types):
        self.runtime = runtime
        self.session = session
        self.native_types = native_types

    def run(self, inputs):
        """Outputs of the session in graph order."""
        names = [value.name for value in self.session.get_inputs()]
        if self.native_types:
            return self.session.run(None, dict(zip(names, inputs, strict=False)))
        feed = {name: self.input_value(value) for name, value in zip(names, inputs, strict=False)}
        outputs = self.session.get_outputs()
        bound = any(output.type in BOUND_OUTPUTS for output in outputs)
        if bound or any(self.is_ort_value(value) for value in feed.values()):
            return self.run_bound(feed, outputs)
        return self.session.run(None, feed)

    @staticmethod
    def is_ort_value(value):
        """Is it an OrtValue already?"""
        return type(value).__name__ == "OrtValue"

    def input_value(self, value):
        """Array, list or OrtValue to feed for one test input."""
        import numpy as np
        import onnx

        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, (list, tuple)):
            return [self.input_value(item) for item in value]
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.name in REFUSED_INPUTS:
            raise unittest.SkipTest(f"harness: {value.dtype.name} graph input")
        if value.dtype.name in BOUND_INPUTS:
            element_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            return self.wrap(np.ascontiguousarray(value), element_type)
        return value

    def wrap(self, array, element_type):
        """OrtValue over an array, which is kept alive with it."""
        wrapped = self.runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, element_type)
        self.kept = [*getattr(self, "kept", []), array]
        return wrapped

    def run_bound(self, feed, outputs):
        """Run with IO binding; outputs of special types land in arrays of ours."""
        import ml_dtypes
        import numpy as np
        import onnx

        binding = self.session.io_binding()
        for name, value in feed.items():
            if not self.is_ort_value(value):
                contiguous = np.ascontiguousarray(value)
                value = self.runtime.OrtValue.ortvalue_from_numpy(contiguous)
            binding.bind_ortvalue_input(name, value)
        arrays = {}
        for output in outputs:
            if output.type not in BOUND_OUTPUTS:
                binding.bind_output(output.name)
                continue
            if not all(isinstance(dim, int) for dim in output.shape):
                raise unittest.SkipTest(f"harness: {output.type} output of dynamic shape")
            dtype = np.dtype(getattr(ml_dtypes, BOUND_OUTPUTS[output.type]))
            arrays[output.name] = np.zeros(output.shape, dtype)
            element_type = onnx.helper.np_dtype_to_tensor_dtype(dtype)
            target = self.wrap(arrays[output.name], element_type)
            binding.bind_ortvalue_output(output.name, target)
        self.session.run_with_iobinding(binding)
        values = dict(zip([o.name for o in outputs], binding.get_outputs(), strict=True))
        return [
            arrays[output.name] if output.name in arrays else values[output.name].numpy()
            for output in outputs
        ]


def make_backend(runtime, native_types):
    """Backend class, as the onnx test runner wants it, around the module ``runtime``."""
    from onnx.backend.base import Backend, BackendRep

    class Representation(BackendRep):
        """One loaded model."""

        def __init__(self, session):
            self.feeder = Feeder(runtime, session, native_types)

        def run(self, inputs, **_):
            """Outputs for the given inputs."""
            return self.feeder.run(inputs)

    class RuntimeBackend(Backend):
        """Loads models with the runtime under test."""

        @classmethod
        def is_compatible(cls, *_, **__):
            """Every model is tried."""
            return True

        @classmethod
        def prepare(cls, model, device="CPU", **_):
            """Session of a model."""
            options = runtime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            session = runtime.InferenceSession(
                model.SerializeToString(),
                sess_options=options,
                providers=["CPUExecutionProvider"],
            )
            return Representation(session)

        @classmethod
        def supports_device(cls, device):
            """Only the CPU is tested."""
            return device == "CPU"

    return RuntimeBackend


def use_lenient_tolerances(runner):
    """Raise the tolerances of the onnx test runner to the lenient ones."""
    strict = runner.assert_similar_outputs

    def lenient(_, reference, outputs, rtol, atol, model_dir=None):
        """Compare with at least the lenient tolerances."""
        return strict(
            reference, outputs, max(rtol, LENIENT_RTOL), max(atol, LENIENT_ATOL), model_dir
        )

    runner.assert_similar_outputs = classmethod(lenient)


def load_tests(lenient, native_types):
    """Test functions by "Kind::test_name"; each takes the place of a TestCase as argument."""
    from onnx.backend.test.runner import Runner

    runtime = importlib.import_module(os.environ.get("RT", "sardonyx"))
    if hasattr(runtime, "set_default_logger_severity"):
        runtime.set_default_logger_severity(4)
    if lenient:
        use_lenient_tolerances(Runner)
    runner = Runner(make_backend(runtime, native_types), __name__)
    return {
        f"{kind}::{name}": item.func
        for kind, items in runner._test_items.items()
        for name, item in items.items()
    }


def run_test(function):
    """Result ("pass", "fail" or "skip") and message of one test."""
    try:
        function(unittest.TestCase())
    except unittest.SkipTest as reason:
        return "skip", str(reason)
    except BaseException as error:  # noqa: BLE001
        return "fail", f"{type(error).__name__}: {error}"
    return "pass", ""


def serve(arguments):
    """Send the list of tests, then run every test named on standard input."""
    protocol = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the runtime prints must not get into the answers
    warnings.simplefilter("ignore")
    tests = load_tests(arguments.lenient, arguments.native_types)
    protocol.write(json.dumps(list(tests)) + "\n")
    for line in sys.stdin:
        name = line.strip()
        start = time.monotonic()
        result, message = run_test(tests[name])
        seconds = time.monotonic() - start
        answer = {"name": name, "result": result, "message": message[:1500], "seconds": seconds}
        protocol.write(json.dumps(answer) + "\n")


def main():
    """Command line of the worker."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lenient", action="store_true")
    parser.add_argument("--native-types", action="store_true")
    serve(parser.parse_args())


if __name__ == "__main__":
    main()
