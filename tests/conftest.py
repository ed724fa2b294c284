"""What every test file shares: a fresh state before each test, none after the engine broke down."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import pygrad
from pygrad import _boundary


def pytest_collection_finish() -> None:
    """The collected tests are here to stay: without them a garbage collection takes no time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _fresh_state() -> Iterator[None]:
    pygrad.manual_seed(0)
    yield
    if _boundary.host.unusable is not None:
        pytest.exit(f"the engine broke down: {_boundary.host.unusable}", returncode=1)
    recording = pygrad.is_grad_enabled()
    pygrad.set_grad_enabled(True)
    assert recording, "the test left recording off"
