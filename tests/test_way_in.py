"""A way in: `pygrad.install()` and `python -m pygrad`, after which ``import torch`` is the dialect,
in the process and in those that it starts. Each program runs in an interpreter of its own.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import itertools
import operator
import os
import subprocess
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

import pytest

import pygrad
import pygrad.torch
from pygrad.torch.torch_version import TorchVersion


def python(*arguments: str, cwd: Path | None = None, text: str | None = None, **more: str) -> Any:
    """What a new interpreter does with the arguments."""
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=text,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(pygrad.__file__).parents[1]), **more},
    )


def lines(program: str, *arguments: str, cwd: Path | None = None) -> list[str]:
    """What a program prints."""
    done = python(*arguments, "-c", textwrap.dedent(program), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).splitlines()


# ------------------------------------------------------------------ install


@pytest.mark.parametrize(
    "line",
    [
        "import torch; assert torch is pygrad.torch",
        "import torch.nn.functional as F; assert F is pygrad.nn.functional",
        "from torch import nn, Tensor; assert (nn, Tensor) == (pygrad.nn, pygrad.Tensor)",
        "from torch.autograd import Function; assert Function is pygrad.autograd.Function",
        "from torch.utils.data import Dataset; assert Dataset is pygrad.utils.data.Dataset",
        "import torch.autograd.graph as g; assert g is pygrad.torch.autograd.graph",
        "import torch.distributions.normal as n; assert n is pygrad.distributions.normal",
        "import functorch; assert functorch.vmap is pygrad.vmap",
        "import functorch.experimental.control_flow as c; "
        "assert c is pygrad.functorch.experimental.control_flow",
        "from torch.autograd.gradcheck import GradcheckError; import torch;"
        " assert callable(torch.autograd.gradcheck)",
        "from torch import *; assert tensor(1.0).item() == 1",
        "import sys; assert sys.modules['torch.nn.functional'] is pygrad.nn.functional",
        "import importlib.util; assert importlib.util.find_spec('torch') is not None",
        "import importlib.metadata as m; assert m.version('torch') == '2.13.0+pygrad'",
    ],
)
def test_torch_is_the_dialect_once_installed(line: str) -> None:
    lines(f"import pygrad, pygrad.torch; pygrad.install(); {line}", "-W", "error")


def test_what_torch_lacks_is_missing_under_its_name() -> None:
    program = """
        import pygrad; pygrad.install()
        import torch
        for line in ("import torch.nowhere", "from torch.nn import nowhere", "torch.nowhere",
                     "from torch import nowhere", "import torch.nn.nowhere"):
            try:
                exec(line)
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, str(error).split(" (")[0])
        """
    assert lines(program) == [
        "ModuleNotFoundError No module named 'torch.nowhere'",
        "ImportError cannot import name 'nowhere' from 'pygrad.nn'",
        "AttributeError module 'torch' has no attribute 'nowhere'",
        "ImportError cannot import name 'nowhere' from 'torch'",
        "ModuleNotFoundError No module named 'torch.nn.nowhere'",
    ]


def test_uninstall_takes_all_of_it_back() -> None:
    program = """
        import os, sys
        os.environ["PYTHONPATH"] = "somewhere"
        import pygrad, pygrad.torch
        before = list(sys.path), dict(os.environ), set(sys.modules)
        pygrad.uninstall()
        for _ in range(2):
            pygrad.install(); pygrad.install()
            import torch.nn.functional, torch.distributions, functorch
            assert (list(sys.path), dict(os.environ)) != before[:2]
            assert torch.Tensor.__module__ == "torch" and "torch" in sys.modules
            assert torch.distributions.Normal.__module__ == "torch.distributions.normal"
            pygrad.uninstall()
            assert (list(sys.path), dict(os.environ)) == before[:2]
            assert not [n for n in sys.modules if n.split(".")[0] in ("torch", "functorch")]
            assert pygrad.Tensor.__module__ == "pygrad"
            assert pygrad.nn.Linear.__module__ == "pygrad.nn.modules.linear"
            assert pygrad.distributions.Normal.__module__ == "pygrad.distributions.normal"
        """
    lines(program)


def test_install_is_refused_where_pytorch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    program = """
        import os, sys, torch, pygrad
        before = list(sys.path), dict(os.environ)
        try:
            pygrad.install()
        except RuntimeError as error:
            print(error)
        assert sys.modules["torch"] is torch and (list(sys.path), dict(os.environ)) == before
        """
    (said,) = lines(program, cwd=tmp_path)
    assert "PyTorch is already imported in this process, from" in said
    assert "torch.py; call install() before anything imports torch" in said


def test_install_gives_torch_to_a_program_that_has_forbidden_its_import() -> None:
    program = """
        import sys; sys.modules["torch"] = None
        import pygrad; pygrad.install()
        import torch
        assert torch is pygrad.torch
        """
    assert lines(program) == []


def test_pytorch_comes_back_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("mine = True")
    program = """
        import pygrad
        pygrad.install()
        import torch; assert not hasattr(torch, "mine")
        pygrad.uninstall()
        import torch; assert torch.mine
        """
    lines(program, cwd=tmp_path)


def test_dialect_leaves_the_real_torch_alone(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("print('imported')")
    program = """
        import pygrad.torch
        for line in ("from pygrad.torch import nowhere", "import pygrad.torch.nowhere",
                     "from pygrad.torch.autograd import nowhere"):
            try:
                exec(line)
            except ImportError as error:
                print(type(error).__name__)
        """
    assert lines(program, cwd=tmp_path) == ["ImportError", "ModuleNotFoundError", "ImportError"]


def test_started_processes_have_it_too(tmp_path: Path) -> None:
    child = "import torch; print(torch.__version__, torch.ones(2).sum().item())"
    start = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}], check=True)"
    installed = "import pygrad; pygrad.install(); "
    for program in (start.format(child), start.format(start.format(child))):
        assert lines(installed + program, cwd=tmp_path) == ["2.13.0+pygrad 2.0"]


def test_started_process_finds_pygrad_where_nothing_else_does(tmp_path: Path) -> None:
    folder = Path(pygrad.__file__).parent / "_install" / "as_torch"
    program = "import torch, pygrad; print(torch is pygrad.torch, pygrad.__file__)"
    done = python("-c", program, cwd=tmp_path, PYTHONPATH=str(folder))
    assert done.stdout.split() == ["True", pygrad.__file__], done.stderr


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_multiprocessing_has_it_too(how: str, tmp_path: Path) -> None:
    if how not in __import__("multiprocessing").get_all_start_methods():
        pytest.skip(f"no {how} here")
    (tmp_path / "program.py").write_text(
        textwrap.dedent(f"""
        import multiprocessing
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2

        def work(net, x, queue):
            assert type(net) is Net and torch.__name__ == "torch"
            queue.put(net(x).tolist())

        if __name__ == "__main__":
            context = multiprocessing.get_context({how!r})
            queue = context.SimpleQueue()
            child = context.Process(target=work, args=(Net(), torch.ones(2), queue))
            child.start()
            print(queue.get())
            child.join()
        """)
    )
    done = python("-m", "pygrad", "program.py", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("[2.0, 2.0]\n", 0), done.stderr


def test_every_class_is_found_again_by_the_module_that_it_names() -> None:
    program = """
        import pygrad; pygrad.install()
        import importlib, pickle, pkgutil, sys, torch
        torch.distributions, torch.cuda, torch.profiler, torch.amp, torch.storage
        kinds = {k for m in list(sys.modules.values()) if m.__name__.startswith("pygrad")
                 for k in vars(m).values() if isinstance(k, type) and k.__module__[:5] == "torch"}
        for kind in kinds:
            found = importlib.import_module(kind.__module__)
            for part in kind.__qualname__.split("."):
                found = getattr(found, part, None)
            if found is not kind and "<locals>" not in kind.__qualname__:
                print(kind)
        assert {torch.Tensor, torch.nn.Linear, torch.optim.SGD, torch.Size} <= kinds
        assert len(kinds) > 300
        """
    assert lines(program) == []


def test_pickles_of_one_way_in_are_read_by_the_other(tmp_path: Path) -> None:
    made = "import pickle; m = {}.nn.Linear(2, 2); pickle.dump([m, m.weight], open('m.pkl', 'wb'))"
    read = (
        "import pickle; m, w = pickle.load(open('m.pkl', 'rb')); print(type(m).__name__, w.shape)"
    )
    lines("import pygrad as p; " + made.format("p"), cwd=tmp_path)
    installed = "import pygrad; pygrad.install(); import torch; "
    assert lines(installed + read, cwd=tmp_path) == ["Linear torch.Size([2, 2])"]
    lines(installed + made.format("torch"), cwd=tmp_path)
    assert lines(installed + read, cwd=tmp_path) == ["Linear torch.Size([2, 2])"]


def test_another_engine_stays_another_while_installed() -> None:
    program = """
        import pygrad
        e = pygrad.Engine()
        pygrad.install()
        import torch
        class Mine(torch.nn.Parameter): pass
        print(torch.add(Mine(torch.ones(1)), torch.nn.Parameter(torch.ones(1))).item())
        try:
            torch.add(torch.ones(1), e.ones(1))
        except TypeError as error:
            print(error)
        """
    sums, said = lines(program)
    assert sums == "2.0"
    assert said.startswith("a Tensor of pygrad@1 was given to pygrad: it belongs to another engine")


# ------------------------------------------------------------------ python -m pygrad

SHOW = """
import sys, torch
print(sys.argv, sys.path[0], __name__, globals().get("__file__"), __spec__ and __spec__.name)
print(sorted(n for n in vars(sys.modules["__main__"]) if n[0] != "_"), torch.ones(1).item())
def annotated(x: int): pass
print(annotated.__annotations__)
"""


def test_script_runs_as_python_runs_it(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "show.py").write_text(SHOW + "import beside")
    (folder / "beside.py").write_text("")
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "torch.py").write_text("from pygrad import ones")
    script = str(Path("programs") / "show.py")
    mine = python("-m", "pygrad", script, "a", "-c", cwd=tmp_path)
    paths = os.pathsep.join([str(tmp_path / "stub"), str(Path(pygrad.__file__).parents[1])])
    plain = python(script, "a", "-c", cwd=tmp_path, PYTHONPATH=paths)
    assert plain.stdout.startswith("['programs/show.py', 'a', '-c']"), plain.stderr
    assert (mine.stdout, mine.stderr) == (plain.stdout, "")


def test_code_module_folder_and_input_run_as_python_runs_them(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(SHOW)
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "torch.py").write_text("from pygrad import ones")
    paths = os.pathsep.join([str(tmp_path / "stub"), str(Path(pygrad.__file__).parents[1])])
    for arguments, text in [
        (["-c", SHOW, "a", "-m"], None),
        (["-m", "show", "a"], None),
        (["-m", "package"], None),
        (["package", "b"], None),
        (["package/", "b"], None),
        (["./show.py"], None),
        (["-c" + SHOW, "a"], None),
        (["-mshow", "a"], None),
        (["-", "b"], SHOW),
    ]:
        mine = python("-m", "pygrad", *arguments, cwd=tmp_path, text=text)
        plain = python(*arguments, cwd=tmp_path, text=text, PYTHONPATH=paths)
        assert (mine.stdout, mine.stderr) == (plain.stdout, plain.stderr) != ("", "")


@pytest.mark.parametrize(
    "program",
    [
        "def f():\n    return 1 / 0\nf()",
        "import sys; sys.exit(7)",
        "import sys; sys.exit('why')",
        "import os; os._exit(5)",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
        "x = (",
        "import sys\nsys.excepthook = lambda kind, *_: print('hooked', kind)\nraise KeyError(1)",
        "import atexit; atexit.register(print, 'late'); raise SystemExit",
        "pass",
    ],
)
def test_end_of_a_program_is_as_python_has_it(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    for arguments in (["program.py"], ["-m", "program"], ["-c", program]):
        mine = python("-m", "pygrad", *arguments, cwd=tmp_path)
        plain = python(*arguments, cwd=tmp_path)
        if arguments[0] == "-m":  # where Python shows frames of its own
            assert (mine.returncode, mine.stdout) == (plain.returncode, plain.stdout)
            assert "pygrad" not in mine.stderr
        else:
            told = (mine.returncode, mine.stdout, mine.stderr)
            assert told == (plain.returncode, plain.stdout, plain.stderr)


def test_what_cannot_be_run_is_told() -> None:
    for arguments, said in [
        (["nowhere.py"], "can't open file"),
        (["-m"], "Argument expected for the -m option"),
        (["-c"], "Argument expected for the -c option"),
        (["-X", "y.py"], "unknown option -X: options of Python come before -m pygrad"),
        ([], "python -m pygrad script.py"),
    ]:
        done = python("-m", "pygrad", *arguments)
        assert done.returncode == 2
        assert said in done.stderr
    assert python("-m", "pygrad", "--help").returncode == 0


# ------------------------------------------------------------------ identity


def test_dialect_says_what_it_is() -> None:
    t = pygrad.torch
    assert t.__name__ == "torch"
    assert (t.__version__, pygrad.__version__) == ("2.13.0+pygrad", "0.1.0")
    assert isinstance(t.__version__, TorchVersion)
    assert t.version.__version__ == "2.13.0+pygrad"
    assert type(t.version.__version__) is str
    assert (t.version.cuda, t.version.hip, t.version.debug) == (None, None, False)
    assert t.autograd.__name__ == "torch.autograd"
    assert "TORCH_VERSION=2.13.0," in t.__config__.show()
    assert "get_num_threads() : 1" in t.__config__.parallel_info()


COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
VERSIONS = """1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2
    1.0b2.post345.dev456 1.0b2.post345 1.0rc1.dev456 1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5
    1.0.post456.dev34 1.0.post456 1.0.15 1.1.dev1 2 2.13.0 2.13.0+cpu 2.13.0+pygrad 2.13.1
    1!0.1""".split()


def test_versions_are_ordered_as_releases_are() -> None:
    for low, high in itertools.combinations(VERSIONS, 2):
        mine = [how(TorchVersion(low), high) for how in COMPARISONS]
        assert mine == [True, True, False, True, False, False], (low, high)
        mine = [how(TorchVersion(high), low) for how in COMPARISONS]
        assert mine == [False, False, False, True, True, True], (low, high)


def test_versions_are_compared_with_tuples_and_with_what_is_none() -> None:
    version = pygrad.torch.__version__
    assert version > (1, 8)
    assert version >= (2, 13)
    assert version < (2, 14)
    assert version < ("3",)
    assert version == "v2.13+PyGrad"
    assert version < "later"
    assert version != None  # noqa: E711
    with pytest.raises(TypeError, match="'>' not supported between .* 'TorchVersion' and 'int'"):
        version > 2  # noqa: B015
    assert {version: 1}["2.13.0+pygrad"] == 1


KINDS = sorted(
    {
        kind
        for name in ". nn optim autograd utils.data distributions amp profiler func cuda".split()
        for module in [importlib.import_module(f"pygrad.{name}".rstrip("."))]
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__.startswith("pygrad")
    },
    key=lambda kind: f"{kind.__module__}.{kind.__qualname__}",
)


def test_type_hints_of_every_class_can_be_read() -> None:
    for kind in KINDS:
        typing.get_type_hints(kind)
    assert typing.get_type_hints(pygrad.nn.Module)["training"] is bool
    # Those of a module, among names that are not of the file of its class, as fastai asks.
    assert typing.get_type_hints(pygrad.nn.MSELoss(), globalns={})
    assert len(KINDS) > 200


def test_type_hints_of_every_constructor_and_function_can_be_read() -> None:
    for kind in KINDS:
        typing.get_type_hints(kind.__init__)
    for name in "nn.init nn.utils optim autograd utils.data fx func linalg random".split():
        for function in vars(importlib.import_module(f"pygrad.{name}")).values():
            if inspect.isfunction(function):
                typing.get_type_hints(function)
    assert typing.get_type_hints(pygrad.nn.Linear.__init__)["in_features"] is int
    assert typing.get_type_hints(pygrad.fx.Node.__init__)["graph"] is pygrad.fx.Graph


def test_class_of_a_private_module_says_where_it_is_shown() -> None:
    program = """
        import pygrad; pygrad.install()
        import torch
        for kind in (torch.OutOfMemoryError, torch.autocast, torch.serialization.safe_globals,
                     torch.autograd.graph.saved_tensors_hooks):
            print(kind.__module__, kind.__name__)
        pygrad.uninstall()
        print(pygrad.OutOfMemoryError.__module__)
        """
    assert lines(program) == [
        "torch OutOfMemoryError",
        "torch.amp.autocast_mode autocast",
        "torch.serialization safe_globals",
        "torch.autograd.graph saved_tensors_hooks",
        "pygrad",
    ]


def test_type_hints_can_be_read_while_installed() -> None:
    program = """
        import pygrad; pygrad.install()
        import torch, typing, torch.distributions, torch.profiler
        for module in (torch, torch.nn, torch.optim, torch.autograd, torch.utils.data,
                       torch.distributions, torch.autograd.graph, torch.profiler):
            for kind in list(vars(module).values()):
                if isinstance(kind, type) and kind.__module__.startswith("torch"):
                    typing.get_type_hints(kind)
        print(typing.get_type_hints(torch.nn.Module)["training"])
        """
    assert lines(program) == ["<class 'bool'>"]


def test_parameter_classes_have_arguments_of_their_own() -> None:
    class Quantized(pygrad.nn.Parameter):
        def __new__(cls, data: Any, bits: int = 8, *, name: str = "") -> Any:
            made = super().__new__(cls, data, requires_grad=False)
            made.bits, made.called = bits, name
            return made

    weight: Any = Quantized(pygrad.ones(2), 4, name="w")
    assert (weight.bits, weight.called, type(weight)) == (4, "w", Quantized)
    module = pygrad.nn.Module()
    module.weight = weight
    assert dict(module.named_parameters()) == {"weight": weight}
    with pytest.raises(TypeError, match="unexpected keyword argument 'bits'"):
        pygrad.nn.Parameter(pygrad.ones(1), bits=1)  # type: ignore[call-arg]


# ------------------------------------------------------------------ what is asked for in vain

ASKS = """
import torch
for _ in range(3):
    hasattr(torch, "nowhere")
