"""Compile models with real vendor plugins, share their data, load and run them.

Each case runs in a process of its own and prints what it found; the vendors' packages are installed
as run.py does. The tool is bin/ep_weight_sharing_ctx_gen of the build. Models: four products of
1024 x 1024 with bias and Relu, for a batch of 1 and of 16, with the same weights in each file, or
in one common file. The environment variable RT names the module of the runtime.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from run import PLUGINS, install

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 300
SIZE = 1024
LAYERS = 4
BATCHES = (1, 16)
OPTIONS = {
    "qnn": {"backend_type": "htp", "soc_model": "60"},
    "openvino": PLUGINS["openvino"]["options"],
}
# The simulated accelerator computes in half precision.
TOLERANCE = {"qnn": 1e-4, "openvino": 1e-6}


def make_models(folder, external):
    """Models m0.onnx and m1.onnx; their weights in one common file if asked."""
    random = np.random.default_rng(0)
    weights = {}
    for layer in range(LAYERS):
        weights[f"w{layer}"] = (random.standard_normal((SIZE, SIZE)) * 0.03).astype(np.float32)
        weights[f"b{layer}"] = (random.standard_normal(SIZE) * 0.1).astype(np.float32)
    for index, batch in enumerate(BATCHES):
        nodes, value = [], "x"
        for i in range(LAYERS):
            nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"], f"/l{i}/mul"))
            nodes.append(helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"], f"/l{i}/add"))
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"r{i}"], f"/l{i}/act"))
            value = f"r{i}"
        nodes.append(helper.make_node("Softmax", [value], ["y"], "/head", axis=-1))
        graph = helper.make_graph(
            nodes,
            f"m{index}",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, SIZE])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, SIZE])],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        path = folder / f"m{index}.onnx"
        if external:
            (folder / "shared.bin").unlink(missing_ok=True)
            onnx.save(model, path, save_as_external_data=True, location="shared.bin")
        else:
            onnx.save(model, path)


class Flow:
    """One vendor's library in this process."""

    def __init__(self, vendor, library, folder):
        self.ort = importlib.import_module(os.environ.get("RT", "sardonyx"))
        self.vendor = vendor
        self.name = PLUGINS[vendor]["name"]
        self.library = library
        self.folder = folder
        self.ort.register_execution_provider_library(self.name, library)

    def options(self, **entries):
        """Session options with the vendor's devices."""
        options = self.ort.SessionOptions()
        devices = [d for d in self.ort.get_ep_devices() if d.ep_name == self.name]
        options.add_provider_for_devices(devices[:1], OPTIONS[self.vendor])
        for key, value in entries.items():
            options.add_session_config_entry(key.replace("__", "."), value)
        return options

    def compile(self, options, index, embed=False, write=None):
        """Compile a model as the published script does."""
        source = self.folder / f"m{index}.onnx"
        compiler = self.ort.ModelCompiler(
            options, str(source), embed_compiled_data_into_model=embed
        )
        if write is not None:
            compiler.set_ep_context_data_write_func(write)
        compiler.compile_to_file(str(self.folder / f"m{index}_ctx.onnx"))

    def check(self, index, **entries):
        """The largest difference of the compiled model from the source on the built-in provider."""
        return self.compare(index, self.options(**entries))

    def compare(self, index, options):
        """The same with these options."""
        ort, folder = self.ort, self.folder
        x = np.random.default_rng(1).standard_normal((BATCHES[index], SIZE)).astype(np.float32)
        plain = ort.InferenceSession(
            str(folder / f"m{index}.onnx"), providers=["CPUExecutionProvider"]
        )
        session = ort.InferenceSession(str(folder / f"m{index}_ctx.onnx"), options)
        wanted, actual = plain.run(None, {"x": x})[0], session.run(None, {"x": x})[0]
        error = float(np.abs(wanted - actual).max())
        if not error <= TOLERANCE[self.vendor]:
            raise RuntimeError(f"the largest difference is {error:.3g}")
        return f"{error:.1e}"

    def files(self):
        """Names and sizes of what was made."""
        made = [path for path in sorted(self.folder.iterdir()) if "_ctx" in path.name]
        return {path.name: path.stat().st_size for path in made}

    def end(self):
        """Unregister while options and compilers live."""
        self.ort.unregister_execution_provider_library(self.name)


def expect(condition, what):
    """Fail with a text."""
    if not condition:
        raise RuntimeError(what)


def alone(flow, embed=False):
    """Each model for itself; loaded and run."""
    for index in range(2):
        flow.compile(flow.options(), index, embed)
    expect((len(flow.files()) == 2) == embed, f"unexpected files: {flow.files()}")
    return {"files": flow.files(), "error": [flow.check(index) for index in range(2)]}


def embedded(flow):
    """The data inside the models."""
    return alone(flow, embed=True)


def shared(flow):
    """The published flow: one options object, stop before the last model."""
    options = flow.options(ep__share_ep_contexts="1")
    for index in range(2):
        if index == 1:
            options.add_session_config_entry("ep.stop_share_ep_contexts", "1")
        flow.compile(options, index)
    flow.end()
    return {"files": flow.files()}


def shared_by_options(flow):
    """The same by the entries of sessions."""
    for index in range(2):
        entries = {
            "ep__context_enable": "1",
            "ep__context_file_path": str(flow.folder / f"m{index}_ctx.onnx"),
            "ep__share_ep_contexts": "1",
        }
        if index == 1:
            entries["ep__stop_share_ep_contexts"] = "1"
        source = str(flow.folder / f"m{index}.onnx")
        flow.ort.InferenceSession(source, flow.options(**entries))
    return {"files": flow.files()}


