"""SessionOptions: everything that shapes a session."""

import copy
import os

from . import _native
from .enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from .feeds import nearest

__all__ = ["RunOptions", "SessionOptions"]

RunOptions = _native.RunOptions
RunOptions.only_execute_path_to_fetches = False
RunOptions.training_mode = False

DEFAULTS = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
    "execution_order": ExecutionOrder.DEFAULT,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "profile_file_prefix": "onnxruntime_profile_",
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
}

MAX_KEY_LENGTH = 1024
MAX_VALUE_LENGTH = 8192


def convert(name, value):
    """The value of an attribute in the type that the attribute has."""
    kind = type(DEFAULTS[name])
    if kind is str:
        return os.fspath(value)
    if kind is bool and not isinstance(value, (bool, int)):
        raise TypeError(f"SessionOptions.{name} is a bool, found {type(value).__name__}")
    try:
        return kind(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"SessionOptions.{name} is a {kind.__name__}, found {value!r}") from None


class SessionOptions:
    """Everything that shapes a session. Set what you need and pass it to InferenceSession.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 4
    >>> options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    One object can serve several sessions; each takes a copy of the settings when it is made. A
    misspelt attribute is an error, not a new attribute.
    """

    __slots__ = (
        "_cancelled",
        "_config",
        "_delegate",
        "_dimensions",
        "_initializer_files",
        "_initializers",
        "_libraries",
        "_live",
        "_policy",
        "_progress",
        "_providers",
        "_read_data",
        "_values",
    )

    def __init__(self):
        set_slot = object.__setattr__
        set_slot(self, "_values", dict(DEFAULTS))
        set_slot(self, "_config", {})
        set_slot(self, "_dimensions", [])
        set_slot(self, "_initializers", [])
        set_slot(self, "_initializer_files", [])
        set_slot(self, "_libraries", [])
        set_slot(self, "_providers", [])
        set_slot(self, "_policy", None)
        set_slot(self, "_delegate", None)
        set_slot(self, "_progress", None)
        set_slot(self, "_read_data", None)
        set_slot(self, "_cancelled", False)
        set_slot(self, "_live", [])

    def __getattr__(self, name):
        if name in DEFAULTS:
            return self._values[name]
        hint = nearest(name, [*DEFAULTS, *dir(type(self))])
        raise AttributeError(f"'SessionOptions' object has no attribute '{name}'{hint}")

    def __setattr__(self, name, value):
        if name not in DEFAULTS:
            hint = nearest(name, list(DEFAULTS))
            raise AttributeError(f"'SessionOptions' object has no attribute '{name}'{hint}")
        self._values[name] = convert(name, value)

    def __dir__(self):
        return sorted([*super().__dir__(), *DEFAULTS])

    def __repr__(self):
        changed = {key: value for key, value in self._values.items() if value != DEFAULTS[key]}
        return f"SessionOptions({ {**changed, **self._config} })"

    def add_session_config_entry(self, key, value):
        """Set an option by its key, for example 'session.disable_prepacking' to '1'."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"keys and values of session options are strings: {key!r}: {value!r}")
        if not 0 < len(key) <= MAX_KEY_LENGTH:
            raise RuntimeError(
                f"Config key is empty or longer than maximum length {MAX_KEY_LENGTH}"
            )
        if len(value) > MAX_VALUE_LENGTH:
            raise RuntimeError(f"Config value is longer than maximum length: {MAX_VALUE_LENGTH}")
        self._config[key] = value

    def get_session_config_entry(self, key):
        """Return what was set for a key; RuntimeError if nothing was."""
        if key not in self._config:
            raise RuntimeError(
                f"SessionOptions does not have configuration with key: {key}"
                f"{nearest(key, list(self._config))}"
            )
        return self._config[key]

    def add_free_dimension_override_by_name(self, name, size):
        """Fix the symbolic dimension of that name to a size, in all inputs."""
        self._dimensions.append((str(name), int(size), True))

    def add_free_dimension_override_by_denotation(self, denotation, size):
        """Fix the dimensions of that denotation to a size."""
        self._dimensions.append((str(denotation), int(size), False))

    def add_initializer(self, name, ort_value):
        """Give a weight by name. The OrtValue's memory is used in place and kept alive."""
        self._initializers.append(([str(name)], [ort_value], False))

    def add_external_initializers(self, names, ort_values):
        """Give weights that the model keeps in external files, by name."""
        self._initializers.append(([str(name) for name in names], list(ort_values), True))

    def add_external_initializers_from_files_in_memory(self, names, buffers, lengths):
        """Give the content of external data files by file name."""
        self._initializer_files.append((list(names), list(buffers), [int(n) for n in lengths]))

    def register_custom_ops_library(self, path):
        """Load a library of custom operators. Errors show at once."""
        path = os.fspath(path)
        _native.Options().register_custom_ops(path)
        self._libraries.append(path)

    def add_provider(self, provider_name, provider_options=None):
        """Add an execution provider by name; the first that was added has the first choice."""
        self._providers.append(("name", str(provider_name), dict(provider_options or {})))

    def add_provider_for_devices(self, devices, provider_options=None):
        """Add a provider for some of the devices that get_ep_devices() lists."""
        self._providers.append(("devices", list(devices), dict(provider_options or {})))

    def has_providers(self):
        """Was a provider added, or a policy set to choose one?"""
        return bool(self._providers) or self._policy is not None or self._delegate is not None

    def set_provider_selection_policy(self, policy):
        """Let the runtime choose devices by a policy."""
        object.__setattr__(self, "_policy", int(policy))

    def set_provider_selection_policy_delegate(self, delegate):
        """Let a function choose: (devices, model metadata, runtime metadata, most) -> devices."""
        object.__setattr__(self, "_delegate", delegate)

    def set_ep_context_data_read_func(self, read_func, max_data_size=None):
        """Read the data of compiled models through a function: (name, buffer) -> None.

        The function calls buffer.allocate(size) or buffer.write(data), an OrtEpContextDataBuffer.
        More than max_data_size bytes are refused.
        """

        def read(name, buffer):
            buffer.max_size = max_data_size
            read_func(name, buffer)

        object.__setattr__(self, "_read_data", read)

    def clear_ep_context_data_read_func(self):
        """Read the data of compiled models from files again."""
        object.__setattr__(self, "_read_data", None)

    def set_progress_function(self, function):
        """Hear how far loading and compiling are: (stage, done, total) -> None; None: no more.

        An answer that is true stops the work with an error (Fail), and so does what is raised.
        """
        object.__setattr__(self, "_progress", function)

    def set_load_cancellation_flag(self, cancel):
        """Set it to True, from another thread, to stop sessions that are being loaded."""
        object.__setattr__(self, "_cancelled", bool(cancel))
        for native in list(self._live):
            native.set_cancelled(bool(cancel))

    # --- pickling and copying

    def __getstate__(self):
        for names, _, _ in self._initializers:
            raise TypeError(
                f"SessionOptions with initializers in memory ({names}) cannot be pickled"
            )
        functions = (self._delegate, self._read_data, self._progress)
        if any(function is not None for function in functions):
            raise TypeError("SessionOptions with functions cannot be pickled")
        if any(kind == "devices" for kind, _, _ in self._providers):
            raise TypeError("SessionOptions with providers for devices cannot be pickled")
        kept = [name for name in self.__slots__ if name not in ("_live", "_initializers")]
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state):
        self.__init__()
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __deepcopy__(self, memo):
        return self._copy()

    def __copy__(self):
        return self._copy()

    def _copy(self):
        made = SessionOptions()
        for name in self.__slots__:
            value = getattr(self, name)
            value = copy.copy(value) if name != "_live" else []
            object.__setattr__(made, name, value)
        return made

    # --- to the C interface

    def _apply(self, providers=()):
        """A fresh native object with all settings; a session's providers come before own ones."""
        native = _native.Options()
        self._apply_values(native)
        for key, value in self._config.items():
            native.add_config(key, value)
        for name, size, by_name in self._dimensions:
            native.add_dimension(name, size, by_name)
        for names, values, external in self._initializers:
            if external:
                native.add_external_initializers(names, values)
            else:
                native.add_initializer(names[0], values[0])
        for names, buffers, lengths in self._initializer_files:
            native.add_initializer_files(names, buffers, lengths)
        for path in self._libraries:
            native.register_custom_ops(path)
        self._apply_providers(native, providers)
        return native

    def _apply_values(self, native):
        values = self._values
        native.set_level(values["graph_optimization_level"])
        native.set_mode(values["execution_mode"])
        native.set_intra_op(values["intra_op_num_threads"])
        native.set_inter_op(values["inter_op_num_threads"])
        native.set_arena(values["enable_cpu_mem_arena"])
        native.set_pattern(values["enable_mem_pattern"])
        native.set_verbosity(values["log_verbosity_level"])
        if values["log_severity_level"] >= 0:
            native.set_severity(values["log_severity_level"])
        if values["logid"]:
            native.set_logid(values["logid"])
        if values["optimized_model_filepath"]:
            native.set_optimized_path(values["optimized_model_filepath"])
        if values["use_deterministic_compute"]:
            native.set_deterministic(True)
        if values["enable_profiling"]:
            native.enable_profiling(values["profile_file_prefix"])
        if not values["use_per_session_threads"]:
            native.disable_per_session_threads()
        if self._cancelled:
            native.set_cancelled(True)

    def _apply_providers(self, native, providers):
        for kind, what, settings in [*providers, *self._providers]:
            if kind == "name":
                native.add_provider(what, settings)
            else:
                native.add_provider_for_devices(what, settings)
        if self._policy is not None:
            native.set_policy(self._policy)
        if self._delegate is not None:
            native.set_delegate(self._delegate)
        if self._read_data is not None:
            native.set_read_data(self._read_data)
        if self._progress is not None:
            native.set_progress(self._progress)
