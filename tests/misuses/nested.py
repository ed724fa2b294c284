"""Misuses of nested tensors."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any


def misuses(t: Any) -> dict[str, Callable[[], Any]]:
    """Misuses by a name."""
    of, F, J, S = t.nested, t.nn.functional, t.jagged, t.strided
    views = importlib.import_module(f"{t.__name__}.nested._internal.nested_tensor")

    def rows(*lengths: int, width: int = 2, **options: Any) -> list[Any]:
        return [t.ones(n, width, **options) for n in lengths]

    def jagged(*lengths: int, width: int = 2, **options: Any) -> Any:
        return of.nested_tensor(rows(*lengths, width=width), layout=J, **options)

    def strided(*lengths: int, width: int = 2, **options: Any) -> Any:
        return of.nested_tensor(rows(*lengths, width=width), **options)

    def heads(*lengths: int) -> Any:
        return of.nested_tensor([t.ones(n, 2, 3) for n in lengths], layout=J).transpose(1, 2)

    def blocks(*lengths: int) -> Any:
        return of.nested_tensor([t.ones(2, n, 3) for n in lengths])

    def holes() -> Any:
        return of.nested_tensor_from_jagged(
            t.ones(6, 2), offsets=t.tensor([0, 3, 6]), lengths=t.tensor([1, 2])
        )

    def turned(x: Any) -> Any:
        return x.transpose(1, 2)

    def view_of(buffer: Any, *tables: Any) -> Any:
        return t._nested_view_from_buffer(buffer, *map(t.tensor, tables))

    j, s, wide = jagged(1, 3), strided(1, 3), blocks(2, 4)
    offsets = t.tensor([0, 1, 4])
    attend = F.scaled_dot_product_attention

    return {
        # How they are made.
        "list of another type": lambda: of.as_nested_tensor(3, layout=J),
        "vector as nested": lambda: of.as_nested_tensor(t.ones(2), layout=J),
        "nested of another layout": lambda: of.as_nested_tensor(j, layout=S),
        "layout that is none": lambda: of.as_nested_tensor(rows(1, 2), layout=t.sparse_coo),
        "list in a layout that is none": lambda: of.nested_tensor(rows(1), layout=t.sparse_coo),
        "dtypes": lambda: views.jagged_from_list([t.ones(1, 2), t.ones(1, 2).int()], None),
        "devices": lambda: views.jagged_from_list(
            [t.ones(1, 2), t.ones(1, 2, device="meta")], None
        ),
        "ranks": lambda: of.nested_tensor([t.ones(1, 2), t.ones(2)], layout=J),
        "strided ranks": lambda: of.nested_tensor([t.ones(1, 2), t.ones(2)]),
        "widths": lambda: of.nested_tensor([t.ones(1, 2), t.ones(1, 3, 2)], layout=J),
        "two ragged dimensions": lambda: of.nested_tensor([t.ones(1, 2), t.ones(2, 3)], layout=J),
        "on meta": lambda: of.nested_tensor(rows(1, 2), device="meta", layout=J),
        "numbers as entries": lambda: of.nested_tensor([t.tensor(1.0)], layout=J),
        "no offsets": lambda: of.nested_tensor_from_jagged(t.ones(4, 2)),
        "offsets of another type": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=[0, 4]
        ),
        "values that are nested": lambda: of.nested_tensor_from_jagged(j, offsets=offsets),
        "narrow from a word": lambda: of.narrow(t.ones(2, 3), 1, "0", 1, layout=J),
        "narrow of strided by tensors": lambda: of.narrow(
            t.ones(2, 3), 1, t.tensor([0, 1]), 1, layout=S
        ),
        "narrow in a layout that is none": lambda: of.narrow(
            t.ones(2, 3), 1, 0, 1, layout=t.sparse_coo
        ),
        "narrow of another dimension": lambda: of.narrow(t.ones(2, 3, 4), 2, 0, 1, layout=J),
        "masked select of sparse": lambda: of.masked_select(
            t.ones(2, 3).to_sparse(), t.ones(2, 3).bool()
        ),
        "masked select by sparse": lambda: of.masked_select(
            t.ones(2, 3), t.ones(2, 3).bool().to_sparse()
        ),
        "masked select of a cube": lambda: of.masked_select(
            t.ones(2, 3, 4), t.ones(2, 3, 4).bool()
        ),
        "mask of numbers": lambda: t._nested_tensor_from_mask(t.ones(2, 3, 4), t.ones(2, 3)),
        "mask of one dimension": lambda: t._nested_tensor_from_mask(
            t.ones(2, 3, 4), t.ones(3).bool()
        ),
        "mask of a matrix": lambda: t._nested_tensor_from_mask(t.ones(2, 3), t.ones(2, 3).bool()),
        "mask of another size": lambda: t._nested_tensor_from_mask(
            t.ones(2, 3, 4), t.ones(2, 2).bool()
        ),
        "mask with gaps": lambda: t._nested_tensor_from_mask(
            t.ones(1, 3, 4), t.tensor([[True, False, True]])
        ),
        # Sizes and dimensions.
        "dimension": lambda: j.size(3),
        "strided dimension": lambda: s.size(3),
        "strided sizes": lambda: s.size(),
        "strided ragged size": lambda: s.size(1),
        "strided length": lambda: len(s),
        "ragged size times itself": lambda: j.size(1) * j.size(1),
        "ragged size times a fraction": lambda: j.size(1) * 1.5,
        "ragged size beside a number": lambda: j.size(1) >= 5,
        "number beside a ragged size": lambda: j.size(1) <= 5,
        "ragged sizes of two tensors": lambda: j.size(1) >= jagged(1, 3).size(1),
        "permute of too few": lambda: j.permute(0, 1),
        "permute of the batch": lambda: j.permute(1, 0, 2),
        "T": lambda: j.T,
        "unsqueeze of the batch": lambda: j.unsqueeze(0),
        "strided unsqueeze of the batch": lambda: s.unsqueeze(0),
        "squeeze of all": lambda: j.squeeze(),
        "squeeze of the batch": lambda: j.squeeze(0),
        "strided squeeze of all": lambda: s.squeeze(),
        "strided squeeze of the batch": lambda: s.squeeze(0),
        "strided squeeze of numbers": lambda: of.nested_tensor([t.ones(1), t.ones(1)]).squeeze(1),
        "transpose of the batch": lambda: j.transpose(0, 1),
        "strided transpose of the batch": lambda: s.transpose(0, 1),
        "view without sizes": lambda: j.view(),
        "view as a dtype": lambda: j.view(t.int32),
        "view of another batch": lambda: j.view(3, -1, 2),
        "view of another ragged size": lambda: j.view(2, jagged(2, 2).size(1), 2),
        "view without a ragged size": lambda: j.view(2, 4, 2),
        "view with another size before": lambda: heads(1, 2).view(2, 3, -1, 3),
        "view that moves the ragged size": lambda: heads(1, 2).view(2, -1, 2, 3),
        "strided view of nothing": lambda: s.reshape(()),
        "strided view of no entries": lambda: of.nested_tensor([]).reshape(0, 1),
        "strided view of another batch": lambda: s.reshape(3, -1, 2),
        "strided view with two unknown sizes": lambda: s.reshape(2, -1, -1, 2),
        "strided view of a negative size": lambda: s.reshape(2, -2, 2),
        "strided view that infers": lambda: s.reshape(2, 1, 2, -1),
        "strided view of another number": lambda: s.reshape(2, -1, 3),
        "strided view of turned entries": lambda: turned(wide).view(2, -1),
        "expand to fewer": lambda: j.expand(2, -1),
        "expand of the ragged size": lambda: j.expand(2, 7, 2),
        "flatten backwards": lambda: heads(1, 2).flatten(3, 1),
        "flatten of the batch": lambda: j.flatten(0, 1),
        "unflatten of the batch": lambda: j.unflatten(0, (1, 2)),
        "unbind of a dimension": lambda: j.unbind(1),
        "strided unbind of a dimension": lambda: s.unbind(1),
        "strided select too far": lambda: s.select(2, 5),
        "select too far": lambda: j.select(0, 5),
        "select of the ragged dimension": lambda: j.select(1, 0),
        "index by a mask": lambda: j[[True, False]],
        "index by too many": lambda: j[0, 0, 0, 0],
        "split without a size": lambda: j.split(),
        "split of the ragged dimension": lambda: j.split(1, 1),
        "strided split by a number": lambda: s.split(1, 2),
        "strided split of another sum": lambda: s.split_with_sizes([1, 2], 2),
        "strided split of entries": lambda: s.split_with_sizes([1, 2], 1),
        "chunk into none": lambda: j.chunk(0, 0),
        "chunk of holes": lambda: holes().chunk(2, 0),
        "chunk of the ragged dimension": lambda: j.chunk(2, 1),
        "strided chunk into none": lambda: s.chunk(0, 2),
        "strided chunk that does not divide": lambda: strided(1, 2, width=3).chunk(2, 2),
        "strided chunk of entries": lambda: s.chunk(2, 0),
        "strided narrow of a dimension": lambda: s.narrow(1, 0, 1),
        "strided narrow too far": lambda: s.narrow(0, 1, 3),
        "narrow of the ragged dimension": lambda: j.narrow(1, 0, 1),
        "cat into": lambda: t.cat([j, j], 2, out=j),
        "cat of the batch": lambda: t.cat([j, j], 0),
        "cat of the ragged dimension": lambda: t.cat([j, j], 1),
        "stack of the batch": lambda: t.stack([j, j], 0),
        "strided cat into": lambda: t.cat([s, s], 2, out=s),
        "strided cat with a plain one": lambda: t.cat([s, t.ones(2, 1, 2)], 2),
        "strided cat of turned entries": lambda: t.cat([turned(wide), turned(wide)], 2),
        "strided cat of ranks": lambda: t.cat([s, wide], 2),
        "strided cat of batches": lambda: t.cat([s, strided(1, 2, 3)], 2),
        # Copies.
        "contiguous in another format": lambda: j.contiguous(memory_format=t.channels_last),
        "clone in another format": lambda: s.clone(memory_format=t.channels_last),
        "new sizes": lambda: j.new_zeros((2, 3)),
        "copy of a plain one": lambda: j.copy_(t.ones(2, 1, 2)),
        "copy of other lengths": lambda: j.copy_(jagged(2, 2)),
        "strided copy of a plain one": lambda: s.copy_(t.ones(2, 1, 2)),
        "strided copy of other lengths": lambda: s.copy_(strided(2, 2)),
        "strided copy to turned entries": lambda: turned(wide).copy_(turned(wide)),
        "fill with several": lambda: s.fill_(t.ones(2)),
        "item of several": lambda: j.item(),
        "deep copy within a graph": lambda: copy.deepcopy(jagged(1, 3, requires_grad=True) * 2),
        "strided deep copy within a graph": lambda: copy.deepcopy(
            strided(1, 3, requires_grad=True) * 2
        ),
        "gradient that is not nested": lambda: setattr(
            jagged(1, 3, requires_grad=True), "grad", t.ones(4, 2)
        ),
        # Elements.
        "two layouts": lambda: j + s,
        "beside a plain one": lambda: j + t.ones(3, 4, 2),
        "strided beside a plain one": lambda: s + t.ones(2, 3, 2),
        "strided of other sizes": lambda: s + strided(2, 2),
        "strided of other batches": lambda: s + strided(1, 3, 1),
        "strided quotient of other strides": lambda: (
            wide / turned(of.nested_tensor([t.ones(2, 3, n).contiguous() for n in (2, 4)]))
        ),
        "of other offsets": lambda: j + jagged(1, 3),
        "complex numbers of parts": lambda: t.complex(j, j),
        "op that has no rule": lambda: j.cumsum(1),
        "strided op that has no rule": lambda: s.cumsum(1),
        "max": lambda: s.max(1),
        "item of strided": lambda: s.item(),
        "backward of several": lambda: (jagged(1, 3, requires_grad=True) * 2).backward(),
        "gradient in batches": lambda: t.autograd.grad(
            (x := jagged(1, 3, requires_grad=True)) * 2, x, j, is_grads_batched=True
        ),
        "fewer gradients than outputs": lambda: t.autograd.backward(
            [(x := jagged(1, 3, requires_grad=True)) * 2, x.sum()], [x]
        ),
        # Reductions.
        "sum over the batch": lambda: j.sum(0),
        "mean over two dimensions": lambda: j.mean((1, 2)),
        "sum over the ragged dimension of holes": lambda: holes().sum(1),
        "softmax over the batch": lambda: j.softmax(0),
        "softmax of holes": lambda: holes().softmax(1),
        "strided sum of two dimensions": lambda: s.sum((1, 2)),
        "strided sum over the batch": lambda: s.sum(0),
        "strided sum over a dimension": lambda: s.sum(1),
        "strided sum of turned entries": lambda: turned(wide).sum(-1),
        "strided softmax over the batch": lambda: s.softmax(0),
        "strided all over the batch": lambda: of.nested_tensor([t.ones(1, 2).bool()]).all(0),
        # Padding and places.
        "padding of a plain one": lambda: of.to_padded_tensor(t.ones(2, 3), 0.0),
        "padding to other dimensions": lambda: of.to_padded_tensor(j, 0.0, (2, 3)),
        "strided padding to other dimensions": lambda: of.to_padded_tensor(s, 0.0, (2, 3)),
        "padding to too little": lambda: of.to_padded_tensor(s, 0.0, (2, 2, 2)),
        "padding of nothing": lambda: of.to_padded_tensor(
            of.nested_tensor([t.ones(0, 2), t.ones(0, 2)]), 0.0
        ),
        "padding of turned entries": lambda: of.to_padded_tensor(turned(wide), 0.0),
        "masked select into": lambda: t.masked_select(j, j > 0, out=t.ones(2)),
        "masked select of another": lambda: t.masked_select(j, jagged(1, 3) > 0),
        "masked select of three dimensions": lambda: t.masked_select(j, j > 0),
        "masked select by numbers": lambda: (
            x := of.nested_tensor([t.ones(1), t.ones(3)], layout=J),
            t.masked_select(x, x),
        ),
        "places of holes": lambda: t.index_put_(holes(), (t.tensor([0]), t.tensor([0])), j),
        "places of entries alone": lambda: j.index_put_((None, t.tensor([0])), t.tensor(1.0)),
        "places too far": lambda: j.index_put_((t.tensor([0]), t.tensor([2])), t.tensor(1.0)),
        # Products.
        "linear of the ragged dimension": lambda: F.linear(turned(j), t.ones(2, 2)),
        "strided linear of a plain one": lambda: F.linear(t.ones(2, 2), strided(2, 2)),
        "strided linear by a nested one": lambda: F.linear(s, strided(2, 2)),
        "strided linear of turned entries": lambda: F.linear(turned(strided(2, 2)), t.ones(2, 2)),
        "strided linear of four dimensions": lambda: F.linear(wide, t.ones(3, 3)),
        "strided linear of ragged rows": lambda: F.linear(
            of.nested_tensor([t.ones(2, 1), t.ones(2, 3)]), t.ones(2, 2)
        ),
        "strided linear of another width": lambda: F.linear(s, t.ones(2, 3)),
        "matmul into": lambda: t.matmul(j, t.ones(2, 2), out=j),
        "matmul of holes": lambda: holes() @ t.ones(2, 2, 2),
        "matmul by another batch": lambda: j @ t.ones(3, 2, 2),
        "matmul of a plain one by another batch": lambda: t.ones(3, 2, 2) @ turned(j),
        "matmul of ranks": lambda: j @ heads(1, 3),
        "strided matmul into": lambda: t.matmul(s, turned(s), out=s),
        "strided matmul of vectors": lambda: of.nested_tensor([t.ones(1), t.ones(2)]) @ s,
        "strided matmul of ranks": lambda: wide @ s,
        "strided matmul by a plain one": lambda: s @ t.ones(2, 2),
        "strided matmul of batches": lambda: s @ strided(1, 2, 3),
        "strided matmul of heads": lambda: (
            wide @ of.nested_tensor([t.ones(3, 3, 1), t.ones(3, 3, 1)])
        ),
        "strided matmul of sizes": lambda: s @ s,
        "strided bmm into": lambda: t.bmm(s, turned(s), out=s),
        "strided bmm of four dimensions": lambda: t.bmm(wide, wide),
        "strided bmm of batches": lambda: t.bmm(s, strided(1, 2, 3)),
        "strided bmm of sizes": lambda: t.bmm(s, s),
        "bags of a plain one": lambda: F.embedding_bag(j, t.ones(3, 2)),
        "bags with other weights": lambda: F.embedding_bag(
            of.nested_tensor([t.tensor([1]), t.tensor([2])], layout=J),
            t.ones(3, 2),
            per_sample_weights=t.ones(2),
            mode="sum",
        ),
        "convolution": lambda: F.conv1d(j, t.ones(1, 1, 1)),
        "layer norm of the batch": lambda: F.layer_norm(j, (2, 3, 2)),
        "strided layer norm without weights": lambda: F.layer_norm(s, (2,)),
        "strided layer norm of nothing": lambda: F.layer_norm(s, (), t.ones(()), t.ones(())),
        "strided layer norm of ragged rows": lambda: F.layer_norm(
            s, (3, 2), t.ones(3, 2), t.ones(3, 2)
        ),
        "strided layer norm of another width": lambda: F.layer_norm(s, (3,), t.ones(3), t.ones(3)),
        # Attention.
        "attention with a mask": lambda: attend(
            heads(1, 3), heads(1, 3), heads(1, 3), attn_mask=t.ones(1)
        ),
        "attention beside plain ones": lambda: attend(
            heads(1, 3), t.ones(2, 2, 3, 3), t.ones(2, 2, 3, 3)
        ),
        "attention of three dimensions": lambda: attend(j, j, j),
        "attention of other offsets": lambda: attend(heads(1, 3), heads(1, 3), heads(1, 3)),
        "strided attention with a mask": lambda: attend(wide, wide, wide, attn_mask=t.ones(1)),
        "strided causal attention": lambda: attend(wide, wide, wide, is_causal=True),
        "strided attention beside plain ones": lambda: attend(wide, t.ones(2, 2, 2, 3), wide),
        "strided attention of turned entries": lambda: attend(*[blocks(2, 4).transpose(1, 2)] * 3),
        # vmap.
        "vmap of entries that returns nested tensors": lambda: t.func.vmap(lambda x: j)(j),
        "vmap to another dimension": lambda: t.func.vmap(lambda x: x, out_dims=1)(j),
        "vmap to another structure": lambda: t.func.vmap(lambda x: x, out_dims=(0, 0))(j),
        "vmap that returns a number": lambda: t.func.vmap(lambda x: 3)(j),
        # Parts that make no nested tensor.
        "no list": lambda: of.nested_tensor(3),
        "list of nothing": lambda: views.jagged_from_list([], None),
        "numbers that require gradients": lambda: of.nested_tensor(
            [t.ones(1, 2).int()], layout=J, requires_grad=True
        ),
        "strided on meta": lambda: of.nested_tensor(rows(1, 2), device="meta"),
        "strided sizes at large": lambda: s.shape,
        "strided strides": lambda: s.stride(),
        "offsets of two dimensions": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([[0, 4]])
        ),
        "offsets of nothing": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([], dtype=t.int64)
        ),
        "lengths of another number": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([0, 4]), lengths=t.tensor([1, 2])
        ),
        "ragged dimension that is none": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([0, 4]), jagged_dim=4
        ),
        "fractions as offsets": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([0.0, 4.0])
        ).unbind(),
        "offsets of fewer rows": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([0, 3])
        ).unbind(),
        "offsets that run backwards": lambda: of.nested_tensor_from_jagged(
            t.ones(4, 2), offsets=t.tensor([0, 5, 4])
        ).unbind(),
        "places of rows in holes": lambda: holes() + t.ones(2, 2, 2),
        "parts of a file": lambda: views._rebuild_njt({"values": 3}),
        "buffer of two dimensions": lambda: view_of(t.ones(2, 2), [[1]], [[1]], [0]),
        "strides of fewer entries": lambda: view_of(t.ones(4), [[1], [2]], [[1]], [0, 1]),
        "strides of fewer dimensions": lambda: view_of(t.ones(4), [[1, 2]], [[1]], [0]),
        "negative offsets": lambda: view_of(t.ones(4), [[1]], [[1]], [-1]),
        "entry beyond the buffer": lambda: view_of(t.ones(4), [[5]], [[1]], [0]),
        # What is refused by name.
        "result of elements into": lambda: t.neg(j, out=j),
        "comparison of sizes": lambda: t.is_same_size(s, t.ones(2)),
        "lists of numbers": lambda: j.tolist(),
        "array": lambda: j.numpy(),
        "write to a slice": lambda: j.__setitem__(slice(0, 1), 0),
        "strided slice": lambda: s[0:1],
        "strided entry too far": lambda: s[2],
        "gradient of other lengths": lambda: (jagged(1, 3, requires_grad=True) * 2).backward(
            jagged(2, 2)
        ),
        "plain gradient": lambda: (strided(1, 3, requires_grad=True) * 2).backward(t.ones(4, 2)),
        "beside one of more dimensions": lambda: j + t.ones(1, 2, 3, 2),
        "sum along two dimensions": lambda: j.sum((1, 2)),
        "log softmax along the ragged dimension": lambda: j.log_softmax(1),
        "log softmax over the batch": lambda: j.log_softmax(0),
        "flatten of the ragged dimension": lambda: j.flatten(1, 2),
        "cat of other offsets": lambda: t.cat([j, jagged(1, 3)], 2),
        "view that puts the ragged size first": lambda: (
            x := of.nested_tensor_from_jagged(
                t.ones(2, 4, 3), offsets=t.tensor([0, 1, 4]), jagged_dim=2
            ),
            x.view(2, x.size(2), 2, 3),
        ),
        "turned entries of elements": lambda: turned(wide).neg_(),
        "strided quotient of other places": lambda: (
            wide / turned(of.nested_tensor([t.ones(3, n, 2).transpose(0, 2) for n in (2, 4)]))
        ),
        "strided turned quotient": lambda: (
            turned(wide) / of.nested_tensor([t.ones(2, 3, n) for n in (2, 4)])
        ),
        "attention with holes": lambda: (
            x := of.nested_tensor_from_jagged(
                t.ones(6, 2, 3), offsets=t.tensor([0, 3, 6]), lengths=t.tensor([1, 2])
            ).transpose(1, 2),
            attend(x, x, x),
        ),
        "two levels of vmap": lambda: t.func.vmap(lambda y: t.func.vmap(lambda x: x)(j))(t.ones(2)),
        "function of a program": lambda: t.cov(j),
        "view of negative sizes": lambda: heads(1, 2).view(2, -1, -2, -1),
        "complex of nested parts": lambda: t.complex(j, j),
        "function of another package": lambda: t.overrides.handle_torch_function(len, (j,), j),
    }
