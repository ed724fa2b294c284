"""The boundary: everything that passes between Python and the engine's memory, and nothing else.

From the bottom up: `constants`, `process`, `host`, `frame`, `ownership`, `table`, `limits`,
`hosting`, `release`. This module exports the names that the rest of the package needs.
"""

from __future__ import annotations

from . import host, hosting, ownership, process, release
from .constants import *
from .frame import *
from .host import (
    base_address,
    call,
    call2,
    call2_places,
    double_slot,
    doubles,
    frame,
    ints,
    layout,
    memory,
    result_slot,
    text_at,
    trap_slot,
    unsigned,
    words,
)
from .hosting import failure
from .objects import watched as watched
from .ownership import (
    before_use,
    call2_long,
    call_long,
    call_with_lock,
    farewell,
    lock,
    mine,
    trap_error,
    used_by_one,
)
from .release import (
    collect_pending,
    drain,
    drain_if_idle,
    drain_if_last,
    forget_dropped,
    hand_over,
    hand_over_rest,
    kept,
    live_count,
    queued_warnings,
    released,
    user_level,
)
from .table import describe, intern
