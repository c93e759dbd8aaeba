"""Reports about builds, models, plans and memory; random numbers by seed."""

import numpy as np
import sardonyx
from models import TensorProto, matmul, model_of, node, relu, value


def test_the_build_says_what_it_runs_on():
    """Version, instruction sets, opsets."""
    build = sardonyx.describe_build()
    assert build["isa"]["active"] in build["isa"]["supported"]
    assert build["opsets"]["ai.onnx"] >= 26


def test_options_have_keys_and_sentences():
    """Each row explains itself."""
    rows = sardonyx.describe_options()
    keys = [row["key"] for row in rows]
    assert "session.use_ort_model_bytes_directly" in keys
    assert len(set(keys)) == len(keys)
    assert all(row["description"].endswith(".") for row in rows)


def test_a_model_is_described_without_loading_it(tmp_path):
    """Inputs, weights and where they stand in the file."""
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    path = tmp_path / "m.onnx"
    path.write_bytes(matmul(weights))
    model = sardonyx.describe_model(path)
    assert model["inputs"][0] == {"name": "x", "type": "tensor(float)", "shape": ["batch", 3]}
    assert model["inputs"][1]["has_default"]
    origin = model["initializers"]["largest"][0]["origin"]
    stored = path.read_bytes()[origin["offset"] : origin["offset"] + origin["length"]]
    assert stored == weights.tobytes()


def test_a_plan_and_a_session_name_the_device_of_each_node(tmp_path, session_of):
    """The same nodes in both."""
    path = tmp_path / "m.onnx"
    path.write_bytes(relu())
    for report in (sardonyx.plan_model(path), session_of(relu()).describe()):
        assert [row["name"] for row in report["nodes"]] == ["the_relu"]
        assert report["nodes"][0]["device"] == "CPUExecutionProvider"
        assert report["nodes"][0]["reason"]
        assert report["memory"]["arena_bytes"] >= 0


def test_memory_of_the_process_is_counted():
    """Anonymous memory is a part of what is resident."""
    process = sardonyx.describe_memory()["process"]
    assert 0 < process["anonymous_bytes"] <= process["rss_bytes"]


def test_a_seed_makes_random_operators_repeatable(session_of):
    """The same numbers after the same seed, others without."""
    model = model_of(
        [node("RandomNormal", [], ["y"], shape=[8])], [], [value("y", TensorProto.FLOAT, [8])]
    )
    session = session_of(model)

    def draw(seed=None):
        if seed is not None:
            sardonyx.set_seed(seed)
        return session.run(None, {})[0].tolist()

    first = draw(7)
    second = draw()
    assert first != second
    assert [draw(7), draw()] == [first, second]
    assert draw(8) != first
