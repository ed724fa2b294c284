"""Whether an op keeps to what its schema and rules say: `opcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import ops
from .._tensor import Tensor
from .._tree import flatten
from ._registry import Entry, bound, entry_of, run, run_fake, split


class OpCheckError(Exception):
    """An op is not what it says."""


def _copied(values: Any) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return [copy(v) for v in value] if isinstance(value, list) else value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return [copy(value) for value in values]


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in flatten(values)[0] if isinstance(each, Tensor)]


def _check_schema(entry: Entry, values: list[Any]) -> None:
    """Arguments change where the schema says so alone, and results are no arguments."""
    given = _copied(values)
    for argument, value in zip(entry.schema.arguments, given, strict=True):
        for each in _tensors([value]):
            each.requires_grad_(False)
        if argument.is_write:
            continue
    before = [[each.clone() for each in _tensors([value])] for value in given]
    result = run(entry, given)
    for argument, value, was in zip(entry.schema.arguments, given, before, strict=True):
        for now, then in zip(_tensors([value]), was, strict=True):
            same = now.shape == then.shape and bool(((now == then) | (now != now)).all())
            if not same and not argument.is_write:
                raise OpCheckError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )
    held = {each.untyped_storage()._cdata for each in _tensors(given)}
    aliased = any(each.alias_info is not None for each in entry.schema.returns)
    for made in _tensors(result):
        if made.untyped_storage()._cdata in held and not aliased:
            raise OpCheckError(
                f"{entry.qualname}: a result is not defined to alias an argument but does"
            )


def _check_autograd(entry: Entry, values: list[Any]) -> None:
    """Where an argument requires grad, so does a result, and backward runs."""
    if not any(each.requires_grad for each in _tensors(values)) or entry.schema.is_mutable:
        return
    made = [each for each in _tensors(run(entry, _copied(values))) if each.is_floating_point()]
    if not made:
        return
    if not any(each.requires_grad for each in made) or (
        entry.is_custom and entry.autograd is None and "Autograd" not in entry.kernels
    ):
        raise OpCheckError(
            f"Expected at least one output of {entry.qualname} to require grad, with an autograd "
            "formula: none was registered; use register_autograd"
        )


def _check_fake(entry: Entry, values: list[Any]) -> None:
    """The fake function makes results of the same shapes and types."""
    if entry.fake is None:
        raise OpCheckError(f"{entry.qualname}: no fake impl was registered; use register_fake")
    args, kwargs = split(entry, _copied(values))
    fakes, real = _tensors(run_fake(entry, args, kwargs)), _tensors(run(entry, _copied(values)))
    if len(fakes) != len(real):
        raise OpCheckError(f"{entry.qualname}: {len(fakes)} fake results for {len(real)}")
    for fake, made in zip(fakes, real, strict=True):
        if (fake.shape, fake.dtype) != (made.shape, made.dtype):
            raise OpCheckError(
                f"{entry.qualname}: the fake impl gives {fake.dtype} of shape {tuple(fake.shape)}, "
                f"the op {made.dtype} of shape {tuple(made.shape)}"
            )


_CHECKS: Final[dict[str, Callable[[Entry, list[Any]], None]]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
}
_REFUSED: Final = {"test_aot_dispatch_static", "test_aot_dispatch_dynamic"}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Checks an op of a library on arguments.

    Args:
        test_utils: of "test_schema", "test_autograd_registration" and "test_faketensor". Those of
            PyTorch that compile are refused.

    Returns: what each check found: "SUCCESS", or without `raise_exception` an error.

    Raises: OpCheckError: the op is not what it says. NotImplementedError: a check that compiles.
    """
    name = op.name() if isinstance(op, ops.OpOverload) else None
    entry = op._entry if hasattr(op, "_entry") else entry_of(name or str(op).replace(".", "::", 1))
    found: dict[str, Any] = {}
    for test in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if test in _REFUSED:
            raise NotImplementedError(f"torch.library.opcheck: {test} needs torch.compile")
        if test not in _CHECKS:
            raise ValueError(f"opcheck(op, ...): unknown test_utils {test!r}")
        try:
            _CHECKS[test](entry, bound(entry, args, kwargs or {}))
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {test} failed with {error}") from error
            found[test] = error
        else:
            found[test] = "SUCCESS"
    return found
