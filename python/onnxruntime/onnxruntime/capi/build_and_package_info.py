"""Name and version of this distribution."""

import sardonyx

package_name = "onnxruntime"
__version__ = sardonyx.__version__
