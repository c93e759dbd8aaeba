"""Options of providers that are not built in; the hardware; what plugins can ask of operators."""

import ctypes

import pytest
from interface import Failure

NOT_BUILT_IN = "load the plugin instead"
# Functions of a vendor's options, and an entry of them.
VENDORS = [
    (
        "CreateCUDAProviderOptions",
        "UpdateCUDAProviderOptions",
        "GetCUDAProviderOptionsAsString",
        "ReleaseCUDAProviderOptions",
        "SessionOptionsAppendExecutionProvider_CUDA_V2",
        "device_id=3",
    ),
    (
        "CreateTensorRTProviderOptions",
        "UpdateTensorRTProviderOptions",
        "GetTensorRTProviderOptionsAsString",
        "ReleaseTensorRTProviderOptions",
        "SessionOptionsAppendExecutionProvider_TensorRT_V2",
        "device_id=3",
    ),
    (
        "CreateCANNProviderOptions",
        "UpdateCANNProviderOptions",
        "GetCANNProviderOptionsAsString",
        "ReleaseCANNProviderOptions",
        "SessionOptionsAppendExecutionProvider_CANN",
        "device_id=3",
    ),
    (
        "CreateDnnlProviderOptions",
        "UpdateDnnlProviderOptions",
        "GetDnnlProviderOptionsAsString",
        "ReleaseDnnlProviderOptions",
        "SessionOptionsAppendExecutionProvider_Dnnl",
        "use_arena=0",
    ),
    (
        "CreateROCMProviderOptions",
        "UpdateROCMProviderOptions",
        "GetROCMProviderOptionsAsString",
        "ReleaseROCMProviderOptions",
        "SessionOptionsAppendExecutionProvider_ROCM",
        "device_id=3",
    ),
]


@pytest.mark.parametrize(("create", "update", "show", "release", "append", "entry"), VENDORS)
def test_options_of_a_vendor_are_kept_printed_and_refused(
    api, options, allocator, create, update, show, release, append, entry
):
    made = api.make(create)
    key, value = entry.split("=")
    getattr(api, update)(made, [key], [value], 1)
    text = api.text(show, made, allocator, allocator=allocator)
    assert entry in text.split(";")
    with pytest.raises(Failure) as error:
        getattr(api, append)(options, made)
    assert NOT_BUILT_IN in error.value.message
    getattr(api, release)(made)


def test_values_of_pointers_are_kept(api):
    made = api.make("CreateTensorRTProviderOptions")
    place = ctypes.c_int(1)
    api.UpdateTensorRTProviderOptionsWithValue(made, "user_compute_stream", ctypes.addressof(place))
    found = api.make("GetTensorRTProviderOptionsByName", made, "user_compute_stream")
    assert found.value == ctypes.addressof(place)
    api.ReleaseTensorRTProviderOptions(made)


def test_old_option_structs_are_refused(api, options):
    struct = (ctypes.c_uint64 * 64)()
    for append in (
        api.SessionOptionsAppendExecutionProvider_CUDA,
        api.SessionOptionsAppendExecutionProvider_OpenVINO,
        api.SessionOptionsAppendExecutionProvider_TensorRT,
        api.SessionOptionsAppendExecutionProvider_MIGraphX,
    ):
        with pytest.raises(Failure) as error:
            append(options, struct)
        assert NOT_BUILT_IN in error.value.message


def test_providers_by_keys_are_refused(api, options):
    for append in (
        api.SessionOptionsAppendExecutionProvider_OpenVINO_V2,
        api.SessionOptionsAppendExecutionProvider_VitisAI,
    ):
        with pytest.raises(Failure) as error:
            append(options, ["device_type"], ["CPU"], 1)
        assert NOT_BUILT_IN in error.value.message


def test_no_gpu_is_current(api):
    for call in (lambda: api.SetCurrentGpuDeviceId(0), lambda: api.number("GetCurrentGpuDeviceId")):
        with pytest.raises(Failure):
            call()


def test_the_processor_is_a_hardware_device(api, env):
    count = api.number("GetNumHardwareDevices", env)
    assert count >= 1
    devices = (ctypes.c_void_p * count)()
    api.GetHardwareDevices(env, devices, count)
    assert 0 in [api.HardwareDevice_Type(ctypes.c_void_p(device)) for device in devices]
    details = api.make(
        "GetHardwareDeviceEpIncompatibilityDetails",
        env,
        "CPUExecutionProvider",
        ctypes.c_void_p(devices[0]),
    )
    assert api.number("DeviceEpIncompatibilityDetails_GetReasonsBitmask", details) == 0
    assert api.number("DeviceEpIncompatibilityDetails_GetErrorCode", details) == 0
    api.make("DeviceEpIncompatibilityDetails_GetNotes", details)
    api.ReleaseDeviceEpIncompatibilityDetails(details)


