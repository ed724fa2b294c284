"""Modules that libraries import beside the public ones: futures, processes, references, helpers."""

from __future__ import annotations

import copy
import gc
import importlib
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import both, result_or_error

import pygrad


def module(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.{name}")


# ------------------------------------------------------------------ futures


def test_futures() -> None:
    def script(t: Any) -> Any:
        f = module(t, "futures")
        seen: list[Any] = []
        future = f.Future()
        chained = future.then(lambda done: done.wait() + 1).then(lambda done: done.value() * 2)
        failing = future.then(lambda done: 1 / 0)
        future.add_done_callback(lambda done: seen.append(done.value()))
        before = future.done(), result_or_error(future.value).partition(":")[0]
        future.set_result(3)
        future.add_done_callback(lambda done: seen.append(done.value() + 10))
        again = result_or_error(lambda: future.set_result(4)).splitlines()[0]
        wrong = f.Future()
        wrong.set_exception(ValueError("no"))
        several = [f.Future() for _ in range(2)]
        together = f.collect_all(several)
        for number, each in enumerate(several):
            each.set_result(number)
        return (
            before,
            [future.done(), future.wait(), future.value(), chained.wait(), seen],
            result_or_error(failing.wait).splitlines()[0],
            again,
            result_or_error(wrong.wait),
            result_or_error(lambda: wrong.then(lambda done: done.value()).wait()).splitlines()[0],
            result_or_error(lambda: f.Future().set_exception("no")),
            [each.value() for each in together.wait()],
            f.wait_all(several),
            result_or_error(lambda: f.wait_all([several[0], wrong])),
            f.collect_all([]).wait(),
            f.Future[int] is not None,
            isinstance(future, f.Future),
        )

    both(script)


def test_future_is_waited_for_by_another_thread() -> None:
    future = pygrad.futures.Future[int]()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(future.wait()))
    thread.start()
    future.set_result(5)
    thread.join()
    assert found == [5]


def test_forked_calls() -> None:
    def script(t: Any) -> Any:
        futures = [t.jit.fork(t.mul, t.full((2,), float(i)), 3) for i in range(3)]
        waited = [t.jit.wait(each) for each in futures]
        named = t.jit._wait(t.jit._fork(t.neg, t.ones(1)))
        return waited, named, result_or_error(lambda: t.jit.fork(lambda: 1 / 0)).partition(":")[0]

    both(script)


# ------------------------------------------------------------------ processes


def _report(number: int, pipe: Any, how: str) -> None:
    if how == "raise" and number == 1:
        raise ValueError("of process one")
    if how == "exit" and number == 0:
        sys.exit(7)
    if how == "signal":
        os.kill(os.getpid(), 9)
    pipe.put((number, os.getpid()))


def test_processes_are_started_and_joined() -> None:
    mp = pygrad.multiprocessing
    queue = mp.get_context("fork").SimpleQueue()
    mp.start_processes(_report, (queue, ""), nprocs=2, start_method="fork")
    found = [queue.get() for _ in range(2)]
    assert sorted(number for number, _ in found) == [0, 1]
    assert os.getpid() not in [pid for _, pid in found]


def test_processes_that_go_wrong() -> None:
    def script(t: Any) -> Any:
        mp = module(t, "multiprocessing")
        queue = mp.get_context("fork").SimpleQueue()
        found = []
        for how in ("raise", "exit", "signal"):
            try:
                mp.start_processes(_report, (queue, how), nprocs=2 if how != "signal" else 1,
                                   start_method="fork")  # fmt: skip
            except mp.ProcessRaisedException as error:
                text = str(error)
                found.append((text.splitlines()[2], text.splitlines()[-1], error.error_index))
            except mp.ProcessExitedException as error:
                text = str(error)
                found.append((text, error.error_index, error.exit_code, error.signal_name))
                found.append(str(pickle.loads(pickle.dumps(error))))
        return found

    both(script)


