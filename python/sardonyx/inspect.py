"""Look at models, plans and memory without running anything. The results are dicts."""

import json
import os

from . import _native
from .options import SessionOptions

__all__ = [
    "describe_build",
    "describe_context",
    "describe_memory",
    "describe_model",
    "describe_options",
    "plan_model",
    "suggest_patterns",
]


def describe_build():
    """How the runtime library was built, and which instruction sets it uses here."""
    return json.loads(_native.describe_build())


def describe_options():
    """Every option of a session: key, type, default, range and a sentence."""
    return json.loads(_native.describe_options())


def describe_memory():
    """Memory of the process that weights and arenas take, and what is shared."""
    return json.loads(_native.describe_memory())


def describe_model(path):
    """What a model file holds: inputs, outputs, operators, weights; nothing is loaded."""
    return json.loads(_native.describe_model(os.fspath(path)))


def describe_context(path, verify=False):
    """What a compiled model holds; with verify, all of its content is checked."""
    return json.loads(_native.describe_context(os.fspath(path), bool(verify)))


def plan_model(path, sess_options=None):
    """Where each node would run and why, and the memory it would take; nothing is loaded."""
    options = sess_options or SessionOptions()
    return json.loads(_native.plan_model(os.fspath(path), options._apply()))


def suggest_patterns(path):
    """Patterns for placement rules that the names in a model allow, layer by layer."""
    return json.loads(_native.suggest_patterns(os.fspath(path)))
