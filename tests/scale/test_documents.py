"""The examples of web/docs/distributed.md run, alone and on two ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch import ROOT, outputs

TEXT = (ROOT / "web" / "docs" / "distributed.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
HASH = """
import hashlib
found = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(hashlib.sha256(found).hexdigest())
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("block", BLOCKS, ids=["first", "micro-batches", "uneven"])
def test_block_runs(tmp_path: Path, block: str, ranks: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(block)
    assert outputs([str(program)], ranks) == [""] * ranks


def test_program_with_micro_batches_has_the_same_bits_on_any_number_of_ranks(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(BLOCKS[1] + HASH)
    found = {text for ranks in (1, 2, 3) for text in outputs([str(program)], ranks)}
    assert len(found) == 1
