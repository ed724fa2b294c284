"""An op done to each tensor of a list: PyTorch's whole list of them, in each way of calling."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
import torch
from oracle import both, result_or_error

NAMES = sorted(name for name in dir(torch) if name.startswith("_foreach_"))


def lists(t: Any, names: int, dtype: Any = None) -> list[list[Any]]:
    kind = dtype or t.float32
    values = t.arange(1.0, 1.0 + 5 * names).to(kind) / 7
    return [
        [values[5 * i : 5 * i + 2].clone(), values[5 * i + 2 : 5 * i + 5]] for i in range(names)
    ]


def schemas(name: str) -> list[Any]:
    op = getattr(torch.ops.aten, name)
    return [getattr(op, o)._schema for o in op.overloads() if not o.endswith("out")]


def arguments(t: Any, schema: Any, dtype: Any) -> tuple[list[Any], dict[str, Any]]:
    """Some for each schema of PyTorch's own."""
    tensors = iter(lists(t, 3, dtype))
    args: list[Any] = []
    keywords = {}
    for a in schema.arguments:
        kind = str(a.type)
        if kind == "List[Tensor]":
            value: Any = next(tensors)
        elif kind == "Tensor":
            value = t.tensor([2.0, 3.0] if a.name == "scalars" else 2.0)
        elif kind == "List[number]":
            value = [2, 0.5]
        elif kind == "number":
            value = 2
        else:
            continue
        if a.kwarg_only:
            keywords[a.name] = value
        else:
            args.append(value)
    if schema.name == "aten::_foreach_mm":
        args = [[x.reshape(-1, 1) for x in args[0]], [x.reshape(1, -1) for x in args[1]]]
    return args, keywords


@pytest.mark.parametrize("name", NAMES)
def test_every_schema(name: str) -> None:
    def script(t: Any) -> Any:
        found = []
        for schema in schemas(name):
            for dtype in (t.float32, t.float64, t.int64):
                args, keywords = arguments(t, schema, dtype)
                result = result_or_error(lambda: getattr(t, name)(*args, **keywords))  # noqa: B023
                same = result is args[0]
                kind = type(result).__name__
                found.append((str(schema), kind, same, result, args[0]))
        return [f for f in found if not (dtype_message(f[3]))]

    def dtype_message(result: Any) -> bool:
        return isinstance(result, str) and ("not implemented for" in result)

    both(script)


DIFFERENTIABLE = [n for n in NAMES if not n.endswith("_") and n != "_foreach_powsum"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    def script(t: Any) -> Any:
        found = []
        for schema in schemas(name):
            if str(schema.arguments[-1].type) == "Tensor" and len(schema.arguments) == 4:
                continue  # packed scalars, of which PyTorch has no derivative
            args, keywords = arguments(t, schema, t.float64)
            leaves = [x for a in args if isinstance(a, list) for x in a if isinstance(x, t.Tensor)]
            for leaf in leaves:
                leaf.requires_grad_()
            made = getattr(t, name)(*args, **keywords)
            sum((y * y).sum() for y in made).backward()
            found.append([leaf.grad for leaf in leaves])
        return found

    both(script)


def test_errors() -> None:
    def script(t: Any) -> Any:
        x, y, short = [t.ones(2), t.ones(3)], [t.ones(2), t.ones(3)], [t.ones(2)]
        calls = [
            lambda: t._foreach_sqrt([]),
            lambda: t._foreach_zero_([]),
            lambda: t._foreach_add(x, short),
            lambda: t._foreach_add(x, [1.0]),
            lambda: t._foreach_add(x, t.ones(3)),
            lambda: t._foreach_mul_(x, t.ones(3)),
            lambda: t._foreach_addcdiv(x, y, short),
            lambda: t._foreach_addcdiv(x, y, y, t.ones(3)),
            lambda: t._foreach_addcdiv(x, y, y, t.ones(1, 2)),
            lambda: t._foreach_addcmul(x, y, y, [1.0]),
            lambda: t._foreach_lerp(x, y, [0.5]),
            lambda: t._foreach_copy_(x, short),
            lambda: t._foreach_max([t.ones(0)]),
            lambda: t._foreach_sqrt_([t.ones(2, dtype=t.int64)]),
            lambda: t._foreach_add_([t.ones(2, requires_grad=True)], 1),
        ]
        refused = [
            lambda: t._foreach_add(x, 3, alpha=3),
            lambda: t._foreach_mul(x, "a"),
            lambda: t._foreach_mul(1, 2),
        ]
        first = [result_or_error(call).splitlines()[0] for call in refused]
        return [result_or_error(call) for call in calls], first, x

    both(script)


def test_arguments_by_name_and_defaults() -> None:
    def script(t: Any) -> Any:
        x, y, z = lists(t, 3)
        before = [each.clone() for each in x]
        with t.no_grad():
            t._foreach_lerp_(x, y, 0.25)
            t._foreach_addcdiv_(x, y, z, value=-0.5)
            t._foreach_copy_(y, z, non_blocking=True)
        return (
            before,
            x,
            y,
            t._foreach_add(self=x, other=z, alpha=3),
            t._foreach_add(self=x, scalar=1),
            t._foreach_norm(x, 1),
            t._foreach_norm(x, math.inf, dtype=t.float64),
            t._foreach_norm(x, ord=0),
            t._foreach_clone(x),
            t._foreach_pow(2.0, x),
            t._foreach_sub(x, t.tensor(1.5)),
            t._foreach_powsum(x, 3, t.float64),
        )

    both(script)


def test_lists_by_dtype() -> None:
    def script(t: Any) -> Any:
        utils = importlib.import_module(f"{t.__name__}.utils._foreach_utils")
        group = utils._group_tensors_by_device_and_dtype
        a, b, step = t.ones(1), t.ones(1, dtype=t.int64), t.tensor(1.0)

        def group_names(*given: Any) -> Any:
            groups = group(*given)
            return sorted(
                (str(device), str(dtype).rpartition(".")[2], str(found))
                for (device, dtype), found in groups.items()
            )

        return (
            group_names([[a, b, a], []], True),
            group_names([[a, b], [None, b], [step, step]]),
            [
                result_or_error(lambda g=g: group(g))
                for g in ([], [[]], [[a, b], [a]], [[a, b], [b, a]])
            ],
            utils._has_foreach_support([a, None], a.device),
            utils._has_foreach_support([t.nn.Parameter(a)], a.device),
            utils._get_foreach_kernels_supported_devices(),
            utils._get_fused_kernels_supported_devices(),
        )

    both(script)
