"""Names of PyTorch's that are private, and that released packages call on plain tensors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import pygrad
import pygrad.torch as torch
from pygrad import _tensor_str as text
from pygrad import nn
from pygrad._ground.names import modules_in
from pygrad.fx.experimental import optimization
from pygrad.nn.modules.conv import _ConvNd
from pygrad.nn.modules.utils import _ntuple, _pair
from pygrad.torch._functorch import eager_transforms

# ------------------------------------------------------------------ texts of tensors


def make_tensors() -> list[Any]:
    """Tensors of many forms."""
    big, small = 1e9, 1e-6
    made = [
        pygrad.tensor(values, dtype=kind)
        for kind in (pygrad.float32, pygrad.float64, pygrad.bfloat16)
        for values in (
            [],
            1.5,
            [1.0, -2.0, 0.0],
            [[0.5, -0.25], [big, small]],
            [float("nan"), float("-inf"), 3.0],
            [float("nan"), 2.5],
        )
    ]
    made += [pygrad.tensor(v) for v in ([True, False], [[1, -200], [3, 4]], 7, 1 - 2j)]
    made += [
        pygrad.arange(5000.0),
        pygrad.arange(24).reshape(2, 3, 4),
        pygrad.arange(3000).reshape(30, 10, 10) / 7,
        pygrad.tensor([1 + 2j, -0.5j, complex("nan-infj")]),
        pygrad.randn(2, 3, dtype=pygrad.complex64).conj(),
        pygrad.randn(3).requires_grad_(),
    ]
    return made


@pytest.mark.parametrize("options", [{}, {"precision": 2}, {"linewidth": 30}, {"sci_mode": True}])
def test_parts_of_a_text_are_those_of_the_whole(options: dict[str, Any]) -> None:
    with text.printoptions(**options):
        for tensor in make_tensors():
            whole = repr(tensor)
            assert whole.startswith("tensor(" + text._tensor_str(tensor, 7)), whole


def test_options_of_printing_are_attributes() -> None:
    before = text.get_printoptions()
    try:
        torch._tensor_str.PRINT_OPTS.precision = 2
        assert repr(pygrad.tensor(0.125)) == "tensor(0.12)"
        assert text.get_printoptions() == {**before, "precision": 2}
    finally:
        pygrad.set_printoptions(**before)
    with pytest.raises(AttributeError, match="nothing"):
        _ = text.PRINT_OPTS.nothing


def test_number_is_written_in_the_form_of_a_tensor() -> None:
    form = text._Formatter(pygrad.tensor([1.5, -20.25]))
    assert (form.format(3.0), form.width()) == ("  3.0000", 8)
    assert text._add_suffixes("tensor([1.]", ["size=1"], 7, True) == "tensor([1.],\n       size=1)"
    assert text._str_intern(pygrad.ones(1), tensor_contents="[x]") == "tensor([x])"


# ------------------------------------------------------------------ layers


def test_convolution_of_ones_own_takes_every_argument() -> None:
    class Mine(_ConvNd):
        def __init__(self) -> None:
            sizes = _pair(3), _pair(1), _pair(0), _pair(1)
            super().__init__(1, 2, *sizes, False, _pair(0), 1, True, "zeros")

        def forward(self, x: pygrad.Tensor) -> Any:
            return nn.functional.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    assert Mine()(pygrad.ones(1, 1, 4, 4)).shape == (1, 2, 2, 2)
    transposed = _ConvNd(
        1,
        2,
        (3,),
        (1,),
        (0,),
        (1,),
        transposed=True,
        output_padding=(0,),
        groups=1,
        bias=False,
        padding_mode="zeros",
    )
    assert transposed.weight.shape == (1, 2, 3)
    assert transposed.bias is None
    assert _ntuple(5, "_penta")(2) == (2,) * 5


@pytest.mark.parametrize("name", ["uniform_", "normal_", "fill_", "zero_", "trunc_normal_"])
def test_initialisers_without_gradient(name: str) -> None:
    arguments = {"uniform_": (-1.0, 1.0), "normal_": (0.0, 1.0), "fill_": (2.0,), "zero_": ()}
    weight = nn.Linear(3, 3).weight
    made = getattr(nn.init, f"_no_grad_{name}")(weight, *arguments.get(name, (0.0, 1.0, -2.0, 2.0)))
    assert made is weight
    assert weight.is_leaf


def test_casts_by_their_old_names() -> None:
    x = pygrad.tensor([1.7], requires_grad=True)
    assert torch._cast_Long(x).tolist() == [1]
    assert torch._cast_Float(x) is x
    assert torch._cast_Double(x, non_blocking=True).grad_fn is not None


def test_layers_and_their_normalization_are_fused() -> None:
    pygrad.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)
    )
    model(pygrad.randn(4, 1, 4, 4))
    x = pygrad.randn(4, 1, 4, 4)
    wanted = model.eval()(x)
    fused = optimization.fuse(model)
    assert [type(each) for each in fused.children()] == [nn.Conv2d, nn.Flatten, nn.Linear]
    assert pygrad.allclose(fused(x), wanted, atol=1e-5)
    assert pygrad.equal(model(x), wanted)


def test_layer_that_is_called_twice_is_not_fused() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)

        def forward(self, x: pygrad.Tensor) -> Any:
            return self.conv(self.norm(self.conv(x)))

    model = Twice().eval()
    model.norm.running_mean.fill_(1.0)
    x = pygrad.randn(1, 2, 3)
    assert pygrad.allclose(optimization.fuse(model)(x), model(x))


# ------------------------------------------------------------------ transforms, files, the rest


def test_what_is_put_in_the_place_of_a_step_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """pypose replaces the step so that a container of tensors keeps its class."""

    class Mine(pygrad.Tensor):
        pass

    wrap = eager_transforms._wrap_tensor_for_grad
    seen = []

    def keep(tensor: Any, level: int) -> Any:
        return pygrad.Tensor.as_subclass(wrap(tensor, level), Mine)

    def square(x: pygrad.Tensor) -> pygrad.Tensor:
        seen.append(type(x))
        return x * x

    monkeypatch.setattr(eager_transforms, "_wrap_tensor_for_grad", keep)
    found = pygrad.func.jacrev(square)(pygrad.tensor([1.0, 2.0]))
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert seen == [Mine]


def test_steps_of_transforms_have_their_names() -> None:
    module = torch._functorch.eager_transforms
    basis = module._construct_standard_basis_for([pygrad.zeros(2), pygrad.zeros(())], [2, 1])
    assert [each.tolist() for each in basis] == [[[1, 0], [0, 1], [0, 0]], [0, 0, 1]]
    chunks = list(module._chunked_standard_basis_for_([pygrad.zeros(3)], [3], 2))
    assert [each[0].tolist() for each in chunks] == [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1]]]
    assert module._slice_argnums((1, 2, 3), (0, -1)) == (1, 3)
    assert module.jacrev is pygrad.func.jacrev
    with pytest.raises(RuntimeError, match="argnums elements must be unique"):
        module._slice_argnums((1, 2), (0, -2))


def test_records_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    pygrad.save({"a": pygrad.arange(4.0)}, path)
    with open(path, "rb") as file:
        for reader in (torch.PyTorchFileReader(str(path)), torch._C.PyTorchFileReader(file)):
            assert reader.has_record("data.pkl")
            assert not reader.has_record("data/1")
            assert reader.get_storage_from_record("data/0", 4, pygrad.float).tolist() == [
                0,
                1,
                2,
                3,
            ]
            raw = reader.get_storage_from_record("data/0", 16, pygrad.UntypedStorage)
            assert bytes(raw.tolist()) == reader.get_record("data/0")
            start = reader.get_record_offset("data/0")
            assert path.read_bytes()[start : start + 16] == reader.get_record("data/0")
            assert reader.get_record_size("data/0") == 16
    with pytest.raises(RuntimeError, match="file not found"):
        torch.PyTorchFileReader(io.BytesIO(path.read_bytes())).get_record("data/1")
    with pytest.raises(RuntimeError, match="errno 2"):
        torch.PyTorchFileReader(str(tmp_path / "none.pt"))


def test_memory_of_two_tensors_is_compared() -> None:
    x = pygrad.ones(3)
    assert torch._C._is_alias_of(x, x[1:].view(2, 1))
    assert not torch._C._is_alias_of(x, x.clone())
    assert not torch._C._is_alias_of(x, 1)


def test_array_is_taken_by_all_of_its_options() -> None:
    x = pygrad.ones(2)
    assert torch.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


def test_step_without_a_schedule_is_recorded() -> None:
    profiler = torch.profiler.profiler
    assert profiler._default_schedule_fn(0) is profiler.ProfilerAction.RECORD


def test_tracer_of_ones_own_patches_as_ours_does() -> None:
    trace = torch.fx._symbolic_trace
    assert trace._orig_module_call is nn.Module.__call__
    assert trace._orig_module_getattr is nn.Module.__getattr__

    def replace(mod: nn.Module, *args: Any) -> str:
        return "patched"

    with trace._Patcher() as patcher:
        patcher.patch_method(nn.Module, "__call__", replace)
        assert nn.Linear(1, 1)(1) == "patched"
    assert nn.Module.__call__ is trace._orig_module_call


# ------------------------------------------------------------------ places


def test_a_folder_that_version_control_left_behind_is_no_package(tmp_path: Path) -> None:
    for name in ("package/__init__.py", "left/__pycache__/module.pyc", "module.py", "stub.pyi"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert modules_in(tmp_path) == {"package", "module", "stub"}
