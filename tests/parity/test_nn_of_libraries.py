"""What libraries take from `nn` beside its layers: methods to override, helpers, modules spread."""

from __future__ import annotations

import importlib
import warnings
from collections import namedtuple
from typing import Any

import pytest
from oracle import both, result_or_error

Pair = namedtuple("Pair", "a b")


def module(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.nn.{name}")


def test_convolutions_with_another_weight() -> None:
    def script(t: Any) -> Any:
        class Standardized(t.nn.Conv2d):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return self._conv_forward(x, self.weight * 2, self.bias)

        class Halved(t.nn.Conv1d):  # type: ignore[misc]
            def _conv_forward(self, x: Any, weight: Any, bias: Any) -> Any:
                return super()._conv_forward(x, weight / 2, None)

        made = t.nn.ConvTranspose1d(2, 3, 3, stride=2)
        x = t.rand(1, 2, 5)
        sizes = [None, [11], [1, 3, 12], [13], [1, 2, 3, 4]]
        args = ([2], [0], [3], 1)
        return (
            Standardized(2, 3, 3, padding=1, padding_mode="circular")(t.rand(1, 2, 5, 5)),
            Halved(2, 3, 3)(x),
            [result_or_error(lambda s=s: made._output_padding(x, s, *args)) for s in sizes],
            made(x, output_size=[12]),
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_parts_of_transformer_layers() -> None:
    def script(t: Any) -> Any:
        class Scaled(t.nn.TransformerEncoderLayer):  # type: ignore[misc]
            def _sa_block(self, x: Any, *rest: Any, **kwargs: Any) -> Any:
                return super()._sa_block(x, *rest, **kwargs) * 0.5

            def _ff_block(self, x: Any) -> Any:
                return super()._ff_block(x) * 2

        class Blind(t.nn.TransformerDecoderLayer):  # type: ignore[misc]
            def _mha_block(self, x: Any, mem: Any, *rest: Any) -> Any:
                return super()._mha_block(x, mem * 0, *rest)

        encoder, decoder = Scaled(4, 2, 8, dropout=0.0), Blind(4, 2, 8, dropout=0.0)
        x = t.rand(3, 2, 4)
        found = module(t, "modules.transformer")
        return (
            encoder(x),
            decoder(x, x),
            len(found._get_clones(encoder, 2)),
            found._get_seq_len(x, False),
            found._generate_square_subsequent_mask(2),
            found._detect_is_causal_mask(None, None, 3),
            result_or_error(lambda: found._get_activation_fn("tanh")),
        )

    both(script, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_what_recurrent_layers_check(kind: str) -> None:
    def script(t: Any) -> Any:
        layer = getattr(t.nn, kind)(2, 3, num_layers=2)
        x, h = t.rand(4, 5, 2), t.rand(2, 5, 3)
        state = (h, h) if kind == "LSTM" else h
        order = t.tensor([4, 3, 2, 1, 0])
        flat = [w.detach() * 2 for w in layer._flat_weights]
        before = layer(x)[0]
        layer._flat_weights = flat
        lent = layer(x)[0], layer._flat_weights[0]
        layer.double()
        return (
            layer.get_expected_hidden_size(x, None),
            layer.get_expected_hidden_size(x[0], t.tensor([5, 3])),
            result_or_error(lambda: layer.check_hidden_size(h, (2, 4, 3))),
            result_or_error(lambda: layer.check_forward_args(x.double(), state, None)),
            result_or_error(lambda: layer.check_forward_args(x[:, :4].double(), state, None)),
            result_or_error(lambda: layer.check_input(x[0], None)),
            layer.permute_hidden(state, order),
            layer.permute_hidden(state, None),
            before,
            lent,
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_instance_norm_of_samples() -> None:
    def script(t: Any) -> Any:
        layer = t.nn.InstanceNorm1d(2)
        x = t.rand(2, 5)
        return (
            layer._get_no_batch_dim(),
            layer._handle_no_batch_input(x),
            layer._apply_instance_norm(x[None]),
            result_or_error(lambda: layer._check_input_dim(x[0])),
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_items_of_containers() -> None:
    def script(t: Any) -> Any:
        row, items = t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh()), t.nn.ModuleList([t.nn.ReLU()])
        params = t.nn.ParameterList([t.ones(1), t.zeros(1)])
        return (
            row._get_item_by_idx(iter("ab"), -1),
            result_or_error(lambda: row._get_item_by_idx(iter("ab"), 2)),
            items._get_abs_string_index(-1),
            result_or_error(lambda: items._get_abs_string_index(1)),
            params._get_abs_string_index(-2),
            [name for name, _ in row._named_members(lambda m: m._modules.items())],
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_modules_where_pytorch_has_them() -> None:
    def script(t: Any) -> Any:
        m = module(t, "modules")
        places = {
            "batchnorm": "SyncBatchNorm LazyBatchNorm2d _NormBase _BatchNorm",
            "conv": "_ConvNd _ConvTransposeNd ConvTranspose2d LazyConv1d LazyConvTranspose3d",
            "activation": "MultiheadAttention",
            "container": "ParameterList ParameterDict",
            "linear": "LazyLinear NonDynamicallyQuantizableLinear",
            "instancenorm": "_InstanceNorm LazyInstanceNorm1d",
            "module": "_EXTRA_STATE_KEY_SUFFIX _IncompatibleKeys _global_forward_hooks _addindent",
            "utils": "_single _pair _triple _quadruple _ntuple _reverse_repeat_tuple",
        }
        utils = m.utils
        return (
            [hasattr(getattr(m, file), n) for file, names in places.items() for n in names.split()],
            m.conv.ConvTranspose2d is t.nn.ConvTranspose2d,
            utils._reverse_repeat_tuple((1, 2), 3),
            [
                result_or_error(lambda g=g: utils._list_with_default(*g))
                for g in (([None, 2], [5, 6, 7]), (3, [5]), ([1, 2], [3, 4]))
            ],
            m.module._EXTRA_STATE_KEY_SUFFIX,
            m.module._addindent("a\nb", 2),
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_synchronized_batch_norm_of_one_process() -> None:
    def script(t: Any) -> Any:
        net = t.nn.Sequential(
            t.nn.BatchNorm1d(2), t.nn.Sequential(t.nn.BatchNorm2d(2, affine=False))
        )
        weight = net[0].weight
        made = t.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        layer = t.nn.SyncBatchNorm(3)
        x = t.rand(4, 3, 2)
        y = layer(x)
        return (
            repr(made),
            made[0].weight is weight,
            list(made.state_dict()),
            y,
            layer.running_mean,
            layer.eval()(x),
            result_or_error(lambda: layer(x[0, 0])),
            result_or_error(lambda: layer(t.rand(2, 0, 3))),
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_spread_modules_without_a_gpu() -> None:
    def script(t: Any) -> Any:
        p = module(t, "parallel")
        s = module(t, "parallel.scatter_gather")
        x, layer, relu = t.ones(4, 2), t.nn.Linear(2, 1), t.nn.ReLU()
        held = t.nn.DataParallel(layer)
        copies = p.replicate(t.nn.Sequential(relu, relu), [0, 1])
        return (
            held(x) - layer(x),
            sorted(held.state_dict()),
            held.device_ids,
            result_or_error(lambda: s.scatter({"a": [x, 3]}, ["cpu"])),
            s.scatter((3, Pair(1, {"k": "v"}), [], None), [0, 1]),
            s.scatter_kwargs((3,), {"a": 4}, [0, 1]),
            s.scatter_kwargs((), {"a": 4}, [0, 1]),
            s.gather([{"a": None}, {"a": None}], 0),
            [
                result_or_error(call)
                for call in (
                    lambda: s.gather([x, x], "cpu"),
                    lambda: s.gather([[x], [x]], "cpu"),
                    lambda: p.replicate(layer, [0]),
                    lambda: p.replicate(layer, ["cpu"]),
                    lambda: p.data_parallel(layer, x),
                    lambda: module(t, "parallel.comm").reduce_add([x, x]),
                    lambda: module(t, "parallel.comm").reduce_add_coalesced([[x], [x]]),
                )
            ],
            [len(copies), copies[0] is not copies[1], copies[0][0] is copies[0][1]],
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_modules_called_in_threads() -> None:
    import pygrad as t

    seen = []

    class Note(t.nn.Module):
        def forward(self, x: Any, scale: float = 1.0) -> Any:
            seen.append(t.is_grad_enabled())
            if scale == 0:
                raise ValueError("scale")
            return x * scale

    modules: list[Any] = [Note(), Note()]
    with t.no_grad():
        found = t.nn.parallel.parallel_apply(
            modules, [(t.ones(1),), t.ones(1)], [{"scale": 2.0}, {"scale": 3.0}]
        )
    assert [x.item() for x in found] == [2.0, 3.0]
    assert seen == [False, False]
    with pytest.raises(ValueError, match="scale"):
        t.nn.parallel.parallel_apply(modules, [t.ones(1)] * 2, [{"scale": 0}, {}])


def test_gradients_of_convolutions() -> None:
    def script(t: Any) -> Any:
        g = module(t, "grad")
        found = []
        for dims in (1, 2, 3):
            x, w = t.rand(2, 4, *[5] * dims), t.rand(6, 2, *[3] * dims)
            how = (2, 1, 1, 2)
            y = getattr(t.nn.functional, f"conv{dims}d")(x, w, None, *how)
            found.append(getattr(g, f"conv{dims}d_input")(x.shape, w, y, *how))
            found.append(getattr(g, f"conv{dims}d_weight")(x, w.shape, y, *how))
        return found

    both(script, rtol=1e-4, atol=1e-4)


def test_gradients_of_each_sample() -> None:
    def script(t: Any) -> Any:
        sampled = module(t, "utils._per_sample_grad").call_for_per_sample_grads
        net = t.nn.Sequential(
            t.nn.Conv1d(2, 3, 2),
            t.nn.ReLU(),
            t.nn.GroupNorm(1, 3),
            t.nn.Flatten(),
            t.nn.Linear(9, 2),
        )
        embedding = t.nn.Embedding(5, 2)
        found = []
        x = t.rand(3, 2, 4)
        for reduction in ("sum", "mean"):
            y = sampled(net, loss_reduction=reduction)(x)
            getattr(y * y, reduction)(dim=0).sum().backward()
            found += [y, *[p.grad_sample for p in net.parameters()]]
            found.append([p.grad is None for p in net.parameters()])
            for p in net.parameters():
                p.grad_sample = None
        sampled(embedding)(t.tensor([[0, 1], [3, 3]])).pow(2).sum().backward()
        found.append(embedding.weight.grad_sample)
        found.append(result_or_error(lambda: sampled(embedding)).partition("parameter of")[0])
        errors = [
            lambda: sampled(3),
            lambda: sampled(net, batch_size=2.5),
            lambda: sampled(net, batch_size=0),
            lambda: sampled(net, loss_reduction="max"),
            lambda: sampled(t.nn.Bilinear(2, 2, 1))(t.rand(3, 2), t.rand(2, 2)),
        ]
        return found, [result_or_error(e) for e in errors]

    with warnings.catch_warnings(action="ignore"):
        both(script, rtol=1e-4, atol=1e-5)


def test_other_parameters_for_a_while() -> None:
    def script(t: Any) -> Any:
        stateless = module(t, "utils.stateless")
        layer = t.nn.BatchNorm1d(2)
        mine = {"weight": t.full((2,), 2.0), "running_mean": t.zeros(2)}
        x = t.rand(4, 2)
        with stateless._reparametrize_module(layer, mine):
            y = layer(x)
        accessor = module(t, "utils._named_member_accessor").NamedMemberAccessor(
            t.nn.Sequential(layer)
        )
        kept = accessor.swap_tensor("0.bias", t.ones(2))
        old, missing = accessor.swap_tensors_dict({"0.weight": t.zeros(2)})
        return (
            y,
            layer.weight,
            mine["running_mean"],
            layer.running_mean,
            kept,
            layer.bias,
            old,
            missing,
            sorted(accessor.check_keys(["0.weight", "other"])[1]),
            accessor.get_tensor("0.running_var"),
            result_or_error(lambda: accessor.get_tensor("0.other")),
            result_or_error(lambda: accessor.swap_tensor("0.other", t.ones(1))),
            result_or_error(lambda: accessor.swap_submodule("1", layer)),
            accessor.get_submodule("0") is layer,
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_memory_format_of_weights() -> None:
    def script(t: Any) -> Any:
        net = t.nn.Sequential(t.nn.Conv2d(2, 3, 2), t.nn.ConvTranspose3d(2, 3, 2))
        u = module(t, "utils")
        u.convert_conv2d_weight_memory_format(net, t.channels_last)
        u.convert_conv3d_weight_memory_format(net, t.channels_last_3d)
        return [p.stride() for p in net.parameters()]

    both(script, rtol=1e-4, atol=1e-5)


def test_arguments_of_tensors() -> None:
    def script(t: Any) -> Any:
        given = [
            None,
            {},
            {"device": "cpu", "factory_kwargs": {"dtype": t.float64}},
            {"other": 1},
            {"device": "cpu", "factory_kwargs": {"device": "cpu"}},
        ]
        return [
            result_or_error(lambda g=g: sorted(map(str, t.nn.factory_kwargs(g).items())))
            for g in given
        ]

    both(script, rtol=1e-4, atol=1e-5)


def test_parts_of_attention() -> None:
    def script(t: Any) -> Any:
        f = t.nn.functional
        q, k = t.rand(3, 2, 4), t.rand(5, 2, 4)
        w, b = t.rand(12, 4), t.rand(12)
        bools, ints = t.ones(2, 2, dtype=t.bool), t.ones(2, 2, dtype=t.int64)
        none: Any = None
        checked = [
            (q, k, k, none, none),
            (q[0], k[0], k[0], none, none),
            (q, k[0], k, none, none),
            (q[0], k[0], k[0], bools, none),
            (q, k, k, bools[0], none),
            (q, k, k, none, bools[0]),
            (q[0], k[0], k[0], none, t.ones(1, 2, 2)),
            (q[0, 0], k, k, none, none),
        ]
        return (
            f._in_projection_packed(q, q, q, w, b),
            f._in_projection_packed(q, k, k, w, b),
            f._in_projection_packed(q, k, k * 2, w),
            f._in_projection(q, k, k, *w.split([4, 4, 4]), *b.split([4, 4, 4])),
            result_or_error(lambda: f._in_projection(q, k, k, w, w, w)),
            result_or_error(lambda: f._in_projection(q, k, k, *w.split([4, 4, 4]), b)),
            [result_or_error(lambda c=c: f._mha_shape_check(*c, 2)) for c in checked],
            f._canonical_mask(bools, "mask", none, "", t.float64),
            f._canonical_mask(none, "mask", none, "", t.float64),
            result_or_error(lambda: f._canonical_mask(ints, "mask", none, "", t.float64)),
            f._none_or_dtype(none) is none,
            result_or_error(lambda: f._none_or_dtype(3)),
            [f._get_softmax_dim("softmax", n, 3) for n in range(5)],
            [
                result_or_error(lambda s=s: f._verify_batch_size(s))
                for s in ([1, 2], [1, 2, 3], [2, 3])
            ],
            [
                result_or_error(lambda s=s: f._verify_spatial_size(s))
                for s in ([1, 2, 1], [1, 2, 3])
            ],
        )

    with warnings.catch_warnings(action="ignore"):
        both(script, rtol=1e-5, atol=1e-6)
