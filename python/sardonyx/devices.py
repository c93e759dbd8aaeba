"""Devices, memory, allocators, plugin libraries."""

import os

from . import _native
from .enums import (
    OrtAllocatorType,
    OrtCompiledModelCompatibility,
    OrtDeviceMemoryType,
    OrtHardwareDeviceType,
    OrtMemType,
)

__all__ = [
    "LoraAdapter",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtEpDevice",
    "OrtHardwareDevice",
    "OrtMemoryInfo",
    "OrtSyncStream",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_ep_devices",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
    "register_execution_provider_library",
    "unregister_execution_provider_library",
]

DEVICE_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "hip": 1, "fpga": 2,
                "npu": 3, "cann": 3}  # fmt: skip


class OrtDevice:
    """A place where tensors live: a kind of device and its number."""

    def __init__(self, device_type, device_id=0, vendor_id=0, memory_type=0):
        if isinstance(device_type, OrtDevice):
            other = device_type
            device_type, device_id = other._type, other._id
            vendor_id, memory_type = other._vendor, other._memory
        self._type = device_type
        self._id = device_id
        self._vendor = vendor_id
        self._memory = memory_type

    @staticmethod
    def make(ort_device_name, device_id=0, vendor_id=-1):
        """Return the device of that name: 'cpu', 'gpu', 'npu', ..."""
        kind = DEVICE_TYPES.get(str(ort_device_name).lower())
        if kind is None:
            known = ", ".join(DEVICE_TYPES)
            raise ValueError(f"Unsupported device type: {ort_device_name}; known are {known}")
        return OrtDevice(kind, device_id, max(int(vendor_id), 0))

    @staticmethod
    def cpu():
        """Return the type of ordinary memory, as a number."""
        return 0

    @staticmethod
    def cuda():
        """Return the type of a graphics processor, as a number."""
        return 1

    @staticmethod
    def default_memory():
        """Return the default memory type, as a number."""
        return 0

    def device_type(self):
        """Kind of device as a number: 0 CPU, 1 GPU, 2 FPGA, 3 NPU."""
        return self._type

    def device_id(self):
        """Which one of several devices of the kind."""
        return self._id

    def device_mem_type(self):
        """Kind of memory as a number: 0 the device's own, 5 memory that the host can read."""
        return self._memory

    def device_vendor_id(self):
        """PCI number of the vendor, 0 when it does not matter."""
        return self._vendor

    def _get_c_device(self):
        return self

    def __repr__(self):
        return f"OrtDevice(type={self._type}, id={self._id}, vendor=0x{self._vendor:04x})"


class OrtMemoryInfo:
    """Which memory an allocator serves."""

    def __init__(self, name, allocator_type, device_id, mem_type):
        self._native = _native.MemoryInfo.make(
            name, int(allocator_type), int(device_id), int(mem_type)
        )

    @classmethod
    def _from_native(cls, native):
        made = cls.__new__(cls)
        made._native = native
        return made

    @staticmethod
    def create_v2(name, device_type, vendor_id, device_id, mem_type, alignment, allocator_type):
        """Describe memory of any device, with its vendor and alignment."""
        native = _native.MemoryInfo.make_v2(
            name, int(device_type), int(vendor_id), int(device_id), int(mem_type),
            int(alignment), int(allocator_type),
        )  # fmt: skip
        return OrtMemoryInfo._from_native(native)

    name = property(lambda self: self._native.name, doc="Name of the memory, for example 'Cpu'.")
    device_id = property(lambda self: self._native.device_id, doc="Number of the device.")
    device_vendor_id = property(lambda self: self._native.device_vendor_id, doc="PCI vendor.")
    mem_type = property(lambda self: OrtMemType(self._native.mem_type), doc="Use of the memory.")
    allocator_type = property(
        lambda self: OrtAllocatorType(self._native.allocator_type), doc="Kind of allocator."
    )
    device_mem_type = property(
        lambda self: OrtDeviceMemoryType(self._native.device_mem_type),
        doc="Whether the host can read it.",
    )

    def __repr__(self):
        return f"OrtMemoryInfo(name={self.name!r}, device_id={self.device_id})"


class OrtArenaCfg:
    """Settings of an arena. Give the four sizes in order, or a dict of settings by name."""

    _NAMES = (
        "max_mem",
        "arena_extend_strategy",
        "initial_chunk_size_bytes",
        "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes",
        "max_power_of_two_extend_bytes",
    )

    def __init__(self, *values, **settings):
        if len(values) == 1 and isinstance(values[0], dict):
            settings = {**values[0], **settings}
        else:
            settings = {**dict(zip(self._NAMES, values)), **settings}
        unknown = sorted(set(settings) - set(self._NAMES))
        if unknown:
            known = ", ".join(self._NAMES)
            raise ValueError(f"Invalid OrtArenaCfg key found: {unknown[0]}; known are {known}")
        for name in self._NAMES:
            setattr(self, name, int(settings.get(name, 0 if name == "max_mem" else -1)))

    def _as_dict(self):
        values = {name: getattr(self, name) for name in self._NAMES}
        return {name: value for name, value in values.items() if value >= 0}


