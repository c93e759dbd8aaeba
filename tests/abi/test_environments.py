"""Environments in all their ways; types that programs describe; values and allocators on them."""

import ctypes
import threading

import pytest
from interface import Failure, model_bytes
from onnx import TensorProto, helper

FLOAT = 1
INT64 = 7
KINDS = {"tensor": 1, "sequence": 2, "map": 3, "sparse": 5, "optional": 6}
Log = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
)
StartThread = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.c_void_p
)
JoinThread = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class CreationOptions(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("logging_severity_level", ctypes.c_int32),
        ("log_id", ctypes.c_char_p),
        ("custom_logging_function", ctypes.c_void_p),
        ("custom_logging_param", ctypes.c_void_p),
        ("threading_options", ctypes.c_void_p),
        ("config_entries", ctypes.c_void_p),
    ]


def use(api, env, run, per_session=True):
    """A session of the environment computes y."""
    options = api.make("CreateSessionOptions")
    if not per_session:
        api.DisablePerSessionThreads(options)
    model = model_bytes()
    session = api.make("CreateSessionFromArray", env, model, len(model), options)
    api.ReleaseSessionOptions(options)
    assert run(session, [1.0, 1.0], [1, 2]) == [4.0, 6.0]
    api.ReleaseSession(session)


@pytest.fixture
def threading_options(api):
    """Options of threads that all sessions share."""
    made = api.make("CreateThreadingOptions")
    api.SetGlobalIntraOpNumThreads(made, 2)
    api.SetGlobalInterOpNumThreads(made, 1)
    api.SetGlobalSpinControl(made, 0)
    api.SetGlobalDenormalAsZero(made)
    yield made
    api.ReleaseThreadingOptions(made)


def test_sessions_share_the_threads_of_their_environment(api, threading_options, run):
    env = api.make("CreateEnvWithGlobalThreadPools", 3, "test", threading_options)
    use(api, env, run, per_session=False)
    use(api, env, run)
    api.SetLanguageProjection(env, 0)
    api.ReleaseEnv(env)


def test_an_environment_has_a_logger_and_threads_at_once(api, threading_options, run):
    lines = []
    log = Log(lambda *line: lines.append(line[5]))
    env = api.make(
        "CreateEnvWithCustomLoggerAndGlobalThreadPools",
        ctypes.cast(log, ctypes.c_void_p),
        None,
        0,
        "test",
        threading_options,
    )
    use(api, env, run, per_session=False)
    api.ReleaseEnv(env)
    assert lines


def test_an_environment_is_made_of_one_struct(api, threading_options, run):
    pairs = ctypes.c_void_p()
    api.CreateKeyValuePairs(ctypes.byref(pairs))
    api.AddKeyValuePair(pairs, "sardonyx.hardware_devices", "npu:vendor=0x1234")
    given = CreationOptions(32, 3, b"test", None, None, threading_options, pairs)
    env = api.make("CreateEnvWithOptions", ctypes.byref(given))
    api.ReleaseKeyValuePairs(pairs)
    use(api, env, run, per_session=False)
    count = api.number("GetNumHardwareDevices", env)
    devices = (ctypes.c_void_p * count)()
    api.GetHardwareDevices(env, devices, count)
    assert 0x1234 in [api.HardwareDevice_VendorId(ctypes.c_void_p(one)) for one in devices]
    api.ReleaseEnv(env)
    with pytest.raises(Failure):
        api.make("CreateEnvWithOptions", None)


def described(api, shape=(2, 3)):
    """A tensor of floats as a type."""
    info = api.make("CreateTensorTypeAndShapeInfo")
    api.SetTensorElementType(info, FLOAT)
    api.SetDimensions(info, (ctypes.c_int64 * len(shape))(*shape), len(shape))
    made = {
        "tensor": api.make("CreateTensorTypeInfo", info, table="OrtModelEditorApi"),
        "sparse": api.make("CreateSparseTensorTypeInfo", info, table="OrtModelEditorApi"),
    }
    api.ReleaseTensorTypeAndShapeInfo(info)
    for name in ("CreateSequenceTypeInfo", "CreateOptionalTypeInfo"):
        kind = name.removeprefix("Create").removesuffix("TypeInfo").lower()
        made[kind] = api.make(name, made["tensor"], table="OrtModelEditorApi")
    made["map"] = api.make("CreateMapTypeInfo", INT64, made["tensor"], table="OrtModelEditorApi")
    return made


def test_types_say_what_they_were_made_of(api):
    made = described(api)
    for name, kind in KINDS.items():
        assert api.number("GetOnnxTypeFromTypeInfo", made[name], kind=ctypes.c_int) == kind
    sequence = api.make("CastTypeInfoToSequenceTypeInfo", made["sequence"])
    optional = api.make("CastTypeInfoToOptionalTypeInfo", made["optional"])
    of_map = api.make("CastTypeInfoToMapTypeInfo", made["map"])
    assert api.number("GetMapKeyType", of_map, kind=ctypes.c_int) == INT64
    for inner in (
        api.make("GetSequenceElementType", sequence),
        api.make("GetOptionalContainedTypeInfo", optional),
        api.make("GetMapValueType", of_map),
    ):
        tensor = api.make("CastTypeInfoToTensorInfo", inner)
        assert api.number("GetTensorElementType", tensor, kind=ctypes.c_int) == FLOAT
        assert api.number("GetTensorShapeElementCount", tensor) == 6
        api.ReleaseTypeInfo(inner)
    text, length = ctypes.c_char_p(), ctypes.c_size_t(9)
    api.GetDenotationFromTypeInfo(made["tensor"], ctypes.byref(text), ctypes.byref(length))
    assert length.value == 0
    for release in (api.ReleaseMapTypeInfo, api.ReleaseSequenceTypeInfo):
        release(None)
    for one in made.values():
        api.ReleaseTypeInfo(one)


