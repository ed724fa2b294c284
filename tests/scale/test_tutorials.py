"""Programs after PyTorch's tutorials run as they are, but for the name of the backend."""

from __future__ import annotations

from pathlib import Path

from launch import outputs

PROGRAMS = Path(__file__).parent / "programs"


def run(name: str) -> list[list[str]]:
    """The lines that each of two ranks prints, where `import torch` means pygrad."""
    found = outputs(["-m", "pygrad", str(PROGRAMS / name), "mpi"], 2)
    return [text.splitlines() for text in found]


def test_writing_distributed_applications() -> None:
    first, second = run("writing_distributed_applications.py")
    assert "rank 0: product of the maxima [9.0, 9.0]" in first
    assert "rank 1: ring [3.0, 4.0]" in second
    for rank, lines, losses in ((0, first, "2.30 2.23 1.59"), (1, second, "2.30 2.24 1.75")):
        for epoch, loss in enumerate(losses.split()):  # PyTorch's, over gloo
            assert f"rank {rank}: epoch {epoch} mean loss {loss}" in lines
        assert f"rank {rank}: all have the same weights: True" in lines
