"""Making sessions and asking them about themselves."""

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import models
import numpy as np
import onnx
import pytest
import sardonyx
from sardonyx import errors

CPU = "CPUExecutionProvider"
X = np.array([[1, -2, 3]], np.float32)


def test_a_model_comes_as_path_bytes_or_message(tmp_path):
    path = tmp_path / "grün.onnx"
    path.write_bytes(models.relu())
    message = onnx.load_from_string(models.relu())
    for model in (path, str(path), models.relu(), bytearray(models.relu()), message):
        session = sardonyx.InferenceSession(model)
        assert session.run(None, {"x": X})[0].tolist() == [[1, 0, 3]]
    with pytest.raises(TypeError, match="int"):
        sardonyx.InferenceSession(3)


def test_a_session_describes_its_interface(session_of):
    session = session_of(models.relu(["batch", 3, None]))
    (port,) = session.get_inputs()
    assert (port.name, port.type, port.shape) == ("x", "tensor(float)", ["batch", 3, None])
    assert repr(port) == "NodeArg(name='x', type='tensor(float)', shape=['batch', 3, None])"
    assert [output.name for output in session.get_outputs()] == ["y"]
    assert session.get_overridable_initializers() == []


def test_metadata_of_the_model(session_of):
    message = onnx.load_from_string(models.relu())
    message.producer_name = "a producer"
    message.domain = "a.domain"
    message.doc_string = "about it"
    message.model_version = 7
    message.graph.doc_string = "about the graph"
    onnx.helper.set_model_props(message, {"key": "value", "other": "grün"})
    metadata = session_of(message.SerializeToString()).get_modelmeta()
    assert metadata.producer_name == "a producer"
    assert metadata.domain == "a.domain"
    assert metadata.description == "about it"
    assert metadata.version == 7
    assert metadata.graph_name == "graph"
    assert metadata.graph_description == "about the graph"
    assert metadata.custom_metadata_map == {"key": "value", "other": "grün"}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(errors.NoSuchFile, match=r"nothing\.onnx") as raised:
        sardonyx.InferenceSession(tmp_path / "nothing.onnx")
    assert isinstance(raised.value, FileNotFoundError)


def test_bytes_that_are_no_model_are_refused():
    with pytest.raises(errors.Error):
        sardonyx.InferenceSession(b"no model at all")
    with pytest.raises(errors.Error):
        sardonyx.InferenceSession(b"")


def test_an_input_without_element_type_is_refused():
    model = onnx.load_from_string(models.relu())
    model.graph.input[0].type.tensor_type.elem_type = 0
    with pytest.raises(errors.Error, match="'x' is declared as a tensor without element type"):
        sardonyx.InferenceSession(model.SerializeToString())


def test_an_invalid_graph_is_refused():
    model = models.model_of(
        [models.node("Relu", ["nowhere"], ["y"])],
        [],
        [models.value("y", models.TensorProto.FLOAT, [1])],
    )
    with pytest.raises(errors.Error, match="nowhere"):
        sardonyx.InferenceSession(model)


def test_an_unknown_operator_is_named():
    model = models.model_of(
        [models.node("NoSuchOperator", ["x"], ["y"])],
        [models.value("x", models.TensorProto.FLOAT, [1])],
        [models.value("y", models.TensorProto.FLOAT, [1])],
    )
    with pytest.raises(errors.Error, match="NoSuchOperator"):
        sardonyx.InferenceSession(model)


# --- providers


def test_the_cpu_provider_is_always_there():
    assert CPU in sardonyx.get_available_providers()
    session = sardonyx.InferenceSession(models.relu())
    assert session.get_providers() == [CPU]
    assert session.get_provider_options() == {CPU: {}}


def test_a_provider_that_cannot_be_had_is_an_error_with_a_suggestion():
    with pytest.raises(errors.EPFail, match="did you mean 'CPUExecutionProvider'"):
        sardonyx.InferenceSession(models.relu(), providers=["CPUExecutionProvder"])


def test_a_provider_that_cannot_be_had_is_a_warning_if_the_cpu_is_listed():
    with pytest.warns(UserWarning, match="NoSuchExecutionProvider"):
        session = sardonyx.InferenceSession(
            models.relu(), providers=["NoSuchExecutionProvider", CPU]
        )
    assert session.get_providers() == [CPU]