def test_elements_of_a_tensor_have_places(api, cpu):
    data = (ctypes.c_float * 6)(*range(6))
    dims = (ctypes.c_int64 * 2)(2, 3)
    value = api.make("CreateTensorWithDataAsOrtValue", cpu, data, 24, dims, 2, FLOAT)
    place = api.make("TensorAt", value, (ctypes.c_int64 * 2)(1, 2), 2)
    assert place.value == ctypes.addressof(data) + 5 * 4
    for wrong, count in (((2, 0), 2), ((0, -1), 2), ((0,), 1)):
        with pytest.raises(Failure):
            api.make("TensorAt", value, (ctypes.c_int64 * len(wrong))(*wrong), count)
    assert api.number("IsSparseTensor", value, kind=ctypes.c_int) == 0
    assert api.number("HasValue", value, kind=ctypes.c_int) == 1
    assert api.number("GetValueType", value, kind=ctypes.c_int) == KINDS["tensor"]
    api.ReleaseValue(value)


def test_an_allocator_says_where_it_is_and_what_it_gave(api, allocator, env, cpu):
    info = api.make("AllocatorGetInfo", allocator)
    equal = api.number("CompareMemoryInfo", info, cpu, kind=ctypes.c_int)
    assert equal in (0, 1)
    arena = api.make("CreateArenaCfg", 0, -1, -1, -1)
    api.CreateAndRegisterAllocator(env, cpu, arena)
    api.ReleaseArenaCfg(arena)
    shared = api.make("GetSharedAllocator", env, cpu)
    stats = ctypes.c_void_p()
    api.AllocatorGetStats(shared, ctypes.byref(stats))
    keys, values, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    api.GetKeyValuePairs(stats, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
    api.ReleaseKeyValuePairs(stats)
    api.UnregisterAllocator(env, cpu)


def test_sessions_share_a_container_of_packed_weights(api, env, options, run):
    model = model_bytes()
    container = api.make("CreatePrepackedWeightsContainer")
    sessions = [
        api.make(
            "CreateSessionFromArrayWithPrepackedWeightsContainer",
            env,
            model,
            len(model),
            options,
            container,
        )
        for _ in range(2)
    ]
    for session in sessions:
        assert run(session, [1.0, 1.0], [1, 2]) == [4.0, 6.0]
        api.ReleaseSession(session)
    api.ReleasePrepackedWeightsContainer(container)


def test_options_are_read_back(api, options, tmp_path, session_of, run):
    assert api.number("GetMemPatternEnabled", options, kind=ctypes.c_int) == 1
    api.DisableMemPattern(options)
    assert api.number("GetMemPatternEnabled", options, kind=ctypes.c_int) == 0
    api.EnableProfiling(options, str(tmp_path / "profile"))
    api.DisableProfiling(options)
    assert run(session_of(model_bytes()), [1.0, 1.0], [1, 2]) == [4.0, 6.0]
    assert not list(tmp_path.iterdir())
    with pytest.raises(Failure):
        api.EnableOrtCustomOps(options)


def test_an_initializer_that_may_be_fed_has_a_type(api, session_of):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1, 2, 3, 4])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = session_of(model.SerializeToString())
    assert api.number("SessionGetOverridableInitializerCount", session) == 1
    made = api.make("SessionGetOverridableInitializerTypeInfo", session, 0)
    tensor = api.make("CastTypeInfoToTensorInfo", made)
    assert api.number("GetTensorShapeElementCount", tensor) == 4
    api.ReleaseTypeInfo(made)


def test_lists_of_providers_are_given_back(api):
    names, count = ctypes.c_void_p(), ctypes.c_int()
    api.GetAvailableProviders(ctypes.byref(names), ctypes.byref(count))
    texts = ctypes.cast(names, ctypes.POINTER(ctypes.c_char_p))[: count.value]
    assert b"CPUExecutionProvider" in texts
    api.ReleaseAvailableProviders(names, count)


def test_threads_of_the_program_work_for_all_sessions(api, threading_options, run):
    threads = {}

    def start(_, work, argument):
        thread = threading.Thread(target=work, args=(argument,))
        thread.start()
        threads[len(threads) + 1] = thread
        return len(threads)

    keep = [StartThread(start), JoinThread(lambda handle: threads[handle].join())]
    api.SetGlobalCustomCreateThreadFn(threading_options, ctypes.cast(keep[0], ctypes.c_void_p))
    api.SetGlobalCustomThreadCreationOptions(threading_options, None)
    api.SetGlobalCustomJoinThreadFn(threading_options, ctypes.cast(keep[1], ctypes.c_void_p))
    env = api.make("CreateEnvWithGlobalThreadPools", 3, "test", threading_options)
    use(api, env, run, per_session=False)
    api.ReleaseEnv(env)
    assert threads
    assert not any(thread.is_alive() for thread in threads.values())
