"""The first use after an installation, when what is compiled takes its time: said in one line, and done before a search."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import numpy as np

from tilewright.child import Child
from tilewright.compiled import kept
from tilewright.errors import TilewrightError
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.costmodel import Bounder, CandidateEvaluator, Evaluator, Relaxable
from tilewright.plugin.guard.calls import calling, is_trusted
from tilewright.plugin.guard.mappers import GuardedMapper
from tilewright.plugin.guard.models import GuardedEvaluator, guarded_evaluator
from tilewright.plugin.mapper import Budget, Run, Task

SECONDS = 1.5
"""What is loaded takes less, what is compiled takes more."""


def warm_up(evaluator: Evaluator, task: Task, mapper: GuardedMapper) -> None:
    """Evaluate nothing, so that what compiles at first use has done so before a search's clock starts. While it does, another
    process compiles what the mapper compiles, and leaves it on disk. A third party's plugin is not asked: what it compiles counts as its search."""
    if not is_trusted(guarded_evaluator(evaluator, task.problem, task.architecture).owner):
        return
    space = task.space
    nothing = Candidates(space, np.zeros((0, len(space.slots), len(task.problem.sizes)), dtype=np.int64))
    evaluator = guarded_evaluator(evaluator, task.problem, task.architecture)
    with closing(_Beside(mapper, task, evaluator)) as beside:
        with told(beside.begin):
            nothing.fits()
            with (
                suppress(TilewrightError),
                calling(evaluator.owner, "evaluating nothing"),
            ):  # it will break again where that is told
                evaluator.evaluate_batch(nothing.batch())
                if isinstance(evaluator, CandidateEvaluator):
                    evaluator.evaluate_candidates(nothing)
        beside.wait()


class _Beside:
    """What a mapper compiles, in a process of its own. Where nothing comes of it, it is compiled here, by the search."""

    def __init__(self, mapper: GuardedMapper, task: Task, evaluator: GuardedEvaluator) -> None:
        self.mapper, self.task, self.evaluator = mapper, task, evaluator
        self.child = Child(quiet=True)
        self.started = False

    def begin(self) -> None:
        """Unless it would wait for this process, or what it compiles would be lost."""
        if _cores() > 1 and kept() and is_trusted(self.mapper.owner):
            with suppress(Exception):  # pickling a third party's object may raise anything
                self.child.begin(_compile, self.mapper, self.task, self.evaluator)
                self.started = True

    def wait(self) -> None:
        if self.started:
            self.child.message_queue.get()

    def close(self) -> None:
        self.child.close()


def _compile(mapper: GuardedMapper, task: Task, evaluator: GuardedEvaluator) -> None:
    mapper.search(task, begun(evaluator, Budget(), seed=0)).close()


def begun(evaluator: GuardedEvaluator, budget: Budget, seed: int, clock: Callable[[], float] = time.monotonic) -> Run:
    """What a mapper may know of a search."""
    bounder = evaluator if isinstance(evaluator, Bounder) else None
    relaxable = evaluator if isinstance(evaluator, Relaxable) else None
    return Run(np.random.default_rng(seed), budget, clock, bounder, relaxable)


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@contextmanager
def told(also: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Says so, on stderr, if what is done inside takes longer than loading it would, and does something else then."""

    def tell() -> None:
        message = "compiling: up to a minute, once after installing or updating; it is kept for the next time"
        logging.getLogger("tilewright").warning(message)
        also()

    timer = threading.Timer(SECONDS, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # what it has begun is known then