def test_tensors_pass_between_processes() -> None:
    mp = pygrad.multiprocessing
    queue = mp.get_context("fork").SimpleQueue()
    queue.put(pygrad.nn.Parameter(pygrad.arange(3.0)))
    found = queue.get()
    assert isinstance(found, pygrad.nn.Parameter)
    assert found.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        queue.put(found * 2)


def test_names_of_multiprocessing() -> None:
    def script(t: Any) -> Any:
        mp = module(t, "multiprocessing")
        return (
            [
                hasattr(mp, name)
                for name in "Process Queue Pool get_context set_start_method".split()
            ],
            mp.get_sharing_strategy(),
            sorted(mp.get_all_sharing_strategies()),
            mp.set_sharing_strategy("file_system"),
            mp.get_sharing_strategy(),
            mp.set_sharing_strategy("file_descriptor"),
            result_or_error(lambda: mp.set_sharing_strategy("other")).partition(",")[0],
            mp.start_processes(print, nprocs=0),
        )

    both(script)


# ------------------------------------------------------------------ repositories


def write_repository(folder: Path) -> str:
    (folder / "hubconf.py").write_text(
        "dependencies = ['math']\nimport helper\n"
        "def model(scale=1):\n    'A model.'\n    return helper.KIND, scale\n"
        "def _hidden():\n    pass\n"
        "number = 3\n"
    )
    (folder / "helper.py").write_text("KIND = 'mine'\n")
    return str(folder)


def test_repository_of_this_machine(tmp_path: Path) -> None:
    folder = write_repository(tmp_path)

    def script(t: Any) -> Any:
        sys.modules.pop("helper", None)
        hub = module(t, "hub")
        return (
            hub.load(folder, "model", source="local", scale=2),
            result_or_error(lambda: hub.load(folder, "other", source="local")),
            result_or_error(lambda: hub.load(folder, 3, source="local")),
            result_or_error(lambda: hub.load(folder, "model", source="web")),
            folder in sys.path,
        )

    both(script)
    sys.modules.pop("helper", None)
    hub = pygrad.hub
    assert hub.list(folder, source="local") == ["model"]
    assert hub.help(folder, "model", source="local") == "A model."


def test_repository_that_needs_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text("dependencies = ['nowhere_at_all']\ndef model(): pass\n")

    def script(t: Any) -> Any:
        return result_or_error(
            lambda: module(t, "hub").load(str(tmp_path), "model", source="local")
        )

    both(script)


def test_folder_of_what_is_fetched(monkeypatch: Any) -> None:
    def script(t: Any) -> Any:
        hub = module(t, "hub")
        monkeypatch.setattr(hub, "_hub_dir", None)
        found = []
        monkeypatch.setenv("TORCH_HOME", "/there")
        found.append(hub.get_dir())
        monkeypatch.delenv("TORCH_HOME")
        monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
        found.append(hub.get_dir())
        hub.set_dir("/mine")
        return [*found, hub.get_dir()]

    both(script)


@pytest.mark.filterwarnings("ignore:load.weights_only=False")  # once in a process
def test_weights_by_their_address(tmp_path: Path) -> None:
    weights = tmp_path / "there" / "weights.pt"
    weights.parent.mkdir()
    pygrad.save({"w": pygrad.ones(2)}, weights)
    here = tmp_path / "here"
    url = weights.as_uri()
    load = pygrad.hub.load_state_dict_from_url
    assert load(url, model_dir=str(here), progress=False)["w"].tolist() == [1.0, 1.0]
    weights.unlink()  # from now on it is read from here
    assert load(url, model_dir=str(here), progress=False)["w"].tolist() == [1.0, 1.0]
    assert sorted(os.listdir(here)) == ["weights.pt"]


def test_file_with_another_hash_is_not_kept(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"bytes")

    def script(t: Any) -> Any:
        fetch = module(t, "hub").download_url_to_file
        there = str(tmp_path / "copy")
        error = result_or_error(
            lambda: fetch(source.as_uri(), there, hash_prefix="00", progress=False)
        )
        absent = os.listdir(tmp_path)
        fetch(source.as_uri(), there, hash_prefix="277089d9", progress=False)
        made = Path(there).read_bytes()
        Path(there).unlink()
        return error, absent, made

    both(script)


