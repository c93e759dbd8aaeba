"""Idle threads do not burn the processor between runs."""

import time

import numpy as np
import pytest

from common import TensorProto, initializer, make_model, make_node, make_session, value

pytestmark = pytest.mark.timed


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "pause"), [(64, 0.005), (256, 0.02), (1, 0.002)])
def test_processor_time_is_close_to_what_the_runs_need(threads, rows, pause):
    """At most twice the time of back-to-back runs on all threads, plus 50 ms in all."""
    runs = 200
    session = make_session(
        make_model(
            [make_node("MatMul", ["x", "w"], ["y"])],
            [value("x", TensorProto.FLOAT, [rows, 256])],
            [value("y", TensorProto.FLOAT, [rows, 256])],
            [initializer("w", np.ones((256, 256), np.float32))],
        ),
        threads=threads,
    )
    feed = {"x": np.ones((rows, 256), np.float32)}
    for _ in range(20):
        session.run(None, feed)
    start = time.perf_counter()
    for _ in range(runs):
        session.run(None, feed)
    needed = (time.perf_counter() - start) * threads
    start = time.process_time()
    for _ in range(runs):
        session.run(None, feed)
        time.sleep(pause)
    assert time.process_time() - start < 2 * needed + 0.05
