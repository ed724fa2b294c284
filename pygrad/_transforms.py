"""Transforms of functions: gradients, products with Jacobians and the Jacobians, as functions.

A transform calls the function on aliases of its arguments and differentiates with respect to
those, so transforms nest in each other and in `vmap`. Inside `vmap`, an alias is made of all the
slices at once: one gradient then holds that of every slice. A result is part of the caller's graph
only where the function, or an argument, was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from . import _ops
from ._modes import GRAD, LEVELS, get, put
from ._tensor import Tensor
from ._tree import Spec, flatten, unflatten
from ._vmap import levels
from .autograd import forward_ad
from .autograd import grad as _gradients

_C = _ops.C
_F = _ops.SPACES["f"]
_UNMAPPED = (1 << (LEVELS + 1)) - 1
Argnums: TypeAlias = "int | tuple[int, ...]"
Function: TypeAlias = Callable[..., Any]


# ------------------------------------------------------------------ slices and wholes


@contextmanager
def _recording(mapped: bool = True) -> Iterator[None]:
    """Calls are recorded; where not `mapped`, they see whole batches and not slices."""
    was = get()
    put((was if mapped else was & _UNMAPPED) | GRAD)
    try:
        yield
    finally:
        put(was)


def _whole(tensor: Tensor) -> Tensor:
    """All slices of a tensor, the dimension of the outermost vmap first."""
    for number, size, _ in reversed(levels.stack):
        tensor = _C["_vmap_remove"](tensor, number, size, 0)
    return tensor


def _slices(whole: Tensor) -> Tensor:
    """The inverse of `_whole`."""
    for number, _, _ in levels.stack:
        whole = _C["_vmap_add"](whole, 0, number)
    return whole


# ------------------------------------------------------------------ aliases and graphs


class _Aliases:
    """What a function gets for the tensors it is differentiated by, and their gradients."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    f"Thing passed to transform API must be Tensor, got {type(tensor)}"
                )
        self.inner: list[Tensor] = []
        with _recording(mapped=False):
            wholes = [_whole(tensor) for tensor in tensors]
            self.leaves = [_alias(whole) for whole in wholes]
            for whole, leaf in zip(wholes, self.leaves, strict=True):
                self.inner.append(_with_tangent(whole, leaf))
        self.inner = [_slices(whole) for whole in self.inner]
        self.own = {leaf._h for leaf in self.leaves if leaf.is_leaf}

    def recorded_outside(self, outputs: Sequence[Tensor]) -> bool:
        """Whether outputs depend on what requires grad outside the transform."""
        if len(self.own) < len(self.leaves):
            return True
        todo = [_whole(output).grad_fn for output in outputs]
        seen: set[Any] = set()  # which keeps them alive, so that none has the address of another
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if isinstance(variable, Tensor) and variable._h not in self.own:
                return True
            todo += [parent for parent, _ in node.next_functions]
        return False

    def gradients(
        self, outputs: Sequence[Tensor], given: Sequence[Tensor], keep: bool, record: bool
    ) -> list[Tensor]:
        """The vector-Jacobian product, zeros where nothing depends."""
        with _recording(mapped=False):
            pairs = [(_whole(y), _whole(g)) for y, g in zip(outputs, given, strict=True)]
            pairs = [(y, g) for y, g in pairs if y.requires_grad]
            found: Sequence[Any] = [None] * len(self.leaves)
            if pairs:
                found = _gradients(
                    [y for y, _ in pairs],
                    self.leaves,
                    [g for _, g in pairs],
                    retain_graph=keep or record,
                    create_graph=record,
                    allow_unused=True,
                )
            zeros = _F["zeros_like"]
            made = [
                zeros(leaf) if g is None else g for g, leaf in zip(found, self.leaves, strict=True)
            ]
        return [_slices(g) for g in made]


def _alias(whole: Tensor) -> Tensor:
    if whole.requires_grad:
        return whole.view_as(whole)
    if not whole.is_floating_point():
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    return whole.detach().requires_grad_()


