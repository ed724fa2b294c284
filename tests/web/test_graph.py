"""The Graph room: programs are run as they are typed, recorded, drawn and replayed; what is wrong
with a bad one is said, and the page survives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "web" / "rooms" / "graph" / "examples.js").read_text(encoding="utf-8")
EXAMPLES = [a or b for a, b in re.findall(r"^  (?:'([^']+)'|(\w+)): `", SOURCE, re.MULTILINE)]
Room = Callable[[str], Any]


@pytest.fixture
def graph(room: Room) -> Any:
    page = room("graph")
    page.wait_for_selector("#graph-view .node")
    idle(page)
    return page


def idle(page: Any) -> None:
    page.wait_for_function("!document.getElementById('graph').hasAttribute('aria-busy')")


def run(page: Any, source: str) -> str:
    """What a program printed, and what was said of it."""
    page.fill("#graph-source", source)
    page.click("#graph-run")
    idle(page)
    return str(page.inner_text("#graph-output"))


def position(page: Any) -> tuple[int, int]:
    at, total = page.text_content("#graph-count").split("/")
    return int(at), int(total)


def labels(page: Any) -> list[str]:
    """The gradients that stand on edges."""
    return [text for text in page.locator("#graph-view .edge text").all_text_contents() if text]


# ---------------------------------------------------------------- the replay


def test_a_first_program_is_drawn(graph: Any) -> None:
    names = graph.locator("#graph-view .node .name").all_text_contents()
    assert sorted(names)[:2] == ["AddBackward0", "MulBackward0"]
    assert {"x = 0.8", "w = -1.5"} <= set(names)
    assert labels(graph) == []


def test_steps_put_gradients_on_edges(graph: Any) -> None:
    run(graph, "const x = torch.tensor(3, { requires_grad: true });\nx.mul(x).mul(2).backward();\n")
    seen = []
    for _ in range(position(graph)[1]):
        graph.click("#graph-next")
        seen.append(len(labels(graph)))
    assert seen == sorted(seen)
    assert sorted(labels(graph)) == ["2", "6", "6"]
    assert ".grad = 12" in graph.locator("#graph-view .leaf").text_content()
    assert graph.is_disabled("#graph-next")
    assert "saved values are freed" in graph.text_content("#graph-event")


def test_scrubbing_and_rewinding_give_the_same_states(graph: Any) -> None:
    total = position(graph)[1]
    forward = []
    for step in range(total + 1):
        graph.locator("#graph-step").fill(str(step))
        forward.append((graph.text_content("#graph-event"), labels(graph)))
    for step in range(total, -1, -1):
        assert (graph.text_content("#graph-event"), labels(graph)) == forward[step]
        if step:
            graph.click("#graph-back")
    graph.click("#graph-last")
    assert position(graph)[0] == total
    graph.click("#graph-first")
    assert labels(graph) == []


def test_play_goes_to_the_end_and_pauses(graph: Any) -> None:
    graph.locator("#graph-step").fill(str(position(graph)[1] - 2))
    graph.click("#graph-play")
    graph.wait_for_function("document.getElementById('graph-next').disabled")
    graph.wait_for_function("document.getElementById('graph-play').textContent === 'Play'")


def test_hooks_fire_in_the_order_of_backward(graph: Any) -> None:
    source = """const x = torch.tensor(2, { requires_grad: true });
