"""Parametrized tensors: values, gradients, names, printed forms, assignment, removal, messages."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error

LAYERS: dict[str, Callable[[Any], Any]] = {
    "square": lambda t: (t.nn.Linear(4, 4).double(), (2, 4)),
    "tall": lambda t: (t.nn.Linear(3, 5).double(), (2, 3)),
    "wide": lambda t: (t.nn.Linear(5, 3).double(), (2, 5)),
    "conv": lambda t: (t.nn.Conv2d(2, 3, 2).double(), (1, 2, 4, 4)),
    "transposed": lambda t: (t.nn.ConvTranspose1d(2, 3, 2).double(), (1, 2, 4)),
}


def functions(t: Any) -> Any:
    """Some functions of a tensor, as modules."""

    class Made:
        class Symmetric(t.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return x.triu() + x.triu(1).mT

            def right_inverse(self, x: Any) -> Any:
                return x.triu()

        class Exp(t.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return x.exp()

        class Sum(t.nn.Module):  # type: ignore[misc]
            def forward(self, *parts: Any) -> Any:
                return sum(parts[1:], parts[0])

            def right_inverse(self, x: Any) -> Any:
                return x / 2, x / 2

        class Gives(t.nn.Module):  # type: ignore[misc]
            """Whatever it is told to."""

            def __init__(self, forward: Any = lambda x: x, inverse: Any = None) -> None:
                super().__init__()
                self.forward = forward
                if inverse is not None:
                    self.right_inverse = inverse

    return Made


def linear(t: Any) -> Any:
    layer = t.nn.Linear(3, 3).double()
    with t.no_grad():
        layer.weight.copy_(t.arange(9.0, dtype=t.float64).view(3, 3) / 10)
        layer.bias.copy_(t.tensor([0.1, -0.2, 0.3]))
    return layer


def describe(module: Any) -> list[Any]:
    return [
        repr(module),
        [(name, p.requires_grad, tuple(p.shape)) for name, p in module.named_parameters()],
        list(module.state_dict()),
        list(module.state_dict().values()),
    ]


def train(t: Any, made: Any, shape: Any) -> list[Any]:
    x = t.arange(float(t.Size(shape).numel()), dtype=t.float64).reshape(shape).sin()
    optimizer = t.optim.SGD(made.parameters(), 0.1)
    seen = []
    for _ in range(2):
        optimizer.zero_grad()
        output = made(x)
        output.square().sum().backward()
        optimizer.step()
        seen += [output, made.weight, [p.grad for p in made.parameters()]]
    return [*seen, made.eval()(x), *describe(made)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("which", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("trivialization", [True, False])
def test_orthogonal(layer: str, which: str | None, trivialization: bool) -> None:
    def script(t: Any) -> Any:
        made, shape = LAYERS[layer](t)
        nn = t.nn.utils.parametrizations
        made = nn.orthogonal(made, orthogonal_map=which, use_trivialization=trivialization)
        seen = train(t, made, shape)
        start = t.arange(1.0, 1 + made.weight.numel(), dtype=t.float64).square().sin()
        seen.append(result_or_error(lambda: setattr(made, "weight", start.view_as(made.weight))))
        t.nn.utils.parametrize.remove_parametrizations(made, "weight")
        return [*seen, *describe(made)]

    both(script, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("iterations", [1, 3])
def test_spectral_norm(layer: str, iterations: int) -> None:
    def script(t: Any) -> Any:
        made, shape = LAYERS[layer](t)
        made = t.nn.utils.parametrizations.spectral_norm(made, n_power_iterations=iterations)
        seen = train(t, made, shape)
        t.nn.utils.parametrize.remove_parametrizations(made, "weight")
        return [*seen, *describe(made)]

    both(script)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(layer: str, dim: int | None) -> None:
    def script(t: Any) -> Any:
        made, shape = LAYERS[layer](t)
        made = t.nn.utils.parametrizations.weight_norm(made, dim=dim)
        seen = train(t, made, shape)
        seen.append(result_or_error(lambda: setattr(made, "weight", made.weight.detach() * 2)))
        t.nn.utils.parametrize.remove_parametrizations(made, "weight")
        return [*seen, *describe(made)]

    both(script)


def test_weight_norm_reads_older_states() -> None:
    def script(t: Any) -> Any:
        older = t.nn.utils.weight_norm(linear(t))
        newer = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 3).double())
        return str(newer.load_state_dict(older.state_dict())), newer.weight

    both(script)


def test_spectral_norm_of_vectors_and_dimensions() -> None:
    def script(t: Any) -> Any:
        spectral = t.nn.utils.parametrizations.spectral_norm
        layer = spectral(linear(t), "bias")
        third = spectral(t.nn.Conv1d(2, 3, 4).double(), dim=-1)
        return [
            layer.bias,
            list(layer.state_dict()),
            third.weight,
            third.parametrizations.weight[0]._u,
            result_or_error(lambda: spectral(linear(t), dim=2)),
            result_or_error(lambda: spectral(linear(t), n_power_iterations=0)),
            result_or_error(lambda: spectral(linear(t), "absent")),
        ]

    both(script)


def test_messages_of_orthogonal() -> None:
    def script(t: Any) -> Any:
        orthogonal = t.nn.utils.parametrizations.orthogonal
        made = orthogonal(linear(t))
        return [
            result_or_error(lambda: orthogonal(linear(t), "absent")),
            result_or_error(lambda: orthogonal(linear(t), "bias")),
            result_or_error(lambda: orthogonal(linear(t), orthogonal_map="polar")),
            result_or_error(lambda: setattr(made, "weight", t.zeros(2, 2))),
        ]

    both(script)


def test_functions_one_after_the_other() -> None:
    def script(t: Any) -> Any:
        made, p = functions(t), t.nn.utils.parametrize
        layer = linear(t).eval()
        result = p.register_parametrization(layer, "weight", made.Symmetric())
        seen = [result is layer, type(layer).__name__, layer.parametrizations.weight[0].training]
        seen += [layer.weight, *describe(layer), type(layer).__mro__[1].__name__]
        layer.weight = t.full((3, 3), 2.0, dtype=t.float64)
        seen += [layer.weight, layer.parametrizations.weight.original]
        p.register_parametrization(layer, "weight", made.Exp())
        p.register_parametrization(layer, "bias", made.Sum())
        layer(t.ones(3, dtype=t.float64)).sum().backward()
        seen += [layer.weight, layer.bias, [q.grad for q in layer.parameters()], *describe(layer)]
        seen += [p.is_parametrized(layer, name) for name in ("weight", "bias", "other", None)]
        seen.append(result_or_error(lambda: setattr(layer, "weight", t.zeros(3, 3))))
        seen.append(result_or_error(lambda: p.remove_parametrizations(layer, "bias", False)))
        before = layer.parametrizations.weight.original
        p.remove_parametrizations(layer, "weight", leave_parametrized=False)
        seen += [layer.weight is before, layer.weight, type(layer).__name__]
        p.remove_parametrizations(layer, "bias")
        seen += [type(layer).__name__, hasattr(layer, "parametrizations"), *describe(layer)]
        seen.append(result_or_error(lambda: p.remove_parametrizations(layer, "bias")))
        return seen

    both(script)


def test_buffers() -> None:
    def script(t: Any) -> Any:
        p = t.nn.utils.parametrize
        layer = t.nn.Module()
        layer.register_buffer("count", t.ones(2, 2))
        p.register_parametrization(layer, "count", functions(t).Exp())
        seen = [layer.count, *describe(layer), [name for name, _ in layer.named_buffers()]]
        p.remove_parametrizations(layer, "count")
        return [*seen, layer.count, [name for name, _ in layer.named_buffers()]]

    both(script)


def test_removal_keeps_the_parameter_itself() -> None:
    def script(t: Any) -> Any:
        layer = linear(t)
        weight = layer.weight
        t.nn.utils.parametrize.register_parametrization(layer, "weight", functions(t).Symmetric())
        inside = layer.parametrizations.weight.original is weight
        t.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        return inside, layer.weight is weight, layer.weight

    both(script)


def test_cached() -> None:
    def script(t: Any) -> Any:
        p = t.nn.utils.parametrize
        layer, other = (t.nn.utils.parametrizations.weight_norm(linear(t)) for _ in range(2))
        with p.cached():
            first = layer.weight
            with p.cached():
                seen = [layer.weight is first, other.weight is first]
            seen.append(layer.weight is first)
        with p.cached():
            seen.append(layer.weight is first)
        return [*seen, layer.weight is layer.weight]

    both(script)


def test_copies() -> None:
    def script(t: Any) -> Any:
        layer = t.nn.utils.parametrizations.weight_norm(linear(t))
        twin = copy.deepcopy(layer)
        with t.no_grad():
            twin.parametrizations.weight.original0.fill_(0)
        return [
            type(twin) is type(layer),
            layer.weight,
            twin.weight,
            *describe(twin),
            result_or_error(lambda: pickle.dumps(layer)),
            result_or_error(lambda: layer.__getstate__()),
        ]

    both(script)


def test_transfer() -> None:
    def script(t: Any) -> Any:
        p, made = t.nn.utils.parametrize, functions(t)
        source, target = linear(t), t.nn.Linear(3, 3).double()
        p.register_parametrization(source, "weight", made.Symmetric())
        p.register_parametrization(source, "bias", made.Sum())
        p.transfer_parametrizations_and_params(source, target, "weight")
        seen = [type(target).__name__, p.type_before_parametrizations(target).__name__]
        seen += describe(target)
        p.transfer_parametrizations_and_params(source, target, "bias")
        bare = t.nn.Module()
        p.transfer_parametrizations_and_params(source, bare)
        p.transfer_parametrizations_and_params(t.nn.Linear(1, 1), bare)
        shared = target.parametrizations.weight.original is source.parametrizations.weight.original
        return [*seen, shared, *describe(target), *describe(bare)]

    both(script)


def test_messages() -> None:
    def script(t: Any) -> Any:
        p, made = t.nn.utils.parametrize, functions(t)

        def add(layer: Any, *args: Any, **options: Any) -> Any:
            function = made.Gives(*args, **options)
            return result_or_error(
                lambda: type(p.register_parametrization(layer, "weight", function))
            )

        def further(*args: Any, **options: Any) -> Any:
            layer = linear(t)
            p.register_parametrization(layer, "weight", made.Symmetric())
            return add(layer, *args, **options)

        def assign(*args: Any) -> Any:
            layer = linear(t)
            function = made.Gives(*args)
            p.register_parametrization(layer, "weight", function, unsafe=True)
            function.right_inverse = wrong.pop()
            return result_or_error(lambda: setattr(layer, "weight", t.zeros(3, 3, dtype=t.float64)))

        half, double = (lambda x: x.float()), (lambda x: x.repeat(1, 2))
        pair = lambda x: (x, x)  # noqa: E731
        wrong = [
            lambda x: [x, 3],
            lambda x: [x, x.float()],
            lambda x: [x],
            lambda x: 3,
            lambda x: x.float(),
            lambda x: None,
        ]
        return [
            result_or_error(lambda: p.ParametrizationList([], t.zeros(1))),
            result_or_error(lambda: p.register_parametrization(linear(t), "absent", made.Exp())),
            *(add(linear(t), function) for function in (half, double, lambda x: 3)),
            *(further(function) for function in (half, double, lambda x: 3)),
            *(add(linear(t), inverse=inverse) for inverse in (half, double, lambda x: 3)),
            *(further(inverse=inverse) for inverse in (half, double, lambda x: 3)),
            add(linear(t), inverse=lambda x: (x, 3)),
            *(assign() for _ in range(2)),
            *(assign(lambda x, y: x, pair) for _ in range(4)),
        ]

    both(script)


def test_layers_that_read_their_weights_otherwise() -> None:
    def script(t: Any) -> Any:
        seen = []
        makers: list[tuple[Any, str, Any]] = [
            (lambda: t.nn.LSTM(2, 3), "weight_hh_l0", t.ones(4, 1, 2)),
            (lambda: t.nn.GRUCell(2, 3), "weight_ih", t.ones(1, 2)),
            (lambda: t.nn.MultiheadAttention(4, 2), "in_proj_weight", t.ones(2, 1, 4)),
            (lambda: t.nn.Embedding(3, 4), "weight", t.tensor([0, 2])),
            (lambda: t.nn.LayerNorm(3), "weight", t.ones(1, 3)),
            (lambda: t.nn.BatchNorm1d(3), "weight", t.ones(2, 3)),
            (lambda: t.nn.PReLU(3), "weight", t.ones(2, 3)),
        ]
        for maker, name, x in makers:
            layer = maker()
            p = t.nn.utils.parametrize
            p.register_parametrization(layer, name, functions(t).Exp())
            args = (x, x, x) if isinstance(layer, t.nn.MultiheadAttention) else (x,)
            y = layer(*args)
            y = y[0] if isinstance(y, tuple) else y
            y.sum().backward()
            seen += [y, layer.parametrizations[name].original.grad]
        return seen

    both(script, rtol=1e-5, atol=1e-6)
