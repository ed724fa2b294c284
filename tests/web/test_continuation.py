"""A training that begins in one language goes on in the other, to the same bits: model, optimizer
and generator travel in one file.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import pygrad as torch
from pygrad.demo import network

ROOT = Path(__file__).parents[2]
BEFORE, AFTER = 3, 4
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=2e-3, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=2e-3, betas=(0.8, 0.99)),
}
Train = Callable[[str, int, bytes | None], bytes]
"""Name of an optimizer, steps, file to go on from -> file to go on from."""

NODE = """
import { readFileSync, writeFileSync } from 'node:fs';
import { load } from './web/index.js';
import { train } from './tests/web/training.js';
const [name, steps, target, source] = process.argv.slice(1);
const bytes = train(await load(), name, Number(steps), source && readFileSync(source));
writeFileSync(target, bytes);
"""
PAGE = """async ([name, steps, text]) => {
    const { load } = await import('/web/index.js');
    const { train } = await import('/tests/web/training.js');
    const bytes = text && Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const made = train(await load(), name, steps, bytes);
    return btoa(Array.from(made, (byte) => String.fromCharCode(byte)).join(''));
}"""


def in_python(name: str, steps: int, data: bytes | None) -> bytes:
    torch.manual_seed(0)
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    if data is not None:
        state = torch.load(io.BytesIO(data))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["generator"])
    for _ in range(steps):
        images, labels = torch.rand(32, 64), torch.randint(10, (32,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": torch.get_rng_state(),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "state.safetensors")  # the form that both know
        torch.save(state, file)
        return file.read_bytes()


def elements(data: bytes) -> str:
    """The hash of every tensor in a file: weights, moments, counters, the generator."""
    digest = sha256()

    def walk(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            digest.update(value.numpy().tobytes())
        elif isinstance(value, dict):
            for key in sorted(value, key=str):
                walk(value[key])

    walk(torch.load(io.BytesIO(data)))
    return digest.hexdigest()


def assert_languages_agree(elsewhere: Train, name: str) -> None:
    whole = in_python(name, BEFORE + AFTER, None)
    begun = in_python(name, BEFORE, None)
    assert elements(begun) != elements(whole)
    assert elements(in_python(name, AFTER, begun)) == elements(whole)
    assert elements(elsewhere(name, AFTER, begun)) == elements(whole)
    assert elements(in_python(name, AFTER, elsewhere(name, BEFORE, None))) == elements(whole)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_between_python_and_node(name: str, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")

    def in_node(name: str, steps: int, data: bytes | None) -> bytes:
        source, target = tmp_path / "in", tmp_path / "out"
        command = ["node", "--input-type=module", "-e", NODE, name, str(steps), str(target)]
        if data is not None:
            source.write_bytes(data)
            command.append(str(source))
        subprocess.run(command, cwd=ROOT, check=True)
        return target.read_bytes()

    assert_languages_agree(in_node, name)


def test_between_python_and_a_page(blank: Any, origin: str) -> None:
    blank.goto(f"{origin}/web/index.html#mutate")

    def in_page(name: str, steps: int, data: bytes | None) -> bytes:
        text = None if data is None else b64encode(data).decode()
        return b64decode(blank.evaluate(PAGE, [name, steps, text]))

    assert_languages_agree(in_page, "Adam")
