"""A custom Function under vmap: by its `vmap` method, or by a rule generated from its other
methods.

The generated rule is a Function of its own whose forward, backward and jvp map those of the
original: saved and incoming values are batched again, each along its former dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._boundary.header import dual_levels
from .._boundary.modes import LEVELS, switch
from .._ground.tree import flatten, spread, unflatten
from .._table import functions
from .._tensor.base import Tensor
from .._transforms.vmap import level, levels, vmap

_C = functions.C
_SEE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """The level's size and randomness, for a `vmap` method."""

    batch_size: int
    randomness: str


@contextmanager
def _leave_level() -> Iterator[VmapInfo]:
    """A scope in which the highest level counts as not entered."""
    number, size, randomness = highest = levels.stack.pop()
    switch(1 << (LEVELS + number), False)
    try:
        yield VmapInfo(size, randomness)
    finally:
        switch(1 << (LEVELS + number), True)
        levels.stack.append(highest)


def _unbatch(tree: Any, number: int) -> tuple[Any, Any]:
    """A tree with the whole values of leaves batched at a level, and a tree with their batch
    dimensions (None for other leaves).
    """
    leaves, spec = flatten(tree)
    found: list[Any] = []
    dims: list[int | None] = []
    for leaf in leaves:
        dim = _C["_vmap_dim"](leaf, number) if isinstance(leaf, Tensor) else -1
        found.append(leaf if dim < 0 else _C["_vmap_remove"](leaf, number, 0, dim))
        dims.append(None if dim < 0 else dim)
    return unflatten(found, spec), unflatten(dims, spec)


def _batch(tree: Any, dims: Any, number: int) -> Any:
    """The inverse of `_unbatch`."""
    leaves, spec = flatten(tree)
    each = spread(dims, spec)
    if each is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {flatten(dims)[1]} but output has structure {spec}. {_SEE}"
        )
    batched = [
        leaf if dim is None else _C["_vmap_add"](leaf, dim % leaf.dim(), number)
        for leaf, dim in zip(leaves, each, strict=True)
    ]
    return unflatten(batched, spec)


def _batch_duals(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """Batches the duals whose tangents are batched, if another argument is batched. The second
    result is False if only tangents are batched, which the Function's jvp takes as they are.
    """
    leaves, spec = flatten(args)
    duals = [_C["_vmap_dual"](leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    pairs = zip(leaves, duals, strict=True)
    if all(not isinstance(leaf, Tensor) or leaf._h == dual._h for leaf, dual in pairs):
        return args, True
    if any(isinstance(leaf, Tensor) and _C["_vmap_level"](leaf) for leaf in leaves):
        return unflatten(duals, spec), True
    return args, False


def _map_function(function: Callable[..., Any], dims: Any, info: VmapInfo) -> Callable[..., Any]:
    """A function mapped over arguments with these dimensions; returns outputs and their
    dimensions.
    """

    def call(*args: Any) -> tuple[Any, Any]:
        with level(*info) as number:
            return _unbatch(function(*_batch(args, dims, number)), number)

    return call


def apply(
    base: Any,
    plainly: Callable[[Any, tuple[Any, ...], bool], Any],
    cls: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    separate: bool,
) -> Any:
    """``cls.apply`` inside a mapped or otherwise transformed function.

    Args:
        base: `Function`, which knows this module.
        plainly: applies `cls` where nothing is mapped.

    Raises:
        RuntimeError: `cls` has no `setup_context`, no rule, or two; or its `vmap` does not return
            what it must.
    """
    if levels.stack and dual_levels() and not kwargs:
        args, mapped = _batch_duals(args)
        if not mapped:
            return plainly(cls, args, separate)
    if levels.stack and levels.plain and not kwargs:
        return _apply_generated_rule(base, cls, args, separate)
    if not separate:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod. For more details, "
            "please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if not levels.stack:
        return plainly(cls, args, separate)
    if any(isinstance(leaf, Tensor) for leaf in flatten(kwargs)[0]):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass "
            f"kwarg-only Tensors to autograd.Function. Got: {kwargs}"
        )
    overridden = cls.vmap is not base.vmap
    if cls.generate_vmap_rule and overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_SEE}"
        )
    if cls.generate_vmap_rule:
        return _apply_generated_rule(base, cls, args)
    if not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            f"override and implement the vmap staticmethod or set generate_vmap_rule=True. {_SEE}"
        )
    return _apply_vmap_method(cls, args, kwargs)