def test_archive_that_leaves_its_folder(tmp_path: Path) -> None:
    import zipfile

    def script(t: Any) -> Any:
        found = []
        for name in ("../evil", "/evil", "a/../../evil", "C:/evil"):
            path = tmp_path / "archive.zip"
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("good", "")
                file.writestr(name, "")
            with zipfile.ZipFile(path) as file:
                extract = module(t, "hub")._safe_extract_zip
                found.append(result_or_error(lambda: extract(file, tmp_path / "out")))  # noqa: B023
        return found

    both(script)
    assert not (tmp_path / "evil").exists()


# ------------------------------------------------------------------ weak references


def test_dictionaries_of_tensors_themselves() -> None:
    def script(t: Any) -> Any:
        weak = module(t, "utils.weak")
        x, y, z = t.ones(1), t.ones(1), t.zeros(1)
        names = weak.WeakTensorKeyDictionary({x: "x", y: "y"})
        names[z] = "z"
        before = len(names), names[x], names[y], x in names, t.ones(1) in names, 3 in names
        copied, deep = names.copy(), copy.deepcopy(names)
        del names[z]
        del y
        gc.collect()
        ref = weak.WeakIdRef(x)
        held = weak.TensorWeakRef(z)
        z_there = held() is z
        del z
        return (
            before,
            sorted(names.values()),
            [k is x for k in names],
            len(deep) >= 2,
            sorted(copied.values())[0],
            result_or_error(lambda: names[3]).partition(":")[0],
            names.pop(x),
            len(names),
            ref == weak.WeakIdRef(x),
            ref == weak.WeakIdRef(t.ones(1)),
            ref() is x,
            hash(ref) == hash(weak.WeakIdRef(x)),
            z_there,
            (weak.WeakIdKeyDictionary({x: 1}) | {x: 2})[x],
            ({x: 1} | weak.WeakIdKeyDictionary({x: 2}))[x],
            weak.WeakIdKeyDictionary({x: 1}) == weak.WeakIdKeyDictionary({x: 1}),
        )

    both(script)


# ------------------------------------------------------------------ helpers


def test_helpers_of_utils() -> None:
    def script(t: Any) -> Any:
        u = module(t, "_utils")
        x, y, n = t.ones(2, 2), t.zeros(3), t.ones(2, dtype=t.int64)
        flat = u._flatten_dense_tensors([x, y])
        taken = list(u._take_tensors([x, n, y, x], 30))

        class Named:
            @u.classproperty  # type: ignore[untyped-decorator]
            def name(cls) -> str:
                return cls.__name__  # type: ignore[attr-defined, no-any-return]

        try:
            raise KeyError("lost")
        except KeyError:
            wrapped = u.ExceptionWrapper(where="in worker 3")
        devices = ["cuda:1", 3, t.device("cpu"), "cpu", None, t.device("cuda", 2)]
        return (
            flat,
            u._unflatten_dense_tensors(flat, [x, y]),
            taken,
            u._reorder_tensors_as([n, x, y], [x, y, n]),
            [u._element_size(d) for d in (t.float32, t.bool, t.complex128)],
            result_or_error(lambda: u._element_size(3)),
            [result_or_error(lambda d=d: u._get_device_index(d)) for d in devices],
            u._get_device_index("cpu", allow_cpu=True),
            u._get_device_index(None, optional=True),
            u._get_all_device_indices(),
            u._get_available_device_type(),
            Named.name,
            result_or_error(u._dummy_type("Absent")),
            result_or_error(wrapped.reraise).splitlines()[0],
            u._handle_complex(t.ones(1, dtype=t.complex64)),
        )

    both(script)


