"""Searches in processes beside this one; results, progress and Ctrl-C travel between them.

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
from typing import Any, TypeVar

from tilewright.errors import PluginError
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress, Watcher

Item = TypeVar("Item")
Found = TypeVar("Found")

SECONDS = 0.2
"""Between two looks at the progress."""


def in_processes(
    items: Sequence[Item],
    work: Callable[[Item, Watcher], Found],
    watch: Callable[[Item, Progress], None] | None,
    budget: Budget,
    jobs: int,
) -> Iterator[tuple[int, Found]]:
    """(position, what `work` made of the item) in the order in which they are done. After Ctrl-C those under way come
    back with their best so far, and those not begun never.

    Args:
        work: is sent to a process; it ends early, with what it has, when the watcher it is given raises
            KeyboardInterrupt.
        watch: is told the progress of each item.

    Raises:
        PluginError: a process died, or a plugin cannot be sent to one.
    """
    import joblib  # type: ignore[import-untyped]  # only when it is asked for

    with TemporaryDirectory(prefix="tilewright-") as name, _stopping(Path(name)):
        folder = Path(name)
        with _polling(folder, items, watch, budget):
            run = joblib.Parallel(n_jobs=min(jobs, len(items)), return_as="generator_unordered", batch_size=1)
            tasks = (joblib.delayed(_work)(index, each, work, folder) for index, each in enumerate(items))
            try:
                for index, found in run(tasks):
                    if found is not None:
                        yield index, found
            except Exception as error:
                raise PluginError(
                    f"a process that mapped layers broke: {type(error).__name__}: {error}",
                    hint="try --jobs 1, which says more",
                ) from error


def _work(index: int, item: Item, work: Callable[[Item, Watcher], Found], folder: Path) -> tuple[int, Found | None]:
    """One item, in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
    if (folder / "stop").exists():
        return index, None
    last = -SECONDS

    def watch(progress: Progress) -> None:
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

    return index, work(item, watch)


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
def _polling(
    folder: Path, items: Sequence[Item], watch: Callable[[Item, Progress], None] | None, budget: Budget
) -> Iterator[None]:
    """Tells a watcher what the searches have left, as long as it lasts."""
    if watch is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_poll, args=(folder, items, watch, budget, over.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _poll(
    folder: Path,
    items: Sequence[Item],
    watch: Callable[[Item, Progress], None],
    budget: Budget,
    wait: Callable[[float], bool],
) -> None:
    told: dict[Path, str] = {}
    while not wait(SECONDS):
        for path in folder.glob("*.progress"):
            with suppress(OSError):
                text = path.read_text("utf-8")
                if told.get(path) != text:
                    told[path] = text
                    evaluated, valid, best, elapsed_seconds = json.loads(text)
                    watch(items[int(path.stem)], Progress(evaluated, valid, best, elapsed_seconds, budget))
