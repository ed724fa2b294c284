"""Functions composed of others: values, first and second order, out=, errors.

A sample that PyTorch refuses must be refused in the same words.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from oracle import both, is_tensor, leaves
from sampling import X, build, call, index, x

import pygrad

NAN = float("nan")
SAMPLES = {
    "gradient": [
        call(x(4)),
        call(x(3, 4)),
        call(x(3, 4), edge_order=2),
        call(x(3, 4), spacing=2, dim=1),
        call(x(3, 4), spacing=0.5, dim=(0, -1), edge_order=2),
        call(x(3, 4), spacing=[0.5, 2.0]),
        call(x(3, 4), spacing=[X((4,), "positive")], dim=-1, edge_order=2),
        call(x(3, 4), spacing=[x(3), x(4)]),
        call(index(9, 2, 3)),
        call(x(), dim=None),
        call(x(3, 4), dim=[]),
        call(x(3, 4), edge_order=3),
        call(x(2, 4), edge_order=2),
        call(x(3, 4), spacing=[1.0, 2.0, 3.0]),
        call(x(3, 4), spacing=[1.0, 2.0], dim=0),
        call(x(3, 4), spacing=[x(3, 1), x(4)]),
        call(x(3, 4), dim=(0, -2)),
        call(x(3, 4), dim=2),
        call(X((3, 4), "index", "uint8", 9)),
    ],
    "renorm": [
        *(call(x(3, 2, 4), p, dim, 0.8) for p in (1, 2, 0.5, float("inf")) for dim in (0, -1)),
        call(x(3, 2), 3, 1, 0),
        call(x(3, 0), 2, 1, 1.0),
        call(x(3, 2), 0, 1, 1.0),
        call(x(3, 2), 2, 1, -1.0),
        call(x(3), 2, 0, 1.0),
        call(x(3, 2), 2, 2, 1.0),
        call(index(9, 3, 2), 2, 0, 1.0),
    ],
    "histogram": [
        call(x(3, 4)),
        call(x(3, 4), 5),
        call(x(30), 4, range=(-1.0, 0.5), density=True),
        call(x(3, 4), 4, weight=x(3, 4)),
        call(x(9), X((5,), "sorted")),
        call(X((9,), "index", "float64", 4), 3),
        call(x(0), 3),
        call(x(2, 1), 3, range=(1.0, 1.0)),
        call(x(3), 0),
        call(x(3), 2, range=(2.0, 1.0)),
        call(x(3), 2, range=(0.0, NAN)),
        call(x(3), 2, range=(0.0,)),
        call(x(3), 2, weight=x(2)),
        call(x(3), 2, weight=X((3,), "positive", "float32")),
        call(x(3), x(2, 2)),
        call(x(3), x(0)),
        call(x(3), x(1)),
        call(x(3), X((3,), "real", "float32")),
        call(index(9, 3), 3),
    ],
    "histogramdd": [
        call(x(9, 2), 3),
        call(x(3, 3, 2), [2, 3], density=True),
        call(x(9, 2), (2, 3), range=[-1.0, 1.0, 0.0, 1.0], weight=x(9)),
        call(x(9, 2), [X((4,), "sorted"), X((3,), "sorted")]),
        call(x(9), [2]),
        call(x(9, 2), [2]),
        call(x(9, 2), [x(2)]),
        call(x(9, 2), [2, 2], range=[0.0, 1.0]),
        call(x(9, 2), 2, weight=x(9, 2)),
    ],
    "alias_copy": [call(x(2, 3))],
    "as_strided_copy": [call(x(2, 3), (2, 2), (1, 2), 1)],
    "diagonal_copy": [call(x(2, 3)), call(x(2, 3, 4), 1, 0, 2)],
    "expand_copy": [call(x(3), (2, 3)), call(x(3), (2, 4))],
    "narrow_copy": [call(x(3, 2), 0, 1, 2), call(x(3, 2), 0, 2, 2)],
    "permute_copy": [call(x(3, 2, 1), (2, 0, 1))],
    "select_copy": [call(x(3, 2), 0, 1)],
    "slice_copy": [call(x(4, 3)), call(x(4, 3), 1, 0, 9, 2), call(x(4), 0, -2), call(x())],
    "native_group_norm": [call(x(2, 4, 3), x(4), None, 2, 4, 3, 2, 0.5)],
    "split_copy": [call(x(3, 2), 2)],
    "split_with_sizes_copy": [call(x(3, 2), [1, 2]), call(x(3, 2), [1, 1])],
    "squeeze_copy": [call(x(3, 1, 1)), call(x(3, 1, 1), 1), call(x(3, 1, 1), (0, 1))],
    "t_copy": [call(x(3, 2)), call(x(3, 2, 1))],
    "transpose_copy": [call(x(3, 2, 1), 0, 2)],
    "unbind_copy": [call(x(3, 2)), call(x(3, 2), -1)],
    "unfold_copy": [call(x(5), 0, 3, 1)],
    "unsqueeze_copy": [call(x(3), -1)],
    "view_copy": [call(x(3, 2), (2, 3)), call(x(3, 2), (4,))],
    "unsafe_chunk": [call(x(5, 2), 2), call(x(5, 2), 3, 1), call(x(5, 2), 0)],
    "unsafe_split": [call(x(5, 2), 2), call(x(5, 2), -1)],
    "unsafe_split_with_sizes": [call(x(5, 2), [1, 4]), call(x(5, 2), [1, 3])],
}
MATRICES = [call(x(*shape)) for shape in ((3, 3), (2, 3, 4), (4, 2), (0, 3), (2, 0, 0))]
DEFINITE = x(3, 3, kind="definite")
PIVOTS = X((3,), "sizes", "int32", 3)
FLAGS = list(itertools.product((False, True), repeat=3))
SAMPLES |= {
    "linalg.lu_factor_ex": [
        *MATRICES,
        call(x(3)),
        call(x(2, 2), pivot=False),
        call(X((2, 2), "index", "float64", 0), check_errors=True),
        call(X((2, 2), "index", "float64", 0)),
        call(index(4, 2, 2)),
    ],
    "linalg.lu_factor": [*MATRICES, call(X((2, 3, 3), "index", "float64", 0)), call(x(3))],
    "linalg.lu": [*MATRICES, call(x(3))],
    "lu": [*MATRICES, call(x(3, 3), True, True)],
    "lu_unpack of lu_factor": MATRICES,
    "lu_unpack": [
        call(x(3, 3), PIVOTS),
        call(x(3, 3), PIVOTS, unpack_data=False),
        call(x(3, 3), PIVOTS, unpack_pivots=False),
        call(x(3), PIVOTS),
        call(x(3, 3), x(3)),
        call(x(3, 3), X((3,), "index", "int32")),
    ],
    "linalg.lu_solve of lu_factor": [
        call(x(3, 3), x(2, 3, 2)),
        call(x(2, 3, 3), x(3, 2), adjoint=True),
        call(x(3, 3), x(2, 3), left=False),
        call(x(3, 3), x(2, 3), left=False, adjoint=True),
        call(x(3, 3), x(3)),
        call(x(3, 3), x(2, 2)),
        call(x(3, 3), x(2, 2), left=False),
        call(x(3, 3), X((3, 2), dtype="float32")),
        call(x(3, 2), x(3, 2)),
    ],
    "linalg.lu_solve": [
        call(index(3, 3, 3), PIVOTS, index(3, 3, 2)),
        call(x(3, 3), index(3, 3), x(3, 2)),
        call(x(3, 3), X((2,), "index", "int32"), x(3, 2)),
    ],
    "lu_solve of lu_factor": [call(x(3, 3), x(3, 2))],
    "cholesky_inverse": [
        *(call(x(2, 3, 3), upper) for upper in (False, True)),
        call(DEFINITE),
        call(x(3)),
        call(x(3, 2)),
        call(index(4, 2, 2)),
    ],
    "triangular_solve": [
        *(call(x(3, 2), x(3, 3), *flags) for flags in FLAGS),
        call(x(2, 3, 2), x(3, 3)),
        call(x(3), x(3, 3)),
        call(x(3, 2), x(3)),
        call(x(3, 2), x(3, 2)),
        call(x(2, 2), x(3, 3)),
        call(X((3, 2), dtype="float32"), x(3, 3)),
    ],
    "linalg.diagonal": [call(x(2, 3, 4)), call(x(2, 3, 4), offset=1, dim1=0), call(x(3))],
    "linalg.vander": [
        call(x(3)),
        call(x(2, 3), N=4),
        call(x(), N=3),
        call(index(4, 3)),
        call(x(3), N=1),
        call(X((3,), "bool", "bool")),
    ],
    "linalg.tensorinv": [
        call(x(2, 3, 6)),
        call(x(6, 2, 3), ind=1),
        call(x(2, 3, 5)),
        call(x(2, 3), ind=0),
    ],
    "linalg.tensorsolve": [
        call(x(2, 3, 6), x(2, 3)),
        call(x(6, 4, 4, 3, 2), x(4, 3, 2), dims=(0, 2)),
        call(x(2, 3, 5), x(2, 3)),
        call(x(2, 3, 6), X((2, 3), dtype="float32")),
    ],
    "linalg.householder_product": [
        call(x(4, 3), x(3)),
        call(x(2, 4, 3), x(2, 2)),
        call(x(4, 3), x(0)),
        call(x(2, 3), x(2)),
        call(x(3, 2), x(3)),
        call(x(3), x(1)),
        call(x(3, 2), X((2,), dtype="float32")),
        call(x(2, 3, 2), x(3, 2)),
        call(x(3, 2), x(1, 2)),
    ],
    "low rank of svd_lowrank": [
        call(x(4, 6), q=2),
        call(x(7, 5), 3, 1),
        call(x(2, 5, 4), M=x(1, 4)),
    ],
    "low rank of pca_lowrank": [
        call(x(4, 6), q=2),
        call(x(7, 5), center=False),
        call(x(3, 2), q=3),
        call(x(3, 2), niter=-1),
    ],
}


def unpool_samples(n: int) -> list[Any]:
    """Samples of max_unpool, from pooled places and from others."""
    shape, places = (2, 2, 5, 6, 4)[: n + 2], (1, 2, 2, 2, 2)[: n + 2]
    name = f"max_pool{n}d"
    return [
        (f"nn.functional.max_unpool{n}d of {name}", call(x(*shape), 2)),
        (f"nn.functional.max_unpool{n}d of {name}", call(x(*shape[1:]), 2)),
        *(
            (f"nn.functional.max_unpool{n}d", sample)
            for sample in (
                call(x(*places), X(places, "index", "int64", 4), 3, 2, 1),
                call(x(*places), X(places, "index", "int64", 2), 2, output_size=[5] * n),
                call(x(*places), X(places, "index", "int64", 2), 2, output_size=[1, 2, *[5] * n]),
                call(x(*places), X(places, "index", "int64", 2), 2, output_size=[9] * n),
                call(x(*places), X(places, "index", "int64", 2), 2, output_size=[5] * (n + 1)),
                call(x(*places), X(places, "index", "int64", 9**n), 2, 1),
                call(x(*places), X(places, "index", "int32", 2), 2),
                call(x(*places), X(places[1:], "index", "int64", 2), 2),
                call(x(2), index(2, 2), 2),
                call(x(1, 0, *places[2:]), X((1, 0, *places[2:]), "index", "int64", 2), 2),
                call(x(*places), X(places, "index", "int64", 2), 1, 1, 5),
                call(index(2, *places), X(places, "index", "int64", 2), 2),
            )
        ),
    ]


for _name, _sample in itertools.chain(*map(unpool_samples, (1, 2, 3))):
    SAMPLES.setdefault(_name, []).append(_sample)
SAMPLES |= {
    "nn.functional.upsample_nearest": [call(x(1, 2, 3), 5), call(x(1, 2, 3, 2), scale_factor=2)],
    "nn.functional.upsample_bilinear": [call(x(1, 2, 3, 2), (4, 5)), call(x(1, 2, 3), 2)],
}
PLANES = x(2, 3, 6, 7)
DRAWN = x(2, 3, 2, kind="probability")
SAMPLES |= {
    "nn.functional.fractional_max_pool2d": [
        call(PLANES, 2, 3),
        call(PLANES, (2, 3), (4, 2), return_indices=True, _random_samples=DRAWN),
        call(x(3, 6, 7), 2, output_ratio=(0.5, 0.4), _random_samples=DRAWN),
        call(PLANES, 2, (1, 2), _random_samples=DRAWN),
        call(PLANES, 2, 5),
        call(PLANES, 2),
        call(PLANES, 7, 3),
        call(PLANES, (2, 2, 2), 2),
        call(PLANES, 2, (2, 2, 2)),
        call(x(2, 2), 2, 2),
        call(x(1, 2, 3, 4, 4), 2, 2),
        call(x(4, 4), 2, 2, _random_samples=DRAWN),
        call(PLANES, 2, 3, _random_samples=x(2, 3, 3)),
        call(PLANES, 2, 3, _random_samples=x(1, 3, 2)),
        call(PLANES, 2, 3, _random_samples=x(2, 2, 2)),
        call(PLANES, 2, 3, _random_samples=x(2, 3)),
        call(PLANES, 2, 3, _random_samples=X((2, 3, 2), dtype="float32")),
        call(index(3, 1, 1, 4, 4), 2, 2, _random_samples=index(1, 1, 1, 2)),
    ],
    "nn.functional.fractional_max_pool2d_with_indices": [call(PLANES, 2, 3)],
}
AFTER: dict[str, Any] = {
    "lu_factor": lambda t, op: lambda a, *b, **c: op(*t.linalg.lu_factor(a), *b, **c),
    **{
        f"max_pool{n}d": lambda t, op, n=n: (
            lambda a, k: op(
                *getattr(t.nn.functional, f"max_pool{n}d")(a, k, return_indices=True), k
            )
        )
        for n in (1, 2, 3)
    },
    "svd_lowrank": lambda t, _: lambda *a, **k: product(*t.svd_lowrank(*a, **k)),
    "pca_lowrank": lambda t, _: lambda *a, **k: product(*t.pca_lowrank(*a, **k)),
}
"""What the arguments go through first: factors are given, signs of vectors are anybody's choice."""
CASES = [(name, sample) for name, samples in SAMPLES.items() for sample in samples]
NO_DERIVATIVE = {"histogram", "histogramdd", "lu_unpack"}
"""In PyTorch, too, or by what goes through factors first."""
HAS_OUT = {name for name in SAMPLES if name.endswith("_copy")} | set(
    "renorm histogram cholesky_inverse triangular_solve linalg.lu linalg.lu_factor lu_unpack "
    "linalg.lu_factor_ex linalg.tensorinv linalg.tensorsolve linalg.householder_product".split()
)


