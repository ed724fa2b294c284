"""`out=` of another dtype than the result; test_ops.py has a sweep over all ops."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import outcome, torch

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

X = "torch.tensor([[3., 1., 2.]], dtype=torch.float32)"


@pytest.mark.parametrize("other", ["float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    "call",
    [
        "torch.any(x, 0, out=out)",
        "torch.all(x, out=out)",
        "torch.isposinf(x, out=out)",
        "torch.signbit(x, out=out)",
        "torch.quantile(x, 0.5, out=out)",
        "torch.nanquantile(x, 0.5, 1, out=out)",
        "torch.amax(x, 1, out=out)",
        "torch.amin(x, out=out)",
        "torch.cummax(x, 1, out=(out, i))",
        "torch.cummin(x, 1, out=(torch.empty_like(x), out))",
        "torch.logcumsumexp(x, 1, out=out)",
        "torch.abs(x, out=out)",
        "torch.floor(x, out=out)",
        "torch.round(x, out=out)",
        "torch.max(x, 1, out=(out, i))",
        "torch.min(x, 1, out=(torch.empty_like(x), out))",
        "torch.sort(x, out=(out, i))",
        "torch.topk(x, 2, out=(torch.empty_like(x), out))",
        "torch.argmax(x, 1, out=out)",
        "torch.norm(x, out=out)",
        "torch.mm(x, x.T, out=out)",
        "torch.tril(x, out=out)",
        "torch.gather(x, 1, i, out=out)",
        "torch.sum(x, 1, out=out)",
        "torch.sum(x, 1, dtype=torch.float32, out=out)",
        "torch.prod(x / 2, 1, out=out)",
        "torch.cumsum(x / 2, 1, dtype=torch.float32, out=out)",
    ],
)
def test_values_and_words(call: str, other: str) -> None:
    def run(t: Any) -> Any:
        x, i = eval(X, {"torch": t}), t.zeros(1, 3, dtype=t.int64)
        out = t.empty(0, dtype=getattr(t, other))
        names = {"torch": t, "x": x, "i": i, "out": out}
        found = outcome(lambda: eval(call, names))
        values = [(str(v.dtype).split(".")[-1], v.tolist()) for v in found.values]
        return found.error, found.message.split("\n")[0], values

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "cumsum", "cumprod"])
def test_reductions_compute_in_the_dtype_of_out(name: str) -> None:
    def run(t: Any) -> Any:
        x = t.tensor([[1.5, 2.5], [3.5, 4.25]], dtype=t.float64)
        kinds = [t.float32] if name in ("mean", "nansum") else [t.float32, t.int64, t.uint8]
        found = [getattr(t, name)(x, 1, out=t.empty(0, dtype=kind)) for kind in kinds]
        return [value.tolist() for value in found]

    assert run(pygrad) == run(torch)
