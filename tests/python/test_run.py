"""What goes into run() and what comes out."""

import threading
import time

import models
import numpy as np
import pytest
import sardonyx
from models import TensorProto
from sardonyx import errors

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
EXPECTED = np.array([[1, 0, 3], [0, 5, 0]], np.float32)


def test_outputs_come_as_arrays_in_the_order_of_the_names(session_of):
    session = session_of(models.two_outputs())
    x = np.array([2, 3], np.float32)
    b, a = session.run(["b", "a"], {"x": x})
    np.testing.assert_array_equal(a, [4, 6])
    np.testing.assert_array_equal(b, [4, 9])
    assert [y.tolist() for y in session.run(None, {"x": x})] == [[4, 6], [4, 9]]
    assert [y.tolist() for y in session.run([], {"x": x})] == [[4, 6], [4, 9]]


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(X, id="dense"),
        pytest.param(np.asfortranarray(X), id="column order"),
        pytest.param(np.repeat(X, 2, axis=0)[::2], id="every other row"),
        pytest.param(X[:, ::-1][:, ::-1], id="reversed twice"),
        pytest.param(X.astype(">f4"), id="foreign byte order"),
        pytest.param(np.frombuffer(b"\0" + X.tobytes(), np.float32, 6, 1).reshape(2, 3), id="odd"),
    ],
)
def test_any_memory_layout_can_be_fed(session_of, array):
    (y,) = session_of(models.relu()).run(None, {"x": array})
    np.testing.assert_array_equal(y, EXPECTED)
    assert y.dtype == np.float32


def test_a_read_only_array_can_be_fed_and_is_not_changed(session_of):
    x = X.copy()
    x.setflags(write=False)
    (y,) = session_of(models.relu()).run(None, {"x": x})
    np.testing.assert_array_equal(y, EXPECTED)
    np.testing.assert_array_equal(x, X)


def test_numbers_without_a_dtype_take_the_declared_type(session_of):
    (y,) = session_of(models.relu()).run(None, {"x": [[1, -2, 3]]})
    np.testing.assert_array_equal(y, [[1, 0, 3]])
    (y,) = session_of(models.relu([])).run(None, {"x": 2.5})
    assert y.shape == ()
    assert y.dtype == np.float32
    assert float(y) == 2.5


def test_a_tensor_without_dimensions_keeps_them(session_of):
    (y,) = session_of(models.relu([])).run(None, {"x": np.float32(-1)})
    assert isinstance(y, np.ndarray)
    assert y.shape == ()


def test_an_empty_tensor_can_be_fed(session_of):
    (y,) = session_of(models.relu()).run(None, {"x": np.zeros((0, 3), np.float32)})
    assert y.shape == (0, 3)


def test_outputs_belong_to_the_caller(session_of):
    session = session_of(models.relu())
    (first,) = session.run(None, {"x": X})
    (second,) = session.run(None, {"x": -X})
    del session
    first[0, 0] = 100
    np.testing.assert_array_equal(second, np.maximum(-X, 0))
    assert first.flags.writeable


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16]
    + [np.uint32, np.uint64, np.bool_],
)
def test_every_plain_type_goes_through(session_of, dtype):
    from onnx import helper

    x = np.array([0, 1, 1, 0]).astype(dtype)
    (y,) = session_of(models.identity(helper.np_dtype_to_tensor_dtype(x.dtype))).run(None, {"x": x})
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x)


def test_strings_go_in_as_text_bytes_or_objects_and_come_out_as_str(session_of):
    session = session_of(models.identity(TensorProto.STRING))
    for x in (
        np.array(["a", "grün", ""]),
        np.array(["a", "grün", ""], object),
        np.array([b"a", "grün".encode(), b""], object),
        ["a", "grün", ""],
    ):
        (y,) = session.run(None, {"x": x})
        assert y.dtype == object
        assert y.tolist() == ["a", "grün", ""]


