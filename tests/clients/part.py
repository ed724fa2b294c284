"""A plugin of pytest: `--every 10` runs each tenth test, and each begins with the same seeds, so
that it draws the same numbers whatever ran before it, and under pygrad those that it draws under
torch.
"""

from __future__ import annotations

import random

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.addoption("--every", type=int, default=1, help="run every n-th test alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the others."""
    items[:] = items[:: config.getoption("--every")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sets the seeds."""
    import torch  # which pygrad may stand for

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
