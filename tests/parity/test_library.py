"""Schemas and names of ops against PyTorch's own."""

from __future__ import annotations

import importlib
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from oracle import Scripts, both

from pygrad._table.function_schema import native_lines, parse_schema

from . import native_schemas

SCRIPTS = Scripts()


def test_the_file_of_schemas_is_what_the_installed_torch_says() -> None:
    assert native_schemas.PLACE.read_text().splitlines() == native_schemas.lines()


def test_schemas_are_read_as_torch_reads_them() -> None:
    for name, overloads in native_lines().items():
        for _, text in overloads.values():
            ours, theirs = parse_schema(f"aten::{text}"), torch._C.parse_schema(f"aten::{text}")
            for one, other in zip(ours.arguments, theirs.arguments, strict=True):
                assert one.name == other.name
                assert one.kwarg_only == other.kwarg_only
                assert one.has_default_value() == other.has_default_value(), text
                if one.type.kind_ != "StreamType" and "Stream" not in str(one.type):
                    assert str(one.type) == str(other.type), (name, one.name)
                assert one.default_value == other.default_value, text
                write = other.alias_info is not None and other.alias_info.is_write
                assert one.is_write == write
            assert ours.is_mutable == theirs.is_mutable


@pytest.mark.parametrize("name", ["add.Tensor", "sum.dim_IntList", "view.default", "mm.default"])
def test_overloads_show_as_those_of_torch(name: str) -> None:
    import pygrad

    packet, overload = name.split(".")
    ours = getattr(getattr(pygrad.ops.aten, packet), overload)
    theirs = getattr(getattr(torch.ops.aten, packet), overload)
    for show in (str, repr, lambda op: op.name(), lambda op: op.__name__, lambda op: op.namespace):
        assert show(ours) == show(theirs)
    assert str(ours._schema) == str(theirs._schema)
    assert ours.is_view == theirs.is_view
    assert ours.__module__ == theirs.__module__


def test_tags_are_those_of_torch() -> None:
    import pygrad

    names = [name for name in dir(torch.Tag) if not name.startswith("_")]
    for name in set(names) - {"name", "value"}:
        assert repr(getattr(pygrad.Tag, name)) == repr(getattr(torch.Tag, name))
    for name, overloads in native_lines().items():
        for overload in overloads:
            ours = getattr(getattr(pygrad.ops.aten, name), overload)
            theirs = getattr(getattr(torch.ops.aten, name), overload)
            assert str(ours.tags) == str(theirs.tags), name
            assert (ours._name, ours._defined_in_python) == (theirs._name, False)


def test_an_overload_is_found_by_its_arguments_as_by_torch() -> None:
    import pygrad

    def resolve_all(library: Any) -> list[Any]:
        resolve, x = library._C._jit_resolve_packet, library.ones(2)
        calls: list[Any] = [
            *(("sum", x), ("sum", x, 1), ("sum", x, [0]), ("add", x, x), ("add", x, 1)),
            *(("mean", x), ("mean", x, 0), ("max", x), ("max", x, 0), ("max", x, x)),
            *(("select", x, 0, 1), ("pow", x, 2), ("pow", 2, x), ("pow", x, x), ("mm", x, x)),
        ]
        return [resolve(f"aten::{name}", *args) for name, *args in calls]

    assert resolve_all(pygrad) == resolve_all(torch)
    for library in (pygrad, torch):
        x = library.ones(2)
        with pytest.raises(RuntimeError, match="failed to match any schema"):
            library._C._jit_resolve_packet("aten::sum", x, x, x)


def test_questions_about_schemas_are_answered_as_by_torch() -> None:
    def ask(library: Any) -> Any:
        utils = importlib.import_module(f"{library.__name__}._library.utils")
        found = []
        for name in ("where", "index", "sin", "sum", "add_", "view", "cat", "mul", "unbind"):
            for overload in ("default", "Tensor", "dim_IntList", "self", "int", "out"):
                if overload not in native_lines()[name]:
                    continue
                op = getattr(getattr(library.ops.aten, name), overload)
                types = [each.type for each in (*op._schema.arguments, *op._schema.returns)]
                found += [[utils.is_tensorlist_like_type(t) for t in types]]
                found += [[utils.is_tensor_like_type(t) for t in types]]
                found += [[isinstance(t, library._C.ListType) for t in types]]
                found += [[t == library._C.TensorType.get() for t in types]]
                for of_schema in (
                    *(utils.is_functional_schema, utils.has_kwarg_only_args),
                    *(utils.has_kwarg_only_tensors, utils.has_tensor_arg),
                ):
                    found.append([of_schema(op._schema)])
                found.append([utils.is_functional_schema(op._schema, allow_valid_view=True)])
                found.append([utils.mutates_and_returns_first_arg(op)])
        return found

    import pygrad

    assert ask(pygrad) == ask(torch)


