"""The older vmap, which `gradcheck` and old programs call.

It maps custom Functions as they are written, without a rule of their own.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._tensor.base import Tensor
from . import vmap as maps


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its inputs.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        in_dims: which dimension of each input to map over, None for an input that is the same for
            all.
        out_dims: the place of the mapped dimension in each output.
        allow_none_pass_through: let None among the outputs of a tuple be.

    Raises:
        RuntimeError: an op that cannot be mapped, or a random one.
        ValueError: `in_dims` or `out_dims` do not fit, or an output is no tensor.

    Example:
        >>> import pygrad
        >>> from pygrad._vmap_internals import _vmap
        >>> _vmap(lambda x: (x.sum(), None), allow_none_pass_through=True)(pygrad.eye(2))
        (tensor([1., 1.]), None)
    """

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        nones: list[int] = []

        def call(*given: Any) -> Any:
            found = func(*given)
            several = isinstance(found, tuple)
            for i, output in enumerate(found if several else (found,)):
                if output is None and several and allow_none_pass_through:
                    nones.append(i)
                elif not isinstance(output, Tensor):
                    name = maps._get_name(func)
                    place = f"for return {i}" if several else "as the return"
                    raise ValueError(
                        f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                        f"{type(output)} {place}."
                    )
            return tuple(y for y in found if y is not None) if several else found

        was, maps.levels.plain = maps.levels.plain, True
        try:
            found = maps.vmap(call, in_dims, out_dims)(*args)
        except RuntimeError as error:
            if not str(error).startswith("vmap: called random operation"):
                raise
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap. Please "
                "perform random operations outside of vmap as a workaround"
            ) from None
        finally:
            maps.levels.plain = was
        if not nones:
            return found
        rest = iter(found)
        return tuple(None if i in nones else next(rest) for i in range(len(found) + len(nones)))

    return wrapper


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Deprecated: use `pygrad.vmap`.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> pygrad._vmap_internals.vmap(pygrad.dot)(pygrad.eye(2), pygrad.ones(2, 2))
        tensor([1., 1.])
    """
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.",
        FutureWarning,
        stacklevel=2,
    )
    return _vmap(func, in_dims, out_dims)
