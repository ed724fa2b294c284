"""The device meta: tensors with a shape, strides and a dtype, and no elements."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sweep

import pygrad


def meta(*shape: int, **options: Any) -> pygrad.Tensor:
    return pygrad.empty(*shape, device="meta", **options)


def test_a_tensor_of_meta_tells_its_geometry_and_prints_it() -> None:
    x = meta(2, 3, dtype=pygrad.float64, requires_grad=True)
    assert (x.device, x.is_meta, x.is_cpu) == (pygrad.device("meta"), True, False)
    assert (x.shape, x.stride(), x.nbytes, x.data_ptr()) == ((2, 3), (3, 1), 48, 0)
    assert x.untyped_storage().device == x.device
    assert x.untyped_storage().nbytes() == 48
    assert repr(x.detach()) == "tensor(..., device='meta', size=(2, 3), dtype=torch.float64)"


def test_sizes_past_all_memory_are_no_matter() -> None:
    big = meta(1 << 20, 1 << 20)
    product = (big @ big.T).relu().sum(0)
    assert product.shape == (1 << 20,)
    assert product.device.type == "meta"


def test_backward_runs_on_meta() -> None:
    w = meta(3, 4, requires_grad=True)
    (meta(2, 3) @ w).relu().mean().backward()
    assert w.grad is not None
    assert (w.grad.device, w.grad.shape, w.grad.stride()) == (w.device, w.shape, w.stride())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: pygrad.ones(3).copy_(x), NotImplementedError, "Cannot copy out of meta tensor"),
        (lambda x: float(x.sum()), RuntimeError, r"Tensor.item\(\) cannot be called on meta"),
        (lambda x: bool(x[0] > 0), RuntimeError, r"Tensor.item\(\) cannot be called on meta"),
        (lambda x: x + pygrad.ones(3), RuntimeError, "on device cpu is not on the expected device"),
        (
            lambda x: pygrad.ones(3) + x,
            RuntimeError,
            "on device meta is not on the expected device",
        ),
        (lambda x: x.unique(), NotImplementedError, "aten::unique: attempted to run"),
        (lambda x: pygrad.equal(x, x), NotImplementedError, "aten::equal: attempted to run"),
    ],
)
def test_what_needs_elements_is_refused(
    call: Callable[[pygrad.Tensor], Any], error: type[Exception], message: str
) -> None:
    x = meta(3)
    with pytest.raises(error, match=message):
        call(x)
    assert (x + 1).shape == (3,)


# ------------------------------------------------------------------ every op of the table

DESCRIPTION = sweep.describe()
MODES = (
    ("forward", "float32"),
    ("forward", "int64"),
    ("backward", "float32"),
    ("backward", "complex64"),
    ("second order", "float64"),
    ("view", "float32"),
    ("in-place", "float32"),
)
REFUSED = (
    r"aten::\S+: attempted to run this operator with Meta tensors"
    r"|Tensor.item\(\) cannot be called on meta tensors"
    r"|Cannot copy out of meta tensor; no data!"
    r"|cannot repeat_interleave a meta tensor without output_size"
)
"""What needs elements says so; tests/parity/test_meta.py knows that PyTorch needs them too."""


class MetaCase(sweep._Case):
    """A call whose tensors are on meta."""

    def tensor(self, what: Any, constant: bool) -> Any:
        leaves, made = len(self.leaves), super().tensor(what, constant)
        if len(self.leaves) == leaves:
            return made.to("meta")
        leaf = self.leaves[leaves].detach().to("meta").requires_grad_()
        self.leaves[leaves] = leaf
        return sweep._inner(leaf) if self.mode == "view" else leaf


def outcome(case: type[sweep._Case], op: Any, call: Any, mode: str, dtype: str) -> list[Any] | str:
    """What came out, without its elements; or the message of an error."""
    on_meta = case is MetaCase
    with warnings.catch_warnings(), pygrad.device("meta" if on_meta else "cpu"):
        warnings.simplefilter("ignore")
        try:
            result = case(pygrad, DESCRIPTION["tensors"], dtype, mode).run(op, call)
        except pygrad.EngineError:
            raise
        except Exception as error:
            return str(error)
    return [geometry(each, on_meta) for each in sweep._flat(result)]


def geometry(value: Any, on_meta: bool) -> Any:
    if not sweep.is_tensor(value):
        return value if value is None else type(value).__name__
    strides = value.stride() if value.numel() else ()
    assert value.is_meta == on_meta
    return value.dtype, value.shape, strides, value.requires_grad


@pytest.mark.parametrize("op", DESCRIPTION["ops"], ids=lambda op: op["id"])
def test_an_op_infers_on_meta_what_it_gives_on_the_cpu(op: Any) -> None:
    for call in op["calls"]:
        for mode, dtype in MODES:
            if mode == "in-place" and not (
                "inplace" in op and call[0] and "tensor" in sweep._keys(call[0][0])
            ):
                continue
            real = outcome(sweep._Case, op, call, mode, dtype)
            inferred = outcome(MetaCase, op, call, mode, dtype)
            if isinstance(inferred, str):
                assert isinstance(real, str) or re.search(REFUSED, inferred), (call, mode, inferred)
            else:
                assert inferred == real, (call, mode, dtype)


# ------------------------------------------------------------------ devices, modules, optimizers


def test_a_device_is_a_context_for_what_names_no_device() -> None:
    with pygrad.device("meta"):
        made = [pygrad.ones(2), pygrad.tensor([1.0]), pygrad.randn(3), pygrad.arange(4)]
        made += [pygrad.as_tensor([1]), pygrad.hann_window(3), pygrad.nn.Linear(2, 2).weight]
        assert pygrad.get_default_device() == pygrad.device("meta")
        with pygrad.device("cpu"):
            assert pygrad.zeros(1).is_cpu
        assert pygrad.zeros(1, device="cpu").is_cpu
        assert pygrad.zeros_like(pygrad.zeros(1, device="cpu")).is_cpu
    assert all(each.is_meta for each in made)
    assert pygrad.ones(1).is_cpu
    pygrad.set_default_device("meta")
    try:
        assert pygrad.empty(1 << 40).is_meta
    finally:
        pygrad.set_default_device(None)
    assert pygrad.ones(1).is_cpu


def test_drawing_on_meta_draws_nothing() -> None:
    before = pygrad.get_rng_state().tolist()
    meta(3).normal_()
    pygrad.nn.functional.dropout(meta(3, 3), training=True)
    pygrad.randperm(5, device="meta")
    pygrad.multinomial(meta(4), 2)
    assert pygrad.get_rng_state().tolist() == before


def test_a_model_is_made_on_meta_filled_and_trained() -> None:
    with pygrad.device("meta"):
        model = pygrad.nn.Sequential(
            pygrad.nn.Embedding(10, 8),
            pygrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            pygrad.nn.Linear(8, 1 << 33),
        )
    assert model(meta(2, 5, dtype=pygrad.long)).shape == (2, 5, 1 << 33)
    with pygrad.device("meta"):
        model = pygrad.nn.Sequential(pygrad.nn.Linear(4, 3), pygrad.nn.BatchNorm1d(3))
    state = pygrad.nn.Sequential(pygrad.nn.Linear(4, 3), pygrad.nn.BatchNorm1d(3)).state_dict()
    with pytest.warns(UserWarning, match="copying from a non-meta parameter .* is a no-op"):
        model.load_state_dict(state)
    assert model[0].weight.is_meta
    model.load_state_dict(state, assign=True)
    assert model(pygrad.ones(2, 4)).is_cpu
    moved = model.to("meta")
    assert all(each.is_meta for each in (*moved.parameters(), *moved.buffers()))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        moved.to("cpu")
    assert all(each.is_cpu for each in moved.to_empty(device="cpu").parameters())


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam"]
)
def test_an_optimizer_steps_on_meta(name: str) -> None:
    model = pygrad.nn.Linear(3, 2, device="meta")
    optimizer = getattr(pygrad.optim, name)(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(meta(5, 3)).square().mean().backward()
        optimizer.step()
    assert all(parameter.is_meta for parameter in model.parameters())


def test_views_and_writes_in_place_keep_to_meta() -> None:
    x = meta(4, 6)
    view = x[1:, ::2]
    view.add_(1).mul_(pygrad.tensor(2.0))
    x[0] = 1.0
    x[meta(4, dtype=pygrad.bool)] = 0.0
    x.copy_(pygrad.ones(4, 6))
    assert (view.is_meta, view.shape, view.stride(), view.storage_offset()) == (
        True,
        (3, 3),
        (6, 2),
        6,
    )
    assert (view._base is x, x._version) == (True, 5)
    out = meta(0)
    assert pygrad.add(x, x, out=out) is out
    assert out.shape == (4, 6)
    with pytest.raises(RuntimeError, match="Attempting to copy from device meta to device cpu"):
        pygrad.add(x, x, out=pygrad.empty(4, 6))
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        pygrad.ones(4, 6).data = x


def test_numbers_and_indices_of_the_cpu_stand_beside_meta() -> None:
    x, index = meta(5), pygrad.tensor([0, 2])
    assert (x + pygrad.tensor(1.0)).is_meta
    assert x[index].shape == x.gather(0, index).shape == (2,)
    assert x[pygrad.tensor([True, False, True, True, False])].shape == (3,)


def test_gradients_do_not_leave_meta() -> None:
    leaf = pygrad.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        leaf.to("meta").sum().backward()
    assert leaf.grad is None


def test_copies_and_pickles_have_the_geometry() -> None:
    x = meta(6, 4).t()[1:].requires_grad_()
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (twin.is_meta, twin.shape, twin.stride()) == (True, x.shape, x.stride())
        assert twin.requires_grad


def test_vmap_and_forward_mode_pass_through_meta() -> None:
    x = meta(3, 4)
    assert pygrad.vmap(lambda v: v @ v)(x).shape == (3,)
    primal, tangent = pygrad.func.jvp(lambda v: v.sin().sum(), (x,), (meta(3, 4),))
    assert primal.is_meta
    assert tangent.is_meta


def test_what_one_engine_cannot_hold_says_its_sizes() -> None:
    with pytest.raises(
        pygrad.OutOfMemoryError,
        match=r"a tensor of shape \[1048576, 8192\] takes 34359738368 bytes",
    ):
        pygrad.empty(1 << 20, 1 << 13)


def test_nothing_of_meta_is_left_behind() -> None:
    gc.collect()
    alive = pygrad.pg_live_count()
    w = meta(3, 2, requires_grad=True)
    (meta(2, 3) @ w).exp().sum().backward()
    with pytest.raises(RuntimeError, match="cannot be called on meta"):
        float(w.sum().detach())
    del w
    gc.collect()
    assert pygrad.pg_live_count() == alive


def test_a_gradient_is_where_its_tensor_is() -> None:
    here, nowhere = pygrad.ones(2, requires_grad=True), pygrad.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="device type 'meta' to a tensor with device type 'cpu'"):
        here.grad = nowhere
    with pytest.raises(RuntimeError, match="device type 'cpu' to a tensor with device type 'meta'"):
        nowhere.grad = here.detach()
    assert here.grad is None


def test_gradients_without_elements_are_clipped() -> None:
    x = pygrad.ones(2, device="meta", requires_grad=True)
    x.grad = pygrad.ones(2, device="meta")
    assert pygrad.nn.utils.clip_grad_norm_([x], 1.0).is_meta


def test_a_module_without_elements_is_not_moved_but_told_how() -> None:
    with pytest.raises(NotImplementedError, match=r"use torch\.nn\.Module\.to_empty\(\) instead"):
        pygrad.nn.Linear(2, 2, device="meta").to("cpu")


def test_tensors_without_elements_are_compared_by_what_they_have() -> None:
    close = pygrad.testing.assert_close
    close(pygrad.ones(2, device="meta"), pygrad.zeros(2, device="meta"))
    with pytest.raises(AssertionError, match="'shape' do not match"):
        close(pygrad.ones(2, device="meta"), pygrad.ones(3, device="meta"))
    with pytest.raises(AssertionError, match="'device' do not match: meta != cpu"):
        close(pygrad.ones(2, device="meta"), pygrad.ones(2))
    close(pygrad.ones(2, device="meta"), pygrad.ones(2), check_device=False)


def test_sparse_tensors_are_compared_by_layout_and_elements() -> None:
    close, x = pygrad.testing.assert_close, pygrad.eye(2)
    close(x.to_sparse(), x.to_sparse())
    close(x.to_sparse_csr(), x, check_layout=False)
    with pytest.raises(AssertionError, match="'layout' do not match: torch.sparse_coo != torch"):
        close(x.to_sparse(), x)
    with pytest.raises(AssertionError, match="not close"):
        close(x.to_sparse(), (x * 2).to_sparse())
