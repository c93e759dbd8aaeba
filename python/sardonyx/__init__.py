"""Sardonyx: run ONNX models.

>>> import sardonyx
>>> session = sardonyx.InferenceSession("model.onnx")
>>> (y,) = session.run(None, {"x": x})

Names and behaviour are those of the package onnxruntime, so code written for it runs with
``import sardonyx as onnxruntime``. What is different: types that numpy lacks (bfloat16, float8,
int4, ...) go in and out of run() as ml_dtypes arrays; sessions and options can be pickled; a
provider that cannot be had is an error; messages name what was expected and what was found.
"""

from . import _native, errors
from .binding import IOBinding
from .compiler import (
    ModelCompiler,
    OrtEpContextData,
    OrtEpContextDataBuffer,
    OrtExternalInitializerInfo,
)
from .devices import (
    LoraAdapter,
    OrtArenaCfg,
    OrtDevice,
    OrtEpDevice,
    OrtHardwareDevice,
    OrtMemoryInfo,
    OrtSyncStream,
    copy_tensors,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_compatibility_info_from_model,
    get_compatibility_info_from_model_bytes,
    get_ep_devices,
    get_hardware_devices,
    get_model_compatibility_for_ep_devices,
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from .enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtCompileApiFlags,
    OrtCompiledModelCompatibility,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
    OrtWeightlessSupport,
)
from .environment import (
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from .inspect import (
    describe_build,
    describe_context,
    describe_memory,
    describe_model,
    describe_options,
    plan_model,
    suggest_patterns,
)
from .options import RunOptions, SessionOptions
from .placement import Plan, plan
from .refit import refit
from .runtime import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    preload_dlls,
)
from .session import (
    InferenceSession,
    ModelMetadata,
    NodeArg,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
)
from .sparse import SparseTensor

OrtValue = _native.OrtValue
SessionIOBinding = IOBinding

__version__ = get_version_string()

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtCompiledModelCompatibility",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "OrtWeightlessSupport",
    "Plan",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "describe_build",
    "describe_context",
    "describe_memory",
    "describe_model",
    "describe_options",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "errors",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_device",
    "get_ep_devices",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
    "get_version_string",
    "plan",
    "plan_model",
    "preload_dlls",
    "refit",
    "register_execution_provider_library",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "suggest_patterns",
    "unregister_execution_provider_library",
]
