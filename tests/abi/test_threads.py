"""Many threads at once: sessions made, run, profiled, stopped and released.

Loops are large enough for the threads of a session. Results are those of one thread, bit for bit;
the thread sanitizer says the rest (see sanitize.py).
"""

import ctypes
import threading

import numpy as np
import pytest
from interface import Failure
from onnx import TensorProto, helper, numpy_helper

CALLERS = 4
TURNS = 4
SHAPE = (1, 16, 24, 24)


@pytest.fixture(scope="module")
def model():
    """A float convolution and one of 8 bits on x, added; then a product by a large matrix."""
    random = np.random.default_rng(1)
    weights = {
        "conv_w": random.standard_normal((32, 16, 3, 3)).astype(np.float32),
        "int_w": random.integers(-20, 20, (32, 16, 3, 3)).astype(np.int8),
        "w": random.standard_normal((24, 256)).astype(np.float32),
        "v": random.standard_normal((256, 24)).astype(np.float32),
    }
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "conv_w"], ["a"], pads=[1, 1, 1, 1]),
        make("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        make("ConvInteger", ["q", "int_w", "zero"], ["b"], pads=[1, 1, 1, 1]),
        make("Cast", ["b"], ["c"], to=TensorProto.FLOAT),
        make("Mul", ["c", "scale"], ["d"]),
        make("Add", ["a", "d"], ["e"]),
        make("MatMul", ["e", "w"], ["f"]),
        make("MatMul", ["f", "v"], ["g"]),
        make("Softmax", ["g"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


@pytest.fixture
def fed(api, cpu):
    """The input of all runs."""
    x = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    dims = (ctypes.c_int64 * len(SHAPE))(*SHAPE)
    value = api.make(
        "CreateTensorWithDataAsOrtValue", cpu, x.ctypes.data, x.nbytes, dims, len(SHAPE), 1
    )
    yield value
    api.ReleaseValue(value)
    del x


@pytest.fixture
def run(api, fed):
    """The bytes that a session makes of the input."""

    def call(session, run_options=None):
        out = ctypes.c_void_p()
        api.Run(session, run_options, ["x"], [fed], 1, ["y"], 1, ctypes.byref(out))
        size = ctypes.c_size_t()
        api.GetTensorSizeInBytes(out, ctypes.byref(size))
        made = ctypes.string_at(api.make("GetTensorMutableData", out), size.value)
        api.ReleaseValue(out)
        return made

    return call


@pytest.fixture
def session_with(api, env, model):
    """Make a session of that many threads."""

    def make(thread_count, profile=None):
        options = api.make("CreateSessionOptions")
        api.SetIntraOpNumThreads(options, thread_count)
        if profile is not None:
            api.EnableProfiling(options, str(profile))
        session = api.make("CreateSessionFromArray", env, model, len(model), options)
        api.ReleaseSessionOptions(options)
        return session

    return make


def at_once(work):
    """Call work(number) on several threads; raises what one of them raised."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except (AssertionError, Failure) as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_sessions_of_equal_weights_come_and_go_on_several_threads(api, session_with, run):
    alone = session_with(1)
    expected = run(alone)
    api.ReleaseSession(alone)

    def work(number):
        for _ in range(TURNS):
            session = session_with(1 + number % 3)
            assert run(session) == expected
            api.ReleaseSession(session)

    at_once(work)


def test_one_session_runs_on_several_threads(api, session_with, run, tmp_path, allocator):
    session = session_with(3, tmp_path / "profile")
    expected = run(session)

    def work(number):
        for turn in range(TURNS):
            assert run(session) == expected
            if (number, turn) == (0, 1):
                path = api.make("SessionEndProfiling", session, allocator)
                api.AllocatorFree(allocator, path)

    at_once(work)
    api.ReleaseSession(session)


def test_runs_are_stopped_from_other_threads(api, session_with, run):
    session = session_with(2)
    expected = run(session)
    run_options = api.make("CreateRunOptions")

    def work(number):
        for _ in range(TURNS * 4):
            if number == 0:
                api.RunOptionsSetTerminate(run_options)
                api.RunOptionsUnsetTerminate(run_options)
                continue
            try:
                assert run(session, run_options) == expected
            except Failure as error:
                assert "terminate" in error.message

    at_once(work)
    assert run(session) == expected
    api.ReleaseRunOptions(run_options)
    api.ReleaseSession(session)
