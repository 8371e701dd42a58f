"""The one driver loop: owns evaluation, counting, best so far, budget, progress and interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from tilewright.errors import PluginError, TilewrightError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.plugin.costmodel import Bounder, CandidateEvaluator, Costs, Evaluator
from tilewright.plugin.mapper import Budget, Mapper, Proposals, Run, Task
from tilewright.plugin.result import Progress, Result, Stop, Watcher
from tilewright.run.firstuse import warm_up
from tilewright.run.rejections import RejectionSample
from tilewright.schema.mapping import Mapping

PIECE_SECONDS = 0.1
"""Batches are evaluated in pieces that take about so long."""
FIRST_PIECE = 10
"""Mappings of the first piece, when the model's speed is not known."""


def search(
    mapper: Mapper,
    task: Task,
    evaluator: Evaluator,
    budget: Budget,
    *,
    seed: int = 0,
    watch: Watcher | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Run a mapper until it is done or the budget is spent. Whatever ends it, the best mapping so far is returned.

    The loop acts between batches, and between the pieces in which large ones are evaluated. Ctrl-C ends the search, not
    the program (`cancelled`); a mapper or a model that crashes ends it with `failed` and a PluginError in `error`.
    """
    bounder = evaluator if isinstance(evaluator, Bounder) else None
    loop = _Loop(task, evaluator, Run(np.random.default_rng(seed), budget, clock, bounder), watch)
    cpu = time.process_time()
    stop, error = loop.run_through(mapper)
    cpu_seconds, wall_seconds = time.process_time() - cpu, loop.run.elapsed_seconds
    rejections = None
    if loop.best is None and error is None and stop != "cancelled":
        try:
            rejections = loop.sample.explained(task, evaluator)
        except KeyboardInterrupt:
            stop = "cancelled"
    return Result(
        best=loop.best,
        value=loop.value,
        evaluated=loop.run.evaluated,
        valid=loop.valid,
        rejected=loop.rejected,
        stop=stop,
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
        seed=seed,
        lower_bound=loop.run.lower_bound,
        figures=loop.run.figures,
        rejections=rejections,
        error=error,
    )


class _Loop:
    def __init__(self, task: Task, evaluator: Evaluator, run: Run, watch: Watcher | None) -> None:
        self.task, self.evaluator, self.run, self.watch = task, evaluator, run, watch
        self.takes_candidates = evaluator if isinstance(evaluator, CandidateEvaluator) else None
        self.best: Mapping | None = None
        self.value = np.inf
        self.valid = self.rejected = 0
        self.improved_at = self.batch_began = 0
        self.piece = FIRST_PIECE
        self.sample = RejectionSample()

    def run_through(self, mapper: Mapper) -> tuple[Stop, TilewrightError | None]:
        proposals: Proposals | None = None
        ended: tuple[Stop, TilewrightError | None]
        try:
            warm_up(self.evaluator, self.task)
            proposals = mapper.search(self.task, self.run)
            self.run.started = self.run.clock()
            ended = self._drive(proposals), None
        except KeyboardInterrupt:
            ended = "cancelled", None
        except TilewrightError as error:
            ended = "failed", error
        except Exception as error:  # a third party's mapper or model may raise anything
            ended = "failed", _broken("the mapper broke", error)
        try:
            if proposals is not None:
                proposals.close()
        except Exception as error:  # a mapper that goes on after being closed loses no result
            ended = "failed", ended[1] or _broken("the mapper did not stop when it was closed", error)
        return ended

    def _drive(self, proposals: Proposals) -> Stop:
        try:
            batch = next(proposals)
            while True:
                costs = self._evaluate(batch)
                reason = self._over()
                if reason == "evaluations" and len(costs) == len(batch):
                    proposals.send(costs)  # a mapper that was just done may have proved something
                if reason:
                    return reason
                batch = proposals.send(costs)
        except StopIteration:  # done, or so polite as to stop when the time is over
            late = self.run.short_of_time or self.run.remaining_seconds <= 0
            return "deadline" if late and self.run.lower_bound is None else "finished"

    def _evaluate(self, proposed: Candidates | MappingBatch | Sequence[Mapping]) -> Costs:
        """Evaluate a batch, a piece at a time, so that a slow model cannot pass the deadline by much."""
        batch = proposed
        if not isinstance(batch, Candidates | MappingBatch):
            batch = MappingBatch.pack(self.task.problem, batch)
        left = self.run.remaining_evaluations
        if left is not None and left < len(batch):
            batch = batch.take(slice(0, left))
        self.batch_began = self.run.evaluated
        pieces = [self._price(batch.take(slice(0, self.piece)))]
        done = len(pieces[0])
        while done < len(batch) and self.run.remaining_seconds > 0:
            pieces.append(self._price(batch.take(slice(done, done + self.piece))))
            done += len(pieces[-1])
        return Costs.join(pieces)

    def _price(self, batch: Candidates | MappingBatch) -> Costs:
        started = time.perf_counter()
        try:
            if isinstance(batch, MappingBatch):
                costs = self.evaluator.evaluate_batch(batch)
            elif self.takes_candidates is not None:
                costs = self.takes_candidates.evaluate_candidates(batch)
            else:
                costs = self.evaluator.evaluate_batch(batch.batch())
        except TilewrightError:
            raise
        except Exception as error:  # a third party's model may raise anything
            raise _broken("the cost model broke", error) from error
        if len(batch):
            per_second = len(batch) / max(1e-9, time.perf_counter() - started)
            self.piece = max(1, min(8 * self.piece, int(PIECE_SECONDS * per_second)))
        self._keep_best(batch, costs)
        if self.best is None:
            self.sample.add(batch)
        self.run.evaluated += len(batch)
        self.valid += int(costs.valid.sum())
        if self.watch:
            self.watch(Progress(self.run.evaluated, self.valid, self.value, self.run.elapsed_seconds, self.run.budget))
        return costs

    def _keep_best(self, batch: Candidates | MappingBatch, costs: Costs) -> None:
        values = np.where(costs.valid, costs.of(self.task.objective), np.inf)
        while len(values) and values.min() < self.value:
            index = int(values.argmin())
            mapping = batch[index]
            if legality(self.task.problem, self.task.architecture, mapping):
                self.best, self.value = mapping, float(values[index])
                self.improved_at = self.batch_began
                return
            self.rejected += 1  # a model may be laxer than the rules
            values[index] = np.inf

    def _over(self) -> Stop | None:
        budget = self.run.budget
        if self.run.remaining_seconds <= 0:
            return "deadline"
        if budget.evaluations is not None and self.run.evaluated >= budget.evaluations:
            return "evaluations"
        if budget.patience is not None and self.run.evaluated - self.improved_at >= budget.patience:
            return "patience"
        return None


def _broken(what: str, error: Exception) -> PluginError:
    wrapped = PluginError(f"{what}: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
