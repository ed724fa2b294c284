"""`torch._vmap_internals`: the older vmap, which old programs call."""

from __future__ import annotations

from .._transforms.older_vmap import _vmap as _vmap
from .._transforms.older_vmap import vmap as vmap
