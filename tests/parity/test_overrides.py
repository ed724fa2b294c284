"""``__torch_function__``: the same programs in both libraries."""

from __future__ import annotations

import copy
import operator
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, both, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


class Recorder:
    """Tensor subclasses and other classes that note of what they are told."""

    def __init__(self, t: Any) -> None:
        self.t, self.calls = t, []
        note = self.note

        class Noted(t.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
                note(func, types, args, kwargs)
                return super().__torch_function__(func, types, args, kwargs)

        class Duck:
            def __repr__(self) -> str:
                return "Duck"

            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
                note(func, types, args, kwargs)
                return "quack"

        self.Noted, self.Duck = Noted, Duck

    def note(self, func: Any, types: Any, args: Any, kwargs: Any) -> None:
        told = kwargs and {
            name: type(value).__name__ if isinstance(value, self.t.Tensor) else str(value)
            for name, value in kwargs.items()
        }
        self.calls.append((self.name(func), [each.__name__ for each in types], len(args), told))

    def name(self, func: Any) -> Any:
        found = self.t.overrides.resolve_name(func)
        return found and found.replace("torch.functional.", "torch.")

    def of(self, *values: Any) -> Any:
        return self.t.tensor(values).as_subclass(self.Noted)

    def told(self, call: Callable[[], Any]) -> Any:
        """What was noted during a call, and the type of what it returned."""
        del self.calls[:]
        with warnings.catch_warnings(action="ignore"):
            result = result_or_error(call)
        shown = type(result).__name__ if not isinstance(result, str) else result
        return list(self.calls), shown


def words(error: Any) -> str:
    """An error without addresses, and with PyTorch's names of classes."""
    return re.sub(r"0x[0-9a-f]+", "0x", str(error)).replace("pygrad.", "torch.")


OPERATORS = "add sub mul truediv floordiv mod pow matmul eq ne lt le gt ge".split()
BITS = "and_ or_ xor lshift rshift".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow".split()


@script
def operators_are_told_as_their_methods(t: Any) -> Any:
    r = Recorder(t)
    x, plain = r.of(1.0, 2.0), t.ones(2)
    told = []
    for name in OPERATORS:
        op = getattr(operator, name)
        for pair in (x, plain), (plain, x), (x, x), (x, 2), (2, x):
            told.append((name, r.told(lambda op=op, pair=pair: op(*pair))))
    return told


@script
def operators_of_bits(t: Any) -> Any:
    r = Recorder(t)
    x = r.of(1, 2)
    told = []
    for name in BITS:
        op = getattr(operator, name)
        for pair in (x, x), (x, 1), (1, x):
            told.append((name, r.told(lambda op=op, pair=pair: op(*pair))))
    return told


@script
def operators_in_place_keep_the_object(t: Any) -> Any:
    r = Recorder(t)
    found: list[Any] = []
    for name in IN_PLACE:
        x = r.of(1.0, 2.0)
        found.append(r.told(lambda x=x, name=name: getattr(operator, name)(x, 2.0)))
        found.append(getattr(operator, name)(x, 2.0) is x)
    for name in "iand ior ixor ilshift irshift".split():
        x = r.of(1, 2)
        found.append(r.told(lambda x=x, name=name: getattr(operator, name)(x, 1)))
    y = r.of(1.0)
    found.append([y.add_(1) is y, y.zero_() is y, t.relu_(y) is y, y.requires_grad_() is y])
    return found


@script
def operators_of_one_tensor(t: Any) -> Any:
    r = Recorder(t)
    x, i = r.of(1.0, 2.0), r.of(1, 2)
    return [r.told(call) for call in (lambda: -x, lambda: +x, lambda: abs(x), lambda: ~i)]


ATTRIBUTES = (
    "shape grad data T real is_leaf requires_grad dtype device ndim is_cuda is_sparse is_cpu "
    "is_quantized is_meta grad_fn _base _version layout itemsize nbytes output_nr retains_grad"
).split()


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute(name: str) -> None:
    def script(t: Any) -> Any:
        r = Recorder(t)
        x = r.of(1.0, 2.0)
        get = getattr(t.Tensor, name).__get__
        return [
            r.told(lambda: getattr(x, name)),
            r.told(lambda: get(x)),
            r.name(get),
            hash(get) == hash(getattr(t.Tensor, name).__get__),
            {get: 1}[getattr(t.Tensor, name).__get__],
        ]

    both(script)


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "len": lambda t, x: len(x),
    "bool": lambda t, x: bool(x.sum()),
    "int": lambda t, x: int(x.sum()),
    "float": lambda t, x: float(x.sum()),
    "complex": lambda t, x: complex(x.sum()),
    "tolist": lambda t, x: x.tolist(),
    "numpy": lambda t, x: x.numpy(),
    "hash": lambda t, x: hash(x) == id(x),
    "list": lambda t, x: [type(each).__name__ for each in x],
    "contains": lambda t, x: 1.0 in x,
    "reversed": lambda t, x: reversed(x),
    "format": lambda t, x: f"{x[0]}",
    "item": lambda t, x: x[0].item(),
    "size": lambda t, x: x.size(),
    "stride": lambda t, x: x.stride(),
    "dim": lambda t, x: x.dim(),
    "numel": lambda t, x: x.numel(),
    "nelement": lambda t, x: x.nelement(),
    "clone": lambda t, x: x.clone(),
    "detach": lambda t, x: x.detach(),
    "new_zeros": lambda t, x: x.new_zeros(2),
    "new_tensor": lambda t, x: x.new_tensor([1.0]),
    "new": lambda t, x: x.new(2),
    "is_floating_point": lambda t, x: x.is_floating_point(),
    "type": lambda t, x: x.type(),
    "cpu": lambda t, x: x.cpu(),
    "to": lambda t, x: x.to(t.float64),
    "double": lambda t, x: x.double(),
    "element_size": lambda t, x: x.element_size(),
    "is_shared": lambda t, x: x.is_shared(),
    "retain_grad": lambda t, x: (x.requires_grad_() * 2).retain_grad(),
    "register_hook": lambda t, x: bool(x.requires_grad_().register_hook(print)),
    "backward": lambda t, x: x.requires_grad_().sum().backward(),
    "data_ptr": lambda t, x: x.data_ptr() != 0,
    "untyped_storage": lambda t, x: bool(x.untyped_storage().nbytes()),
    "get int": lambda t, x: x[0],
    "get slice": lambda t, x: x[:1],
    "get mask": lambda t, x: x[t.tensor([True, False])],
    "get by subclass": lambda t, x: t.ones(2)[x > 1],
    "get by subclasses": lambda t, x: t.ones(2, 2)[x.long() - 1, 0],
    "get none": lambda t, x: x[None, ..., 0],
    "set int": lambda t, x: x.__setitem__(0, 1.0),
    "set by subclass": lambda t, x: t.ones(2).__setitem__(x > 1, 0),
    "set to subclass": lambda t, x: t.ones(2).__setitem__(0, x[0]),
    "add named": lambda t, x: x.add(other=1, alpha=2),
    "as plain": lambda t, x: x.as_subclass(t.Tensor),
    "unbound": lambda t, x: t.Tensor.add(x, 1),
    "unbound plain": lambda t, x: t.Tensor.add(t.ones(2), x),
    "splits": lambda t, x: [type(each).__name__ for each in x.unbind()],
}


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    def script(t: Any) -> Any:
        r = Recorder(t)
        x = r.of(1.0, 2.0)
        return r.told(lambda: METHODS[name](t, x))

    both(script)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda t, x: t.add(x, 1),
    "add alpha": lambda t, x: t.add(x, x, alpha=2),
    "out": lambda t, x: t.add(t.ones(2), 1, out=x),
    "cat": lambda t, x: t.cat([t.ones(2), x]),
    "stack of a tuple": lambda t, x: t.stack((x, x), dim=1),
    "max": lambda t, x: t.max(x, 0),
    "max of a name": lambda t, x: t.max(x, dim=0).values,
    "sum": lambda t, x: t.sum(x, dim=0),
    "where": lambda t, x: t.where(t.ones(2) > 0, x, 0.0),
    "relu": lambda t, x: t.relu(x),
    "nn relu": lambda t, x: t.nn.functional.relu(x),
    "nn linear": lambda t, x: t.nn.functional.linear(x, t.ones(2, 2)),
    "nn mse_loss": lambda t, x: t.nn.functional.mse_loss(x, t.ones(2), reduction="sum"),
    "nn gelu": lambda t, x: t.nn.functional.gelu(x),
    "einsum": lambda t, x: t.einsum("i,i", x, t.ones(2)),
    "tensordot": lambda t, x: t.tensordot(x, x, 1),
    "broadcast_tensors": lambda t, x: t.broadcast_tensors(x, t.ones(2, 1)),
    "linalg": lambda t, x: t.linalg.norm(x),
    "special": lambda t, x: t.special.expit(x),
    "fft": lambda t, x: t.fft.fft(x),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "numel": lambda t, x: t.numel(x),
    "is_floating_point": lambda t, x: t.is_floating_point(x),
    "is_tensor": lambda t, x: t.is_tensor(x),
    "is_nonzero": lambda t, x: t.is_nonzero(x[0]),
    "equal": lambda t, x: t.equal(x, x),
    "tensor": lambda t, x: t.tensor(x),
    "as_tensor": lambda t, x: t.as_tensor(x),
    "init": lambda t, x: t.nn.init.zeros_(x),
    "layer": lambda t, x: t.nn.Linear(2, 2)(x),
    "autograd.grad": lambda t, x: t.autograd.grad(x.requires_grad_().sum(), x)[0],
    "parameter": lambda t, x: t.nn.Parameter(x, requires_grad=False).shape,
}
KEYWORDS_DIFFER = {"autograd.grad", "out"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    def script(t: Any) -> Any:
        r = Recorder(t)
        x = r.of(1.0, 2.0)
        calls, result = r.told(lambda: FUNCTIONS[name](t, x))
        if name == "parameter":  # how it says what requires grad is its own affair
            return calls[-1], result
        if name in KEYWORDS_DIFFER:
            calls = [call[:3] for call in calls]
        return calls, result

    both(script)


DUCKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "alone": lambda t, d, x: t.relu(d),
    "second": lambda t, d, x: t.add(x, d),
    "number first": lambda t, d, x: t.mul(2, d),
    "by name": lambda t, d, x: t.sum(input=d),
    "in a list": lambda t, d, x: t.cat([x, d]),
    "in a tuple": lambda t, d, x: t.stack((d, d)),
    "alone in a list": lambda t, d, x: t.cat([d]),
    "as out": lambda t, d, x: t.add(x, x, out=d),
    "of a method": lambda t, d, x: x.add(d),
    "of a method by name": lambda t, d, x: x.add(other=d),
    "of a method in place": lambda t, d, x: x.add_(d),
    "as an index": lambda t, d, x: x[d],
    "among indices": lambda t, d, x: x[d, 0],
    "as an item": lambda t, d, x: operator.setitem(x, 0, d),
    "nn": lambda t, d, x: t.nn.functional.softplus(d),
    "nn in Python": lambda t, d, x: t.nn.functional.relu(d, inplace=True),
    "linalg": lambda t, d, x: t.linalg.inv(d),
    "special": lambda t, d, x: t.special.ndtr(d),
    "fft": lambda t, d, x: t.fft.rfft(d),
    "einsum": lambda t, d, x: t.einsum("i,i", d, d),
    "einsum of a list": lambda t, d, x: t.einsum("i,i", [d, x]),
    "tensordot": lambda t, d, x: t.tensordot(x, d),
    "norm": lambda t, d, x: t.norm(d),
    "init": lambda t, d, x: t.nn.init.constant_(d, 1.0),
    "a layer": lambda t, d, x: t.nn.Linear(2, 2)(d),
    "left operand": lambda t, d, x: x + d,
    "matrix product": lambda t, d, x: x @ d,
    "compared": lambda t, d, x: x != d,
    "less": lambda t, d, x: x < d,
    "power": lambda t, d, x: x**d,
    "operator in place": lambda t, d, x: operator.iadd(x, d),
    "sizes": lambda t, d, x: t.zeros(d),
    "a number": lambda t, d, x: t.full((2,), d),
    "is_tensor": lambda t, d, x: t.is_tensor(d),
    "like": lambda t, d, x: t.overrides.is_tensor_like(d),
    "has": lambda t, d, x: t.overrides.has_torch_function((x, d)),
}


