"""Optimizers' steps as functions of lists, and what optimizers of libraries call."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
from oracle import both, result_or_error

COMMON = {"lr": 0.1, "weight_decay": 0.01}
FORMS: dict[str, tuple[list[str], dict[str, Any]]] = {
    # lists of state (s: like the parameter, 1: a number 1, -: empty), options
    "adadelta": (["s", "s"], {**COMMON, "rho": 0.9, "eps": 1e-6, "maximize": True}),
    "adagrad": (["s"], {**COMMON, "lr_decay": 0.1, "eps": 1e-6, "maximize": False}),
    "adam": (
        ["s", "s", "s"],
        {**COMMON, "amsgrad": True, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "maximize": False},
    ),
    "adamw": (
        ["s", "s", "-"],
        {**COMMON, "amsgrad": False, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "maximize": True},
    ),
    "adamax": (["s", "s"], {**COMMON, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6}),
    "asgd": (["s", "1", "1"], {**COMMON, "lambd": 0.1, "t0": 1, "alpha": 0.7}),
    "nadam": (
        ["s", "s", "1"],
        {**COMMON, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "momentum_decay": 0.1},
    ),
    "radam": (["s", "s"], {**COMMON, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6}),
    "rmsprop": (
        ["s", "s", "s"],
        {**COMMON, "alpha": 0.9, "eps": 1e-6, "momentum": 0.5, "centered": True},
    ),
    "rprop": (
        ["s", "s"],
        {"step_size_min": 0.01, "step_size_max": 2.0, "etaminus": 0.5, "etaplus": 1.2},
    ),
}


def module(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.optim.{name}")


def lists(t: Any, kinds: list[str]) -> list[list[Any]]:
    def pair_from(start: float) -> list[Any]:
        values = t.arange(start, start + 5)
        return [(values[:2] / 7).clone(), (values[2:] / 7).clone()]

    params, grads = pair_from(1.0), [-x for x in pair_from(3.0)]
    states = [
        [] if kind == "-" else [t.tensor(1.0), t.tensor(1.0)] if kind == "1" else pair_from(2.0 + i)
        for i, kind in enumerate(kinds)
    ]
    return [params, grads, *states, [t.tensor(3.0), t.tensor(7.0)]]


@pytest.mark.parametrize("name", FORMS)
def test_step_of_lists(name: str) -> None:
    kinds, options = FORMS[name]

    def script(t: Any) -> Any:
        given = lists(t, kinds)
        getattr(module(t, name), name)(*given, **options)
        return given

    both(script)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "adamw"])
@pytest.mark.parametrize("form", ["_single_tensor", "_multi_tensor"])
def test_step_by_its_private_names(name: str, form: str) -> None:
    kinds, options = FORMS[name]
    later = {"maximize": False, "capturable": False, "differentiable": False, "has_complex": False}
    if name in ("adam", "adagrad"):
        later |= {"grad_scale": None, "found_inf": None}
    if name == "adagrad":
        later["has_sparse_grad"] = False
        del later["capturable"]
    if name in ("adam", "nadam", "radam"):
        later["decoupled_weight_decay"] = True

    def script(t: Any) -> Any:
        given = lists(t, kinds)
        getattr(module(t, name), f"{form}_{name}")(*given, **{**later, **options})
        return given

    both(script)


@pytest.mark.parametrize("momentum", [0, 0.5])
@pytest.mark.parametrize("form", ["sgd", "_single_tensor_sgd"])
def test_sgd(momentum: float, form: str) -> None:
    def script(t: Any) -> Any:
        params, grads, buffers, _ = lists(t, ["s"])
        buffers[0] = None
        options: dict[str, Any] = {**COMMON, "momentum": momentum, "dampening": 0.1}
        options |= {"nesterov": False, "maximize": False}
        if form != "sgd":
            options |= {"grad_scale": None, "found_inf": None, "has_sparse_grad": False}
        for _ in range(2):
            getattr(module(t, "sgd"), form)(params, grads, buffers, **options)
        return params, grads, buffers

    both(script)


def test_adafactor() -> None:
    def script(t: Any) -> Any:
        params = [t.arange(1.0, 7.0).reshape(2, 3) / 7, t.ones(3)]
        grads = [p * p - 0.3 for p in params]
        state = [[t.ones(2, 1), None], [t.ones(1, 3), None], [None, t.ones(3)]]
        steps = [t.tensor(2.0), t.tensor(2.0)]
        module(t, "_adafactor").adafactor(
            params, grads, *state, steps, d=1.0, lr=0.1, beta2_decay=-0.8, weight_decay=0.1,
            eps1=1e-4, eps2=1e-3, maximize=False,
        )  # fmt: skip
        return params, state, steps

    both(script, rtol=1e-5)


def test_calls_that_are_refused() -> None:
    def script(t: Any) -> Any:
        _, options = FORMS["adam"]
        given = lists(t, FORMS["adam"][0])
        given[-1] = [3, 7]
        before = [each.clone() for each in given[0]]
        return (
            result_or_error(lambda: module(t, "adam").adam(*given, **options)),
            given[0],
            before,
            result_or_error(lambda: t.optim.Adam([t.ones(1)], foreach=True, fused=True)),
        )

    both(script)


def test_muon() -> None:
    def script(t: Any) -> Any:
        found = []
        for options in ({}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}):
            tall, wide = t.arange(6.0).reshape(3, 2) / 7, t.arange(6.0).reshape(2, 3) / 5
            params = [tall.requires_grad_(), wide.requires_grad_()]
            optimizer = t.optim.Muon(params, lr=0.1, **options)
            for _ in range(2):
                optimizer.zero_grad()
                sum((p * p * p).sum() for p in params).backward()
                optimizer.step()
            found.append((params, [optimizer.state[p]["momentum_buffer"] for p in params]))
            found.append([sorted(g) for g in optimizer.param_groups])
        errors = [
            {"lr": -1.0},
            {"momentum": -1.0},
            {"weight_decay": -1.0},
            {"adjust_lr_fn": "other"},
            {"lr": t.ones(2)},
        ]
        muon = module(t, "_muon")
        return (
            found,
            [result_or_error(lambda e=e: t.optim.Muon([t.ones(1, 1)], **e)) for e in errors],
            result_or_error(lambda: t.optim.Muon([t.ones(1)])),
            result_or_error(
                lambda: muon._zeropower_via_newtonschulz(t.ones(2, 2), (1, 2, 3), 100, 1e-7)
            ),
            result_or_error(
                lambda: muon._zeropower_via_newtonschulz(t.ones(2), (1, 2, 3), 1, 1e-7)
            ),
            result_or_error(
                lambda: muon._zeropower_via_newtonschulz(t.ones(2, 2), (1, 2), 1, 1e-7)
            ),
        )

    both(script, rtol=2e-2, atol=2e-3)  # the update is computed in bfloat16


class Rows:
    """A sparse gradient, as far as the step looks at it."""

    def __init__(self, indices: Any, values: Any) -> None:
        self._given = indices, values

    def coalesce(self) -> Rows:
        return self

    def __neg__(self) -> Rows:
        return Rows(self._given[0], -self._given[1])

    def _indices(self) -> Any:
        return self._given[0]

    def _values(self) -> Any:
        return self._given[1]


def test_sparse_adam() -> None:
    import torch

    import pygrad

    def step(t: Any, grad: Any, maximize: bool) -> Any:
        param, mean, square = t.arange(6.0).reshape(3, 2), t.ones(3, 2) / 2, t.ones(3, 2)
        options = {"eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "maximize": maximize}
        module(t, "_functional").sparse_adam([param], [grad], [mean], [square], [2], **options)
        return [x.tolist() for x in (param, mean, square)]

    for maximize in (False, True):
        with warnings.catch_warnings(action="ignore"):  # of its invariants
            theirs = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, -1.0]], (3, 2))
        mine = Rows(pygrad.tensor([[0, 2]]), pygrad.tensor([[1.0, 2.0], [3.0, -1.0]]))
        with warnings.catch_warnings(action="ignore"):
            expected = step(torch, theirs, maximize)
        found = step(pygrad, mine, maximize)
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))

    def script(t: Any) -> Any:
        w = t.ones(2, requires_grad=True)
        w.grad = t.ones(2)
        wrong: list[dict[str, Any]] = [{"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}]
        return (
            result_or_error(t.optim.SparseAdam([w]).step),
            [result_or_error(lambda e=e: t.optim.SparseAdam([w], **e)) for e in wrong],
        )

    both(script)


def test_helpers_of_optimizers() -> None:
    def script(t: Any) -> Any:
        o = module(t, "optimizer")
        x, z = t.ones(1), t.ones(2, dtype=t.complex64)
        params, states = [x, z], [x, z]
        o._view_as_real(params, states)

        class Plain(t.optim.Optimizer):  # type: ignore[misc]
            def __init__(self, params: Any, differentiable: bool) -> None:
                super().__init__(params, {"differentiable": differentiable})

            @o._use_grad_for_differentiable  # type: ignore[untyped-decorator]
            def step(self, closure: Any = None) -> Any:
                return t.is_grad_enabled()

        plain = Plain([x], False)
        plain._patch_step_function()
        return (
            [each.shape for each in (*params, *states)],
            [o._get_value(each) for each in (x, 2.0)],
            o._stack_if_compiling([x]),
            [o._to_scalar(each) for each in (x, t.tensor(2.0), 3.0)],
            [str(o._get_scalar_dtype(fused)).rpartition(".")[2] for fused in (True, False)],
            o._default_to_fused_or_foreach([x, None], False, True),
            o._default_to_fused_or_foreach([z], False, True),
            o._default_to_fused_or_foreach([x], True, True),
            result_or_error(lambda: o._device_dtype_check_for_fused(z)),
            o._device_dtype_check_for_fused(x),
            o._get_capturable_supported_devices(),
            [plain.step(), Plain([x], True).step(), t.is_grad_enabled()],
            o._disable_dynamo_if_unsupported(None)(len)([1, 2]),
            hasattr(o, "ParamsT"),
        )

    both(script)


def test_line_search() -> None:
    def script(t: Any) -> Any:
        lbfgs = module(t, "lbfgs")
        x = t.tensor([3.0, -2.0], dtype=t.float64)
        d = t.tensor([-1.0, 0.5], dtype=t.float64)

        def objective(x: Any, length: Any, d: Any) -> Any:
            at = x + length * d
            return float((at**4).sum()), 4 * at**3

        f, g = objective(x, 0, d)
        cubic = lbfgs._cubic_interpolate
        one = t.tensor(1.0)
        return (
            lbfgs._strong_wolfe(objective, x, 1.0, d, f, g, g.dot(d)),
            lbfgs._strong_wolfe(objective, x, 0.01, d, f, g, g.dot(d), max_ls=3),
            lbfgs._strong_wolfe(objective, x, 20.0, d, f, g, g.dot(d), c2=0.01),
            cubic(0.0, 1.0, -2 * one, 2.0, 1.0, 2 * one),
            cubic(0.0, 1.0, -2 * one, 2.0, 1.0, 2 * one, bounds=(0.0, 0.5)),
            cubic(2.0, 1.0, one, 0.0, 1.0, one),
        )

    both(script)


def test_classes_by_older_names() -> None:
    def script(t: Any) -> Any:
        w = t.ones(2, requires_grad=True)
        found = importlib.import_module(f"{t.__name__}.optim._multi_tensor")
        optimizer = found.Adam([w], lr=0.5)
        (w * w).sum().backward()
        optimizer.step()
        return w, optimizer.param_groups[0]["foreach"], optimizer.defaults["lr"]

    both(script)
