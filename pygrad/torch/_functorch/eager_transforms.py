"""`torch._functorch.eager_transforms` is the module of the steps of transforms: libraries put steps
of theirs in it.
"""

from __future__ import annotations

import sys

from ..._install.stand_ins import supplement
from ..._transforms import steps

supplement(steps, "torch._functorch.eager_transforms")
sys.modules[__name__] = steps
