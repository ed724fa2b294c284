"""What scripts do beside the numbers: conversions, NumPy, mixed precision, names that are there."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, torch, tried, warned

import pygrad

ARRAY = np.array([1.0, 3.0])

EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "float_of_two": lambda t: float(t.ones(2)),
    "int_of_none": lambda t: int(t.ones(0)),
    "complex_of_two": lambda t: complex(t.ones(2)),
    "item_of_two": lambda t: t.ones(2).item(),
    "reversed": lambda t: reversed(t.arange(4).view(2, 2)),
    "reversed_list": lambda t: list(reversed(t.arange(3))),
    "sqrt": lambda t: np.sqrt(t.ones(2)),
    "plus_array": lambda t: t.ones(2) + ARRAY,
    "is_nan": lambda t: np.isnan(t.ones(2)),
    "equal_array": lambda t: t.ones(2) == ARRAY,
    "array_equal": lambda t: ARRAY == t.ones(2),  # noqa: SIM300
    "unequal_array": lambda t: bool((t.ones(2) != ARRAY) is True),
    "equal_text": lambda t: t.ones(2) == "x",
    "equal_list": lambda t: t.ones(2) == [1, 1],
    "dict": lambda t: t.tensor({"a": 1}),
    "set": lambda t: t.tensor({1}),
    "bytes": lambda t: t.tensor(b"ab"),
    "bytearray": lambda t: t.tensor(bytearray(b"ab")),
    "compile_mode": lambda t: t.compile(t.relu, mode="x"),
    "compile_both": lambda t: t.compile(t.relu, mode="default", options={}),
    "compile_number": lambda t: t.compile(3),
    "compile": lambda t: t.compile(t.relu, disable=True)(t.ones(1)),
    "compile_decorator": lambda t: t.compile(disable=True)(t.relu)(-t.ones(1)),
    "precision": lambda t: [
        t.get_float32_matmul_precision(),
        t.set_float32_matmul_precision("high"),
        t.get_float32_matmul_precision(),
        t.set_float32_matmul_precision("highest"),
    ],
    "deterministic": lambda t: [
        t.use_deterministic_algorithms(True),
        t.are_deterministic_algorithms_enabled(),
        t.use_deterministic_algorithms(False),
        t.are_deterministic_algorithms_enabled(),
    ],
    "autocast_off": lambda t: t.autocast("cpu", enabled=False)(t.relu)(t.ones(1)),
    "autocast_cuda": lambda t: t.autocast("cuda")._enabled,
    "autocast_float32": lambda t: t.autocast("cpu", dtype=t.float32)._enabled,
    "autocast_device": lambda t: t.autocast("foo"),
    "autocast_number": lambda t: t.autocast(3),
    "scaler_off": lambda t: [
        t.amp.GradScaler("cpu", enabled=False).state_dict(),
        t.amp.GradScaler().is_enabled(),
        t.cuda.amp.GradScaler(enabled=False).scale(3),
        t.cuda.amp.GradScaler().get_scale(),
    ],
    "scaler_factor": lambda t: t.amp.GradScaler("cpu", growth_factor=0.5),
    "scaler_state": lambda t: t.amp.GradScaler("cpu").load_state_dict({}),
    "scaler_number": lambda t: t.amp.GradScaler("cpu").scale(3),
    "scaler_early": lambda t: t.amp.GradScaler("cpu").update(),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name: str) -> None:
    both(EXPRESSIONS[name])


@pytest.mark.parametrize(
    "place",
    [lambda storage, _: storage, {"cuda:0": "cpu"}, "cpu"],
    ids=["function", "mapping", "name"],
)
def test_place_to_load_to(place: Any) -> None:
    def script(t: Any) -> Any:
        file = io.BytesIO()
        t.save({"a": t.ones(2)}, file)
        file.seek(0)
        return t.load(file, map_location=place)

    both(script)


def test_grad_scaler() -> None:
    def script(t: Any) -> Any:
        w = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.SGD([w], 0.1)
        scaler = t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        seen = [tried(lambda: scaler.step(optimizer))]
        for factor in (1.0, float("inf"), 1.0, 1.0, 2.0):
            optimizer.zero_grad()
            scaler.scale((w * factor).sum()).backward()
            if factor == 1.0:
                scaler.unscale_(optimizer)
                seen.append(tried(lambda: scaler.unscale_(optimizer)))
            scaler.step(optimizer)
            seen.append(tried(lambda: scaler.step(optimizer)))
            scaler.update()
            seen += [w.detach().clone(), w.grad.clone(), str(scaler.state_dict())]
        state = scaler.state_dict()
        other = t.amp.GradScaler("cpu")
        other.load_state_dict(state)
        scaler.update(4.0)
        return *seen, str(other.state_dict()), scaler.get_scale(), scaler.scale([w.sum()])

    both(script)


WARNING: dict[str, Callable[[Any], Any]] = {
    "float": lambda t: float(t.ones(1, requires_grad=True)),
    "float_no_grad": lambda t: t.no_grad()(float)(t.ones(1, requires_grad=True)),
    "item": lambda t: t.ones(1, requires_grad=True).item(),
    "precision": lambda t: t.set_float32_matmul_precision("x"),
    "autocast": lambda t: t.autocast("cuda"),
    "float32": lambda t: t.autocast("cpu", dtype=t.float32),
    "scaler": lambda t: t.amp.GradScaler(),
    "old_scaler": lambda t: t.cuda.amp.GradScaler(),
    "old_autocast": lambda t: t.cuda.amp.autocast(enabled=False),
}


@pytest.mark.parametrize("name", WARNING)
def test_warning(name: str) -> None:
    pygrad.set_warn_always(True)
    torch.set_warn_always(True)
    try:
        assert warned(lambda: WARNING[name](pygrad)) == warned(lambda: WARNING[name](torch))
    finally:
        pygrad.set_warn_always(False)
        torch.set_warn_always(False)


def test_autocast_that_would_change_dtypes_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotImplementedError, match="bfloat16"):
            pygrad.autocast("cpu")


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_shares_of_a_dataset(shuffle: bool, drop_last: bool, count: int) -> None:
    def script(t: Any) -> Any:
        kind = t.utils.data.DistributedSampler
        shares = [kind(range(5), count, rank, shuffle, 3, drop_last) for rank in range(count)]
        first = [list(share) for share in shares]
        for share in shares:
            share.set_epoch(1)
        return first, [list(share) for share in shares], [len(share) for share in shares]

    both(script)


def test_shares_without_a_process_group() -> None:
    both(lambda t: t.utils.data.DistributedSampler(range(5), 2))
    both(lambda t: t.utils.data.DistributedSampler(range(5), 2, 2))
