"""LoRA adapters: their parameters are inputs of the runs that name them."""

import numpy as np
import pytest
import sardonyx
from onnx import TensorProto, helper

# Parameters w = [[0, 1, 2], [3, 4, 5]] and b = [5, 6, 7], as ONNX Runtime 1.32.0 exports them.
ADAPTER = bytes.fromhex(
    "08000000544f5254a8ffffff01000000070000000900000004000000020000004c00000004000000c8ffffff2c00"
    "00001c00000001000000040000000c0000000000a0400000c0400000e04001000000030000000000000001000000"
    "620000000c001400040008000c0010000c0000004000000028000000010000000400000018000000000000000000"
    "803f0000004000004040000080400000a04002000000020000000000000003000000000000000100000077000000"
)
X = np.array([[1, 2]], np.float32)


def model():
    """Bytes of y = x w + b, where w and b may be fed."""

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["y"]),
    ]
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [2, 3], [0.0] * 6),
        helper.make_tensor("b", TensorProto.FLOAT, [3], [1.0] * 3),
    ]
    inputs = [value("x", [1, 2]), value("w", [2, 3]), value("b", [3])]
    graph = helper.make_graph(nodes, "adapted", inputs, [value("y", [1, 3])], weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def load(path, content):
    """Adapter from a file with that content."""
    path.write_bytes(content)
    adapter = sardonyx.LoraAdapter()
    adapter.Load(str(path))
    return adapter


def test_an_adapter_changes_the_runs_that_name_it(session_of, tmp_path):
    session = session_of(model())
    options = sardonyx.RunOptions()
    options.add_active_adapter(load(tmp_path / "a.onnx_adapter", ADAPTER))
    assert session.run(None, {"x": X})[0].tolist() == [[1, 1, 1]]
    assert session.run(None, {"x": X}, options)[0].tolist() == [[11, 15, 19]]
    assert session.run(None, {"x": X})[0].tolist() == [[1, 1, 1]]


def test_an_adapter_wins_over_what_is_fed(session_of, tmp_path):
    options = sardonyx.RunOptions()
    options.add_active_adapter(load(tmp_path / "a.onnx_adapter", ADAPTER))
    feeds = {"x": X, "b": np.zeros(3, np.float32)}
    assert session_of(model()).run(None, feeds, options)[0].tolist() == [[11, 15, 19]]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 12, 60, len(ADAPTER) - 4])
def test_a_file_that_is_cut_short_is_refused(tmp_path, size):
    with pytest.raises(Exception, match="adapter"):
        load(tmp_path / "short.onnx_adapter", ADAPTER[:size])


def test_no_change_of_a_byte_does_harm(session_of, tmp_path):
    """Each is refused, or gives an adapter that a run takes or refuses."""
    session = session_of(model())
    outcomes = set()
    for i in range(len(ADAPTER)):
        changed = bytearray(ADAPTER)
        changed[i] ^= 0xFF
        try:
            adapter = load(tmp_path / f"{i}.onnx_adapter", bytes(changed))
            options = sardonyx.RunOptions()
            options.add_active_adapter(adapter)
            session.run(None, {"x": X}, options)
            outcomes.add("ran")
        except Exception as error:  # noqa: BLE001
            assert str(error)
            outcomes.add("refused")
    assert outcomes == {"ran", "refused"}
