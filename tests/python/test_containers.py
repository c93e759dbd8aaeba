"""Sequences, maps and optionals."""

import models
import numpy as np
import pytest
from models import TensorProto, node, value
from onnx import helper
from sardonyx import errors

A = np.array([1, 2], np.float32)
B = np.array([3], np.float32)


def sequence_input(name):
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def test_a_sequence_is_a_list_of_arrays(session_of):
    model = models.model_of(
        [node("SequenceInsert", ["s", "x"], ["t"])],
        [sequence_input("s"), value("x", TensorProto.FLOAT, [None])],
        [sequence_input("t")],
    )
    session = session_of(model)
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    (result,) = session.run(None, {"s": [A, B], "x": A})
    assert [item.tolist() for item in result] == [[1, 2], [3], [1, 2]]


def test_a_sequence_may_be_empty(session_of):
    model = models.model_of(
        [node("SequenceInsert", ["s", "x"], ["t"])],
        [sequence_input("s"), value("x", TensorProto.FLOAT, [None])],
        [sequence_input("t")],
    )
    (result,) = session_of(model).run(None, {"s": [], "x": A})
    assert [item.tolist() for item in result] == [[1, 2]]


def test_the_items_of_a_sequence_are_checked(session_of):
    model = models.model_of(
        [node("SequenceAt", ["s", "i"], ["t"])],
        [sequence_input("s"), value("i", TensorProto.INT64, [])],
        [value("t", TensorProto.FLOAT, [None])],
    )
    session = session_of(model)
    assert session.run(None, {"s": [A, B], "i": 1})[0].tolist() == [3]
    with pytest.raises(errors.Error, match="float"):
        session.run(None, {"s": [A.astype(np.int8)], "i": 0})
    with pytest.raises(errors.Error, match="float"):
        session.run(None, {"s": [A, B.astype(np.int8)], "i": 1})


def test_a_sequence_wants_a_list(session_of):
    model = models.model_of(
        [node("SequenceLength", ["s"], ["n"])],
        [sequence_input("s")],
        [value("n", TensorProto.INT64, [])],
    )
    session = session_of(model)
    assert session.run(None, {"s": (A, B, A)})[0] == 3
    with pytest.raises(TypeError, match=r"'s' expects a list for seq\(tensor\(float\)\)"):
        session.run(None, {"s": A})


def test_a_sequence_of_maps_is_a_list_of_dicts(session_of):
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        )
    )
    model = models.model_of(
        [node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[10, 20])],
        [value("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_value_info("z", kind)],
    )
    session = session_of(model)
    assert session.get_outputs()[0].type == "seq(map(int64,tensor(float)))"
    (result,) = session.run(None, {"x": np.array([[1, 2], [3, 4]], np.float32)})
    assert result == [{10: 1.0, 20: 2.0}, {10: 3.0, 20: 4.0}]


def test_a_map_is_a_dict(session_of):
    kind = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    model = models.model_of(
        [node("DictVectorizer", ["d"], ["v"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])],
        [helper.make_value_info("d", kind)],
        [value("v", TensorProto.FLOAT, [1, 2])],
    )
    session = session_of(model)
    assert session.run(None, {"d": {"b": 2, "a": 1.5}})[0].tolist() == [[1.5, 2]]
    with pytest.raises(TypeError, match="'d' expects a dict"):
        session.run(None, {"d": [1]})


def test_an_optional_may_be_left_out_or_none(session_of):
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    model = models.model_of(
        [node("OptionalHasElement", ["x"], ["y"])],
        [helper.make_value_info("x", kind)],
        [value("y", TensorProto.BOOL, [])],
    )
    session = session_of(model)
    assert session.get_inputs()[0].type == "optional(tensor(float))"
    assert session.run(None, {"x": A})[0].tolist() is True
    assert session.run(None, {"x": None})[0].tolist() is False
    assert session.run(None, {})[0].tolist() is False
