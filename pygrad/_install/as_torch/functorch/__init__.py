"""The module of ``import functorch`` where pygrad is installed as torch: PyTorch comes with a
package of that name beside it.
"""

from __future__ import annotations

import importlib
import sys

torch = importlib.import_module("torch")
sys.modules[__name__] = importlib.import_module("pygrad.functorch")
