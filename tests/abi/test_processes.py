"""How the library behaves with the process around it: closing, threads, exit, fork."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from interface import default_library, model_bytes

PREAMBLE = """
import ctypes
import os
import sys
import threading
sys.path.insert(0, {folder!r})
from interface import Library
from pathlib import Path

MODEL = Path({model!r}).read_bytes()

def run(api, session, memory):
    data = (ctypes.c_float * 2)(1, 1)
    dims = (ctypes.c_int64 * 2)(1, 2)
    x = api.make("CreateTensorWithDataAsOrtValue", memory, data, 8, dims, 2, 1)
    y = ctypes.c_void_p()
    api.Run(session, None, ["x"], [x], 1, ["y"], 1, ctypes.byref(y))
    out = ctypes.cast(api.make("GetTensorMutableData", y), ctypes.POINTER(ctypes.c_float))
    assert out[:2] == [4.0, 6.0], out[:2]
    api.ReleaseValue(y)
    api.ReleaseValue(x)

def start(api, threads=2):
    env = api.make("CreateEnv", 3, "test")
    options = api.make("CreateSessionOptions")
    api.SetIntraOpNumThreads(options, threads)
    session = api.make("CreateSessionFromArray", env, MODEL, len(MODEL), options)
    api.ReleaseSessionOptions(options)
    memory = api.make("CreateCpuMemoryInfo", 0, 0)
    run(api, session, memory)
    return env, session, memory

def stop(api, env, session, memory):
    api.ReleaseMemoryInfo(memory)
    api.ReleaseSession(session)
    api.ReleaseEnv(env)
"""

CLOSE_AND_OPEN_AGAIN = """
for turn in range(5):
    api = Library()
    stop(api, *start(api))
    handle = api.library._handle
    del api
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
    print("open" if "libonnxruntime" in Path("/proc/self/maps").read_text() else "closed")
"""

TWO_THREADS = """
api = Library()
errors = []

def work():
    try:
        for turn in range(20):
            stop(api, *start(api))
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
print("done")
"""

EXIT_WHILE_A_SESSION_LIVES = """
api = Library()
kept = start(api)
print("done", flush=True)
"""

EXIT_IN_THE_MIDDLE_OF_RUNS = """
import time
api = Library()
env, session, memory = start(api)

def work():
    while True:
        run(api, session, memory)

threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("done", flush=True)
ctypes.CDLL(None).exit(0)
"""

FORK_AND_RELEASE_IN_THE_CHILD = """
api = Library()
kept = start(api)
child = os.fork()
if child == 0:
    stop(api, *kept)
    stop(api, *start(api))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
run(api, kept[1], kept[2])
stop(api, *kept)
print("done")
"""

FORK_AND_RUN_IN_THE_CHILD = """
api = Library()
kept = start(api)
child = os.fork()
if child == 0:
    for turn in range(10):
        run(api, kept[1], kept[2])
    ctypes.CDLL(None).exit(0)
assert os.waitpid(child, 0)[1] == 0
run(api, kept[1], kept[2])
print("done")
"""

RELEASE_IN_ANY_ORDER = """
import itertools
api = Library()
for order in itertools.permutations(range(3)):
    env, session, memory = start(api)
    release = [
        lambda: api.ReleaseEnv(env),
        lambda: api.ReleaseSession(session),
        lambda: api.ReleaseMemoryInfo(memory),
    ]
    for i in order:
        release[i]()
print("done")
"""

HANDLER_COMES_AND_GOES = """
def is_caught():
    text = Path("/proc/self/status").read_text().split("SigCgt:")[1].split()[0]
    return int(text, 16) >> (7 - 1) & 1  # SIGBUS

before = is_caught()
api = Library()
env = api.make("CreateEnv", 3, "test")
options = api.make("CreateSessionOptions")
session = api.make("CreateSession", env, {model!r}, options)
print(is_caught())
api.ReleaseSession(session)
print(is_caught() - before)
left = api.make("CreateSession", env, {model!r}, options)
handle = api.library._handle
del api
ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
print("open" if "libonnxruntime" in Path("/proc/self/maps").read_text() else "closed")
print(is_caught() - before)
"""

# What a process needs to run a library that is built with a sanitizer.
KEPT = ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")


def environment():
    """Variables of a script's process: few, so that it behaves alike everywhere."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    # These scripts leave sessions behind, or take the library away from what belongs to it.
    if "ASAN_OPTIONS" in kept:
        kept["ASAN_OPTIONS"] += ":detect_leaks=0"
    return {**kept, "SARDONYX_LIBRARY": default_library(), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def script(tmp_path):
    """Run a script in a process of its own; its output."""

    def call(text):
        model = tmp_path / "model.onnx"
        model.write_bytes(model_bytes())
        preamble = PREAMBLE.format(folder=str(Path(__file__).parent), model=str(model))
        text = text.replace("{model!r}", repr(str(model)))
        done = subprocess.run(
            [sys.executable, "-c", preamble + text],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=environment(),
        )
        assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
        assert done.stderr == ""
        return done.stdout.split()

    return call


def test_the_library_is_closed_and_opened_again(script):
    assert script(CLOSE_AND_OPEN_AGAIN) == ["closed"] * 5


def test_the_handler_of_cut_files_leaves_with_the_last_file_and_with_the_library(script):
    assert script(HANDLER_COMES_AND_GOES) == ["1", "0", "closed", "0"]


@pytest.mark.parametrize(
    "text",
    [
        TWO_THREADS,
        EXIT_WHILE_A_SESSION_LIVES,
        EXIT_IN_THE_MIDDLE_OF_RUNS,
        FORK_AND_RELEASE_IN_THE_CHILD,
        FORK_AND_RUN_IN_THE_CHILD,
        RELEASE_IN_ANY_ORDER,
    ],
    ids=[
        "two threads make and drop sessions",
        "exit while a session lives",
        "exit in the middle of runs",
        "fork and release in the child",
        "fork and run in the child",
        "release in any order",
    ],
)
def test_a_process_ends_well(script, text):
    assert script(text) == ["done"]
