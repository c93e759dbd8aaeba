"""Every function of every table with null pointers, absurd counts and empty handles: an error or a
harmless answer, never a crash.

Each call runs in a process of its own, so that a crash names its function. The table below makes
the arguments from the manifest's parameter types: for each pointer parameter there is a call with
null there and good values elsewhere, and one with nulls everywhere.
"""

import ctypes
import os
import signal

import pytest
from interface import MANIFEST, Failure, Library, c_type, model_bytes, parameter_types

# Functions that take other arguments than the table can make, and why.
LEFT_OUT = {
    "GetExperimentalFunction": "looks up a name",
    "CreateStatus": "what it returns is no error of its own",
}
SCRATCH_BYTES = 4096


class Maker:
    """Good arguments by parameter type; handles are made on demand and live on."""

    def __init__(self, api):
        self.api = api
        self.handles = {}
        self.kept = []

    def handle(self, name):
        """A handle of that type, or None when the table cannot make one."""
        if name not in self.handles:
            make = getattr(self, f"make_{name}", None)
            self.handles[name] = make() if make else None
        return self.handles[name]

    def make_OrtEnv(self):
        return self.api.make("CreateEnv", 4, "test")

    def make_OrtSessionOptions(self):
        return self.api.make("CreateSessionOptions")

    def make_OrtSession(self):
        model = model_bytes()
        self.kept.append(model)
        env, options = self.handle("OrtEnv"), self.handle("OrtSessionOptions")
        return self.api.make("CreateSessionFromArray", env, model, len(model), options)

    def make_OrtRunOptions(self):
        return self.api.make("CreateRunOptions")

    def make_OrtAllocator(self):
        return self.api.make("GetAllocatorWithDefaultOptions")

    def make_OrtMemoryInfo(self):
        return self.api.make("CreateCpuMemoryInfo", 0, 0)

    def make_OrtValue(self):
        shape = (ctypes.c_int64 * 2)(1, 2)
        return self.api.make("CreateTensorAsOrtValue", self.handle("OrtAllocator"), shape, 2, 1)

    def make_OrtTensorTypeAndShapeInfo(self):
        return self.api.make("CreateTensorTypeAndShapeInfo")

    def make_OrtTypeInfo(self):
        return self.api.make("GetTypeInfo", self.handle("OrtValue"))

    def make_OrtThreadingOptions(self):
        return self.api.make("CreateThreadingOptions")

    def make_OrtIoBinding(self):
        return self.api.make("CreateIoBinding", self.handle("OrtSession"))

    def make_OrtModelMetadata(self):
        return self.api.make("SessionGetModelMetadata", self.handle("OrtSession"))

    def make_OrtKeyValuePairs(self):
        return self.api.make("CreateKeyValuePairs")

    def make_OrtCustomOpDomain(self):
        return self.api.make("CreateCustomOpDomain", "test")

    def make_OrtArenaCfg(self):
        return self.api.make("CreateArenaCfgV2", None, None, 0)

    def make_OrtPrepackedWeightsContainer(self):
        return self.api.make("CreatePrepackedWeightsContainer")

    def make_OrtStatus(self):
        return ctypes.c_void_p(self.api.pointer("OrtApi", "CreateStatus")(1, b"text"))

    def make_OrtModelPackageOptions(self):
        return self.api.make(
            "CreateModelPackageOptionsFromSessionOptions",
            self.handle("OrtEnv"),
            self.handle("OrtSessionOptions"),
            table="OrtModelPackageApi",
        )

    def make_OrtModelCompilationOptions(self):
        return self.api.make(
            "CreateModelCompilationOptionsFromSessionOptions",
            self.handle("OrtEnv"),
            self.handle("OrtSessionOptions"),
            table="OrtCompileApi",
        )

    def make_OrtOpSchema(self):
        return self.api.make("GetOpSchema", "Add", 13, "", table="OrtEpApi")

    def good(self, text, is_counted):
        """A good argument of a type; arrays are empty or, when counted, hold one null pointer."""
        plain = text.replace("const", " ").replace(" ", "")
        if not plain.endswith("*"):
            kind = c_type(text)
            return None if kind is ctypes.c_void_p else kind(1 if is_counted else 0)
        if plain.endswith("*") and plain.count("*") == 1:
            if plain in ("char*", "ORTCHAR_T*"):
                return ctypes.cast(ctypes.c_char_p(b"text"), ctypes.c_void_p)
            if handle := self.handle(plain[:-1]):
                return handle
        scratch = ctypes.create_string_buffer(SCRATCH_BYTES)
        self.kept.append(scratch)
        return ctypes.cast(scratch, ctypes.c_void_p)


def is_pointer(text):
    return c_type(text) is ctypes.c_void_p


def argument_rows(maker, function):
    """Lists of arguments to try."""
    types = parameter_types(function)
    nothing = [None if is_pointer(text) else c_type(text)(0) for text in types]
    yield "all null", nothing
    yield (
        "absurd counts",
        [
            None
            if is_pointer(text)
            else c_type(text)(-1 if c_type(text) is not ctypes.c_bool else 1)
            for text in types
        ],
    )
    # A handle that is not known to the table stays null: there is no good value for it.
    for is_counted in (False, True):
        good = [maker.good(text, is_counted) for text in types]
        known = [
            not is_pointer(text)
            or maker.handle(text.replace("const", "").strip(" *")) is not None
            or not text.replace("const", "").strip().startswith("Ort")
            or text.count("*") > 1
            for text in types
        ]
        good = [value if fine else None for value, fine in zip(good, known, strict=True)]
        for place, text in enumerate(types):
            if is_pointer(text):
                yield (
                    f"null at {place}, {'one' if is_counted else 'no'} item",
                    [None if i == place else value for i, value in enumerate(good)],
                )


def try_function(table, row):
    """Call a function in all ways; to be called in a child process."""
    api = Library()
    maker = Maker(api)
    function = row.function
    pointer = api.pointer(table.name, function.name)
    seen = ""
    for what, arguments in argument_rows(maker, function):
        seen = what
        os.write(2, f"{what}\n".encode())
        result = pointer(*arguments)
        if function.result == "OrtStatus*" and result:
            try:
                api.raise_status(result)
            except Failure as failure:
                assert failure.message, f"{function.name}: an error without text"
        if function.name.startswith("Release"):
            break
    return seen


ROWS = [
    (table, row)
    for table in MANIFEST.tables
    if table.name != "SardonyxApi"
    for row in table.rows
    if row.function.name not in LEFT_OUT and row.function.parameters != "void"
]


def crash_of(table, row):
    """What became of a child that tried the function: "" or a description."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 2)
        signal.alarm(120)
        status = 1
        try:
            try_function(table, row)
            status = 0
        except BaseException as error:  # noqa: BLE001
            os.write(2, repr(error).encode())
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, errors="replace") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return ""
    last = text.strip().splitlines()[-1] if text.strip() else ""
    signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return f"{table.name}::{row.function.name}: signal {signal_number}, after: {last}"


@pytest.mark.parametrize("name", sorted({table.name for table, _ in ROWS}))
def test_no_function_crashes_on_nulls(name):
    crashes = [crash_of(table, row) for table, row in ROWS if table.name == name]
    crashes = [text for text in crashes if text]
    assert not crashes, "\n".join(crashes)