def test_marks_of_the_compiler() -> None:
    def script(t: Any) -> Any:
        from typing import Final, Optional, Union

        j = module(t, "_jit_internal")

        @j.ignore  # type: ignore[untyped-decorator]
        def ignored() -> int:
            return 1

        @j.ignore(drop=True)  # type: ignore[untyped-decorator]
        def dropped() -> int:
            return 2

        types = [
            tuple[int],
            list[int],
            dict[int, int],
            Optional[int],  # noqa: UP045
            Union[int, str],  # noqa: UP007
            Final[int],
            int | None,
            list,
            int,
        ]
        asked = (j.is_tuple, j.is_list, j.is_dict, j.is_optional, j.is_final)
        pick = j.boolean_dispatch(
            "up", 1, False, lambda x, up: x + 1, lambda x, up: x - 1, "m", "f"
        )
        return (
            ignored(),
            j.is_ignored_fn(ignored),
            j.should_drop(dropped),
            j.should_drop(ignored),
            j.get_torchscript_modifier(len),
            [[ask(each) for ask in asked] for each in types],
            pick(1, up=True),
            pick(1, False),
            j.is_scripting(),
            result_or_error(lambda: j.ignore(3)),
        )

    both(script)


def test_helpers_of_derivatives() -> None:
    def script(t: Any) -> Any:
        f = module(t, "autograd.functional")
        x = t.ones(2, requires_grad=True)
        y = x * 2
        none: Any = None
        return (
            f._as_tuple(x, "inputs", "f")[0],
            f._as_tuple((x,), "inputs", "f")[0],
            f._as_tuple([1, 2]),
            [result_or_error(lambda v=v: f._as_tuple(v, "inputs", "f")) for v in (3, (x, 3))],
            f._tuple_postprocess(((x,), (y,)), (True, False)),
            f._tuple_postprocess((x,), False),
            [(p.requires_grad, p.is_leaf) for p in f._grad_preprocess((x, y), False, True)],
            [(p.requires_grad, p.is_leaf) for p in f._grad_preprocess((x,), True, True)],
            [p.requires_grad for p in f._grad_postprocess((y,), False)],
            [
                result_or_error(lambda v=v, several=several: f._validate_v(v, (x,), several))
                for v in ((x,), (x, x), (x[0],))
                for several in (True, False)
            ],
            [
                result_or_error(lambda kind=kind, v=v: f._check_requires_grad((v,), kind, True))
                for kind in ("outputs", "grad_inputs", "jacobian", "hessian", "other")
                for v in (x, x.detach(), none)
            ][:-1],
            f._autograd_grad((y, none), (x,), (t.ones(2), none)),
            f._autograd_grad((x.detach(),), (x,)),
            [
                result_or_error(
                    lambda s=s, stage=stage: f._fill_in_zeros((none,), (x,), s, False, stage)
                )
                for stage in ("back", "back_trick", "double_back", "double_back_trick", "other")
                for s in (True, False)
            ],
        )

    both(script)


def test_shapes_of_gradients() -> None:
    def script(t: Any) -> Any:
        a = t.autograd
        x = t.ones(2, 3, requires_grad=True)
        y = x * 2
        edge = a.graph.get_gradient_edge(y)
        return (
            a._calculate_shape(y, t.ones(3), False),
            a._calculate_shape(y, t.ones(4, 2, 3), True),
            [list(s) for s in a._calculate_shape(edge, t.ones(2, 3), False)],
            result_or_error(lambda: a._calculate_shape(edge, t.ones(2, 3), True)),
            a._tensor_or_tensors_to_tuple(None, 2),
            len(a._tensor_or_tensors_to_tuple(x, 1)),
            len(a._tensor_or_tensors_to_tuple([x, y], 2)),
        )

    both(script)


def test_functions_of_older_times() -> None:
    def script(t: Any) -> Any:
        old = module(t, "autograd._functions")
        utils = module(t, "autograd._functions.utils")
        x = t.arange(6.0).reshape(2, 3).requires_grad_()
        y = old.Resize.apply(x, (3, 2))
        (y * y).sum().backward()
        z = old.Type.apply(x, t.float64)
        return (
            y,
            x.grad,
            z,
            result_or_error(lambda: old.Resize.apply(x, (4, 2))),
            utils.maybe_view(x, (6,)),
            utils.maybe_unexpand(t.ones(4, 2, 3), (2, 1)),
        )

    with warnings.catch_warnings(action="ignore"):
        both(script)


