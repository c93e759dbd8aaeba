"""Load real vendor plugin libraries into Sardonyx and ONNX Runtime, and run a model on each.

So are the build's own: the CPU provider as a plugin, and the example. Vendor packages are installed
by name into a cache folder outside the tree, once. Each plugin runs in a process of its own, once
per runtime; a row says how far it came: register, devices, session (nodes on the plugin), run
(the largest error against the built-in provider), unregister. The last line of a plugin is the
largest difference between the outputs of the two. What this machine cannot install or has no device
for is listed as not run.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
STEPS = ("register", "devices", "session", "run", "unregister")
TIMEOUT_S = 300
TOLERANCE = 1e-4
RUNTIMES = ("sardonyx", "onnxruntime")
BUILD = HERE.parents[1] / "build" / "release"

PLUGINS = {
    "ggml": {
        "package": "onnxruntime-ggml==0.2.0",
        "library": "onnxruntime_ggml/lib/libonnxruntime_ggml.so",
        "name": "GGMLExecutionProvider",
        "options": {"device": "cpu"},
    },
    "qnn": {
        "package": "onnxruntime-qnn==2.7.0",
        "library": "**/libonnxruntime_providers_qnn.so",
        "name": "QNNExecutionProvider",
        "options": {"backend_type": "htp"},
    },
    "openvino": {
        "package": "onnxruntime-ep-openvino==1.8.1",
        "library": "**/libonnxruntime_providers_openvino_plugin.so",
        "name": "OpenVINOExecutionProvider",
        # On processors with bfloat16 it would compute in that.
        "options": {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'},
        "devices": "cpu:vendor=0x8086",
        "present": {"PRESENT_VENDOR": "0x8086"},
    },
    "webgpu": {
        "package": "onnxruntime-ep-webgpu==0.4.0",
        "library": "**/libonnxruntime_providers_webgpu.so",
        "name": "WebGpuExecutionProvider",
        "devices": "gpu:vendor=0x1ae0",
        "present": {"PRESENT_TYPE": "gpu", "PRESENT_VENDOR": "0x1ae0"},
        "needs": "swiftshader",
    },
    "sardonyx": {
        "built": "lib/libsardonyx_ep.so",
        "name": "Sardonyx",
        "ep_names": ["SardonyxExecutionProvider"],
    },
    "example": {"built": "lib/libexample_plugin_ep.so", "name": "ExampleExecutionProvider"},
}


def make_model(path):
    """Four layers of MatMul, Add and Relu, then Softmax."""
    random = np.random.default_rng(3)
    nodes = []
    weights = []
    value = "x"
    for layer in range(4):
        for name, shape, scale in (("w", (64, 64), 0.1), ("b", (64,), 1.0)):
            array = (random.standard_normal(shape) * scale).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"{name}{layer}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{layer}"], [f"m{layer}"], f"mm{layer}"))
        nodes.append(
            helper.make_node("Add", [f"m{layer}", f"b{layer}"], [f"a{layer}"], f"ad{layer}")
        )
        nodes.append(helper.make_node("Relu", [f"a{layer}"], [f"r{layer}"], f"re{layer}"))
        value = f"r{layer}"
    nodes.append(helper.make_node("Softmax", [value], ["y"], "softmax", axis=-1))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)


def library_of(plugin, arguments):
    """The path of a plugin's library, and why there is none."""
    if "built" in plugin:
        path = arguments.build.resolve() / plugin["built"]
        return (path, None) if path.exists() else (None, f"{path} is not built")
    path = install(plugin, arguments.cache / plugin["package"])
    return path, None if path else f"{plugin['package']} cannot be installed here"


def install(plugin, folder):
    """Install the package into its folder of the cache, and return the path of the library."""
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        partial = folder.with_suffix(".partial")
        done = subprocess.run([*command, str(partial), plugin["package"]], check=False)
        if done.returncode != 0:
            return None
        partial.rename(folder)
    found = sorted(folder.glob(plugin["library"]))
    return found[0] if found else None


def unpack_debian(package, cache, folder):
    """Download a Debian package by name and unpack it; an error message, or None."""
    debs = cache / "debs"
    debs.mkdir(exist_ok=True)
    if not list(debs.glob(f"{package}_*.deb")):
        try:
            done = subprocess.run(
                ["apt-get", "download", package], cwd=debs, capture_output=True, check=False
            )
        except FileNotFoundError:
            return "apt-get is not there"
        if done.returncode != 0:
            return f"apt-get download {package} failed"
    deb = max(debs.glob(f"{package}_*.deb"))
    done = subprocess.run(["dpkg", "-x", str(deb), str(folder)], capture_output=True, check=False)
    return None if done.returncode == 0 else f"dpkg -x {deb.name} failed"


