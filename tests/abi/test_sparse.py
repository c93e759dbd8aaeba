"""Sparse tensors through the C interface: three formats, filled or over the caller's memory."""

import ctypes

import pytest
from interface import Failure, floats_of

COO, CSR, BLOCKS = 1, 2, 4


def ints(*values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def floats(*values):
    return (ctypes.c_float * max(1, len(values)))(*values)


@pytest.fixture
def sparse(api, allocator):
    """Make a sparse tensor [3, 4] to be filled."""
    made = []

    def make(element=1, shape=(3, 4)):
        handle = api.make(
            "CreateSparseTensorAsOrtValue", allocator, ints(*shape), len(shape), element
        )
        made.append(handle)
        return handle

    yield make
    for handle in made:
        api.ReleaseValue(handle)


def format_of(api, value):
    return api.number("GetSparseTensorFormat", value, kind=ctypes.c_int)


def indices(api, value, kind, element=ctypes.c_int64):
    count = ctypes.c_size_t()
    data = ctypes.c_void_p()
    api.GetSparseTensorIndices(value, kind, ctypes.byref(count), ctypes.byref(data))
    return list(ctypes.cast(data, ctypes.POINTER(element))[: count.value])


def shape(api, name, *arguments):
    info = api.make(name, *arguments)
    rank = api.number("GetDimensionsCount", info)
    dims = (ctypes.c_int64 * max(1, rank))()
    api.GetDimensions(info, dims, rank)
    api.ReleaseTensorTypeAndShapeInfo(info)
    return list(dims[:rank])


def values(api, value, count):
    data = api.make("GetSparseTensorValues", value)
    return list(ctypes.cast(data, ctypes.POINTER(ctypes.c_float))[:count])


def test_a_new_one_has_neither_format_nor_values(api, sparse):
    value = sparse()
    assert format_of(api, value) == 0
    assert shape(api, "GetTensorTypeAndShape", value) == [3, 4]
    for name in ("GetSparseTensorValues", "GetSparseTensorValuesTypeAndShape"):
        with pytest.raises(Failure) as error:
            api.make(name, value)
        assert error.value.code == 1


@pytest.mark.parametrize(
    ("places", "expected"), [((1, 7), [2]), ((0, 1, 1, 3), [2, 2])], ids=["flat", "pairs"]
)
def test_coordinates_are_copied(api, sparse, cpu, places, expected):
    value = sparse()
    given = floats(5, 6)
    where = ints(*places)
    api.FillSparseTensorCoo(value, cpu, ints(2), 1, given, where, len(places))
    given[0] = where[0] = 9
    assert format_of(api, value) == COO
    assert values(api, value, 2) == [5, 6]
    assert indices(api, value, 0) == list(places)
    assert shape(api, "GetSparseTensorIndicesTypeShape", value, 0) == expected
    assert shape(api, "GetSparseTensorValuesTypeAndShape", value) == [2]
    with pytest.raises(Failure) as error:
        api.FillSparseTensorCoo(value, cpu, ints(2), 1, given, where, 2)
    assert error.value.code == 1


def test_an_empty_one_has_indices_of_no_rows(api, sparse, cpu):
    value = sparse()
    api.FillSparseTensorCoo(value, cpu, ints(0), 1, None, None, 0)
    assert format_of(api, value) == COO
    assert shape(api, "GetSparseTensorIndicesTypeShape", value, 0) == [0, 2]


def test_compressed_rows_are_copied_and_checked(api, sparse, cpu):
    value = sparse()
    api.FillSparseTensorCsr(
        value, cpu, ints(2), 1, floats(5, 6), ints(1, 3), 2, ints(0, 1, 2, 2), 4
    )
    assert format_of(api, value) == CSR
    assert indices(api, value, 1) == [1, 3]
    assert indices(api, value, 2) == [0, 1, 2, 2]
    with pytest.raises(Failure):
        indices(api, value, 0)
    for inner, outer in [
        ((1,), (0, 1, 2, 2)),
        ((1, 3), (0, 1, 2)),
        ((1, 9), (0, 1, 2, 2)),
        ((1, 3), (0, 2, 1, 2)),
        ((1, -1), (0, 1, 2, 2)),
        ((1, 3), (0, 5, 5, 2)),
    ]:
        with pytest.raises(Failure):
            api.FillSparseTensorCsr(
                sparse(),
                cpu,
                ints(2),
                1,
                floats(5, 6),
                ints(*inner),
                len(inner),
                ints(*outer),
                len(outer),
            )


def test_blocks_are_copied(api, sparse, cpu):
    value = sparse(shape=(4, 4))
    places = (ctypes.c_int32 * 2)(0, 1)
    api.FillSparseTensorBlockSparse(
        value, cpu, ints(1, 2, 2), 3, floats(1, 2, 3, 4), ints(2, 1), 2, places
    )
    assert format_of(api, value) == BLOCKS
    assert indices(api, value, 3, ctypes.c_int32) == [0, 1]
    assert shape(api, "GetSparseTensorIndicesTypeShape", value, 3) == [2, 1]
    assert shape(api, "GetSparseTensorValuesTypeAndShape", value) == [1, 2, 2]
    for block, places_shape in [((4,), (2, 1)), ((1, 2, 2), (2,)), ((1, 2, 2), (1, 2))]:
        with pytest.raises(Failure) as error:
            api.FillSparseTensorBlockSparse(
                sparse(shape=(4, 4)),
                cpu,
                ints(*block),
                len(block),
                floats(1, 2, 3, 4),
                ints(*places_shape),
                len(places_shape),
                places,
            )
        assert error.value.code == 1


def test_over_the_callers_memory_nothing_is_copied(api, cpu):
    data = floats(1, 2, 3, 4)
    value = api.make(
        "CreateSparseTensorWithValuesAsOrtValue", cpu, data, ints(4, 4), 2, ints(1, 2, 2), 3, 1
    )
    places = (ctypes.c_int32 * 2)(1, 1)
    with pytest.raises(Failure):
        api.UseBlockSparseIndices(value, ints(1, 2), 2, places)
    api.UseBlockSparseIndices(value, ints(2, 1), 2, places)
    assert format_of(api, value) == BLOCKS
    data[0] = 7
    assert values(api, value, 4) == [7, 2, 3, 4]
    with pytest.raises(Failure):
        api.UseCooIndices(value, ints(0, 1, 2, 3), 4)
    with pytest.raises(Failure):
        api.FillSparseTensorCoo(value, cpu, ints(1), 1, data, ints(0), 1)
    api.ReleaseValue(value)


def test_strings_are_copied(api, sparse, cpu):
    value = sparse(element=8)
    api.FillSparseTensorCoo(value, cpu, ints(2), 1, ["a", "bc"], ints(1, 7), 2)
    assert api.number("GetStringTensorDataLength", value) == 3
    with pytest.raises(Failure) as error:
        api.make("GetSparseTensorValues", value)
    assert error.value.code == 2


def test_what_is_no_sparse_tensor_is_refused(api, allocator, cpu):
    tensor = api.make("CreateTensorAsOrtValue", allocator, ints(3, 4), 2, 1)
    with pytest.raises(Failure, match="sparse"):
        api.FillSparseTensorCoo(tensor, cpu, ints(1), 1, floats(1), ints(0), 1)
    with pytest.raises(Failure):
        format_of(api, tensor)
    assert len(floats_of(api, tensor)) == 12
    api.ReleaseValue(tensor)
