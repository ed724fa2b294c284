"""Control flow as calls: branches, loops and scans whose bodies are functions. The bodies run as
they are; nothing is captured, and gradients pass through the ops that ran.
"""

from __future__ import annotations

from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
