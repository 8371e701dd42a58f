"""Trial of the bounds of a cost model that is not built in: they are compared with the costs of evaluated mappings."""

from __future__ import annotations

import time

import numpy as np

from tilewright.formats import quantity
from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legal
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.costmodel import Bounder, Costs, Relaxable, Relaxation
from tilewright.plugin.guard.figures import RELATIVE_TOLERANCE, may_bound
from tilewright.plugin.guard.models import GuardedEvaluator
from tilewright.plugin.mapper import Task
from tilewright.plugin.relaxed import is_exact, least_of, relaxed_costs
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.mapping import Mapping

SHARE = 0.02
"""Largest share of a search's time, and of its evaluations, for comparisons before the last one."""
ROWS = 32
"""Mappings of a piece that are compared: half of them the cheapest ones."""
KEPT = 4
"""Pieces whose mappings wait for a comparison; of more, the first, the cheapest and the last stay."""
FIRST_SECONDS = 0.02
"""Time that a comparison is expected to take, before the first one."""
LARGE = 1e21
"""Bounds above are written with an exponent."""
UNITS = {"energy_pj": "pJ", "cycles": "cycles"}


class RelaxationTrial:
    """The bounds of a cost model, as a mapper uses them, and their comparison with evaluated mappings.

    `refuted` says which bound is above which cost; None: no comparison contradicts the bounds. It compares the relaxed costs
    of complete mappings, all bounds of partial ones, and at the end the bound on the whole space.
    """

    def __init__(self, evaluator: GuardedEvaluator, task: Task) -> None:
        self.evaluator, self.task = evaluator, task
        self.relaxable: Relaxable | None = self if isinstance(evaluator, Relaxable) else None
        self.bounder: Bounder | None = self if isinstance(evaluator, Bounder) else None
        self.used = self.bounds_used = False
        self.refuted: str | None = None
        self._relaxation: Relaxation | None = None
        self._seen: list[tuple[MappingBatch, Costs]] = []
        self._spent, self._began, self._last = 0.0, time.perf_counter(), FIRST_SECONDS

    @classmethod
    def of(cls, evaluator: GuardedEvaluator, task: Task) -> RelaxationTrial | None:
        """Return the trial of a cost model; None if it is built in, or bounds nothing."""
        bounds = isinstance(evaluator, Relaxable | Bounder)
        return cls(evaluator, task) if bounds and claimant(evaluator.owner) else None

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the cost model's relaxation."""
        self.used = True
        told = self.evaluator.relaxation(skeleton, keeps)
        if skeleton == self.task.space.skeleton:
            self._relaxation = told
        return told

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Return the cost model's bounds on partial mappings."""
        self.used = self.bounds_used = True
        return self.evaluator.bound(batch, entries)

    def add(self, batch: Candidates | MappingBatch, costs: Costs, evaluated: int) -> None:
        """Compare some mappings of an evaluated batch, if the share of the time allows it; else keep the cheapest ones."""
        if not self.used or self.refuted is not None or not costs.valid.any():
            return
        rows = _chosen(np.where(costs.valid, costs.of(self.task.objective), np.inf))
        some = batch.take(rows)
        tiles = some if isinstance(some, MappingBatch) else some.batch()
        self._seen.append((tiles, _taken(costs, rows)))
        now = time.perf_counter()
        if self._spent + self._last <= SHARE * (now - self._began):
            self._compare(evaluated)
            self._last = time.perf_counter() - now
            self._spent += self._last
        elif len(self._seen) > KEPT:
            cheapest = min(self._seen, key=lambda seen: float(seen[1].of(self.task.objective).min()))
            self._seen = [self._seen[0], *([cheapest] if cheapest is not self._seen[0] else []), self._seen[-1]]

    def end(self, best: Mapping | None, costs: tuple[float, float], evaluated: int) -> None:
        """Compare the cheapest mappings that are left, and the bound on the whole space with the best mapping."""
        if not self.used or self.refuted is not None:
            return
        self._compare(evaluated)
        if best is not None and self._relaxation is not None and self.refuted is None:
            least = least_of(self.task.space, self.evaluator)
            for unit, low, cost in zip(UNITS.values(), least, costs, strict=True):
                if not may_bound(low, cost):
                    self._refute(unit, low, cost, "its relaxation says that every mapping of the space takes at least")

    def refute_by_proof(self, bound: float | None, value: float) -> None:
        """Note that a proof by these bounds is contradicted by a mapping of this value."""
        self._refute(
            self.task.objective.unit, bound or 0.0, value, "by its bounds every mapping of the space takes at least"
        )

    def _compare(self, evaluated: int) -> None:
        """Compare the mappings that were kept; `evaluated` limits the bounds of partial mappings that are asked for."""
        seen = [row for row in self._seen if row[0].skeleton == self.task.space.skeleton]
        seen = [row for row in seen if _optional(row[0]) == _optional(seen[-1][0])]
        self._seen = []
        if not seen:
            return
        batch, costs = MappingBatch.join([row[0] for row in seen]), Costs.join([row[1] for row in seen])
        good = costs.valid & legal(self.task.problem, self.task.architecture, batch) & self._is_kept(batch)
        if not good.any():
            return
        batch, costs = batch.take(good), _taken(costs, good)
        if self._relaxation is not None:
            self._compare_complete(self._relaxation, batch, costs)
        if self.bounds_used:
            few = slice(0, max(1, min(ROWS, int(SHARE * evaluated) // len(batch.skeleton))))
            for entries in range(1, len(batch.skeleton) + 1):
                bounds = self.evaluator.bound(batch.take(few), entries)
                told = f"its bound says that mappings with the same outermost {entries} entries take at least"
                self._check(bounds, _taken(costs, few), told)

    def _compare_complete(self, relaxation: Relaxation, batch: MappingBatch, costs: Costs) -> None:
        """Compare complete mappings with their relaxed costs."""
        bounds = relaxed_costs(relaxation, self.task.architecture, batch)
        self._check(bounds, costs, "its relaxation says that a mapping takes at least")
        if is_exact(relaxation, self.task.problem):
            low, cost = bounds.energy_pj[bounds.valid], costs.energy_pj[bounds.valid]
            dearer = np.flatnonzero(cost > low * (1 + RELATIVE_TOLERANCE))
            if len(dearer) and self.refuted is None:
                told = "its relaxation is exact, where the words of a mapping take"
                self._refute(UNITS["energy_pj"], float(low[dearer[0]]), float(cost[dearer[0]]), told)

    def _is_kept(self, batch: MappingBatch) -> Bools:
        """Return which mappings [n] keep tensors only where the space does, so that the relaxation covers them."""
        always, some = self.task.space.keeps
        wrong = (always & ~batch.keep) | (batch.keep & ~(always | some))
        return np.asarray(~wrong.any(axis=(1, 2)))

    def _check(self, bounds: Costs, costs: Costs, told: str) -> None:
        """Note the bound that exceeds its cost by most, if one does."""
        for name, unit in UNITS.items():
            low: Floats = getattr(bounds, name)
            cost: Floats = getattr(costs, name)
            wrong = [i for i in range(len(cost)) if low[i] > 0 and not may_bound(float(low[i]), float(cost[i]))]
            if wrong and self.refuted is None:
                worst = max(wrong, key=lambda i: low[i] / cost[i] if cost[i] else np.inf)
                self._refute(unit, float(low[worst]), float(cost[worst]), told)

    def _refute(self, unit: str, low: float, cost: float, told: str) -> None:
        """Note that something contradicts the bounds; `told` ends with the verb for the bound `low`."""
        bound, value = quantity(low, unit), quantity(cost, unit)
        if bound == value or low > LARGE:
            bound, value = f"{low:,.10g} {unit}", f"{cost:,.10g} {unit}"
        self.refuted = f"{told} {bound}, but one takes {value}; so its bounds are dropped"


def _chosen(values: Floats) -> Ints:
    """Return rows of valid mappings: the cheapest, and others from all parts of the batch."""
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    cheap, rest = order[: ROWS // 2], np.sort(order[ROWS // 2 :])
    spread = rest[np.linspace(0, len(rest) - 1, ROWS // 2).astype(np.int64)] if len(rest) else rest
    return np.unique(np.concatenate([cheap, spread])).astype(np.int64)


def _optional(batch: MappingBatch) -> tuple[bool, ...]:
    """Return which optional arrays a batch has; batches with the same ones can be joined."""
    return tuple(part is None for part in (batch.spatial_order, batch.unicast, batch.stated))


def _taken(costs: Costs, rows: Ints | Bools | slice) -> Costs:
    return Costs(costs.valid[rows], costs.energy_pj[rows], costs.cycles[rows])
