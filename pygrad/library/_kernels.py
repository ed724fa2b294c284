"""The call of a library's op below autograd: asks modes and classes of tensors, then runs the op's
function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._dispatch.handlers import dispatch_by_rule, tensors_in
from .._tensor.tensor import Tensor
from ..autograd.graph import increment_version
from ._arguments import by_argument, split_without_defaults
from ._entry import Entry


class FakeContext:
    """The context of a fake function."""

    def __init__(self, more: int = 0) -> None:
        self.more = more

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that depends on data: the smallest, as there are no symbolic sizes.

        Raises: ValueError: the smallest is less than 0.
        """
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal "
                "to 0: this API can only create non-negative sizes."
            )
        return min + self.more

    create_unbacked_symint = new_dynamic_size


class _OfThread(threading.local):
    fake: FakeContext | None = None


_here = _OfThread()


def current_context() -> FakeContext:
    """See `get_ctx`."""
    if _here.fake is None:
        raise RuntimeError("get_ctx() may only be called from a fake impl")
    return _here.fake


def run_fake(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any], more: int = 0) -> Any:
    """Runs the op's fake function. An op that writes and returns nothing needs none. Sizes that
    depend on data get their minimum plus `more`.

    Raises: RuntimeError, NotImplementedError: it has none.
    """
    if entry.fake is None:
        if entry.schema.is_mutable and not entry.schema.returns:
            return None
        if entry.is_custom:
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({entry.qualname})>. This is "
                "necessary for torch.compile/export/fx tracing to work. Please use "
                f"`{entry.called}.register_fake` to add an fake impl."
            )
        raise NotImplementedError(
            f"{entry.qualname}: attempted to run this operator with Meta tensors, but there was no "
            "fake impl or Meta kernel registered. You may have run into this message while using "
            "an operator with PT2 compilation APIs (torch.compile/torch.export); in order to use "
            "this operator with those APIs you'll need to add a fake impl. Please see the "
            "following for next steps:  "
            "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
        )
    was, _here.fake = _here.fake, FakeContext(more)
    try:
        return entry.fake(*args, **kwargs)
    finally:
        _here.fake = was


watchers: Final[list[Callable[..., Any]]] = []
"""Functions that see ops of libraries before modes do, innermost last: called with the op, its
arguments and the function that runs it."""


def run_below(entry: Entry, values: Sequence[Any]) -> Any:
    """Modes and tensors' classes are asked, else the op's function runs."""
    args, kwargs = split_without_defaults(entry.schema, values)
    if watchers:
        return watchers[-1](entry.op, args, kwargs, lambda: _run_below(entry, args, kwargs))
    return _run_below(entry, args, kwargs)


def _run_below(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    found = dispatch_by_rule(entry.op, args, kwargs, entry.by_class)
    return run_kernel(entry, args, kwargs) if found is NotImplemented else found


def run_kernel(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs the op's function for the device of its arguments.

    Raises: NotImplementedError: it has none for it.
    """
    kernels = entry.kernels
    if "BackendSelect" in kernels:
        return kernels["BackendSelect"](*args, **kwargs)
    tensors = tensors_in([*args, *kwargs.values()])
    if any(each.is_meta for each in tensors):
        return _run_on_meta(entry, args, kwargs)
    for key in _RUNS:
        if key in kernels and key not in entry.disabled:
            return _call_checked_kernel(entry, kernels[key], tensors, args, kwargs)
    if entry.refusal is not None:
        raise NotImplementedError(entry.refusal("CPU" if tensors else "Undefined"))
    raise NotImplementedError(
        f"Could not run '{entry.qualname}' with arguments from the 'CPU' backend. This could be "
        "because the operator doesn't exist for this backend. "
        f"'{entry.qualname}' is only available for these backends: {sorted(kernels)}."
    )


def _run_on_meta(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if "Meta" in entry.kernels:
        return entry.kernels["Meta"](*args, **kwargs)
    if entry.fake is None and not entry.is_custom:
        for key in COMPOSITES:
            if key in entry.kernels:
                return entry.kernels[key](*args, **kwargs)
    return run_fake(entry, args, kwargs)


COMPOSITES: Final = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The keys of functions for any device, in order of preference."""
_RUNS: Final = ("CPU", *COMPOSITES)
"""The keys of functions for tensors with elements."""


def _call_checked_kernel(
    entry: Entry,
    kernel: Callable[..., Any],
    tensors: Sequence[Tensor],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    result = kernel(*args, **kwargs)
    if entry.is_custom:
        if entry.schema.is_mutable:
            _count_writes(entry, args, kwargs)
        _check_result(entry, result)
        held = [each.untyped_storage()._cdata for each in tensors]
        for made in tensors_in((result,)):
            if made.untyped_storage()._cdata in held:
                module = getattr(kernel, "__module__", "?")
                raise RuntimeError(
                    f"{entry.name} (with implementation in {module}): The output of this "
                    "custom operator (1) must not also be an input to this custom operator and "
                    "(2) may not alias any inputs to this custom operator or other returns. The "
                    "most common way to trigger this error is if we have y = custom_op(x) and y "
                    "and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to "
                    "not return y."
                )
            held.append(made.untyped_storage()._cdata)
    return result


def _count_writes(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Increments the versions of written arguments, for writes by NumPy too."""
    given = by_argument(entry.schema, args, kwargs).items()
    increment_version(tensors_in(value for argument, value in given if argument.is_write))


def _check_result(entry: Entry, result: Any) -> None:
    """Raises PyTorch's errors for a result that is none of the schema's."""
    kinds = [each.type.kind_ for each in entry.schema.returns]
    if len(kinds) == 1:
        result = (result,)
    elif kinds and not isinstance(result, (tuple, list)):
        raise TypeError(
            f"Object of type {type(result).__name__!r} is not an instance of 'sequence'"
        )
    for kind, each in zip(kinds, result or (), strict=False):
        if kind == "TensorType" and not isinstance(each, (Tensor, type(None))):
            raise RuntimeError(f"Unable to cast {each!s:.200} to Tensor")
        if kind == "ListType" and not isinstance(each, (tuple, list)):
            raise TypeError(
                f"Object of type {type(each).__name__!r} is not an instance of 'sequence'"
            )
