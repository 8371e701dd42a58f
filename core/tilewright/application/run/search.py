"""The driver loop of every search: evaluation, counting, best mapping, budget, progress and Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

import numpy as np

from tilewright.application.run.compilation_warm_up import new_run, warm_up
from tilewright.application.run.pieces import costs_of, next_size
from tilewright.application.run.rejections import RejectionSample
from tilewright.application.run.relaxation_trial import RelaxationTrial
from tilewright.errors import NotConformableError, NoValidMappingError, PluginError, TilewrightError
from tilewright.interrupts import mark_result_found, preserving_results, raising, stop_requested
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.plugin.costmodel import Costs, Evaluator
from tilewright.plugin.guard.calls import fault
from tilewright.plugin.guard.hosted import Hosted
from tilewright.plugin.guard.mappers import GuardedMapper, GuardedProposals, guarded_mapper
from tilewright.plugin.guard.models import GuardedEvaluator, guarded_evaluator
from tilewright.plugin.guard.processes import Incumbent, SearchBegan, SearchEnded, ask, report
from tilewright.plugin.mapper import Budget, Mapper, Proposals, Task
from tilewright.plugin.result import Progress, Result, Stop, Watcher
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.mapping import Mapping

PIECE_SECONDS = 0.1
"""Approximate time per piece of a batch."""
FIRST_PIECE = 10
"""Mappings in the first piece, while the speed of the model is unknown."""


def search(
    mapper: Mapper,
    task: Task,
    evaluator: Evaluator,
    budget: Budget,
    *,
    seed: int = 0,
    on_progress: Watcher | None = None,
    clock: Callable[[], float] = time.monotonic,
    known: float = math.inf,
    start: float = math.inf,
) -> Result:
    """Run a mapper until it is done or the budget is used up, and return the best mapping so far.

    Between batches, and between pieces of large ones, the loop checks budget and Ctrl-C. Ctrl-C ends the search
    (`cancelled`), not the program. A plugin that violates its contract ends it with `failed` and a PluginError in
    `error`. A third party's mapper searches in a child process, without `on_progress`.

    The bounds of a cost model that is not built in are compared with costs (`RelaxationTrial`). If one is refuted, they are
    dropped, the search continues without a proof, and `error` names the model.

    Args:
        known: Objective of a mapping from outside the space; only better ones are recorded.
        start: Objective of a known mapping of the space, likely near the best; only better ones are recorded.
    """
    if isinstance(mapper, Hosted):
        there = partial(search, seed=seed, known=known, start=start)
        return ask(mapper.owner, "search", there, mapper, task, evaluator, budget)
    guarded = guarded_evaluator(evaluator, task.problem, task.architecture)
    loop = _Loop(guarded_mapper(mapper), task, guarded, budget, seed, on_progress, clock, known, start)
    cpu = time.process_time()
    with preserving_results():
        stop, error = loop.run_through()
        cpu_seconds, wall_seconds = time.process_time() - cpu, loop.tally.elapsed_seconds
        rejections = None
        if math.isinf(loop.value) and error is None and stop != "cancelled":
            try:
                rejections = loop.sample.explained(task, guarded)
            except KeyboardInterrupt:
                stop = "cancelled"
        return Result(
            best=loop.best,
            value=loop.own_value,
            evaluated=loop.tally.evaluated,
            valid=loop.valid,
            rejected=loop.rejected,
            stop="cancelled" if stop_requested() and error is None else stop,
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            seed=seed,
            lower_bound=loop.lower_bound,
            claimed_by=loop.claimed_by,
            figures=loop.figures,
            rejections=rejections,
            history=tuple(loop.history),
            objective=task.objective,
            error=error,
        )


class _Loop:
    """State of the loop. `tally` holds the driver's counts, and `run` the copy that the mapper may change."""

    def __init__(
        self,
        mapper: GuardedMapper,
        task: Task,
        evaluator: GuardedEvaluator,
        budget: Budget,
        seed: int,
        on_progress: Watcher | None,
        clock: Callable[[], float],
        known: float,
        start: float,
    ) -> None:
        self.mapper, self.task, self.evaluator, self.on_progress = mapper, task, evaluator, on_progress
        self.tally, self.run = (new_run(evaluator, budget, seed, clock) for _ in range(2))
        known = min(known, start)
        self.run.starters, self.run.known, self.run.start = mapper.starters, known, start
        self.trial = RelaxationTrial.of(evaluator, task)
        if self.trial is not None:
            self.run.relaxable, self.run.bounder = self.trial.relaxable, self.trial.bounder
        self.proposals: GuardedProposals | None = None
        self.without_bounds = False
        """Whether the search continues without the bounds of the cost model."""
        self.best_costs = math.inf, math.inf
        """Energy in pJ and cycles of the best mapping."""
        self.lower_bound: float | None = None
        self.figures: dict[str, float] = {}
        self.best: Mapping | None = None
        self.value = known
        self.history: list[tuple[int, float]] = []
        self.valid = self.rejected = 0
        self.improved_at = self.batch_began = 0
        self.piece = FIRST_PIECE
        self.sample = RejectionSample()

    @property
    def own_value(self) -> float:
        """Objective of the best mapping; inf without one."""
        return math.inf if self.best is None else self.value

    @property
    def refuted(self) -> TilewrightError | None:
        """The error of a cost model whose bounds are refuted."""
        trial = self.trial
        return None if trial is None or trial.refuted is None else fault(self.evaluator.owner, trial.refuted)

    @property
    def claimed_by(self) -> str | None:
        """Names of the plugins whose claim the lower bound is; None: it is proved, or there is none."""
        if self.lower_bound is None:
            return None
        bounds = [] if self.trial is None or not self.trial.used else [self.evaluator.owner]
        return claimant(self.mapper.owner, *bounds)

    def run_through(self) -> tuple[Stop, TilewrightError | None]:
        ended: tuple[Stop, TilewrightError | None]
        try:
            with raising():
                warm_up(self.evaluator, self.task, self.mapper)
                report(SearchBegan(self.tally.budget.seconds))
                self.proposals = self.mapper.search(self.task, self.run)
            self.tally.started = self.run.started = self.tally.clock()
            report(SearchBegan(self.tally.budget.seconds))
            ended = self._drive(self.proposals), None
            if ended[0] == "deadline" and not self.tally.evaluated:  # such as on a machine of very many memories
                with raising():
                    plain = self.task.space.plain()
                self._evaluate(plain)
        except KeyboardInterrupt:
            mark_result_found()  # even without a mapping: the result says that it was interrupted
            ended = "cancelled", None
        except TilewrightError as error:
            ended = "failed", error
        try:
            if self.proposals is not None:
                self.proposals.close()
                self._record_figures()
            if self.trial is not None:
                self.trial.end(self.best, self.best_costs, self.tally.evaluated)
        except TilewrightError as error:  # a mapper that continues after `close` loses no result
            ended = "failed", ended[1] or error
        report(SearchEnded())
        if self.refuted is not None:
            self.lower_bound = None
            ended = ended[0], ended[1] or self.refuted
        return ended

    def _drive(self, proposals: GuardedProposals) -> Stop:
        try:
            with raising():
                batch = next(proposals)
            while True:
                costs = self._evaluate(batch)
                reason = self._over()
                self.run.evaluated = self.tally.evaluated
                if reason == "evaluations" and len(costs) == len(batch):
                    with raising():
                        proposals.send(costs)  # a mapper that is done now may have proved a bound
                if reason:
                    return reason
                told: Costs | None = costs
                if not self.without_bounds and self.refuted is not None:
                    self.without_bounds, told = True, None
                    proposals.close()
                    proposals = self.proposals = self._without_bounds()
                with raising():
                    batch = proposals.send(told)
        except StopIteration:  # done, or out of time or evaluations
            self.lower_bound = self._told_bound()
            if self.lower_bound is not None:
                return "finished"
            late = self.run.short_of_time or self.tally.remaining_seconds <= 0
            return "deadline" if late else "evaluations" if self.tally.exhausted and self.run.curtailed else "finished"

    def _without_bounds(self) -> GuardedProposals:
        """Return the proposals of the same search without the bounds of the cost model.

        A mapper that refuses to search without them has warm-start mappers, which search instead.
        """
        self.run.relaxable = self.run.bounder = self.run.lower_bound = None

        def proposals() -> Proposals:
            for mapper in (self.mapper, *self.run.starters):
                with (
                    suppress(NotConformableError, NoValidMappingError),
                    closing(guarded_mapper(mapper).search(self.task, self.run)) as some,
                ):
                    yield from some

        return GuardedProposals(proposals(), self.mapper.owner, self.task)

    def _told_bound(self) -> float | None:
        """Return the bound that the mapper left.

        If a built-in mapper proved too much by the bounds of a model that is not, these are refuted.

        Raises:
            PluginError: It is invalid.
        """
        try:
            return self.mapper.lower_bound(self.run, self.own_value)
        except PluginError:
            if self.trial is None or not self.trial.used or claimant(self.mapper.owner) is not None:
                raise
            self.trial.refute_by_proof(self.run.lower_bound, self.own_value)
            return None

    def _record_figures(self) -> None:
        """Copy the mapper's bound and figures.

        Raises:
            PluginError: They are invalid.
        """
        self.lower_bound = self._told_bound()
        self.figures = self.mapper.run_figures(self.task, self.run, self.best)

    def _evaluate(self, batch: Candidates | MappingBatch) -> Costs:
        """Evaluate a batch in pieces, so that a slow model exceeds the deadline only slightly."""
        left = self.tally.remaining_evaluations
        if left is not None and left < len(batch):
            batch = batch.take(slice(0, left))
        self.batch_began = self.tally.evaluated
        pieces = [self._price(batch.take(slice(0, self.piece)))]
        done = len(pieces[0])
        while done < len(batch) and self.tally.remaining_seconds > 0 and not stop_requested():
            pieces.append(self._price(batch.take(slice(done, done + self.piece))))
            done += len(pieces[-1])
        return Costs.join(pieces)

    def _price(self, batch: Candidates | MappingBatch) -> Costs:
        started = time.perf_counter()
        with raising():
            costs = costs_of(self.evaluator, batch)
        costs = costs.within(self.task.most_cycles)
        if len(batch):
            self.piece = next_size(self.piece, len(batch), time.perf_counter() - started, PIECE_SECONDS)
        self._keep_best(batch, costs)
        if self.trial is not None:
            self.trial.add(batch, costs, self.tally.evaluated)
        if math.isinf(self.value):
            self.sample.add(batch)
        self.tally.evaluated += len(batch)
        self.valid += int(costs.valid.sum())
        if self.on_progress:
            self.on_progress(
                Progress(self.tally.evaluated, self.valid, self.value, self.tally.elapsed_seconds, self.tally.budget)
            )
        return costs

    def _keep_best(self, batch: Candidates | MappingBatch, costs: Costs) -> None:
        values = np.where(costs.valid, costs.of(self.task.objective), np.inf)
        while len(values) and values.min() < self.value:
            index = int(values.argmin())
            mapping = batch[index]
            if legality(self.task.problem, self.task.architecture, mapping):
                self._check_constraints(mapping)
                self._record_improvements(values[: index + 1])
                self.best, self.value = mapping, float(values[index])
                self.best_costs = float(costs.energy_pj[index]), float(costs.cycles[index])
                self.improved_at = self.batch_began
                report(Incumbent(mapping, self.value, *self.best_costs, self.rejected, tuple(self.history)))
                mark_result_found()
                return
            self.rejected += 1  # a model may accept mappings that break the rules
            values[index] = np.inf

    def _record_improvements(self, values: np.ndarray) -> None:
        """Add each improvement of a piece to the history, so that it does not depend on how long a piece is.

        Args:
            values: Objective of the mappings up to the new best one, which is the last.
        """
        before = np.minimum.accumulate(np.concatenate(([self.value], values[:-1])))
        for index in np.flatnonzero(values < before):
            self.history.append((self.tally.evaluated + int(index) + 1, float(values[index])))

    def _check_constraints(self, mapping: Mapping) -> None:
        """Check a new best mapping.

        Raises:
            PluginError: It violates the constraints.
        """
        broken = self.task.space.obeyed(mapping).reasons
        if broken:
            raise fault(self.mapper.owner, f"it proposed a mapping that breaks the constraints: {broken[0]}")

    def _over(self) -> Stop | None:
        budget = self.tally.budget
        if stop_requested():
            return "cancelled"
        if self.tally.remaining_seconds <= 0:
            return "deadline"
        if budget.evaluations is not None and self.tally.evaluated >= budget.evaluations:
            return "evaluations"
        if budget.patience is not None and self.tally.evaluated - self.improved_at >= budget.patience:
            return "patience"
        return None
