"""Trees of containers, of registered ones too: the same leaves, structures, paths and errors."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest
from oracle import both, result_or_error

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


def pytree(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils._pytree")


TREES: list[Any] = [
    1,
    None,
    (),
    [1, (2, None), {}],
    {"b": 1, "a": [2, 3]},
    OrderedDict(x=[1], y=2),
    defaultdict(list, {"k": [1, 2]}),
    deque([1, [2]], maxlen=3),
    Point(1, Point([2], {"z": 3})),
    [deque(), Point(1, 2), defaultdict(int, a=1)],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_taken_apart_and_put_together(tree: Any) -> None:
    def script(t: Any) -> Any:
        p = pytree(t)
        leaves, spec = p.tree_flatten(tree)
        counts = spec.num_nodes, spec.num_leaves, spec.num_children, spec.is_leaf()
        paths = [(p.keystr(k), repr(k), v) for k, v in p.tree_leaves_with_path(tree)]
        texts = repr(spec), p.treespec_pprint(spec), result_or_error(lambda: p.treespec_dumps(spec))
        made = p.tree_unflatten(iter(leaves), spec)
        mapped = p.tree_map_with_path(lambda k, v: (p.keystr(k), v), tree)
        found = [p.key_get(tree, k) for k, _ in p.tree_flatten_with_path(tree)[0]]
        parts = [repr(child) for child in spec.children()], list(p.tree_iter(tree))
        return counts, paths, texts, repr(made), repr(mapped), found, parts

    both(script)


def test_sizes_are_containers() -> None:
    def script(t: Any) -> Any:
        p, size = pytree(t), t.Size([2, 3])
        leaves, spec = p.tree_flatten(size)
        written = p.treespec_dumps(spec)
        again = p.tree_unflatten(leaves, p.treespec_loads(written))
        grown = p.tree_map(lambda n: n + 1, size)
        return leaves, repr(spec), written, type(again).__name__, repr(again), repr(grown)

    both(script)


@pytest.mark.parametrize("tree", TREES[:8], ids=repr)
def test_written_structures_are_read_by_the_other_library(tree: Any) -> None:
    import torch

    import pygrad

    mine, theirs = pytree(pygrad), pytree(torch)
    text = mine.treespec_dumps(mine.tree_structure(tree))
    assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
    assert mine.treespec_loads(text) == mine.tree_structure(tree)
    assert hash(mine.treespec_loads(text)) == hash(mine.tree_structure(tree))


def test_two_trees_that_differ_are_told_in_its_words() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)
        return [
            [result_or_error(lambda a=a, b=b: p.tree_structure(a).flatten_up_to(b)) for b in TREES]
            for a in TREES
        ]

    both(script)


def test_prefixes_are_spread() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)
        spec = p.tree_structure({"a": [1, 2], "b": (3, Point(4, 5))})
        prefixes = [0, {"a": 1, "b": 2}, {"a": [1, 2], "b": 3}, {"a": 1}, [1, 2], None]
        prefixes += [{"a": 1, "b": (2, Point(3, 4))}, {"a": 1, "b": (2, (3, 4))}]
        return [p._broadcast_to_and_flatten(prefix, spec) for prefix in prefixes]

    both(script)


def test_registered_classes() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)

        class Pair:
            def __init__(self, a: Any, b: Any) -> None:
                self.a, self.b = a, b

        class Bare(Pair):
            pass

        p.register_pytree_node(
            Pair,
            lambda pair: ([pair.a, pair.b], "context"),
            lambda children, _: Pair(*children),
            serialized_type_name="Pair",
            flatten_with_keys_fn=lambda pair: (
                [(p.GetAttrKey("a"), pair.a), (p.GetAttrKey("b"), pair.b)],
                "context",
            ),
        )
        p._private_register_pytree_node(Bare, lambda b: ([b.a, b.b], None), lambda c, _: Bare(*c))
        tree = [Pair(1, (2, Pair(3, 4)))]
        spec = p.tree_structure(tree)
        made = p.tree_map(lambda v: v + 1, tree)
        x = [t.func.vmap(lambda q: Pair(q.a + q.b, q.a))(Pair(t.ones(2), t.arange(2.0)))]
        return (
            p.tree_leaves(made),
            repr(spec),
            p.treespec_loads(p.treespec_dumps(spec)) == spec,
            [p.keystr(k) for k, _ in p.tree_leaves_with_path(tree)],
            [(each.a, each.b) for each in x],
            result_or_error(lambda: p.tree_leaves_with_path(Bare(1, 2))).partition("<locals>")[2],
            result_or_error(lambda: p.treespec_dumps(p.tree_structure(Bare(1, 2)))).partition(
                "found"
            )[2],
            result_or_error(lambda: p.register_pytree_node(Pair, None, None))[:10],
            result_or_error(lambda: p.tree_structure(Pair(1, 2)).flatten_up_to(Bare(1, 2)))[:30],
            p.tree_all_only(int, lambda v: v > 0, tree),
            p.tree_any_only(str, lambda v: True, tree),
            p.tree_is_leaf(Pair(1, 2)),
            p.tree_is_leaf(Pair(1, 2), lambda _: True),
            p.arg_tree_leaves(1, (2,), c=[3]),
            p._deregister_pytree_node(Pair),
            p.tree_is_leaf(Pair(1, 2)),
        )

    both(script)


def test_dataclasses_and_constants() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)

        @dataclasses.dataclass
        class Batch:
            x: Any
            y: Any = None
            note: str = dataclasses.field(default="", init=False)

        @dataclasses.dataclass(frozen=True)
        class Config:
            norm: str

        class Plain:
            pass

        p.register_dataclass(Batch)
        p.register_constant(Config)
        tree = {"c": Config("l2"), "b": Batch([1, 2])}
        mapped = p.tree_map(lambda v: v * 2, tree)
        return (
            (mapped["b"].x, mapped["b"].y, mapped["c"].norm),
            p.tree_leaves(tree),
            [p.keystr(k) for k, _ in p.tree_leaves_with_path(tree)],
            p.is_constant_class(Config),
            p.is_constant_class(Batch),
            p._retrieve_constant(p.tree_structure(Config("l1"))).norm,
            result_or_error(lambda: p.register_constant(Plain)),
            result_or_error(lambda: p.register_dataclass(Plain)).partition("initialize")[0],
            result_or_error(lambda: p.register_dataclass(Batch, field_names=["x"])),
            result_or_error(lambda: p.register_dataclass(Batch, field_names=["x", "y", "z"])),
        )

    both(script)


def test_names_in_written_structures() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)

        class Pair(Point):
            pass

        text = '[1, {"type": "%s", "context": "[1]", "children_spec": []}]'
        spec = p.tree_structure(Pair(1, 2))
        before = result_or_error(lambda: p.treespec_dumps(spec)).replace(str(Pair), "Pair")
        p._register_namedtuple(Pair, serialized_type_name="mine.Pair")
        return (
            before,
            p.treespec_dumps(spec),
            p.treespec_loads(p.treespec_dumps(spec)) == spec,
            result_or_error(lambda: p.treespec_loads(text % "nobody.knows")),
            result_or_error(lambda: p.treespec_dumps(spec, 2)),
            result_or_error(lambda: p.treespec_loads("[7, null]")),
            result_or_error(lambda: p.treespec_dumps(1)),
            result_or_error(lambda: p.tree_unflatten([1], [2])),
            p.treespec_dumps(p.tree_structure({Colour.RED: 1}))
            == (
                '[1, {"type": "builtins.dict", "context": "[{\\"__enum__\\": true, '
                f'\\"fqn\\": \\"{__name__}:Colour\\", \\"name\\": \\"RED\\"}}]", '
                '"children_spec": [{"type": null, "context": null, "children_spec": []}]}]'
            ),
            repr(p.treespec_tuple([spec, p.treespec_leaf()])).replace(repr(Pair), "Pair"),
            repr(p.treespec_dict({"a": p.treespec_leaf()}, b=p.treespec_leaf())),
            result_or_error(lambda: p.treespec_tuple([1])),
            result_or_error(lambda: p.treespec_dict(a=1)),
        )

    both(script)


def test_what_is_deprecated_says_so() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)

        class Own:
            pass

        def warnings_of(call: Any) -> Any:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            return [(w.category.__name__, str(w.message).replace(repr(Own), "")) for w in caught]

        spec = p.tree_structure([1])
        return [
            warnings_of(lambda: p._register_pytree_node(Own, lambda o: ([], 1), lambda *_: Own())),
            warnings_of(
                lambda: p._register_pytree_node(Own, lambda o: ([], 1), lambda *_: Own(), 1)
            ),
            warnings_of(lambda: p.LeafSpec()),
            warnings_of(lambda: spec.children_specs),
            warnings_of(lambda: p._is_leaf(1)),
            warnings_of(lambda: p._is_namedtuple_instance(1)),
            warnings_of(lambda: p.pytree_to_str(spec)),
            warnings_of(lambda: p.str_to_pytree(p.treespec_dumps(spec))),
        ]

    both(script)


def test_functions_of_leaves() -> None:
    def script(t: Any) -> Any:
        p = pytree(t)
        seen: list[Any] = []
        tree = [1, (2.0, "three")]
        same = p.tree_map_(seen.append, tree) is tree
        p.tree_map_only_(int, lambda v: seen.append(-v), tree)
        only = p.map_only(int | str)(lambda v: [v])
        largest = t.max(t.tensor([[1.0, 3.0], [2.0, 0.0]]), dim=1)
        doubled = p.tree_map(lambda x: x * 2, largest)
        return (
            same,
            seen,
            p.tree_map(only, tree),
            result_or_error(lambda: p.map_only(1)),
            type(doubled).__name__,
            list(doubled),
            [p.keystr(k) for k, _ in p.tree_leaves_with_path(largest)],
            [p.is_namedtuple(each) for each in (Point, Point(1, 2), (1, 2), largest)],
            [p.is_structseq(each) for each in (Point, (1, 2), largest, type(largest))],
        )

    both(script)
