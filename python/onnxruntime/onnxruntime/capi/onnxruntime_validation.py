"""Checks of the environment; there is nothing to check."""

from .build_and_package_info import __version__, package_name


def check_distro_info():
    """Every distribution that can load the library will do."""


def get_package_name_and_version_info():
    """Return name, version and the CUDA version, which is empty."""
    return package_name, __version__, ""
