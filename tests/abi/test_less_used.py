"""Functions of the C interface that few programs call."""

import ctypes
import json

import pytest
from interface import Failure, model_bytes
from onnx import helper

Start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
Told = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class ThreadCallbacks(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("on_enqueue", Start),
        ("on_start_work", Told),
        ("on_stop_work", Told),
        ("on_abandon", Told),
        ("user_context", ctypes.c_void_p),
    ]


def test_a_registered_allocator_is_shared(api, env, allocator, cpu):
    api.RegisterAllocator(env, allocator)
    api.RegisterAllocator(env, allocator)
    assert api.make("GetSharedAllocator", env, cpu).value == allocator.value
    api.UnregisterAllocator(env, cpu)
    with pytest.raises(Failure) as error:
        api.UnregisterAllocator(env, cpu)
    assert error.value.code == 2
    for arguments in [(env, None), (None, allocator)]:
        with pytest.raises(Failure):
            api.RegisterAllocator(*arguments)


def test_the_library_can_be_asked_for_an_allocator(api, env, cpu):
    api.CreateAndRegisterAllocator(env, cpu, None)
    api.CreateAndRegisterAllocatorV2(env, "CPUExecutionProvider", cpu, None, None, None, 0)
    with pytest.raises(Failure) as error:
        api.CreateAndRegisterAllocatorV2(env, "Foo", cpu, None, None, None, 0)
    assert error.value.code == 2
    api.UnregisterAllocator(env, cpu)
    gpu = api.make("CreateMemoryInfo", "Cuda", 0, 0, 0)
    with pytest.raises(Failure) as error:
        api.CreateAndRegisterAllocator(env, gpu, None)
    assert error.value.code == 2
    api.ReleaseMemoryInfo(gpu)


def test_no_provider_has_functions_of_its_own(api):
    for name in ("DML", "CPU", "CPUExecutionProvider"):
        with pytest.raises(Failure) as error:
            api.make("GetExecutionProviderApi", name, 1)
        assert error.value.code == 2
    assert api.GetTrainingApi(1) is None


