"""Products with Jacobians and Hessians, and the matrices themselves, of functions of tensors.

A function here takes tensors and returns one, or a tuple. Every entry point works on copies of its
inputs (views of them, if the result is to be differentiated further), so values that the function
captures are constants. Results have the form of the arguments: a tensor for a tensor, a tuple for a
tuple. The engine makes the copies and the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Any, TypeAlias

from .._boundary import calls, long_calls
from .._boundary.arguments import K_OVERRIDING, kind_of, refuse_foreign
from .._boundary.host import layout
from .._table import functions as _functions
from .._tensor.base import Tensor
from .._transforms.vmap import mapped_or_one_by_one
from . import forward_ad, graph
from ._gradients import grad as _grad
from ._walk import walk
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors: TypeAlias = tuple[Any, ...]
Function: TypeAlias = Callable[..., Any]

_C, _F = _functions.C, _functions.SPACES["torch"]
_make_points = long_calls.resumption(calls.ROWS["_functional_points"])
_find_derivative = long_calls.resumption(calls.ROWS["_functional_answer"])
_OUTPUTS = "outputs of the user-provided function"


# ------------------------------------------------------------------ in and out


def _tuple_of(value: Any, what: str, name: str | None) -> Tensors:
    """A tensor or a tuple of tensors, as a tuple."""
    is_tuple = isinstance(value, tuple)
    items: Tensors = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            refuse_foreign(item)
            where = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"{where} has type {type(item)}."
            )
    return items


def _in_form_of(question: Any, values: Sequence[Any]) -> Any:
    """Values in the form of the argument: a tuple of tensors, or one tensor."""
    return values if isinstance(question, tuple) else values[0]


def _point(given: Tensor, made: Tensor, create_graph: bool) -> Tensor:
    """The tensor that the function gets for an input: the engine's `made`, or one that an
    overriding class makes.
    """
    if kind_of(given) == K_OVERRIDING:
        return _grad_preprocess((given,), create_graph, True)[0]
    return calls.remember(made)  # type: ignore[no-any-return]


def _derivative(
    name: str,
    func: Function,
    inputs: Any,
    v: Any,
    create_graph: bool,
    strict: bool,
    vectorize: bool = False,
) -> tuple[Any, Tensors]:
    """The function's result, and the engine's derivative of it, as a flat tuple of tensors."""

    def ask(service: Any, many: bool, outputs: Tensors, vector: Tensors | None) -> Any:
        flags = map(bool, (many, create_graph, strict, vectorize))
        words = [-1 if vector is None else len(vector), *flags, len(outputs)]
        words += [t._h for t in (*outputs, *points, *(vector or ()))]
        return service(layout[f"answer_{name}"], words)

    def vector() -> Tensors | None:
        return None if v is None else _tuple_of(v, "v", name)

    points = given = _tuple_of(inputs, "inputs", name)
    early = None if name == "vjp" else vector()
    points = ask(_make_points, isinstance(inputs, tuple), (), early)
    with enable_grad():
        points = tuple(map(_point, given, points, repeat(create_graph)))
        output = func(*points)
    outputs, many = _tuple_of(output, _OUTPUTS, name), isinstance(output, tuple)
    late = vector()
    recorded = [y for y in outputs if y.requires_grad]
    found = graph._run_logged(recorded, lambda: walk(ask(_find_derivative, many, outputs, late)))
    return output, found


def _product(
    name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """The function's result, without history unless `create_graph`, and the product."""
    output, found = _derivative(name, func, inputs, v, create_graph, strict)
    product = _in_form_of(output if name == "jvp" else inputs, found)
    if not create_graph:
        is_tuple = isinstance(output, tuple)
        output = tuple(y.detach() for y in output) if is_tuple else output.detach()
    return output, product


# ------------------------------------------------------------------ helpers that libraries import