class OrtHardwareDevice:
    """A processor of this machine."""

    def __init__(self, native):
        self._native = native

    type = property(lambda self: OrtHardwareDeviceType(self._native.type), doc="CPU, GPU or NPU.")
    vendor_id = property(lambda self: self._native.vendor_id, doc="PCI number of the vendor.")
    vendor = property(lambda self: self._native.vendor, doc="Name of the vendor.")
    device_id = property(lambda self: self._native.device_id, doc="PCI number of the device.")
    metadata = property(lambda self: self._native.metadata, doc="What else is known, as a dict.")

    def __repr__(self):
        return f"OrtHardwareDevice(type={self.type.name}, vendor={self.vendor!r})"


class OrtSyncStream:
    """A queue of work on a device."""

    def __init__(self, native):
        self._native = native

    def get_handle(self):
        """Return the address of the device's own stream object."""
        return self._native.get_handle()


class OrtEpDevice:
    """A provider together with a device that it can use."""

    def __init__(self, native):
        self._native = native

    ep_name = property(lambda self: self._native.ep_name, doc="Name of the provider.")
    ep_vendor = property(lambda self: self._native.ep_vendor, doc="Who made the provider.")
    ep_metadata = property(lambda self: self._native.ep_metadata, doc="What it tells about itself.")
    ep_options = property(lambda self: self._native.ep_options, doc="Its default options.")
    device = property(lambda self: OrtHardwareDevice(self._native.device), doc="The device.")

    def memory_info(self, mem_type):
        """Return the OrtMemoryInfo of the device's memory of a type, or None."""
        return self._native.memory_info(int(mem_type))

    def create_sync_stream(self):
        """Make a stream on the device."""
        return OrtSyncStream(self._native.create_sync_stream())

    def __repr__(self):
        return f"OrtEpDevice(ep_name={self.ep_name!r}, device={self.device!r})"


class LoraAdapter:
    """Weights that are added to a model for some runs; see RunOptions.add_active_adapter."""

    def __init__(self):
        self._native = None

    def Load(self, path):
        """Read the adapter from a file."""
        self._native = _native.Adapter.load(os.fspath(path))


def get_ep_devices():
    """Every provider with every device it can use, those of registered plugins included."""
    return _native.get_ep_devices()


def get_hardware_devices():
    """The processors of this machine that the runtime knows about."""
    return [OrtHardwareDevice(device) for device in _native.get_hardware_devices()]


def register_execution_provider_library(registration_name, library_path):
    """Load a plugin library with execution providers, under a name of your choice."""
    _native.register_library(registration_name, os.fspath(library_path))


def unregister_execution_provider_library(registration_name):
    """Unload a plugin library. All sessions that use it must be gone."""
    _native.unregister_library(registration_name)


def get_compatibility_info_from_model(model_path, ep_type):
    """What a compiled model notes for a provider about itself; "" if it notes nothing."""
    return _native.model_compatibility(os.fspath(model_path), None, ep_type)


def get_compatibility_info_from_model_bytes(model_data, ep_type):
    """As get_compatibility_info_from_model, for the bytes of a model."""
    return _native.model_compatibility(None, bytes(model_data), ep_type)


def get_model_compatibility_for_ep_devices(devices, compatibility_info):
    """Verdict of the provider of the devices on a compiled model's note."""
    verdict = _native.device_compatibility(list(devices), compatibility_info)
    return OrtCompiledModelCompatibility(verdict)


def create_and_register_allocator(mem_info, arena_cfg=None):
    """Make an allocator that sessions share if they set session.use_env_allocators."""
    _native.register_allocator(mem_info, arena_cfg._as_dict() if arena_cfg else None)


def create_and_register_allocator_v2(provider_type, mem_info, options=None, arena_cfg=None):
    """As create_and_register_allocator, for the memory of a provider."""
    arena = arena_cfg._as_dict() if arena_cfg else None
    _native.register_allocator_v2(provider_type, mem_info, options or {}, arena)


def copy_tensors(src, dst, stream=None):
    """Copy tensors, between devices too; both are lists of OrtValues of equal length."""
    _native.copy_tensors(list(src), list(dst), stream._native if stream else None)