def test_types_of_arguments_are_called_as_by_torch() -> None:
    from torch._library import infer_schema as theirs

    from pygrad.torch._library import infer_schema as ours

    def show(types: Any) -> dict[str, str]:
        return {
            str(key).replace("pygrad", "torch"): value
            for key, value in types.items()
            if "GroupName" not in str(key)
        }

    assert show(ours.SUPPORTED_PARAM_TYPES) == show(theirs.SUPPORTED_PARAM_TYPES)
    assert show(ours.SUPPORTED_RETURN_TYPES) == show(theirs.SUPPORTED_RETURN_TYPES)


def test_every_op_of_the_dispatcher_can_be_looked_up() -> None:
    import pygrad

    for line in native_schemas.lines():
        called = line.partition(" ")[2].partition("(")[0]
        name, _, overload = called.partition(".")
        op = getattr(getattr(pygrad.ops.aten, name), overload or "default")
        assert op.name() == f"aten::{called}"


def test_an_op_that_is_only_a_name_is_refused_when_called() -> None:
    import pygrad

    with pytest.raises(NotImplementedError, match="aten._pin_memory"):
        pygrad.ops.aten._pin_memory.default(pygrad.ones(2))


# ------------------------------------------------------------------ ops of the dispatcher alone


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [1, 2])
def test_gradients_of_a_convolution(dims: int, transposed: bool) -> None:
    def script(t: Any) -> Any:
        x = t.arange(2 * 4 * 7**dims, dtype=t.float64).reshape(2, 4, *[7] * dims).sin()
        w = t.arange(4 * 2 * 3**dims, dtype=t.float64).reshape(4, 2, *[3] * dims).cos()
        how = [2] * dims, [1] * dims, [1] * dims, transposed, [int(transposed)] * dims, 2
        y = t.ops.aten.convolution.default(x, w, None, *how)
        g = (y.detach() * 0.1).requires_grad_()
        w.requires_grad_()
        backward = t.ops.aten.convolution_backward
        found = []
        for mask in ((True, True, True), (False, True, False), (True, False, False)):
            found.append(backward(g, x, w, [y.shape[1]], *how, mask))
        with t.no_grad():
            found.append(backward.default(g, x, w, None, *how, (True, True, False)))
        second = t.autograd.grad(sum(each.square().sum() for each in found[0]), (g, w))
        return found, second, found[-1][0].requires_grad

    both(script)


def test_zeros_with_the_strides_of_another() -> None:
    def script(t: Any) -> Any:
        zeros = t.ops.aten._new_zeros_with_same_feature_meta
        like = t.ones(2, 3, 4, dtype=t.float64)
        found = []
        for self in (t.ones(5, 2), t.ones(3, 0, 2)):
            for other in (like, like.transpose(0, 2), like[:, 1:], like[1, 1, 1], like[:0]):
                for n in range(self.dim() + 1):
                    z = zeros(self, other, self_num_batch_dims=n)
                    size = z.untyped_storage().nbytes()
                    found.append((z, z.stride(), z.storage_offset(), size))
        return found

    both(script)


DEFAULTS = [
    "float a=0.1",
    "float a=1e-5",
    "float a=3",
    "float a=-2.0",
    "float a=-0.0",
    "float a=1e16",
    "float a=1e30",
    "float a=123456789012.0",
    "float[] a=[1.0, 2.5]",
    "float[2] a=1",
    "float? a=None",
    "Scalar a=2.0",
    "Scalar a=1",
    "Scalar a=True",
    "int[2] a=1",
    "SymInt[2] a=3",
    "str a='x'",
    "Device a='cpu'",
    "ScalarType a=float",
    "ScalarType a=float32",
    "ScalarType? a=long",
    "Layout a=strided",
    "MemoryFormat a=contiguous_format",
]


@pytest.mark.parametrize("default", DEFAULTS)
def test_defaults_of_schemas_are_read_and_shown_as_by_torch(default: str) -> None:
    text = f"mine::f(Tensor x, {default}) -> Tensor"
    ours, theirs = parse_schema(text), torch._C.parse_schema(text)
    assert str(ours) == str(theirs)
    assert repr(ours.arguments[1].default_value) == repr(theirs.arguments[1].default_value)