def _with_tangent(whole: Tensor, leaf: Tensor) -> Tensor:
    """The alias with the tangent that the tensor has, where forward mode is under way."""
    if forward_ad.current_level() < 0:
        return leaf
    tangent = forward_ad.unpack_dual(whole).tangent
    if tangent is None or not leaf.is_leaf:
        return leaf
    return forward_ad.make_dual(leaf, tangent)


def _released(value: Any, outside: bool) -> Any:
    """A function's result without the graph that only the transform needed."""
    if outside:
        return value
    leaves, spec = flatten(value)
    return unflatten([_detached(x) if isinstance(x, Tensor) else x for x in leaves], spec)


def _detached(tensor: Tensor) -> Tensor:
    """Without its graph, but with its tangent."""
    if forward_ad.current_level() < 0:
        return tensor.detach()
    tangent = forward_ad.unpack_dual(tensor).tangent
    plain = tensor.detach()
    return plain if tangent is None else forward_ad.make_dual(plain, tangent.detach())


def _selected(args: tuple[Any, ...], argnums: Any) -> tuple[list[int], Any]:
    """The places that argnums name, and the arguments there."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = [argnums] if isinstance(argnums, int) else list(argnums)
    if not places:
        raise RuntimeError("argnums must be non-empty")
    for place in places:
        if not -len(args) <= place < len(args):
            raise RuntimeError(f"Got argnum={place}, but only {len(args)} positional inputs")
    places = [place % len(args) for place in places]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(places)}")
    chosen = tuple(args[place] for place in places)
    return places, chosen[0] if isinstance(argnums, int) else chosen


def _call_with(
    func: Function, args: tuple[Any, ...], places: list[int], chosen: Any, one: bool, kwargs: Any
) -> Any:
    given = list(args)
    for place, value in zip(places, (chosen,) if one else chosen, strict=True):
        given[place] = value
    with _recording():
        return func(*given, **kwargs)


def _with_aux(name: str, made: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return made, None
    if not (isinstance(made, tuple) and len(made) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return made


def _check_tensors(name: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )


# ------------------------------------------------------------------ reverse mode


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `func` and its value.

    Args:
        func: returns a scalar tensor, or that and anything else if `has_aux`.
        argnums: by which positional argument, or arguments, to differentiate; each a tensor or
            nested containers of tensors.
        has_aux: the value then is the pair that `func` returned.

    Raises:
        RuntimeError: `func` returns no scalar; an argnum that is not there.

    Example:
        >>> import pygrad
        >>> pygrad.func.grad_and_value(lambda x: x * x)(pygrad.tensor(3.0))
        (tensor(6.), tensor(9.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places, chosen = _selected(args, argnums)
        leaves, spec = flatten(chosen)
        aliases = _Aliases(leaves)
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
        outside = aliases.recorded_outside([output])
        found = aliases.gradients([output], [_F["ones_like"](output)], False, outside)
        keep = outside and bool(get() & GRAD)
        value = _released((output, aux) if has_aux else output, keep)
        return _released(unflatten(found, spec), keep), value

    return wrapped


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `func`; nests to any order, and in `vmap`.

    Args:
        func: returns a scalar tensor, or that and anything else if `has_aux`.
        argnums: by which positional argument, or arguments, to differentiate.
        has_aux: give the gradient and what `func` returned beside the scalar.

    Raises:
        RuntimeError: `func` returns no scalar; an argnum that is not there.

    Example:
        >>> import pygrad
        >>> pygrad.func.grad(pygrad.func.grad(lambda x: x ** 3))(pygrad.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


class _Product:
    """The outputs of a function, and its vector-Jacobian products."""

    def __init__(self, func: Function, primals: Any, has_aux: bool, name: str) -> None:
        leaves, self.primals = flatten(primals)
        self.aliases = _Aliases(leaves)
        with _recording():
            made = func(*unflatten(self.aliases.inner, self.primals))
        output, aux = _with_aux(name, made, has_aux)
        self.outputs, self.spec = flatten(output)
        _check_tensors(name, self.outputs)
        self.outside = self.aliases.recorded_outside(self.outputs)
        self.keep = self.outside and bool(get() & GRAD)
        self.output, self.aux = _released(output, self.keep), _released(aux, self.keep)

    def leaves_of(self, given: Sequence[Tensor]) -> list[Tensor]:
        """The gradients for one cotangent, the input's leaves in order."""
        found = self.aliases.gradients(self.outputs, given, True, self.outside)
        return list(_released(found, self.keep))

    def __call__(self, cotangents: Any, retain_graph: Any = None, create_graph: Any = None) -> Any:
        given, spec = flatten(cotangents)
        if spec != self.spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {spec!r}, primal output: {self.spec!r}"
            )
        for place, (g, y) in enumerate(zip(given, self.outputs, strict=True)):
            if g.shape != y.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{place}] has a shape of {g.shape} and "
                    f"output[{place}] has a shape of {y.shape}."
                )
        return unflatten(self.leaves_of(given), self.primals)


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