ARGUMENTS_DIFFER = {"norm", "init", "einsum of a list"}
"""PyTorch's have other parameters, or all are told by their names, or without the list."""


@pytest.mark.parametrize("name", DUCKS)
def test_what_is_no_tensor(name: str) -> None:
    def script(t: Any) -> Any:
        r = Recorder(t)
        calls, result = r.told(lambda: DUCKS[name](t, r.Duck(), t.ones(2, 2)))
        if name in ARGUMENTS_DIFFER:
            calls = [call[:2] for call in calls]
        return calls, result

    both(script)


def silent(t: Any, base: Any = object) -> Any:
    """A class that never says anything."""

    def ask(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented

    return type("Silent", (base,), {"__torch_function__": classmethod(ask)})


SILENT: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "function": lambda t, d, s, x: t.add(x, d),
    "method": lambda t, d, s, x: x.add(d),
    "method of itself": lambda t, d, s, x: s.add(1),
    "operator": lambda t, d, s, x: x + d,
    "reflected": lambda t, d, s, x: d * x,
    "number first": lambda t, d, s, x: 2**s,
    "matrix product": lambda t, d, s, x: 2 @ s,
    "compared": lambda t, d, s, x: x == d,
    "attribute": lambda t, d, s, x: s.shape,
    "length": lambda t, d, s, x: len(s),
    "nn in Python": lambda t, d, s, x: t.nn.functional.relu(d),
    "nn": lambda t, d, s, x: t.nn.functional.linear(d, d),
    "linalg": lambda t, d, s, x: t.linalg.inv(d),
    "special": lambda t, d, s, x: t.special.expit(d),
    "fft": lambda t, d, s, x: t.fft.fft(d),
    "two kinds": lambda t, d, s, x: t.mul(s, d),
    "index": lambda t, d, s, x: s[0],
    "a method of no tensor": lambda t, d, s, x: t.Tensor.add(d, 1),
    "sizes": lambda t, d, s, x: t.zeros(2, d),
}


