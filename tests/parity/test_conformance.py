"""The page's results of PyTorch are those of this PyTorch and of the samples as they are now."""

from __future__ import annotations

import conformance


def test_recorded_results_are_of_now() -> None:
    recorded = conformance.TARGET.read_text(encoding="utf-8")
    assert conformance.text() == recorded, "run tests/parity/conformance.py"