@SCRIPTS.add
def defaults_of_functions(library: Any) -> Any:
    """A function is told what differs from the schema's defaults."""
    seen: list[Any] = []
    with library.library._scoped_library("parity_defaults", "FRAGMENT") as lib:
        lib.define("f(Tensor x, float by=0.5, ScalarType to=float, *, int n=2) -> Tensor")

        def run(*args: Any, **kwargs: Any) -> Any:
            seen.append((args[1:], kwargs))
            return args[0].clone()

        lib.impl("f", run, "CPU")
        x, f = library.ones(1), library.ops.parity_defaults.f
        f(x)
        f(x, 0.5, library.float64)
        f(x, 2.0, n=2)
        f(x, n=3)
    return repr(seen)


TYPES = (
    "Tensor Tensor? Tensor[] Tensor?[] Tensor[]? int SymInt int? int[] int[2] SymInt[] int[]? "
    "float float? float[] bool bool? bool[] str str? str[] Scalar Scalar? Scalar[] ScalarType "
    "ScalarType? Layout Device Device? MemoryFormat? Generator?"
).split()


def arguments(library: Any) -> list[Any]:
    one, t = library.ones(1), library.tensor
    return [
        *(one, library.ones(2), t(3), t(2.5), t(math.nan), 3, 2**63, True, 2.5, 2j, "a", "cpu"),
        *(None, [1, 2], (1, 2)),
        *([1], [1.5, 2.0], [True], [one], (one,), [one, None], ["a"], [], [t(1)], [[1]], [1, 2.5]),
        *(np.int64(3), np.float32(2.0), np.bool_(True), library.Size([1]), range(2), object(), len),
        *(library.float32, library.strided, library.contiguous_format, library.device("cpu")),
        library.default_generator,
    ]


def is_left_out(library: Any, kind: str, value: Any) -> bool:
    """What PyTorch takes by how its members are kept: numbers for members of enumerations, and
    those for numbers; the rows of a tensor, the letters of a text and the length of a range.
    """
    member = isinstance(value, (library.dtype, library.layout, library.memory_format))
    if kind.startswith(("Layout", "MemoryFormat")):
        return not member and isinstance(value, (int, np.generic, library.Tensor))
    if kind == "SymInt[]":
        return isinstance(value, (list, tuple)) and any(map(library.is_tensor, value))
    if kind == "Tensor?[]":
        return isinstance(value, library.Tensor)
    if kind.startswith(("int", "Scalar")) and not kind.startswith("ScalarType"):
        return member
    return isinstance(value, {"str[]": str, "bool": range, "bool?": range}.get(kind, ()))


@SCRIPTS.add
def types_of_arguments(library: Any) -> Any:
    """What an op of a library takes for an argument of each type, and what its function gets."""
    seen: list[Any] = []
    found = []
    with library.library._scoped_library("parity_types", "FRAGMENT") as lib:
        for i, kind in enumerate(TYPES):
            lib.define(f"f{i}({kind} x) -> ()")
            lib.impl(f"f{i}", lambda x: seen.append(x), "CompositeExplicitAutograd")
            op = getattr(library.ops.parity_types, f"f{i}").default
            for at, value in enumerate(arguments(library)):
                if is_left_out(library, kind, value):
                    continue
                try:
                    op(value)
                    found.append(
                        (kind, at, re.sub("(<).*(Generator).*", r"\1\2", repr(seen.pop())))
                    )
                except RuntimeError as error:
                    found.append((kind, at, str(error).partition("\n")[0]))
    return found


@SCRIPTS.add
def arguments_that_do_not_fit(library: Any) -> Any:
    """Errors of calls, but for the line that tells of C++."""
    x, found = library.ones(2), []
    with library.library._scoped_library("parity_misfits", "FRAGMENT") as lib:
        lib.define("f(Tensor x, int n=3, *, float y=1.) -> Tensor")
        lib.define("g(Tensor x, int n) -> Tensor")
        lib.define("g.two(Tensor x, Tensor n, *, int m) -> Tensor")
        f, g = library.ops.parity_misfits.f, library.ops.parity_misfits.g
        for call in (
            *(lambda: f(x, foo=3), lambda: f(x, 3, 4), lambda: f(x, 3, 4, 5), lambda: f()),
            *(lambda: f(3), lambda: f(x, "a"), lambda: f(x, y=x), lambda: f(x, x)),
            *(lambda: f.default(x, n=[1]), lambda: g(x), lambda: g(x, 1, 2), lambda: g(x, 1, k=1)),
        ):
            with pytest.raises(RuntimeError) as error:
                call()
            lines = str(error.value).splitlines()
            found.append([line for line in lines if line and "Cast error details" not in line])
    return found