def _as_tuple_nocheck(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Whether an argument is a tuple, and the argument as a tuple; without names, the tuple alone.

    Raises:
        TypeError: an item is no tensor.
    """
    if arg_name is None and fn_name is None:
        return _as_tuple_nocheck(inp)
    several = isinstance(inp, tuple)
    values = inp if several else (inp,)
    for place, value in enumerate(values):
        if not isinstance(value, Tensor):
            found = f"value at index {place}" if several else f"given {arg_name}"
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors "
                f"but the {found} has type {type(value)}."
            )
    return several, values


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Undoes `_as_tuple`, at one level or at two."""
    outer = to_unpack
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        if not inner:
            res = tuple(each[0] for each in res)
    return res if outer else res[0]


def _grad_preprocess(
    inputs: Sequence[Tensor], create_graph: bool, need_graph: bool
) -> tuple[Tensor, ...]:
    """New tensors for a function: views, if gradients are to flow on, else leaves."""
    return tuple(
        each.view_as(each)
        if create_graph and each.requires_grad
        else each.detach().requires_grad_(need_graph)
        for each in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Results without a history, unless it was asked for."""
    if not isinstance(inputs[0], Tensor):
        return tuple(_grad_postprocess(each, create_graph) for each in inputs)
    return inputs if create_graph else tuple(each.detach() for each in inputs)


def _validate_v(v: Sequence[Tensor], other: Sequence[Tensor], is_other_tuple: bool) -> None:
    """Raises RuntimeError unless v has the sizes of the others."""
    if len(other) != len(v):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}."
            if is_other_tuple
            else "The given v should contain a single Tensor."
        )
    for place, (mine, theirs) in enumerate(zip(v, other, strict=True)):
        if mine.size() != theirs.size():
            where = f"Entry {place} in " if is_other_tuple else ""
            raise RuntimeError(
                f"{where}v has invalid size: should be {theirs.size()} but got {mine.size()}."
            )


_INDEPENDENT = {
    "hessian": "The hessian of the user-provided function with respect to input {} is independent "
    "of the input. This is not allowed in strict mode. You should ensure that your function is "
    "thrice differentiable and that the hessian depends on the inputs.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided "
    "function with respect to input {} is independent of the input. This is not allowed in strict "
    "mode. You should ensure that your function is twice differentiable and that the jacobian "
    "depends on the inputs (this would be violated by a linear function for example).",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode.",
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs "
    "must be computed in a differentiable manner from the input when running in strict mode.",
}


def _check_requires_grad(inputs: Sequence[Tensor | None], input_type: str, strict: bool) -> None:
    """Raises RuntimeError, if strict, unless all depend on the inputs."""
    if not strict:
        return
    if input_type not in _INDEPENDENT:
        raise RuntimeError("Invalid input_type to _check_requires_grad")
    for place, each in enumerate(inputs):
        if each is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {place}. This "
                "is not allowed in strict mode."
            )
        if not each.requires_grad:
            raise RuntimeError(_INDEPENDENT[input_type].format(place))


def _autograd_grad(
    outputs: tuple[Tensor | None, ...],
    inputs: tuple[Tensor, ...],
    grad_outputs: tuple[Any, ...] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple[Any, ...]:
    """`grad` of the outputs that have a history; None for inputs on which none of them depends."""
    given = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = zip(outputs, given, strict=True)
    rows = [(out, grad) for out, grad in pairs if out is not None and out.requires_grad]
    if not rows:
        return (None,) * len(inputs)
    found: tuple[Any, ...] = _grad(
        [out for out, _ in rows],
        inputs,
        [grad for _, grad in rows],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=is_grads_batched,
    )
    return found


_MISSING = {
    "back": "The output of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients. This is "
    "not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is "
    "not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in "
    "the grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}


def _fill_in_zeros(
    grads: Sequence[Tensor | None],
    refs: Sequence[Tensor],
    strict: bool,
    create_graph: bool,
    stage: str,
) -> tuple[Tensor, ...]:
    """Replaces missing gradients by zeros; if strict, raises RuntimeError for them."""
    if stage not in _MISSING:
        raise RuntimeError(f"Invalid stage argument '{stage}' to _fill_in_zeros")
    filled = []
    for place, grad in enumerate(grads):
        if grad is None:
            if strict:
                raise RuntimeError(_MISSING[stage].format(place))
            grad = _F["zeros_like"](refs[place])
        elif strict and create_graph and not grad.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {place}. This "
                "is not allowed in strict mode when create_graph=True."
            )
        filled.append(grad)
    return tuple(filled)


def _columns(func: Function, points: Tensors, strategy: str, hessian: bool, *flags: bool) -> Any:
    """The function's result, and its Jacobian by the unit vectors of the points. The unit vectors
    are pushed forward as one batch; one by one for a Hessian, whose function makes its inputs
    require grad, which a batch does not allow.
    """
    units = _C["_functional_units"](points, strategy, hessian, *map(bool, flags))
    output: Any = ()

    def push_forward(*tangents: Tensor) -> Tensors:
        nonlocal output
        with forward_ad.dual_level():
            pairs = zip(points, tangents, strict=True)
            output = func(*(forward_ad.make_dual(x, t.view_as(x)) for x, t in pairs))
            parts = map(forward_ad.unpack_dual, _tuple_of(output, "outputs", None))
            return tuple(
                _F["zeros_like"](p.primal) if p.tangent is None else p.tangent for p in parts
            )

    if not hessian:
        columns: Any = mapped_or_one_by_one(push_forward, units, points)
    else:
        each_unit = zip(*(unit.unbind(0) for unit in units), strict=True)
        rows = [push_forward(*tangents) for tangents in each_unit]
        columns = [_F["stack"](each) for each in zip(*rows, strict=True)]
    return output, _C["_functional_columns"](columns, points)


def _construct_standard_basis_for(
    tensors: Sequence[Tensor], tensor_numels: Sequence[int]
) -> tuple[Tensor, ...]:
    """The standard basis of the numbers of all tensors together, a row each, cut in columns that
    go with the tensors: of shapes ``(total, numel)``, each of its tensor's dtype.
    """
    assert len(tensors) == len(tensor_numels), (
        "Expected tensors and tensor_numels to have the same length, but got "
        f"{len(tensors)} and {len(tensor_numels)}"
    )
    assert len(tensors) > 0, "Expected at least one tensor"
    chunks = [
        tensor.new_zeros(sum(tensor_numels), n)
        for tensor, n in zip(tensors, tensor_numels, strict=True)
    ]
    for chunk, end in zip(chunks, accumulate(tensor_numels), strict=True):
        chunk.diagonal(chunk.size(1) - end).fill_(1)
    return tuple(chunks)


def _matrix(
    name: str,
    func: Function,
    inputs: Any,
    create_graph: bool,
    strict: bool,
    vectorize: bool,
    strategy: str,
) -> Any:
    """The Jacobian of a function, or (its Hessian) of its gradient: [output][input], in the form of
    the arguments.
    """
    points, of_gradient = _tuple_of(inputs, "inputs", name), name == "hessian"

    def gradient(*xs: Tensor) -> Tensors:
        return _derivative(name, func, xs, None, True, strict)[1]

    of, forward = gradient if of_gradient else func, strategy != "reverse-mode"
    flags = create_graph, strict, vectorize
    if forward:
        output, found = _columns(of, points, strategy, of_gradient, *flags)
    else:
        output, found = _derivative("jacobian", of, points, None, *flags)
    n, kind = len(points), list if forward and isinstance(inputs, tuple) else tuple
    rows = kind(_in_form_of(inputs, kind(found[i : i + n])) for i in range(0, len(found), n or 1))
    return _in_form_of(inputs if of_gradient else output, rows)


# ------------------------------------------------------------------ products


def vjp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of a vector and the function's Jacobian, ``v @ J``.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple, where the Jacobian is taken.
        v: shaped like the outputs; may be left out if the output is one number.
        create_graph: record everything, so that the results can be differentiated.
        strict: raise instead of giving zeros for an input that the outputs do not depend on.

    Returns:
        What the function returned, and the product, shaped like the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or has the wrong shape, or strict mode objects.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([1.0, 2.0])
        >>> pygrad.autograd.functional.vjp(lambda x: x * x, x, pygrad.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    return _product("vjp", func, inputs, v, create_graph, strict)


def jvp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of the function's Jacobian and a vector, ``J @ v``.

    The backward is linear in its starting gradients, so its derivative by those is the product: two
    backwards, no forward mode.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple, where the Jacobian is taken.
        v: shaped like the inputs; may be left out if the input is one number.
        create_graph: record everything, so that the results can be differentiated.
        strict: raise instead of giving zeros where the outputs do not depend on the inputs.

    Returns:
        What the function returned, and the product, shaped like it.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or has the wrong shape, or strict mode objects.

    Example:
        >>> import pygrad
        >>> x, v = pygrad.tensor([1.0, 2.0]), pygrad.tensor([1.0, 10.0])
        >>> pygrad.autograd.functional.jvp(lambda x: x * x, x, v)
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    return _product("jvp", func, inputs, v, create_graph, strict)


def vhp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of a vector and the Hessian of a function with one number for output, ``v @ H``.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor or a tuple, where the Hessian is taken.
        v: shaped like the inputs; may be left out if the input is one number.
        create_graph: record everything, so that the results can be differentiated.
        strict: raise instead of giving zeros where something is independent of an input.

    Returns:
        What the function returned, and the product, shaped like the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: the output is not one number, `v` does not fit, or strict mode objects.

    Example:
        >>> import pygrad
        >>> x, v = pygrad.tensor([1.0, 2.0]), pygrad.tensor([1.0, 10.0])
        >>> pygrad.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, v)
        (tensor(9.), tensor([  6., 120.]))
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of the Hessian of a function with one number for output and a vector, ``H @ v``.

    Equal to `vhp`, which is faster, wherever the second derivatives are continuous.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor or a tuple, where the Hessian is taken.
        v: shaped like the inputs; may be left out if the input is one number.
        create_graph: record everything, so that the results can be differentiated.
        strict: raise instead of giving zeros where something is independent of an input.

    Returns:
        What the function returned, and the product, shaped like the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: the output is not one number, `v` does not fit, or strict mode objects.

    Example:
        >>> import pygrad
        >>> x, v = pygrad.tensor([1.0, 2.0]), pygrad.tensor([1.0, 10.0])
        >>> pygrad.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, v)
        (tensor(9.), tensor([  6., 120.]))
    """
    return _product("hvp", func, inputs, v, create_graph, strict)


# ------------------------------------------------------------------ matrices


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function: the derivative of every output number by every input number.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple, where the Jacobian is taken.
        create_graph: record everything, so that the result can be differentiated.
        strict: raise instead of giving zeros for an input that an output does not depend on.
        vectorize: one batched backward (or forward) instead of one a number.
        strategy: "reverse-mode", or "forward-mode", which needs ``vectorize=True`` and pays where
            there are more outputs than inputs.

    Returns:
        A tensor of the output's sizes followed by the input's; a tuple of them where outputs or
        inputs are a tuple, a tuple of tuples ``[output][input]`` where both are.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: strict mode objects, or does not go with the other arguments.
        NotImplementedError: forward mode with ``create_graph=True`` or ``vectorize=False``.
        AssertionError: no such strategy.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.functional.jacobian(lambda x: x * x, pygrad.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return _matrix("jacobian", func, inputs, create_graph, strict, vectorize, strategy)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with one number for output: the Jacobian of its Jacobian.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor or a tuple, where the Hessian is taken.
        create_graph: record everything, so that the result can be differentiated.
        strict: raise instead of giving zeros where something is independent of an input.
        vectorize: batch the backwards of the outer Jacobian into one.
        outer_jacobian_strategy: "reverse-mode" or "forward-mode" for the outer Jacobian; the inner
            one is always taken backwards.

    Returns:
        A tensor of the input's sizes twice; for a tuple a tuple of tuples ``[input][input]``.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: the output is not one number, or strict mode objects.
        AssertionError: no such strategy.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([1.0, 2.0])
        >>> pygrad.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], x)
        tensor([[4., 2.],
                [2., 0.]])
    """
    strategy = outer_jacobian_strategy
    return _matrix("hessian", func, inputs, create_graph, strict, vectorize, strategy)