def test_a_string_may_hold_a_zero_byte(session_of):
    (y,) = session_of(models.identity(TensorProto.STRING)).run(None, {"x": np.array(["a\0b", "c"])})
    assert y.tolist() == ["a\0b", "c"]


def test_an_overridable_initializer_can_be_fed(session_of):
    session = session_of(models.matmul(np.eye(3, dtype=np.float32)))
    assert [port.name for port in session.get_inputs()] == ["x"]
    assert [port.name for port in session.get_overridable_initializers()] == ["w"]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X)
    doubled = 2 * np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": X, "w": doubled})[0], 2 * X)


# --- errors


def test_a_missing_feed_is_named_with_its_type(session_of):
    session = session_of(models.two_inputs())
    with pytest.raises(ValueError, match=r"missing.*'second' \(tensor\(float\)") as raised:
        session.run(None, {"first": np.ones(2, np.float32)})
    assert isinstance(raised.value, errors.InvalidArgument)


def test_a_misspelt_feed_gets_a_suggestion(session_of):
    session = session_of(models.two_inputs())
    ones = np.ones(2, np.float32)
    with pytest.raises(
        errors.InvalidArgument, match="Invalid input name: secnd, did you mean 'second'"
    ):
        session.run(None, {"first": ones, "second": ones, "secnd": ones})


def test_a_misspelt_output_gets_a_suggestion(session_of):
    session = session_of(models.two_outputs())
    with pytest.raises(errors.InvalidArgument, match="Invalid output name: c"):
        session.run(["c"], {"x": np.ones(2, np.float32)})
    with pytest.raises(TypeError, match="list of names"):
        session.run("a", {"x": np.ones(2, np.float32)})


def test_a_wrong_type_is_an_error_that_names_both(session_of):
    with pytest.raises(errors.InvalidArgument) as raised:
        session_of(models.relu()).run(None, {"x": X.astype(np.float64)})
    assert "double" in str(raised.value)
    assert "float" in str(raised.value)
    assert str(raised.value).startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ")


def test_a_wrong_shape_is_an_error_that_names_the_input(session_of):
    session = session_of(models.relu())
    with pytest.raises(errors.InvalidArgument, match="x"):
        session.run(None, {"x": X[0]})
    with pytest.raises(errors.InvalidArgument, match="4"):
        session.run(None, {"x": np.ones((2, 4), np.float32)})


def test_none_is_no_tensor(session_of):
    with pytest.raises(TypeError, match="'x' expects an array for tensor"):
        session_of(models.relu()).run(None, {"x": None})


def test_an_array_of_a_type_that_no_model_knows_is_refused(session_of):
    with pytest.raises(TypeError, match="datetime64"):
        session_of(models.relu()).run(None, {"x": np.array(["2020-01-01"], "datetime64[D]")})


# --- several threads


def test_one_session_runs_from_many_threads(session_of):
    session = session_of(models.relu())
    wrong = []

    def work(number):
        x = np.full((4, 3), number, np.float32)
        for _ in range(50):
            (y,) = session.run(None, {"x": x})
            if not (y == max(number, 0)).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(-4, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_other_threads_go_on_while_a_model_runs_and_terminate_stops_it(session_of):
    session = session_of(models.long_loop())
    options = sardonyx.RunOptions()
    raised = []

    def work():
        try:
            session.run(None, {"x": np.zeros(1, np.float32)}, options)
        except errors.Error as error:
            raised.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    options.terminate = True
    thread.join(10)
    assert not thread.is_alive()
    assert "terminate flag is set" in raised[0]


def test_run_async_calls_back_with_outputs(session_of):
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 2
    session = session_of(models.relu(), options)
    done = threading.Event()
    seen = []

    def callback(outputs, user_data, error):
        seen.append((outputs, user_data, error))
        done.set()

    session.run_async(None, {"x": X}, callback, "mine")
    assert done.wait(10)
    outputs, user_data, error = seen[0]
    np.testing.assert_array_equal(outputs[0], EXPECTED)
    assert user_data == "mine"
    assert error == ""
