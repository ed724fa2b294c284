"""Transforms of functions: gradients, products with Jacobians and the Jacobians, as functions.

A transform calls the function on aliases of its arguments and differentiates with respect to those,
so transforms nest in each other and in `vmap`. Inside `vmap`, one alias is made of all the slices:
one gradient then holds every slice's gradient. A result is part of the caller's graph only if the
function, or an argument, was.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from .. import _boundary
from .._boundary.arguments import refuse_foreign
from .._boundary.modes import GRAD, LEVELS, get, here, here_now, put
from .._dispatch.handlers import unseen
from .._ground.dtypes import preserve_format
from .._ground.tree import TreeSpec, flatten, map_leaves, unflatten
from .._table import functions
from .._tensor.base import Tensor
from ..autograd import forward_ad
from ..autograd import grad as _gradients
from ..autograd.graph import disable_saved_tensors_hooks
from . import steps
from .arguments import _as_tuple, _slice_argnums, argnums_t
from .steps import check_real
from .vmap import enter_level, levels, mapped_or_one_by_one, vmap

_C = functions.C
_F = functions.SPACES["torch"]
_detach = functions.SPACES["method"]["detach"]
_UNMAPPED = (1 << (LEVELS + 1)) - 1
Function: TypeAlias = Callable[..., Any]


# ------------------------------------------------------------------ slices and wholes


@contextmanager
def _record_calls(mapped: bool = True, grad: int = GRAD) -> Iterator[None]:
    """Calls are recorded; where not `mapped`, they see whole batches and not slices."""
    ident, word, was = here()
    try:
        put((was if mapped else was & _UNMAPPED) | grad)
        yield
    finally:  # without a call: see `here`
        if _boundary.lock.ident == ident:
            here_now[0] = was
        else:
            word[0] = was


_Levels: TypeAlias = "Sequence[tuple[int, int, str]]"


def _whole(tensor: Tensor, of: _Levels) -> Tensor:
    """All slices of a tensor at these levels, the outermost dimension first."""
    for number, size, _ in reversed(of):
        tensor = _C["_vmap_remove"](tensor, number, size, 0)
    return tensor


def _slices(whole: Tensor, of: _Levels) -> Tensor:
    """The inverse of `_whole`."""
    for number, _, _ in of:
        whole = _C["_vmap_add"](whole, 0, number)
    return whole


def _batched_levels(tensors: Sequence[Tensor], of: _Levels) -> list[tuple[int, int, str]]:
    """The levels at which any of the tensors is batched."""
    dim = _C["_vmap_dim"]
    return [each for each in of if any(dim(tensor, each[0]) >= 0 for tensor in tensors)]


class _Frame:
    """A running transform, and its records of the tensors that it tracks."""

    def __init__(self, number: int, reverse: bool) -> None:
        self.number = number
        self.reverse = reverse
        # Leaves made by it and by the transforms inside it, by handle. They live while it runs, so
        # no other tensor gets such a handle.
        self.leaves: dict[int, Tensor] = {}
        self.nodes: set[Any] = set()  # nodes of its aliases that are no leaves
        self.aliases: list[Tensor] = []  # aliases of the inputs, in order

    def alias_input(self, tensor: Tensor) -> Tensor:
        """Makes the alias of a tensor that the function receives in its place."""
        of = list(levels.stack)
        with _record_calls(mapped=False):
            whole = _whole(tensor, of)
            leaf = _alias(whole)
            inner = _with_tangent(whole, leaf)
        self.aliases.append(leaf)
        if leaf.is_leaf:
            self.leaves[leaf._h] = leaf
        else:
            self.nodes.add(leaf.grad_fn)
        return _slices(inner, of)

    def tracks(self, whole: Tensor) -> bool:
        """Whether the transform differentiates through a tensor (all its slices)."""
        if not self.reverse:
            return forward_ad.unpack_dual(whole).tangent is not None
        return whole._h in self.leaves or any(
            node in self.nodes or _leaf_of(node) in self.leaves for node in _graph_of([whole])
        )


@contextmanager
def _inside(reverse: bool) -> Iterator[_Frame]:
    """Enters a transform: a level that refuses some operations; in `reverse` mode it also refuses
    hooks for saved tensors.
    """
    with enter_level(0, "transform") as number:
        frame = _Frame(number, reverse)
        levels.transforms.append(frame)
        try:
            if reverse:
                with disable_saved_tensors_hooks(_HOOKS):
                    yield frame
            else:
                yield frame
        finally:
            levels.transforms.pop()
            _pass_leaves_out(frame.leaves)


def _pass_leaves_out(leaves: dict[int, Tensor]) -> None:
    """Passes leaves to the enclosing transform: they belong to no graph but their own
    transform's.
    """
    if levels.transforms:
        levels.transforms[-1].leaves.update(leaves)


def _graph_of(wholes: Sequence[Tensor]) -> Iterator[Any]:
    """The nodes that tensors depend on."""
    todo = [whole.grad_fn for whole in wholes]
    seen: set[Any] = set()  # keeps the nodes alive, so that no address is reused
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            todo += [parent for parent, _ in node.next_functions]


def _leaf_of(node: Any) -> int | None:
    """The handle of the leaf that a node accumulates into, if any."""
    variable = getattr(node, "variable", None)
    return variable._h if isinstance(variable, Tensor) else None


_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


# ------------------------------------------------------------------ text


def _wrapper_levels(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The levels of transforms around a tensor, from the highest: for each the text that shows the
    level, and the tensor without it.
    """
    with _record_calls(mapped=False, grad=0):
        peeled = {}
        whole = tensor
        while number := _C["_vmap_level"](whole):
            dim = _C["_vmap_dim"](whole, number)
            whole = _C["_vmap_remove"](whole, number, 0, dim)
            peeled[number] = f"BatchedTensor(lvl={number}, bdim={dim}, value=", whole
        tracking = [frame.number for frame in levels.transforms if frame.tracks(whole)]
        for number in sorted([*peeled, *tracking], reverse=True):
            if number in peeled:
                head, tensor = peeled[number]
            else:
                head = f"GradTrackingTensor(lvl={number}, value="
            yield head, tensor


