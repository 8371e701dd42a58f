"""Compilation of kernels at first use: a message, and a warm-up before the search."""

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
"""CPU seconds that compiling takes and loading does not. On a loaded host, both take longer by the clock."""


def warm_up(evaluator: Evaluator, task: Task, mapper: GuardedMapper) -> None:
    """Evaluate an empty batch, so that kernels are compiled before the clock of a search starts.

    Meanwhile another process compiles the mapper's kernels into the cache. For third-party plugins,
    compilation is a part of the search.
    """
    if not is_trusted(guarded_evaluator(evaluator, task.problem, task.architecture).owner):
        return
    space = task.space
    nothing = Candidates(space, np.zeros((0, len(space.slots), len(task.problem.sizes)), dtype=np.int64))
    evaluator = guarded_evaluator(evaluator, task.problem, task.architecture)
    with closing(_BackgroundCompiler(mapper, task, evaluator)) as compiler:
        with compilation_notice(f"{evaluator.owner.name} and {mapper.owner.name}", compiler.begin):
            nothing.fits()
            with (
                suppress(TilewrightError),
                calling(evaluator.owner, "evaluating nothing"),
            ):  # the search reports the error
                evaluator.evaluate_batch(nothing.batch())
                if isinstance(evaluator, CandidateEvaluator):
                    evaluator.evaluate_candidates(nothing)
        compiler.wait()


class _BackgroundCompiler:
    """A child process that compiles a mapper's kernels.

    If it fails, the search compiles them.
    """

    def __init__(self, mapper: GuardedMapper, task: Task, evaluator: GuardedEvaluator) -> None:
        self.mapper, self.task, self.evaluator = mapper, task, evaluator
        self.child = Child(quiet=True)
        self.started = False

    def begin(self) -> None:
        """Start, unless there is a single core or no cache."""
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
    mapper.search(task, new_run(evaluator, Budget(), seed=0)).close()


def new_run(evaluator: GuardedEvaluator, budget: Budget, seed: int, clock: Callable[[], float] = time.monotonic) -> Run:
    """Return the initial state of a search."""
    bounder = evaluator if isinstance(evaluator, Bounder) else None
    relaxable = evaluator if isinstance(evaluator, Relaxable) else None
    return Run(np.random.default_rng(seed), budget, clock, bounder, relaxable)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@contextmanager
def compilation_notice(what: str, also: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Return a context that prints a message if compiling `what` takes longer than loading kernels.

    Then it also calls `also`.
    """

    done, began = threading.Event(), time.process_time()

    def watch() -> None:
        while (left := began + SECONDS - time.process_time()) > 0:
            if done.wait(max(left, 0.05)):
                return
        told = "one to four minutes at the first use after installing or updating; single functions take half a minute"
        message = f"compiling {what}: {told}. What is used first later, such as ragged tiles, compiles then"
        logging.getLogger("tilewright").warning(message)
        also()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()  # `also` has returned, or is not called
