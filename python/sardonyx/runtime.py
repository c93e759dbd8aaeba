"""What the runtime is and can do."""

from . import _native

__all__ = [
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "preload_dlls",
]


def get_version_string():
    """Release of ONNX Runtime whose interface this is."""
    return _native.version_string()


def get_build_info():
    """How the runtime library was built, as one line of text."""
    return _native.build_info()


def get_device():
    """Kind of device that the package is made for."""
    return "CPU"


def get_available_providers():
    """Execution providers that a session can ask for by name, by preference."""
    return _native.get_available_providers()


def get_all_providers():
    """Every provider name that can be had, registered plugins included."""
    names = list(_native.get_available_providers())
    names += [device.ep_name for device in _native.get_ep_devices() if device.ep_name not in names]
    return list(dict.fromkeys(names))


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Do nothing: the runtime needs no libraries loaded beforehand."""


def enable_telemetry_events():
    """Do nothing: this runtime sends no telemetry."""


def disable_telemetry_events():
    """Do nothing: this runtime sends no telemetry."""
