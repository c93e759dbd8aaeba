"""Compiling for plugin libraries, by the compiler and by session options: the example library."""

import json
import textwrap

import onnx
import pytest
from test_own_plugin import HOSTS, outputs_in
from test_plugin_contexts import check_outputs, model, run  # noqa: F401

COMPILER = """
def options_for(entries=None):
    device = next(d for d in ort.get_ep_devices() if d.ep_name == ep_name)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    options.add_provider_for_devices([device], {})
    return options
"""


def operators(path):
    """The nodes of a compiled model, in order."""
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize("embed", ["0", "1"])
@pytest.mark.parametrize("way", ["session", "compiler"])
def test_parts_of_a_library_become_nodes(way, embed, model, tmp_path):  # noqa: F811
    """What is written runs here and in ONNX Runtime, without the source."""
    script = f"""
    if "{way}" == "session":
        making["ep.context_embed_mode"] = "{embed}"
        save(open_session(entries=making).run(None, feeds()))
    else:
        ort.ModelCompiler(options_for(), model, {embed} == 1).compile_to_file(compiled)
    """
    run("sardonyx", model[0], tmp_path, COMPILER + textwrap.dedent(script))
    if way == "session":
        check_outputs(tmp_path, model[1])
    made = tmp_path / "m_ctx.onnx"
    assert operators(made) == ["EPContext", "Softmax", "EPContext"]
    metadata = {item.key: item.value for item in onnx.load(made).metadata_props}
    assert metadata["ep_compatibility_info.EP"]
    assert not list(tmp_path.glob("sardonyx_weights.bin"))
    assert len(list(tmp_path.glob("*.bin"))) == (1 if embed == "0" else 0)
    model[0].unlink()
    for host in HOSTS:
        (tmp_path / "outputs.npz").unlink(missing_ok=True)
        run(host, made, tmp_path, "save(open_session().run(None, feeds()))")
        check_outputs(tmp_path, model[1])


def test_parts_of_the_cpu_are_compiled_beside_others_when_asked_for(model, tmp_path):  # noqa: F811
    script = """
    options = options_for({"sardonyx.compile_cpu_parts": "1"})
    ort.ModelCompiler(options, model).compile_to_file(compiled)
    save(open_session(model=compiled).run(None, feeds()))
    """
    run("sardonyx", model[0], tmp_path, COMPILER + textwrap.dedent(script))
    check_outputs(tmp_path, model[1])
    assert operators(tmp_path / "m_ctx.onnx") == ["EPContext"] * 3


def test_the_flow_that_shares_weights_runs_as_it_is_published(model, tmp_path):  # noqa: F811
    """One options object for all models, changed before the last; the library goes first."""
    (tmp_path / "n.onnx").write_bytes(model[0].read_bytes())
    script = """
    options = options_for({"ep.share_ep_contexts": "1"})
    models = [model, folder + "/n.onnx"]
    compilers = []
    for index, source in enumerate(models):
        if index == len(models) - 1:
            options.add_session_config_entry("ep.stop_share_ep_contexts", "1")
        compilers.append(ort.ModelCompiler(options, source, embed_compiled_data_into_model=False))
        compilers[-1].compile_to_file(source.replace(".onnx", "_ctx.onnx"))
    ort.unregister_execution_provider_library(name)
    """
    run("sardonyx", model[0], tmp_path, COMPILER + textwrap.dedent(script))
    assert len(list(tmp_path.glob("*.bin"))) == 1
    for name in ("m_ctx.onnx", "n_ctx.onnx"):
        script = "save(open_session(entries={'ep.share_ep_contexts': '1'}).run(None, feeds()))"
        run("sardonyx", tmp_path / name, tmp_path, script)
        check_outputs(tmp_path, model[1])


def test_a_compiler_outlives_the_registration_of_its_library(model, tmp_path):  # noqa: F811
    """It works on, or says that the library is gone."""
    script = """
    compiler = ort.ModelCompiler(options_for(), model)
    ort.unregister_execution_provider_library(name)
    print(json.dumps(error_of(lambda: compiler.compile_to_file(compiled))))
    """
    error = json.loads(run("sardonyx", model[0], tmp_path, COMPILER + textwrap.dedent(script)))
    assert error == "" or "was unregistered" in error
    assert error == "" or not (tmp_path / "m_ctx.onnx").exists()


@pytest.mark.parametrize("host", HOSTS)
def test_compiling_while_loading_can_be_forbidden(host, model, tmp_path):  # noqa: F811
    script = """
    entries = {"session.disable_model_compile": "1"}
    print(json.dumps(error_of(lambda: open_session(entries=entries))))
    """
    error = json.loads(run(host, model[0], tmp_path, script))
    assert error.startswith("ModelRequiresCompilation")
    script = "save(open_session(entries={'session.disable_model_compile': '1'}).run(None, feeds()))"
    run("sardonyx", model[0], tmp_path, "open_session(entries=making)")
    run(host, tmp_path / "m_ctx.onnx", tmp_path, script)
    assert len(outputs_in(tmp_path)) == 1


@pytest.mark.parametrize("flags, refused", [("3", False), ("1", True)])
@pytest.mark.parametrize("host", HOSTS)
def test_data_of_a_library_go_to_a_function(host, flags, refused, model, tmp_path):  # noqa: F811
    """If the provider says that it calls it: bit 2 of what it answers."""
    script = f"""
    device = next(d for d in ort.get_ep_devices() if d.ep_name == ep_name)
    options = ort.SessionOptions()
    options.add_provider_for_devices([device], {{"data_support": "{flags}"}})
    kept = {{}}
    compiler = ort.ModelCompiler(options, model)
    compiler.set_ep_context_data_write_func(lambda name, data: kept.update({{name: data.read()}}))
    text = error_of(lambda: compiler.compile_to_file(compiled))
    for name, data in kept.items():
        open(os.path.join(folder, name), "wb").write(data)
    print(json.dumps([text, list(kept)]))
    """
    text, kept = json.loads(run(host, model[0], tmp_path, script))
    if refused:
        assert "does not support the registered EPContext data write callback" in text
        assert not (tmp_path / "m_ctx.onnx").exists()
        return
    assert (text, len(kept)) == ("", 1)
    run(host, tmp_path / "m_ctx.onnx", tmp_path, "save(open_session().run(None, feeds()))")
    check_outputs(tmp_path, model[1])