def product(u: Any, s: Any, v: Any) -> Any:
    return s, (u * s.unsqueeze(-2)) @ v.mT


def function(t: Any, name: str) -> Any:
    name, _, after = name.partition(" of ")
    if name == "low rank":
        return AFTER[after](t, None)
    op = functools.reduce(getattr, name.split("."), t)
    if name == "lu_solve":
        return lambda a, b: op(b, *t.linalg.lu_factor(a))
    return AFTER[after](t, op) if after else op


def arguments(t: Any, sample: Any, grad: bool) -> Any:
    def make(array: Any) -> Any:
        made = t.from_numpy(array.copy())
        return made.requires_grad_(grad and made.is_floating_point())

    args, kwargs = build(sample, "float64", make, t)
    if "_random_samples" in kwargs:
        kwargs["_random_samples"] = kwargs["_random_samples"].detach()
    return args, kwargs


@pytest.mark.parametrize(("name", "sample"), CASES, ids=lambda each: str(each)[:60])
def test_results_and_gradients(name: str, sample: Any) -> None:
    build(sample)  # raises for a sample that says nothing

    def script(t: Any) -> Any:
        args, kwargs = arguments(t, sample, name not in NO_DERIVATIVE)
        result = function(t, name)(*args, **kwargs)
        inputs = [each for each in leaves([args, kwargs]) if is_tensor(each) and each.requires_grad]
        total = sum((y**3).sum() for y in leaves(result) if y.requires_grad)
        if not is_tensor(total):
            return result
        strides = [y.stride() for y in leaves(result)] if name.endswith("_copy") else []
        first = t.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
        squares = sum((g**2).sum() for g in first)
        again = t.autograd.grad(squares, inputs, materialize_grads=True)
        return result, strides, first, again

    both(script, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", sorted(HAS_OUT))
def test_out(name: str) -> None:
    def script(t: Any) -> Any:
        args, kwargs = arguments(t, SAMPLES[name][0], False)
        op = function(t, name)
        found = op(*args, **kwargs)
        places = [t.empty_like(each) for each in leaves(found)]
        result = op(*args, **kwargs, out=places[0] if is_tensor(found) else places)
        return places, result is places[0]

    both(script)


def test_out_takes_no_history() -> None:
    both(lambda t: t.renorm(t.ones(2, 2, requires_grad=True), 2, 0, 1.0, out=t.empty(0)))


METHODS = {
    "renorm": (2, 0, 0.5),
    "renorm_": (2, 0, 0.5),
    "histogram": (3,),
    "narrow_copy": (0, 1, 1),
    "unsafe_chunk": (2,),
    "unsafe_split": (1,),
    "unsafe_split_with_sizes": ([1, 1],),
    "matrix_exp": (),
}


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    def script(t: Any) -> Any:
        made = t.arange(4.0).reshape(2, 2)
        return getattr(made, name)(*METHODS[name]), made

    both(script, rtol=1e-5)


@pytest.mark.parametrize("name", ["unsafe_chunk", "unsafe_split"])
def test_parts_may_be_written_to(name: str) -> None:
    def script(t: Any) -> Any:
        made = t.ones(4, requires_grad=True)
        parts = function(t, name)(made * 2, 2)
        parts[0].mul_(3)
        return parts, t.autograd.grad((parts[0] ** 2).sum(), made)

    both(script)


UNSAFE: dict[str, Any] = {"unsafe_split": 1, "unsafe_split_with_sizes": [1, 2], "unsafe_chunk": 3}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", UNSAFE)
def test_parts_are_no_views(name: str, checked: bool) -> None:
    """They share memory, and nothing else; so one may be written to that another op has saved."""

    def script(t: Any) -> Any:
        leaf = t.arange(6.0).view(3, 2).requires_grad_()
        made = leaf + leaf
        one, two, *_ = parts = getattr(made, name)(UNSAFE[name])
        node = one.grad_fn
        said: list[Any] = [
            (part._is_view(), part._base is None, part._version, part.grad_fn is node)
            for part in parts
        ]
        said += [node.name(), sorted(d for d in dir(node) if d.startswith("_saved"))]
        one.mul_(two[:1])
        said += [made._version, one._version, two._version, made, one.grad_fn.name()]
        (one.sum() + two.sum() * 3).backward()
        plain = t.ones(3)
        getattr(plain, name)(UNSAFE[name])[0].add_(1)
        written = getattr(leaf, name)(UNSAFE[name])[0].add_(1)
        return [*said, leaf.grad, plain, plain._version, written, leaf._version]

    with pygrad.autograd.graph.set_saved_tensor_mode("check" if checked else "snapshot"):
        both(script)


EINSUMS: dict[str, Any] = {
    "result": lambda t, a, b: t.einsum(a, [0, 1], b, [1, 2], [0, 2]),
    "no result": lambda t, a, b: t.einsum(a, [0, 1], b, [1, 2]),
    "far labels": lambda t, a, b: t.einsum(a, [0, 51], b, [51, 26], [26, 0]),
    "dots": lambda t, a, b: t.einsum(a, [..., 1], b.t(), [..., 1][::-1], [..., 1]),
    "one": lambda t, a, b: t.einsum(a, (0, 1), (1, 0)),
    "out of range": lambda t, a, b: t.einsum(a, [0, 52]),
    "negative": lambda t, a, b: t.einsum(a, [-1, 0]),
    "text": lambda t, a, b: t.einsum(a, [0, "a"]),
    "no labels": lambda t, a, b: t.einsum(a, [0, 1], b),
    "operand alone": lambda t, a, b: t.einsum(a),
    "equation alone": lambda t, a, b: t.einsum("ij"),
    "nothing": lambda t, a, b: t.einsum(),
    "equation": lambda t, a, b: t.einsum("ij,jk", [a, b]),
    "too few": lambda t, a, b: t.einsum(a, [0]),
}


@pytest.mark.parametrize("name", EINSUMS)
def test_einsum(name: str) -> None:
    def script(t: Any) -> Any:
        a, b = (t.arange(float(n * m)).view(n, m).requires_grad_() for n, m in ((2, 3), (3, 4)))
        y = EINSUMS[name](t, a, b)
        return y, t.autograd.grad((y * y).sum(), [a, b], allow_unused=True)

    both(script)
