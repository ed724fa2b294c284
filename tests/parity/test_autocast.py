"""Automatic mixed precision against PyTorch's: which op computes in what, the scopes and what they
are told, the graph of casts, custom functions, checkpoints, training in 16 bits.
"""

from __future__ import annotations

import functools
import threading
import warnings
from typing import Any

import pytest
from helpers import sweep_entries
from oracle import (
    Scripts,
    both,
    function,
    is_tensor,
    leaf,
    leaves,
    outcome,
    result_or_error,
    torch,
    warnings_of,
)
from samples import Entry
from sampling import Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS = Scripts()
script = SCRIPTS.add

APART = {
    "vander": "PyTorch writes over what it saved",
    "nn.functional.linear_cross_entropy": "PyTorch's is made of ops that are not listed",
    "_standard_gamma_grad": "computed in half here, refused by PyTorch",
    "_dirichlet_grad": "computed in half here, refused by PyTorch",
    "histogram": "refused in half here, computed by PyTorch",
    "histogramdd": "refused in half here, computed by PyTorch",
    "linalg.lu_solve": "PyTorch's of the adjoint system is made of listed ops",
    "nn.functional.max_pool3d_with_indices": "not listed by PyTorch, where it is another op",
    "nuclear_norm": "its decomposition is of float32 here",
}
"""Op -> why pygrad and PyTorch differ."""


def ran(entry: Entry, sample: Call, t: Any, given: str) -> list[Any]:
    def make(array: Any) -> Any:
        made = t.from_numpy(array.copy())
        return made.to(getattr(t, given)) if made.dtype == t.float32 else made

    args, kwargs = build(sample, "float32", make, t)
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    with t.autocast("cpu"):
        return [
            str(each.dtype)
            for each in leaves(function(entry, t)(*args, **kwargs))
            if is_tensor(each)
        ]


@pytest.mark.parametrize("given", ["float32", "bfloat16"])
@sweep_entries(lambda entry: function(entry, torch) is not None and entry.id not in APART)
def test_op_computes_in_the_dtype_that_pytorch_does(entry: Entry, sample: Call, given: str) -> None:
    mine, theirs = (outcome(lambda t=t: ran(entry, sample, t, given)) for t in (pygrad, torch))
    assert (mine.error, mine.values) == (theirs.error, theirs.values)


def casts(y: Any) -> list[str]:
    """The nodes around a result's own."""
    return [node.name() if node else "" for node, _ in y.grad_fn.next_functions]


@script
def scopes_within_each_other(t: Any) -> Any:
    x = t.ones(2, 2)
    with t.autocast("cpu"):
        with t.autocast("cpu", dtype=t.float16):
            half = x @ x
        with t.autocast("cpu", enabled=False):
            whole = x @ x, t.is_autocast_enabled("cpu")
        again = x @ x, t.get_autocast_dtype("cpu"), t.is_autocast_cache_enabled()
    return half, whole, again, x @ x, t.is_autocast_enabled("cpu")


@script
def scope_that_an_error_leaves(t: Any) -> Any:
    def fail() -> None:
        with t.autocast("cpu"):
            t.mm(t.ones(2, 3), t.ones(2, 3))

    return result_or_error(fail), t.is_autocast_enabled("cpu"), t.mm(t.ones(1, 1), t.ones(1, 1))


@script
def parameter_is_cast_once(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)
    x = t.ones(1, 2)
    shared = []
    for cached in (True, False):
        with t.autocast("cpu", cache_enabled=cached):
            a, b = layer(x), layer(x)
            shared.append(a.grad_fn.next_functions[0][0] == b.grad_fn.next_functions[0][0])
            if cached:
                t.clear_autocast_cache()
                c = layer(x)
                shared.append(c.grad_fn.next_functions[0][0] == a.grad_fn.next_functions[0][0])
    a.sum().backward()
    return casts(a), shared, layer.weight.grad, layer.bias.grad


@script
def what_is_not_cast(t: Any) -> Any:
    x, wide = t.ones(2, 2), t.ones(2, 2, dtype=t.float64)
    with t.autocast("cpu"):
        return (
            result_or_error(lambda: wide @ wide),
            result_or_error(lambda: wide @ x),
            result_or_error(lambda: t.ones(2, 2).addmm_(x.bfloat16(), x)),
            result_or_error(lambda: t.mm(x, x, out=t.ones(2, 2))),
            t.ones(2, 2, dtype=t.int64) @ t.ones(2, 2, dtype=t.int64),
            t.ones(2, 2, dtype=t.complex64) @ t.ones(2, 2, dtype=t.complex64),
            x * 2 + 1,
        )


