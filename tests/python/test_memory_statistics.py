"""The file of session.collect_node_memory_stats_to_file, beside the one of ONNX Runtime."""

import csv

import numpy as np
import onnx
import onnxruntime
import pytest
import sardonyx
from onnx import TensorProto, helper, numpy_helper

OPTION = "session.collect_node_memory_stats_to_file"
FLOAT = TensorProto.FLOAT


def value(name, shape, kind=FLOAT):
    """An input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, weights=()):
    """Write a model of one graph."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)


def chain(path):
    """A node without name, one that leaves an input out, one with a comma in its name."""
    weight = numpy_helper.from_array(np.ones((256, 256), np.float32), "w")
    high = numpy_helper.from_array(np.float32(0.5), "high")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"]),
        helper.make_node("Clip", ["t", "", "high"], ["c"], name="clip"),
        helper.make_node("Add", ["c", "c"], ["y"], name="a,b"),
    ]
    save(path, nodes, [value("x", ["n", 256])], [value("y", ["n", 256])], [weight, high])
    return {"x": np.ones((64, 256), np.float32)}


def branches(path):
    """Nodes in the branches of an If, which use a value from around them."""
    bodies = {}
    for branch, op in (("then_branch", "Neg"), ("else_branch", "Relu")):
        node = helper.make_node(op, ["x"], [branch + "_y"], name="inner_" + op)
        bodies[branch] = helper.make_graph([node], branch, [], [value(branch + "_y", ["n", 8])])
    nodes = [helper.make_node("If", ["c"], ["y"], name="choice", **bodies)]
    inputs = [value("x", ["n", 8]), value("c", [], TensorProto.BOOL)]
    save(path, nodes, inputs, [value("y", ["n", 8])])
    return {"x": np.ones((4, 8), np.float32), "c": np.array(True)}


def collect(module, model, target, feed, **options):
    """The rows that one run writes."""
    chosen = module.SessionOptions()
    chosen.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    chosen.enable_mem_pattern = False
    chosen.add_session_config_entry(OPTION, str(target))
    session = module.InferenceSession(
        str(model), chosen, providers=["CPUExecutionProvider"], **options
    )
    session.run(None, feed)
    del session
    path = model.parent / target
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    rows = [line.rsplit(",", 4) for line in lines]
    return {row[0]: [int(number) for number in row[1:]] for row in rows}


@pytest.mark.parametrize("make", [chain, branches])
def test_keys_are_those_of_onnx_runtime(make, tmp_path):
    """Every row that ONNX Runtime writes is here, under the same key."""
    model = tmp_path / "m.onnx"
    feed = make(model)
    theirs = collect(onnxruntime, model, "theirs.csv", feed)
    ours = collect(sardonyx, model, "ours.csv", feed)
    assert set(theirs) <= set(ours)


def test_sizes_are_true(tmp_path):
    """Weights and inputs count, whatever the provider fuses."""
    model = tmp_path / "m.onnx"
    feed = chain(model)
    rows = collect(sardonyx, model, "s.csv", feed)
    by_name = {key.rsplit("_", 1)[0]: numbers for key, numbers in rows.items()}
    batch = 64 * 256 * 4
    assert by_name["MatMul"][:3] == [batch, 256 * 256 * 4, batch]
    assert by_name["clip"][:3] == [batch, 4, batch]
    assert by_name["a,b"][:3] == [batch, 0, batch]


def test_more_runs_keep_the_most(tmp_path):
    """A smaller run after a larger one changes nothing, a larger one does."""
    model = tmp_path / "m.onnx"
    chain(model)
    options = sardonyx.SessionOptions()
    options.add_session_config_entry(OPTION, "s.csv")
    session = sardonyx.InferenceSession(str(model), options)
    sizes = []
    for rows in (8, 2, 16):
        session.run(None, {"x": np.ones((rows, 256), np.float32)})
        with open(tmp_path / "s.csv", encoding="utf-8") as file:
            table = [line for line in csv.reader(file) if line and line[0].startswith("MatMul_")]
        sizes.append(int(table[0][1]))
    assert sizes == [8 * 1024, 8 * 1024, 16 * 1024]


@pytest.mark.parametrize("writer", [onnxruntime, sardonyx], ids=["onnxruntime", "sardonyx"])
def test_a_budget_reads_the_file_by_the_same_name(writer, tmp_path, capfd):
    """Both steps find it in the model's folder; no row is left over, and no node without one."""
    model = tmp_path / "m.onnx"
    feed = chain(model)
    collect(writer, model, "s.csv", feed)
    options = sardonyx.SessionOptions()
    options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry(
        "session.resource_partitioning_settings", "cpu(1GiB); statistics=s.csv"
    )
    sardonyx.InferenceSession(str(model), options).run(None, feed)
    assert "s.csv" not in capfd.readouterr().err


def test_rows_that_do_not_fit_are_named(tmp_path, capfd):
    """Rows of nodes that are not there, and nodes without rows."""
    model = tmp_path / "m.onnx"
    chain(model)
    (tmp_path / "s.csv").write_text("clip_1,1,2,3,4\nother_2,1,2,3,4\n")
    options = sardonyx.SessionOptions()
    options.add_session_config_entry(
        "session.resource_partitioning_settings", "cpu(1GiB); statistics=s.csv"
    )
    sardonyx.InferenceSession(str(model), options)
    words = capfd.readouterr().err
    assert "other_2" in words
    assert "'a,b' (Add)" in words
    assert "clip_1" not in words


def test_a_file_that_cannot_be_written_fails_the_session(tmp_path):
    """The folder is named before anything runs."""
    model = tmp_path / "m.onnx"
    chain(model)
    options = sardonyx.SessionOptions()
    options.add_session_config_entry(OPTION, str(tmp_path / "no" / "s.csv"))
    with pytest.raises(Exception, match="no/?'"):
        sardonyx.InferenceSession(str(model), options)


@pytest.mark.parametrize("content", [None, "a,1,2,3\n", "a,x,2,3,4\n"])
def test_the_cuda_option_fails_as_in_onnx_runtime(content, tmp_path):
    """A file that is not there, or no statistics."""
    model = tmp_path / "m.onnx"
    chain(model)
    if content is not None:
        (tmp_path / "s.csv").write_text(content)
    options = sardonyx.SessionOptions()
    options.add_session_config_entry("session.resource_cuda_partitioning_settings", ",s.csv")
    with pytest.raises(Exception, match=r": 1 : FAIL : .*s\.csv"):
        sardonyx.InferenceSession(str(model), options)
