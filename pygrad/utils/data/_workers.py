"""The processes of a `DataLoader` with `num_workers`.

Each has two pipes: one for numbered indices, one for pickled batches. Only the two processes hold
the ends, so an end of file shows either that the other is gone. Closing a pipe is also the signal
for a worker to stop.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import multiprocessing
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...nn.parameter import Parameter
from . import _fetch

if TYPE_CHECKING:
    from .dataloader import DataLoader

_PATIENCE: Final = 5.0
"""Seconds until a worker that does not end is terminated, and between checks that it is alive."""

_our_ends: Final[weakref.WeakSet[Connection]] = weakref.WeakSet()
"""This process's ends of its workers' pipes. A fork copies them, so every worker closes them."""


def context_of(value: Any) -> BaseContext:
    """The multiprocessing context for the user's argument.

    Raises:
        ValueError: an unknown start method.
        TypeError: neither a name nor a context.
    """
    if isinstance(value, str):
        methods = multiprocessing.get_all_start_methods()
        if value not in methods:
            raise ValueError(
                "multiprocessing_context option "
                f"should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={value!r}"
            )
        return multiprocessing.get_context(value)
    if not isinstance(value, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context "
            "object or a string specifying the start method, but got "
            f"multiprocessing_context={value}"
        )
    return value


# ------------------------------------------------------------------ messages


class _Pickler(ForkingPickler):
    """Pickles tensors by value; an error for a tensor whose graph would be lost."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            _check_graph(value)
        return NotImplemented


def _check_graph(tensor: Tensor) -> None:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, "
            "since autograd does not support crossing process boundaries.  "
            "If you just want to transfer the data, call detach() on the tensor "
            "before serializing (e.g., putting it on the queue)."
        )


def reduce_tensor(tensor: Tensor) -> Any:
    """Reduces a tensor to its values; an error if its graph would be lost."""
    _check_graph(tensor)
    return tensor.__reduce_ex__(2)


def refuse_graphs() -> None:
    """Registers `reduce_tensor` for all pickling of `multiprocessing`."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)


_pickled: Final = _Pickler.dumps


class _Verbatim(str):
    """A text that KeyError shows verbatim, with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class _Failure:
    """An exception of a worker."""

    kind: type[BaseException]
    text: str

    def error(self) -> BaseException:
        """An exception of the same type with the worker's traceback in its text."""
        try:
            if issubclass(self.kind, KeyError):
                return self.kind(_Verbatim(self.text))
            if getattr(self.kind, "message", None):
                return cast("Callable[..., BaseException]", self.kind)(message=self.text)
            return self.kind(self.text)
        except Exception:  # its constructor takes other arguments
            return RuntimeError(self.text)


@dataclass(frozen=True)
class _Over:
    """The worker's iterable dataset is exhausted."""


# ------------------------------------------------------------------ in the worker


class _Sender:
    """Sends from a thread, so that a full pipe does not keep the worker from loading."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._waiting: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, message: memoryview) -> None:
        """Queues a message."""
        self._waiting.put(message)

    def finish(self) -> None:
        """Returns when all messages are sent, or the reader is gone."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while (message := self._waiting.get()) is not None:
                self._pipe.send_bytes(message)


def _messages(pipe: Connection) -> Iterator[Any]:
    """The messages of the loader. Ends when the loader closes the pipe, even with messages left."""
    waiting: collections.deque[bytes] = collections.deque()
    while True:
        try:
            while not waiting or pipe.poll():
                waiting.append(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        yield pickle.loads(waiting.popleft())


def _seed_all(base_seed: int, worker: int) -> None:
    """Seeds the generators of this process as PyTorch does."""
    random.seed(base_seed + worker)
    pygrad.manual_seed(base_seed + worker)
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))


