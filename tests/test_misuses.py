"""What misuses of a package raise: those that `tests/misuses` lists, in the words of the record."""

from __future__ import annotations

import pytest
from misuses.run import PARTS, in_a_process, record, refusals

ELSEWHERE = {
    "library": ("_Misfit", "entry.refusal"),
    "fx": (),
    "nested": ("no nested tensor among", "raise NotImplementedError\n", "not_there(name, like)"),
}
"""Parts of refusals that no misuse raises: they never get out, or other tests have them."""


@pytest.mark.parametrize("part", PARTS)
def test_misuses_raise_what_is_recorded(part: str) -> None:
    """The records are compared with PyTorch by `make parity`."""
    assert in_a_process("pygrad", part) == record(part)


@pytest.mark.parametrize("part", PARTS)
def test_every_refusal_is_raised_by_a_misuse(part: str) -> None:
    ran = {tuple(each) for each in in_a_process("reached", part)}
    missed = [
        text
        for place, text in refusals(part).items()
        if place not in ran and not any(each in f"{text}\n" for each in ELSEWHERE[part])
    ]
    assert missed == []
