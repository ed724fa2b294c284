"""What scripts ask of tensors beside arithmetic: masks of bytes, sizes, other libraries."""

from __future__ import annotations

import importlib
import itertools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, result_or_error

import pygrad

SCRIPTS: dict[str, Callable[[Any], Any]] = {}


def script(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCRIPTS[run.__name__] = run
    return run


def all_tried(*calls: Callable[[], Any]) -> list[Any]:
    return [result_or_error(call) for call in calls]


def heard(t: Any, call: Callable[[], Any]) -> list[Any]:
    """What a call gives and warns of, warnings of once a process too."""
    t.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = result_or_error(call)
    finally:
        t.set_warn_always(False)
    texts = [str(each.message).split(" (Triggered internally")[0] for each in caught]
    return [found, *texts]


@script
def masks_of_bytes(t: Any) -> Any:
    x, mask = t.arange(9.0).view(3, 3), t.tensor([1, 0, 1], dtype=t.uint8)
    return [
        heard(t, lambda: x[mask]),
        heard(t, lambda: x[mask, mask]),
        heard(t, lambda: x.index_put((mask,), t.tensor(1.0), accumulate=True)),
    ]


@script
def volatile(t: Any) -> Any:
    x = t.ones(2)
    return [
        heard(t, lambda: x.volatile),
        heard(t, lambda: setattr(x, "volatile", True)),
        hasattr(t.Tensor, "volatile"),
        heard(t, lambda: x.volatile),
    ]


@script
def places_of_indices(t: Any) -> Any:
    at = t.tensor([5, 30])
    return all_tried(
        lambda: t.unravel_index(at, (4, 8)),
        lambda: t.unravel_index(at, t.Size([40])),
        lambda: t.unravel_index(at, 40),
        lambda: t.unravel_index(at, [4, -8]),
        lambda: t.unravel_index(at, t.tensor([4, 8])),
        lambda: t.unravel_index(at, "a"),
        lambda: t.unravel_index(at, (4, 2.5)),
        lambda: t.unravel_index(at, 2.5),
        lambda: t.unravel_index(at, [t.tensor(4), 8]),
    )


@script
def places_of_nonzeros_into_a_given_tensor(t: Any) -> Any:
    x, long = t.arange(3.0), t.empty(0, dtype=t.int64)
    return all_tried(
        lambda: t.nonzero(x, out=long),
        lambda: t.nonzero(x, out=t.empty(0)),
        lambda: t.nonzero(x, out=t.empty(0, dtype=t.int32)),
        lambda: t.nonzero(x, as_tuple=True, out=long),
    )


@script
def orders_of_dimensions(t: Any) -> Any:
    formats = [t.contiguous_format, t.channels_last]
    return all_tried(
        lambda: t.ones(2, 3, 4).dim_order(),
        lambda: t.ones(2, 3, 4).transpose(0, 2).dim_order(),
        lambda: t.ones(2, 3, 4, 5).to(memory_format=t.channels_last).dim_order(),
        lambda: t.ones(1, 2).expand(3, 2).dim_order(),
        lambda: t.ones(2, 1, 3).permute(1, 2, 0).dim_order(),
        lambda: t.ones(()).dim_order(),
        lambda: t.ones(2, 3, 4).dim_order(ambiguity_check=True),
        lambda: t.ones(2, 1, 4).dim_order(ambiguity_check=True),
        lambda: t.ones(2, 3).dim_order(ambiguity_check=[t.contiguous_format]),
        lambda: t.ones(2, 2, 1, 1).dim_order(ambiguity_check=formats),
        lambda: t.ones(1, 3, 2, 2).dim_order(ambiguity_check=formats),
        lambda: t.ones(2, 3).dim_order(ambiguity_check="a"),
        lambda: t.ones(2, 3).dim_order(ambiguity_check=["a"]),
    )


@script
def one_element_that_is_not_zero(t: Any) -> Any:
    return all_tried(
        lambda: t.tensor([2]).is_nonzero(),
        lambda: t.tensor(0.0).is_nonzero(),
        lambda: t.ones(2).is_nonzero(),
        lambda: t.ones(0).is_nonzero(),
    )


@script
def sizes_that_are_arrays(t: Any) -> Any:
    return all_tried(
        lambda: t.ones((np.array(3), np.int64(4))).shape,
        lambda: t.ones(np.array([3, 4])).shape,
        lambda: t.ones(2, 3).reshape((np.array(3), t.tensor(2))).shape,
        lambda: t.ones(np.array(3), np.int64(4)).shape,
        lambda: t.ones(6).view(np.array(3), 2).shape,
        lambda: t.ones((np.array(3.0), 4)),
    )


@script
def parts_know_their_base(t: Any) -> Any:
    x, cube = t.ones(4, 4), t.ones(2, 2, 4)
    found = [x.tensor_split(3), x.tensor_split((1, 2)), x.split(3), x.chunk(2), x.unbind(), list(x)]
    found += [t.split(x, [1, 3]), x.hsplit(2), x.vsplit(2), cube.dsplit(2), t.max(x, 0)]
    found += [x.t().unbind(1), t.unbind(input=x), x.sort(), x[1:].split(1)]
    leaf = t.ones(2, 2, requires_grad=True)
    found.append(leaf.unbind())
    return [[(y._is_view(), y._base is x, y._base is leaf) for y in parts] for parts in found]


@script
def strides_of_results(t: Any) -> Any:
    made = [
        t.ones(4, 3, 2),
        t.ones(4, 3, 4)[:, :, ::2],
        t.empty_strided((4, 3, 2), (10, 3, 1)).fill_(1),
        t.empty_strided((4, 3, 2), (10, 0, 3)).fill_(1),
        t.empty_strided((4, 3, 2), (10, 1, 1)).fill_(1),
        t.empty_strided((4, 1, 1, 2), (10, 0, 0, 2)).fill_(1),
        t.empty_strided((4, 2, 3), (10, 3, 3)).fill_(1),
        t.ones(1, 1, 4, 12)[:, :, :, ::2],
    ]
    found = []
    for x in made:
        for dims in itertools.permutations(range(x.dim())):
            p = x.permute(dims)
            results = [t.zeros_like(p), t.rand_like(p), p.clone(), p.double(), t.exp(p), p + p]
            results += [t.exp(p, out=t.empty(0)), t.add(p, p[0], out=t.empty(0))]
            results += [t.add(p, p, out=t.ones(2)[:0]), p.contiguous()]
            found += [each.stride() for each in results]
    return found


@script
def sequences_without_a_shape(t: Any) -> Any:
    class Unreadable:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, at: Any) -> Any:
            raise TypeError

    rows: list[Any] = [0]
    rows.append(rows)
    return all_tried(
        lambda: t.tensor(rows),
        lambda: t.as_tensor([[1, 2], rows]),
        lambda: t.tensor(Unreadable()),
        lambda: t.tensor([0, "a"]),
        lambda: t.from_numpy(np.zeros(3, dtype=">f4")),
    )


