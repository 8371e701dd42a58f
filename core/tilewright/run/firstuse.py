"""The first use after an installation, when what is compiled takes its time: said in one line, and done before a search."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.costmodel import CandidateEvaluator, Evaluator
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.plugin.guard.patience import limited
from tilewright.plugin.mapper import Task

SECONDS = 1.5
"""What is loaded takes less, what is compiled takes more."""


def warm_up(evaluator: Evaluator, task: Task) -> None:
    """Evaluate nothing, so that what compiles at first use has done so before a search's clock starts."""
    space = task.space
    nothing = Candidates(space, np.zeros((0, len(space.slots), len(task.problem.sizes)), dtype=np.int64))
    with told():
        nothing.fits()
        evaluator = guarded_evaluator(evaluator, task.problem, task.architecture)
        with (
            suppress(TilewrightError),
            limited(evaluator.owner, "evaluating nothing"),
        ):  # it will break again where that is told
            evaluator.evaluate_batch(nothing.batch())
            if isinstance(evaluator, CandidateEvaluator):
                evaluator.evaluate_candidates(nothing)


@contextmanager
def told() -> Iterator[None]:
    """Says so, on stderr, if what is done inside takes longer than loading it would."""
    timer = threading.Timer(
        SECONDS,
        logging.getLogger("tilewright").warning,
        ["compiling: up to a minute, once after installing or updating; it is kept for the next time"],
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
