"""What the tests of the C interface share."""

import ctypes

import pytest
from interface import Library, floats_of


@pytest.fixture(scope="session")
def api():
    """The library under test."""
    return Library()


@pytest.fixture
def env(api):
    """An environment."""
    handle = api.make("CreateEnv", 3, "test")
    yield handle
    api.ReleaseEnv(handle)


@pytest.fixture
def options(api):
    """Session options."""
    handle = api.make("CreateSessionOptions")
    yield handle
    api.ReleaseSessionOptions(handle)


@pytest.fixture
def allocator(api):
    """The allocator of the library."""
    return api.make("GetAllocatorWithDefaultOptions")


@pytest.fixture
def cpu(api):
    """Memory of the processor."""
    handle = api.make("CreateCpuMemoryInfo", 0, 0)
    yield handle
    api.ReleaseMemoryInfo(handle)


@pytest.fixture
def session_of(api, env, options):
    """Make a session from the bytes of a model."""
    made = []

    def make(model, with_options=None):
        handle = api.make("CreateSessionFromArray", env, model, len(model), with_options or options)
        made.append(handle)
        return handle

    yield make
    for handle in made:
        api.ReleaseSession(handle)


@pytest.fixture
def run(api, cpu):
    """Run a session on floats of a shape; returns the floats of y."""

    def call(session, values, shape, run_options=None):
        data = (ctypes.c_float * len(values))(*values)
        dims = (ctypes.c_int64 * len(shape))(*shape)
        fed = api.make(
            "CreateTensorWithDataAsOrtValue", cpu, data, 4 * len(values), dims, len(shape), 1
        )
        out = ctypes.c_void_p()
        try:
            api.Run(session, run_options, ["x"], [fed], 1, ["y"], 1, ctypes.byref(out))
            return floats_of(api, out)
        finally:
            api.ReleaseValue(fed)
            api.ReleaseValue(out)

    return call