@script
def widest_of_several(t: Any) -> Any:
    a, b, c = t.ones(1), t.ones(1, dtype=t.bfloat16), t.ones(1, dtype=t.float64)
    with t.autocast("cpu"):
        lists = [[a, a], [a, b], [b, b], [b, c], [a, c], [a, a.half()]]
        return [result_or_error(lambda each=each: t.cat(each)) for each in lists]


@script
def other_modes(t: Any) -> Any:
    x = t.ones(3, 3)
    with t.autocast("cpu"):
        _, tangent = t.func.jvp(lambda x: x @ x, (x,), (x,))
        return (
            t.vmap(lambda a: a @ a)(t.ones(2, 3, 3)),
            t.func.grad(lambda a: (a @ a).sum())(x),
            tangent,
            t.func.jacrev(lambda a: a @ a)(x).dtype,
        )


@script
def saved_tensors_of_16_bits(t: Any) -> Any:
    packed: list[Any] = []
    w = leaf(t, 1.0, 2.0).float().detach().requires_grad_()

    def pack(x: Any) -> Any:
        packed.append(str(x.dtype))
        return x

    with t.autocast("cpu"), t.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = t.outer(w, w) @ t.ones(2, 2)
    y.sum().backward()
    return packed, w.grad


@script
def custom_functions(t: Any) -> Any:
    seen: list[Any] = []

    def make(cast: Any) -> Any:
        class Product(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                ctx.save_for_backward(a, b)
                seen.append((str(a.dtype), t.is_autocast_enabled("cpu")))
                return a @ b

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, g: Any) -> Any:
                a, b = ctx.saved_tensors
                seen.append((str(g.dtype), t.is_autocast_enabled("cpu")))
                return g @ b.t(), a.t() @ g

        return Product

    found = []
    for cast in (None, t.float32, t.float16):
        x = t.ones(2, 2, requires_grad=True)
        with t.autocast("cpu"):
            y = make(cast).apply(x, x * 2)
        y.sum().backward()
        found.append((y, x.grad))
    return found, seen, make(t.float16).apply(t.ones(2, 2), t.ones(2, 2))


@script
def checkpoints(t: Any) -> Any:
    layer = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2))
    for i, p in enumerate(layer.parameters()):
        t.nn.init.constant_(p, 0.125 * (i + 1))
    seen: list[str] = []
    layer[1].register_forward_hook(lambda *given: seen.append(str(given[2].dtype)))
    found = []
    for reentrant in (True, False):
        x = t.ones(2, 3, requires_grad=True)
        with t.autocast("cpu"):
            y = t.utils.checkpoint.checkpoint(layer, x, use_reentrant=reentrant)
        y.float().sum().backward()
        found.append((y, x.grad))
    return found, seen, [p.grad for p in layer.parameters()]


@script
def recurrent_layers(t: Any) -> Any:
    kinds = []
    for make in (t.nn.LSTM, t.nn.GRU, t.nn.RNN):
        for more in ({}, {"bidirectional": True, "num_layers": 2}):
            layer = make(3, 4, **more)
            with t.autocast("cpu"):
                for x in (t.ones(2, 1, 3), t.ones(2, 1, 3, dtype=t.bfloat16)):
                    output, last = layer(x)
                    kinds.append([str(each.dtype) for each in leaves([output, last])])
    return kinds


@script
def state_by_functions(t: Any) -> Any:
    t.set_autocast_enabled("cpu", True)
    t.set_autocast_dtype("cpu", t.float16)
    t.set_autocast_cache_enabled(False)
    found = t.ones(1, 1) @ t.ones(1, 1), t.is_autocast_cache_enabled()
    t.set_autocast_cache_enabled(True)
    t.set_autocast_dtype("cpu", t.bfloat16)
    t.set_autocast_enabled("cpu", False)
    counts = t.autocast_increment_nesting(), t.autocast_decrement_nesting()
    others = [
        (t.amp.is_autocast_available(d), result_or_error(lambda d=d: t.get_autocast_dtype(d)))
        for d in ("cpu", "cuda", "xpu", "meta", "mtia", "none")
    ]
    return found, counts, others, t.is_autocast_enabled(), t.ones(1, 1) @ t.ones(1, 1)


WRONG = {
    "meta": lambda t: t.autocast("meta"),
    "none": lambda t: t.autocast("none"),
    "number": lambda t: t.autocast(3),
    "called": lambda t: t.autocast("cpu")(3),
    "dtype": lambda t: t.set_autocast_dtype("cpu", 3),
    "enabled": lambda t: t.set_autocast_enabled("cpu", 3),
    "asked": lambda t: t.is_autocast_enabled("meta"),
    "asked_number": lambda t: t.is_autocast_enabled(3),
    "set": lambda t: t.set_autocast_enabled("meta", True),
    "forward": lambda t: t.amp.custom_fwd(device_type=3),
    "float16": lambda t: scale(t, t.float16),
}