def test_modules_as_functions() -> None:
    def script(t: Any) -> Any:
        made = module(t, "functorch" if t is pygrad else "_functorch.make_functional")
        net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3))
        x = t.rand(4, 2)
        function, params, buffers = made.make_functional_with_buffers(net)
        plain, weights = made.make_functional(net[0], disable_autograd_tracking=True)
        nets = [t.nn.Linear(2, 1) for _ in range(3)]
        together, stacked, _ = made.combine_state_for_ensemble(nets)
        many = t.vmap(together, in_dims=(0, 0, None))(stacked, (), x)
        return (
            function(params, buffers, x),
            [p.requires_grad for p in params],
            plain(weights, x),
            [w.requires_grad for w in weights],
            many,
            [s.shape for s in stacked],
            result_or_error(lambda: made.make_functional(net)),
            result_or_error(lambda: made.combine_state_for_ensemble([])),
            result_or_error(lambda: made.combine_state_for_ensemble([nets[0], net])),
        )

    with warnings.catch_warnings(action="ignore"):
        both(script, rtol=1e-4, atol=1e-5)


def test_names_of_c() -> None:
    def script(t: Any) -> Any:
        parse = t._C._nn._parse_to
        calls: list[tuple[Any, Any]] = [
            (("cpu", t.float64), {}),
            ((t.ones(1),), {}),
            ((), {"memory_format": t.channels_last}),
            ((t.float32, True), {}),
            ((1, 2), {}),
            ((), {}),
            (("cpu",), {"copy": True}),
            ((None,), {}),
            ((), {"device": None, "dtype": t.int64}),
        ]
        singular = result_or_error(lambda: t.linalg.inv(t.zeros(2, 2)))
        return (
            [result_or_error(lambda a=a, k=k: [str(v) for v in parse(*a, **k)]) for a, k in calls],
            issubclass(t._C._LinAlgError, RuntimeError),
            t._C._LinAlgError is t.linalg.LinAlgError,
            singular.partition(":")[2],
        )

    both(script)


def test_older_comparison() -> None:
    def script(t: Any) -> Any:
        close = t.testing.assert_allclose
        x = t.ones(2)
        c = module(t, "testing._comparison")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            close(x, x)
        return (
            [(w.category.__name__, str(w.message)) for w in caught],
            [
                result_or_error(lambda a=a, b=b, k=k: close(a, b, **k))
                for a, b, k in (
                    (x, [1.0, 1.00001], {}),
                    ([1, 2], t.tensor([1.0, 2.0]), {}),
                    (x, x + 1, {}),
                    (x, x + 1, {"rtol": 1.0, "atol": 0.0}),
                    (x, x + 1, {"msg": "mine"}),
                    (x / 0 * 0, x / 0 * 0, {}),
                    (np.ones(2), x, {}),
                )
            ],
            c.default_tolerances(t.float32, t.ones(1, dtype=t.float16)),
            result_or_error(lambda: c.default_tolerances(3)),
            c.get_tolerances(x, rtol=None, atol=None),
            c.get_tolerances(x, rtol=1.0, atol=2.0),
        )

    with warnings.catch_warnings(action="ignore"):
        both(script)


def test_types_of_results() -> None:
    def script(t: Any) -> Any:
        found = t.ones(2, 2).max(dim=0)
        again = pickle.loads(pickle.dumps(found.indices.tolist()))
        types = module(t, "return_types")
        return (
            isinstance(found, types.max),
            isinstance(t.linalg.slogdet(t.eye(2)), types.linalg_slogdet),
            again,
            types.topk in types.all_return_types,
            isinstance(1.5, t.types.Number),
            t.types._size is not None,
        )

    both(script)


def test_composed_functions_by_their_module() -> None:
    def script(t: Any) -> Any:
        f = module(t, "functional")
        x = t.arange(4.0)
        return [
            f.einsum("i,i", x, x),
            f.split(x, 2),
            f.atleast_2d(x),
            f.norm(x),
            f.tensordot(x, x, 1),
            f.broadcast_shapes((2, 1), (3,)),
            f.cartesian_prod(x, x).shape,
            f.unique_consecutive(x),
            f.meshgrid(x, x, indexing="ij")[0],
        ]

    both(script)