@script
def other_things_as_tensors(t: Any) -> Any:
    x = t.arange(3.0)
    return all_tried(
        lambda: t.asarray(bytearray(b"abcdefgh"), dtype=t.int32),
        lambda: t.asarray(memoryview(bytearray(b"abcd")), dtype=t.int8),
        lambda: t.asarray(bytearray(b"abcd")),
        lambda: t.asarray(x, copy=False) is x,
        lambda: t.asarray(x, copy=True) is x,
        lambda: t.asarray(np.float64(0.5)),
        lambda: t.asarray(np.array(1.0), dtype=t.int32),
        lambda: t.asarray(range(3)),
        lambda: t.asarray(x, requires_grad=True).requires_grad,
        lambda: t.asarray(x.double(), dtype=t.float32, copy=False),
        lambda: t.asarray([1, 2], copy=False),
        lambda: t.asarray(3, copy=False),
        lambda: t.asarray(np.float64(0.5), copy=False),
        lambda: t.asarray(x, device="cuda", copy=False),
        lambda: t.asarray("a"),
        lambda: t.asarray(None),
        lambda: t.asarray([x, x]),
    )


@script
def capsules(t: Any) -> Any:
    capsule = importlib.import_module(f"{t.__name__}.utils.dlpack").to_dlpack

    def twice() -> Any:
        made = capsule(t.arange(3.0))
        t.from_dlpack(made)
        return t.from_dlpack(made)

    x = t.arange(6.0).view(2, 3)
    shared = [t.from_dlpack(capsule(x)), t.asarray(capsule(x[1])), t.from_dlpack(x.t())]
    x[1, 0] = 9
    return [shared, t.from_dlpack(np.arange(3)), *all_tried(twice, lambda: t.from_dlpack("a"))]


