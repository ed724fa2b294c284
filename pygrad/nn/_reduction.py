"""The older way to select a loss's reduction: two flags instead of one name."""

from __future__ import annotations

import warnings


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The name of the reduction for ``size_average`` and ``reduce``, with PyTorch's warning.

    Example:
        >>> legacy_get_string(False, None, emit_warning=False)
        'sum'
    """
    average = size_average is None or bool(size_average)
    joined = reduce is None or bool(reduce)
    name = ("mean" if average else "sum") if joined else "none"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{name}' instead.",
            stacklevel=3,
        )
    return name