# ------------------------------------------------------------------ the vmap method


def _apply_vmap_method(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    number = levels.stack[-1][0]
    values, dims = _unbatch(args, number)
    if all(dim is None for dim in flatten(dims)[0]):
        with _leave_level():
            return cls.apply(*args, **kwargs)
    with _leave_level() as info:
        result = cls.vmap(info, dims, *values, **kwargs)
    wanted = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(f"{wanted}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{wanted}Got {len(result)} returns instead")
    output, out_dims = result
    given = {id(v): a for v, a in zip(flatten(values)[0], flatten(args)[0], strict=True)}
    leaves, spec = flatten(output)
    made = flatten(_batch(output, out_dims, number))[0]
    return unflatten([given.get(id(v), m) for v, m in zip(leaves, made, strict=True)], spec)


# ------------------------------------------------------------------ the generated rule


class _Ctx:
    """The ctx of the original Function, inside a level; attributes go to the real ctx."""

    def __init__(self, ctx: Any, number: int = 0, saved: Sequence[Any] | None = None) -> None:
        vars(self).update(_real=ctx, _number=number, _saved=saved, _dims={})

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_real"], name, value)

    @property
    def saved_tensors(self) -> Any:
        """The saved tensors, batched as they were when saved."""
        saved = vars(self)["_saved"]
        return vars(self)["_real"].saved_tensors if saved is None else saved

    def save_for_backward(self, *tensors: Any) -> None:
        """Saves the values, and remembers which dimension of each is the batch."""
        self._save("save_for_backward", tensors)

    def save_for_forward(self, *tensors: Any) -> None:
        """Like `save_for_backward`, for jvp."""
        self._save("save_for_forward", tensors)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Marks the values."""
        vars(self)["_real"].mark_non_differentiable(*_unbatch(tensors, vars(self)["_number"])[0])

    def mark_dirty(self, *tensors: Any) -> None:
        """Marks the values."""
        vars(self)["_real"].mark_dirty(*_unbatch(tensors, vars(self)["_number"])[0])

    def _save(self, method: str, tensors: tuple[Any, ...]) -> None:
        values, dims = _unbatch(tensors, vars(self)["_number"])
        vars(self)["_dims"][method] = dims
        getattr(vars(self)["_real"], method)(*values)


def _fit_gradient(
    grad: Any, found: int | None, wanted: int | None, size: int, shape: Any = None
) -> Any:
    """A gradient (or tangent) batched where its input is: summed over the batch for an input that
    has none, and brought to the shape of the input's slices.
    """
    if grad is None or (found is None and wanted is None):
        return grad
    if wanted is None:
        return grad.sum(found)
    if found is None:
        sizes = list(grad.shape)
        sizes.insert(wanted, size)
        grad, found = grad.unsqueeze(wanted).expand(sizes), wanted
    if shape is None:
        return grad.movedim(found, wanted)
    return vmap(lambda g: g.sum_to_size(shape), in_dims=found, out_dims=wanted)(grad)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _fit_all(
    grads: Any, found: Any, wanted: Any, size: int, shapes: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    grads, found, wanted = _as_tuple(grads), _as_tuple(found), _as_tuple(wanted)
    each = zip(grads, found, wanted, shapes or [None] * len(grads), strict=False)
    return tuple(_fit_gradient(g, f, w, size, shape) for g, f, w, shape in each)


def _shapes(values: Sequence[Any]) -> list[Any]:
    return [value.shape if isinstance(value, Tensor) else None for value in values]


def _generate_function(
    base: Any, cls: Any, in_dims: tuple[Any, ...], info: VmapInfo, separate: bool
) -> Any:
    """The Function of a batch. Its last output is no tensor but the dimensions of the others."""

    def forward(*args: Any) -> Any:
        outputs, dims = _map_function(cls.forward, in_dims, info)(*args)
        return (*_as_tuple(outputs), (isinstance(outputs, tuple), dims))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        several, dims = output[-1]
        whole = output[:-1] if several else output[0]

        def inner(inputs: Any, outputs: Any) -> None:
            prepare(ctx, inputs, lambda seen: cls.setup_context(seen, inputs, outputs))

        _map_function(inner, (in_dims, dims), info)(inputs, whole)
        # A Function inherits nothing from another: each level has attributes of its own.
        getattr(ctx, _key)["out_dims"] = _as_tuple(dims)

    def forward_with_ctx(ctx: Any, *args: Any) -> Any:
        def inner(*inputs: Any) -> Any:
            return prepare(ctx, inputs, lambda seen: cls.forward(seen, *inputs))

        outputs, dims = _map_function(inner, in_dims, info)(*args)
        getattr(ctx, _key)["out_dims"] = _as_tuple(dims)
        return (*_as_tuple(outputs), (isinstance(outputs, tuple), dims))

    def prepare(ctx: Any, inputs: Any, method: Callable[[Any], Any]) -> Any:
        """Runs the method on ctx, and records the batch dimensions of the saved tensors."""
        seen = _Ctx(ctx, levels.stack[-1][0])
        made = method(seen)
        setattr(ctx, _key, {"saved": vars(seen)["_dims"], "shapes": _shapes(inputs)})
        return made

    def map_method(method: Any, ctx: Any, saved_dims: Any, values: Any, dims: Any) -> Any:
        """Maps a method of `cls` over the tensors saved by its forward and one value for each
        dim.
        """
        given_dims = tuple(None if v is None else d for v, d in zip(values, dims, strict=True))

        def inner(saved: Any, values: Any) -> Any:
            return method(_Ctx(ctx, saved=saved), *values)

        return _map_function(inner, (saved_dims, given_dims), info)(
            tuple(ctx.saved_tensors), values
        )

    def backward(ctx: Any, *grads: Any) -> Any:
        known = getattr(ctx, _key)
        out_dims, saved_dims = known["out_dims"], known["saved"].get("save_for_backward", ())
        found, dims = map_method(gradients, ctx, saved_dims, grads[: len(out_dims)], out_dims)
        return _fit_all(found, dims, in_dims, info.batch_size, known["shapes"])

    def jvp(ctx: Any, *tangents: Any) -> Any:
        known = getattr(ctx, _key)
        saved_dims = known["saved"].get("save_for_forward", ())
        found, dims = map_method(cls.jvp, ctx, saved_dims, tangents, in_dims)
        return (*_fit_all(found, dims, known["out_dims"], info.batch_size), None)

    gradients = cls.backward if cls.vjp is base.vjp else cls.vjp
    methods: dict[str, Any] = {f.__name__: staticmethod(f) for f in (forward, backward, jvp)}
    if separate:
        methods["setup_context"] = staticmethod(setup_context)
    else:
        methods["forward"] = staticmethod(forward_with_ctx)
    kind: Any = type(base)
    made = kind(f"Vmapped{cls.__name__}", (base,), {**methods, "generate_vmap_rule": True})
    _key = f"_vmapped_{id(made)}"
    return made


def _apply_generated_rule(base: Any, cls: Any, args: tuple[Any, ...], separate: bool = True) -> Any:
    number = levels.stack[-1][0]
    values, dims = _unbatch(args, number)
    with _leave_level() as info:
        outputs = _generate_function(base, cls, dims, info, separate).apply(*values)
    several, out_dims = outputs[-1]
    return _batch(outputs[:-1] if several else outputs[0], out_dims, number)
