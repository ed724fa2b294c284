"""How a program of several cases runs the one that its command line names, on this rank."""

from __future__ import annotations

import sys
from typing import Any

import pygrad.distributed as dist


def run_case(cases: dict[str, Any]) -> None:
    """Calls the case with rank and size, and says that it passed."""
    dist.init_process_group("mpi")
    cases[sys.argv[1]](dist.get_rank(), dist.get_world_size())
    sys.stdout.write(f"rank {dist.get_rank()} passed\n")
    sys.stdout.flush()
    dist.destroy_process_group()