def _rows(leaf: Tensor) -> Iterator[Tensor]:
    """The tensors of the leaf's shape with a one in one place."""
    n = leaf.numel()
    for k in range(n):
        row = _F["zeros"](n, dtype=leaf.dtype, device=leaf.device)
        row[k] = 1
        yield row.reshape(leaf.shape)


def _arranged(blocks: list[list[Tensor]], outputs: Spec, inputs: Spec) -> Any:
    """A Jacobian: the outputs' tree with, at each leaf, the inputs' tree of blocks."""
    return unflatten([unflatten(row, inputs) for row in blocks], outputs)


def jacrev(
    func: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """A function that gives the Jacobian of `func`, by reverse mode: a product an output element.

    Args:
        func: takes and returns tensors, or nested containers of them.
        argnums: by which positional argument, or arguments.
        has_aux: `func` returns its outputs and anything else, which comes second.
        chunk_size: accepted; rows are computed one after the other.

    Example:
        >>> import pygrad
        >>> pygrad.func.jacrev(pygrad.square)(pygrad.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places, chosen = _selected(args, argnums)
        one = isinstance(argnums, int)

        def partial(*primals: Any) -> Any:
            inner = primals[0] if one else primals
            return _call_with(func, args, places, inner, one, kwargs)

        primals = (chosen,) if one else chosen
        product = _Product(partial, primals, has_aux, "vjp(f, *primals)")
        inputs, spec = flatten(chosen)
        blocks = []
        for k, output in enumerate(product.outputs):
            rows = []
            for row in _rows(output):
                given = [_F["zeros_like"](y) for y in product.outputs]
                given[k] = row
                rows.append(product.leaves_of(given))
            blocks.append(_stacked(rows, output.shape, inputs))
        jacobian = _arranged(blocks, product.spec, spec)
        return (jacobian, product.aux) if has_aux else jacobian

    return wrapped


def _stacked(rows: list[list[Tensor]], shape: Any, inputs: list[Tensor]) -> list[Tensor]:
    if not rows:
        return [_F["zeros"]((*shape, *x.shape), dtype=x.dtype) for x in inputs]
    columns = zip(*rows, strict=True)
    return [
        _F["stack"](list(column)).reshape((*shape, *x.shape))
        for column, x in zip(columns, inputs, strict=True)
    ]


# ------------------------------------------------------------------ forward mode


def _push(func: Function, primals: Any, tangents: Sequence[Tensor], has_aux: bool) -> Any:
    """Outputs, their tangents by leaf (None where there is none), structure, what is beside."""
    leaves, spec = flatten(primals)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(leaves, tangents, strict=True)]
        output, aux = _with_aux("jvp(f, primals, tangents)", func(*unflatten(duals, spec)), has_aux)
        made, out_spec = flatten(output)
        _check_tensors("jvp(f, primals, tangents)", made)
        pairs = [forward_ad.unpack_dual(y) for y in made]
        beside, aux_spec = flatten(aux)
        beside = [forward_ad.unpack_dual(x).primal if isinstance(x, Tensor) else x for x in beside]
    values, pushed = [p.primal for p in pairs], [p.tangent for p in pairs]
    return values, pushed, out_spec, unflatten(beside, aux_spec)


def _push_by_reverse(func: Function, primals: Any, tangents: Sequence[Tensor], aux: bool) -> Any:
    """The same where forward mode is under way already: the product with the Jacobian is the
    derivative of that with its transpose, which is linear, by the vector.
    """
    product = _Product(func, primals, aux, "jvp(f, primals, tangents)")
    zeros = [_F["zeros_like"](y) for y in product.outputs]

    def pulled(*cotangents: Tensor) -> list[Tensor]:
        return product.aliases.gradients(product.outputs, cotangents, True, True)

    again = _Product(pulled, tuple(zeros), False, "vjp")
    pushed = again.leaves_of(list(tangents))
    values, spec = flatten(product.output)
    return values, _released(pushed, product.keep), spec, product.aux


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
        if not all(isinstance(leaf, Tensor) for leaf in leaves):
            raise RuntimeError(f"{name}: Expected {what} to only contain Tensors")
    push = _push if forward_ad.current_level() < 0 else _push_by_reverse
    values, pushed, out_spec, aux = push(func, primals, given, has_aux)
    if strict and any(t is None for t in pushed):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
            "inputs. This is not allowed with strict=True."
        )
    filled = [_F["zeros_like"](y) if t is None else t for y, t in zip(values, pushed, strict=True)]
    result = unflatten(values, out_spec), unflatten(filled, out_spec)
    return (*result, aux) if has_aux else result


def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that gives the Jacobian of `func`, by forward mode: a product an input element.

    Args:
        func: takes and returns tensors, or nested containers of them.
        argnums: by which positional argument, or arguments.
        has_aux: `func` returns its outputs and anything else, which comes second.
        randomness: only "error".

    Raises:
        NotImplementedError: another randomness.

    Example:
        >>> import pygrad
        >>> pygrad.func.jacfwd(pygrad.square)(pygrad.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if randomness != "error":
        raise NotImplementedError(f"jacfwd: randomness='{randomness}' is not supported")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places, chosen = _selected(args, argnums)
        one = isinstance(argnums, int)
        inputs, spec = flatten((chosen,) if one else chosen)

        def partial(*primals: Any) -> Any:
            inner = primals[0] if one else primals
            return _call_with(func, args, places, inner, one, kwargs)

        columns: list[list[list[Tensor]]] = []
        outputs: Any = None
        for k, leaf in enumerate(inputs):
            part = []
            for row in _rows(leaf):
                given = [_F["zeros_like"](x) for x in inputs]
                given[k] = row
                outputs = jvp(
                    partial, unflatten(inputs, spec), unflatten(given, spec), has_aux=has_aux
                )
                part.append(flatten(outputs[1])[0])
            columns.append(part)
        values, out_spec = flatten(outputs[0])
        blocks = []
        for k, value in enumerate(values):
            blocks.append(
                [
                    _F["stack"]([each[k] for each in part], -1).reshape((*value.shape, *leaf.shape))
                    for part, leaf in zip(columns, inputs, strict=True)
                ]
            )
        jacobian = _arranged(blocks, out_spec, flatten(chosen)[1])
        return (jacobian, outputs[2]) if has_aux else jacobian

    return wrapped


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that gives the Hessian of `func`: forward mode over reverse mode.

    Example:
        >>> import pygrad
        >>> pygrad.func.hessian(lambda x: (x ** 3).sum())(pygrad.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The outputs of `func`, and its derivative there as a function of the direction.

    Example:
        >>> import pygrad
        >>> _, push = pygrad.func.linearize(pygrad.square, pygrad.tensor(3.0))
        >>> push(pygrad.tensor(1.0))
        tensor(6.)
    """
    with _recording():
        output = func(*primals)

    def push(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return _released(output, bool(get() & GRAD)), push