def test_batches_by_types_of_samples() -> None:
    def script(t: Any) -> Any:
        c = module(t, "utils.data._utils").collate
        d = module(t, "utils.data.dataloader")

        class Own:
            value = 2.0

        def join(batch: Any, *, collate_fn_map: Any = None) -> Any:
            return t.tensor([each.value for each in batch])

        table = {**c.default_collate_fn_map, Own: join}
        loader = t.utils.data.DataLoader([1, 2, 3], batch_size=2)
        kind = d._DatasetKind
        fetch = kind.create_fetcher(kind.Map, [5, 6, 7], True, c.default_collate, False).fetch
        stream = kind.create_fetcher(kind.Iterable, [5, 6, 7], True, c.default_collate, False)
        return (
            c.collate([(Own(), 1), (Own(), 2)], collate_fn_map=table),
            result_or_error(lambda: c.collate([Own()], collate_fn_map=None)).partition("found")[0],
            c.collate([t.ones(1), t.zeros(1)], collate_fn_map=c.default_collate_fn_map),
            type(iter(loader)).__name__,
            isinstance(iter(loader), d._BaseDataLoaderIter),
            type(t.utils.data.DataLoader([1], num_workers=1)._get_iterator()).__name__,
            [loader._auto_collation, loader._dataset_kind],
            fetch([2, 0]),
            [stream.fetch([0, 0]), stream.fetch([0, 0])],
            result_or_error(lambda: stream.fetch([0])).partition(":")[0],
            c.default_convert((1, "a")),
            t.utils.data.ConcatDataset.cumsum([[1, 2], [3]]),
            t.utils.data.ConcatDataset([[1, 2], [3]]).cummulative_sizes,
        )

    with warnings.catch_warnings(action="ignore"):
        both(script)


def test_some_eigenpairs() -> None:
    def script(t: Any) -> Any:
        a = t.rand(2, 9, 9, dtype=t.float64)
        a = a + a.mT + 9 * t.eye(9, dtype=t.float64)
        b = t.diag(t.arange(1.0, 10.0, dtype=t.float64)).expand(2, 9, 9)
        found = []
        for options in ({"k": 2}, {"k": 3, "largest": False}, {"k": 2, "B": b}):
            values, vectors = t.lobpcg(a, niter=500, tol=1e-9, **options)
            found.append((values, (vectors * vectors.sum(-2, keepdim=True).sign())))
        leaf = a[0].clone().requires_grad_()
        t.lobpcg(leaf, k=2, tol=1e-9)[0].sum().backward()
        return (
            found,
            leaf.grad,
            result_or_error(lambda: t.lobpcg(a, k=4)),
            result_or_error(lambda: t.lobpcg(a[:, :8], k=1)),
            result_or_error(lambda: t.lobpcg(a, k=1, B=b[0])),
        )

    both(script, rtol=1e-4, atol=1e-5)


def test_eigenpairs_of_a_matrix_that_is_not_quite_symmetric() -> None:
    def script(t: Any) -> Any:
        a = t.rand(9, 9, dtype=t.float64)
        a = a + a.mT + 9 * t.eye(9, dtype=t.float64)
        a[0, 1] += 1e-3
        return t.lobpcg(a, k=2, niter=500, tol=1e-12)[0]

    both(script, rtol=1e-9, atol=1e-9)


def test_distinct_slices() -> None:
    def script(t: Any) -> Any:
        x = t.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])
        return (
            t._VF.unique_dim(x, 0),
            t._VF.unique_dim(x, -1, True, True),
            t._VF.unique_dim(x, dim=0, return_counts=True),
            t.ops.aten.unique_dim.default(x, 0),
            result_or_error(lambda: t._VF.unique_dim(x, 5)),
            t._VF.tanh(x),
        )

    both(script)


def test_distinct_elements_by_older_names() -> None:
    def script(t: Any) -> Any:
        x = t.tensor([3, 1, 3])
        return (
            t._unique(x),
            t._unique(x, True, True),
            t._unique2(x, return_counts=True),
            t._unique2(x, True, True, True),
        )

    both(script)


