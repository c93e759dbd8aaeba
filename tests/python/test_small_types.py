"""Types that numpy lacks go in and out as ml_dtypes arrays."""

import ml_dtypes
import models
import numpy as np
import pytest
import sardonyx
from models import TensorProto

FLOATS = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
}
PACKED = {
    TensorProto.INT4: (ml_dtypes.int4, [-8, -1, 0, 1, 7]),
    TensorProto.UINT4: (ml_dtypes.uint4, [0, 1, 7, 8, 15]),
    TensorProto.INT2: (ml_dtypes.int2, [-2, -1, 0, 1, 1]),
    TensorProto.UINT2: (ml_dtypes.uint2, [0, 1, 2, 3, 3]),
    TensorProto.FLOAT4E2M1: (ml_dtypes.float4_e2m1fn, [-6, -0.5, 0, 1.5, 6]),
}


@pytest.mark.parametrize("element_type", FLOATS)
def test_small_floats_go_in_and_out(session_of, element_type):
    numbers = np.array([[1, -2, 0.5], [4, 0, -8]], np.float32)
    small = numbers.astype(FLOATS[element_type])
    shape = (2, 3)
    (wide,) = session_of(models.cast(element_type, TensorProto.FLOAT, shape)).run(
        None, {"x": small}
    )
    np.testing.assert_array_equal(wide, numbers)
    (narrow,) = session_of(models.cast(TensorProto.FLOAT, element_type, shape)).run(
        None, {"x": numbers}
    )
    assert narrow.dtype == small.dtype
    np.testing.assert_array_equal(narrow.astype(np.float32), numbers)


@pytest.mark.parametrize("element_type", PACKED)
def test_packed_values_keep_their_numbers(element_type):
    dtype, numbers = PACKED[element_type]
    array = np.array(numbers, np.float32).astype(dtype)
    value = sardonyx.OrtValue.ortvalue_from_numpy(array)
    assert value.element_type() == element_type
    assert value.shape() == [5]
    assert value.tensor_size_in_bytes() == {4: 3, 2: 2}[4 if "4" in np.dtype(dtype).name else 2]
    assert value.numpy().dtype == array.dtype
    assert value.numpy().astype(np.float32).tolist() == numbers


@pytest.mark.parametrize("element_type", [TensorProto.INT4, TensorProto.UINT4])
def test_packed_values_go_through_run(session_of, element_type):
    dtype, numbers = PACKED[element_type]
    array = np.array(numbers, np.float32).astype(dtype)
    (wide,) = session_of(models.cast(element_type, TensorProto.FLOAT)).run(None, {"x": array})
    assert wide.tolist() == numbers
    (narrow,) = session_of(models.cast(TensorProto.FLOAT, element_type)).run(
        None, {"x": np.array(numbers, np.float32)}
    )
    assert narrow.dtype == dtype
    assert narrow.astype(np.float32).tolist() == numbers


def test_a_column_of_small_floats_can_be_fed(session_of):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    column = numbers.astype(ml_dtypes.bfloat16)[:, 1]
    (wide,) = session_of(models.cast(TensorProto.BFLOAT16, TensorProto.FLOAT)).run(
        None, {"x": column}
    )
    assert wide.tolist() == [1, 4]
