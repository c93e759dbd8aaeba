"""IOBinding: inputs and outputs that stay where they are between runs."""

import numpy as np

from . import _native
from .devices import OrtDevice, OrtMemoryInfo
from .enums import OrtAllocatorType, OrtDeviceMemoryType

__all__ = ["IOBinding"]

OrtValue = _native.OrtValue


class IOBinding:
    """Inputs and outputs that are bound once and used by many runs.

    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("x", x)
    >>> binding.bind_output("y")
    >>> session.run_with_iobinding(binding)
    >>> (y,) = binding.copy_outputs_to_cpu()
    """

    def __init__(self, session):
        self._session = session
        self._iobinding = _native.Binding(session._sess)
        self._inputs = {}
        self._outputs = {}

    def bind_cpu_input(self, name, arr_on_cpu):
        """Use an array as input. A dense array is used in place: change it between runs."""
        self.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(np.asarray(arr_on_cpu)))

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        """Use memory at an address as input. It must stay valid while it is bound."""
        OrtDevice.make(device_type, device_id)
        self.bind_ortvalue_input(name, OrtValue._from_address(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name, ortvalue):
        """Use an OrtValue as input."""
        self._iobinding.bind_input(name, ortvalue)
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name,
        device_type="cpu",
        device_id=0,
        element_type=None,
        shape=None,
        buffer_ptr=None,
    ):
        """Ask for an output: in memory of the runtime, or at an address if one is given."""
        device = OrtDevice.make(device_type, device_id)
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise ValueError(f"output '{name}' at an address needs element_type and shape")
            self.bind_ortvalue_output(name, OrtValue._from_address(buffer_ptr, shape, element_type))
            return
        memory = None
        if device.device_type() != 0:
            memory = OrtMemoryInfo.create_v2(
                device_type, device.device_type(), device.device_vendor_id(), device_id,
                OrtDeviceMemoryType.DEFAULT, 0, OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
            )  # fmt: skip
        self._iobinding.bind_output_to(name, memory)
        self._outputs[name] = None

    def bind_ortvalue_output(self, name, ortvalue):
        """Write an output into the memory of an OrtValue."""
        self._iobinding.bind_output(name, ortvalue)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self):
        """Wait until the bound inputs are on their devices."""
        self._iobinding.synchronize_inputs()

    def synchronize_outputs(self):
        """Wait until the outputs are complete."""
        self._iobinding.synchronize_outputs()

    def get_outputs(self):
        """Outputs of the last run as OrtValues, in the order in which they were bound."""
        return self._iobinding.outputs()

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self):
        """Outputs of the last run as arrays of their own, which later runs do not change."""
        results = [value.to_python() for value in self._iobinding.outputs()]
        return [item.copy() if isinstance(item, np.ndarray) else item for item in results]

    def clear_binding_inputs(self):
        """Unbind all inputs."""
        self._iobinding.clear_inputs()
        self._inputs.clear()

    def clear_binding_outputs(self):
        """Unbind all outputs."""
        self._iobinding.clear_outputs()
        self._outputs.clear()