def test_compatibility_is_read_from_the_metadata(api, allocator, tmp_path):
    model = model_bytes(
        metadata={"ep_compatibility_info.X": "v1", "ep_compatibility_info.Empty": ""}
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(model)
    for name, arguments in [
        ("GetCompatibilityInfoFromModel", (str(path),)),
        ("GetCompatibilityInfoFromModelBytes", (model, len(model))),
    ]:
        for ep_type, expected in [("X", "v1"), ("Empty", ""), ("Other", None)]:
            found = api.text(name, *arguments, ep_type, allocator, allocator=allocator)
            assert found == expected
        for ep_type, given in [("", allocator), (None, allocator), ("X", None)]:
            with pytest.raises(Failure) as error:
                api.text(name, *arguments, ep_type, given)
            assert error.value.code == 2
    with pytest.raises(Failure) as error:
        api.text("GetCompatibilityInfoFromModel", str(tmp_path / "none"), "X", allocator)
    assert error.value.code == 3
    with pytest.raises(Failure):
        api.text("GetCompatibilityInfoFromModelBytes", b"garbage", 7, "X", allocator)


def assignment(api, session):
    parts = []
    for part in api.array("Session_GetEpGraphAssignmentInfo", session):
        nodes = [
            tuple(
                api.text(f"EpAssignedNode_Get{what}", node)
                for what in ("Name", "Domain", "OperatorType")
            )
            for node in api.array("EpAssignedSubgraph_GetNodes", part)
        ]
        parts.append((api.text("EpAssignedSubgraph_GetEpName", part), nodes))
    return parts


def test_a_session_tells_who_runs_its_nodes(api, options, session_of):
    with pytest.raises(Failure, match="record_ep_graph_assignment_info") as error:
        assignment(api, session_of(model_bytes()))
    assert error.value.code == 1
    api.AddSessionConfigEntry(options, "session.record_ep_graph_assignment_info", "1")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    expected = [("product", "", "MatMul"), ("relu", "", "Relu"), ("", "", "Softmax")]
    session = session_of(model_bytes(nodes))
    for _ in range(2):
        assert assignment(api, session) == [("CPUExecutionProvider", [node]) for node in expected]


def test_one_run_is_profiled(api, options, session_of, run, tmp_path):
    session = session_of(model_bytes())
    run_options = api.make("CreateRunOptions")
    api.RunOptionsEnableProfiling(run_options, str(tmp_path / "trace"))
    for _ in range(3):
        assert run(session, [1, -1], [1, 2], run_options) == [0, 0]
    api.RunOptionsDisableProfiling(run_options)
    run(session, [1, -1], [1, 2], run_options)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3 and all(file.name.startswith("trace_") for file in files)
    events = json.loads(files[0].read_text())
    assert any(event["cat"] == "Node" for event in events)
    for arguments in [(None, "x"), (run_options, None)]:
        with pytest.raises(Failure):
            api.RunOptionsEnableProfiling(*arguments)
    api.ReleaseRunOptions(run_options)


def test_thread_callbacks_are_refused_as_in_released_builds(api, env):
    with pytest.raises(Failure) as error:
        api.SetPerSessionThreadPoolCallbacks(env, ctypes.byref(ThreadCallbacks(32)))
    assert error.value.code == 9


def test_the_text_of_global_affinities_is_checked(api):
    threading = api.make("CreateThreadingOptions")
    api.SetGlobalIntraOpThreadAffinity(threading, "1;2")
    for arguments in [(threading, ""), (threading, None), (None, "1"), (threading, "1" * 4097)]:
        with pytest.raises(Failure) as error:
            api.SetGlobalIntraOpThreadAffinity(*arguments)
        assert error.value.code == 2
    api.ReleaseThreadingOptions(threading)


@pytest.mark.parametrize(
    ("text", "threads", "is_good"),
    [
        ("1", 2, True),
        ("1-2", 2, True),
        ("1,2", 2, True),
        ("1;2", 3, True),
        ("bogus", 0, False),
        ("1;2", 2, False),
        ("bogus", 2, False),
        ("0", 2, False),
        ("2-1", 2, False),
        ("1;", 3, False),
        ("1", 0, True),
    ],
)
def test_threads_are_bound_to_processors(api, options, session_of, run, text, threads, is_good):
    api.AddSessionConfigEntry(options, "session.intra_op_thread_affinities", text)
    api.SetIntraOpNumThreads(options, threads)
    if not is_good:
        with pytest.raises(Failure):
            session_of(model_bytes())
        return
    assert run(session_of(model_bytes()), [1, 1], [1, 2]) == [4, 6]


def describe(api, name, version, domain):
    """An operator's row as (since, inputs, outputs), each place by its constraint's name."""
    table = "OrtEpApi"
    schema = api.make("GetOpSchema", name, version, domain, table=table)
    if not schema.value:
        return None
    since = api.number("OpSchema_GetSinceVersion", schema, kind=ctypes.c_int, table=table)
    places = []
    for side in ("Input", "Output"):
        names = []
        for i in range(api.number(f"OpSchema_GetNum{side}s", schema, table=table)):
            assert api.text(f"OpSchema_Get{side}Name", schema, i, table=table)
            constraint = api.make(f"OpSchema_Get{side}TypeConstraint", schema, i, table=table)
            if not constraint.value:
                names.append(None)
                continue
            names.append(
                api.text("OpSchemaTypeConstraint_GetTypeParamName", constraint, table=table)
            )
            assert i in numbers(api, f"OpSchemaTypeConstraint_Get{side}Indices", constraint)
            types = api.texts("OpSchemaTypeConstraint_GetAllowedTypes", constraint, table=table)
            assert types and all(text.startswith("tensor(") for text in types)
        places.append(names)
        with pytest.raises(Failure) as error:
            api.text(f"OpSchema_Get{side}Name", schema, len(names), table=table)
        assert error.value.code == 2
    count = api.number("OpSchema_GetTypeConstraintCount", schema, table=table)
    with pytest.raises(Failure):
        api.make("OpSchema_GetTypeConstraint", schema, count, table=table)
    for i in range(count):
        assert api.make("OpSchema_GetTypeConstraint", schema, i, table=table).value
    api.call(table, "ReleaseOpSchema", schema)
    return since, places[0], places[1]


def numbers(api, name, constraint):
    items = ctypes.c_void_p()
    count = ctypes.c_size_t()
    api.call("OrtEpApi", name, constraint, ctypes.byref(items), ctypes.byref(count))
    return ctypes.cast(items, ctypes.POINTER(ctypes.c_size_t))[: count.value]


def test_operators_are_described(api):
    assert describe(api, "Add", 13, "")[1:] == (["T", "T"], ["T"])
    assert describe(api, "Add", 12, "")[0] < describe(api, "Add", 13, "")[0] <= 13
    assert describe(api, "Add", 1000, "ai.onnx") is not None
    assert describe(api, "Clip", 13, "")[1] == ["T", "T", "T"]
    assert describe(api, "Concat", 13, "")[1:] == (["T"], ["T"])
    since, _, outputs = describe(api, "Shape", 13, "")
    assert (since, outputs) == (13, [None])
    assert describe(api, "Add", 0, "") is None
    assert describe(api, "Nope", 13, "") is None
    assert describe(api, "Add", 13, "nowhere") is None
    for arguments in [(None, 1, ""), ("Add", 1, None)]:
        with pytest.raises(Failure) as error:
            api.make("GetOpSchema", *arguments, table="OrtEpApi")
        assert error.value.code == 2
