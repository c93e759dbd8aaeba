"""Custom operators from a library: every feature of OrtCustomOp, and what they refuse.

The library is tests/abi/custom_ops.cpp. Where ONNX Runtime is installed, each test runs on it too:
what is expected here is what it does, but for the cases that say otherwise.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import sardonyx
from onnx import TensorProto, helper
from sardonyx import errors

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

BUILD = Path(os.environ.get("SARDONYX_BUILD", Path(sardonyx.__file__).absolute().parents[2]))
LIBRARY = BUILD / "tests/abi/libtest_custom_ops.so"
DOMAIN = "test.custom"
COPIES = {}

RUNTIMES = [sardonyx]
if onnxruntime is not None and Path(onnxruntime.__file__).parent.name == "onnxruntime":
    RUNTIMES.append(onnxruntime)

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason=f"{LIBRARY} is not built: ninja test_custom_ops"
)


@pytest.fixture(scope="module", autouse=True)
def copies(tmp_path_factory):
    """Give each runtime a library of its own: a loaded library works for one of them."""
    folder = tmp_path_factory.mktemp("libraries")
    for runtime in RUNTIMES:
        path = folder / f"{runtime.__name__}.so"
        shutil.copy(LIBRARY, path)
        COPIES[runtime.__name__] = path
    yield
    COPIES.clear()


@pytest.fixture(params=RUNTIMES, ids=lambda runtime: runtime.__name__)
def runtime(request):
    """Return the module under test: ours, or ONNX Runtime to confirm the expectation."""
    return request.param


def tensor(name, dtype=TensorProto.FLOAT, shape=("n",)):
    """Declare a value."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, initializers=(), version=1):
    """Bytes of a model whose nodes are of the test's domain."""
    graph = helper.make_graph(nodes, "custom", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, version)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 9
    return model.SerializeToString()


def node(name, inputs, outputs, **attributes):
    """Make a node of the test's domain."""
    return helper.make_node(name, inputs, outputs, name=f"my_{name}", domain=DOMAIN, **attributes)


def session(runtime, model, entries=()):
    """Session with the library registered."""
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    os.environ.pop("SARDONYX_TEST_POISON", None)
    if runtime is sardonyx:
        os.environ["SARDONYX_TEST_POISON"] = "1"
    options.register_custom_ops_library(str(COPIES[runtime.__name__]))
    for key, value in entries:
        options.add_session_config_entry(key, value)
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_unary(runtime, name, array, dtype=TensorProto.FLOAT, result=TensorProto.FLOAT, **more):
    """Run a model of one node with one input and one output."""
    version = more.pop("version", 1)
    model = model_of(
        [node(name, ["x"], ["y"], **more)],
        [tensor("x", dtype, None if array.ndim != 1 else ("n",))],
        [tensor("y", result, None)],
        version=version,
    )
    return session(runtime, model).run(None, {"x": array})[0]


X = np.array([1.5, -2, 3, 0.25], np.float32)


def test_an_operator_of_the_first_version_runs(runtime):
    assert run_unary(runtime, "AddOne", X).tolist() == (X + 1).tolist()


def test_an_operator_without_state_may_have_a_null_kernel(runtime):
    assert run_unary(runtime, "NoState", X).tolist() == (X + 1).tolist()


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("has_sum", [False, True])
def test_optional_operands_may_be_left_out(runtime, has_bias, has_sum):
    inputs = ["x", "bias"] if has_bias else ["x"]
    outputs = ["y", "sum"] if has_sum else ["y"]
    shapes = {"x": ("n",), "bias": (), "y": ("n",), "sum": ()}
    model = model_of(
        [node("Scale", inputs, outputs, factor=2.0)],
        [tensor(name, shape=shapes[name]) for name in inputs],
        [tensor(name, shape=shapes[name]) for name in outputs],
    )
    feeds = {"x": X, "bias": np.array(0.5, np.float32)}
    results = session(runtime, model).run(None, {name: feeds[name] for name in inputs})
    expected = X * 2 + (0.5 if has_bias else 0)
    assert results[0].tolist() == expected.tolist()
    if has_sum:
        assert results[1] == expected.sum()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_variadic_input_of_any_type_gives_its_type_to_the_output(runtime, dtype):
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of(
        [node("Join", ["a", "b", "c"], ["y"])],
        [tensor(name, onnx_type) for name in "abc"],
        [tensor("y", onnx_type, None)],
    )
    feeds = {name: np.arange(i + 1, dtype=dtype) for i, name in enumerate("abc")}
    made = session(runtime, model)
    (joined,) = made.run(None, feeds)
    assert joined.dtype == dtype
    assert joined.tolist() == [0, 0, 1, 0, 1, 2]
    assert made.get_outputs()[0].type == (
        "tensor(float)" if dtype == np.float32 else "tensor(int64)"
    )


