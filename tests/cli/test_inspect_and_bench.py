"""sardonyx inspect and sardonyx bench."""

import json


def test_inspect_counts_what_is_there(sardonyx, linear):
    """Inputs, outputs, operators, weights and metadata of the JSON form."""
    model = json.loads(sardonyx("inspect", linear, "--json").stdout)
    assert model["opset_imports"] == {"ai.onnx": 21}
    assert model["producer_name"] == "tests"
    assert model["metadata"] == {"author": "somebody"}
    assert model["inputs"] == [
        {"name": "x", "type": "tensor(float)", "shape": ["batch", 3]},
        {"name": "k", "type": "tensor(int64)", "shape": [1]},
    ]
    assert model["node_count"] == 3
    assert {row["op_type"]: row["count"] for row in model["operators"]} == {
        "MatMul": 1,
        "Cast": 1,
        "Add": 1,
    }
    assert model["initializers"]["count"] == 1
    (weight,) = model["initializers"]["largest"]
    assert (weight["name"], weight["shape"], weight["bytes"]) == ("w", [3, 2], 24)
    assert weight["origin"]["length"] == 24


def test_inspect_as_text(sardonyx, linear):
    """The same for people."""
    done = sardonyx("inspect", linear)
    assert done.returncode == 0
    for part in ("tensor(float)", "[batch,3]", "MatMul", "24 bytes", "author: somebody"):
        assert part in done.stdout


def test_bench_measures_each_number_of_threads(sardonyx, linear):
    """Percentiles in order, and the number of runs that was asked for."""
    done = sardonyx("bench", linear, "-t", "1,2", "-n", 20, "--warmup", 1, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [row["threads"] for row in report["results"]] == [1, 2]
    for row in report["results"]:
        assert row["runs"] == 20
        times = [row[key] for key in ("min_ms", "median_ms", "p90_ms", "p99_ms")]
        assert 0 < times[0]
        assert times == sorted(times)
        assert row["load_ms"] > 0
        assert row["memory_growth"]["load_and_runs"]["rss_bytes"] > 0
    assert report["build"]["isa"]["active"] in report["build"]["isa"]["supported"]


def test_bench_as_text_takes_the_time_it_is_given(sardonyx, linear):
    """One row, and no bar when stderr is no terminal."""
    done = sardonyx("bench", linear, "-t", 1, "--seconds", 0.2)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "median" in done.stdout
