"""Where the nodes of a model run, and why: before a session is made, and of one that is there."""

import json
import os
import tempfile

from . import _native
from .options import SessionOptions

__all__ = ["Plan", "plan"]


def write_whole(path, text):
    """Write a file that appears whole or not at all."""
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class Plan(dict):
    """What plan() and InferenceSession.placement() tell: a dict as docs/explain.md describes it.

    >>> plan = sardonyx.plan("model.onnx", {"sardonyx.placement": "gpu:0(layers.[0-15]/)"})
    >>> {node["name"]: node["device"] for node in plan["nodes"]}
    >>> plan.to_html("plan.html")
    >>> plan.save("plan.json")  # to be loaded by the entry sardonyx.placement_file
    """

    @property
    def option(self):
        """The value of sardonyx.placement that asks for this placement; None if too long."""
        return self["options"]["sardonyx.placement"]

    def to_html(self, path=None):
        """Return a page that shows the plan and needs no other file; with path, write it, too."""
        text = _native.plan_to_html(json.dumps(self))
        if path is not None:
            write_whole(path, text)
        return text

    def save(self, path, strict=False):
        """Write a plan file: which node runs on which device.

        strict   loading it fails when the model has other nodes, or a device is missing.

        Of nodes with one name that run on several devices, the first one counts. Nodes without
        name are left out of the plan of a session, which does not know their outputs.
        """
        nodes = {}
        for node in self["nodes"]:
            key = "name" if node["name"] else "output"
            if key in node:
                nodes.setdefault(node[key], {key: node[key], "device": node["device"]})
        rows = {"format": 1, "strict": bool(strict), "nodes": list(nodes.values())}
        if "model" in self:
            rows["model"] = self["model"]
        write_whole(path, json.dumps(rows, indent=1) + "\n")

    def __repr__(self):
        counts = {device["name"]: device["node_count"] for device in self.get("devices", ())}
        return f"Plan({counts})"


def plan(path, options=None, devices=None):
    """Say which nodes of a model would run where, and why; nothing is compiled or run.

    path      path of a model file.
    options   SessionOptions, or a dict of configuration entries.
    devices   devices that need not be here: a list of dicts with type, vendor, ordinal,
              memory_bytes, provider and operators, or the path of a JSON file with such a list.

    Returns a Plan.
    """
    if not isinstance(options, SessionOptions):
        entries = dict(options or {})
        options = SessionOptions()
        for key, value in entries.items():
            options.add_session_config_entry(key, str(value))
    if isinstance(devices, (str, os.PathLike)):
        with open(devices, encoding="utf-8") as file:
            devices = json.load(file)
    described = None if devices is None else json.dumps(devices)
    text = _native.explain_model(os.fspath(path), options._apply(), described)
    return Plan(json.loads(text), model=os.fspath(path))
