"""OrtValue, IOBinding, sparse tensors, devices."""

import ml_dtypes
import models
import numpy as np
import pytest
import sardonyx
from models import TensorProto
from sardonyx import OrtValue, errors

X = np.array([[1, -2, 3]], np.float32)


def test_a_value_describes_itself():
    value = OrtValue.ortvalue_from_numpy(X)
    assert value.data_type() == "tensor(float)"
    assert value.element_type() == TensorProto.FLOAT
    assert value.shape() == [1, 3]
    assert value.tensor_size_in_bytes() == 12
    assert value.device_name() == "cpu"
    assert value.is_tensor()
    assert not value.is_sparse_tensor()
    assert not value.is_tensor_sequence()
    assert value.has_value()
    assert repr(value) == "OrtValue(tensor(float), shape=[1, 3])"


def test_a_value_shares_the_memory_of_a_dense_array():
    array = np.arange(3, dtype=np.float32)
    value = OrtValue.ortvalue_from_numpy(array)
    array[0] = 9
    assert value.numpy().tolist() == [9, 1, 2]
    assert value.data_ptr() == array.ctypes.data
    value.numpy()[1] = 8
    assert array.tolist() == [9, 8, 2]


def test_an_array_outlives_the_value_it_came_from():
    array = OrtValue.ortvalue_from_numpy(np.arange(1000, dtype=np.float32)).numpy()
    assert array[999] == 999


def test_a_value_can_be_updated_in_place():
    value = OrtValue.ortvalue_from_shape_and_type([3], np.float32)
    value.update_inplace(np.array([1, 2, 3], np.float32))
    assert value.numpy().tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="16 bytes.*12"):
        value.update_inplace(np.ones(4, np.float32))
    with pytest.raises(TypeError, match="double"):
        value.update_inplace(np.ones(3))


def test_bytes_can_be_read_as_another_type():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value.numpy().dtype == ml_dtypes.bfloat16
    assert value.numpy().astype(np.float32).tolist() == [1, 2]
    with pytest.raises(TypeError, match="cannot be read"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.FLOAT)


def test_values_go_in_and_out_of_run(session_of):
    session = session_of(models.relu())
    (value,) = session.run_with_ort_values(["y"], {"x": OrtValue.ortvalue_from_numpy(X)})
    assert isinstance(value, OrtValue)
    assert value.numpy().tolist() == [[1, 0, 3]]
    (array,) = session.run(None, {"x": value})
    assert array.tolist() == [[1, 0, 3]]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_values_exchange_memory_by_dlpack(dtype):
    array = np.array([1, 0, 1]).astype(dtype)
    value = OrtValue.from_dlpack(array)
    assert value.data_ptr() == array.ctypes.data
    assert value.numpy().dtype == dtype
    again = np.from_dlpack(OrtValue.ortvalue_from_numpy(array))
    assert again.ctypes.data == array.ctypes.data
    assert again.tolist() == array.tolist()
    assert value.__dlpack_device__() == (1, 0)


# --- binding


def test_a_binding_runs_on_what_was_bound(session_of):
    session = session_of(models.relu())
    binding = session.io_binding()
    x = X.copy()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (first,) = binding.copy_outputs_to_cpu()
    assert first.tolist() == [[1, 0, 3]]
    x[0, 0] = 7
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].numpy().tolist() == [[7, 0, 3]]
    assert first.tolist() == [[1, 0, 3]]


def test_outputs_can_be_bound_to_own_memory(session_of):
    session = session_of(models.relu())
    y = np.zeros((1, 3), np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(y))
    session.run_with_iobinding(binding)
    assert y.tolist() == [[1, 0, 3]]
    z = np.zeros((1, 3), np.float32)
    binding.clear_binding_outputs()
    binding.bind_output("y", "cpu", 0, np.float32, [1, 3], z.ctypes.data)
    binding.bind_input("x", "cpu", 0, np.float32, [1, 3], X.ctypes.data)
    session.run_with_iobinding(binding)
    assert z.tolist() == [[1, 0, 3]]


def test_unknown_names_cannot_be_bound(session_of):
    binding = session_of(models.relu()).io_binding()
    with pytest.raises(errors.Error, match="nothing"):
        binding.bind_cpu_input("nothing", X)
    with pytest.raises(ValueError, match="teapot"):
        binding.bind_output("y", "teapot")


# --- sparse tensors, devices, the rest


def test_a_sparse_tensor_keeps_values_and_places():
    values = np.array([1.5, 2.5], np.float32)
    tensor = sardonyx.SparseTensor.sparse_coo_from_numpy([3, 3], values, [1, 5])
    assert tensor.format() == sardonyx.OrtSparseFormat.ORT_SPARSE_COO
    assert tensor.dense_shape() == [3, 3]
    assert tensor.data_type() == "sparse_tensor(float)"
    assert tensor.values().tolist() == [1.5, 2.5]
    assert tensor.as_coo_view().indices().tolist() == [1, 5]
    rows = sardonyx.SparseTensor.sparse_csr_from_numpy([2, 3], values, [0, 2], [0, 1, 2])
    assert rows.as_csrc_view().inner().tolist() == [0, 2]
    assert rows.as_csrc_view().outer().tolist() == [0, 1, 2]


def test_devices_have_names():
    device = sardonyx.OrtDevice.make("cpu", 0)
    assert (device.device_type(), device.device_id()) == (0, 0)
    with pytest.raises(ValueError, match="teapot"):
        sardonyx.OrtDevice.make("teapot", 0)


def test_the_cpu_is_a_device():
    devices = sardonyx.get_ep_devices()
    assert "CPUExecutionProvider" in [device.ep_name for device in devices]
    assert any(device.device.type == sardonyx.OrtHardwareDeviceType.CPU for device in devices)


def test_memory_infos_describe_memory():
    info = sardonyx.OrtMemoryInfo(
        "Cpu", sardonyx.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, sardonyx.OrtMemType.DEFAULT
    )
    assert info.name == "Cpu"
    assert info.device_id == 0
    assert info.mem_type == sardonyx.OrtMemType.DEFAULT


def test_arena_settings_are_checked():
    config = sardonyx.OrtArenaCfg({"max_mem": 1 << 20})
    assert config.max_mem == 1 << 20
    with pytest.raises(ValueError, match="max_memory"):
        sardonyx.OrtArenaCfg({"max_memory": 1})


def test_run_options_keep_what_was_set():
    options = sardonyx.RunOptions()
    assert options.log_severity_level == -1
    assert not options.terminate
    options.logid = "a run"
    assert options.logid == "a run"
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert options.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"
    with pytest.raises(RuntimeError, match="no_such_key"):
        options.get_run_config_entry("no_such_key")


def test_the_package_says_which_interface_it_has():
    assert sardonyx.get_version_string() == "1.32.0"
    assert sardonyx.get_device() == "CPU"
    assert "CPUExecutionProvider" in sardonyx.get_all_providers()
    assert "git-branch" in sardonyx.get_build_info()
