"""safetensors: tensors and models written and read by its own functions for torch."""

import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
tensors = {
    "a": torch.randn(2, 3),
    "b": torch.arange(4),
    "c": torch.randn(3).half(),
    "d": torch.randn(3).bfloat16(),
    "e": torch.tensor([True, False]),
}
print({name: value.tolist() for name, value in sorted(load(save(tensors)).items())})
with tempfile.TemporaryDirectory() as folder:
    save_file(tensors, f"{folder}/t.safetensors", metadata={"by": "a test"})
    print(
        {name: value.dtype for name, value in sorted(load_file(f"{folder}/t.safetensors").items())}
    )
    with safe_open(f"{folder}/t.safetensors", framework="pt") as file:
        print(sorted(file.keys()), file.get_slice("a")[:, 1:], file.metadata())
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    save_model(model, f"{folder}/m.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    print(
        load_model(other, f"{folder}/m.safetensors"), torch.equal(model[0].weight, other[0].weight)
    )