def test_variadic_operands_of_different_types(runtime):
    model = model_of(
        [node("Counts", ["a", "b"], ["m", "n"])],
        [tensor("a"), tensor("b", TensorProto.INT64, ("p", "q"))],
        [tensor("m", TensorProto.INT64, ()), tensor("n", TensorProto.INT64, ())],
    )
    feeds = {"a": X, "b": np.zeros((2, 3), np.int64)}
    assert [int(y) for y in session(runtime, model).run(None, feeds)] == [4, 6]


def test_too_few_variadic_inputs_are_refused(runtime):
    model = model_of([node("Join", ["x"], ["y"])], [tensor("x")], [tensor("y")])
    with pytest.raises(Exception, match="my_Join|Join"):
        session(runtime, model)


def test_variadic_inputs_of_one_type_are_checked(runtime):
    model = model_of(
        [node("Join", ["a", "b"], ["y"])],
        [tensor("a"), tensor("b", TensorProto.INT64)],
        [tensor("y", shape=None)],
    )
    with pytest.raises(Exception, match="my_Join"):
        session(runtime, model)


def test_an_input_of_the_wrong_type_is_refused(runtime):
    with pytest.raises(Exception, match="my_AddOne"):
        run_unary(runtime, "AddOne", np.zeros(2, np.int64), TensorProto.INT64)


def test_a_failing_kernel_constructor_fails_the_session(runtime):
    with pytest.raises(Exception, match="no kernel today"):
        run_unary(runtime, "FailCreate", X)


def test_a_failing_kernel_fails_the_run_and_names_the_node(runtime):
    with pytest.raises(Exception, match="no result today") as error:
        run_unary(runtime, "FailCompute", X)
    assert "my_FailCompute" in str(error.value)


def test_a_throwing_kernel_fails_the_run_and_names_the_node(runtime):
    with pytest.raises(Exception, match="no result today") as error:
        run_unary(runtime, "ThrowCompute", X)
    assert "my_ThrowCompute" in str(error.value)


def test_an_output_that_is_not_made_is_an_error(runtime):
    if runtime is not sardonyx:
        pytest.skip("ONNX Runtime hands out a value of no type")
    with pytest.raises(errors.Error, match="did not make its output 'y'"):
        run_unary(runtime, "Idle", X)


def test_an_operator_of_another_provider_does_not_run_here(runtime):
    with pytest.raises(Exception, match="Elsewhere"):
        run_unary(runtime, "Elsewhere", X)


def test_a_kernel_may_ask_everything_about_its_node(runtime):
    attributes = {
        "number": 7,
        "real": 0.5,
        "text": "héllo",
        "numbers": [1, 2, 3],
        "reals": [0.25, 4.0],
        "texts": ["a", "", "ccc"],
        "tensor": helper.make_tensor("", TensorProto.FLOAT, [2], [3.0, 9.0]),
    }
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [6.5, 1.0])
    model = model_of(
        [node("Describe", ["x", "w"], ["y"], **attributes)],
        [tensor("x", shape=(2, 3))],
        [tensor("y", TensorProto.STRING, ("k",))],
        [weight],
    )
    made = session(runtime, model, [("test.key", "test value")])
    (lines,) = made.run(None, {"x": np.zeros((2, 3), np.float32)})
    assert lines.tolist() == [
        "name=my_Describe",
        f"domain={DOMAIN}",
        "type=Describe",
        "since=1",
        "in x 1:2,3,",
        "in w 1:2,",
        "constant 6.500000",
        "out y 8:-1,",
        "number=7 real=0.500000",
        "text=héllo size=7",
        "number 1",
        "number 2",
        "number 3",
        "real 0.250000",
        "real 4.000000",
        "text a",
        "text ",
        "text ccc",
        "tensor 9.000000",
        "entry test value",
        "missing is an error",
        "small is an error",
    ]


def test_shape_inference_reads_attributes_and_keeps_symbols(runtime):
    model = model_of(
        [node("Repeat", ["x"], ["y"], times=3)],
        [tensor("x", shape=(2, "width"))],
        [tensor("y", shape=None)],
    )
    made = session(runtime, model)
    shape = made.get_outputs()[0].shape
    assert shape[0] == 6
    assert not isinstance(shape[1], int)
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert made.run(None, {"x": x})[0].tolist() == np.tile(x, (3, 1)).tolist()


