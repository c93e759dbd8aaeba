"""Build backend: scikit-build-core, after a look for the real onnxruntime in this environment.

The mirror has the real one's name, so that what requires `onnxruntime` is satisfied; installing it
would replace the real one. That has to be a decision, not an accident.
"""

import os
import sysconfig
from pathlib import Path

from scikit_build_core import build as core
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

SWITCH = "SARDONYX_REPLACE_ONNXRUNTIME"
MARK = "served by Sardonyx"


def real_installation():
    """Folder of an installed onnxruntime that is not this mirror, or None."""
    paths = sysconfig.get_paths()
    for folder in dict.fromkeys([paths["platlib"], paths["purelib"]]):
        package = Path(folder) / "onnxruntime" / "__init__.py"
        if package.exists() and MARK not in package.read_text(encoding="utf-8", errors="replace"):
            return package.parent
    return None


def refuse_to_replace():
    """Stop the build if it would replace a real onnxruntime."""
    found = real_installation()
    if found is None or os.environ.get(SWITCH) == "1":
        return
    raise SystemExit(
        f"The real onnxruntime is installed in {found}, and an environment has room for one.\n"
        "To use Sardonyx in its place:  pip uninstall onnxruntime, then install this again,\n"
        f"or in one step:               {SWITCH}=1 pip install ...\n"
        "To keep both:                  import sardonyx as onnxruntime"
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build the wheel unless it would replace a real onnxruntime."""
    refuse_to_replace()
    return core.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """As build_wheel, for an editable installation."""
    refuse_to_replace()
    return core.build_editable(wheel_directory, config_settings, metadata_directory)
