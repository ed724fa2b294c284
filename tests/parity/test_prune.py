"""nn.utils.prune and nn.utils.fusion: masks, hooks, state dicts and refusals as PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, both, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


def prune(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.nn.utils.prune")


def linear(t: Any, rows: int = 3, columns: int = 4) -> Any:
    layer = t.nn.Linear(columns, rows)
    values = (t.arange(rows * columns) * 7 % 13 - 5.25).view(rows, columns)
    layer.weight.data = values
    layer.bias.data = t.arange(rows) - 0.5
    return layer


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda p, m: p.random_unstructured(m, name="weight", amount=0.3),
    "l1": lambda p, m: p.l1_unstructured(m, "weight", amount=5),
    "scores": lambda p, m: p.l1_unstructured(m, "bias", 1, importance_scores=-m.bias + 3),
    "none": lambda p, m: p.l1_unstructured(m, "weight", amount=0),
    "random_rows": lambda p, m: p.random_structured(m, "weight", amount=1, dim=0),
    "norm": lambda p, m: p.ln_structured(m, "weight", amount=0.5, n=2, dim=1),
    "norm_of_last": lambda p, m: p.ln_structured(m, "weight", amount=1, n=float("inf")),
    "identity": lambda p, m: p.identity(m, "weight"),
    "mask": lambda p, m: p.custom_from_mask(m, "bias", mask=m.bias > 0),
    "two": lambda p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 3), "weight", 3),
    "three": lambda p, m: p.ln_structured(
        p.random_unstructured(p.random_structured(m, "weight", 1, 0), "weight", 0.4),
        "weight",
        amount=1,
        n=1,
        dim=0,
    ),
    "one_and_a_half": lambda p, m: p.l1_unstructured(m, "weight", amount=1.5),
    "too_many": lambda p, m: p.l1_unstructured(m, "weight", amount=100),
    "negative": lambda p, m: p.l1_unstructured(m, "weight", amount=-1),
    "text": lambda p, m: p.l1_unstructured(m, "weight", amount="a"),
    "no_such": lambda p, m: p.l1_unstructured(m, "foo", amount=1),
    "no_such_dim": lambda p, m: p.ln_structured(m, "weight", amount=0.5, n=2, dim=4),
    "vector": lambda p, m: p.ln_structured(m, "bias", amount=0.5, n=2, dim=0),
    "not_pruned": lambda p, m: p.remove(m, "weight"),
}


@pytest.mark.parametrize("way", WAYS)
def test_way_to_prune(way: str) -> None:
    def run(t: Any) -> Any:
        layer = linear(t)
        seen: list[Any] = [repr(WAYS[way](prune(t), layer)), prune(t).is_pruned(layer)]
        seen += [layer.weight, layer.bias, sorted(layer.state_dict())]
        layer(t.ones(4)).sum().backward()
        seen += [(n, p.grad) for n, p in sorted(layer.named_parameters())]
        hooks = layer._forward_pre_hooks.values()
        seen += [[type(h).__name__ for h in hooks], [h._tensor_name for h in hooks]]
        name = "bias" if way in ("scores", "mask") else "weight"
        prune(t).remove(layer, name)
        return seen, getattr(layer, name), list(layer.state_dict()), prune(t).is_pruned(layer)

    both(run)


@script
def pruned_globally(t: Any) -> Any:
    p = prune(t)
    net = t.nn.Sequential(linear(t), t.nn.ReLU(), linear(t, 2, 3))
    pairs = ((net[0], "weight"), (net[2], "weight"))
    p.global_unstructured(pairs, pruning_method=p.L1Unstructured, amount=0.4)
    seen = [net[0].weight, net[2].weight_mask]
    scores = {(net[2], "weight"): -net[2].weight_orig.detach().abs()}
    p.global_unstructured(pairs, p.L1Unstructured, importance_scores=scores, amount=2)
    seen += [net[0].weight, net[2].weight]
    wrong = [
        result_or_error(
            lambda: p.global_unstructured(3, pruning_method=p.L1Unstructured, amount=1)
        ),
        result_or_error(lambda: p.global_unstructured(pairs, p.L1Unstructured, [1], amount=1)),
        result_or_error(lambda: p.global_unstructured(pairs, p.LnStructured, amount=1)),
    ]
    return seen, wrong


@script
def pruned_by_ones_own_way(t: Any) -> Any:
    p = prune(t)

    class Every(p.BasePruningMethod):  # type: ignore[misc, name-defined]
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, tensor: Any, default_mask: Any) -> Any:
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = linear(t)
    Every.apply(layer, "weight")
    container = p.L1Unstructured.apply(layer, "weight", amount=1)
    other = p.L1Unstructured(1)
    other._tensor_name = "bias"
    wrong = result_or_error(lambda: container.add_pruning_method(3))
    kinds = [type(each).__name__ for each in (*container, container[1])]
    alone = p.LnStructured(0.5, 2).prune(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return layer.weight, len(container), kinds, wrong, alone, p.L1Unstructured(1).prune(-t.ones(2))


@script
def fused_with_normalisation(t: Any) -> Any:
    fusion = importlib.import_module(f"{t.__name__}.nn.utils.fusion")
    x, seen = t.randn(1, 2, 5, 5), []
    for kind, options in ((t.nn.Conv2d, {}), (t.nn.ConvTranspose2d, {"transpose": True})):
        for affine in (True, False):
            conv, bn = kind(2, 3, 3, bias=affine).eval(), t.nn.BatchNorm2d(3, affine=affine).eval()
            bn.running_mean.uniform_()
            bn.running_var.uniform_(1, 2)
            fused = fusion.fuse_conv_bn_eval(conv, bn, **options)
            seen += [repr(fused), fused(x), t.allclose(fused(x), bn(conv(x)), atol=1e-5)]
            seen += [fused.bias.requires_grad, fused.training]
    layer, bn = t.nn.Linear(2, 3).eval(), t.nn.BatchNorm1d(3).eval()
    fused = fusion.fuse_linear_bn_eval(layer, bn)
    wrong = [
        result_or_error(
            lambda: fusion.fuse_conv_bn_eval(t.nn.Conv2d(2, 3, 3), t.nn.BatchNorm2d(3))
        ),
        result_or_error(lambda: fusion.fuse_linear_bn_eval(layer, t.nn.BatchNorm1d(4).eval())),
    ]
    return seen, fused.weight, fused.bias, wrong


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name], rtol=1e-4, atol=1e-6)
