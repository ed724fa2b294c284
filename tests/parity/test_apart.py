"""Ops that few programs call, beside PyTorch's: results at the edges, and words of errors."""

from __future__ import annotations

from typing import Any

from oracle import both, tried, warned


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
            tried(lambda: take(x, mask, [None, at[0]], 7.0)),
            tried(lambda: take(x, mask, [at[0].double(), at[1]], 7.0)),
            tried(lambda: add(x, mask, [at[0].double(), at[1]], v)),
            tried(lambda: take(x, mask, at * 2, 7.0)),
            tried(lambda: take(x, mask, [], 7.0)),
            tried(lambda: add(x, mask, at, v.float())),
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
            tried(lambda: cat([x, tall], 1, 2)),
            tried(lambda: cat([x, wide.double()], 1, 2)),
            tried(lambda: cat([], 1, 2)),
            tried(lambda: cat([x], 0, 0)),
            tried(lambda: cat([x], 2, 1)),
            tried(lambda: cat([x, t.ones(3)], -1, 1)),
            tried(lambda: cat([x, t.ones(3)], 1, 1)),
            tried(lambda: cat([t.ones(3, 0)], 0, 1)),
            tried(lambda: cat([x.requires_grad_()], 0, 2).sum().backward()),
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
                tried(lambda op=op, a=a: op(*a))
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
            tried(lambda: pool(x, 2, (3, 3, 4))),
            y.grad_fn.name(),
            pool(x, 2, 0, _random_samples=s),
            tried(lambda: pool(x, 2)),
            tried(lambda: pool(x, 2, output_ratio=(0.5, 0.5))),
            tried(lambda: pool(x, 2, (2, 2))),
            tried(lambda: pool(x, (2, 2), 2)),
            tried(lambda: pool(x[0, 0], 2, 2)),
            tried(lambda: pool(x[0, 0], 2, 2, _random_samples=s)),
            tried(lambda: pool(x, 2, 9)),
            tried(lambda: pool(x, 2, (2, 9, 9))),
            tried(lambda: pool(x, 2, (2, 9, 2))),
            tried(lambda: pool(x, 2, 2, _random_samples=s.float())),
            tried(lambda: pool(x, 2, 2, _random_samples=s[0])),
            tried(lambda: pool(x, 2, 2, _random_samples=s[:, :1])),
            tried(lambda: pool(x, 2, 2, _random_samples=s[:, :, :2])),
            tried(lambda: pool(x, 2, 2, _random_samples=s[:0])),
            tried(lambda: pool(x.long(), 2, 2, _random_samples=s.long())),
            tried(lambda: pool(x[:, :, :0], 2, 2, _random_samples=s)),
            tried(lambda: t.nn.FractionalMaxPool3d(2)),
            tried(lambda: t.nn.FractionalMaxPool3d(2, 2, 0.5)),
            tried(lambda: t.nn.FractionalMaxPool3d(2, output_ratio=1.5)),
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
            tried(lambda: loss(x[None], w, y)),
            tried(lambda: loss(x, w[0], y)),
            tried(lambda: loss(x[:, :2], w, y)),
            tried(lambda: loss(x, w, y, linear_bias=w)),
            tried(lambda: loss(x, w, y, linear_bias=w[:1, 0])),
            tried(lambda: loss(x[0], many, each)),
            tried(lambda: loss(x, w, (x @ w.T).softmax(1), ignore_index=1)),
            tried(lambda: loss(x, w, y, reduction="average")),
            tried(lambda: loss(x, w, y + 7)),
            tried(lambda: loss(x, w, y, label_smoothing=2.0)),
        ]

    both(script)


def test_linear_cross_entropy_warns_of_options_that_do_nothing() -> None:
    def script(t: Any) -> Any:
        loss = t.nn.functional.linear_cross_entropy
        x, w, y = t.ones(2, 3), t.ones(4, 3), t.tensor([1, 2])
        options = getattr(t.nn, "LinearCrossEntropyOptions", object)()
        return warned(lambda: loss(x, w, y, label_smoothing=0.5, options=options)) + warned(
            lambda: loss(x, w, y, options=options)
        )

    both(script)