def show(tensor: Tensor) -> str:
    """How a tensor prints inside transforms."""
    layers = list(_wrapper_levels(tensor))
    inner = layers[-1][1] if layers else tensor
    with _record_calls(mapped=False):
        if any(head.startswith("Grad") for head, _ in layers):
            inner = forward_ad.unpack_dual(inner).primal.detach()
        text = str(_C["_repr"](inner, "tensor"))
    for head, _ in reversed(layers):
        text = head + "\n    " + text.replace("\n", "\n    ") + "\n)"
    return text


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor behind one inside transforms, for inspection: all slices inside `vmap`, or the
    tensor outside the graph of `grad` and its like. Results must not depend on it.

    Args:
        tensor: any.
        recurse: removes all levels, else the innermost alone.

    Example:
        >>> import pygrad
        >>> seen = []
        >>> def double(x):
        ...     seen.append(pygrad.func.debug_unwrap(x))
        ...     return x * 2
        >>> pygrad.vmap(double)(pygrad.arange(3))
        tensor([0, 2, 4])
        >>> seen
        [tensor([0, 1, 2])]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): argument must be Tensor, not {type(tensor).__name__}")
    found = [each for _, each in _wrapper_levels(tensor)]
    return (found[-1] if recurse else found[0]).detach() if found else tensor


# ------------------------------------------------------------------ aliases and graphs


