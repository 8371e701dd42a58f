"""Searches on a Dask cluster: a few per worker at a time, each result taken as it arrives and released at once.

Tilewright and the plugins have to be installed on the workers. Every worker proves versions and code before it searches; one
that differs is refused. A search whose worker is lost is begun again on another one. A search that its workers die of comes
back as a failure. Every wait has a limit.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import math
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeVar

import cloudpickle  # type: ignore[import-untyped]

from tilewright.application.run.compilation_warm_up import warm_up
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import LayerSearch, MappedLayer, Wanted, bound, every, map_problem
from tilewright.digests import of_package
from tilewright.errors import ClusterError, InputError, PluginError, TilewrightError, printable, shortened
from tilewright.files import turn_on_host
from tilewright.interrupts import mark_result_found, on_interrupt, stop_requested
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Task
from tilewright.schema.mapped import PluginRecord

AHEAD = 3
"""Searches that each worker thread has in hand."""
PATIENCE = 30.0
"""Seconds until a scheduler answers, and until it has a worker."""
LOST_SECONDS = 60.0
"""Seconds for which a run waits for workers after the last one is lost."""
LOOK_SECONDS = 5.0
"""Between two looks at which workers there are."""
CLOSING_SECONDS = 5.0
RETRIES = 2
"""Number of times that a search is restarted after all workers allowed to run it are lost."""
COMPILE_SECONDS = 600.0
"""For which a worker waits for another one of its host that compiles kernels."""
SILENT_SECONDS = 15.0
"""Without a result until a message says what workers do at first."""
_compiled: list[tuple[PluginRecord, PluginRecord]] = []
"""Mapper and cost model of the searches that this worker had."""
_POLL_SECONDS = 0.2
FIRST = "note: no search is finished yet; the first ones compile kernels, once on each host, in one to four minutes"
_SAME = "install the same versions of Tilewright and the plugins there, and restart the worker"

Identity = dict[str, str]
"""Versions of software, and digests of packages' code, by name."""
Answer = tuple[Literal["found", "failed", "differs"], Any]
Returned = TypeVar("Returned")


class _Stopped(KeyboardInterrupt):
    """Ctrl-C came during a wait."""


