"""The runner of `make clients`: what it takes for the same, and what its table says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

CLIENTS = Path(__file__).parent / "clients"


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clients_run", CLIENTS / "run.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["clients_run"] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ("loss 1.2345", "loss 1.2346"),
        ("a [1, nan, inf]", "a [1, nan, inf]"),
        ("1e-9\n", "0.0"),
        ("grad_fn=<AddBackward0>", "grad_fn=<AddBackward0>"),
    ],
)
def test_numbers_near_each_other_are_the_same(runner: ModuleType, wanted: str, got: str) -> None:
    assert runner.difference(wanted, got) == ""


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ("loss 1.2345", "loss 1.25"),
        ("loss 1.2345", "cost 1.2345"),
        ("a nan", "a 0.0"),
        ("a inf", "a -inf"),
        ("[1, 2]", "[1, 2, 3]"),
        ("one\ntwo", "one"),
        ("shape 3", "shape 4"),
    ],
)
def test_other_words_and_numbers_are_told_apart(runner: ModuleType, wanted: str, got: str) -> None:
    assert runner.difference(wanted, got) != ""


def test_share_is_whole_only_if_all_is(runner: ModuleType) -> None:
    assert runner.percentage(3, 3) == "100.0 %"
    assert runner.percentage(99_999, 100_000) == "99.9 %"
    assert runner.percentage(0, 0) == "none"


def test_packages_that_are_not_here_are_named(runner: ModuleType) -> None:
    wanted = (CLIENTS / "packages.txt").read_text().split()
    assert all(each.count("==") == 1 for each in wanted)
    assert set(runner.missing()) <= set(wanted)
    assert not [each for each in runner.missing() if each == f"pytest=={pytest.__version__}"]


def test_table_takes_its_place_in_a_document(runner: ModuleType, tmp_path: Path) -> None:
    place = tmp_path / "page.md"
    place.write_text(f"before\n{runner.BEGIN}old\n{runner.END}after\n")
    for text in ("first\n", "| second |\n"):
        runner.write_table(place, text)
        assert place.read_text() == f"before\n{runner.BEGIN}{text}{runner.END}after\n"


def test_program_says_in_a_line_what_it_does() -> None:
    programs = sorted((CLIENTS / "programs").glob("*.py"))
    for program in programs:
        first = program.read_text().split("\n")[0]
        assert first.startswith('"""'), program
        assert first.endswith('."""'), program
    assert len(programs) > 20
