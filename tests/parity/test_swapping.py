"""Tensors in each other's place, and modules converted so, against PyTorch's."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from oracle import Scripts, both

SCRIPTS = Scripts()


def swap(library: Any, one: Any, other: Any) -> list[Any]:
    library.utils.swap_tensors(one, other)
    return [one, other]


@SCRIPTS.add
def attributes(library: Any) -> Any:
    one, other = library.ones(2), library.zeros(3, dtype=library.int64)
    one.mark, other.sign = 1, 2
    found = swap(library, one, other)
    return [repr(each) for each in found], [vars(each) for each in found]


@SCRIPTS.add
def parameter_and_tensor(library: Any) -> Any:
    found = swap(library, library.nn.Parameter(library.ones(2)), library.zeros(3))
    return [(type(each).__name__, each.requires_grad, repr(each)) for each in found]


@SCRIPTS.add
def gradient(library: Any) -> Any:
    one = library.ones(2, requires_grad=True)
    one.grad = library.ones(2)
    return [repr(each.grad) for each in swap(library, one, library.zeros(3))]


@SCRIPTS.add
def leaf_of_a_graph(library: Any) -> Any:
    one = library.ones(2, requires_grad=True)
    used = one * 2
    found = swap(library, one, library.zeros(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        used.sum().backward()
    return [each.grad for each in found]


@SCRIPTS.add
def result(library: Any) -> Any:
    one = library.ones(2, requires_grad=True)
    return [repr(each) for each in swap(library, one * 2, library.zeros(2))]


@SCRIPTS.add
def hooks(library: Any) -> Any:
    one, other = (library.ones(2, requires_grad=True) for _ in range(2))
    one.register_hook(lambda grad: grad * 5)
    swap(library, one, other)
    (one.sum() + other.sum()).backward()
    return repr(one.grad), repr(other.grad)


@SCRIPTS.add
def subclass(library: Any) -> Any:
    class Marked(library.Tensor):  # type: ignore[misc]
        pass

    found = swap(library, library.ones(2).as_subclass(Marked), library.zeros(3))
    return [(type(each).__name__, repr(each)) for each in found]


@SCRIPTS.add
def weakly_referred(library: Any) -> Any:
    one = library.ones(2)
    kept = weakref.ref(one)
    with pytest.raises(RuntimeError) as error:
        swap(library, one, library.zeros(2))
    return str(error.value), repr(kept())


@SCRIPTS.add
def base_of_a_view(library: Any) -> Any:
    one = library.ones(2)
    view = one[0:1]
    with pytest.raises(RuntimeError) as error:
        swap(library, one, library.zeros(2))
    return str(error.value), repr(one), repr(view)


@SCRIPTS.add
def other_slots(library: Any) -> Any:
    class Slotted(library.Tensor):  # type: ignore[misc]
        __slots__ = ("extra",)

    with pytest.raises(RuntimeError) as error:
        swap(library, library.ones(2).as_subclass(Slotted), library.zeros(2))
    return str(error.value)


@pytest.mark.parametrize("name", SCRIPTS)
def test_tensors_swap_as_in_torch(name: str) -> None:
    both(SCRIPTS[name])


def convert(library: Any, way: str) -> Any:
    net = library.nn.Linear(2, 1)
    net(library.ones(1, 2)).sum().backward()
    weight = net.weight
    setter = getattr(library.__future__, f"set_{way}_module_params_on_conversion")
    try:
        setter(True)
        net.double()
    finally:
        setter(False)
    return net.weight is weight, str(weight.dtype), str(net.weight.grad.dtype)


@pytest.mark.parametrize("way", ["overwrite", "swap"])
def test_modules_are_converted_as_the_future_has_it(way: str) -> None:
    both(lambda library: convert(library, way))


def load(library: Any) -> Any:
    one, other = library.nn.Linear(2, 1), library.nn.Linear(2, 1)
    weight = one.weight
    library.__future__.set_swap_module_params_on_conversion(True)
    try:
        one.load_state_dict(other.state_dict())
        with pytest.raises(RuntimeError, match="size mismatch"):
            one.load_state_dict(library.nn.Linear(3, 1).state_dict())
    finally:
        library.__future__.set_swap_module_params_on_conversion(False)
    return one.weight is weight, library.equal(weight, other.weight)


def test_state_dicts_are_loaded_by_swapping() -> None:
    both(load)


def with_contents(library: Any) -> Any:
    plain, leaf = library.ones(2), library.ones(2, requires_grad=True)
    far = library.ones(2, device="meta")
    long = leaf.double()
    return [
        each.__repr__(tensor_contents=text)
        for each, text in ((plain, "A"), (far, "B"), (leaf, "C"), (long, "D" * 90 + "\nE"))
    ]


def test_texts_take_contents_of_ones_own() -> None:
    both(with_contents)


def as_array(library: Any, what: str, requires_grad: bool | None, copy: bool | None) -> Any:
    leaf = library.ones(2, requires_grad=True)
    given = {"leaf": leaf, "result": leaf * 2, "plain": library.ones(2), "list": [1.0, 2.0]}[what]
    made = library.asarray(given, requires_grad=requires_grad, copy=copy)
    node = made.grad_fn and made.grad_fn.name()
    return made is given, made.requires_grad, node, getattr(given, "requires_grad", None)


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("requires_grad", [None, True, False])
@pytest.mark.parametrize("what", ["leaf", "result", "plain", "list"])
def test_asarray_keeps_or_switches_recording(
    what: str, requires_grad: bool | None, copy: bool | None
) -> None:
    both(lambda library: as_array(library, what, requires_grad, copy))