class Cluster:
    """A Dask cluster, by the address of its scheduler.

    Args:
        configuration: how searches are made; its plugins are those that workers have to have.

    Raises:
        InputError: Dask is not installed.
        ClusterError: no scheduler answers, it has no workers, or all of them are refused.
    """

    def __init__(self, address: str, configuration: RunConfiguration) -> None:
        try:
            self.dask: Any = importlib.import_module("distributed")
        except ImportError:
            raise InputError("a cluster needs Dask", hint="pip install 'tilewright[dask]'") from None
        self.address = address
        needed = _needed(configuration)
        self.proof = needed, identity(*needed)
        """Question to workers, and the answer that they have to give."""
        self._proved: set[str] = set()
        self.refused: dict[str, str] = {}
        for name in ("client", "comm", "core", "utils"):  # lost connections are reported here
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        try:
            self.client: Any = _within(PATIENCE + CLOSING_SECONDS, self._connected)
        except Exception as error:  # the exception depends on the protocol of the address
            raise ClusterError(
                f"no Dask scheduler answers at {address}: {_one_line(error)}",
                hint="dask scheduler starts one and prints its address, such as tcp://HOST:8786",
            ) from None
        try:
            self._wait_for_workers()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:  # fmt: skip
        self._close()

    def _connected(self) -> Any:
        client = self.dask.Client(self.address, timeout=PATIENCE, set_as_default=False)
        # of a lost connection asyncio would print a traceback
        client.loop.asyncio_loop.set_exception_handler(lambda loop, context: None)
        return client

    def _close(self) -> None:
        with suppress(Exception):  # a lost scheduler needs no goodbye
            _within(CLOSING_SECONDS, lambda: self.client.close(timeout=CLOSING_SECONDS))

    # who may search

    def _wait_for_workers(self) -> None:
        """Raises ClusterError: there is no worker in time, or all are refused."""
        end = time.monotonic() + PATIENCE
        while not (self.good() or time.monotonic() > end or self.refused):
            time.sleep(_POLL_SECONDS)
        if not self.good():
            self.without_workers(PATIENCE)

    def without_workers(self, seconds: float) -> NoReturn:
        """Raises ClusterError: why there are none."""
        refused = "".join(f"\n  {worker}: {why}" for worker, why in self.refused.items())
        if refused:
            raise ClusterError(f"all workers of the Dask scheduler at {self.address} are refused:{refused}", hint=_SAME)
        raise ClusterError(
            f"the Dask scheduler at {self.address} had no workers for {seconds:g} s",
            hint=f"dask worker {self.address} --nthreads 1 starts one; then the same command continues",
        )

    def good(self) -> dict[str, int]:
        """Return worker -> threads of those that are there and have proved themselves. Raises ClusterError: the scheduler is lost."""
        try:
            there: dict[str, int] = _within(PATIENCE, self.client.nthreads)
        except Exception as error:  # Dask raises what the connection does
            raise self.lost(_one_line(error)) from None
        new = [worker for worker in there if worker not in self._proved and worker not in self.refused]
        if new:
            self._prove(new)
        return {worker: threads for worker, threads in there.items() if worker in self._proved}

    def _prove(self, workers: list[str]) -> None:
        """Ask workers for what they run, and refuse those that differ."""
        try:
            answers: dict[str, Any] = _within(
                PATIENCE, lambda: self.client.run(identity, *self.proof[0], workers=workers, on_error="return")
            )
        except (
            Exception
        ) as error:  # they do not answer, or one was lost meanwhile: they are asked again at the next look
            logging.getLogger("tilewright").warning(
                "warning: workers of %s do not answer: %s", self.address, _one_line(error)
            )
            return
        for worker, answer in answers.items():
            if answer == self.proof[1]:
                self._proved.add(worker)
            elif isinstance(answer, OSError):
                continue  # it was lost meanwhile
            else:
                self.refuse(worker, _difference(answer, self.proof[1]))

    def refuse(self, worker: str, why: str) -> None:
        """Give a worker no searches, and say why."""
        if worker in self.refused:
            return
        self.refused[worker] = why
        self._proved.discard(worker)
        logging.getLogger("tilewright").warning("warning: worker %s is refused: %s; %s", worker, why, _SAME)

    def lost(self, why: str) -> ClusterError:
        """Return the error of a lost scheduler."""
        return ClusterError(
            f"the Dask scheduler at {self.address} is lost: {why}",
            hint="finished results are kept; start the scheduler and workers again, and the same command continues",
        )

    # searches

    def __call__(self, searches: Sequence[LayerSearch], *, wanted: Wanted = every) -> Iterator[tuple[int, MappedLayer]]:
        """Yield (position, what was found) as each is done; Ctrl-C gives up the rest.

        Where the cluster is lost, the searches that were begun come back with the ClusterError.
        """
        run = _Run(self, searches, wanted)
        try:
            with on_interrupt(lambda: run.done.put(None)), suppress(_Stopped):
                yield from run.results()
        except ClusterError as error:
            for position in run.unfinished():
                yield position, MappedLayer(searches[position].distinct, error=error)
        finally:
            run.cancel()