class _Service:
    """The answers of a worker to messages."""

    def __init__(
        self, worker: int, fetcher: _fetch.Fetcher, init_fn: Callable[[int], None] | None
    ) -> None:
        self._where = f"in DataLoader worker process {worker}"
        self._fetcher = fetcher
        if init_fn is None:
            self.begin()
        else:
            self.begin(functools.partial(init_fn, worker))

    def _failure(self, error: Exception) -> _Failure:
        original = "".join(traceback.format_exception(error))
        kind = type(error)
        return _Failure(kind, f"Caught {kind.__name__} {self._where}.\nOriginal {original}")

    def begin(self, *first: Callable[[], object]) -> None:
        """Begins a new pass over the dataset. An error becomes the answer to every task."""
        self._over = False
        self._refusal: _Failure | None = None
        try:
            for step in (*first, self._fetcher.begin):
                step()
        except Exception as error:
            self._refusal = self._failure(error)

    def answer(self, number: int, index: Any) -> memoryview | None:
        """The message for an index; None after the end of an iterable dataset."""
        if self._over:
            return None
        result: Any = self._refusal
        if result is None:
            try:
                return _pickled((number, self._fetcher.fetch(index)))
            except Exception as error:
                self._over = self._fetcher.streams and isinstance(error, StopIteration)
                result = _Over() if self._over else self._failure(error)
        try:
            return _pickled((number, result))
        except Exception:  # the type cannot be pickled by name
            return _pickled((number, _Failure(RuntimeError, result.text)))


def _work(
    fetcher: _fetch.Fetcher,
    base_seed: int,
    init_fn: Callable[[int], None] | None,
    worker: int,
    n_workers: int,
    indices: Connection,
    batches: Connection,
) -> None:
    """The main function of a worker."""
    for end in list(_our_ends):
        end.close()
    sender = _Sender(batches)
    try:
        _seed_all(base_seed, worker)
        _fetch.begin_worker(
            _fetch.WorkerInfo(worker, n_workers, base_seed + worker, fetcher.dataset)
        )
        service = _Service(worker, fetcher, init_fn)
        for message in _messages(indices):
            if message is None:
                service.begin()
            elif (answer := service.answer(*message)) is not None:
                sender.put(answer)
    except KeyboardInterrupt:
        pass  # the loader's process was interrupted too, and reports it
    finally:
        sender.finish()


# ------------------------------------------------------------------ in the process of the loader


