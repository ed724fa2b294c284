"""Products with Jacobians and Hessians, and the matrices themselves, of functions of tensors.

A function here takes tensors and returns one, or a tuple. Every entry point works on copies of its
inputs (views of them, if the result is to be differentiated further), so what the function captures
by other means is a constant. Answers come back as the questions were put: a tensor for a tensor, a
tuple for a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pygrad

from .. import _ops
from .._tensor import Tensor
from . import forward_ad
from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors: TypeAlias = tuple[Any, ...]
Function: TypeAlias = Callable[..., Any]

_C = _ops.C


# ------------------------------------------------------------------ in and out


def _tuple_of(value: Any, what: str, name: str | None) -> tuple[bool, Tensors]:
    """Whether `value` is a tuple, and its tensors as one."""
    is_tuple = isinstance(value, tuple)
    items: Tensors = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"{where} has type {type(item)}."
            )
    return is_tuple, items


def _outputs_of(value: Any, name: str) -> tuple[bool, Tensors]:
    return _tuple_of(value, "outputs of the user-provided function", name)


def _fresh(tensors: Tensors, create_graph: bool, requires_grad: bool) -> Tensors:
    """New tensors of the same values: views where the result is to reach the given ones."""
    return tuple(
        t.view_as(t)
        if create_graph and t.requires_grad
        else t.detach().requires_grad_(requires_grad)
        for t in tensors
    )


def _finished(tensors: Any, create_graph: bool) -> Any:
    """The results (of any nesting) without history, unless it was asked for."""
    if create_graph:
        return tensors
    if isinstance(tensors, Tensor):
        return tensors.detach()
    return tuple(_finished(t, False) for t in tensors)


def _in_shape(values: Sequence[Any], is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _in_shape_2(rows: Sequence[Any], outer: bool, inner: bool) -> Any:
    """A table of results without the levels that the caller's arguments did not have."""
    return _in_shape(rows if inner else tuple(row[0] for row in rows), outer)


# ------------------------------------------------------------------ checks


def _vector(
    v: Any, like: Tensors, is_tuple: bool, create_graph: bool, name: str, of_outputs: bool
) -> Any:
    """`v` as a tuple shaped like others; None, of which autograd makes ones, for one number."""
    vector = None if v is None else _fresh(_tuple_of(v, "v", name)[1], create_graph, False)
    _C["_check_vector"](vector, like, is_tuple, of_outputs)
    return vector


def _demand_history(tensors: Tensors, stage: str, strict: bool) -> None:
    """In strict mode the error of this stage, unless all tensors are there and recorded."""
    if strict:
        _C["_strict"](tensors, stage, True)


def _demand_one_number(is_tuple: bool, outputs: Tensors, name: str) -> None:
    if is_tuple:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )


# ------------------------------------------------------------------ gradients


