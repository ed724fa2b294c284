"""A plugin of pytest: `--every 10` runs each tenth test."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.addoption("--every", type=int, default=1, help="run every n-th test alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the others."""
    items[:] = items[:: config.getoption("--every")]