def test_inferred_shapes_reach_the_nodes_behind(runtime):
    nodes = [
        node("Repeat", ["x"], ["z"], times=2),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    model = model_of(nodes, [tensor("x", shape=(2, 3))], [tensor("y", shape=None)])
    made = session(runtime, model)
    assert made.get_outputs()[0].shape == [4, 3]
    for rows in ([[-1, 0, 1], [2, -2, 3]], [[1, 1, 1], [-1, -1, -1]]):
        x = np.array(rows, np.float32)
        assert made.run(None, {"x": x})[0].tolist() == np.tile(np.maximum(x, 0), (2, 1)).tolist()


def test_a_failing_shape_inference_is_reported(runtime):
    if runtime is not sardonyx:
        pytest.skip("ONNX Runtime lets it pass and fails when the model runs")
    with pytest.raises(errors.Error, match="a negative number of times") as error:
        run_unary(runtime, "Repeat", X, times=-1)
    assert "my_Repeat" in str(error.value)


@pytest.mark.parametrize(("version", "expected"), [(1, 1), (2, 2), (5, 2)])
def test_the_version_of_the_model_picks_the_operator(runtime, version, expected):
    if runtime is not sardonyx and version > 1:
        pytest.skip("ONNX Runtime takes the first operator of that name")
    assert run_unary(runtime, "Versioned", X, result=TensorProto.INT64, version=version) == expected


@pytest.mark.parametrize(
    ("dtype", "onnx_type", "expected"),
    [(np.float32, TensorProto.FLOAT, 10), (np.int64, TensorProto.INT64, 20)],
)
def test_the_types_of_inputs_pick_the_operator(runtime, dtype, onnx_type, expected):
    array = np.zeros(3, dtype)
    assert run_unary(runtime, "Typed", array, onnx_type, TensorProto.INT64) == expected


def test_a_kernel_runs_operators_of_the_library(runtime):
    model = model_of(
        [node("Largest", ["x"], ["values", "places"])],
        [tensor("x")],
        [tensor("values"), tensor("places", TensorProto.INT64)],
    )
    made = session(runtime, model)
    for x in (X, X[::-1].copy(), np.arange(9, dtype=np.float32)):
        values, places = made.run(None, {"x": x})
        order = np.argsort(-x, kind="stable")[:2]
        assert values.tolist() == (2 * x[order]).tolist()
        assert places.tolist() == order.tolist()


def test_a_kernel_uses_threads_scratch_memory_and_the_logger(runtime):
    x = np.arange(1000, dtype=np.float32)
    assert run_unary(runtime, "Squares", x).tolist() == (x * x).tolist()


def test_texts_go_in_and_out(runtime):
    texts = np.array(["abc", "", "x" * 40], dtype=object)
    result = run_unary(runtime, "Reverse", texts, TensorProto.STRING, TensorProto.STRING)
    assert result.tolist() == ["cba", "", "x" * 40]


def test_custom_operators_run_inside_subgraphs_and_functions(runtime):
    body = helper.make_graph([node("AddOne", ["x"], ["then"])], "then", [], [tensor("then")])
    other = helper.make_graph(
        [node("Scale", ["x"], ["else"], factor=-1.0)], "else", [], [tensor("else")]
    )
    branch = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=other)
    model = model_of([branch], [tensor("c", TensorProto.BOOL, ()), tensor("x")], [tensor("y")])
    made = session(runtime, model)
    assert made.run(None, {"c": np.array(True), "x": X})[0].tolist() == (X + 1).tolist()
    assert made.run(None, {"c": np.array(False), "x": X})[0].tolist() == (-X).tolist()


def test_an_unregistered_operator_is_refused_by_name(runtime):
    model = model_of([node("AddOne", ["x"], ["y"])], [tensor("x")], [tensor("y")])
    with pytest.raises(Exception, match="AddOne"):
        runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


def test_a_library_that_is_none_is_refused(runtime, tmp_path):
    path = tmp_path / "text.so"
    path.write_text("this is not a library")
    with pytest.raises(Exception, match=r"text\.so"):
        runtime.SessionOptions().register_custom_ops_library(str(path))
    options = runtime.SessionOptions()
    with pytest.raises(Exception, match="nothing"):
        options.register_custom_ops_library(str(tmp_path / "nothing.so"))
