"""One hash of all that a training has made."""

from __future__ import annotations

import hashlib
from typing import Any


def digest(model: Any, optimizer: Any) -> str:
    """The SHA-256 of the parameters and buffers and of the optimizer's state."""
    sha = hashlib.sha256()
    state = optimizer.state_dict()["state"]
    of_optimizer = {f"{n}.{k}": value for n, row in state.items() for k, value in row.items()}
    for name, each in sorted((model.state_dict() | of_optimizer).items()):
        sha.update(f"{name} {each.dtype} {list(each.shape)}".encode())
        sha.update(each.detach().numpy().tobytes())
    return sha.hexdigest()
