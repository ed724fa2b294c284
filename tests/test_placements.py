"""Placements are values: libraries make and compare them when they are imported."""

from __future__ import annotations

import dataclasses

import pytest

from pygrad.distributed.tensor import Partial, Placement, Replicate, Shard
from pygrad.distributed.tensor.placement_types import _StridedShard

ALL = [
    Shard(0),
    Shard(-1),
    Replicate(),
    Partial(),
    Partial("avg"),
    _StridedShard(0, split_factor=2),
]


def test_printed_as_pytorch_prints_them() -> None:
    assert list(map(repr, ALL)) == (
        ["Shard(dim=0)", "Shard(dim=-1)", "Replicate()", "Partial(sum)", "Partial(avg)"]
        + ["_StridedShard(dim=0, sf=2)"]
    )
    assert list(map(str, ALL)) == ["S(0)", "S(-1)", "R", "P(sum)", "P(avg)", "_S(0, 2)"]


def test_each_equals_itself_alone() -> None:
    assert len({*ALL, *map(dataclasses.replace, ALL[:5])}) == len(ALL)
    assert all((a == b) == (a is b) for a in ALL for b in ALL)


def test_asked_what_they_are() -> None:
    assert [p.is_shard() for p in ALL] == [True, True, False, False, False, False]
    assert [p.is_shard(0) for p in ALL] == [True, False, False, False, False, False]
    assert [p.is_replicate() for p in ALL] == [False, False, True, False, False, False]
    assert [p.is_partial() for p in ALL] == [False, False, False, True, True, False]
    assert [p.is_partial("avg") for p in ALL] == [False, False, False, False, True, False]
    assert all(isinstance(p, Placement) for p in ALL)
    assert not Placement().is_shard()


def test_not_written_to() -> None:
    with pytest.raises(AttributeError):
        Shard(0).dim = 1  # type: ignore[misc]