@pytest.mark.parametrize("name", SILENT)
def test_nobody_says_anything(name: str) -> None:
    def script(t: Any) -> Any:
        s = t.ones(2).as_subclass(silent(t, t.Tensor))
        return words(result_or_error(lambda: SILENT[name](t, silent(t)(), s, t.ones(2))))

    both(script)


@script
def subclasses_are_asked_before_their_bases(t: Any) -> Any:
    asked: list[str] = []

    class A(t.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(f"{cls.__name__}: {[each.__name__ for each in types]}")
            return NotImplemented

    class B(A): ...

    class C(B): ...

    class D:
        __torch_function__ = A.__torch_function__

    a, b, c = (t.ones(2).as_subclass(kind) for kind in (A, B, C))
    orders = [(a, b, c), (c, b, a), (b, a, c), (t.ones(2), a, c), (D(), b, a), (a, D(), c)]
    errors = [result_or_error(lambda each=each: t.cat(each))[:60] for each in orders]  # type: ignore[misc]
    return asked, errors


@script
def classes_are_kept(t: Any) -> Any:
    class A(t.Tensor):  # type: ignore[misc]
        pass

    class B(A): ...

    class Other(t.Tensor):  # type: ignore[misc]
        pass

    x = t.tensor([[1.0, 2.0], [3.0, 4.0]])
    a, b, other = x.as_subclass(A), x.as_subclass(B), x.as_subclass(Other)
    kinds = [
        *(a + x, x + a, a + b, b + a, a[0], b[0, 0], a.T, a.sum(), a @ x, 2 - a, 2 / b),
        *(a.max(0).values, t.svd(a)[0], t.broadcast_tensors(x, b)[0], a.split(1)[0]),
        *(t.nn.functional.softmax(a, 0), t.stack([a, b]), a.clone(), a.detach(), a.data),
        *(a.new_ones(2), a.to(t.float64), a.reshape(-1), a.as_subclass(B), b.as_subclass(t.Tensor)),
        *(copy.copy(a), a.unbind()[1], t.zeros_like(b), a.requires_grad_().clone(), A([1.0]), A(2)),
    ]
    named = t.max(a, 0)
    return [
        [type(each).__name__ for each in kinds],
        type(named).__name__,
        [type(each).__name__ for each in named],
        result_or_error(lambda: a + other),
        a.shape,
        A([1.0, 2.0]).tolist(),
        [t.is_tensor(a), isinstance(a, t.Tensor), isinstance(t.ones(1), A)],
    ]


@script
def texts_have_the_name_of_the_class(t: Any) -> Any:
    class Metres(t.Tensor):  # type: ignore[misc]
        pass

    x = t.arange(6.0).reshape(2, 3).as_subclass(Metres)
    y = t.ones(2, requires_grad=True).as_subclass(Metres)
    return [
        repr(x),
        str(x[0]),
        f"{x[0, 0]}",
        repr(y),
        repr(x.long()),
        repr(t.ones(40, 40).as_subclass(Metres)),
    ]


@script
def as_subclass_is_a_view_with_history(t: Any) -> Any:
    class A(t.Tensor):  # type: ignore[misc]
        pass

    x = t.ones(2, requires_grad=True)
    a = x.as_subclass(A)
    (a * 3).sum().backward()
    plain = t.zeros(2)
    seen = plain.as_subclass(A)
    plain[0] = 5
    return [
        type(a.grad_fn).__name__,
        a.is_leaf,
        a._is_view(),
        type(a._base).__name__,
        x.grad,
        type((a + 1).grad_fn).__name__,
        seen.tolist(),
        seen._base is plain,
        [
            words(result_or_error(lambda kind=kind: x.as_subclass(kind)))
            for kind in (int, 3, object)
        ],  # type: ignore[misc]
    ]


@script
def make_subclass(t: Any) -> Any:
    class A(t.Tensor):  # type: ignore[misc]
        pass

    x = t.ones(2)
    a = t.Tensor._make_subclass(A, x, True)
    x.fill_(3)
    return [
        type(a).__name__,
        a.requires_grad,
        a.is_leaf,
        a.tolist(),
        words(result_or_error(lambda: t.Tensor._make_subclass(int, x))),
        words(result_or_error(lambda: t.Tensor._make_subclass(3, x))),
        words(result_or_error(lambda: t.Tensor._make_subclass(A, 3))),
        words(result_or_error(lambda: t.Tensor._make_subclass(A, t.ones(2, dtype=t.int64), True))),
    ]


@script
def gradients_of_subclasses(t: Any) -> Any:
    class A(t.Tensor):  # type: ignore[misc]
        pass

    x = t.ones(2).as_subclass(A).requires_grad_()
    seen: list[str] = []
    x.register_hook(lambda g: seen.append(type(g).__name__))
    y = (x * x * t.tensor([1.0, 2.0])).sum()
    y.backward()
    first = x.grad
    (z,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    return [
        first is x.grad,
        type(first).__name__,
        first,
        seen,
        type(z).__name__,
        t.autograd.grad(z.sum(), x)[0],
        type(y).__name__,
        y.item(),
    ]


@script
def a_custom_function_of_subclasses(t: Any) -> Any:
    class A(t.Tensor):  # type: ignore[misc]
        pass

    class Double(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = t.ones(2).as_subclass(A).requires_grad_()
    y = Double.apply(x)
    y.sum().backward()
    return [type(y).__name__, x.grad]


@script
def parameters_of_other_classes(t: Any) -> Any:
    class Weight(t.nn.Parameter):  # type: ignore[misc]
        def __new__(cls, data: Any = None, requires_grad: bool = True, scale: float = 1.0) -> Any:
            made = super().__new__(cls, data, requires_grad)
            made.scale = scale
            return made

        def __init__(self, data: Any, requires_grad: bool = True, scale: float = 1.0) -> None:
            pass

    class Told(t.nn.Parameter):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with t._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    class A(t.Tensor):  # type: ignore[misc]
        pass

    w = Weight(t.ones(2), scale=3.0)
    told = Told(t.ones(2))
    of_a = t.nn.Parameter(t.ones(2).as_subclass(A))
    module = t.nn.Module()
    module.w, module.told, module.of_a = w, told, of_a
    (w * told * of_a).sum().backward()
    t.optim.SGD(module.parameters(), lr=0.5).step()
    return [
        w.scale,
        [
            type(each).__name__
            for each in (w * 2, w.detach(), w.data, w.clone(), told + 1, of_a + 1)
        ],
        [name for name, _ in module.named_parameters()],
        [isinstance(each, t.nn.Parameter) for each in (w, told, of_a, of_a + 1)],
        [type(each).__name__ for each in module.parameters()],
        [each.tolist() for each in module.parameters()],
        t.overrides.has_torch_function((w,)),
        t.overrides.has_torch_function((told,)),
    ]


@script
def functions_of_ones_own(t: Any) -> Any:
    o = t.overrides
    r = Recorder(t)

    def twice(x: Any, y: Any = 1) -> Any:
        if o.has_torch_function((x, y)):
            return o.handle_torch_function(twice, (x, y), x, y=y)
        return x + x * y

    def ask(x: Any) -> Any:
        return (x,)

    @o.wrap_torch_function(ask)
    def wrapped(x: Any) -> Any:
        return x + 1

    x = r.of(1.0)
    return [
        r.told(lambda: twice(t.ones(1))),
        r.told(lambda: twice(x)),
        r.told(lambda: twice(r.Duck(), x)),
        r.told(lambda: twice(1, r.Duck())),
        r.told(lambda: wrapped(t.ones(1))),
        r.told(lambda: wrapped(x)),
        wrapped.__name__,
        words(result_or_error(lambda: twice(silent(t)()))).replace(twice.__module__, "here"),
        o.has_torch_function_unary(x),
        o.has_torch_function_unary(1),
        o.has_torch_function_variadic(1, t.ones(1)),
        o.has_torch_function_variadic(1, r.Duck()),
        [o.is_tensor_like(each) for each in (x, t.ones(1), r.Duck(), 1, None, [t.ones(1)])],
    ]


@script
def what_is_switched_off(t: Any) -> Any:
    r = Recorder(t)
    x, found = r.of(1.0), []
    with t._C.DisableTorchFunctionSubclass():
        found += [r.told(lambda: x + 1), r.told(lambda: x.shape), r.told(lambda: t.relu(x))]
        found += [t._C._is_torch_function_enabled(), t.overrides.has_torch_function((x,))]
        found += [words(result_or_error(lambda: t.relu(r.Duck())))]
        with t.overrides._enable_torch_function():
            found += [r.told(lambda: x + 1)]
        with t._C.DisableTorchFunction():
            found += [r.told(lambda: x + 1)]
    found += [r.told(lambda: x + 1), t._C._is_torch_function_enabled()]

    class Off:
        __torch_function__ = t._C._disabled_torch_function_impl

    class OffTensor(t.Tensor):  # type: ignore[misc]
        __torch_function__ = t._C._disabled_torch_function_impl

    y = t.ones(1).as_subclass(OffTensor)
    found += [
        words(result_or_error(lambda: t.relu(Off()))),
        type(y + 1).__name__,
        type(x + y).__name__,
    ]
    found += [OffTensor.__torch_function__ is t._C._disabled_torch_function_impl]
    found += [type(t._C._disabled_torch_function_impl(t.add, (), (x, 1))).__name__]
    return found


@script
def hostile_classes(t: Any) -> Any:
    class Raises:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    class Nonsense:
        __torch_function__ = 3

    class Nothing:
        __torch_function__ = None

    class Plain:
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return 5

    class Recurses(t.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x = t.ones(2)
    found = [words(result_or_error(lambda k=k: t.add(x, k()))) for k in (Raises, Nonsense, Nothing)]  # type: ignore[misc]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found.append(t.add(Plain(), 1))
    found.append([str(each.message).partition(" (Triggered")[0] for each in seen])
    found.append(result_or_error(lambda: x.as_subclass(Recurses) + 1)[:14])
    return [*found, x + 1]


@script
def redispatch(t: Any) -> Any:
    r: list[str] = []

    class Loud(t.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            r.append(func.__name__)
            return t.overrides.redispatch_function(func, types, args, kwargs)

    def scale(a: Any, b: Any) -> Any:
        if t.overrides.has_torch_function((a, b)):
            return t.overrides.handle_torch_function(scale, (a, b), a, b)
        return a * b + 1

    x = t.ones(1).as_subclass(Loud)
    return [scale(x, x), x.add(1), x.shape, r]


# ------------------------------------------------------------------ modes


def noting(t: Any, calls: list[Any], name: str = "mode", **more: Any) -> Any:
    def ask(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = t.overrides.resolve_name(func)
        calls.append((name, found and found.replace("torch.functional.", "torch.")))
        return func(*args, **(kwargs or {}))

    return type(name, (t.overrides.TorchFunctionMode,), {"__torch_function__": ask, **more})()


MODED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda t, x: t.add(x, 1),
    "operator": lambda t, x: x + x,
    "reflected": lambda t, x: 2 - x,
    "zeros": lambda t, x: t.zeros(2),
    "tensor": lambda t, x: t.tensor([1.0]),
    "rand": lambda t, x: t.rand(2).shape,
    "arange": lambda t, x: t.arange(3),
    "as_tensor": lambda t, x: t.as_tensor([1.0]),
    "shape": lambda t, x: x.shape,
    "len": lambda t, x: len(x),
    "dim": lambda t, x: x.dim(),
    "index": lambda t, x: x[0],
    "slice": lambda t, x: x[:1],
    "set": lambda t, x: x.__setitem__(0, 1.0),
    "relu": lambda t, x: t.nn.functional.relu(x),
    "einsum": lambda t, x: t.einsum("i,i", x, x),
    "tolist": lambda t, x: x.tolist(),
    "item": lambda t, x: x[0].item(),
    "cat": lambda t, x: t.cat([x, x]),
    "promote": lambda t, x: t.promote_types(t.int64, t.float32),
}


@pytest.mark.parametrize("name", MODED)
def test_mode(name: str) -> None:
    def script(t: Any) -> Any:
        calls: list[Any] = []
        x = t.ones(2)
        with noting(t, calls):
            result = MODED[name](t, x)
        return calls, result, x + 1

    both(script)


@script
def modes_within_modes(t: Any) -> Any:
    calls: list[Any] = []
    outer, inner = noting(t, calls, "outer"), noting(t, calls, "inner")
    found = []
    with outer:
        t.ones(1)
        with inner:
            t.ones(1)
            found.append(t.overrides._get_current_function_mode() is inner)
            found.append(t.overrides._get_current_function_mode_stack() == [outer, inner])
            with outer:  # the same once more
                t.ones(1)
        t.ones(1)
    found.append(t.overrides._get_current_function_mode() is None)
    t.ones(1)
    return calls, found


@script
def modes_are_asked_before_types(t: Any) -> Any:
    calls: list[Any] = []
    r = Recorder(t)
    r.calls = calls
    x = r.of(1.0)
    with noting(t, calls):
        x + 1
        t.relu(r.Duck())
        with t._C.DisableTorchFunctionSubclass():
            x + 1
        with t._C.DisableTorchFunction():
            x + 1
    return [call[:2] for call in calls]


@script
def modes_that_say_nothing(t: Any) -> Any:
    def ask(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented

    kind = type("Quiet", (t.overrides.TorchFunctionMode,), {"__torch_function__": ask})
    r, x = Recorder(t), t.ones(2)
    with kind():
        calls = (
            lambda: t.add(x, x),
            lambda: t.zeros(2),
            lambda: t.nn.functional.relu(x),
            lambda: t.relu(r.Duck()),
            lambda: x + 1,
            lambda: t.add(x, silent(t)()),
        )
        found = [words(result_or_error(each)) for each in calls]
    return found, x + 1


@script
def modes_and_errors(t: Any) -> Any:
    def ask(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise KeyError("mine")

    kind = type("Bad", (t.overrides.TorchFunctionMode,), {"__torch_function__": ask})
    found = []
    with kind():
        found.append(result_or_error(lambda: t.zeros(2)))
        found.append(result_or_error(lambda: t.zeros(2)))
    with t.overrides.TorchFunctionMode():
        found.append(result_or_error(lambda: t.zeros(2)))
    found.append(t.zeros(2))
    with t.overrides.BaseTorchFunctionMode():
        found.append(t.ones(2) + 1)
    return found, t.overrides._get_current_function_mode()


@script
def a_mode_that_calls_itself_again(t: Any) -> Any:
    calls: list[str] = []

    class Again(t.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(func.__name__)
            if func is t.sub:
                with self:
                    a, b = args
                    return t.add(a, t.mul(b, -1))
            return func(*args, **(kwargs or {}))

    with Again():
        found = t.sub(t.ones(2), t.ones(2))
    return found, calls


@script
def a_mode_in_another_order(t: Any) -> Any:
    calls: list[Any] = []
    a, b = noting(t, calls, "a"), noting(t, calls, "b")
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    t.ones(1)
    b.__exit__(None, None, None)
    t.ones(1)
    return calls, t.overrides._get_current_function_mode()


@script
def backward_in_a_mode(t: Any) -> Any:
    calls: list[Any] = []
    x = t.ones(2, requires_grad=True)
    with noting(t, calls):
        y = (x * 2).sum()
        y.backward()
    return calls, x.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])


# ------------------------------------------------------------------ copies


class Kept:
    """Made for each library once, so that pickle finds it by its name."""


def test_copies_and_pickles_keep_class_and_attributes() -> None:
    def script(t: Any) -> Any:
        name = f"Kept_{t.__name__}"
        kind = globals().get(name) or type(name, (t.Tensor,), {"__module__": __name__})
        globals()[name] = kind
        x = t.ones(2).as_subclass(kind)
        x.note = "mine"
        again = pickle.loads(pickle.dumps(x))
        shallow = copy.copy(x)
        x.fill_(4)
        return [
            type(again) is kind,
            again.note,
            again.tolist(),
            type(shallow) is kind,
            shallow.note,
            shallow.tolist(),
        ]

    both(script)


def test_functions_of_the_other_library_call_ours() -> None:
    import torch

    import pygrad

    x = pygrad.tensor([3.0, 4.0], requires_grad=True)
    y = pygrad.ones(2)
    calls = {
        "a function in C": (torch.add(x, y, alpha=2), x + 2 * y),
        "of a submodule": (torch.linalg.norm(x), x.norm()),
        "a function in Python": (torch.nn.functional.pairwise_distance(x, y), (x - y).norm()),
        "an argument": (
            pygrad.nn.functional.triplet_margin_with_distance_loss(
                x, y, y, distance_function=torch.pairwise_distance
            ),
            pygrad.nn.functional.triplet_margin_with_distance_loss(x, y, y),
        ),
    }
    for name, (theirs, ours) in calls.items():
        assert type(theirs) is pygrad.Tensor, name
        assert pygrad.allclose(theirs, ours), name
        assert theirs.requires_grad, name


def test_functions_that_only_the_other_library_has_refuse_tensors() -> None:
    import torch

    import pygrad

    before = pygrad.overrides._state.off
    with pytest.raises(TypeError, match="NotImplemented|no implementation"):
        torch.ops.aten.add.Tensor(pygrad.ones(2), pygrad.ones(2))
    with pytest.raises(TypeError):  # a dtype of the other library is none here
        torch.sum(pygrad.ones(2), dtype=torch.float64)
    assert pygrad.overrides._state.off == before


def test_classes_are_shown_by_their_names() -> None:
    def script(t: Any) -> Any:
        class Silent(t.Tensor):  # type: ignore[name-defined,misc]
            __torch_function__ = t._C._disabled_torch_function_impl

        class Kind(t.Tensor):  # type: ignore[name-defined,misc]
            pass

        class Weight(t.nn.Parameter):  # type: ignore[name-defined,misc]
            pass

        class Both(Silent, t.nn.Parameter):  # type: ignore[name-defined,misc]
            def __repr__(self) -> str:
                return "Both " + t.Tensor.__repr__(self)

        x = t.ones(2)
        shown = (
            x.as_subclass(Silent),
            x.as_subclass(Kind),
            Weight(x),
            t.Tensor._make_subclass(Both, x, True),
            t.nn.Parameter(x),
            t.nn.Parameter(x.as_subclass(Kind), requires_grad=False),
        )
        return [repr(each) for each in shown], str(shown[0])

    both(script)
