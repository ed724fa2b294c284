"""The main job: digits are learned to 97 %, twice alike, and pictures are drawn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tqdm", reason="the demo's extra is not installed")
pytest.importorskip("PIL", reason="the demo's extra is not installed")


def demo(out: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pygrad.demo", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "PATH": "/usr/bin:/bin",
            "HOME": str(out),
        },
    )
    return done.stdout


def test_demo_learns_the_digits_twice_alike(tmp_path: Path) -> None:
    texts = [demo(tmp_path / name) for name in ("a", "b")]
    hashes = [re.findall(r"\b[0-9a-f]{64}\b", text) for text in texts]
    assert len(hashes[0]) == 1
    assert hashes[0] == hashes[1]
    accuracies = [float(v) for v in re.findall(r"(\d+\.\d+) ?%", texts[0])]
    assert accuracies[-1] >= 97.0
    pictures = sorted(tmp_path.glob("a/*.png"))
    assert len(pictures) >= 2
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