class _Run:
    """Searches under way on a cluster."""

    def __init__(self, cluster: Cluster, searches: Sequence[LayerSearch], wanted: Wanted) -> None:
        self.cluster, self.searches = cluster, searches
        self.waiting = (position for position in range(len(searches)) if wanted(position))
        self.exhausted = not searches
        self.again: deque[int] = deque()
        """Positions that were begun, and are to be begun again."""
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.positions: dict[Any, int] = {}
        self.allowed: dict[Any, frozenset[str]] = {}
        """Future -> the workers that may do it, where not all may."""
        self.losses: Counter[int] = Counter()
        self.yielded: set[int] = set()

    def results(self) -> Iterator[tuple[int, MappedLayer]]:
        """Yield (position, what was found). Raises ClusterError, _Stopped."""
        for position, layer in self._results():
            self.yielded.add(position)
            yield position, layer

    def unfinished(self) -> list[int]:
        """Return the positions of the searches that nothing was yielded of."""
        return [position for position in range(len(self.searches)) if position not in self.yielded]

    def cancel(self) -> None:
        """Give up what is under way."""
        with suppress(Exception):  # a lost scheduler has forgotten it
            _within(CLOSING_SECONDS, lambda: self.cluster.client.cancel(list(self.positions)))

    def _results(self) -> Iterator[tuple[int, MappedLayer]]:
        good = self.cluster.good()
        seen = looked = time.monotonic()
        self._fill(good)
        silent = time.monotonic() + SILENT_SECONDS
        while self.positions or self.again or not self.exhausted:
            if time.monotonic() > looked + LOOK_SECONDS:
                looked, good = time.monotonic(), self.cluster.good()
                seen = looked if good else seen
                if looked > seen + LOST_SECONDS:
                    self.cluster.without_workers(LOST_SECONDS)
                yield from self._lost(good)
            try:
                future = self.done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if not self.yielded and time.monotonic() > silent:
                    silent = math.inf
                    logging.getLogger("tilewright").warning(FIRST)
                continue
            if future is None:
                return
            if future in self.positions:  # else it was given up here
                yield from self._heard(future)
                good = {worker: threads for worker, threads in good.items() if worker not in self.cluster.refused}
            self._fill(good)

    def _fill(self, good: Mapping[str, int]) -> None:
        """Give the workers as many searches as they shall have in hand."""
        while len(self.positions) < AHEAD * sum(good.values()):
            position = self.again.popleft() if self.again else next(self.waiting, None)
            if position is None:
                self.exhausted = True
                return
            self._begin(position, good)

    def _begin(self, position: int, good: Mapping[str, int]) -> None:
        message = cloudpickle.dumps(self.searches[position])
        some = {"workers": sorted(good), "allow_other_workers": False} if self.cluster.refused else {}
        future = self.cluster.client.submit(search_there, message, *self.cluster.proof, pure=False, **some)
        self.positions[future] = position
        if some:
            self.allowed[future] = frozenset(good)
        future.add_done_callback(self.done.put)

    def _lost(self, good: Mapping[str, int]) -> Iterator[tuple[int, MappedLayer]]:
        """Begin searches again whose workers are all lost; yield those that lost theirs too often."""
        for future, allowed in list(self.allowed.items()):
            if good and not allowed & good.keys():
                position = self._forget(future)
                self.losses[position] += 1
                if self.losses[position] > RETRIES:
                    yield position, self._failure(position, f"its workers were lost {self.losses[position]} times")
                else:
                    self.again.append(position)
        self._fill(good)

    def _forget(self, future: Any) -> int:
        self.allowed.pop(future, None)
        position = self.positions.pop(future)
        future.release()
        return position

    def _heard(self, future: Any) -> Iterator[tuple[int, MappedLayer]]:
        """Yield what a search found, unless it is begun again. Raises ClusterError, _Stopped."""
        if future.status in ("cancelled", "lost"):
            raise self.cluster.lost("it has forgotten the searches under way")
        try:
            kind, value = _within(PATIENCE, lambda: future.result(timeout=PATIENCE))
        except ClusterError:
            raise
        except Exception as error:  # its workers died of it, or have no such function
            kind, value = "failed", _one_line(error)
            before = len(self.cluster.refused)
            self.cluster.good()
            if len(self.cluster.refused) > before:
                kind = "differs"
        position = self._forget(future)
        if kind == "found":
            mark_result_found()
            yield position, value
        elif kind == "differs":
            if isinstance(value, tuple):
                self.cluster.refuse(*value)
            self.again.append(position)
        else:
            yield position, self._failure(position, value)

    def _failure(self, position: int, why: str) -> MappedLayer:
        one = self.searches[position]
        plugins = f"mapper {one.configuration.mapper_record}, cost model {one.configuration.model.record}"
        message = f"the search failed on the cluster: {why} ({plugins})"
        return MappedLayer(one.distinct, error=PluginError(message, plugin=plugins))