def test_short_names_of_dtypes() -> None:
    def script(t: Any) -> Any:
        names = module(t, "utils._dtype_abbrs").dtype_abbrs
        return [names[getattr(t, name)] for name in ("bool", "bfloat16", "complex64", "uint8")]

    both(script)
    mine = module(pygrad, "utils._dtype_abbrs").dtype_abbrs
    theirs = importlib.import_module("torch.utils._dtype_abbrs").dtype_abbrs
    known = {str(dtype).partition(".")[2]: short for dtype, short in theirs.items()}
    assert mine
    assert all(known[str(d).partition(".")[2]] == short for d, short in mine.items())


def test_compiling_by_the_compilers_own_name() -> None:
    def script(t: Any) -> Any:
        double = t.compiler.compile(lambda x: x * 2, backend="eager")
        return double(t.ones(2)), isinstance(t.compiler.compile(t.nn.Linear(1, 1)), t.nn.Module)

    both(script)


def test_steps_of_vmap_may_be_replaced() -> None:
    """As containers of tensors do, which take themselves apart."""
    names = "_process_batched_inputs _create_batched_inputs _add_batch_dim _unwrap_batched"

    def script(t: Any) -> Any:
        steps, called = module(t, "_functorch.vmap"), []

        def note_step(name: str, step: Any) -> Any:
            def call(*args: Any) -> Any:
                called.append(name)
                return step(*args)

            return call

        with pytest.MonkeyPatch.context() as patch:
            for name in names.split():
                patch.setattr(steps, name, note_step(name, getattr(steps, name)))
            found = t.vmap(lambda x, y: x * y, (0, None))(t.ones(2), 3.0)
        return found, called

    both(script)


def test_plateau_is_told_the_epoch() -> None:
    def script(t: Any) -> Any:
        seen: list[int] = []
        optimizer = t.optim.SGD([t.nn.Parameter(t.zeros(1))], lr=1.0)
        schedule = t.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        schedule._reduce_lr = seen.append
        for _ in range(3):
            schedule.step(1.0)
        return seen

    both(script)


def test_error_of_linear_algebra_has_its_name() -> None:
    def script(t: Any) -> Any:
        kind = t.linalg.LinAlgError
        return kind.__name__, kind.__qualname__, kind.__module__

    both(script)


def test_what_was_scripted_or_traced_is_known() -> None:
    def script(t: Any) -> Any:
        jit, x = t.jit, t.ones(1, 2)
        net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Sequential(t.nn.ReLU()))
        scripted = jit.script(copy.deepcopy(net))
        traced = jit.trace(t.nn.Linear(2, 1), x)
        kinds = jit.ScriptModule, jit.RecursiveScriptModule, jit.ScriptFunction
        return [
            [isinstance(each, kind) for kind in kinds[:2]]
            for each in (scripted, [*scripted.children()][1], copy.deepcopy(scripted), net)
        ], [
            isinstance(traced, jit.ScriptModule),
            isinstance(jit.script(plain), jit.ScriptFunction),
            isinstance(jit.trace(lambda a: a + 1, (x,)), jit.ScriptFunction),
            isinstance(other, jit.ScriptFunction),
            isinstance(net, jit.ScriptFunction),
        ]

    both(script)


def plain(x):  # type: ignore[no-untyped-def]
    """What TorchScript can read: its types are tensors."""
    return x + 1


def other(x: Any) -> Any:
    """One that is never scripted."""
    return x + 1


def test_vmap_has_the_names_that_are_imported_of_it() -> None:
    names = (
        "Tensor _add_batch_dim _broadcast_to_and_flatten _get_name _maybe_remove_batch_dim "
        "_remove_batch_dim _validate_and_get_batch_size _vmap_decrement_nesting "
        "_vmap_increment_nesting is_batchedtensor tree_flatten tree_unflatten"
    ).split()
    both(lambda t: [hasattr(module(t, "_functorch.vmap"), name) for name in names])
