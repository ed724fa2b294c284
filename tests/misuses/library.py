"""Misuses of `torch.library`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NS = "parity_refused"
ONE = "(Tensor x) -> Tensor"


def misuses(t: Any) -> dict[str, Callable[[], Any]]:
    """Misuses by a name. Each has a namespace that ends with the last of them."""
    of, T, lib = t.library, t.Tensor, t.library.Library(NS, "FRAGMENT")
    x, meta = t.ones(2), t.ones(2, device="meta")

    def custom(name: str, fn: Any = None, **options: Any) -> Any:
        options.setdefault("mutates_args", ())
        return of.custom_op(f"{NS}::{name}", fn or (lambda x: x.clone()), **options)

    def define(name: str, schema: str = ONE) -> None:
        lib.define(name + schema)

    def op(name: str) -> Any:
        return getattr(getattr(t.ops, NS), name)

    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        define(name, "(Tensor x, int n=3, *, float y=1.) -> Tensor")
        return op(name)(*args, **kwargs)

    def check(
        name: str, fn: Any, schema: str = ONE, fake: Any = None, test: str = "test_schema"
    ) -> Any:
        define(name, schema)
        lib.impl(name, fn, "CPU")
        if fake is not None:
            of.register_fake(f"{NS}::{name}", fake)
            test = "test_faketensor"
        return of.opcheck(op(name).default, (x,), test_utils=test)

    def schema_maker(kind: Any) -> Any:
        def function(x): ...  # type: ignore[no-untyped-def]

        function.__annotations__ = {"x": kind, "return": T}
        return function

    def schema_of(kind: Any, returns: Any = T, default: Any = None, writes: Any = ()) -> str:
        def function(x): ...  # type: ignore[no-untyped-def]

        function.__annotations__ = {} if kind is None else {"x": kind}
        if returns is not None:
            function.__annotations__["return"] = returns
        function.__defaults__ = None if default is None else (default,)
        return of.infer_schema(function, mutates_args=writes)  # type: ignore[no-any-return]

    return {
        "kind": lambda: of.Library(NS, "OTHER"),
        "reserved": lambda: of.Library("prim", "DEF"),
        "fallthrough": lambda: of.fallthrough_kernel(),
        "alias": lambda: lib.define("f1(Tensor x) -> Tensor", "WRONG"),
        "define twice": lambda: (define("f2"), define("f2")),
        "impl of impl": lambda: (
            define("f3"),
            lib.impl("f3", len, "CPU"),
            lib.impl("f3", len, "CPU", allow_override=False),
        ),
        "impl twice": lambda: (
            define("f3b"),
            lib.impl("f3b", len, "CPU"),
            lib.impl("f3b", len, "CPU"),
        ),
        "define option": lambda: of.define(f"{NS}::f4", ONE, other=1),
        "define more": lambda: of.define(f"{NS}::f4", ONE, 1),
        "define no name": lambda: of.define(3, ONE),
        "define no namespace": lambda: of.define("f4", ONE),
        "define two colons": lambda: of.define("a::b::f4", ONE),
        "define no schema": lambda: of.define(f"{NS}::f4", "Tensor x"),
        "triton op": lambda: of.triton_op(),
        "wrapped triton": lambda: of.wrap_triton(),
        "custom no ns": lambda: of.custom_op("f", lambda x: x, mutates_args=()),
        "custom ns": lambda: of.custom_op("a::b::f", lambda x: x, mutates_args=()),
        "custom mutates": lambda: custom("g1", schema="(Tensor(a!) x) -> ()", mutates_args=()),
        "custom kw tensor": lambda: custom("g2", schema="(*, Tensor x) -> Tensor"),
        "custom twice": lambda: (custom("g2b", schema=ONE), custom("g2b", schema=ONE)),
        "custom over lib": lambda: (define("g2c"), custom("g2c", schema=ONE)),
        "fake of custom": lambda: (
            custom("g3", schema=ONE).register_fake(len),
            of.register_fake(f"{NS}::g3", len, allow_override=False),
        ),
        "fake twice": lambda: (
            define("g4"),
            of.register_fake(f"{NS}::g4", len),
            of.register_fake(f"{NS}::g4", len),
        ),
        "fake twice lib": lambda: (
            define("g5"),
            of.register_fake(f"{NS}::g5", len, lib=lib),
            of.register_fake(f"{NS}::g5", len, lib=lib, allow_override=False),
        ),
        "fake meta": lambda: (
            define("g6"),
            lib.impl("g6", len, "Meta"),
            of.register_fake(f"{NS}::g6", len, allow_override=False),
        ),
        "fake meta over": lambda: (
            define("g6b"),
            lib.impl("g6b", len, "Meta"),
            of.register_fake(f"{NS}::g6b", len),
        ),
        "fake composite": lambda: (
            define("g7"),
            lib.impl("g7", len, "CompositeImplicitAutograd"),
            of.register_fake(f"{NS}::g7", len, allow_override=False),
        ),
        "fake composite over": lambda: (
            define("g8"),
            lib.impl("g8", len, "CompositeImplicitAutograd"),
            of.register_fake(f"{NS}::g8", len),
        ),
        "fake explicit": lambda: (
            define("g9"),
            lib.impl("g9", len, "CompositeExplicitAutograd"),
            of.register_fake(f"{NS}::g9", len, allow_override=False),
        ),
        "meta after fake": lambda: (
            define("g10"),
            of.register_fake(f"{NS}::g10", len),
            lib.impl("g10", len, "Meta", allow_override=False),
        ),
        "meta after fake2": lambda: (
            define("g11"),
            of.register_fake(f"{NS}::g11", len),
            lib.impl("g11", len, "Meta"),
        ),
        "fake of nothing": lambda: of.register_fake(f"{NS}::nothing", len, allow_override=False),
        "fake no ns": lambda: of.register_fake("nothing", len),
        "fake number": lambda: of.register_fake(3, len),
        "kernel number": lambda: of.register_kernel(3, "cpu", len),
        "kernel device": lambda: (define("h1"), of.register_kernel(f"{NS}::h1", "nothing", len)),
        "kernel custom device": lambda: custom("h2", schema=ONE).register_kernel("nothing", len),
        "custom device": lambda: custom("h2c", schema=ONE, device_types="nothing"),
        "kernel nothing": lambda: of.register_kernel(f"{NS}::nothing2", "cpu", len),
        "autograd number": lambda: of.register_autograd(3, len),
        "autograd nonfunctional": lambda: (
            define("h3", "(Tensor(a!) x) -> Tensor(a!)"),
            of.register_autograd(f"{NS}::h3", len),
        ),
        "autograd mutating": lambda: (
            define("h3b", "(Tensor(a!) x) -> ()"),
            of.register_autograd(f"{NS}::h3b", len),
        ),
        "autograd view": lambda: (
            define("h3c", "(Tensor(a) x) -> Tensor(a)"),
            of.register_autograd(f"{NS}::h3c", len),
        ),
        "autograd kw": lambda: (
            define("h4", "(*, Tensor x) -> Tensor"),
            of.register_autograd(f"{NS}::h4", len),
        ),
        "autograd custom mutating": lambda: custom(
            "h4b", schema="(Tensor(a!) x) -> Tensor(a!)", mutates_args=("x",)
        ).register_autograd(len),
        "autograd nothing": lambda: of.register_autograd(f"{NS}::nothing3", len),
        "autograd aten": lambda: of.register_autograd("aten::sin", len),
        "autograd twice": lambda: (
            define("h5"),
            of.register_autograd(f"{NS}::h5", len),
            of.register_autograd(f"{NS}::h5", len),
        ),
        "vmap number": lambda: of.register_vmap(3, len),
        "vmap kw": lambda: (
            define("h6", "(*, Tensor x) -> Tensor"),
            of.register_vmap(f"{NS}::h6", len),
        ),
        "vmap mutating": lambda: (
            define("h6b", "(Tensor(a!) x) -> Tensor(a!)"),
            of.register_vmap(f"{NS}::h6b", len),
        ),
        "vmap twice": lambda: (
            define("h6c"),
            of.register_vmap(f"{NS}::h6c", len),
            of.register_vmap(f"{NS}::h6c", len),
        ),
        "autocast number": lambda: of.register_autocast(3, "cpu", t.float16),
        "autocast device": lambda: (
            define("h7"),
            of.register_autocast(f"{NS}::h7", "nothing", t.float16),
        ),
        "autocast meta": lambda: (
            define("h7b"),
            of.register_autocast(f"{NS}::h7b", "meta", t.float16),
        ),
        "autocast custom device": lambda: custom("h7c", schema=ONE).register_autocast(
            "nothing", t.float16
        ),
        "autocast twice": lambda: (
            define("h7d"),
            of.register_autocast(f"{NS}::h7d", "cpu", t.float16),
            of.register_autocast(f"{NS}::h7d", "cpu", t.bfloat16),
        ),
        "dispatch number": lambda: of.register_torch_dispatch(3, T, len),
        "dispatch class": lambda: (
            define("h8"),
            of.register_torch_dispatch(f"{NS}::h8", int, len),
        ),
        "dispatch twice": lambda: (
            define("h8b"),
            of.register_torch_dispatch(f"{NS}::h8b", t.nn.Parameter, len),
            of.register_torch_dispatch(f"{NS}::h8b", t.nn.Parameter, len),
        ),
        "set enabled": lambda: custom("h9", schema=ONE).set_kernel_enabled("nothing").__enter__(),
        "ctx": lambda: of.get_ctx(),
        "opcheck packet": lambda: (
            define("k1.a"),
            define("k1.b", "(int x) -> Tensor"),
            of.opcheck(op("k1"), (t.ones(2),)),
        ),
        "opcheck str": lambda: of.opcheck("f", ()),
        "opcheck tol": lambda: of.opcheck(t.ops.aten.sin.default, (t.ones(2),), rtol=1),
        "opcheck util": lambda: of.opcheck(
            t.ops.aten.sin.default, (t.ones(2),), test_utils="nothing"
        ),
        "fallback": lambda: t._C._set_autograd_fallback_mode("other"),
        "backward none": lambda: (
            x := t.ones(2, requires_grad=True),
            custom("m1", schema=ONE)(x).sum().backward(),
        ),
        "backward few": lambda: (
            o := custom("m2", lambda x, y: x.clone(), schema="(Tensor x, Tensor y) -> Tensor"),
            o.register_autograd(lambda c, g: g),
            o(t.ones(2, requires_grad=True), t.ones(2)).sum().backward(),
        ),
        "backward many": lambda: (
            o := custom("m3", schema=ONE),
            o.register_autograd(lambda c, g: (g, g)),
            o(t.ones(2, requires_grad=True)).sum().backward(),
        ),
        "backward list": lambda: (
            o := custom("m4", lambda x: x[0].clone(), schema="(Tensor[] x) -> Tensor"),
            o.register_autograd(lambda c, g: g),
            o([t.ones(2, requires_grad=True)]).sum().backward(),
        ),
        "backward list2": lambda: (
            o := custom("m5", lambda x: x[0].clone(), schema="(Tensor[] x) -> Tensor"),
            o.register_autograd(lambda c, g: [g, g]),
            o([t.ones(2, requires_grad=True)]).sum().backward(),
        ),
        "aliases": lambda: custom("m6", lambda x: x, schema=ONE)(t.ones(2)),
        "aliases view": lambda: custom("m7", lambda x: x.view(-1), schema=ONE)(t.ones(2)),
        "no kernel": lambda: (define("m8"), op("m8")(t.ones(2))),
        "no meta": lambda: custom("m9", schema=ONE)(t.ones(2, device="meta")),
        "ctx in meta": lambda: (
            o := custom("m10", schema=ONE),
            o.register_fake(lambda x: x.new_empty(of.get_ctx().new_dynamic_size())),
            o(t.ones(2, device="meta")),
        ),
        "none": lambda: custom("m11", lambda x: None, schema=ONE)(t.ones(2)),
        "number": lambda: custom("m12", lambda x: 3, schema=ONE)(t.ones(2)),
        "no function": lambda: custom("m13", 3, schema=ONE),
        "opcheck mutates": lambda: of.opcheck(
            custom("m14", lambda x: (x.add_(1), x.clone())[1], schema=ONE)._opoverload,
            (t.ones(2),),
            test_utils="test_schema",
        ),
        "opcheck faketensor": lambda: of.opcheck(
            custom("m15", schema=ONE)._opoverload, (t.ones(2),), test_utils="test_faketensor"
        ),
        "opcheck autograd": lambda: (
            define("m16"),
            lib.impl("m16", lambda x: x.clone(), "CPU"),
            of.opcheck(
                op("m16").default,
                (t.ones(2, requires_grad=True),),
                test_utils="test_autograd_registration",
            ),
        ),
        "kernel of": lambda: of.get_kernel(f"{NS}::nothing9", "CPU"),
        "boxed": lambda: of.get_kernel("aten::sin", "CPU").call_boxed(3, t.ones(2)),
        "infer varargs": lambda: of.infer_schema(lambda *a: 0, mutates_args=()),
        "infer unannotated": lambda: schema_of(None),
        "infer bytes": lambda: schema_of(bytes),
        "infer tuple": lambda: schema_of(tuple[T, int]),
        "infer no return": lambda: schema_of(T, returns=None),
        "infer return": lambda: schema_of(T, returns=bytes),
        "infer return of tuples": lambda: schema_of(T, returns=tuple[T, ...]),
        "infer return of lists": lambda: schema_of(T, returns=list[bytes]),
        "infer default": lambda: schema_of(T, default=print),
        "infer write to a number": lambda: schema_of(int, writes=("x",)),
        "infer write to nothing": lambda: schema_of(T, writes=("y",)),
        "infer write to a word": lambda: schema_of(T, writes="x"),
        "no key": lambda: lib.impl("f", lambda x: x, "Nokey"),
        "no key of a library": lambda: of.Library(NS, "IMPL", "Nokey"),
        "no function to put": lambda: of.Library("aten", "IMPL").impl("neg", [], "CPU"),
        "function for a key": lambda: of.Library("aten", "IMPL").impl("neg", len, "AutogradCPU"),
        "function for a whole": lambda: of.Library("aten", "IMPL").impl("linear", len, "CPU"),
        "kernel of no op": lambda: of.get_kernel(3, "CPU"),
        "kernel of no key": lambda: of.get_kernel("aten::sin", "CPUU"),
        "kernel for sparse": lambda: of.get_kernel("aten::sin", "SparseCPU"),
        "defined before": lambda: of.Library("aten", "DEF"),
        "another namespace": lambda: lib.impl("parity_other::f", lambda x: x, "CPU"),
        "no type": lambda: lib.define("f(Tensor a, asdf[] b) -> Tensor"),
        "a type of C": lambda: lib.define("f(int64_t a) -> Tensor"),
        "no device": lambda: of.impl(f"{NS}::f", "nothing"),
        "no definitions": lambda: of.Library(NS, "IMPL").define("f() -> ()"),
        "no arguments": lambda: call("a1"),
        "too many": lambda: call("a2", 1, 2, 3, 4),
        "one without a place": lambda: call("a3", x, 2, 3),
        "twice": lambda: call("a4", x, x=x),
        "unknown": lambda: call("a5", x, z=1),
        "misfit": lambda: call("a6", 3),
        "no overload": lambda: (
            define("a7.a"),
            define("a7.b", "(int x) -> Tensor"),
            op("a7")("z"),
        ),
        "default elsewhere": lambda: (define("a8"), lib.impl("a8", len, "CUDA"), op("a8")(x)),
        "no meta function": lambda: (define("a9"), lib.impl("a9", len, "CPU"), op("a9")(meta)),
        "negative size": lambda: (
            o := custom("a10", schema=ONE),
            o.register_fake(lambda x: x.new_empty(of.get_ctx().new_dynamic_size(min=-1))),
            of.opcheck(o._opoverload, (x,), test_utils="test_faketensor"),
        ),
        "no pair": lambda: custom("a11", lambda x: x, schema="(Tensor x) -> (Tensor, Tensor)")(x),
        "no list": lambda: custom("a12", lambda x: 3, schema="(Tensor x) -> Tensor[]")(x),
        "no list in a pair": lambda: custom(
            "a13", lambda x: (3, 3), schema="(Tensor x) -> (Tensor[], Tensor[])"
        )(x),
        "opcheck of an alias": lambda: check("b1", lambda x: x),
        "opcheck of aliases": lambda: check(
            "b2", lambda x: (y := x.clone(), y), "(Tensor x) -> (Tensor, Tensor)"
        ),
        "opcheck of a shape": lambda: check(
            "b3", lambda x: x.clone(), fake=lambda x: x.new_empty(1)
        ),
        "opcheck of a dtype": lambda: check("b4", lambda x: x.clone(), fake=lambda x: x.int()),
        "opcheck of a count": lambda: check(
            "b5", lambda x: [x.clone()], "(Tensor x) -> Tensor[]", lambda x: [x, x]
        ),
        "opcheck without shapes": lambda: check("b6", lambda x: x.clone(), test="test_faketensor"),
        "tag of a write": lambda: of.infer_schema(
            schema_maker(T), mutates_args=(), tags=[t.Tag.inplace]
        ),
        "opcheck compiled": lambda: check(
            "b7", lambda x: x.clone(), test="test_aot_dispatch_static"
        ),
    }
