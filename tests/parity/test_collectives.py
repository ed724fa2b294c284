"""The dtypes and ops that each collective takes, and its results, beside gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from collectives import sweep
from test_collectives import World

import pygrad

PROGRAM = """
import json, sys, warnings
import torch, torch.distributed as dist
from collectives import Rank, sweep
warnings.simplefilter("ignore")
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
print(json.dumps(sweep(Rank(torch, dist, rank, 2))))
"""
TESTS = Path(__file__).parent.parent
WITHOUT = {"gather complex64", "gather complex128"}
"""Collectives that gloo lacks for a dtype that it has."""


def gloo(folder: Path) -> list[dict[str, list[str]]]:
    """The sweep on two processes of PyTorch."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(folder / "store")],
            env={**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    return [json.loads(each.communicate(timeout=120)[0]) for each in started]


def test_dtypes_and_ops_of_each_collective(tmp_path: Path) -> None:
    world = World([pygrad.Engine() for _ in range(2)])
    ours: list[dict[str, Any]] = world(sweep)
    world.close()
    for rank, (mine, theirs) in enumerate(zip(ours, gloo(tmp_path), strict=True)):
        ring = {name for name in mine if "ring" in name}
        assert mine.keys() - ring == theirs.keys() - ring
        wrong = []
        for name in mine.keys() - ring:
            there, here = theirs[name], mine[name]
            if there == ["RuntimeError", "Invalid scalar type"]:
                assert "int16" in name or "uint" in name or name in WITHOUT, name
            elif "on complex tensors" in str(there):  # their texts lack a space, or name another
                if here[0] != there[0] or "on complex tensors" not in here[1]:
                    wrong.append((name, here, there))
            elif here != there:
                wrong.append((name, here, there))
        assert not wrong, f"rank {rank}: {wrong[:5]} and {len(wrong)} in all"
    assert len(ours[0]) > 800
