"""torch.masked beside PyTorch's: what is masked out, wholly or in part, types and errors."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import both, result_or_error

REDUCTIONS = "sum prod amax amin mean logsumexp norm var std argmax argmin median".split()
ALONG = "cumsum cumprod softmax log_softmax softmin".split()
OF_ONE_DIM = ("argmax", "argmin", "median")


def call(t: Any, name: str, x: Any, dim: int, **options: Any) -> Any:
    op = getattr(t.masked, name)
    return op(x, dim=dim, **options)


@pytest.mark.parametrize("name", REDUCTIONS + ALONG)
def test_fully_masked_rows_give_the_identity(name: str) -> None:
    def script(t: Any) -> Any:
        x = t.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0], [2.0, 2.5, 0.25]], dtype=t.float64)
        mask = t.tensor([[True, False, True], [False, False, False], [True, True, True]])
        found = []
        for chosen in (mask, mask[0], mask.double(), mask.long() * 3, None):
            leaf = x.clone().requires_grad_()
            y = call(t, name, leaf, 1, mask=chosen)
            found.append(y)
            if y.requires_grad and name != "median":
                found += t.autograd.grad(y.sum(), leaf)
        return found

    both(script)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32"])
@pytest.mark.parametrize("name", [*REDUCTIONS, *ALONG, "normalize", "logaddexp"])
def test_types(name: str, dtype: str) -> None:
    """What comes of each type, asked for another or not; or which error."""

    def script(t: Any) -> Any:
        x = t.tensor([[1, 0, 3], [2, 5, 1]]).to(getattr(t, dtype))
        mask = t.tensor([[True, False, True], [False, True, True]])
        op = getattr(t.masked, name)
        if name == "logaddexp":
            return [
                result_or_error(lambda: op(x, x, input_mask=mask, other_mask=mask[0])),
                result_or_error(lambda: op(x, x, dtype=t.float64, input_mask=mask)),
                result_or_error(lambda: op(x, x)),
            ]
        first = (2.0,) if name == "normalize" else ()
        return [
            result_or_error(lambda: op(x, *first, dim=1, mask=mask)),
            result_or_error(lambda: op(x, *first, dim=1)),
            result_or_error(lambda: op(x, *first, dim=0, dtype=t.float64, mask=mask)),
            result_or_error(lambda: op(x, *first, dim=0, dtype=t.int32, mask=mask)),
        ]

    both(script)


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in OF_ONE_DIM])
def test_dims(name: str) -> None:
    def script(t: Any) -> Any:
        x = t.arange(1, 25, dtype=t.float64).reshape(2, 3, 4) / 7
        mask = x.remainder(3) < 1.5
        op = getattr(t.masked, name)
        return [
            *(op(x, dim=dim, mask=mask) for dim in (None, (), 0, -1, (0, 2), [2, 0])),
            *(op(x, dim=dim, keepdim=True, mask=mask[0, :, :1]) for dim in (None, 1, (-1, 0))),
            op(x[0, 0, 0], mask=mask[0, 0, 0]),
            result_or_error(lambda: op(x, dim=3)),
            result_or_error(lambda: op(x, dim=(0, 0))),
            result_or_error(lambda: op(x, mask=mask[None])),
            result_or_error(lambda: op(x, mask=mask[:, :2])),
        ]

    both(script)


def test_corrections_and_orders() -> None:
    def script(t: Any) -> Any:
        x = t.tensor([[1.0, -2.0, 3.0, 0.5], [0.5, 4.0, -1.0, 1.5]], dtype=t.float64)
        mask = t.tensor([[True, False, True, True], [False, True, False, False]])
        inf = float("inf")
        return [
            *(t.masked.var(x, 1, unbiased, mask=mask) for unbiased in (None, True, False)),
            *(t.masked.std(x, 1, correction=n, mask=mask) for n in (0, 1, 2, 1.5)),
            result_or_error(lambda: t.masked.var(x, 1, True, correction=1, mask=mask)),
            *(t.masked.norm(x, n, 1, mask=mask) for n in (0, 1, 2.0, 3, inf, -inf)),
            result_or_error(lambda: t.masked.norm(x.long(), -inf, 1, mask=mask)),
            *(t.masked.normalize(x, n, 1, eps=0.7, mask=mask) for n in (1, 2.0, inf)),
            result_or_error(lambda: t.masked.median(x.long(), 0, mask=mask)),
            t.masked.median(x.long(), 1, mask=mask),
        ]

    both(script)


def test_logaddexp() -> None:
    def script(t: Any) -> Any:
        a = t.tensor([-100.0, -200, -300], dtype=t.float64, requires_grad=True)
        b = t.tensor([-1.0, -2, -3], dtype=t.float64, requires_grad=True)
        mask = t.tensor([True, False, True])
        y = t.masked.logaddexp(a, b, input_mask=mask)
        z = t.masked.logaddexp(a, b, input_mask=mask, other_mask=mask)
        return [y, z, *t.autograd.grad(y.sum(), (a, b)), t.masked.logaddexp(a, b)]

    both(script)


def test_names() -> None:
    def script(t: Any) -> Any:
        names = [*REDUCTIONS, *ALONG, "normalize", "logaddexp"]
        return [callable(getattr(t.masked, name)) for name in names]

    both(script)
