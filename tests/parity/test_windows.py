"""Windows of torch.signal, and those of the torch namespace, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import both

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "bartlett": [{}],
    "blackman": [{}],
    "cosine": [{}],
    "exponential": [{}, {"tau": 2.0}, {"center": 1.0}, {"tau": 0.0}],
    "gaussian": [{}, {"std": 0.4}, {"std": -1.0}],
    "general_cosine": [{"a": [0.4, 0.3, 0.2]}, {"a": []}, {"a": 1.0}, {}],
    "general_hamming": [{}, {"alpha": 0.7}],
    "hamming": [{}],
    "hann": [{}],
    "kaiser": [{}, {"beta": 2.0}, {"beta": -1.0}],
    "nuttall": [{}],
}
OLDER: dict[str, list[tuple[Any, ...]]] = {
    "bartlett_window": [()],
    "blackman_window": [()],
    "hamming_window": [(), (True, 0.6), (True, 0.6, 0.3)],
    "hann_window": [()],
    "kaiser_window": [(), (True, 2.0)],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", None])
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_windows(name: str, sym: bool, dtype: str | None) -> None:
    for options in ARGUMENTS[name]:
        for M in (0, 1, 2, 5, 8, -1):

            def script(t: Any, options: dict[str, Any] = options, M: int = M) -> Any:
                window = getattr(t.signal.windows, name)
                kind = None if dtype is None else getattr(t, dtype)
                made = window(M, sym=sym, dtype=kind, **options)
                recorded = window(M, sym=sym, dtype=kind, requires_grad=True, **options)
                return made, recorded.requires_grad, recorded.is_leaf

            both(script, rtol=1e-10 if dtype == "float64" else 1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OLDER)
def test_older_windows(name: str) -> None:
    for args in OLDER[name]:
        for M in (0, 1, 2, 7, -1):

            def script(t: Any, args: tuple[Any, ...] = args, M: int = M) -> Any:
                window = getattr(t, name)
                made = window(M, *(args or (False,)), dtype=t.float64)
                recorded = window(M, *args, requires_grad=True)
                return made, recorded, recorded.requires_grad, recorded.is_leaf

            both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", OLDER)
def test_older_windows_in_half_types(name: str, dtype: str) -> None:
    # PyTorch rounds every step, and here the result alone is.
    def script(t: Any) -> Any:
        window = getattr(t, name)(7, dtype=getattr(t, dtype))
        return str(window.dtype), window.double()

    both(script, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("name", OLDER)
def test_older_windows_of_integers_are_refused(name: str) -> None:
    import pygrad

    with pytest.raises(RuntimeError, match=f"{name} expects floating point dtypes, got: "):
        getattr(pygrad, name)(7, dtype=pygrad.int64)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_other_dtypes_are_refused(name: str) -> None:
    def script(t: Any) -> Any:
        return getattr(t.signal.windows, name)(3, dtype=t.int64, **ARGUMENTS[name][0])

    both(script)
