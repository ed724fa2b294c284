"""Calls of the engine's backward, for `backward`, `grad` and the like."""

from __future__ import annotations

import logging
import operator
from typing import Any

from .._boundary import callbacks, calls, long_calls
from .._boundary.arguments import refuse_foreign
from .._table import functions
from .._tensor.base import Tensor
from . import graph
from ._walk import walk
from .graph import GradientEdge

_C = functions.C
_engine_grad = long_calls.gradient(calls.ROWS["_grad"])


def _split(ends: tuple[Any, ...], places: list[int], odd: list[Any]) -> list[Any]:
    """The tensors, with None at the place of anything else. Appends edges to `places`, as node and
    output number, and objects of other types to `odd`: `ends` in
    wasm_core/walk/autograd_services.c.
    """
    tensors: list[Tensor | None] = []
    for end in ends:
        if isinstance(end, Tensor):
            tensors.append(end)
            continue
        tensors.append(None)
        if not isinstance(end, GradientEdge):
            places += 1, 0
            odd.append(end)
        elif not isinstance(end.node, graph.Node):
            places += 1, 1
            odd.append(end.node)
        else:
            places += end.node._address, end.output_nr
    return tensors


def differentiate(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...] | None,
    grads: tuple[Any, ...] | None,
    retain: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize: bool,
    rows: int = 0,
    accumulate: bool = False,
) -> Any:
    """The engine's `_grad`, of tensors and edges; logs each node if debug logging is on.

    Args:
        inputs: all leaves if None.
        rows: the number of backwards: one for each row of `grads` (-1: their number of rows, which
            must agree), or without `grads` one for each element of the single output; the results
            are stacked.
        accumulate: into the inputs, instead of returning the gradients.
    """
    for flag in (retain, create_graph, allow_unused, materialize):
        if flag is not True and flag is not False:
            operator.index(flag)  # or TypeError
    odd: list[Any] = []
    seeds = () if grads is None else grads[: len(outputs)]
    places = [-1 if grads is None else len(seeds)]
    of = _split(outputs, places, odd)
    at = [] if inputs is None else _split(inputs, places, odd)
    into = accumulate + (inputs is None)
    for seed in seeds:
        if isinstance(seed, Tensor):
            if callbacks.objects:
                callbacks.keep_face(seed)  # hooks on the roots receive it
        elif seed is not None:
            odd.append(seed)
    how = (retain, create_graph, into, allow_unused, materialize, rows)
    for each in odd:
        refuse_foreign(each)
    if odd:
        _C["_grad"](of, at, (), places, type(odd[0]).__name__, *how)  # raises
    if not graph.log.isEnabledFor(logging.DEBUG):
        return walk(_engine_grad(of, at, seeds, places, *how))
    unregister = graph._register_logging_hooks_on_whole_graph(outputs)
    try:
        return walk(_engine_grad(of, at, seeds, places, *how))
    finally:
        unregister()
