"""DistributedDataParallel on several ranks: each case of `programs/ddp_cases.py` in a world."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch import launch, outputs

PROGRAM = Path(__file__).parent / "programs" / "ddp_cases.py"
NEED_THREE = {"group_of_some_ranks"}
KILL = {"rank_dies_in_backward"}
CASES = re.findall(r"^def (\w+)\(rank: int", PROGRAM.read_text(), re.MULTILINE)


@pytest.mark.parametrize("case", [case for case in CASES if case not in KILL])
def test_case(case: str) -> None:
    ranks = 3 if case in NEED_THREE else 2
    found = outputs([str(PROGRAM), case], ranks)
    assert found == [f"rank {rank} passed\n" for rank in range(ranks)]


@pytest.mark.parametrize(
    "case",
    [
        "mean_of_gradients",
        "unused_differ_by_rank",
        "fewer_micro_batches_than_ranks",
        "ranks_join_with_fewer_batches",
        "ranks_that_join_take_the_model_of_the_last",
        "hooks_give_the_mean",
    ],
)
def test_case_on_three_ranks(case: str) -> None:
    outputs([str(PROGRAM), case], 3)


def test_rank_that_dies_in_backward_is_told_to_the_others() -> None:
    killed = 128 + 9
    first, second, third = launch([str(PROGRAM), "rank_dies_in_backward"], 3)
    assert second.code == killed
    for each in (first, third):
        assert each.code == 1
        assert "DistBackendError" in each.err
        assert "rank 1" in each.err
