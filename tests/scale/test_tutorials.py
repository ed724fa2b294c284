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


def test_getting_started_with_ddp() -> None:
    same = {  # on both ranks, and PyTorch's, over gloo
        "weights": "-0.7324 -0.4658 -1.2528 -0.7293",
        "gradients": "0.0779 0.2069 -0.8386 -0.3602",
        "trained": "-0.7876 -0.5099 -0.9314 -0.5943",
        "loaded": "-1.3822 1.2047 0.1592 -0.3001",
        "went on": "-1.3979 1.1896 0.1790 -0.3020",
    }
    losses = ["1.4909 1.2581 0.9567", "1.0178 1.2169 1.1299"]
    for rank, lines in enumerate(run("getting_started_with_ddp.py")):
        said = [line.removeprefix(f"rank {rank}: ") for line in lines]
        assert [line for line in said if "loss" not in line] == [
            f"{k} {v}" for k, v in same.items()
        ]
        assert [line for line in said if "loss" in line] == [
            f"loss {x}" for x in losses[rank].split()
        ]
