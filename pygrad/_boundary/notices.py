"""Warnings of the import itself."""

from __future__ import annotations

import sys
import warnings


def warn(text: str) -> None:
    """Warns. A filter that makes errors of warnings does not stop the import."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        print(f"RuntimeWarning: {text}", file=sys.stderr)
