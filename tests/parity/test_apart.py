"""Ops that few programs call, beside PyTorch's: results at the edges, and words of errors."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import both, result_or_error, warnings_of

import pygrad


def test_masked_indices_may_lie_anywhere_where_the_mask_is_false() -> None:
    def script(t: Any) -> Any:
        x = t.arange(20, dtype=t.float64).reshape(4, 5).requires_grad_()
        at = [t.tensor([0, 2, 9]), t.tensor([-3, 1, 9])]
        mask = t.tensor([True, True, False])
        take, add = t._unsafe_masked_index, t._unsafe_masked_index_put_accumulate
        y = take(x, mask, at, 7.0)
        v = t.ones(3, dtype=t.float64, requires_grad=True)
        z = add(x, mask, at, v)
        return [
            y,
            z,
            *t.autograd.grad(y.sin().sum(), x),
            *t.autograd.grad(z.sin().sum(), (x, v)),
            take(x, mask.long(), at, 7),
            take(x.detach().long(), mask, [each.int() for each in at], 2.5),
            take(x, mask[:, None], at[:1], 0.0),
            take(t.zeros(0), mask, at[:1], 7.0),
            add(t.zeros(0), mask, at[:1], t.ones(3)),
            result_or_error(lambda: take(x, mask, [None, at[0]], 7.0)),
            result_or_error(lambda: take(x, mask, [at[0].double(), at[1]], 7.0)),
            result_or_error(lambda: add(x, mask, [at[0].double(), at[1]], v)),
            result_or_error(lambda: take(x, mask, at * 2, 7.0)),
            result_or_error(lambda: take(x, mask, [], 7.0)),
            result_or_error(lambda: add(x, mask, at, v.float())),
            y.grad_fn.name(),
            y.grad_fn._saved_self_sym_sizes,
            z.grad_fn.name(),
        ]

    both(script)


def test_chunk_cat() -> None:
    def script(t: Any) -> Any:
        cat, x = t._chunk_cat, t.arange(12.0).reshape(3, 4)
        tall, wide = t.ones(5, 2), t.ones(3, 2)
        return [
            cat([x, tall], 0, 2),
            cat([x, wide], 1, 3),
            cat([x], -1, 3),
            cat([t.ones(3, 2, 2), t.ones(3, 3, 2)], 1, 2),
            cat([x, t.ones(3)], 0, 1),
            cat([t.ones(3)], 0, 2, out=t.zeros(2, 2).double()),
            result_or_error(lambda: cat([x, tall], 1, 2)),
            result_or_error(lambda: cat([x, wide.double()], 1, 2)),
            result_or_error(lambda: cat([], 1, 2)),
            result_or_error(lambda: cat([x], 0, 0)),
            result_or_error(lambda: cat([x], 2, 1)),
            result_or_error(lambda: cat([x, t.ones(3)], -1, 1)),
            result_or_error(lambda: cat([x, t.ones(3)], 1, 1)),
            result_or_error(lambda: cat([t.ones(3, 0)], 0, 1)),
            result_or_error(lambda: cat([x.requires_grad_()], 0, 2).sum().backward()),
        ]

    both(script)


def test_resizing_with_antialias_by_sizes_and_factors() -> None:
    def script(t: Any) -> Any:
        x = t.arange(24.0).reshape(1, 1, 4, 6).sin().requires_grad_()
        found = []
        for op in (t._C._nn._upsample_bilinear2d_aa, t._C._nn._upsample_bicubic2d_aa):
            y = op(x, [2, 3], False)
            found += [y, *t.autograd.grad(y.sum(), x), y.grad_fn.name()]
            found += [op(x, (5, 3), True), op(x, (2, 3), False, 0.6, 0.55)]
            found += [op(x, None, False, [0.6, 0.55])]
            found += [
                result_or_error(lambda op=op, a=a: op(*a))
                for a in [
                    (x[0], [2, 3], False),
                    (x, [2], False),
                    (x, [2, 0], False),
                    (x.long(), [2, 2], False),
                    (x[:, :0], [2, 2], False),
                    (x, None, False, None),
                    (x, [2, 2], False, [1.0, 1.0]),
                    (x, None, False, [0.5]),
                ]
            ]
        return found

    both(script, rtol=1e-5, atol=1e-6)


def test_fractional_pooling_of_volumes() -> None:
    def script(t: Any) -> Any:
        pool = t.nn.functional.fractional_max_pool3d
        x = t.arange(240, dtype=t.float64).reshape(1, 2, 4, 5, 6).sin()
        s = t.tensor([[[0.1, 0.5, 0.9], [0.3, 0.2, 0.7]]], dtype=t.float64)
        y = pool(x.clone().requires_grad_(), 2, (2, 3, 2), _random_samples=s)
        return [
            *pool(x, 2, (2, 3, 2), return_indices=True, _random_samples=s),
            *pool(x[0], (1, 2, 3), output_ratio=0.5, return_indices=True, _random_samples=s),
            pool(x, 2, (2, 3, 4)),
            result_or_error(lambda: pool(x, 2, (3, 3, 4))),
            y.grad_fn.name(),
            pool(x, 2, 0, _random_samples=s),
            result_or_error(lambda: pool(x, 2)),
            result_or_error(lambda: pool(x, 2, output_ratio=(0.5, 0.5))),
            result_or_error(lambda: pool(x, 2, (2, 2))),
            result_or_error(lambda: pool(x, (2, 2), 2)),
            result_or_error(lambda: pool(x[0, 0], 2, 2)),
            result_or_error(lambda: pool(x[0, 0], 2, 2, _random_samples=s)),
            result_or_error(lambda: pool(x, 2, 9)),
            result_or_error(lambda: pool(x, 2, (2, 9, 9))),
            result_or_error(lambda: pool(x, 2, (2, 9, 2))),
            result_or_error(lambda: pool(x, 2, 2, _random_samples=s.float())),
            result_or_error(lambda: pool(x, 2, 2, _random_samples=s[0])),
            result_or_error(lambda: pool(x, 2, 2, _random_samples=s[:, :1])),
            result_or_error(lambda: pool(x, 2, 2, _random_samples=s[:, :, :2])),
            result_or_error(lambda: pool(x, 2, 2, _random_samples=s[:0])),
            result_or_error(lambda: pool(x.long(), 2, 2, _random_samples=s.long())),
            result_or_error(lambda: pool(x[:, :, :0], 2, 2, _random_samples=s)),
            result_or_error(lambda: t.nn.FractionalMaxPool3d(2)),
            result_or_error(lambda: t.nn.FractionalMaxPool3d(2, 2, 0.5)),
            result_or_error(lambda: t.nn.FractionalMaxPool3d(2, output_ratio=1.5)),
        ]

    both(script)


def test_linear_cross_entropy() -> None:
    def script(t: Any) -> Any:
        loss = t.nn.functional.linear_cross_entropy
        x = t.arange(12, dtype=t.float64).reshape(4, 3).sin()
        w = t.arange(15, dtype=t.float64).reshape(5, 3).cos()
        y = t.tensor([1, 2, 1, 0])
        many, each = t.stack([w, w], 1), t.stack([y, y], 1)
        return [
            loss(x, w, y, ignore_index=1, reduction="none"),
            loss(x, w, t.tensor([1, 2, -100, 0]), linear_bias=w[:, 0]),
            loss(x, many, each, weight=w[:, 0] + 2, label_smoothing=0.1),
            loss(x[0], w, y[0]),
            loss(x, w, (x @ w.T).softmax(1)),
            result_or_error(lambda: loss(x[None], w, y)),
            result_or_error(lambda: loss(x, w[0], y)),
            result_or_error(lambda: loss(x[:, :2], w, y)),
            result_or_error(lambda: loss(x, w, y, linear_bias=w)),
            result_or_error(lambda: loss(x, w, y, linear_bias=w[:1, 0])),
            result_or_error(lambda: loss(x[0], many, each)),
            result_or_error(lambda: loss(x, w, (x @ w.T).softmax(1), ignore_index=1)),
            result_or_error(lambda: loss(x, w, y, reduction="average")),
            result_or_error(lambda: loss(x, w, y + 7)),
            result_or_error(lambda: loss(x, w, y, label_smoothing=2.0)),
        ]

    both(script)


def test_linear_cross_entropy_warns_of_options_that_do_nothing() -> None:
    def script(t: Any) -> Any:
        loss = t.nn.functional.linear_cross_entropy
        x, w, y = t.ones(2, 3), t.ones(4, 3), t.tensor([1, 2])
        options = getattr(t.nn, "LinearCrossEntropyOptions", object)()
        return warnings_of(
            lambda: loss(x, w, y, label_smoothing=0.5, options=options)
        ) + warnings_of(lambda: loss(x, w, y, options=options))

    both(script)


def test_segment_reduce() -> None:
    def script(t: Any) -> Any:
        reduce, nan = t.segment_reduce, float("nan")
        x = t.tensor([[1.0, 2], [3, 4], [nan, 6], [7, 8], [7, 9], [0, 0]], dtype=t.float64)
        lengths, ends = t.tensor([2, 0, 4]), t.tensor([0, 2, 2, 6])
        leaf, found = x.clone().requires_grad_(), []
        for how in ("sum", "mean", "max", "min", "prod", "amax", "amin"):
            for initial in (None, 2.5, nan):
                y = reduce(leaf, how, lengths=lengths, initial=initial)
                found += [y, reduce(x, how, offsets=ends, initial=initial), y.grad_fn.name()]
                found += [y.grad_fn._saved_reduce, y.grad_fn._saved_axis]
                found += t.autograd.grad(y.sum(), leaf)
        cube = t.arange(24, dtype=t.float64).reshape(2, 4, 3)
        rows, row_ends = t.tensor([[1, 3], [0, 4]]), t.tensor([[0, 3], [2, 4]])
        return [
            *found,
            *(reduce(cube, how, lengths=rows, axis=1) for how in ("sum", "mean", "max", "prod")),
            reduce(cube, "sum", offsets=row_ends, axis=-2),
            reduce(cube.transpose(0, 1), "sum", lengths=t.tensor([1, 3])),
            reduce(x, "sum", lengths=t.tensor([2, 1]), unsafe=True),
            reduce(x[:0], "max", lengths=t.tensor([0, 0], dtype=t.int32)),
            reduce(x.float(), "mean", lengths=lengths),
        ]

    both(script)


def test_segment_reduce_wrongly_called() -> None:
    def script(t: Any) -> Any:
        x, lengths = t.ones(5, 2, requires_grad=True), t.tensor([2, 0, 3])

        def reduce(how: str = "sum", data: Any = x, **options: Any) -> Any:
            return result_or_error(lambda: t.segment_reduce(data, how, **options))

        return [
            reduce(),
            reduce("product", lengths=lengths),
            reduce(lengths=t.tensor([2, 1])),
            reduce(lengths=t.tensor([2, -1, 4])),
            reduce(lengths=t.tensor([2, 4])),
            reduce(lengths=lengths.float()),
            reduce(lengths=lengths.float(), unsafe=True),
            reduce(offsets=lengths.float()),
            reduce(lengths=lengths, axis=1),
            reduce(lengths=lengths, axis=-1),
            reduce(lengths=lengths, axis=2),
            reduce(lengths=lengths[None]),
            reduce(offsets=lengths[None]),
            reduce(offsets=t.tensor([0, 3, 2, 5])),
            reduce(indices=lengths),
            reduce(data=x.long(), lengths=lengths),
            reduce(data=x.sum(), lengths=lengths),
            reduce(lengths=lengths[:0]),
        ]

    both(script)


def test_segments_lie_within_the_data() -> None:
    """PyTorch reads what lies behind it."""
    for options in (
        {"lengths": pygrad.tensor([2, 9]), "unsafe": True},
        {"offsets": pygrad.tensor([0, 2, 9])},
        {"offsets": pygrad.tensor([-3, 2])},
        {"lengths": pygrad.tensor([2, 2**62]), "unsafe": True},
    ):
        with pytest.raises(IndexError, match="lies outside of data"):
            pygrad.segment_reduce(pygrad.ones(4), "sum", **options)
    with pytest.raises(RuntimeError, match="same sizes before axis"):
        pygrad.segment_reduce(pygrad.ones(2, 4), "sum", lengths=pygrad.tensor([[1, 3]]), axis=1)


def test_ties_share_the_gradient_of_a_segment_whatever_its_sign() -> None:
    """PyTorch divides positive ones alone."""
    x = pygrad.tensor([1.0, 1.0, 0.5], requires_grad=True)
    y = pygrad.segment_reduce(x, "max", lengths=pygrad.tensor([3]))
    y.backward(pygrad.tensor([-1.0]))
    assert x.grad is not None
    assert x.grad.tolist() == [-0.5, -0.5, 0.0]


def test_hash_tensor() -> None:
    def script(t: Any) -> Any:
        of, x = t.hash_tensor, t.arange(6.0).reshape(2, 3)
        types = [t.float64, t.float16, t.bfloat16, t.int64, t.int8, t.uint8, t.bool]
        volume = t.arange(24).reshape(2, 3, 4).transpose(0, 2)

        def bits(*args: Any, **options: Any) -> Any:
            y = result_or_error(lambda: of(*args, **options))
            return y if isinstance(y, str) else [y.view(t.int64), str(y.dtype), y.requires_grad]

        return [
            *(bits(x.to(dtype) - (dtype == t.int8)) for dtype in types),
            *(bits(x, dim) for dim in (0, -1, (), [0, 1], 5, (0, 0))),
            bits(x, 1, keepdim=True),
            bits(x, keepdim=True),
            bits(volume, (0, -1)),
            bits(t.tensor([float("nan"), -0.0])),
            bits(x.clone().requires_grad_()),
            bits(x, mode=1),
            bits(x.to(t.complex64)),
            bits(t.zeros(0)),
            bits(t.zeros(0, 3), 0),
            bits(t.zeros(2, 0), 0),
            bits(t.zeros(2, 0), 1),
            bits(x, out=t.zeros((), dtype=t.int64)),
        ]

    both(script)


def test_types_that_have_no_kernel_are_refused() -> None:
    def script(t: Any) -> Any:
        half, ones = t.ones(3, 3).half(), t.ones(3, dtype=t.int32)
        lengths = t.tensor([1, 2])
        mask, number = t.tensor([True, False]), t.ones(2).to(t.complex64)
        return [
            *(
                result_or_error(lambda f=f, x=x: f(x))
                for f in (t.special.bessel_j0, t.special.bessel_y1, t.special.airy_ai)
                for x in (half, half.bfloat16(), half.to(t.complex64))
            ),
            result_or_error(lambda: t.geqrf(half)),
            result_or_error(lambda: t.ormqr(half, half[0], half)),
            result_or_error(lambda: t.linalg.ldl_factor(half)),
            result_or_error(lambda: t.linalg.ldl_solve(half, ones, half)),
            result_or_error(
                lambda: t._C._nn._upsample_bilinear2d_aa(half[None, None], [2, 2], False)
            ),
            result_or_error(lambda: t.segment_reduce(number, "sum", lengths=lengths)),
            t.segment_reduce(half, "mean", lengths=lengths),
            result_or_error(lambda: t.masked.amax(number, mask=mask)),
            result_or_error(lambda: t.masked.norm(number, -float("inf"), mask=mask)),
        ]

    both(script)


def test_grouped_mm() -> None:
    def script(t: Any) -> Any:
        product, made = t.nn.functional.grouped_mm, []
        t.manual_seed(0)
        ends = t.tensor([4, 4, 8], dtype=t.int32)  # the second group is empty
        for a, b, offs in (
            (t.randn(8, 8), t.randn(3, 8, 16), ends),
            (t.randn(3, 16, 8), t.randn(8, 8), ends),
            (t.randn(8, 8), t.randn(8, 16), ends),
            (t.randn(3, 16, 8), t.randn(3, 8, 8), None),
        ):
            a, b = a.requires_grad_(), b.requires_grad_()
            y = product(a, b, offs=offs)
            da, db = t.autograd.grad((y * y).sum(), (a, b), create_graph=True)
            made += [y, y.grad_fn.name(), da, db]
            made += t.autograd.grad((da * da).sum() + (db * db).sum(), (a, b))
            made += [product(a.bfloat16(), b.bfloat16(), offs=offs)]
        return made

    both(script, rtol=1e-3, atol=1e-3)


def test_grouped_mm_wrongly_called() -> None:
    def script(t: Any) -> Any:
        ends = t.tensor([2, 6], dtype=t.int32)
        right = {"input": t.ones(6, 8), "mat2": t.ones(2, 8, 8), "offs": ends}

        def reduce(**given: Any) -> Any:
            return result_or_error(lambda: t._grouped_mm(**(right | given)))

        return [
            reduce(offs=None),
            reduce(offs=ends.long()),
            reduce(offs=ends[:1]),
            reduce(offs=ends[None]),
            reduce(input=t.ones(2, 4, 8)),
            reduce(input=t.ones(3, 4, 8), offs=None),
            reduce(input=t.ones(2, 4, 4), offs=None),
            reduce(input=t.ones(8)),
            reduce(mat2=t.ones(8)),
            reduce(mat2=t.ones(2, 4, 8)),
            reduce(input=t.ones(6, 8, dtype=t.float64)),
            reduce(mat2=t.ones(2, 8, 8, dtype=t.int64)),
            reduce(input=t.ones(6, 8, dtype=t.bfloat16)),
            reduce(bias=t.ones(8)),
            reduce(out_dtype=t.bfloat16),
        ]

    both(script)


def test_what_lies_behind_the_groups_is_zero() -> None:
    """PyTorch leaves what was in memory."""
    product = pygrad.nn.functional.grouped_mm
    for ends in ([1, 2], [2, 1], [-3, 2], [2, -9]):
        y = product(
            pygrad.ones(4, 4), pygrad.ones(2, 4, 4), offs=pygrad.tensor(ends, dtype=pygrad.int32)
        )
        assert y[2:].tolist() == [[0.0] * 4] * 2
    product(pygrad.ones(4, 4), pygrad.ones(1, 4, 4), offs=pygrad.tensor([99], dtype=pygrad.int32))
