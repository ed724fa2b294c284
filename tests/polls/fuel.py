"""An engine that counts the instructions it runs: import this before pygrad."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import wasmtime

os.environ["PYGRAD_CACHE"] = "0"
sys.path.insert(0, str(Path(__file__).parents[1]))

_config, _store = wasmtime.Config, wasmtime.Store
stores: list[Any] = []
"""The stores of the engines, the first engine's first."""


class Config(_config):
    """Compiles code that counts instructions."""

    def __init__(self) -> None:
        super().__init__()
        self.consume_fuel = True


class Store(_store):
    """Has instructions without end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.set_fuel(1 << 62)
        stores.append(self)


wasmtime.Config, wasmtime.Store = Config, Store
