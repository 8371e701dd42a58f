"""Contract checks for cost models: bounds and relaxations against all mappings of small spaces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.application.run.search import search
from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Floats
from tilewright.mapspace.legality import legal
from tilewright.plugin.costmodel import Bounder, Costs, Evaluator, Relaxable
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.relaxed import least_of
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import CYCLES, EDP, ENERGY
from tilewright.testing.corpus import Sample, enumerated
from tilewright.testing.kit import CheckFailure, Subject, check, first_row, require

MANY = 1000
"""Largest number of mappings of a space that is searched with proofs."""
SECONDS = 20.0
"""Limit of one search with proofs."""


def _small(subject: Subject) -> Iterator[tuple[Sample, Evaluator]]:
    """Yield the samples whose mappings can be listed, those for proofs included, if the model offers a relaxation."""
    for sample in (*subject.samples(), *subject.priced()):
        evaluator: Evaluator = subject.make().bind(sample.problem, sample.architecture)
        offers = isinstance(evaluator, Relaxable) and evaluator.relaxation(sample.space.skeleton, sample.space.keeps)
        if offers and enumerated(sample):
            yield sample, evaluator


def _all_costs(sample: Sample, evaluator: Evaluator) -> Costs:
    return Costs.join([evaluator.evaluate_batch(batch) for batch in enumerated(sample)])


@check(CostModelSpec)
def check_costmodel_least_costs_hold(subject: Subject) -> None:
    """The bounds on energy and cycles that follow from a relaxation are not above the best mapping of the space."""
    for sample, evaluator in _small(subject):
        costs = _all_costs(sample, evaluator)
        energy, cycles = least_of(sample.space, evaluator)
        for objective, low in ((ENERGY, energy), (CYCLES, cycles), (EDP, energy * cycles)):
            best = float(costs.of(objective).min())
            require(
                low <= best * (1 + 1e-9),
                f"{sample}: by the relaxation each mapping has at least {low:g} as its {objective.name}, but the best one has {best:g}; "
                "a relaxation has the lowest prices and the highest bandwidths that any mapping may meet",
            )


@check(CostModelSpec)
def check_costmodel_proofs_hold(subject: Subject) -> None:
    """Proofs of the default mapper under a relaxation are true of all mappings of a small space, for each objective."""
    mapper = _prover()
    for sample, evaluator in _small(subject):
        if sample.space.size > MANY:
            continue
        costs = _all_costs(sample, evaluator)
        for objective in (ENERGY, CYCLES, EDP):
            best = float(costs.of(objective).min())
            result = search(mapper, Task(sample.space, objective), evaluator, Budget(seconds=SECONDS), seed=3)
            if isinstance(result.error, NotConformableError):
                continue
            require(result.error is None, f"{sample}: the search with proofs failed: {result.error}")
            low = result.lower_bound or 0.0
            require(
                low <= best * (1 + 1e-9),
                f"{sample}: under the relaxation, a lower bound of {low:g} on the {objective.name} was proved, but a mapping has {best:g}; "
                "prices may be too high, bandwidths too low, `shared` or `neighbours` wrong, or `exact` although something else costs",
            )


def _prover() -> Mapper:
    """Return the default mapper of searches."""
    registry = installed()
    mapper: Mapper = registry.build(registry.find(MapperSpec, registry.default(MapperSpec, "search")), {})
    return mapper


@check(CostModelSpec)
def check_costmodel_bounds_hold_for_all_completions(subject: Subject) -> None:
    """A bound on partial mappings depends on their outer entries alone, and holds for each mapping that has them."""
    for sample in subject.samples():
        evaluator: Evaluator = subject.make().bind(sample.problem, sample.architecture)
        if not isinstance(evaluator, Bounder):
            continue
        for batch in enumerated(sample):
            costs = evaluator.evaluate_batch(batch)
            for entries in range(1, len(batch.skeleton) + 1):
                parts = (batch.temporal, batch.spatial, batch.order, batch.keep)
                rows = np.concatenate([part[:, :entries].reshape(len(batch), -1) for part in parts], axis=1)
                _, group = np.unique(rows, axis=0, return_inverse=True)
                bounds = evaluator.bound(batch, entries)
                for name in ("energy_pj", "cycles"):
                    low, cost = getattr(bounds, name), getattr(costs, name)
                    highest, least = (
                        _by_group(np.maximum, low, group, -np.inf),
                        _by_group(np.minimum, cost, group, np.inf),
                    )
                    wrong = np.flatnonzero(highest > least * (1 + 1e-9))
                    require(
                        not len(wrong),
                        f"{sample}: with {entries} entries fixed, {name} has the bound {highest[wrong[:1]]}, but a mapping with the same "
                        f"outer entries has {least[wrong[:1]]}; ignore the inner entries of the batch",
                    )


def _by_group(function: np.ufunc, figures: Floats, group: np.ndarray, initial: float) -> Floats:
    extreme: Floats = np.full(int(group.max()) + 1, initial)
    function.at(extreme, group.reshape(-1), figures)
    return extreme


@check(CostModelSpec)
def check_costmodel_accepts_what_is_legal(subject: Subject) -> None:
    """Valid mappings are legal, at the limits of memories and fanouts, too; one in ten legal ones is valid."""
    accepted = possible = 0
    for sample in subject.samples():
        for machine in _tight(sample):
            tight = Sample(sample.problem, machine, sample.rules)
            batch = tight.batch(24, seed=5)
            lawful = legal(sample.problem, machine, batch)
            valid = subject.make().bind(sample.problem, machine).evaluate_batch(batch).valid
            row = first_row(valid & ~lawful)
            if row is not None:
                raise CheckFailure(
                    f"{tight}: a mapping is valid, but it is not legal; refuse what `legality` refuses. The mapping:\n"
                    f"{batch[row].to_yaml()}"
                )
            accepted, possible = accepted + int(valid.sum()), possible + int(lawful.sum())
    require(
        10 * accepted >= possible,
        f"{accepted} of {possible} legal mappings are valid; declare in `capabilities` what is refused",
    )


def _tight(sample: Sample) -> Iterator[Architecture]:
    """Yield the machine with memories of several capacities, so that some mappings fit by a word."""
    yield sample.architecture
    for words in (7, 12):
        changes = {f"{memory.name}.capacity_words": words for memory in sample.architecture.memories[1:]}
        yield sample.architecture.replace(changes)
