"""Contract checks for cost models."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.composed import ComposedEvaluator
from tilewright.plugin.costmodel import Bounder, CandidateEvaluator, Costs, Evaluator, Relaxable
from tilewright.plugin.counts import CountingEvaluator
from tilewright.plugin.guard.figures import (
    fault_of_costs,
    fault_of_counts,
    faults_of_parts,
    faults_of_utilization,
    least_cycles,
)
from tilewright.plugin.relaxed import least_of, relaxed_costs
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.testing.corpus import Sample, content, cramped
from tilewright.testing.kit import CheckFailure, Subject, check, require

_MANY = 1024
"""Number of mappings to draw for a model that accepts few of them."""


def _bound(subject: Subject) -> Iterator[tuple[Sample, Evaluator]]:
    for sample in subject.samples():
        yield sample, subject.make().bind(sample.problem, sample.architecture)


def _spaces(subject: Subject, sample: Sample) -> Iterator[MapSpace]:
    """Yield the space of the sample, and the ragged one if the model accepts ragged tiles."""
    yield sample.space
    if subject.spec.capabilities.imperfect_factors:
        yield MapSpace.of(sample.problem, sample.architecture, sample.rules, factors="ragged")


def _same(one: Costs, other: Costs) -> bool:
    return (
        np.array_equal(one.valid, other.valid)
        and np.array_equal(one.energy_pj, other.energy_pj)
        and np.array_equal(one.cycles, other.cycles)
    )


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other))


@check(CostModelSpec)
def check_costmodel_binds_what_it_declares(subject: Subject) -> None:
    """`bind` accepts every pair that the declared capabilities allow."""
    for sample in subject.samples():
        try:
            subject.make().bind(sample.problem, sample.architecture)
        except NotConformableError as error:
            raise CheckFailure(f"{sample}: its capabilities allow the pair, but bind refuses it: {error}") from error


@check(CostModelSpec)
def check_costmodel_costs_are_sound(subject: Subject) -> None:
    """Costs are finite and not negative for valid mappings, and infinite for others; some are valid."""
    for sample, evaluator in _bound(subject):
        batch = sample.batch()
        costs = evaluator.evaluate_batch(batch)
        wrong = fault_of_costs(costs, len(batch), 0.0)
        require(wrong is None, f"{sample}: evaluate_batch {wrong}")
        if not costs.valid.any():
            batch = sample.batch(_MANY)
            costs = evaluator.evaluate_batch(batch)
        require(bool(costs.valid.any()), f"{sample}: none of {len(batch)} mappings is valid, although many are legal")


@check(CostModelSpec)
def check_costmodel_cycles_suffice_for_the_work(subject: Subject) -> None:
    """Batches and reports have at least as many cycles as operations per compute unit."""
    for sample, evaluator in _bound(subject):
        least, batch = least_cycles(sample.problem, sample.architecture), sample.batch(8)
        costs = evaluator.evaluate_batch(batch)
        reported = [report.cycles for _, report in _explained(evaluator, batch) if report.cycles is not None]
        fewest = min([*costs.cycles[costs.valid].tolist(), *reported], default=least)
        require(
            fewest >= least, f"{sample}: {fewest:g} cycles; the operations need at least {least:g} on all compute units"
        )


@check(CostModelSpec)
def check_costmodel_energy_is_the_sum_of_its_parts(subject: Subject) -> None:
    """Reported energies add up: levels, networks and compute to the total, tensors to their level."""
    for sample, evaluator in _bound(subject):
        for _, report in _explained(evaluator, sample.batch(8)):
            wrong = next(faults_of_parts(report), None) if report.energy_pj is not None else None
            require(wrong is None, f"{sample}: {wrong}")


@check(CostModelSpec)
def check_costmodel_utilization_is_a_fraction(subject: Subject) -> None:
    """A reported utilization is between 0 and 1."""
    for sample, evaluator in _bound(subject):
        for _, report in _explained(evaluator, sample.batch(8)):
            wrong = next(faults_of_utilization(report), None)
            require(wrong is None, f"{sample}: {wrong}")


def _explained(evaluator: Evaluator, batch: MappingBatch) -> Iterator[tuple[int, Report]]:
    """Yield the index and the report of each valid mapping."""
    for index, mapping in enumerate(batch):
        report = evaluator.explain(mapping)
        if report.valid:
            yield index, report


@check(CostModelSpec)
def check_costmodel_batch_equals_one_by_one(subject: Subject) -> None:
    """Batches, single mappings and `explain` give equal results."""
    for sample, evaluator in _bound(subject):
        batch = sample.batch(16)
        costs = evaluator.evaluate_batch(batch)
        for index, mapping in enumerate(batch):
            report, alone = evaluator.explain(mapping), evaluator.evaluate(mapping)
            figures = [
                (bool(costs.valid[index]), float(costs.energy_pj[index]), float(costs.cycles[index])),
                (bool(alone.valid[0]), float(alone.energy_pj[0]), float(alone.cycles[0])),
                (report.valid, _figure(report.energy_pj), _figure(report.cycles)),
            ]
            agree = all(
                one[0] == figures[0][0] and _close(one[1], figures[0][1]) and _close(one[2], figures[0][2])
                for one in figures
            )
            require(agree, f"{sample}: (valid, energy, cycles) in a batch, alone and explained:  {figures}")


def _figure(value: float | None) -> float:
    return np.inf if value is None else float(value)


@check(CostModelSpec)
def check_costmodel_order_is_irrelevant(subject: Subject) -> None:
    """A cost depends on the mapping alone: shuffled and divided batches cost the same."""
    for sample, evaluator in _bound(subject):
        batch = sample.batch()
        whole = evaluator.evaluate_batch(batch)
        shuffled = np.random.default_rng(1).permutation(len(batch))
        mixed = evaluator.evaluate_batch(batch.take(shuffled))
        back = np.argsort(shuffled)
        unshuffled = Costs(mixed.valid[back], mixed.energy_pj[back], mixed.cycles[back])
        require(_same(whole, unshuffled), f"{sample}: costs change when the batch is shuffled")
        first = evaluator.evaluate_batch(batch.take(slice(0, 5)))
        cut = Costs(whole.valid[:5], whole.energy_pj[:5], whole.cycles[:5])
        require(_same(cut, first), f"{sample}: costs change when the batch is divided")


@check(CostModelSpec)
def check_costmodel_takes_an_empty_batch(subject: Subject) -> None:
    """An empty batch has no costs and raises no error."""
    for sample, evaluator in _bound(subject):
        costs = evaluator.evaluate_batch(sample.batch(1).take(slice(0, 0)))
        sizes = {len(costs.valid), len(costs.energy_pj), len(costs.cycles)}
        require(sizes == {0}, f"{sample}: an empty batch has {sizes} costs")


@check(CostModelSpec)
def check_costmodel_rejects_what_does_not_cover(subject: Subject) -> None:
    """A mapping with missing or surplus iterations is invalid, and `explain` gives a reason."""
    for sample, evaluator in _bound(subject):
        dimension = int(np.argmax(sample.problem.sizes))
        for what, batch in (
            ("has surplus iterations", _larger(sample.batch(8), dimension)),
            ("lacks iterations", _unfinished(sample.batch(8), dimension)),
        ):
            _all_rejected(evaluator, batch, f"{sample}: a mapping that {what}")


def _larger(batch: MappingBatch, dimension: int) -> MappingBatch:
    temporal = batch.temporal.copy()
    temporal[:, 0, dimension] *= 2
    return replace(batch, temporal=temporal)


def _unfinished(batch: MappingBatch, dimension: int) -> MappingBatch:
    """Return mappings that never tile `dimension`, so that all its iterations are in the innermost tile."""
    temporal, spatial = batch.temporal.copy(), batch.spatial.copy()
    temporal[:, :, dimension] = spatial[:, :, dimension] = batch.problem.sizes[dimension]
    return replace(batch, temporal=temporal, spatial=spatial)


@check(CostModelSpec)
def check_costmodel_rejects_what_does_not_fit(subject: Subject) -> None:
    """A mapping whose tiles exceed a memory is invalid, and `explain` gives a reason."""
    for sample in map(cramped, subject.samples()):
        evaluator = subject.make().bind(sample.problem, sample.architecture)
        _all_rejected(evaluator, sample.batch(8), f"{sample}: a mapping that needs more words than the memory has")


def _all_rejected(evaluator: Evaluator, batch: MappingBatch, what: str) -> None:
    costs = evaluator.evaluate_batch(batch)
    require(not costs.valid.any(), f"{what} is valid in a batch")
    report = evaluator.explain(batch[0])
    require(not report.valid, f"{what} is valid according to explain")
    require(bool(report.reasons), f"{what} is rejected without a reason")


@check(CostModelSpec)
def check_costmodel_reports_add_up(subject: Subject) -> None:
    """A report of a valid mapping is complete: MACs match the problem, and EDP is energy times cycles.

    The limits, if reported, explain its cycles.
    """
    for sample, evaluator in _bound(subject):
        for mapping in sample.batch(8):
            report = evaluator.explain(mapping)
            require(report.macs == sample.problem.macs, f"{sample}: {report.macs} MACs of {sample.problem.macs}")
            require(report.contradiction() is None, f"{sample}: {report.contradiction()}")
            if report.valid:
                figures = (report.edp, report.energy_pj, report.cycles)
                if report.edp is None or report.energy_pj is None or report.cycles is None:
                    raise CheckFailure(
                        f"{sample}: a report of a valid mapping is incomplete: EDP, energy, cycles = {figures}"
                    )
                require(
                    _close(report.edp, report.energy_pj * report.cycles), f"{sample}: EDP, energy, cycles = {figures}"
                )


@check(CostModelSpec)
def check_costmodel_candidates_cost_what_their_batch_does(subject: Subject) -> None:
    """A model that evaluates candidates directly gives them the costs of their tile sizes."""
    for sample, evaluator in _bound(subject):
        if not isinstance(evaluator, CandidateEvaluator):
            continue
        drawn = sample.space.sample(np.random.default_rng(1), 64)
        for given in (drawn, replace(drawn, order=None, keep=None), drawn.take(slice(0, 0))):
            costs, batch = evaluator.evaluate_candidates(given), evaluator.evaluate_batch(given.batch())
            alike = np.array_equal(costs.valid, batch.valid) and all(
                np.allclose(one, other, rtol=1e-9)
                for one, other in ((costs.energy_pj, batch.energy_pj), (costs.cycles, batch.cycles))
            )
            require(alike, f"{sample}: candidates and their batch have different costs")


@check(CostModelSpec)
def check_costmodel_counts_belong_to_its_costs(subject: Subject) -> None:
    """A model that offers counts gives the costs of its batches with them, and finite counts for valid mappings."""
    for sample, evaluator in _bound(subject):
        if not isinstance(evaluator, CountingEvaluator):
            continue
        batch = sample.batch(16)
        counts, costs = evaluator.count_accesses(batch), evaluator.evaluate_batch(batch)
        wrong = fault_of_costs(counts.costs, len(batch), 0.0) or fault_of_counts(counts)
        require(wrong is None, f"{sample}: count_accesses {wrong}")
        require(_same(counts.costs, costs), f"{sample}: count_accesses and evaluate_batch give different costs")


@check(CostModelSpec)
def check_costmodel_limits_rise_with_the_counts(subject: Subject) -> None:
    """Limits of a composed model that is declared monotone do not fall if all counts double; all limits are finite."""
    for sample, evaluator in _bound(subject):
        if not isinstance(evaluator, ComposedEvaluator):
            continue
        counts = evaluator.counting.count_accesses(sample.batch(16))
        more = replace(counts, reads=2 * counts.reads, fills=2 * counts.fills, updates=2 * counts.updates)
        lists = [list(evaluator.model.limits(moved)) for moved in (counts, more)]
        for few, many in zip(*lists, strict=True):
            low, high = few.cycles[counts.costs.valid], many.cycles[counts.costs.valid]
            require(bool(np.isfinite(low).all()), f"{sample}: the limit {few.name} is not finite for a valid mapping")
            falls = evaluator.model.monotone and bool((high < low).any())
            require(not falls, f"{sample}: the limit {few.name} falls when all counts double, but monotone is declared")


@check(CostModelSpec)
def check_costmodel_leaves_no_trace(subject: Subject) -> None:
    """Evaluating changes neither the batch nor later costs, and neither does binding another problem."""
    samples = subject.samples()
    for sample, evaluator in _bound(subject):
        batch = sample.batch()
        before = content(batch)
        first = evaluator.evaluate_batch(batch)
        kept = Costs(first.valid.copy(), first.energy_pj.copy(), first.cycles.copy())
        for other in samples:
            subject.make().bind(other.problem, other.architecture).evaluate_batch(other.batch(4))
        second = evaluator.evaluate_batch(batch)
        require(_same(kept, second), f"{sample}: a second evaluation of the same batch gives different costs")
        require(_same(kept, first), f"{sample}: returned costs changed afterwards")
        require(before == content(batch), f"{sample}: the batch was written to")


@check(CostModelSpec)
def check_costmodel_can_be_pickled(subject: Subject) -> None:
    """A bound model can be pickled, and its copy evaluates equally in another process."""
    for sample, evaluator in _bound(subject):
        batch = sample.batch(8)
        try:
            again = pickle.loads(pickle.dumps(evaluator))
        except Exception as error:  # the object's methods may raise any exception
            raise CheckFailure(f"{sample}: the evaluator cannot be pickled: {error}") from error
        require(
            _same(evaluator.evaluate_batch(batch), again.evaluate_batch(batch)),
            f"{sample}: the copy gives different costs",
        )


@check(CostModelSpec)
def check_costmodel_bounds_hold(subject: Subject) -> None:
    """A bound on partial mappings never exceeds the cost of a completion, ragged tiles included."""
    for sample, evaluator in _bound(subject):
        if not isinstance(evaluator, Bounder):
            continue
        for space in _spaces(subject, sample):
            batch = space.sample(np.random.default_rng(0), 32).batch()
            costs = evaluator.evaluate_batch(batch)
            where = f"{sample}, {space.factors} factors"
            for entries in range(1, len(batch.skeleton) + 1):
                bounds = evaluator.bound(batch, entries)
                require(
                    bool((bounds.valid | ~costs.valid).all()),
                    f"{where}: the bound on {entries} entries excludes valid completions, but one exists",
                )
                for name in ("energy_pj", "cycles"):
                    low, cost = getattr(bounds, name)[costs.valid], getattr(costs, name)[costs.valid]
                    require(
                        bool((low <= cost).all()),
                        f"{where}: {name} of {entries} entries has the bound {low}, but complete mappings cost {cost}",
                    )


@check(CostModelSpec)
def check_costmodel_relaxation_holds(subject: Subject) -> None:
    """A relaxation never exceeds the cost of a mapping, ragged tiles included.

    The check covers the energy and the cycles of single mappings, and the lower bounds of the whole space.
    """
    for sample, evaluator in _bound(subject):
        relaxation = (
            evaluator.relaxation(sample.space.skeleton, sample.space.keeps)
            if isinstance(evaluator, Relaxable)
            else None
        )
        if relaxation is None:
            continue
        for space in _spaces(subject, sample):
            drawn = evaluator.evaluate_batch(space.sample(np.random.default_rng(0), 32).batch())
            for name, low in zip(("energy_pj", "cycles"), least_of(space, evaluator), strict=True):
                cost = getattr(drawn, name).min()
                require(
                    low <= cost * (1 + 1e-9),
                    f"{sample}, {space.factors} factors: a mapping has {name} {cost}, below the relaxation's bound of {low}",
                )
        batch = sample.batch()
        costs = evaluator.evaluate_batch(batch)
        bounds = relaxed_costs(relaxation, sample.architecture, batch)
        for name in ("energy_pj", "cycles"):
            for low, cost in zip(getattr(bounds, name), getattr(costs, name), strict=True):
                require(
                    bool(low <= cost * (1 + 1e-9)),
                    f"{sample}: a mapping has {name} {cost}, below the relaxation's bound of {low}",
                )
