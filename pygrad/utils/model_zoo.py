"""Older names of functions in `hub`."""

from __future__ import annotations

from typing import Any

from .._ground.package import submodule

__all__ = ["load_url"]


def load_url(*args: Any, **kwargs: Any) -> Any:
    """Calls `hub.load_state_dict_from_url`."""
    return submodule("hub").load_state_dict_from_url(*args, **kwargs)


def _download_url_to_file(*args: Any, **kwargs: Any) -> None:
    submodule("hub").download_url_to_file(*args, **kwargs)
