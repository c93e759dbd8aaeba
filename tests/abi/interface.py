"""The C interface through ctypes, as src/capi/api.manifest describes it, on any library with it."""

import ctypes
import os
import sys
from pathlib import Path

from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from gen_api import parse

MANIFEST = parse(ROOT / "src/capi/api.manifest")
TABLES = {table.name: table for table in MANIFEST.tables}
SLOTS = {table.name: {row.function.name: row for row in table.rows} for table in MANIFEST.tables}
GETTERS = {
    "OrtModelEditorApi": "GetModelEditorApi",
    "OrtCompileApi": "GetCompileApi",
    "OrtInteropApi": "GetInteropApi",
    "OrtEpApi": "GetEpApi",
    "OrtModelPackageApi": "GetModelPackageApi",
}
ENUMS = {"OrtErrorCode": ctypes.c_int}
SCALARS = {
    "int": ctypes.c_int,
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "void": None,
}
CALLBACKS = {callback.name for callback in MANIFEST.callbacks}
# Aliases of pointers to functions or structs.
POINTER_ALIASES = {"OrtExperimentalFnPtr", "OrtCustomThreadHandle", "EpSelectionDelegate"}


def default_library():
    """Path of the library under test."""
    given = os.environ.get("SARDONYX_LIBRARY")
    return given or str(ROOT / "build/release/lib/libonnxruntime.so.1")


def c_type(text):
    """Type of a parameter or result of the manifest for ctypes; pointers are all alike."""
    text = text.replace("const", " ").strip()
    if text.endswith("*") or text in CALLBACKS or text in POINTER_ALIASES:
        return ctypes.c_void_p
    return SCALARS.get(text, ctypes.c_int)


def parameter_types(function):
    """Types of a function's parameters, in words of the manifest."""
    if function.parameters == "void":
        return []
    types = []
    for parameter in function.split():
        head = parameter.rstrip("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        types.append(head.strip())
    return types


class Failure(Exception):
    """An OrtStatus: its code and message."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Library:
    """A loaded library; functions are called by their names: `api.CreateEnv(...)`.

    Arguments are numbers, bytes or text (C strings), None, ctypes objects, or lists of these for
    arrays. A status that is an error is raised as Failure.
    """

    def __init__(self, path=None):
        self.library = ctypes.CDLL(path or default_library())
        self.library.OrtGetApiBase.restype = ctypes.c_void_p
        base = self.library.OrtGetApiBase()
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(
            ctypes.c_void_p.from_address(base).value
        )
        self.is_own = hasattr(self.library, "SardonyxGetApi")
        self.tables = {"OrtApi": get_api(32)}
        for table, getter in GETTERS.items():
            self.tables[table] = self.pointer("OrtApi", getter)()

    def pointer(self, table, name):
        """A function as a ctypes object."""
        row = SLOTS[table][name]
        address = ctypes.c_void_p.from_address(
            self.tables[table] + row.slot * ctypes.sizeof(ctypes.c_void_p)
        ).value
        types = [c_type(text) for text in parameter_types(row.function)]
        return ctypes.CFUNCTYPE(c_type(row.function.result), *types)(address)

    def call(self, table, name, *arguments):
        """Call a function; raises Failure for a status that is an error."""
        kept = [as_argument(argument) for argument in arguments]
        result = self.pointer(table, name)(*kept)
        if SLOTS[table][name].function.result != "OrtStatus*":
            return result
        if result:
            self.raise_status(result)
        return None

    def raise_status(self, status):
        """Raise and release a status."""
        code = self.pointer("OrtApi", "GetErrorCode")(status)
        message = ctypes.string_at(self.pointer("OrtApi", "GetErrorMessage")(status))
        self.pointer("OrtApi", "ReleaseStatus")(status)
        raise Failure(code, message.decode("utf-8", "replace"))

    def __getattr__(self, name):
        return lambda *arguments: self.call("OrtApi", name, *arguments)

    def table(self, name):
        """Another table of functions, with the same manners."""
        return Table(self, name)

    def make(self, name, *arguments, table="OrtApi"):
        """Call a function whose last parameter takes a new handle or pointer; returns it."""
        out = ctypes.c_void_p()
        self.call(table, name, *arguments, ctypes.byref(out))
        return out

    def text(self, name, *arguments, table="OrtApi", allocator=None):
        """Call a function whose last parameter takes a C string; returns it or None.

        The string is given back to the allocator, where there is one.
        """
        out = self.make(name, *arguments, table=table)
        found = ctypes.string_at(out.value).decode() if out.value else None
        if allocator is not None:
            self.AllocatorFree(allocator, out)
        return found

    def number(self, name, *arguments, kind=ctypes.c_size_t, table="OrtApi"):
        """Call a function whose last parameter takes a number; returns it."""
        out = kind()
        self.call(table, name, *arguments, ctypes.byref(out))
        return out.value

    def array(self, name, *arguments, table="OrtApi"):
        """Call a function whose last parameters take an array of pointers and its size."""
        items = ctypes.c_void_p()
        count = ctypes.c_size_t()
        self.call(table, name, *arguments, ctypes.byref(items), ctypes.byref(count))
        pointers = ctypes.cast(items, ctypes.POINTER(ctypes.c_void_p))
        return [ctypes.c_void_p(pointers[i]) for i in range(count.value)]

    def texts(self, name, *arguments, table="OrtApi"):
        """The same for C strings."""
        pointers = self.array(name, *arguments, table=table)
        return [ctypes.string_at(pointer.value).decode() for pointer in pointers]


class Table:
    """One more table of a library."""

    def __init__(self, library, name):
        self.library = library
        self.name = name

    def __getattr__(self, function):
        return lambda *arguments: self.library.call(self.name, function, *arguments)


def as_argument(argument):
    """A Python value as ctypes takes it."""
    if isinstance(argument, str):
        argument = argument.encode()
    if isinstance(argument, bytes):
        return ctypes.cast(ctypes.c_char_p(argument), ctypes.c_void_p)
    if isinstance(argument, list):
        return array_of(argument)
    if isinstance(argument, ctypes.Array):
        return ctypes.cast(argument, ctypes.c_void_p)
    return argument


def array_of(items):
    """An array of handles or C strings."""
    kept = [item.encode() if isinstance(item, str) else item for item in items]
    kind = ctypes.c_char_p if kept and isinstance(kept[0], bytes) else ctypes.c_void_p
    values = [item.value if isinstance(item, ctypes.c_void_p) else item for item in kept]
    return ctypes.cast((kind * max(1, len(values)))(*values), ctypes.c_void_p)


def floats_of(api, value):
    """The elements of a tensor of floats."""
    info = api.make("GetTensorTypeAndShape", value)
    count = api.number("GetTensorShapeElementCount", info)
    api.ReleaseTensorTypeAndShapeInfo(info)
    data = api.make("GetTensorMutableData", value)
    return list(ctypes.cast(data, ctypes.POINTER(ctypes.c_float))[:count])


def model_bytes(nodes=None, shape=(1, 2), element=TensorProto.FLOAT, metadata=None):
    """A model from x to y; by default y = Relu(x * w), w = [[1, 2], [3, 4]]."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1, 2, 3, 4])
    nodes = nodes or [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, None)],
        [weight] if any("w" in node.input for node in nodes) else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if metadata:
        helper.set_model_props(model, metadata)
    return model.SerializeToString()