def test_providers_and_options_must_match():
    with pytest.raises(ValueError, match="same length"):
        sardonyx.InferenceSession(models.relu(), providers=[CPU], provider_options=[{}, {}])
    with pytest.raises(ValueError, match="without providers"):
        sardonyx.InferenceSession(models.relu(), provider_options=[{}])
    with pytest.warns(UserWarning, match="Duplicate"):
        sardonyx.InferenceSession(models.relu(), providers=[CPU, CPU])


def test_providers_can_be_set_again(session_of):
    session = session_of(models.relu())
    session.set_providers([CPU])
    assert session.run(None, {"x": X})[0].tolist() == [[1, 0, 3]]


# --- options


def test_options_have_the_known_defaults():
    options = sardonyx.SessionOptions()
    assert options.graph_optimization_level == sardonyx.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert options.execution_mode == sardonyx.ExecutionMode.ORT_SEQUENTIAL
    assert options.execution_order == sardonyx.ExecutionOrder.DEFAULT
    assert options.intra_op_num_threads == 0
    assert options.inter_op_num_threads == 0
    assert options.log_severity_level == -1
    assert options.enable_cpu_mem_arena
    assert options.enable_mem_pattern
    assert options.enable_mem_reuse
    assert not options.enable_profiling
    assert options.profile_file_prefix == "onnxruntime_profile_"
    assert options.use_per_session_threads


def test_a_misspelt_option_is_an_error_with_a_suggestion():
    options = sardonyx.SessionOptions()
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        options.intra_op_num_thread = 2
    with pytest.raises(AttributeError, match="did you mean 'logid'"):
        options.log_id  # noqa: B018


def test_config_entries_can_be_read_back():
    options = sardonyx.SessionOptions()
    options.add_session_config_entry("session.disable_prepacking", "1")
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    with pytest.raises(RuntimeError, match="session.no_such_key"):
        options.get_session_config_entry("session.no_such_key")
    with pytest.raises(RuntimeError, match="empty"):
        options.add_session_config_entry("", "1")
    with pytest.raises(TypeError, match="strings"):
        options.add_session_config_entry("key", 1)


@pytest.mark.parametrize("level", list(sardonyx.GraphOptimizationLevel))
def test_every_level_gives_the_same_result(session_of, level):
    options = sardonyx.SessionOptions()
    options.graph_optimization_level = level
    assert session_of(models.relu(), options).run(None, {"x": X})[0].tolist() == [[1, 0, 3]]


def test_an_output_can_be_asked_for_twice(session_of):
    first, second = session_of(models.relu()).run(["y", "y"], {"x": X})
    assert first.tolist() == second.tolist() == [[1, 0, 3]]
    first[:] = 7
    assert second.tolist() == [[1, 0, 3]]


def test_free_dimensions_can_be_fixed_by_what_they_stand_for():
    message = onnx.load_from_string(models.relu(["batch", 3]))
    message.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = sardonyx.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 5)
    session = sardonyx.InferenceSession(message.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [5, 3]


def test_free_dimensions_can_be_fixed():
    options = sardonyx.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 5)
    session = sardonyx.InferenceSession(models.relu(), options)
    assert session.get_inputs()[0].shape == [5, 3]


def test_an_initializer_can_be_given():
    weights = np.full((3, 2), 2, np.float32)
    message = onnx.load_from_string(models.matmul(np.zeros((3, 2), np.float32)))
    del message.graph.input[1]
    options = sardonyx.SessionOptions()
    options.add_initializer("w", sardonyx.OrtValue.ortvalue_from_numpy(weights))
    session = sardonyx.InferenceSession(message.SerializeToString(), options)
    assert session.run(None, {"x": np.ones((1, 3), np.float32)})[0].tolist() == [[6, 6]]


