"""Optimizers over ranks: each case of `programs/optimizer_cases.py` in worlds of two and three."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch import outputs

PROGRAM = Path(__file__).parent / "programs" / "optimizer_cases.py"
CASES = re.findall(r"^def (\w+)\(rank: int", PROGRAM.read_text(), re.MULTILINE)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, ranks: int) -> None:
    found = outputs([str(PROGRAM), case], ranks)
    assert found == [f"rank {rank} passed\n" for rank in range(ranks)]
