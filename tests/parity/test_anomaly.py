"""Anomaly mode beside PyTorch's: errors, warnings, and the lines of this file that they name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, assert_equal, both, leaf, torch

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


def normalise(text: str) -> str:
    """A warning without what each library says of itself: only frames of this file stay."""
    text = re.sub(r" ?\(Triggered internally at [^)]*\)", "", text)
    frames = re.findall(r'  File "([^"]*)", (line \d+, in \w+)\n((?:    .*\n)?)', text)
    head = re.sub(r'  File "[^"]*", line \d+, in .*\n(?:    .*\n)?', "", text).strip()
    mine = [f"{where}: {line.strip()}" for name, where, line in frames if name == __file__]
    last = mine[-1:] if mine and "in " in mine[-1] else mine
    return "\n".join([head, *last])


def record(run: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result or error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:
            result = (type(error).__name__, str(error))
    return result, [f"{w.category.__name__}: {normalise(str(w.message))}" for w in caught]


@script
def nan_in_a_backward(t: Any) -> Any:
    with t.autograd.detect_anomaly():
        x = leaf(t, 0.0, 1.0)
        y = x.sqrt() * 0
        y.sum().backward()


@script
def nan_without_a_forward_trace(t: Any) -> Any:
    x = leaf(t, 0.0, 1.0)
    y = x.sqrt() * 0
    with t.autograd.detect_anomaly():
        y.sum().backward()


@script
def nan_not_checked(t: Any) -> Any:
    with t.autograd.detect_anomaly(check_nan=False):
        x = leaf(t, 0.0, 1.0)
        (x.sqrt() * 0).sum().backward()
    return x.grad


@script
def nan_in_the_second_output(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x, y = leaf(t, 1.0), leaf(t, float("inf"))
        (x * y).backward(leaf(t, 0.0).detach())


@script
def nan_in_an_unneeded_output(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x, y = leaf(t, float("inf")), leaf(t, 1.0).detach()
        (x * y).backward(leaf(t, 0.0).detach())
    return x.grad


@script
def nan_that_was_given(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        (x * 2).backward(leaf(t, float("nan")).detach())


@script
def nan_given_to_a_leaf(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        x.backward(leaf(t, float("nan")).detach())
    return x.grad


@script
def nan_in_a_double_backward(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 0.0, 0.0)
        y = x.pow(1.5)
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        (g * 0).sum().backward()


@script
def nan_in_a_triple_backward(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 0.0)
        y = x.pow(2.5)
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
        (h * 0).sum().backward()


@script
def parent_without_a_trace(t: Any) -> Any:
    x = leaf(t, 0.0, 0.0)
    y = x.pow(1.5)
    with t.autograd.set_detect_anomaly(True):
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        (g * 0).sum().backward()


@script
def hook_that_raises(t: Any) -> Any:
    def hook(g: Any) -> None:
        raise ValueError("from the hook")

    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        y = x * 2
        y.register_hook(hook)
        y.sum().backward()


@script
def hook_of_a_leaf_that_raises(t: Any) -> Any:
    def hook(g: Any) -> None:
        raise ValueError("from the hook")

    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        x.register_hook(hook)
        (x * 2).sum().backward()


@script
def second_backward(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        y = x.exp()
        y.backward()
        y.backward()


@script
def nan_frees_the_graph(t: Any) -> Any:
    x = leaf(t, 0.0)
    y = x.sqrt() * 0
    with t.autograd.set_detect_anomaly(True):
        try:
            y.backward()
        except RuntimeError:
            pass
    y.backward()


@script
def error_in_a_nested_backward(t: Any) -> Any:
    def hook(g: Any) -> None:
        z = leaf(t, 0.0)
        (z.sqrt() * 0).backward()

    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        y = x * 2
        y.register_hook(hook)
        y.backward()


@script
def root_that_does_not_fit(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0, 2.0)
        (x * 2).backward()


@script
def states(t: Any) -> Any:
    seen = []

    def look() -> None:
        seen.append((t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()))

    look()
    t.autograd.set_detect_anomaly(True, False)
    look()
    with t.autograd.set_detect_anomaly(False):
        look()
        with t.autograd.detect_anomaly():
            look()
        look()
    look()
    t.autograd.set_detect_anomaly(False)
    look()
    t.set_anomaly_enabled(True, check_nan=False)
    look()
    t.set_anomaly_enabled(False)
    look()
    return seen


@script
def scope_left_by_an_error(t: Any) -> Any:
    try:
        with t.autograd.detect_anomaly():
            raise KeyError("x")
    except KeyError:
        return t.is_anomaly_enabled()


@script
def mode_that_is_no_bool(t: Any) -> Any:
    t.autograd.set_detect_anomaly(1)


@script
def check_nan_that_is_no_bool(t: Any) -> Any:
    with t.autograd.detect_anomaly(check_nan="yes"):
        pass


def custom(t: Any, backward: Callable[..., Any]) -> Callable[[Any], Any]:
    """A copy as a custom function with this backward."""
    members = {
        "forward": staticmethod(lambda ctx, x: x.clone()),
        "backward": staticmethod(backward),
    }
    return type("Copy", (t.autograd.Function,), members).apply  # type: ignore[attr-defined]


@script
def custom_function_that_raises(t: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("from backward")

    with t.autograd.set_detect_anomaly(True):
        y = custom(t, backward)(leaf(t, 1.0))
        (y * 2).backward()


@script
def custom_function_that_gives_nan(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        y = custom(t, lambda ctx, g: g * float("nan"))(leaf(t, 1.0))
        (y * 2).backward()


@script
def custom_function_that_gives_the_wrong_number(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        custom(t, lambda ctx, g: (g, g))(leaf(t, 1.0)).backward()


@script
def backward_inside_a_custom_function(t: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        with t.enable_grad():
            (leaf(t, 0.0).sqrt() * 0).backward()
        return g

    with t.autograd.set_detect_anomaly(True):
        custom(t, backward)(leaf(t, 1.0)).backward()


@script
def graph_made_by_a_custom_function(t: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        return (g * 0).sqrt()

    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        y = custom(t, backward)(x * x)
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (g * 0).backward()


@script
def metadata(t: Any) -> Any:
    x = leaf(t, 1.0)
    with t.autograd.set_detect_anomaly(True):
        y = x.sqrt()
        (g,) = t.autograd.grad(y, x, create_graph=True)
    found = g.grad_fn.metadata
    lines = y.grad_fn.metadata["traceback_"][-1].partition("line")[2]
    return sorted(found), found["parent_"].name(), lines, x.sqrt().grad_fn.metadata


@pytest.fixture(autouse=True)
def off_again() -> Any:
    yield
    for library in (pygrad, torch):
        library.autograd.set_detect_anomaly(False)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    run = SCRIPTS[name]
    mine, my_warnings = record(lambda: run(pygrad))
    theirs, their_warnings = record(lambda: run(torch))
    assert_equal(mine, theirs)
    assert my_warnings == their_warnings


def test_warning_made_an_error_does_not_hide_the_error() -> None:
    def run(t: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with t.autograd.set_detect_anomaly(True):
                (leaf(t, 0.0).sqrt() * 0).backward()

    both(run)


def test_hint_of_a_modified_tensor() -> None:
    def run(t: Any) -> str:
        with t.autograd.set_detect_anomaly(True):
            x = leaf(t, 1.0)
            y = x.exp()
            y.add_(1)
            y.backward()
        return ""

    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        (_, mine), my_warnings = record(lambda: run(pygrad))
    (_, theirs), their_warnings = record(lambda: run(torch))
    hint = theirs[theirs.index(" Hint: ") :]
    assert hint in mine
    assert my_warnings == their_warnings
