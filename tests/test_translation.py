"""Functions are translated to JavaScript if they mean the same there, and refused otherwise."""

from __future__ import annotations

import ast
from types import ModuleType

import pytest
from fronts import layers
from fronts.translation import Translation
from fronts.translation.kinds import kind_of
from fronts.translation.text import Refused

from pygrad import nn
from pygrad.nn.modules import conv

KINDS = {
    "n": "int",
    "x": "float",
    "flag": "bool",
    "name": "str",
    "sizes": "tuple[int, ...]",
    "input": "Tensor",
    "device": "DeviceLike",
    "unknown": "object",
}
"""The variables of the statements below, with their annotations."""

TRANSLATED = {
    "return n // 2 % n": "return modulo(floorDivide(n, 2), n);",
    "return x / n": "return divide(x, n);",
    "return sizes == (1, 2)": "return equal(sizes, [1, 2]);",
    "return n == 1 and not flag": "return n === 1 && !flag;",
    "return (0,) * n": "return repeat([0], n);",
    "return -1 <= n < 3": "return -1 <= n && n < 3;",
    "return f'{n} {x} {name} {name!r} {flag}'": (
        "return `${show(n)} ${show(x, true)} ${name} ${repr(name)} ${show(flag)}`;"
    ),
    "return [2 * size for size in sizes]": "return sizes.map((size) => 2 * size);",
    "return all(size > 0 for size in sizes)": "return sizes.every((size) => size > 0);",
    "return sizes[1:]": "return sizes.slice(1);",
    "return sizes[-1]": "return sizes.at(-1);",
    "return input[n]": "return input.index(n);",
    "return input.dim() if sizes else len(sizes)": (
        "return truth(sizes) ? input.dim() : sizes.length;"
    ),
    "return isinstance(n, (int, float))": "return typeof n === 'number';",
    "return F.pad(input, sizes, value=x)": "return F.pad(input, sizes, 'constant', x);",
    "return F.gelu(input, approximate=name)": "return F.gelu(input, { approximate: name });",
    "return pygrad.empty(n, device=device)": "return torch.empty(n, { device });",
    "var = n": "let var_ = n;",
    "raise ValueError('no')": "throw new ValueError('no');",
    "return name in {'a', 'b'}": "return contains(new Set(['a', 'b']), name);",
}

REFUSED = [
    "return unknown + n",
    "return sizes + sizes",
    "return input + n",
    "return x**2",
    "return sizes < sizes",
    "return unknown == unknown",
    "return input == input",
    "return input and n",
    "return name or name",
    "return f'{input}'",
    "return f'{x:.2f}'",
    "return f'{unknown}'",
    "return unknown[0]",
    "return sizes[::2]",
    "return sizes.count(1)",
    "return name.upper()",
    "return len(unknown)",
    "return [size for size in sizes if size]",
    "return [a for a in sizes for b in sizes]",
    "return [a for a in unknown]",
    "return 1 < len(sizes) < 3",
    "return {**sizes}",
    "return lambda: n",
    "return print(n)",
    "return sorted(sizes)",
    "return Sequence",
    "if unknown:\n    n = 1",
    "if input:\n    n = 1",
    "if flag:\n    inner = 1\nreturn inner",
    "for size in sizes:\n    pass\nreturn size",
    "while flag:\n    n = 1",
    "try:\n    n = 1\nfinally:\n    n = 2",
    "n = name",
    "n = sizes",
    "name -= name",
    "a = b = n",
    "a, b = input",
    "del n",
    "raise KeyError(name)",
    "raise ValueError",
    "def inner():\n    pass",
    "with open(name):\n    pass",
    "global n",
]


def translated(source: str, module: ModuleType = conv) -> list[str]:
    made = Translation(module, None, {})
    made.names = {name: kind_of(said) for name, said in KINDS.items()}
    return made.body(ast.parse(source).body)


@pytest.mark.parametrize("source", TRANSLATED)
def test_form_is_translated(source: str) -> None:
    assert translated(source) == [TRANSLATED[source]]


@pytest.mark.parametrize("source", REFUSED)
def test_form_that_may_mean_something_else_is_refused(source: str) -> None:
    with pytest.raises(Refused):
        translated(source)


def test_class_with_a_method_that_python_alone_calls_is_refused() -> None:
    class Odd(nn.Module):
        def __len__(self) -> int:
            return 1

    with pytest.raises(Refused, match="Odd.__len__"):
        layers.Definitions().add("Odd", Odd)


def test_class_with_a_property_is_refused() -> None:
    class Odd(nn.Module):
        @property
        def size(self) -> int:
            return 1

    with pytest.raises(Refused, match=r"Odd\.size"):
        layers.Definitions().add("Odd", Odd)


def test_class_of_two_bases_is_refused() -> None:
    class Odd(nn.ReLU, nn.Module):
        pass

    with pytest.raises(Refused, match="bases"):
        layers.Definitions().add("Odd", Odd)


def test_two_functions_of_one_name_are_refused() -> None:
    found = layers.Definitions()
    found.add("ReLU", nn.ReLU)
    with pytest.raises(Refused, match="two definitions"):
        found.add("ReLU", nn.ELU)


def test_layer_is_translated_or_its_reason_is_written_down() -> None:
    made = {cls.__name__ for cls in layers.offered()}
    absent = {name for names in layers.ABSENT for name in names.split()}
    every = {
        name
        for name in dir(nn)
        if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
    }
    assert made | absent | {name for name in every if name.startswith("Lazy")} == every
    assert not made & absent