def test_external_weights_can_be_given(tmp_path):
    weights = np.full((300, 2), 2, np.float32)
    message = onnx.load_from_string(models.matmul(weights))
    del message.graph.input[1]
    onnx.save(message, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    stripped = (tmp_path / "m.onnx").read_bytes()
    options = sardonyx.SessionOptions()
    values = [sardonyx.OrtValue.ortvalue_from_numpy(3 * weights)]
    options.add_external_initializers(["w"], values)
    session = sardonyx.InferenceSession(stripped, options)
    assert session.run(None, {"x": np.ones((1, 300), np.float32)})[0].tolist() == [[1800, 1800]]


def test_external_data_is_found_beside_the_model(tmp_path):
    weights = np.full((300, 2), 2, np.float32)
    message = onnx.load_from_string(models.matmul(weights))
    onnx.save(message, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    session = sardonyx.InferenceSession(tmp_path / "m.onnx")
    assert session.run(None, {"x": np.ones((1, 300), np.float32)})[0].tolist() == [[600, 600]]


def test_the_optimised_model_can_be_written(tmp_path):
    options = sardonyx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    sardonyx.InferenceSession(models.relu(), options)
    written = onnx.load(tmp_path / "optimised.onnx")
    assert [port.name for port in written.graph.output] == ["y"]


def test_profiling_writes_a_trace(tmp_path):
    options = sardonyx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = sardonyx.InferenceSession(models.relu(), options)
    session.run(None, {"x": X})
    assert session.get_profiling_start_time_ns() > 0
    path = Path(session.end_profiling())
    events = json.loads(path.read_text())
    assert any("the_relu" in event["name"] for event in events)


def test_a_session_that_goes_writes_its_trace(tmp_path):
    options = sardonyx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = sardonyx.InferenceSession(models.relu(), options)
    session.run(None, {"x": X})
    del session
    (path,) = tmp_path.iterdir()
    assert any("the_relu" in event["name"] for event in json.loads(path.read_text()))


def test_profiling_ends_once(tmp_path):
    options = sardonyx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = sardonyx.InferenceSession(models.relu(), options)
    assert session.end_profiling() != ""
    session.run(None, {"x": X})
    assert session.end_profiling() == ""
    del session
    assert len(list(tmp_path.iterdir())) == 1


def test_the_log_can_go_to_a_function(session_of):
    seen = []
    sardonyx.set_default_logger_callback(lambda *arguments: seen.append(arguments))
    try:
        model = models.model_of(
            [models.node("Relu", ["x"], ["y"])],
            [models.value("x", models.TensorProto.FLOAT, [2, 3])],
            [models.value("y", models.TensorProto.FLOAT, [4, 4])],  # a wrong declaration
        )
        session_of(model)
    finally:
        sardonyx.set_default_logger_callback(None)
    assert seen
    level, _, _, _, message = seen[0]
    assert level == 2
    assert "4" in message


def test_a_custom_library_that_is_missing_is_named(tmp_path):
    options = sardonyx.SessionOptions()
    with pytest.raises(errors.Error, match="nothing"):
        options.register_custom_ops_library(tmp_path / "nothing.so")


# --- life and death


def test_a_session_goes_when_the_last_reference_does(session_of):
    session = session_of(models.relu())
    gone = weakref.ref(session)
    del session
    assert gone() is None, gc.get_referrers(gone())


def test_sessions_can_be_pickled(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(models.relu())
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_prepacking", "1")
    for model in (path, models.relu()):
        session = sardonyx.InferenceSession(model, options, providers=[CPU])
        again = pickle.loads(pickle.dumps(session))
        assert again.run(None, {"x": X})[0].tolist() == [[1, 0, 3]]
        assert again.get_session_options().intra_op_num_threads == 1
        entry = again.get_session_options().get_session_config_entry("session.disable_prepacking")
        assert entry == "1"


def test_options_can_be_copied_and_pickled():
    options = sardonyx.SessionOptions()
    options.logid = "one"
    for again in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        again.logid = "two"
        assert options.logid == "one"


def run_script(text, *arguments):
    """Standard output of a Python process that runs a text."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return done.stdout


def test_a_forked_child_can_run_and_drop_a_session(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(models.relu())
    script = """
import os, sys
import numpy as np
import sardonyx

options = sardonyx.SessionOptions()
options.intra_op_num_threads = 1
x = np.array([[1, -2, 3]], np.float32)
session = sardonyx.InferenceSession(sys.argv[1], options)
session.run(None, {"x": x})
child = os.fork()
if child == 0:
    good = session.run(None, {"x": x})[0].tolist() == [[1, 0, 3]]
    os._exit(0 if good else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run_script(script, str(path)).strip() == "0"


def test_a_process_may_end_with_sessions_and_pending_runs(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(models.relu())
    script = """
import sys
import numpy as np
import sardonyx

options = sardonyx.SessionOptions()
options.intra_op_num_threads = 2
session = sardonyx.InferenceSession(sys.argv[1], options)
value = sardonyx.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))
for _ in range(20):
    session.run_async(None, {"x": np.ones((2, 3), np.float32)}, lambda *_: None, None)
print("end")
"""
    assert run_script(script, str(path)).strip() == "end"
