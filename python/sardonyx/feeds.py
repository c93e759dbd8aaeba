"""Messages for feeds and output names that do not fit a model."""

import difflib
import os

from . import errors

__all__ = ["nearest", "raise_feed_error", "raise_output_error"]


def nearest(name, candidates):
    """ ", did you mean 'x'?" for a name that resembles a candidate, else an empty text."""
    found = difflib.get_close_matches(str(name), [str(item) for item in candidates], 1, 0.6)
    return f", did you mean '{found[0]}'?" if found else ""


def listed(names):
    """Names in quotes, the first twenty of them."""
    text = ", ".join(f"'{name}'" for name in names[:20])
    return text + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def raise_invalid(text):
    """Raise InvalidArgument in the form of the runtime's own messages."""
    raise errors.InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {text}")


def raise_feed_error(session, feeds):
    """Raise the error that says what is missing from the feeds or unknown to the model."""
    inputs = session.inputs()
    known = [name for name, _, _ in inputs + session.initializers()]
    unknown = [name for name in feeds if name not in known]
    missing = [
        name for name, kind, _ in inputs if not kind.startswith("optional") and name not in feeds
    ]
    lines = []
    if missing:
        declared = {name: f"{kind}{shape}" for name, kind, shape in inputs}
        wanted = ", ".join(f"'{name}' ({declared[name]})" for name in missing[:20])
        lines.append(
            f"Required inputs ({missing}) are missing from input feed ({list(feeds)}): {wanted}"
        )
    for name in unknown:
        if not isinstance(name, str):
            lines.append(f"names of inputs are strings, found {type(name).__name__} {name!r}")
            continue
        hint = nearest(name, known) or f"; the model has {listed(known) or 'no inputs'}"
        lines.append(f"Invalid input name: {name}{hint}")
    raise_invalid(". ".join(lines) or "the feeds do not fit the model")


def raise_output_error(session, name):
    """Raise the error for a name that is no output of the model."""
    known = [output for output, _, _ in session.outputs()]
    hint = nearest(name, known) or f"; the model has {listed(known)}"
    raise_invalid(f"Invalid output name: {name}{hint}")


def path_text(path):
    """A path as the text that the C interface takes."""
    text = os.fspath(path)
    return os.fsdecode(text)
