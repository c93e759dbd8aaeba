"""The CPU provider as a plugin library, for ONNX Runtime and whatever else loads such libraries.

>>> import onnxruntime
>>> from sardonyx import plugin
>>> onnxruntime.register_execution_provider_library("Sardonyx", plugin.library_path())
>>> devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == plugin.ep_name()]
>>> options = onnxruntime.SessionOptions()
>>> options.add_provider_for_devices(devices[:1], {})
>>> session = onnxruntime.InferenceSession("model.onnx", sess_options=options)

The functions that begin with ``get_`` are those that packages of such libraries usually have.
"""

from pathlib import Path

__all__ = ["ep_name", "get_ep_name", "get_ep_names", "get_library_path", "library_path"]


def library_path():
    """Absolute path of libsardonyx_ep.so, which comes with this package."""
    path = Path(__file__).resolve().parent / "lib" / "libsardonyx_ep.so"
    if not path.exists():
        # In a build tree the modules are links to the sources.
        path = Path(__file__).absolute().parent / "lib" / "libsardonyx_ep.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: was the package built without it?")
    return str(path)


def ep_name():
    """Name of the provider in the library, whatever name it is registered under."""
    return "SardonyxExecutionProvider"


def get_library_path():
    """As library_path()."""
    return library_path()


def get_ep_name():
    """As ep_name()."""
    return ep_name()


def get_ep_names():
    """Names of all providers in the library."""
    return [ep_name()]
