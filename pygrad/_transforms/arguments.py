"""Arguments chosen by number, as transforms take them; the steps have PyTorch's names."""

from __future__ import annotations

from typing import Any, TypeAlias

argnums_t: TypeAlias = "int | tuple[int, ...]"


def _as_tuple(val: Any) -> tuple[Any, ...]:
    return val if isinstance(val, tuple) else (val,)


def _validate_and_wrap_argnum(argnum: Any, num_args: int) -> int:
    """A place among arguments, counted from the first."""
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -num_args <= argnum < num_args:
        raise RuntimeError(f"Got argnum={argnum}, but only {num_args} positional inputs")
    return argnum % num_args


def _validate_and_wrap_argnums(argnums: argnums_t, num_args: int) -> argnums_t:
    if isinstance(argnums, int):
        return _validate_and_wrap_argnum(argnums, num_args)
    return tuple(_validate_and_wrap_argnum(each, num_args) for each in argnums)


def _check_unique_non_empty(argnums: argnums_t) -> None:
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if len(set(argnums)) != len(argnums):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def _check_kind(argnums: Any) -> None:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")


def _slice_argnums(args: tuple[Any, ...], argnums: argnums_t, as_tuple: bool = True) -> Any:
    """The arguments at these places; for a single number, a tuple of one or the argument itself.

    Example:
        >>> _slice_argnums(("a", "b"), -1), _slice_argnums(("a", "b"), 0, as_tuple=False)
        (('b',), 'a')
    """
    _check_kind(argnums)
    places = _validate_and_wrap_argnums(argnums, len(args))
    _check_unique_non_empty(places)
    if isinstance(places, tuple):
        return tuple(args[place] for place in places)
    return (args[places],) if as_tuple else args[places]


def _replace_args(
    old_args: tuple[Any, ...], new_args: tuple[Any, ...], argnums: argnums_t
) -> tuple[Any, ...]:
    """Arguments with others at these places.

    Example:
        >>> _replace_args(("a", "b"), ("c",), 1)
        ('a', 'c')
    """
    _check_kind(argnums)
    if isinstance(argnums, int) and len(new_args) != 1:
        raise RuntimeError(f"new_args should be of size 1, was of size {len(new_args)}")
    places = _as_tuple(argnums)
    if len(new_args) != len(places):
        raise RuntimeError(
            f"new_args should have the same size as argnums. Argnums size {len(places)}, new_args "
            f"size {len(new_args)}"
        )
    found = dict(zip(places, new_args, strict=True))
    return tuple(found.get(place, old) for place, old in enumerate(old_args))