def swiftshader(cache):
    """Environment variables with which Vulkan runs on the processor, and why there are none."""
    folder = cache / "swiftshader"
    for package in ("chromium-common", "libvulkan1"):
        if error := unpack_debian(package, cache, folder):
            return {}, error
    drivers = sorted(folder.glob("**/vk_swiftshader_icd.json"))
    loaders = sorted(folder.glob("**/libvulkan.so.1"))
    if not drivers or not loaders:
        return {}, "the packages have no libvk_swiftshader.so or no libvulkan.so.1"
    paths = [str(loaders[0].parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        "VK_ICD_FILENAMES": str(drivers[0]),
        "LD_LIBRARY_PATH": ":".join(path for path in paths if path),
    }, None


NEEDS = {"swiftshader": swiftshader}


def build_presenter(cache, headers):
    """Build the library that presents the processor as other hardware; an error message or None."""
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-I{headers}"]
    source, target = HERE / "present.c", cache / "libpresent.so"
    try:
        done = subprocess.run(
            [*command, str(source), "-o", str(target)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return f"{command[0]} is not there"
    return None if done.returncode == 0 else done.stderr[:500]


def environment_of(plugin, library, runtime, cache):
    """Path of the library to register, and the variables with which its device is there."""
    environment = {**os.environ, "RT": runtime}
    if runtime == "sardonyx" and "devices" in plugin:
        environment["SARDONYX_HARDWARE_DEVICES"] = plugin["devices"]
    if runtime == "onnxruntime" and "present" in plugin:
        environment.update(plugin["present"], PRESENT_LIBRARY=str(library))
        library = cache / "libpresent.so"
    return library, environment


def run_plugin(plugin, library, runtime, arguments, extra):
    """Steps that the plugin passed in a runtime, by name, and the outputs of its runs."""
    cache = arguments.cache
    outputs = cache / f"outputs-{os.getpid()}.npz"
    library, environment = environment_of(plugin, library, runtime, cache)
    row = {**plugin, "library": str(library), "outputs": str(outputs)}
    row.update(model=str(cache / "mlp.onnx"), models=arguments.models)
    command = [sys.executable, str(HERE / "check.py"), json.dumps(row)]
    try:
        done = subprocess.run(
            command,
            env={**environment, **extra},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end after {TIMEOUT_S} s"}, {}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    result = json.loads(lines[-1][len("RESULT ") :]) if lines else {"error": done.stderr[-2000:]}
    if done.returncode != 0:
        result.setdefault(
            "error", f"the process ended with {done.returncode}: {done.stderr[-500:]}"
        )
    if not outputs.exists():
        return result, {}
    with np.load(outputs) as file:
        arrays = dict(file)
    outputs.unlink()
    return result, arrays


def difference(name, ours, theirs):
    """Print the largest difference between two runtimes' outputs; False when it is too large."""
    if ours.keys() != theirs.keys():
        print(f"{name:10} the runtimes ran different models: {sorted(ours)} and {sorted(theirs)}")
        return False
    worst = 0.0
    for key, array in theirs.items():
        wanted = np.asarray(array, np.float64)
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        if ours[key].shape != wanted.shape:
            worst = np.inf
            continue
        worst = max(worst, float(np.abs(ours[key] - wanted).max(initial=0)) / scale)
    print(f"{name:10} largest difference of the two runtimes: {worst:.1e}")
    return worst <= TOLERANCE


def compare(name, plugin, library, arguments, extra):
    """Run a plugin in all runtimes and print the rows; False when it does not pass in ours."""
    found = {}
    for runtime in arguments.runtimes:
        result, outputs = run_plugin(plugin, library, runtime, arguments, extra)
        print(
            f"{name:10} {runtime:12} " + "  ".join(f"{key} {result.get(key, '-')}" for key in STEPS)
        )
        for key in result.keys() - {*STEPS, "error"}:
            print(f"{'':23} {key}: {result[key]}")
        if "error" in result:
            print(f"{'':23} {result['error']}")
            if runtime == "sardonyx":
                return False
        else:
            found[runtime] = outputs
    if len(found) < 2:
        return True
    return difference(name, found["sardonyx"], found["onnxruntime"])


def main():
    """Run the plugins named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugins", nargs="*", choices=[[], *PLUGINS], help="default: all")
    default = pathlib.Path.home() / ".cache" / "sardonyx" / "plugins"
    parser.add_argument(
        "--models", nargs="*", default=[], help="models with NAME.feed.npz and NAME.expected.npz"
    )
    parser.add_argument(
        "--runtimes", nargs="*", default=RUNTIMES, choices=RUNTIMES, help="default: both"
    )
    parser.add_argument("--build", type=pathlib.Path, default=BUILD, help="build folder")
    parser.add_argument("--cache", type=pathlib.Path, default=default, help="where packages go")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    make_model(arguments.cache / "mlp.onnx")
    if error := build_presenter(arguments.cache, arguments.build / "generated/include"):
        print(f"ONNX Runtime sees no other hardware than there is: {error}")
    failed = 0
    for name in arguments.plugins or PLUGINS:
        plugin = PLUGINS[name]
        library, reason = library_of(plugin, arguments)
        extra = {}
        if reason is None and "needs" in plugin:
            extra, reason = NEEDS[plugin["needs"]](arguments.cache)
        if reason is not None:
            print(f"{name:10} not run: {reason}")
            continue
        failed += not compare(name, plugin, library, arguments, extra)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
