#!/usr/bin/env python3
"""Write the backend tests of the onnx package as files that a C++ program can read.

    export_cases.py FOLDER [--filter REGEX]

Each test becomes FOLDER/NAME/ with model.onnx, test_data_set_N/input_I.pb and output_I.pb, and
tolerance.txt ("rtol atol"). The messages are TensorProto, SequenceProto or OptionalProto, by the
type that the graph declares for the value. A value that is absent (None) has no file, so numbers
may have gaps. Tests that cannot be written are listed at the end.
"""

import argparse
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")
LIGHT = "onnx/backend/test/data/light/"


def value_proto(value, declared):
    """Message that holds one value of the declared type; None for an absent value."""
    if value is None and not declared.HasField("optional_type"):
        return None
    if isinstance(value, onnx.TensorProto):
        return value
    if declared.HasField("sequence_type"):
        elem = declared.sequence_type.elem_type
        kind = None
        if not value:
            kind = onnx.SequenceProto.TENSOR if elem.HasField("tensor_type") else None
        return numpy_helper.from_list(list(value), dtype=kind)
    if declared.HasField("optional_type"):
        return optional_proto(value, declared.optional_type.elem_type)
    if isinstance(value, dict):
        return numpy_helper.from_dict(value)
    return numpy_helper.from_array(np.asarray(value))


def optional_proto(value, element):
    """OptionalProto of a value, or the one of undefined kind for None."""
    optional = onnx.OptionalProto()
    if value is None:
        return optional
    if element.HasField("sequence_type"):
        optional.elem_type = onnx.OptionalProto.SEQUENCE
        optional.sequence_value.CopyFrom(value_proto(value, element))
    else:
        optional.elem_type = onnx.OptionalProto.TENSOR
        optional.tensor_value.CopyFrom(value_proto(value, element))
    return optional


def write_values(folder, prefix, values, declarations):
    """Write one list of values of a data set."""
    for index, (value, declared) in enumerate(zip(values, declarations, strict=False)):
        message = value_proto(value, declared.type)
        if message is not None:
            (folder / f"{prefix}_{index}.pb").write_bytes(message.SerializeToString())


def write_memory_case(test, folder):
    """Write a test whose model and data are in memory."""
    (folder / "model.onnx").write_bytes(test.model.SerializeToString())
    graph = test.model.graph
    for number, (inputs, outputs) in enumerate(test.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        write_values(data, "input", inputs, graph.input)
        write_values(data, "output", outputs, graph.output)


def write_light_case(test, folder):
    """Write a test of a big model with constant weights; its input is a ramp from 0 to 1."""
    root = Path(onnx.__file__).parent / "backend/test/data/light"
    source = root / test.url.removeprefix(LIGHT)
    shutil.copy(source, folder / "model.onnx")
    model = onnx.load(source)
    data = folder / "test_data_set_0"
    data.mkdir()
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    ramps = [Runner.generate_dummy_data(value) for value in inputs]
    write_values(data, "input", ramps, inputs)
    for index in range(len(model.graph.output)):
        stored = source.with_name(f"{source.stem}_output_{index}.pb")
        shutil.copy(stored, data / f"output_{index}.pb")


def write_case(test, folder):
    """Write one test of any kind."""
    shutil.rmtree(folder, ignore_errors=True)
    if test.model_dir is not None:
        shutil.copytree(test.model_dir, folder)
    else:
        folder.mkdir(parents=True)
        if test.model is not None:
            write_memory_case(test, folder)
        else:
            write_light_case(test, folder)
    (folder / "tolerance.txt").write_text(f"{test.rtol} {test.atol}\n", encoding="utf-8")


def main():
    """Write all tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="", help="regular expression on the test's name")
    arguments = parser.parse_args()
    count = 0
    failures = []
    for kind in KINDS:
        for test in load_model_tests(kind=kind):
            if not re.search(arguments.filter, test.name):
                continue
            folder = arguments.folder / test.name
            try:
                write_case(test, folder)
                count += 1
            except Exception as error:  # noqa: BLE001
                shutil.rmtree(folder, ignore_errors=True)
                failures.append(f"{kind} {test.name}: {type(error).__name__}: {error}")
    for failure in failures:
        print(failure)
    print(f"{count} tests written, {len(failures)} not")


if __name__ == "__main__":
    main()