# what runs on workers


def identity(distributions: Sequence[str], packages: Sequence[str]) -> Identity:
    """Return what this process runs: versions of distributions, and digests of the code of packages."""
    versions = {}
    for name in distributions:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    for name in packages:
        versions[f"code of {name}"] = of_package(name)
    return versions


def search_there(message: bytes, asked: tuple[Sequence[str], Sequence[str]], expected: Identity) -> Answer:
    """Search on a worker, after the proof that it runs what was expected; objects of notebooks and scripts travel, too."""
    here = identity(*asked)
    if here != expected:
        worker = importlib.import_module("distributed").get_worker().address
        return "differs", (worker, _difference(here, expected))
    try:
        one: LayerSearch = cloudpickle.loads(message)
        _compile(one)
        return "found", map_problem(one.distinct, one.configuration, start=one.start)
    except Exception as error:  # a plugin's class may raise anything when it is made again
        return "failed", _one_line(error)


def _compile(one: LayerSearch) -> None:
    """Compile the kernels of a worker's first search, one worker of a host after the other: the others load them."""
    plugins = (one.configuration.mapper_record, one.configuration.model.record)
    if plugins in _compiled:
        return
    _compiled.append(plugins)
    with turn_on_host("kernels", COMPILE_SECONDS), suppress(TilewrightError):  # the search reports the error
        space, _, evaluator = bound(one.distinct, one.configuration)
        task = Task(space, one.configuration.objective, one.configuration.most_cycles)
        warm_up(evaluator, task, guarded_mapper(one.configuration.mapper))


def _difference(there: object, expected: Identity) -> str:
    if isinstance(there, BaseException):
        return f"it cannot prove what it runs: {_one_line(there)}"
    if not isinstance(there, dict):
        return "it does not prove what it runs"
    versions, code = [], []
    for name, value in expected.items():
        if there.get(name) == value:
            continue
        if name.startswith("code of "):
            code.append(name.removeprefix("code of "))
        else:
            versions.append(f"{name} {there.get(name)} there, {value} here")
    return "; ".join([*versions, *([f"other code of {', '.join(code)}"] if code else [])]) or "it does not prove what it runs"  # fmt: skip


# what is here


def _needed(configuration: RunConfiguration) -> tuple[list[str], list[str]]:
    """(distributions, packages) that take part in searches. Objects that travel whole need none."""
    distributions, packages = {"tilewright"}, {"tilewright"}
    current: RunConfiguration | None = configuration
    while current is not None:
        distributions |= {
            record.distribution for record in (current.mapper_record, current.model.record) if record.distribution
        }
        packages |= current.packages
        current = current.fallback
    distributions = {name for name in distributions if _is_installed(name)}
    travelling = {name.partition(".")[0] for name in cloudpickle.list_registry_pickle_by_value()} | {"__main__"}
    return sorted(distributions), sorted(name for name in packages - travelling if of_package(name))


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _within(seconds: float, call: Callable[[], Returned]) -> Returned:
    """Return what a call into Dask returns. Raises what it raises, ClusterError: it takes too long, _Stopped: Ctrl-C came."""
    told: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def work() -> None:
        try:
            told.put((True, call()))
        except BaseException as error:  # it is raised where the answer is waited for
            told.put((False, error))

    threading.Thread(target=work, name="cluster", daemon=True).start()
    end = time.monotonic() + seconds
    while True:
        try:
            good, value = told.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            if stop_requested():
                raise _Stopped from None
            if time.monotonic() > end:
                raise ClusterError(f"the Dask cluster did not answer within {seconds:g} s", hint="check that its scheduler and workers run") from None  # fmt: skip
            continue
        if good:
            returned: Returned = value
            return returned
        raise value


def _one_line(error: object) -> str:
    if isinstance(error, TilewrightError):
        return error.message
    text = " ".join(str(error).split()) or "without a message"
    return printable(shortened(f"{type(error).__name__}: {text}"))
