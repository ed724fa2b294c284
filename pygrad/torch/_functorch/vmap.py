"""`torch._functorch.vmap` is the module of vmap itself: libraries put steps of theirs in it."""

from __future__ import annotations

import sys

from ..._install.stand_ins import supplement
from ..._transforms import vmap

supplement(vmap, "torch._functorch.vmap")
sys.modules[__name__] = vmap