@dataclass(eq=False)
class _Worker:
    """The loader's view of a worker.

    Attributes:
        active: whether it gets tasks: it is alive, and its iterable dataset is not exhausted.
        n_tasks: the number of its tasks.
    """

    process: BaseProcess
    indices: Connection
    batches: Connection
    active: bool = True
    n_tasks: int = 0

    @classmethod
    def start(cls, context: Any, number: int, n_workers: int, *job: Any) -> _Worker:
        """Starts a process that runs `_work`."""
        indices_out, indices_in = context.Pipe(duplex=False)
        batches_out, batches_in = context.Pipe(duplex=False)
        _our_ends.update((indices_in, batches_out))
        process = context.Process(
            target=_work,
            args=(*job, number, n_workers, indices_out, batches_in),
            daemon=True,
        )
        try:
            process.start()
        finally:
            indices_out.close()
            batches_in.close()
        return cls(process, indices_in, batches_out)

    def send(self, message: Any) -> None:
        """Sends to a worker. If it is gone, the loader notices when it waits for the answer."""
        with contextlib.suppress(BrokenPipeError):
            self.indices.send_bytes(_pickled(message))

    def cause_of_death(self) -> RuntimeError:
        """The error for a worker that ended unexpectedly."""
        self.process.join(_PATIENCE)
        code, name = self.process.exitcode, f"DataLoader worker (pid {self.process.pid})"
        if code is not None and code < 0:
            return RuntimeError(f"{name} is killed by signal: {signal.strsignal(-code)}. ")
        return RuntimeError(
            f"{name} exited unexpectedly with exit code {code}. Details are lost due to "
            "multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )


def _stop(workers: list[_Worker], owner: int) -> None:
    """Ends all workers; terminates those that do not end in time."""
    if os.getpid() != owner:
        return  # in a forked child, the workers belong to the parent
    for worker in workers:
        worker.indices.close()
        worker.batches.close()
    last = time.monotonic() + _PATIENCE
    for end in (lambda process: None, BaseProcess.terminate, BaseProcess.kill):
        for worker in workers:
            if worker.process.is_alive():
                end(worker.process)
                worker.process.join(max(0.0, last - time.monotonic()))
        last = time.monotonic() + _PATIENCE


class Workers:
    """The workers of one iterator. They end when it is exhausted or deleted.

    Tasks are numbered. `_tasks` has those without an answer, oldest first. Each worker answers in
    order.
    """

    def __init__(self, loader: DataLoader[Any], fetcher: _fetch.Fetcher, base_seed: int) -> None:
        assert loader.prefetch_factor is not None
        if loader.prefetch_factor <= 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        self._most_tasks = loader.prefetch_factor * loader.num_workers
        self._workers: list[_Worker] = []
        self._tasks: dict[int, _Worker] = {}
        self._n_sent = 0
        self._first_of_pass = 0
        self._indices: Iterator[Any] = iter(())
        self.stop = weakref.finalize(self, _stop, self._workers, os.getpid())
        job = fetcher, base_seed, loader.worker_init_fn
        for k in range(loader.num_workers):
            self._workers.append(_Worker.start(context, k, loader.num_workers, *job))
        self._cycle = collections.deque(self._workers)

    def begin(self, indices: Iterator[Any]) -> None:
        """Begins the first pass, or with persistent workers the next one."""
        if self._n_sent:
            for worker in self._workers:
                worker.active, worker.n_tasks = True, 0
                worker.send(None)
            self._cycle = collections.deque(self._workers)
        self._indices = indices
        self._tasks.clear()
        self._first_of_pass = self._n_sent
        self._fill()

    def next_batch(self) -> Any:
        """The next batch.

        Raises:
            StopIteration: there is no further batch.
            RuntimeError: a worker died, or `timeout` has passed.
            Exception: an exception of a worker, with its traceback in the text.
        """
        while self._tasks:
            number, answer = self._receive()
            worker = self._tasks.pop(number)
            worker.n_tasks -= 1
            if isinstance(answer, _Over):
                self._retire(worker)
                continue
            self._fill()
            if isinstance(answer, _Failure):
                raise answer.error()
            return answer
        if not self._persistent:
            self.stop()
        raise StopIteration

    def _fill(self) -> None:
        """Sends tasks up to the limit of pending ones."""
        while len(self._tasks) < self._most_tasks:
            worker = self._next_worker()
            if worker is None:
                return
            try:
                index = next(self._indices)
            except StopIteration:
                return
            self._tasks[self._n_sent] = worker
            worker.n_tasks += 1
            worker.send((self._n_sent, index))
            self._n_sent += 1

    def _next_worker(self) -> _Worker | None:
        """The next worker in turn, or None. If out of order, skips workers with too many tasks."""
        n_active = sum(worker.active for worker in self._workers)
        for _ in self._workers:
            worker = self._cycle[0]
            self._cycle.rotate(-1)
            if worker.active and (self._in_order or worker.n_tasks * n_active < self._most_tasks):
                return worker
        return None

    def _receive(self) -> tuple[int, Any]:
        """The next answer: to the oldest task, or if out of order the first to arrive."""
        asked = list(dict.fromkeys(self._tasks.values()))
        if self._in_order:
            del asked[1:]
        until = time.monotonic() + self._timeout if self._timeout else float("inf")
        while True:
            left = max(0.0, until - time.monotonic())
            ready = wait([worker.batches for worker in asked], min(left, _PATIENCE))
            for worker in asked:
                if worker.batches in ready or not worker.process.is_alive():
                    number, answer = self._read(worker)
                    if number >= self._first_of_pass:
                        return number, answer
                    break  # the answer to a task of an earlier pass
            else:
                if time.monotonic() >= until:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _read(self, worker: _Worker) -> tuple[int, Any]:
        """Reads a message of a worker with data; raises if the worker is gone."""
        try:
            if worker.batches.poll():
                message: tuple[int, Any] = pickle.loads(worker.batches.recv_bytes())
                return message
        except (EOFError, ConnectionResetError):
            pass
        cause = worker.cause_of_death()
        self._retire(worker)
        raise RuntimeError(
            f"DataLoader worker (pid(s) {worker.process.pid}) exited unexpectedly"
        ) from cause

    def _retire(self, worker: _Worker) -> None:
        """Gives a worker no more tasks in this pass, and drops its pending ones."""
        worker.active = False
        if not self._persistent:
            worker.indices.close()
        self._tasks = {n: other for n, other in self._tasks.items() if other is not worker}
        self._fill()
