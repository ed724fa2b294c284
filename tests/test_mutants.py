"""Each mutant of `make mutants` changes one place of the program as it is now."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mutants.run import Mutant, mutants

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: f"{mutant.part}: {mutant.breaks}")
def test_a_mutant_changes_one_place_that_its_tests_may_see(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    if not mutant.is_in_c:
        ast.parse(text.replace(mutant.old, mutant.new))
    assert mutant.tests
    assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in mutant.tests)


def test_no_sentence_says_two_mutants() -> None:
    found = mutants()
    assert len({mutant.breaks for mutant in found}) == len(found)
