"""A run that takes forever can be stopped from another thread."""

import json
import os

import numpy as np
import onnx
import pytest
from onnx import helper

from common import TensorProto, initializer, last_line, make_model, make_node, run_child, value

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FOREVER = 1 << 62
LIMIT_SECONDS = 1.0

CODE = """
import json, os, sys, threading, time
import numpy as np
from common import error_of, make_session, runtime

session = make_session(sys.argv[1], threads=int(sys.argv[2]))
options = runtime().RunOptions()
feed = {"x": np.zeros(1, np.float32)}
errors = []
thread = threading.Thread(
    target=lambda: errors.append(error_of(lambda: session.run(None, feed, options))), daemon=True
)
thread.start()
time.sleep(0.4)
alive = thread.is_alive()
start = time.monotonic()
options.terminate = True
thread.join(8)
seconds = time.monotonic() - start
print(json.dumps([alive, thread.is_alive(), seconds, errors]), flush=True)
os._exit(0)
"""


def loop_body(nodes, weights=()):
    """Body of a Loop that carries v."""
    return helper.make_graph(
        [make_node("Identity", ["condition_in"], ["condition_out"]), *nodes],
        "body",
        [value("i", INT64, []), value("condition_in", BOOL, []), value("v_in", FLOAT, [1])],
        [value("condition_out", BOOL, []), value("v_out", FLOAT, [1])],
        [initializer("one", np.ones(1, np.float32)), *weights],
    )


def loop_model(body):
    """Model of one Loop that never ends by itself."""
    return make_model(
        [make_node("Loop", ["count", "condition", "x"], ["y"], body=body)],
        [value("x", FLOAT, [1])],
        [value("y", FLOAT, [1])],
        [initializer("count", np.array(FOREVER)), initializer("condition", np.array(True))],
    )


def plain():
    """One node per turn."""
    return loop_model(loop_body([make_node("Add", ["v_in", "one"], ["v_out"])]))


def nested():
    """A Loop whose first turn never ends."""
    inner = helper.make_graph(
        [
            make_node("Identity", ["c_in"], ["c_out"]),
            make_node("Add", ["w_in", "one"], ["w_out"]),
        ],
        "inner",
        [value("j", INT64, []), value("c_in", BOOL, []), value("w_in", FLOAT, [1])],
        [value("c_out", BOOL, []), value("w_out", FLOAT, [1])],
    )
    forever = initializer("forever", np.array(FOREVER))
    node = make_node("Loop", ["forever", "condition_in", "v_in"], ["v_out"], body=inner)
    return loop_model(loop_body([node], [forever]))


def in_a_branch():
    """The Loop is inside an If."""
    body = loop_body([make_node("Add", ["v_in", "one"], ["v_out"])])
    then = helper.make_graph(
        [make_node("Loop", ["count", "condition", "x"], ["a"], body=body)],
        "then",
        [],
        [value("a", FLOAT, [1])],
    )
    other = helper.make_graph(
        [make_node("Identity", ["x"], ["b"])], "else", [], [value("b", FLOAT, [1])]
    )
    return make_model(
        [
            make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            make_node("Equal", ["sum", "zero"], ["is_zero"]),
            make_node("If", ["is_zero"], ["y"], then_branch=then, else_branch=other),
        ],
        [value("x", FLOAT, [1])],
        [value("y", FLOAT, [1])],
        [
            initializer("zero", np.array(0, np.float32)),
            initializer("count", np.array(FOREVER)),
            initializer("condition", np.array(True)),
        ],
    )


def condition_only():
    """No trip count at all; the condition stays true."""
    model = plain()
    model.graph.node[0].input[0] = ""
    return model


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [plain, nested, in_a_branch, condition_only])
def test_an_endless_loop_ends_within_a_second(tmp_path, make, threads):
    """With an error."""
    path = os.path.join(tmp_path, "loop.onnx")
    onnx.save(make(), path)
    status, output, errors = run_child(CODE, path, threads, timeout=40)
    assert status == 0, errors[-300:]
    was_running, still_running, seconds, messages = json.loads(last_line(output))
    assert was_running, messages
    assert not still_running
    assert messages[0] is not None
    assert seconds < LIMIT_SECONDS
