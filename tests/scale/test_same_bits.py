"""Trainings end with the same hash of weights and optimizer state on any number of ranks."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from launch import environment, outputs

PROGRAMS = Path(__file__).parent / "programs"
RECORDED = {
    "digits_mlp": "e0d0da2cc485ae1d0213b9d1cb6d516e4ed2d384cbd569933a306c9a18323ab7",
    "transformer": "e13db31c7657b48fab478b24d6e715d4715634f188aab5ff85692d987f608048",
}
"""The hash of each program, on any CPU."""


@functools.cache
def said_alone(name: str) -> str:
    """What a program prints that mpiexec has not started."""
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


@pytest.mark.parametrize("name", RECORDED)
def test_one_process_without_mpiexec_ends_with_the_recorded_hash(name: str) -> None:
    assert said_alone(name).split()[-1] == RECORDED[name]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("name", RECORDED)
def test_any_number_of_ranks_ends_with_the_recorded_hash(name: str, ranks: int) -> None:
    found = outputs([str(PROGRAMS / f"{name}.py")], ranks, timeout=120)
    assert [each.split()[-1] for each in found] == [RECORDED[name]] * ranks


def test_perceptron_has_learnt_to_read() -> None:
    assert float(said_alone("digits_mlp").split()[3]) > 0.9