def test_a_program_can_make_a_hardware_device(api):
    ep_api = api.table("OrtEpApi")
    pairs = ctypes.c_void_p()
    api.CreateKeyValuePairs(ctypes.byref(pairs))
    api.AddKeyValuePair(pairs, "one", "1")
    api.AddKeyValuePair(pairs, "two", "2")
    api.RemoveKeyValuePair(pairs, "one")
    device = api.make("CreateHardwareDevice", 2, 0x1234, 7, "Tests", pairs, table="OrtEpApi")
    api.ReleaseKeyValuePairs(pairs)
    assert api.HardwareDevice_Type(device) == 2
    assert api.HardwareDevice_VendorId(device) == 0x1234
    assert api.HardwareDevice_DeviceId(device) == 7
    metadata = ctypes.c_void_p(api.HardwareDevice_Metadata(device))
    assert ctypes.string_at(api.GetKeyValue(metadata, "two")) == b"2"
    assert api.GetKeyValue(metadata, "one") is None
    ep_api.ReleaseHardwareDevice(device)


def test_plugins_can_read_what_an_operator_is(api):
    ep_api = api.table("OrtEpApi")

    def number(name, *arguments):
        return api.number(name, *arguments, table="OrtEpApi")

    def text(name, *arguments):
        return api.text(name, *arguments, table="OrtEpApi")

    schema = api.make("GetOpSchema", "Where", 17, "", table="OrtEpApi")
    assert number("OpSchema_GetSinceVersion", schema) == 16
    assert number("OpSchema_GetNumInputs", schema) == 3
    assert number("OpSchema_GetNumOutputs", schema) == 1
    assert len({text("OpSchema_GetInputName", schema, i) for i in range(3)}) == 3
    assert text("OpSchema_GetOutputName", schema, 0)
    with pytest.raises(Failure):
        text("OpSchema_GetInputName", schema, 3)
    of_x = api.make("OpSchema_GetInputTypeConstraint", schema, 1, table="OrtEpApi")
    of_output = api.make("OpSchema_GetOutputTypeConstraint", schema, 0, table="OrtEpApi")
    assert of_x.value == of_output.value
    assert text("OpSchemaTypeConstraint_GetTypeParamName", of_x) == "T"
    for name, indices in (
        ("OpSchemaTypeConstraint_GetInputIndices", [1, 2]),
        ("OpSchemaTypeConstraint_GetOutputIndices", [0]),
    ):
        found, count = ctypes.c_void_p(), ctypes.c_size_t()
        api.call("OrtEpApi", name, of_x, ctypes.byref(found), ctypes.byref(count))
        assert ctypes.cast(found, ctypes.POINTER(ctypes.c_size_t))[: count.value] == indices
    assert "tensor(float)" in api.texts(
        "OpSchemaTypeConstraint_GetAllowedTypes", of_x, table="OrtEpApi"
    )
    ep_api.ReleaseOpSchema(schema)


def test_a_kernel_definition_says_what_it_was_given(api):
    ep_api = api.table("OrtEpApi")
    builder = api.make("CreateKernelDefBuilder", table="OrtEpApi")
    ep_api.KernelDefBuilder_SetOperatorType(builder, "Mul")
    ep_api.KernelDefBuilder_SetDomain(builder, "tests")
    ep_api.KernelDefBuilder_SetSinceVersion(builder, 7, 12)
    ep_api.KernelDefBuilder_SetExecutionProvider(builder, "TestProvider")
    ep_api.KernelDefBuilder_SetInputMemType(builder, 1, -1)
    ep_api.KernelDefBuilder_SetOutputMemType(builder, 0, -2)
    aliases = (ctypes.c_int * 1)(0), (ctypes.c_int * 1)(0)
    ep_api.KernelDefBuilder_AddInputOutputAliases(builder, *aliases, 1)
    ep_api.KernelDefBuilder_AddInputOutputMutableAliases(builder, *aliases, 1)
    made = api.make("KernelDefBuilder_Build", builder, table="OrtEpApi")
    for name, expected in (
        ("KernelDef_GetOperatorType", b"Mul"),
        ("KernelDef_GetDomain", b"tests"),
        ("KernelDef_GetExecutionProvider", b"TestProvider"),
    ):
        assert ctypes.string_at(api.call("OrtEpApi", name, made)) == expected
    first, last = ctypes.c_int(), ctypes.c_int()
    ep_api.KernelDef_GetSinceVersion(made, ctypes.byref(first), ctypes.byref(last))
    assert (first.value, last.value) == (7, 12)

    def memory(name, index):
        return api.number(name, made, index, kind=ctypes.c_int, table="OrtEpApi")

    assert [memory("KernelDef_GetInputMemType", i) for i in range(2)] == [0, -1]
    assert memory("KernelDef_GetOutputMemType", 0) == -2
    ep_api.ReleaseKernelDef(made)
    ep_api.ReleaseKernelDefBuilder(builder)


def test_no_device_here_shares_its_memory_with_a_graphics_interface(api, env):
    devices = api.array("GetEpDevices", env)
    interop = api.table("OrtInteropApi")
    for device in devices:
        importer = ctypes.c_void_p(1)
        with pytest.raises(Failure) as error:
            interop.CreateExternalResourceImporterForDevice(device, ctypes.byref(importer))
        assert error.value.code == 2
        with pytest.raises(Failure):
            interop.InitGraphicsInteropForEpDevice(device, None)
    for release in (
        interop.ReleaseExternalResourceImporter,
        interop.ReleaseExternalMemoryHandle,
        interop.ReleaseExternalSemaphoreHandle,
    ):
        release(None)
