"""Tests that an op conforms to its schema and rules: `opcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Final

from .. import ops
from .._dispatch.handlers import tensors_in
from .._ground.tree import map_leaves
from .._table.function_schema import Argument
from .._tensor.tensor import Tensor
from ._arguments import by_argument, match_arguments, split
from ._calls import fallback_mode, set_fallback_mode
from ._kernels import COMPOSITES, run_fake
from ._registry import entry_of, has_kernel, is_native


class OpCheckError(Exception):
    """An op does not conform to its schema or rules."""


def _copy_tensors(values: Any) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return map_leaves(copy, values)


def _storages(values: Any) -> set[int]:
    return {each.untyped_storage()._cdata for each in tensors_in([values]) if each.numel()}


def _names(argument: Argument | None) -> set[str]:
    """The alias names of an argument or a result."""
    info = argument.alias_info if argument is not None else None
    return set() if info is None else info.before_set | info.after_set


def _check_schema(op: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Checks that only arguments marked as written change, and that results alias as the schema
    says.
    """
    schema = op._schema
    for each in tensors_in([*args, *kwargs.values()]):
        each.requires_grad_(False)
    given = by_argument(schema, args, kwargs)
    before = {argument: _copy_tensors(value) for argument, value in given.items()}
    made = op(*args, **kwargs)
    results = list(made) if isinstance(made, tuple) and len(schema.returns) > 1 else [made]
    for argument, value in given.items():
        name = "input" if argument.name == "self" else argument.name
        for result, told in zip(results, schema.returns, strict=False):
            shared = _storages(result) & _storages(value)
            if shared and not _names(argument) & _names(told) and op.name() not in _UNSAFE:
                raise RuntimeError(
                    f"Argument {name} is not defined to alias output but was aliasing"
                )
        pairs = zip(tensors_in([value]), tensors_in([before[argument]]), strict=True)
        if not argument.is_write and not all(_is_same(now, then) for now, then in pairs):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
    for (i, one), (j, other) in combinations(enumerate(results), 2):
        told = schema.returns
        if _storages(one) & _storages(other) and not _names(told[i]) & _names(told[j]):
            raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


_UNSAFE: Final = ("aten::_unsafe_view", "aten::unsafe_split.Tensor")
"""Ops that make views although their schemas do not say so."""


def _is_same(now: Tensor, then: Tensor) -> bool:
    return now.shape == then.shape and bool(((now == then) | (now != now)).all())


def _check_autograd(op: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Checks that results with history come from a rule for autograd, and not from ops recorded
    within the function.
    """
    given = tensors_in([*args, *kwargs.values()])
    keys = ("AutogradCPU", "Autograd", "CompositeImplicitAutograd")
    if not any(each.requires_grad for each in given) or any(
        has_kernel(op.name(), key) for key in keys
    ):
        return
    was = fallback_mode()
    set_fallback_mode("nothing")
    try:
        made = tensors_in([op(*args, **kwargs)])
    finally:
        set_fallback_mode(was)
    if any(each.requires_grad and all(each is not one for one in given) for each in made):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the "
            "operator does not have an autograd kernel defined at an autograd key (e.g. "
            "DispatchKey::Autograd). This could mean that you have incorrectly registered an "
            "autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect "
            "results. If your operator consists of regular PyTorch operations, consider not using "
            "an operator at all or registering your operator as CompositeImplicitAutograd. If you "
            "have an autograd.Function registered to a backend (CPU/CUDA/XPU) key, the correct "
            "location for it is the Autograd key."
        )


def _check_fake(op: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Checks that on tensors without elements the op makes results of the same shapes and types,
    except for sizes that depend on data.
    """
    if is_native(op.name()):
        return
    entry = entry_of(op.name())
    values = match_arguments(entry.schema, args, kwargs)
    fakes = [tensors_in([_call_fake(op, entry, values, more)]) for more in (0, 1)]
    made = tensors_in([op(*args, **kwargs)])
    what = f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatch"
    if len(fakes[0]) != len(made):
        raise RuntimeError(f"{what} in number of returns {len(fakes[0])} != {len(made)}")
    for fake, other, real in zip(*fakes, made, strict=True):
        open_ = [a != b for a, b in zip(fake.shape, other.shape, strict=True)]
        shape = [
            a if any_ else b for a, b, any_ in zip(real.shape, fake.shape, open_, strict=False)
        ]
        if len(real.shape) != len(fake.shape) or list(real.shape) != shape:
            raise RuntimeError(
                f"{what}ed tensor metadata: Shapes {real.shape} and {fake.shape} are not equal!"
            )
        if fake.dtype != real.dtype:
            raise RuntimeError(
                f"{what}ed tensor metadata: Dtypes {real.dtype} and {fake.dtype} are not equal!"
            )


def _call_fake(op: Any, entry: Any, values: list[Any], more: int) -> Any:
    def without_elements(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, Tensor) else value

    given = map_leaves(without_elements, values)
    args, kwargs = split(entry.schema, given)
    kernels = entry.kernels.keys() & {"Meta", *COMPOSITES}
    if entry.fake is not None:
        return run_fake(entry, args, kwargs, more)
    if not kernels and not entry.schema.is_mutable:
        raise RuntimeError(f"{op}: no fake impl was registered; use register_fake")
    return op(*args, **kwargs)


_CHECKS: Final[dict[str, Callable[[Any, Any, dict[str, Any]], None]]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
}
_REFUSED: Final = ("test_aot_dispatch_static", "test_aot_dispatch_dynamic")


def _overload_of(op: Any) -> Any:
    if hasattr(op, "_opoverload"):
        op = op._opoverload
    if isinstance(op, ops.OpOverloadPacket):
        names = op.overloads()
        if len(names) != 1:
            raise RuntimeError(
                "opcheck can only test operators without overloads. Got the following overloads "
                f"for {op._qualified_op_name}: {['' if n == 'default' else n for n in names]}"
            )
        op = getattr(op, names[0])
    if not isinstance(op, ops.OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
            f"torch.ops.aten.sin.default, got {type(op)}"
        )
    return op


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Checks an op on arguments: one of a library, or of PyTorch's own.

    Args:
        test_utils: some of "test_schema", "test_autograd_registration" and "test_faketensor".
            PyTorch's tests that compile are refused.

    Returns: the result of each check: "SUCCESS", or without `raise_exception` an error. Arguments
        without elements are not checked.

    Raises:
        OpCheckError: a check fails. ValueError: it is no op, or there is no such
            check. NotImplementedError: a check that compiles.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.library import opcheck
        >>> opcheck(torch.ops.aten.sin.default, (torch.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    op = _overload_of(op)
    known = (*_CHECKS, *_REFUSED)
    tests = known if test_utils == "ALL" else test_utils
    tests = (tests,) if isinstance(tests, str) else tests
    if not isinstance(tests, (tuple, list)) or not set(tests) <= set(known):
        raise ValueError(
            f"opcheck(op, ..., test_utils={tests}), expected test_utils to be subset of {known} "
            "but it was not"
        )
    found: dict[str, Any] = {}
    kwargs = kwargs or {}
    abstract = any(each.is_meta for each in tensors_in([*args, *kwargs.values()]))
    for test in tests:
        if test in _REFUSED:
            raise NotImplementedError(f"torch.library.opcheck: {test} needs torch.compile")
        try:
            if not abstract:
                _CHECKS[test](op, *_copy_tensors((tuple(args), kwargs)))
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {test} failed with {error} (scroll up for stack trace)"
                ) from error
            found[test] = error
        else:
            found[test] = "SUCCESS"
    return found