const y = x.mul(3);
x.register_post_accumulate_grad_hook((leaf) => print('third', leaf.grad));
y.grad_fn.register_hook(() => print('second'));
y.register_hook((g) => { print('first'); return g.mul(10); });
y.backward();
"""
    assert run(graph, source).split("\n") == ["first", "second", "third tensor(30.)"]
    fired = graph.locator("#graph-events .hook").all_text_contents()
    assert [text.split(" fires")[0] for text in fired] == [
        "A tensor hook",
        "A node hook",
        "A hook after accumulation",
    ]
    assert "(registered in line 5) and replaces the gradient by 10" in fired[0]


def test_each_backward_can_be_chosen(graph: Any) -> None:
    graph.select_option("#graph-example", "Double backward")
    graph.wait_for_function("document.querySelectorAll('#graph-pass option').length === 2")
    idle(graph)
    assert "autograd.grad, line 5, create_graph" in graph.text_content("#graph-pass")
    graph.click("#graph-last")
    graph.click("#graph-back")
    assert "The gradient asked for, by x" in graph.text_content("#graph-event")
    graph.select_option("#graph-pass", "1")
    assert position(graph)[0] == 0


# ---------------------------------------------------------------- looking at tensors


def test_versions_tell_what_was_written_after_it_was_saved(graph: Any) -> None:
    graph.select_option("#graph-example", "An in-place view")
    graph.wait_for_selector("#graph-view .saved.written")
    idle(graph)
    assert graph.text_content("#graph-view .saved.written") == "self v0→1"
    graph.locator("#graph-view .node", has_text="Sin").click()
    text = graph.inner_text("#graph-inspector")
    assert "a, saved at version 0; it was written since and is at version 1" in text
    assert "made in line 5" in text
    graph.locator("#graph-variables button", has_text="row").click()
    assert graph.locator("#graph-inspector .elements td").all_text_contents() == ["20"] * 3


def test_tensors_are_inspected_by_keyboard(graph: Any) -> None:
    graph.click("#graph-last")
    graph.focus("#graph-view .node[tabindex='0']")
    titles = []
    for key in ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]:
        graph.keyboard.press(key)
        titles.append(graph.text_content("#graph-inspector h2"))
    assert "An edge" in titles
    assert any("Backward0" in title for title in titles)
    assert not graph.is_checked("#graph-follow")


# ---------------------------------------------------------------- examples and bad input


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_to_its_end(graph: Any, name: str) -> None:
    graph.select_option("#graph-example", name)
    graph.click("#graph-run")
    idle(graph)
    assert graph.locator("#graph-output .bad").count() == 0
    for i in range(graph.locator("#graph-pass option").count()):
        graph.select_option("#graph-pass", str(i))
        graph.click("#graph-last")
        assert position(graph)[1] > 3
        assert labels(graph)
    assert graph.locator("#graph-view .node").count() >= 3


def test_it_runs_as_one_types(graph: Any) -> None:
    graph.fill("#graph-source", "const z = torch.ones([2]);\nprint(z.sum());\n")
    graph.wait_for_function(
        "/tensor\\(2/.test(document.getElementById('graph-output').textContent)"
    )
    assert "no tensor requires a gradient" in graph.inner_text("#graph-output")


def test_a_graph_without_backward_is_drawn(graph: Any) -> None:
    run(graph, "const x = torch.ones([3], { requires_grad: true });\nconst y = x.exp().sum();\n")
    assert "No backward was run" in graph.text_content("#graph-event")
    assert graph.locator("#graph-view .node").count() == 3


def test_syntax_error_is_shown_with_its_line(graph: Any) -> None:
    before = graph.locator("#graph-view .node").count()
    said = run(graph, "const x = 1;\n\nconst y = ;\n")
    assert said.startswith("Line 3: SyntaxError")
    assert graph.inner_text("#graph-editor .error") == "const y = ;"
    assert graph.locator("#graph-view .node").count() == before


def test_wrong_shapes_give_pytorchs_message_and_the_line(graph: Any) -> None:
    said = run(graph, "const a = torch.ones([2, 3]);\n\na.matmul(torch.ones([4, 5]));\n")
    assert said == ("Line 3: RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")


def test_endless_loop_is_stopped_and_the_page_goes_on(graph: Any) -> None:
    graph.fill("#graph-source", "while (true) {}\n")
    graph.click("#graph-run")
    graph.click("nav a[href='#mutate']")
    graph.wait_for_selector("#mutate-title", state="visible")
    graph.click("nav a[href='#graph']")
    idle(graph)
    assert "did not end within 3 seconds" in graph.inner_text("#graph-output")
    assert run(graph, "print(torch.ones([2]).sum());\n").startswith("tensor(2.)")


def test_exhausted_memory_is_an_error_like_others(graph: Any) -> None:
    said = run(graph, "torch.ones([60000, 60000]);\n")
    assert said.startswith("Line 1: OutOfMemoryError")
    assert run(graph, "print(torch.ones([2]).sum());\n").startswith("tensor(2.)")


def test_an_error_in_a_hook_ends_the_record(graph: Any) -> None:
    said = run(
        graph,
        "const x = torch.ones([], { requires_grad: true });\nconst y = x.exp();\n"
        "y.register_hook(() => { throw new Error('mine'); });\ny.backward();\n",
    )
    assert said == "Line 3: Error: mine"
    graph.click("#graph-last")
    assert graph.text_content("#graph-event") == "Backward was ended by an error."


@pytest.mark.parametrize("width", [360, 2560])
def test_the_drawing_scrolls_and_the_page_does_not(graph: Any, width: int) -> None:
    graph.set_viewport_size({"width": width, "height": 800})
    graph.select_option("#graph-example", "A multilayer perceptron")
    graph.click("#graph-run")
    idle(graph)
    graph.click("#graph-last")
    assert graph.evaluate("document.documentElement.scrollWidth") <= width
