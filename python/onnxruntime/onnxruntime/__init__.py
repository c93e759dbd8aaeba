"""The name onnxruntime, served by Sardonyx: everything here is the package sardonyx's."""

import sardonyx
from sardonyx import *

from . import capi

__version__ = sardonyx.__version__
__all__ = list(sardonyx.__all__)
__all__ += ["capi"]