try:
    torch.onnx.export(None)
except NotImplementedError:
    pass
for _ in range(2):
    try:
        torch.add(torch.ones(1), torch.ones(1), loud=True)
    except TypeError:
        pass
try:
    torch.ones(1).louder()
except AttributeError as error:
    print(error)
try:
    torch.cuda.synchronize()
except AssertionError:
    pass
try:
    import torch.no_such_module
except ImportError:
    pass
torch.nn.SyncBatchNorm, torch.distributed.fsdp, torch.jit.script, hasattr(torch, "__wrapped__")
"""
REPORT = """\
pygrad: asked for in vain (PYGRAD_TRACE_MISSING)
3  not found   torch.nowhere
2  no keyword  add(loud=)
1  called      torch.cuda.synchronize
1  called      torch.onnx.export
1  not found   torch.Tensor.louder
1  not found   torch.no_such_module
"""


def test_what_was_asked_for_in_vain_is_told_at_the_end() -> None:
    done = python("-m", "pygrad", "-c", ASKS, PYGRAD_TRACE_MISSING="1")
    assert done.stdout == "'Tensor' object has no attribute 'louder'\n"
    assert done.stderr == REPORT


def test_nothing_is_told_of_a_program_that_finds_all_or_does_not_ask() -> None:
    program = (
        "import torch, torch.utils.checkpoint\n"
        "torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()"
    )
    done = python("-m", "pygrad", "-c", program, PYGRAD_TRACE_MISSING="1")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    for off in ("", "0"):
        done = python("-m", "pygrad", "-c", ASKS, PYGRAD_TRACE_MISSING=off)
        assert (done.stderr, done.returncode) == ("", 0)


def test_engines_tell_it_once() -> None:
    program = "import pygrad; e = pygrad.Engine(); pygrad.install(); import torch; torch.nn.nowhere"
    program = f"try: exec({program!r})\nexcept AttributeError: pass"
    done = python("-c", program, PYGRAD_TRACE_MISSING="1")
    assert done.stderr.splitlines()[1:] == ["1  not found   torch.nn.nowhere"]


# ------------------------------------------------------------------ modules of torch, compiled ones


def test_module_of_torch_runs_as_a_program() -> None:
    done = python("-m", "pygrad", "-m", "torch.utils.collect_env")
    assert done.returncode == 0, done.stderr
    assert "PyTorch version: 2.13" in done.stdout
    assert "[pip3] wasmtime==" in done.stdout


@pytest.mark.parametrize("module", ["torch.distributed.run", "torch.distributed.launch"])
def test_module_that_is_not_here_says_what_to_do(module: str) -> None:
    done = python("-m", "pygrad", "-m", module, "--nproc-per-node=2", "train.py")
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        f"pygrad has no {module}: start the processes by mpiexec, or on a Ray cluster"
    )
    assert "Traceback" not in done.stderr


def test_error_of_a_module_compiled_for_pytorch_names_the_way_out(tmp_path: Path) -> None:
    """No linker loads these files; what they say that they need tells them apart."""
    for name, needs in (("for_torch", b"\0libc10.so\0libtorch_cpu.so\0"), ("other", b"libm.so")):
        suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
        (tmp_path / f"{name}{suffix}").write_bytes(b"\x7fELF" + bytes(100) + needs)
    told = "for_torch is compiled against PyTorch's C++ libraries, which pygrad has not"
    for name, said in (("for_torch", True), ("other", False)):
        done = python("-m", "pygrad", "-c", f"import {name}", cwd=tmp_path)
        assert "ImportError" in done.stderr
        assert (told in done.stderr) is said
    program = "import pygrad; pygrad.install(); pygrad.uninstall(); import for_torch"
    done = python("-c", program, cwd=tmp_path)
    assert "ImportError" in done.stderr
    assert told not in done.stderr