def shared_external(flow):
    """Models that name one file of external data; loaded and run, in another order, twice."""
    made = shared_without_end(flow, stop=1)
    made["error"] = [flow.check(index, ep__share_ep_contexts="1") for index in (1, 0, 1)]
    made["without the entry"] = error_of(lambda: flow.check(0))
    return made


def tool(flow):
    """The tool of the build, as a script calls it; what it makes is loaded and run."""
    program = pathlib.Path(flow.ort.__file__).parents[2] / "bin/ep_weight_sharing_ctx_gen"
    sources = ",".join(str(flow.folder / f"m{index}.onnx") for index in range(2))
    library = pathlib.Path(flow.library)
    entries = [] if flow.vendor != "qnn" else ["-i", "backend_type|htp soc_model|60"]
    command = [program, "-e", flow.vendor, *entries, sources]
    environment = {**os.environ, "SARDONYX_PLUGIN_PATH": str(library.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"the tool ended with {done.returncode}: {done.stderr[-1000:]}")
    load = [error_of(lambda i=i: flow.check(i, ep__share_ep_contexts="1")) for i in (0, 1)]
    return {"files": flow.files(), "load": load}


def error_of(action):
    """The message of what it raises."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 (vendors raise what they like)
        return f"{type(error).__name__}: {error}"
    return "none"


def shared_and_loaded(flow):
    """Loading shared data: the vendor runs them, or it is said why not."""
    made = shared_without_end(flow, stop=1)
    made["load"] = [error_of(lambda i=i: flow.check(i, ep__share_ep_contexts="1")) for i in (0, 1)]
    return made


def shared_without_end(flow, stop=None):
    """A group that is never ended, or by the wrong model."""
    errors = []
    for index in range(2):
        options = flow.options(ep__share_ep_contexts="1")
        if index == stop:
            options.add_session_config_entry("ep.stop_share_ep_contexts", "1")
        errors.append(error_of(lambda i=index, o=options: flow.compile(o, i)))
    return {"files": flow.files(), "errors": errors}


def stop_missing(flow):
    """Never ended."""
    made = shared_without_end(flow)
    made["load"] = error_of(lambda: flow.check(0))
    flow.end()
    return {**made, "files at the end": flow.files()}


def stop_first(flow):
    """Ended by the first of the two."""
    made = shared_without_end(flow, stop=0)
    made["load"] = error_of(lambda: flow.check(1))
    flow.end()
    return {**made, "files at the end": flow.files()}


def shared_embedded(flow):
    """Shared and embedded, which exclude each other."""
    options = flow.options(ep__share_ep_contexts="1")
    error = error_of(lambda: flow.compile(options, 0, embed=True))
    expect(error != "none", "no error")
    return {"files": flow.files(), "error": error}


def functions(flow):
    """The data through functions of the program, in place of files."""
    kept = {}

    def write(name, data):
        kept[name] = kept.get(name, b"") + bytes(data)

    def read(name, buffer):
        memory = buffer.allocate(len(kept[name]))
        if memory is None:  # ONNX Runtime
            buffer.write(kept[name])
        else:
            memory[:] = kept[name]

    flow.compile(flow.options(), 0, write=write)
    expect(len(flow.files()) == 1, f"a file was written: {flow.files()}")
    options = flow.options()
    options.set_ep_context_data_read_func(read, 1 << 30)
    sizes = {name: len(data) for name, data in kept.items()}
    return {"files": flow.files(), "kept": sizes, "error": flow.compare(0, options)}


CASES = {
    "qnn": [alone, shared, shared_by_options, shared_and_loaded, stop_missing, stop_first,
            shared_embedded, functions, tool],
    "openvino": [alone, embedded, shared, shared_and_loaded, shared_external, functions, tool],
}  # fmt: skip


def run_case(vendor, library, case):
    """The result of one case in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        make_models(pathlib.Path(folder), external=case == "shared_external")
        command = [sys.executable, __file__, "--case", vendor, str(library), case, folder]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines or done.returncode != 0:
        return {"failed": f"ended with {done.returncode}: {done.stderr[-1500:]}"}
    result = json.loads(lines[-1][len("RESULT ") :])
    said = [line for line in done.stderr.splitlines() if "written" in line]
    return {**result, **({"log": said} if said else {})}


def main():
    """Run the cases of the vendors named on the command line, or of all."""
    if sys.argv[1:2] == ["--case"]:
        vendor, library, case, folder = sys.argv[2:]
        flow = Flow(vendor, library, pathlib.Path(folder))
        print("RESULT " + json.dumps(globals()[case](flow)), flush=True)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vendors", nargs="*", help="qnn, openvino; default: both")
    parser.add_argument("--cases", nargs="*", help="names; default: all")
    default = pathlib.Path.home() / ".cache" / "sardonyx" / "plugins"
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages go")
    arguments = parser.parse_args()
    failed = 0
    for vendor in arguments.vendors or CASES:
        plugin = PLUGINS[vendor]
        library = install(plugin, arguments.cache / plugin["package"])
        if library is None:
            print(f"{vendor:10} not run: {plugin['package']} cannot be installed here")
            continue
        os.environ["SARDONYX_HARDWARE_DEVICES"] = plugin.get("devices", "")
        for case in CASES[vendor]:
            if arguments.cases and case.__name__ not in arguments.cases:
                continue
            result = run_case(vendor, library, case.__name__)
            failed += "failed" in result
            print(f"{vendor:10} {case.__name__}")
            for key, value in result.items():
                print(f"{'':10}   {key}: {value}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