@SCRIPTS.add
def overriding(library: Any) -> Any:
    """The last function of an op is called, and goes with its library."""
    with library.library._scoped_library("parity_overriding", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        lib.impl("f", lambda x: x + 2, "CPU")
        f, x, found = library.ops.parity_overriding.f, library.zeros(1), []
        found.append(f(x).item())
        with pytest.raises(RuntimeError) as error:
            lib.impl("f", lambda x: x, "CPU", allow_override=False)
        with library.library._scoped_library("parity_overriding", "IMPL") as other:
            other.impl("f", lambda x: x + 5, "CPU")
            found.append(f(x).item())
        found.append(f(x).item())
    return found, str(error.value)


@SCRIPTS.add
def rules_of_a_library(library: Any) -> Any:
    """Rules that are added with a library go with it."""
    lb = library.library
    with lb._scoped_library("parity_rules", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        f = library.ops.parity_rules.f
        with lb._scoped_library("parity_rules", "FRAGMENT") as other:
            lb.impl("parity_rules::f", "cpu", lambda x: x * 10, lib=other)
            lb.register_fake("parity_rules::f", lambda x: x.new_empty(9), lib=other)
            lb.register_autograd("parity_rules::f", lambda ctx, g: g * 10, lib=other)
            x = library.ones(1, requires_grad=True)
            f(x).backward()
            found = x.grad.item(), tuple(f(library.ones(1, device="meta")).shape)
        with pytest.raises(NotImplementedError):
            f(library.ones(1))
    return found


@SCRIPTS.add
def older_forms(library: Any) -> Any:
    """Decorators that take a library."""
    with library.library._scoped_library("parity_older", "DEF") as lib:

        @library.library.define(lib, "g(Tensor x, int n=3) -> Tensor")
        def g(x: Any, n: int = 7) -> Any:
            return x * n

        lib.define("f(Tensor x) -> Tensor")

        @library.library.impl(lib, "f", "CPU")
        def f(x: Any) -> Any:
            return x + 1

        ops, x = library.ops.parity_older, library.ones(1)
        return [ops.g(x).item(), ops.g(x, 3).item(), ops.g(x, 4).item(), ops.f(x).item()]


@SCRIPTS.add
def dtypes_as_defaults(library: Any) -> Any:
    """A custom op whose arguments have a dtype and a device as defaults."""
    seen: list[Any] = []

    cpu = library.device("cpu")

    def run(x, by=0.3, to=library.float32, *, where=cpu):  # type: ignore[no-untyped-def]
        seen.append((by, to, where))
        return x.clone()

    tensor = library.Tensor
    run.__annotations__ = {
        "x": tensor,
        "by": float,
        "to": library.dtype,
        "where": library.device,
        "return": tensor,
    }
    op = library.library.custom_op("parity_custom::f", run, mutates_args=())
    x = library.ones(1)
    op(x)
    op(x, 0.5)
    op(x, to=library.float64)
    return repr(seen), str(op._opoverload._schema)


@SCRIPTS.add
def functions_in_the_place_of_torch_s_own(library: Any) -> Any:
    seen: list[Any] = []
    lib = library.library.Library("aten", "IMPL")

    def div(x: Any, y: Any) -> Any:
        seen.append("div")
        return x * (1 / y) + 100

    lib.impl("div.Tensor", div, "CPU")
    lib.impl("atan2", lambda x, y: x - y, "CPU")
    lib.impl("sinh", lambda x: x, "CUDA")
    x, y = library.tensor([1.0, 3.0], requires_grad=True), library.tensor([2.0, 4.0])
    found = [x / y, y.atan2(y + 1), y.sinh(), y.clone().div_(2)]
    found[0].sum().backward()
    meta = library.ones(2, device="meta")
    told = len(seen), (meta / meta).shape, str(x.grad.tolist())
    lib._destroy()
    return found, told, y / y, y.atan2(y)


@SCRIPTS.add
def kernels_that_were_replaced(library: Any) -> Any:
    own = library.library.get_kernel("aten::sin", "CPU")
    keys, x = library._C.DispatchKeySet(torch.DispatchKey.CPU), library.ones(2)
    outer, inner = (library.library.Library("aten", "IMPL") for _ in range(2))
    told: list[str] = []

    def tenfold(given: Any, x: Any) -> Any:
        told.append(str(given))
        return own.call_boxed(given, x) * 10

    inner.impl("sin", tenfold, "CPU", with_keyset=True)
    found = [library.sin(x)]
    again = library.library.get_kernel(library.ops.aten.sin.default, torch.DispatchKey.CPU)
    outer.impl("sin", lambda x: again.call_boxed(keys, x) * 10, "CPU")
    found.append(library.sin(x))
    outer._destroy()
    found.append(library.sin(x))
    inner._destroy()
    return *found, library.sin(x), own.call_boxed(keys, x.requires_grad_()), told


@SCRIPTS.add
def functions_before_their_op(library: Any) -> Any:
    lib = library.library.Library("parity_early", "FRAGMENT")
    lib.impl("twice", lambda x: x * 2, "CPU")
    library.library.impl("parity_early::more", "cpu", lambda x: x + 1)
    lib.define("twice(Tensor x) -> Tensor")
    lib.define("more(Tensor x) -> Tensor")
    x = library.ones(1)
    return library.ops.parity_early.twice(x), library.ops.parity_early.more(x)


@SCRIPTS.add
def older_form(library: Any) -> Any:
    """Ops of the older form: what is refused, and in which words."""
    ops = importlib.import_module(f"{library.__name__}._custom_ops")
    impl = importlib.import_module(f"{library.__name__}._custom_op.impl")
    found: list[Any] = []
    answers: list[Any] = []

    def tell(function: Any, *args: Any, **kwargs: Any) -> None:
        try:
            result = function(*args, **kwargs)
        except (AssertionError, NotImplementedError, RuntimeError, ValueError) as error:
            result = type(error).__name__, str(error).partition(". Got")[0].partition(" at /")[0]
        found.append(result if isinstance(result, tuple) else None)

    tell(ops.custom_op, "noname", "(Tensor x) -> Tensor")
    tell(ops.custom_op, "parity_older::f.Tensor", "(Tensor x) -> Tensor")
    tell(ops.custom_op, "aten::f", "(Tensor x) -> Tensor")
    tell(ops.custom_op, "parity.older::f", "(Tensor x) -> Tensor")
    tell(ops.custom_op, "parity_older::f", "(Tensor(a) x) -> Tensor(a)")
    tell(ops.custom_op, "parity_older::f", "(Tensor self) -> Tensor")
    tell(ops.custom_op("parity_older::f"), lambda x: x)
    tell(ops.impl, "parity_older::f", func=print)
    ops.custom_op("parity_older::f", "(Tensor[] xs, Tensor? y, int n) -> Tensor")
    f = impl.get_op("parity_older::f")
    x = library.ones(2, requires_grad=True)
    tell(f, [x.detach()], None, 2)
    tell(f, [], None, 2)
    tell(f, [x.detach().to("meta")], None, 2)
    tell(ops.impl("parity_older::f", device_types="hip"), print)
    ops.impl("parity_older::f", func=lambda xs, y, n: xs[0] * n)
    tell(ops.impl("parity_older::f"), print)
    tell(f, [x], None, 2)
    ops.impl_backward("parity_older::f", func=lambda ctx, saved, g: answers[0])
    tell(f, [x], None, 2)
    ops.impl_save_for_backward("parity_older::f", func=lambda i, out: (i._fields, i.n))
    wrong = [3, {}, {"xs": None, "y": None}, {"xs": [None] * 2, "y": None}]
    wrong += [{"xs": [1], "y": None}, {"xs": [None], "y": x}, {"xs": [None], "y": 1}]
    for answer in [*wrong, {"xs": [x.detach() * 5], "y": None}]:
        answers[:] = [answer]
        tell(f([x], None, 2).sum().backward)
    ops._destroy("parity_older::f")
    tell(ops._destroy, "parity_older::f")
    return [re.sub(r"\{[^}]*\}", "{}", str(each)) for each in found], x.grad.tolist()


@pytest.mark.parametrize("name", SCRIPTS)
def test_ops_of_libraries_are_called_as_by_torch(name: str) -> None:
    both(SCRIPTS[name])
