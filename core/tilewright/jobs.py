"""Layers mapped in processes beside this one; results, progress and Ctrl-C travel between them.

A folder of the run's own carries what joblib does not: each search leaves its progress there, and a file named `stop`
ends them all with the best they have.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tilewright.errors import PluginError
from tilewright.search import Progress

if TYPE_CHECKING:
    from tilewright.network import MappedLayer, Method, Watch
    from tilewright.workload import DistinctProblem

SECONDS = 0.2
"""Between two looks at the progress."""


def in_processes(
    todo: Sequence[DistinctProblem], method: Method, watch: Watch | None, jobs: int
) -> Iterator[tuple[int, MappedLayer]]:
    """(position, layer) in the order in which they are done. After Ctrl-C those under way come back with their best
    so far, and those not begun never.

    Raises:
        PluginError: a process died, or a plugin cannot be sent to one.
    """
    import joblib  # type: ignore[import-untyped]  # only when it is asked for

    with TemporaryDirectory(prefix="tilewright-") as name, _stopping(Path(name)):
        folder = Path(name)
        with _polling(folder, todo, method, watch):
            run = joblib.Parallel(n_jobs=min(jobs, len(todo)), return_as="generator_unordered", batch_size=1)
            tasks = (joblib.delayed(_work)(index, each, method, folder) for index, each in enumerate(todo))
            try:
                for index, layer in run(tasks):
                    if layer is not None:
                        yield index, layer
            except Exception as error:
                raise PluginError(
                    f"a process that mapped layers broke: {type(error).__name__}: {error}",
                    hint="try --jobs 1, which says more",
                ) from error


def _work(index: int, distinct: DistinctProblem, method: Method, folder: Path) -> tuple[int, MappedLayer | None]:
    """One search, in its own process."""
    from tilewright.network import map_problem

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
    if (folder / "stop").exists():
        return index, None
    last = -SECONDS

    def watch(_: DistinctProblem, progress: Progress) -> None:
        nonlocal last
        if (folder / "stop").exists():
            raise KeyboardInterrupt
        if time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            part = folder / f"{index}.part"
            part.write_text(
                json.dumps([progress.evaluated, progress.valid, progress.best, progress.elapsed_seconds]), "utf-8"
            )
            os.replace(part, folder / f"{index}.progress")

    return index, map_problem(distinct, method, watch)


@contextmanager
def _stopping(folder: Path) -> Iterator[None]:
    """The first Ctrl-C asks the searches to stop, the second ends everything."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        (folder / "stop").touch()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _polling(folder: Path, todo: Sequence[DistinctProblem], method: Method, watch: Watch | None) -> Iterator[None]:
    """Tells a watcher what the searches have left, as long as it lasts."""
    if watch is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_poll, args=(folder, todo, method, watch, over.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _poll(
    folder: Path, todo: Sequence[DistinctProblem], method: Method, watch: Watch, wait: Callable[[float], bool]
) -> None:
    told: dict[Path, str] = {}
    while not wait(SECONDS):
        for path in folder.glob("*.progress"):
            with suppress(OSError):
                text = path.read_text("utf-8")
                if told.get(path) != text:
                    told[path] = text
                    evaluated, valid, best, elapsed_seconds = json.loads(text)
                    watch(todo[int(path.stem)], Progress(evaluated, valid, best, elapsed_seconds, method.budget))