def scale(t: Any, dtype: Any) -> Any:
    w = t.ones(2, dtype=dtype, requires_grad=True)
    scaler = t.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = t.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return w


@script
def scaler_of_bfloat16(t: Any) -> Any:
    return scale(t, t.bfloat16)


@script
def scaler_meets_overflow(t: Any) -> Any:
    w = t.tensor([300.0], requires_grad=True)
    scaler = t.amp.GradScaler("cpu", init_scale=2.0**15, growth_interval=2)
    optimizer = t.optim.SGD([w], lr=1e-3)
    scales = []
    for _ in range(6):
        optimizer.zero_grad()
        with t.autocast("cpu", dtype=t.float16):
            y = w.view(1, 1) @ t.ones(1, 1)
        scaler.scale(y.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append((scaler.get_scale(), w.item()))
    return scales


@pytest.mark.parametrize("name", SCRIPTS)
def test_autocast_is_pytorchs(name: str) -> None:
    both(SCRIPTS[name], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", WRONG)
def test_refusal_is_pytorchs(name: str) -> None:
    both(WRONG[name])


@pytest.mark.parametrize(
    "scope",
    [
        lambda t: t.autocast("cuda"),
        lambda t: t.autocast("cpu", dtype=t.float64),
        lambda t: t.cpu.amp.autocast(),
        lambda t: t.is_autocast_cpu_enabled(),
        lambda t: t.get_autocast_cpu_dtype(),
    ],
)
def test_warning_is_pytorchs(scope: Any) -> None:
    mine = warnings_of(lambda: scope(pygrad))
    assert mine
    assert mine == (warnings_of(lambda: scope(torch)) or mine)  # some are given once a process


def train(t: Any, dtype: Any) -> list[float]:
    """Losses of a classifier of points in a ring and outside of it."""
    net = t.nn.Sequential(t.nn.Linear(2, 32), t.nn.ReLU(), t.nn.Linear(32, 2))
    for i, p in enumerate(net.parameters()):
        with t.no_grad():
            p.copy_((t.arange(p.numel()) * (0.7 + 0.1 * i)).sin().view(p.shape) * 0.5)
    grid = t.linspace(-1, 1, 12)
    x = t.cartesian_prod(grid, grid)
    y = (x.square().sum(1) < 0.5).long()
    optimizer = t.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with t.autocast("cpu", dtype=dtype, enabled=dtype != t.float32):
            logits = net(x)
            loss = t.nn.functional.cross_entropy(logits, y)
        assert logits.dtype == dtype
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad.dtype == t.float32 for p in net.parameters())
    return losses


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_classifier_learns_in_16_bits_as_in_pytorch(name: str) -> None:
    mine, theirs = (train(t, getattr(t, name)) for t in (pygrad, torch))
    assert mine[-1] < 0.35 * mine[0]
    assert max(abs(a - b) for a, b in zip(mine, theirs, strict=True)) < 0.02
    full = train(pygrad, pygrad.float32)
    assert 0 < max(abs(a - b) for a, b in zip(mine, full, strict=True)) < 0.05


def test_decorated_function_may_call_itself() -> None:
    """PyTorch's scope stays on afterwards."""

    @pygrad.autocast("cpu")
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x @ power(x, n - 1)

    assert power(pygrad.ones(2, 2), 3).dtype == pygrad.bfloat16
    assert not pygrad.is_autocast_enabled("cpu")


def test_a_scope_is_of_its_thread_alone() -> None:
    seen: list[Any] = []
    with pygrad.autocast("cpu"):
        other = threading.Thread(target=lambda: seen.append(pygrad.ones(1, 1) @ pygrad.ones(1, 1)))
        other.start()
        other.join()
        assert (pygrad.ones(1, 1) @ pygrad.ones(1, 1)).dtype == pygrad.bfloat16
    assert seen[0].dtype == pygrad.float32


def test_cast_made_without_a_graph_does_not_take_a_parameter_its_gradient() -> None:
    layer = pygrad.nn.Linear(2, 2)
    with pygrad.autocast("cpu"):
        with pygrad.no_grad():
            layer(pygrad.ones(1, 2))
        layer(pygrad.ones(1, 2)).sum().backward()
    assert layer.weight.grad is not None


def test_autocast_leaves_nothing_behind() -> None:
    before = pygrad.pg_live_count()
    layer = pygrad.nn.Linear(2, 2)
    with pygrad.autocast("cpu"):
        layer(pygrad.ones(1, 2)).sum().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result_or_error(functools.partial(pygrad.mm, pygrad.ones(1, 2), layer.weight[:1]))
    del layer
    assert pygrad.pg_live_count() == before