def _check_leaves(leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            refuse_foreign(leaf)
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")


class _Aliases:
    """The aliases of tensors that a function receives in their place, and their gradients."""

    def __init__(self, tensors: Sequence[Any], frame: _Frame) -> None:
        _check_leaves(tensors)
        self.levels = list(levels.stack)
        wrap = steps._wrap_tensor_for_grad
        self.inner: list[Tensor] = [wrap(tensor, frame.number) for tensor in tensors]
        self.leaves, self.own = frame.aliases, frame.leaves
        self.nested = bool(frame.nodes)

    def whole(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """All slices of each output."""
        with _record_calls(mapped=False):
            return [_whole(output, self.levels) for output in outputs]

    def is_recorded_outside(self, wholes: Sequence[Tensor]) -> bool:
        """Whether outputs depend on tensors that require grad outside the transform."""
        found = map(_leaf_of, _graph_of(wholes))
        return self.nested or any(leaf is not None and leaf not in self.own for leaf in found)

    def gradients(
        self, wholes: Sequence[Tensor], given: Sequence[Tensor], keep: bool, record: bool
    ) -> list[Tensor]:
        """The vector-Jacobian products, zeros where nothing depends: as many as there are slices
        of the cotangents at levels of vmap that were entered since.
        """
        later = _batched_levels(given, [each for each in levels.stack if each not in self.levels])
        sizes = [size for _, size, _ in later]
        with _record_calls(mapped=False):
            fronts = [_whole(_whole(g, self.levels), later) for g in given]
            if not later:
                found = self.product(wholes, fronts, keep, record)
            else:
                n, e, c = math.prod(sizes), len(later), len(self.levels)
                rows = [g.reshape((n, *g.shape[e:])) for g in fronts]
                found = [
                    g.reshape((*sizes, *g.shape[1:])).permute(
                        *range(e, e + c), *range(e), *range(e + c, e + g.ndim - 1)
                    )
                    for g in self.product(wholes, rows, keep, record, n)
                ]
        return [_slices(g, [*self.levels, *later]) for g in found]

    def product(
        self,
        wholes: Sequence[Tensor],
        given: Sequence[Tensor],
        keep: bool,
        record: bool,
        n: int = -1,
    ) -> list[Tensor]:
        """Like `leaves_of`, for whole tensors; `n` rows of cotangents come stacked."""
        pairs = [(y, g) for y, g in zip(wholes, given, strict=True) if y.requires_grad]
        found: Sequence[Any] = [None] * len(self.leaves)
        if pairs and n:
            found = _gradients(
                [y for y, _ in pairs],
                self.leaves,
                [g for _, g in pairs],
                retain_graph=keep or record,
                create_graph=record,
                allow_unused=True,
                is_grads_batched=n > 0,
            )
        shapes = [leaf.shape if n < 0 else (n, *leaf.shape) for leaf in self.leaves]
        return [
            _F["zeros"](shape, dtype=leaf.dtype) if g is None else g
            for g, shape, leaf in zip(found, shapes, self.leaves, strict=True)
        ]


def _alias(whole: Tensor) -> Tensor:
    if whole.requires_grad:
        return unseen(_view_as_itself, whole)  # type: ignore[no-any-return]
    if not whole.dtype._inexact:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    return unseen(_detach, whole).requires_grad_()  # type: ignore[no-any-return]


def _view_as_itself(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor)


def _with_tangent(whole: Tensor, leaf: Tensor) -> Tensor:
    """The alias with the tangent that the tensor has, where forward mode is under way."""
    if forward_ad.current_level() < 0:
        return leaf
    tangent = forward_ad.unpack_dual(whole).tangent
    if tangent is None or not leaf.is_leaf:
        return leaf
    return forward_ad.make_dual(leaf, tangent)


def _drop_graph(value: Any, outside: bool) -> Any:
    """A function's result without the graph that only the transform needed."""
    if outside:
        return value
    leaves, spec = flatten(value)
    return unflatten([_detach_primal(x) if isinstance(x, Tensor) else x for x in leaves], spec)


def _detach_primal(tensor: Tensor) -> Tensor:
    """The tensor without its graph, but with its tangent."""
    if forward_ad.current_level() < 0:
        return unseen(_detach, tensor)  # type: ignore[no-any-return]
    tangent = _parts(tensor)[1]
    plain: Tensor = unseen(_detach, tensor)
    return plain if tangent is None else _dual(plain, unseen(_detach, tangent))


def _select_args(args: tuple[Any, ...], argnums: Any) -> tuple[list[int], Any]:
    """The places that argnums name, and the arguments there."""
    chosen = _slice_argnums(args, argnums, as_tuple=False)
    return [place % len(args) for place in _as_tuple(argnums)], chosen


def _call_with(
    func: Function, args: tuple[Any, ...], places: list[int], chosen: Any, one: bool, kwargs: Any
) -> Any:
    given = list(args)
    for place, value in zip(places, (chosen,) if one else chosen, strict=True):
        given[place] = value
    with _record_calls():
        return func(*given, **kwargs)


def _with_aux(name: str, made: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return made, None
    if not (isinstance(made, tuple) and len(made) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return made


def _check_aux(aux: Any, has_aux: bool) -> None:
    for leaf in flatten(aux)[0] if has_aux else ():
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")


def _check_tensors(name: str, leaves: Sequence[Any]) -> None:
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = "
            f"{list(leaves)})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )


# ------------------------------------------------------------------ reverse mode


def grad_and_value(func: Function, argnums: argnums_t = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func` and its value.

    Args:
        func: returns a scalar tensor; with `has_aux`, a pair of a scalar tensor and anything.
        argnums: the positional argument, or arguments, by which to differentiate; each a tensor or
            nested containers of tensors.
        has_aux: the value is the pair that `func` returned.

    Raises:
        RuntimeError: `func` returns no scalar; an argnum that is not there.

    Example:
        >>> import pygrad
        >>> pygrad.func.grad_and_value(lambda x: x * x)(pygrad.tensor(3.0))
        (tensor(6.), tensor(9.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places, chosen = _select_args(args, argnums)
        leaves, spec = flatten(chosen)
        with _inside(reverse=True) as frame:
            aliases = _Aliases(leaves, frame)
            inner = unflatten(aliases.inner, spec)
            made = _call_with(func, args, places, inner, isinstance(argnums, int), kwargs)
        output, aux = _with_aux(name, made, has_aux)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim():
            raise RuntimeError(
                f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        wholes = aliases.whole([output])
        if output.is_complex() and wholes[0].requires_grad:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{output.dtype}"
            )
        outside = aliases.is_recorded_outside(wholes)
        found = aliases.gradients(
            wholes, [_F["ones_like"](output, memory_format=preserve_format)], False, outside
        )
        _check_aux(aux, has_aux)
        keep = outside and bool(get() & GRAD)
        value = _drop_graph((output, aux) if has_aux else output, keep)
        return _drop_graph(unflatten(found, spec), keep), value

    return wrapper


def grad(func: Function, argnums: argnums_t = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`; nests to any order, and in `vmap`.

    Args:
        func: returns a scalar tensor; with `has_aux`, a pair of a scalar tensor and anything.
        argnums: the positional argument, or arguments, by which to differentiate.
        has_aux: return the gradient and the second item of the pair.

    Raises:
        RuntimeError: `func` returns no scalar; an argnum that is not there.

    Example:
        >>> import pygrad
        >>> pygrad.func.grad(pygrad.func.grad(lambda x: x ** 3))(pygrad.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


class _Product:
    """The outputs of a function, and its vector-Jacobian products."""

    def __init__(self, func: Function, primals: Any, has_aux: bool, name: str) -> None:
        leaves, self.primals = flatten(primals)
        with _inside(reverse=True) as frame:
            self.aliases = _Aliases(leaves, frame)
            with _record_calls():
                made = func(*unflatten(self.aliases.inner, self.primals))
        output, aux = _with_aux(name, made, has_aux)
        self.outputs, self.spec = flatten(output)
        _check_tensors(name, self.outputs)
        for y in self.outputs:
            if not y.dtype._inexact:
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {y.dtype}"
                )
        _check_aux(aux, has_aux)
        self.wholes = self.aliases.whole(self.outputs)
        self.outside = self.aliases.is_recorded_outside(self.wholes)
        keep = self.outside and bool(get() & GRAD)
        self.output, self.aux = _drop_graph(output, keep), _drop_graph(aux, keep)

    def leaves_of(self, given: Sequence[Tensor]) -> list[Tensor]:
        """The gradients for one cotangent, the input's leaves in order."""
        _pass_leaves_out(self.aliases.own)
        with _record_calls(mapped=False):
            outside = self.outside or any(
                _whole(g, levels.stack).requires_grad for g in given if isinstance(g, Tensor)
            )
        found = self.aliases.gradients(self.wholes, given, True, outside)
        return list(_drop_graph(found, outside and bool(get() & GRAD)))

    def __call__(self, cotangents: Any, retain_graph: Any = None, create_graph: Any = None) -> Any:
        given, spec = flatten(cotangents)
        if spec != self.spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {_shape_of(spec)}, primal output: "
                f"{_shape_of(self.spec)}"
            )
        for place, (g, y) in enumerate(zip(given, self.outputs, strict=True)):
            if not isinstance(g, Tensor):
                raise TypeError(
                    f"gradients can be either Tensors or None, but got {type(g).__name__}"
                )
            if g.shape != y.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{place}] has a shape of {g.shape} and "
                    f"output[{place}] has a shape of {y.shape}."
                )
        return unflatten(self.leaves_of(given), self.primals)


class _Star:
    def __repr__(self) -> str:
        return "*"


def _shape_of(spec: TreeSpec) -> str:
    """A structure as a tree of stars."""
    return repr(unflatten([_Star()] * spec.num_leaves, spec))


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The outputs of `func`, and a function from cotangents to vector-Jacobian products.

    Args:
        func: takes and returns tensors, or nested containers of them.
        primals: where to call it.
        has_aux: `func` returns its outputs and anything else, which comes third.

    Example:
        >>> import pygrad
        >>> y, pull = pygrad.func.vjp(lambda x: x * x, pygrad.tensor([1.0, 2.0]))
        >>> pull(pygrad.ones(2))
        (tensor([2., 4.]),)
    """
    product = _Product(func, primals, has_aux, "vjp(f, *primals)")
    return (product.output, product, product.aux) if has_aux else (product.output, product)


def _bases(leaves: Sequence[Tensor], first: int, last: int) -> list[Tensor]:
    """Rows `first` to `last` of the standard basis of all leaves together, one batch for each
    leaf.
    """
    n, found = last - first, []
    for leaf in leaves:
        rows = _F["zeros"]((n, leaf.numel()), dtype=leaf.dtype)
        start, end = max(first, 0), min(last, leaf.numel())
        if start < end:
            places = _F["arange"](start, end)
            rows[places - first, places] = 1
        found.append(rows.reshape((n, *leaf.shape)))
        first, last = first - leaf.numel(), last - leaf.numel()
    return found


def _assemble_jacobian(blocks: list[list[Tensor]], outputs: TreeSpec, inputs: TreeSpec) -> Any:
    """A Jacobian: the outputs' tree with, at each leaf, the inputs' tree of blocks."""
    return unflatten([unflatten(row, inputs) for row in blocks], outputs)


def jacrev(
    func: Function,
    argnums: argnums_t = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """A function that returns the Jacobian of `func`, by reverse mode: one product for each output
    element.

    Args:
        func: takes and returns tensors, or nested containers of them.
        argnums: by which positional argument, or arguments.
        has_aux: `func` returns its outputs and anything else, which comes second.
        chunk_size: the number of output elements for which memory is taken at once; all by default.

    Example:
        >>> import pygrad
        >>> pygrad.func.jacrev(pygrad.square)(pygrad.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        check_real("jacrev", "inputs", args)
        places, chosen = _select_args(args, argnums)
        one = isinstance(argnums, int)

        def partial(*primals: Any) -> Any:
            inner = primals[0] if one else primals
            return _call_with(func, args, places, inner, one, kwargs)

        primals = (chosen,) if one else chosen
        product = _Product(partial, primals, has_aux, "vjp(f, *primals)")
        check_real("jacrev", "outputs", product.outputs)
        sizes = [y.numel() for y in product.outputs]
        total = sum(sizes)
        step = chunk_size or max(total, 1)
        parts = [
            _mapped_leaves(product, _bases(product.outputs, at, min(at + step, total)))
            for at in range(0, max(total, 1), step)
        ]
        rows = [_F["cat"](list(column)) for column in zip(*parts, strict=True)]
        columns = [row.split(sizes) for row in rows]
        blocks = [
            [column[k].reshape((*y.shape, *column[k].shape[1:])) for column in columns]
            for k, y in enumerate(product.outputs)
        ]
        jacobian = _assemble_jacobian(blocks, product.spec, flatten(chosen)[1])
        return (jacobian, product.aux) if has_aux else jacobian

    return wrapper


def _mapped_leaves(product: _Product, rows: list[Tensor]) -> list[Tensor]:
    """The gradients for a batch of cotangents, one batch for each leaf."""
    found: list[Tensor] = vmap(lambda *given: product.leaves_of(given))(*rows)
    return found


# ------------------------------------------------------------------ forward mode


def _dual(primal: Tensor, tangent: Tensor) -> Tensor:
    """A dual tensor. Inside `vmap` it is an alias of all slices, as it is an alias of one tensor
    outside, so that writes to it reach the primal; a primal with fewer levels than its tangent is
    copied.
    """
    own = _batched_levels([primal, tangent], levels.stack)
    if not own:
        return forward_ad.make_dual(primal, tangent)
    with _record_calls(mapped=False, grad=get() & GRAD):
        whole = _whole(primal, own)
        if own != _batched_levels([primal], levels.stack):
            whole = whole.contiguous()
        whole = forward_ad.make_dual(whole, _whole(tangent, own))
    return _slices(whole, own)


def _parts(tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """The primal, an alias, and the tangent of a dual tensor; inside `vmap`, of all slices."""
    own = _batched_levels([tensor], levels.stack)
    if not own:
        return forward_ad.unpack_dual(tensor)
    with _record_calls(mapped=False, grad=get() & GRAD):
        primal, tangent = forward_ad.unpack_dual(_whole(tensor, own))
    return _slices(primal, own), None if tangent is None else _slices(tangent, own)


def _push(func: Function, primals: Any, tangents: Sequence[Tensor], has_aux: bool) -> Any:
    """Returns outputs, their tangents by leaf (None if there is none), the structure, and the
    auxiliary output.
    """
    leaves, spec = flatten(primals)
    with forward_ad._set_fwd_grad_enabled(True), forward_ad.dual_level():
        duals = [_dual(x, t) for x, t in zip(leaves, tangents, strict=True)]
        with _inside(reverse=False):
            made = func(*unflatten(duals, spec))
        output, aux = _with_aux("jvp(f, primals, tangents)", made, has_aux)
        made, out_spec = flatten(output)
        _check_tensors("jvp(f, primals, tangents)", made)
        _check_aux(aux, has_aux)
        values, pushed = zip(*map(_parts, made), strict=True)
        beside, aux_spec = flatten(aux)
        beside = [_parts(x)[0] if isinstance(x, Tensor) else x for x in beside]
    return values, pushed, out_spec, unflatten(beside, aux_spec)


class _TangentMap:
    """The outputs of a function, and its derivative as a map of tangents: the product with the
    Jacobian is the derivative of that with its transpose, which is linear, by the vector.
    """

    def __init__(self, func: Function, primals: Any, has_aux: bool, name: str) -> None:
        self.product = product = _Product(func, primals, has_aux, name)
        zeros = tuple(_F["zeros_like"](y) for y in product.outputs)
        self._transposed = _Product(self._pull_back, zeros, False, "vjp")

    def _pull_back(self, *cotangents: Tensor) -> list[Tensor]:
        _pass_leaves_out(self.product.aliases.own)
        return self.product.aliases.gradients(self.product.wholes, cotangents, True, True)

    def leaves_of(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """Maps tangents of the inputs' leaves to tangents of the outputs' leaves."""
        return self._transposed.leaves_of(tangents)


def _push_by_reverse(func: Function, primals: Any, tangents: Sequence[Tensor], aux: bool) -> Any:
    """Computes the result of `_push` in reverse mode, for a call within forward mode."""
    tangent_map = _TangentMap(func, primals, aux, "jvp(f, primals, tangents)")
    product = tangent_map.product
    values, spec = flatten(product.output)
    return values, tangent_map.leaves_of(list(tangents)), spec, product.aux


def _push_forward(func: Function, primals: Any, tangents: Sequence[Tensor], has_aux: bool) -> Any:
    push = _push if forward_ad.current_level() < 0 else _push_by_reverse
    return push(func, primals, tangents, has_aux)


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The outputs of `func`, and their derivatives in a direction, by forward mode.

    Args:
        func: takes and returns tensors, or nested containers of them.
        primals: a tuple: where to call it.
        tangents: the direction, a tuple of the same structure.
        strict: refuse outputs that depend on no input.
        has_aux: `func` returns its outputs and anything else, which comes third.

    Raises:
        RuntimeError: the structures differ.

    Example:
        >>> import pygrad
        >>> pygrad.func.jvp(pygrad.square, (pygrad.tensor(3.0),), (pygrad.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    (inputs, spec), (given, given_spec) = flatten(primals), flatten(tangents)
    if spec != given_spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec!r} and tangents with structure {given_spec!r}"
        )
    for leaves, what in ((inputs, "primals"), (given, "tangents")):
        if not leaves:
            raise RuntimeError(f"{name}: Expected {what} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"{name}: Expected {what} to only contain Tensors, got {type(leaf)}"
                )
    values, pushed, out_spec, aux = _push_forward(func, primals, given, has_aux)
    if strict and any(t is None for t in pushed):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
            "inputs. This is not allowed with strict=True."
        )
    filled = [_F["zeros_like"](y) if t is None else t for y, t in zip(values, pushed, strict=True)]
    result = unflatten(values, out_spec), unflatten(filled, out_spec)
    return (*result, aux) if has_aux else result


def jacfwd(
    func: Function, argnums: argnums_t = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that returns the Jacobian of `func`, by forward mode: one product for each input
    element.

    Args:
        func: takes and returns tensors, or nested containers of them.
        argnums: by which positional argument, or arguments.
        has_aux: `func` returns its outputs and anything else, which comes second.
        randomness: the behaviour of random ops in `func` for the directions: see `vmap`.

    Example:
        >>> import pygrad
        >>> pygrad.func.jacfwd(pygrad.square)(pygrad.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        check_real("jacfwd", "inputs", args)
        places, chosen = _select_args(args, argnums)
        one = isinstance(argnums, int)
        inputs, spec = flatten((chosen,) if one else chosen)
        _check_leaves(inputs)

        def partial(*primals: Any) -> Any:
            inner = primals[0] if one else primals
            return _call_with(func, args, places, inner, one, kwargs)

        def push(*tangents: Tensor) -> Any:
            primals = unflatten(inputs, spec)
            pushed = jvp(partial, primals, unflatten(tangents, spec), has_aux=has_aux)
            check_real("jacfwd", "outputs", pushed[0])
            return pushed[1:]

        sizes = [leaf.numel() for leaf in inputs]
        pushed, *beside = mapped_or_one_by_one(
            push, _bases(inputs, 0, sum(sizes)), inputs, randomness
        )
        columns, out_spec = flatten(pushed)
        blocks = [
            [
                part.reshape((*column.shape[1:], *leaf.shape))
                for part, leaf in zip(column.movedim(0, -1).split(sizes, -1), inputs, strict=True)
            ]
            for column in columns
        ]
        jacobian = _assemble_jacobian(blocks, out_spec, flatten(chosen)[1])
        return (jacobian, map_leaves(lambda x: x[0], beside[0])) if has_aux else jacobian

    return wrapper


def hessian(func: Function, argnums: argnums_t = 0) -> Function:
    """A function that returns the Hessian of `func`: forward mode over reverse mode.

    Example:
        >>> import pygrad
        >>> pygrad.func.hessian(lambda x: (x ** 3).sum())(pygrad.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The outputs of `func`, and its derivative there as a function of the direction.

    The function runs once. The derivative belongs to this run: nothing written, drawn or counted
    later changes it.

    Args:
        func: takes tensors, or nested containers of them, and returns tensors and anything else.
        primals: where to call it.

    Raises:
        RuntimeError: of the derivative: a direction of another structure, shape, device or dtype.

    Example:
        >>> import pygrad
        >>> _, push = pygrad.func.linearize(pygrad.square, pygrad.tensor(3.0))
        >>> push(pygrad.tensor(1.0))
        tensor(6.)
    """
    leaves, spec = flatten(primals)
    _check_leaves(leaves)
    for x in leaves:
        if not x.dtype._inexact:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    wanted = [(x.shape, x.device, x.dtype) for x in leaves]
    outputs: list[Any] = []
    moved: list[int] = []  # the places of outputs that have tangents
    out_spec: Any = None

    def outputs_of(*inner: Any) -> list[Tensor]:
        nonlocal out_spec
        outputs[:], out_spec = flatten(func(*inner))
        moved[:] = [k for k, y in enumerate(outputs) if isinstance(y, Tensor) and y.dtype._inexact]
        return [outputs[k] for k in moved] or [flatten(inner)[0][0]]

    def tangents_of(*tangents: Tensor) -> list[Tensor]:
        own = [t.clone() for t in tangents]  # a function may write to its arguments
        values, pushed, _, _ = _push_forward(outputs_of, primals, own, False)
        for k, value in zip(moved, values, strict=False):
            outputs[k] = value
        return [
            _F["zeros_like"](y) if t is None else t for y, t in zip(values, pushed, strict=True)
        ]

    zeros = tuple(_F["zeros_like"](x) for x in leaves)
    tangent_map = _TangentMap(tangents_of, zeros, False, "linearize(f, *primals)")
    still = [_F["zeros_like"](y) if isinstance(y, Tensor) else y for y in outputs]

    def push(*tangents: Any) -> Any:
        given, given_spec = flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}"
            )
        for place, (t, had) in enumerate(zip(given, wanted, strict=True)):
            for what, expected in zip(("shape", "device", "dtype"), had, strict=True):
                if getattr(t, what) != expected:
                    raise RuntimeError(
                        f"tangent:{place} with {what} {getattr(t, what)} in flattened pytree "
                        f"doesn't match the {what} {expected} of the corresponding primal."
                    )
        found = list(still)
        for k, tangent in zip(moved, tangent_map.leaves_of(given), strict=False):
            found[k] = tangent
        return unflatten(found, out_spec)

    return _drop_graph(unflatten(outputs, out_spec), bool(get() & GRAD)), push
