"""InferenceSession: a loaded model that can be run."""

import json
import os
import warnings

from . import _native, environment, errors
from .binding import IOBinding
from .devices import get_ep_devices
from .feeds import nearest
from .options import SessionOptions
from .placement import Plan

__all__ = [
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
]

CPU = "CPUExecutionProvider"


class NodeArg:
    """An input or output of a model: its name, its type and its shape.

    A dimension of the shape is an int, the name of a symbolic dimension, or None if nothing is
    known about it.
    """

    __slots__ = ("name", "shape", "type")

    def __init__(self, name, kind, shape):
        self.name = name
        self.type = kind
        self.shape = shape

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model tells about itself."""

    __slots__ = (
        "custom_metadata_map",
        "description",
        "domain",
        "graph_description",
        "graph_name",
        "producer_name",
        "version",
    )

    def __init__(self, values):
        for name in self.__slots__:
            setattr(self, name, values[name])

    def __repr__(self):
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"ModelMetadata({values})"


class OrtEpAssignedNode:
    """A node of the model, and where it runs.

    device and reason are None when the runtime library does not tell them.
    """

    __slots__ = ("device", "domain", "name", "op_type", "reason")

    def __init__(self, name, domain, op_type, device=None, reason=None):
        self.name = name
        self.domain = domain
        self.op_type = op_type
        self.device = device
        self.reason = reason

    def __repr__(self):
        return f"OrtEpAssignedNode(name={self.name!r}, op_type={self.op_type!r})"


class OrtEpAssignedSubgraph:
    """Nodes that one execution provider runs."""

    __slots__ = ("_nodes", "device", "ep_name")

    def __init__(self, ep_name, nodes, device=None):
        self.ep_name = ep_name
        self.device = device
        self._nodes = nodes

    def get_nodes(self):
        """Return the nodes as OrtEpAssignedNode objects."""
        return list(self._nodes)

    def __repr__(self):
        return f"OrtEpAssignedSubgraph(ep_name={self.ep_name!r}, {len(self._nodes)} nodes)"


def normalize_providers(providers, provider_options):
    """List of (name, options) from the two arguments that can hold them."""
    pairs = []
    for item in providers or ():
        if isinstance(item, (tuple, list)):
            if len(item) != 2:
                raise ValueError(f"a provider is a name or (name, options), found {item!r}")
            pairs.append((str(item[0]), dict(item[1] or {})))
        else:
            pairs.append((str(item), {}))
    if provider_options:
        if not providers:
            raise ValueError("provider_options were given without providers")
        if len(provider_options) != len(pairs):
            raise ValueError(
                "'providers' and 'provider_options' should be the same length if both are given: "
                f"{len(pairs)} and {len(provider_options)}"
            )
        if any(options for _, options in pairs):
            raise ValueError("give options in providers or in provider_options, not in both")
        pairs = [(name, dict(own or {})) for (name, _), own in zip(pairs, provider_options)]
    return pairs


def offered_devices():
    """Devices of all providers, or none when the library has no such list."""
    try:
        return get_ep_devices()
    except errors.NotImplemented:
        return []


def choose_providers(pairs):
    """Requested providers that can be had. One that cannot is an error unless the CPU is listed."""
    available = _native.get_available_providers()
    by_device = {}
    for device in offered_devices():
        by_device.setdefault(device.ep_name, []).append(device)
    chosen = {}
    missing = []
    for name, options in pairs:
        if name in chosen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        elif name in available or name in by_device:
            chosen[name] = options
        else:
            missing.append(name)
    for name in missing:
        known = [*available, *[other for other in by_device if other not in available]]
        text = (
            f"Specified provider '{name}' is not in available provider names. Available providers: "
            f"'{', '.join(known)}'{nearest(name, known)}"
        )
        if CPU not in chosen:
            raise errors.EPFail(f"[ONNXRuntimeError] : 11 : EP_FAIL : {text}")
        warnings.warn(text, stacklevel=4)
    chosen.setdefault(CPU, {})
    rows = []
    for name, options in chosen.items():
        if name in by_device and name not in available:
            rows.append(("devices", by_device[name], options))
        elif name != CPU:
            rows.append(("name", name, options))
    return chosen, rows


class InferenceSession:
    """A loaded model that can be run, from any number of threads at once.

    >>> session = InferenceSession("model.onnx")
    >>> (y,) = session.run(None, {"x": x})

    path_or_bytes    path of a model file, or the bytes of a model. A file's weights are mapped, so
                     that several sessions and processes share them.
    sess_options     SessionOptions; defaults if None.
    providers        names of execution providers by preference, each alone or as (name, options).
                     The CPU provider takes what the others leave. A provider that cannot be had is
                     an error, or a warning if the list names the CPU provider.
    provider_options one dict per provider, instead of the pairs.

    Sessions can be pickled: the path or the bytes travel, and the model is loaded again.
    """

    def __init__(
        self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs
    ):
        self._model_path = None
        self._model_bytes = None
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fsdecode(os.fspath(path_or_bytes))
        elif isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            self._model_bytes = bytes(path_or_bytes)
        elif hasattr(path_or_bytes, "SerializeToString"):
            self._model_bytes = path_or_bytes.SerializeToString()
        else:
            raise TypeError(
                "a model is given as a path, as bytes or as a ModelProto, not as "
                f"'{type(path_or_bytes)}'"
            )
        disabled = kwargs.pop("disabled_optimizers", None)
        kwargs.pop("enable_fallback", None)
        if kwargs:
            name = next(iter(kwargs))
            raise TypeError(f"InferenceSession has no argument '{name}'")
        if sess_options is None:
            sess_options = SessionOptions()
        if not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is {type(sess_options)}, expected SessionOptions")
        self._options = sess_options._copy()
        self._given = sess_options
        if disabled:
            names = ";".join(sorted(disabled))
            self._options.add_session_config_entry(
                "optimization.disable_specified_optimizers", names
            )
        self._start(normalize_providers(providers, provider_options))

    def _start(self, pairs):
        """Load the model with these providers."""
        chosen, rows = choose_providers(pairs)
        if self._options.has_providers():
            for kind, what, settings in self._options._providers:
                names = [what] if kind == "name" else [device.ep_name for device in what]
                chosen = {**{name: settings for name in names}, **chosen}
        native = self._options._apply(rows)
        environment.apply_logger(native)
        if self._model_bytes is not None and _native.is_own_library():
            # The bytes stay as long as the session does, so that it need not copy them.
            native.add_config("session.use_ort_model_bytes_directly", "1")
        live = self._given._live
        live.append(native)
        try:
            self._sess = _native.Session(native, self._model_path, self._model_bytes)
        finally:
            live.remove(native)
        self._requested = pairs
        self._providers = chosen

    # --- running

    def run(self, output_names, input_feed, run_options=None):
        """Run the model and return the list of its outputs.

        output_names  names of the outputs to compute; None for all.
        input_feed    dict from input names to values: arrays, numbers, lists for sequences, dicts
                      for maps, None for an optional input, or OrtValues. Dense arrays are used in
                      place; types that numpy lacks are ml_dtypes arrays.
        run_options   RunOptions, for example to stop the run from another thread.

        Outputs are arrays, lists, dicts, SparseTensors or None, in the order of the names.
        """
        return self._sess.run(output_names, input_feed, run_options)

    def run_async(self, output_names, input_feed, callback, user_data=None, run_options=None):
        """Start a run and return at once; callback(outputs, user_data, error) gets the result.

        error is an empty text on success. Arrays that are fed must not change until then.
        """
        self._sess.run_async(output_names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """As run, but with OrtValues in and out."""
        return self._sess.run_values(output_names, input_dict_ort_values, run_options)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Run on inputs and outputs that were bound beforehand; see io_binding()."""
        _native.run_binding(self._sess, iobinding._iobinding, run_options)

    def run_with_ortvaluevector(
        self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices=None
    ):
        """Run on a list of OrtValues; the list fetches receives the outputs."""
        feed = dict(zip(feed_names, feeds))
        fetches[:] = self._sess.run_values(list(fetch_names), feed, run_options)

    def io_binding(self):
        """Return an IOBinding for this session."""
        return IOBinding(self)

    # --- what the session is

    def get_inputs(self):
        """Inputs of the model as NodeArg objects, without those that have a default."""
        return [NodeArg(*values) for values in self._sess.inputs()]

    def get_outputs(self):
        """Outputs of the model as NodeArg objects."""
        return [NodeArg(*values) for values in self._sess.outputs()]

    def get_overridable_initializers(self):
        """Weights that a feed may replace, as NodeArg objects."""
        return [NodeArg(*values) for values in self._sess.initializers()]

    def get_modelmeta(self):
        """What the model tells about itself."""
        return ModelMetadata(self._sess.metadata())

    def get_session_options(self):
        """Options of this session; changing them does not change the session."""
        return self._options

    def get_providers(self):
        """Names of the session's providers by preference."""
        return list(self._providers)

    def get_provider_options(self):
        """Options of each provider."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(self, providers=None, provider_options=None):
        """Load the model again with other providers."""
        self._start(normalize_providers(providers, provider_options))

    def get_input_memory_infos(self):
        """Memory that each input should be in, as OrtMemoryInfo objects."""
        return self._sess.memory_infos(True)

    def get_output_memory_infos(self):
        """Memory that each output will be in, as OrtMemoryInfo objects."""
        return self._sess.memory_infos(False)

    def get_input_epdevices(self):
        """Device that each input is used on, as OrtEpDevice objects or None."""
        return self._sess.ep_devices(True)

    def get_output_epdevices(self):
        """Device that each output comes from, as OrtEpDevice objects or None."""
        return self._sess.ep_devices(False)

    def get_provider_graph_assignment_info(self):
        """Which provider runs which node; needs session.record_ep_graph_assignment_info = 1.

        Every node of the model is listed with its own name. Where the library tells them, each
        also has a device and the reason for the choice.
        """
        places = self._places()
        groups = []
        for ep_name, rows in self._sess.assignment():
            nodes = [
                OrtEpAssignedNode(*row, *places.get((ep_name, row[0]), (None, None)))
                for row in rows
            ]
            devices = {node.device for node in nodes}
            device = devices.pop() if len(devices) == 1 else None
            groups.append(OrtEpAssignedSubgraph(ep_name, nodes, device))
        return groups

    def _places(self):
        """Device and reason by provider and name of a node, as far as the library tells."""
        text = self._sess.placement()
        if text is None:
            return {}
        placement = json.loads(text)
        providers = [device["provider"] for device in placement["devices"]]
        places = {}
        for node in placement["nodes"]:
            reasons = [node["reason"], node["rule"], node["why_not"]]
            reason = ": ".join(part for part in reasons if part)
            key = (providers[node["device_index"]], node["name"])
            places.setdefault(key, (node["device"], reason))
        return places

    def placement(self):
        """Where each node runs, and why, as a Plan: devices, layers, copies, rules, memory."""
        text = self._sess.placement()
        if text is None:
            raise errors.NotImplemented("the loaded runtime library is not Sardonyx's own")
        return Plan(json.loads(text))

    def describe(self):
        """What the session is made of, as a dict: each node with its place and reason, memory."""
        text = self._sess.describe()
        if text is None:
            raise errors.NotImplemented("the loaded runtime library is not Sardonyx's own")
        return json.loads(text)

    # --- profiling, fallback, the rest

    def end_profiling(self):
        """Stop profiling and return the path of the file that was written."""
        return self._sess.end_profiling()

    def get_profiling_start_time_ns(self):
        """Time at which profiling started, in nanoseconds of the runtime's clock."""
        return self._sess.profiling_start_ns()

    def enable_fallback(self):
        """Do nothing: this runtime never changes providers behind your back."""

    def disable_fallback(self):
        """Do nothing: this runtime never changes providers behind your back."""

    def set_ep_dynamic_options(self, options):
        """Change options of the providers while the session lives."""
        self._sess.set_ep_dynamic_options(dict(options))

    def release_captured_graph(self, graph_annotation_id=0):
        """Forget a graph that a device captured for replay."""
        self._sess.release_captured_graph(int(graph_annotation_id))

    def create_ortvalue_from_shape_and_type(
        self, shape, element_type, device_type="cpu", device_id=0, vendor_id=-1
    ):
        """Return an OrtValue with memory of its own, on a device of this session."""
        return _native.OrtValue.ortvalue_from_shape_and_type(
            shape, element_type, device_type, device_id, vendor_id
        )

    def get_tuning_results(self):
        """Return nothing: this runtime does not tune kernels at run time."""
        return []

    def set_tuning_results(self, results, *, error_on_invalid=False):
        """Accept results of tuning, which this runtime does not use."""

    # --- pickling

    def __getstate__(self):
        return {
            "path": self._model_path,
            "bytes": self._model_bytes,
            "options": self._options,
            "providers": self._requested,
        }

    def __setstate__(self, state):
        self._model_path = state["path"]
        self._model_bytes = state["bytes"]
        self._options = state["options"]
        self._given = self._options
        self._start(state["providers"])

    def __repr__(self):
        model = self._model_path or f"{len(self._model_bytes)} bytes"
        return f"InferenceSession({model!r}, providers={self.get_providers()})"