def _pull_back(outputs: Tensors, inputs: Tensors, cotangents: Any = None, **options: Any) -> Any:
    """autograd.grad that passes over outputs without history: their gradient is None."""
    given = (None,) * len(outputs) if cotangents is None else cotangents
    pairs = [
        (y, g) for y, g in zip(outputs, given, strict=True) if y is not None and y.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    roots, grads = zip(*pairs, strict=True)
    return pygrad.autograd.grad(roots, inputs, grads, allow_unused=True, **options)


def _completed(
    grads: Tensors, like: Tensors, strict: bool, create_graph: bool, stage: str
) -> Tensors:
    """The gradients with zeros for those that did not arrive; strict mode raises instead."""
    if strict:
        _C["_strict"](grads, stage, create_graph)
    return tuple(
        pygrad.zeros_like(tensor) if grad is None else grad
        for grad, tensor in zip(grads, like, strict=True)
    )


def _recording(create_graph: bool) -> Any:
    """The scope of the last backward: recorded if the caller records, or asked for a graph."""
    return set_grad_enabled(create_graph or pygrad.is_grad_enabled())


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
    with enable_grad():
        inputs_are_tuple, given = _tuple_of(inputs, "inputs", "vjp")
        points = _fresh(given, create_graph, True)
        outputs_are_tuple, outputs = _outputs_of(func(*points), "vjp")
        _demand_history(outputs, "outputs", strict)
        vector = _vector(v, outputs, outputs_are_tuple, create_graph, "vjp", True)
    with _recording(create_graph):
        grads = _pull_back(outputs, points, vector, create_graph=create_graph)
        product = _completed(grads, points, strict, create_graph, "back")
    return (
        _in_shape(_finished(outputs, create_graph), outputs_are_tuple),
        _in_shape(_finished(product, create_graph), inputs_are_tuple),
    )


def jvp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of the function's Jacobian and a vector, ``J @ v``.

    The backward is linear in what it starts from, so its own derivative by that is the product
    wanted: two backwards, no forward mode.

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
    with enable_grad():
        inputs_are_tuple, given = _tuple_of(inputs, "inputs", "jvp")
        points = _fresh(given, create_graph, True)
        vector = _vector(v, points, inputs_are_tuple, create_graph, "jvp", False)
        outputs_are_tuple, outputs = _outputs_of(func(*points), "jvp")
        _demand_history(outputs, "outputs", strict)
        probes = tuple(pygrad.zeros_like(y, requires_grad=True) for y in outputs)
        grads = _pull_back(outputs, points, probes, create_graph=True)
        _demand_history(grads, "grad_inputs", strict)
    with _recording(create_graph):
        again = _pull_back(grads, probes, vector, create_graph=create_graph)
        product = _completed(again, outputs, strict, create_graph, "back_trick")
    return (
        _in_shape(_finished(outputs, create_graph), outputs_are_tuple),
        _in_shape(_finished(product, create_graph), outputs_are_tuple),
    )


def _first_backward(
    func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[bool, Tensors, Any, Tensors, Tensors]:
    """What vhp and hvp begin with: inputs, vector, the one output, and its recorded gradients."""
    is_tuple, given = _tuple_of(inputs, "inputs", name)
    points = _fresh(given, create_graph, True)
    vector = _vector(v, points, is_tuple, create_graph, name, False)
    outputs_are_tuple, outputs = _outputs_of(func(*points), name)
    _demand_history(outputs, "outputs", strict)
    _demand_one_number(outputs_are_tuple, outputs, name)
    grads = _pull_back(outputs, points, create_graph=True)
    _demand_history(grads, "jacobian", strict)
    return is_tuple, points, vector, outputs, grads


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
    with enable_grad():
        is_tuple, points, vector, outputs, grads = _first_backward(
            func, inputs, v, create_graph, strict, "vhp"
        )
    with _recording(create_graph):
        again = _pull_back(grads, points, vector, create_graph=create_graph)
        product = _completed(again, points, strict, create_graph, "double_back")
    return (
        _finished(outputs, create_graph)[0],
        _in_shape(_finished(product, create_graph), is_tuple),
    )


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
    with enable_grad():
        is_tuple, points, vector, outputs, grads = _first_backward(
            func, inputs, v, create_graph, strict, "hvp"
        )
        probes = tuple(pygrad.zeros_like(x, requires_grad=True) for x in points)
        twice = _pull_back(grads, points, probes, create_graph=True)
    with _recording(create_graph):
        again = _pull_back(twice, probes, vector, create_graph=create_graph)
        product = _completed(again, points, strict, create_graph, "double_back_trick")
    return (
        _finished(outputs, create_graph)[0],
        _in_shape(_finished(product, create_graph), is_tuple),
    )


# ------------------------------------------------------------------ matrices


def _unit_vectors(like: Tensors) -> Tensors:
    """The identity over all elements of several tensors, cut by tensor.

    Shape: tensor k of n_k elements -> (sum of all n, n_k).
    """
    sizes = [t.numel() for t in like]
    pieces = pygrad.eye(sum(sizes)).split(sizes, 1)
    return tuple(piece.to(t.dtype) for piece, t in zip(pieces, like, strict=True))


def _rows(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> Any:
    """The Jacobian by one backward a number of the outputs, those of an output in one call."""
    table = []
    for i, output in enumerate(outputs):
        n = output.numel()
        columns: Tensors = (None,) * len(inputs)
        if n == 0:
            columns = (pygrad.stack(()),)
        elif output.requires_grad:
            flags = (True, create_graph, True, False)
            columns = pygrad.autograd._grad((output,), inputs, (), *flags, rows=n)
        if strict:
            _C["_strict"](columns, "row", create_graph, i)
        shapes = [(*output.shape, *x.shape) for x in inputs]
        table.append(
            tuple(
                pygrad.zeros(shape, dtype=x.dtype) if column is None else column.view(shape)
                for column, shape, x in zip(columns, shapes, inputs, strict=True)
            )
        )
    return tuple(table)


def _rows_at_once(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Any:
    """The Jacobian by one backward of a batch: every unit vector of the outputs together."""
    sizes = [y.numel() for y in outputs]
    flat = tuple(y.reshape(-1) for y in outputs)
    batches = _pull_back(
        flat, inputs, _unit_vectors(outputs), create_graph=create_graph, is_grads_batched=True
    )
    by_input = []
    for batch, x in zip(batches, inputs, strict=True):
        if batch is None:
            batch = pygrad.zeros_like(x).expand((sum(sizes), *x.shape))
        pieces = batch.split(sizes, dim=0)
        by_input.append(
            [p.view((*y.shape, *x.shape)) for p, y in zip(pieces, outputs, strict=True)]
        )
    return tuple(zip(*by_input, strict=True))


def _columns(func: Function, inputs: Any, strict: bool, vectorize: bool, batched: bool) -> Any:
    """The Jacobian in forward mode, by the unit vectors of the inputs.

    Args:
        batched: push them forward as one batch; a function that makes its inputs require grad
            cannot take one.
    """
    if strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either set '
            '`strict=False` or `strategy="reverse-mode"`.'
        )
    inputs_are_tuple, points = _tuple_of(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    outputs_are_tuple, shapes = False, []

    def push_forward(tangents: Tensors) -> Tensors:
        nonlocal outputs_are_tuple, shapes
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(x, t.view_as(x)) for x, t in zip(points, tangents, strict=True)
            ]
            outputs_are_tuple, outputs = _tuple_of(func(*duals), "outputs", None)
            parts = [forward_ad.unpack_dual(y) for y in outputs]
            shapes = [tuple(p.primal.shape) for p in parts]
            return tuple(
                pygrad.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts
            )

    units = _unit_vectors(points)
    if batched:
        columns: Any = pygrad.vmap(push_forward)(units)
    else:
        rows = zip(*(unit.unbind(0) for unit in units), strict=True)
        columns = [
            pygrad.stack(each) for each in zip(*(push_forward(row) for row in rows), strict=True)
        ]
    table = [_row(column, shape, points) for column, shape in zip(columns, shapes, strict=True)]
    return _in_shape_2(table, outputs_are_tuple, inputs_are_tuple)


def _row(columns: Tensor, shape: tuple[int, ...], inputs: Tensors) -> list[Tensor]:
    """The Jacobians of one output by each input, of the columns that stand one behind the other."""
    pieces = columns.split([x.numel() for x in inputs], dim=0)
    return [
        p.permute(*range(1, p.ndim), 0).reshape((*shape, *x.shape))
        for p, x in zip(pieces, inputs, strict=True)
    ]


def _refuse_graph(create_graph: bool) -> None:
    if create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either set '
            '`create_graph=False` or `strategy="reverse-mode"`.'
        )


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
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _refuse_graph(create_graph)
        return _columns(func, inputs, strict, vectorize, batched=True)
    with enable_grad():
        inputs_are_tuple, given = _tuple_of(inputs, "inputs", "jacobian")
        points = _fresh(given, create_graph, True)
        outputs_are_tuple, outputs = _outputs_of(func(*points), "jacobian")
        _demand_history(outputs, "outputs", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are "
                    "not supported together. Please either set `strict=False` or "
                    "`vectorize=False`."
                )
            table = _rows_at_once(outputs, points, create_graph)
        else:
            table = _rows(outputs, points, create_graph, strict)
        return _in_shape_2(_finished(table, create_graph), outputs_are_tuple, inputs_are_tuple)


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
    is_tuple, given = _tuple_of(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def one_number(*points: Any) -> Any:
        outputs_are_tuple, outputs = _outputs_of(func(*points), "hessian")
        _demand_history(outputs, "outputs", strict)
        _demand_one_number(outputs_are_tuple, outputs, "hessian")
        return outputs[0].squeeze()

    def gradient(*points: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            points = tuple(x.requires_grad_(True) for x in points)
        grads = jacobian(one_number, points, create_graph=True)
        _demand_history(grads, "jacobian", strict)
        return grads

    if outer_jacobian_strategy == "forward-mode":
        _refuse_graph(create_graph)
        table = _columns(gradient, given, strict, vectorize, batched=False)
    else:
        table = jacobian(gradient, given, create_graph, strict, vectorize)
    return _in_shape_2(table, is_tuple, is_tuple)
