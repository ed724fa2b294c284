"""Which modules run, by name, in forward and backward, as PyTorch's tracker tells."""

from __future__ import annotations

import importlib
from typing import Any

from oracle import both


def tracker(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.module_tracker").ModuleTracker()


def note_in(t: Any, seen: list[Any], found: list[Any]) -> Any:
    class Note(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            seen.append((sorted(found[0].parents), found[0].is_bw))
            if x.requires_grad:
                x.register_hook(
                    lambda g: seen.append((sorted(found[0].parents), found[0].is_bw)) and None
                )
            return x * 2

    return Note


def test_names_in_forward_and_backward() -> None:
    def script(t: Any) -> Any:
        seen: list[Any] = []
        found: list[Any] = []
        note = note_in(t, seen, found)

        class Model(t.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.first = note()
                self.rest = t.nn.ModuleDict({"deep": t.nn.Sequential(note(), note())})

            def forward(self, x: Any) -> Any:
                return self.rest["deep"](self.first(x)) + note()(x)

        model = Model()
        with tracker(t) as now:
            found.append(now)
            for _ in range(2):
                model(t.ones(2, requires_grad=True) * 1).sum().backward()
                seen.append((sorted(now.parents), now.is_bw))
            model(t.ones(2))
        model(t.ones(2))
        return [*seen, sorted(now.parents)]

    both(script)


def test_modules_that_are_left_by_an_error() -> None:
    def script(t: Any) -> Any:
        class Wrong(t.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                raise ValueError

        seen = []
        with tracker(t) as now:
            try:
                t.nn.Sequential(Wrong())(t.ones(1))
            except ValueError:
                seen.append(sorted(now.parents))
            layer = t.nn.Linear(1, 1)
            layer(t.ones(1)).sum().backward()
            seen.append(sorted(now.parents))
        return seen

    both(script)
