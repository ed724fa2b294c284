"""What the longer programs have no use for: the same in both libraries."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import Scripts, both, leaf, tried

SCRIPTS = Scripts()
script = SCRIPTS.add


@script
def parts_of_a_module_by_path(t: Any) -> Any:
    net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3))
    finders = (net.get_parameter, net.get_buffer, net.get_submodule)
    found = [net.get_parameter("0.weight"), net.get_buffer("1.running_mean")]
    net.set_submodule("0", t.nn.Linear(2, 4, bias=False))
    net.register_module("last", t.nn.ReLU())
    missing = [str(tried(lambda f=f, p=p: f(p))) for f in finders for p in ("0.none", "9.x", "")]
    return *found, repr(net), [name for name, _ in net.named_parameters()], missing


@script
def empty_module(t: Any) -> Any:
    return t.nn.Linear(2, 3).to_empty(device="cpu").weight.shape, t.nn.Module.dump_patches


@script
def clone_of_a_generator(t: Any) -> Any:
    generator = t.Generator().manual_seed(5)
    t.rand(3, generator=generator)
    clone = generator.clone_state()
    refused = [tried(generator.get_offset), tried(lambda: generator.set_offset(3))]
    return t.rand(2, generator=generator), t.rand(2, generator=clone), refused


@script
def hooks_around_steps(t: Any) -> Any:
    seen: list[Any] = []
    w = leaf(t, 1.0, 2.0)
    optimizer = t.optim.SGD([w], lr=0.5)
    before = optimizer.register_step_pre_hook(lambda _, *given: seen.append(("before", given)))
    after = optimizer.register_step_post_hook(lambda _, *given: seen.append(("after", given)))
    w.sum().backward()
    for handle in (before, after, before):
        optimizer.step()
        handle.remove()
    return seen, w


@script
def settings_of_a_scaler(t: Any) -> Any:
    scaler = t.amp.GradScaler("cpu", init_scale=8.0)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    factors = scaler.get_growth_factor(), scaler.get_backoff_factor()
    return *factors, scaler.get_growth_interval(), scaler.state_dict()


@script
def perplexity(t: Any) -> Any:
    d = t.distributions
    return d.Normal(0.0, 2.0).perplexity(), d.Categorical(t.tensor([0.2, 0.8])).perplexity()


@script
def what_a_tensor_is(t: Any) -> Any:
    x = t.ones(2, 3)
    kinds = [x.is_sparse, x.is_quantized, x.is_meta, x.is_nested, x.is_cpu, x.is_conj(), x.is_neg()]
    return x.ndimension(), x.nelement(), x.element_size(), *kinds, x[t.newaxis].shape


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_does_the_same(name: str) -> None:
    both(SCRIPTS[name])