@script
def assertions(t: Any) -> Any:
    names = "_check _check_index _check_value _check_type _check_not_implemented"
    good, bad = t.tensor([True, True]), t.tensor([True, False])
    found = []
    for name in names.split():
        check = getattr(t, name)
        found += all_tried(
            lambda c=check: c(True),
            lambda c=check: c(False),
            lambda c=check: c(False, lambda: "why"),
        )
    return found + all_tried(
        lambda: t._check(1),
        lambda: t._check(good),
        lambda: t._check(False, "why"),
        lambda: t._check(False, lambda: 3),
        lambda: t._check_with(KeyError, False, lambda: "why"),
        lambda: t._check_tensor_all(good),
        lambda: t._check_tensor_all(bad),
        lambda: t._check_tensor_all(bad, lambda: "why"),
        lambda: t._check_tensor_all(True),
        lambda: t._check_tensor_all(t.ones(2)),
        lambda: t._check_tensor_all_with(KeyError, bad),
        lambda: heard(t, lambda: t._check_is_size(-1)),
        lambda: heard(t, lambda: t._check_is_size(3, max=3)),
    )


@script
def random_tensors_for_tests(t: Any) -> Any:
    make = importlib.import_module(f"{t.__name__}.testing").make_tensor
    kinds = [t.float32, t.float64, t.int64, t.int16, t.uint8, t.int8, t.bool]
    t.manual_seed(5)
    made = [make(2, 3, dtype=kind, device="cpu") for kind in kinds]
    made += [make((4,), dtype=kind, device="cpu", low=0, high=2) for kind in kinds]
    made.append(make((64,), dtype=t.int8, device="cpu", low=0, high=2, exclude_zero=True))
    wide = make((3, 4), dtype=t.float64, device="cpu", low=-1e400, high=1e308, noncontiguous=True)
    image = make(1, 2, 3, 4, dtype=t.float32, device="cpu", memory_format=t.channels_last)
    leaf = make((), dtype=t.float32, device="cpu", requires_grad=True)
    made += [wide, wide.stride(), image, image.stride(), leaf, leaf.requires_grad, leaf.is_leaf]
    return made + all_tried(
        lambda: make(2, dtype=t.int64, device="cpu", requires_grad=True),
        lambda: make(2, dtype=t.float32, device="cpu", low=float("nan")),
        lambda: make(2, dtype=t.float32, device="cpu", low=3, high=2),
        lambda: make(2, dtype=t.uint8, device="cpu", low=-5, high=-2),
        lambda: heard(t, lambda: make(2, dtype=t.float32, device="cpu", low=2, high=2)),
        lambda: make(
            2,
            dtype=t.float32,
            device="cpu",
            noncontiguous=True,
            memory_format=t.contiguous_format,
        ),
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_api(name: str) -> None:
    both(SCRIPTS[name])


@pytest.mark.parametrize(
    "path", ["tanh", "nn.functional.gelu", "linalg.norm", "special.erf", "Tensor.add"]
)
def test_functions_can_be_pickled(path: str) -> None:
    found: Any = pygrad
    for name in path.split("."):
        found = getattr(found, name)
    assert pickle.loads(pickle.dumps(found)) is found


def test_warnings_point_at_the_line_of_the_user() -> None:
    mask = pygrad.tensor([1, 0], dtype=pygrad.uint8)
    layer = pygrad.nn.Linear(2, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pygrad.ones(2)[mask]
        layer.weight[mask]
    assert [each.filename for each in caught] == [__file__] * 2
