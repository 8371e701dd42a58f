"""Searches on a Dask cluster: a few per worker at a time, each result taken as it arrives and released at once.

Code of Tilewright and of the plugins has to be installed on the workers. What a worker that is lost had in hand is searched again by another one; a search
that its workers die of comes back as a failure, and costs no other one.
"""

from __future__ import annotations

import importlib
import queue
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import cloudpickle  # type: ignore[import-untyped]

from tilewright.errors import InputError, PluginError
from tilewright.interrupts import something_found, waking
from tilewright.run.network import LayerSearch, MappedLayer, map_problem

AHEAD = 3
"""Searches that each worker thread has in hand."""
PATIENCE = 30
"""Seconds until a scheduler answers."""
RETRIES = 2
"""How often a search whose work failed is begun again; workers that die are counted by the cluster itself."""


class Cluster:
    """A Dask cluster, by the address of its scheduler.

    Raises:
        InputError: Dask is not installed, or nobody answers there.
    """

    def __init__(self, address: str) -> None:
        try:
            self.dask: Any = importlib.import_module("distributed")
        except ImportError:
            raise InputError("a cluster needs Dask", hint="pip install 'tilewright[dask]'") from None
        try:
            self.client: Any = self.dask.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}", hint="dask scheduler starts one") from None  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:  # fmt: skip
        self.client.close()

    def __call__(self, searches: Sequence[LayerSearch]) -> Iterator[tuple[int, MappedLayer]]:
        """(position, what was found) as each is done; Ctrl-C gives up the rest."""
        waiting = iter(enumerate(searches))
        places: dict[Any, int] = {}
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def begin() -> bool:
            following = next(waiting, None)
            if following is None:
                return False
            position, one = following
            future = self.client.submit(_searched, cloudpickle.dumps(one), pure=False, retries=RETRIES)
            places[future] = position
            future.add_done_callback(done.put)
            return True

        threads = sum(self.client.nthreads().values()) or 1
        for _ in range(AHEAD * threads):
            begin()
        try:
            with waking(lambda: done.put(None)):
                while places and (future := done.get()) is not None:
                    position = places.pop(future)
                    yield position, _told(future, searches[position])
                    future.release()
                    begin()
        finally:
            self.client.cancel(list(places))


def _searched(message: bytes) -> MappedLayer:
    """On a worker; objects of notebooks and scripts travel, too."""
    one: LayerSearch = cloudpickle.loads(message)
    return map_problem(one.distinct, one.configuration)


def _told(future: Any, one: LayerSearch) -> MappedLayer:
    """What a future has, or why it has nothing."""
    error = future.exception()
    if error is None:
        found: MappedLayer = future.result()
        something_found()
        return found
    plugins = f"mapper {one.configuration.mapper_record}, cost model {one.configuration.model.record}"
    message = f"the search failed on the cluster: {type(error).__name__}: {error} ({plugins})"
    return MappedLayer(one.distinct, error=PluginError(message, plugin=plugins))
