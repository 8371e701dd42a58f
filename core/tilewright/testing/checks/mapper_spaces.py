"""Contract checks for mappers: ragged, free and large spaces, the ends of searches, and the host's own objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from tilewright.application.run.accepted import accepted
from tilewright.errors import NotConformableError, NoValidMappingError
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.constraints import KeepRule, Variant
from tilewright.testing.checks.mapper import REFUSALS, accepted_samples, driven, faults_of_proposal, new_run
from tilewright.testing.corpus import Sample
from tilewright.testing.kit import Subject, check, require
from tilewright.testing.reference import PlainModel

SOME = 300
"""Evaluations in each further space."""
SECONDS = 3.0
"""Time limit in each of these, for mappers that prepare long."""
LONG = 2**10
"""Factor of the sizes of a large problem."""
MAX_EVALUATIONS = 200_000
"""Evaluations after which a search of a few mappings should have ended."""


@dataclass(frozen=True)
class _Space(Sample):
    """A sample with a space of its own; `kind` names it."""

    kind: str = ""
    factors: str = "perfect"

    def __str__(self) -> str:
        return f"{self.problem.name} on {self.architecture.name}, {self.kind}"

    @property
    def space(self) -> MapSpace:
        return MapSpace.of(
            self.problem, self.architecture, self.rules, factors="ragged" if self.factors == "ragged" else "perfect"
        )


def _spaces(subject: Subject) -> Iterator[_Space]:
    """Yield spaces with ragged tiles, with memories that tensors may bypass, and of a large problem, if they are accepted."""
    assert isinstance(subject.spec, MapperSpec)
    for sample in subject.samples()[1 : 2 if subject.spec.ends else 4]:
        memory = sample.architecture.memories[-1].name
        free = Variant(keep=(KeepRule(memory=memory, free=sample.problem.tensor_names),))
        large = sample.problem.replace(
            {f"dimensions.{name}": LONG * size for name, size in list(sample.problem.dimensions.items())[:3]}
        )
        for space in (
            _Space(sample.problem, sample.architecture, sample.rules, "ragged tiles", "ragged"),
            _Space(sample.problem, sample.architecture, free, "tensors that may bypass"),
            _Space(large, sample.architecture, sample.rules, "a large problem"),
        ):
            with suppress(NotConformableError):
                narrowed = accepted(space.space, subject.spec.capabilities, subject.spec.name)
                yield replace(space, rules=narrowed.rules)


@check(MapperSpec)
def check_mapper_keeps_to_any_space(subject: Subject) -> None:
    """Proposals are mappings of ragged spaces, of those with free choices, and of large problems; or the space is refused."""
    for space in _spaces(subject):
        run = new_run(evaluations=SOME)
        # others end with their evaluations, and one check alone waits for a mapper that oversleeps
        if isinstance(subject.spec, MapperSpec) and subject.spec.ends:
            run.budget = Budget(SOME, SECONDS)
        with suppress(*REFUSALS, NoValidMappingError):
            for proposal in driven(subject.make(), space, run):
                wrong = faults_of_proposal(space, proposal)
                require(
                    not wrong,
                    f"{space}: a proposal violates {'; '.join(wrong)}; propose what task.space draws, lists or moves",
                )
                lawful = [
                    mapping
                    for mapping in proposal.batch.take(slice(0, 4))
                    if legality(space.problem, space.architecture, mapping)
                ]
                for mapping in lawful:
                    broken = space.space.obeyed(mapping).reasons
                    require(not broken, f"{space}: a proposal violates {broken[:1]}")
                if run.exhausted:
                    break


@check(MapperSpec)
def check_mapper_leaves_costs_and_run_alone(subject: Subject) -> None:
    """A mapper writes neither to costs that it received, nor to the counters and the budget of its run."""
    for sample in list(accepted_samples(subject))[:2]:
        run = new_run(evaluations=500)
        budget, evaluated, costs = run.budget, 0, []
        with suppress(*REFUSALS):
            for proposal in driven(subject.make(), sample, run):
                require(
                    (run.evaluated, run.budget) == (evaluated, budget),
                    f"{sample}: it changes run.evaluated or run.budget, which are the host's",
                )
                evaluated += len(proposal.batch)
                given = proposal.costs
                costs.append((given, [array.copy() for array in (given.valid, given.energy_pj, given.cycles)]))
        for given, (valid, energy, cycles) in costs:
            same = all(
                np.array_equal(one, other)
                for one, other in ((given.valid, valid), (given.energy_pj, energy), (given.cycles, cycles))
            )
            require(same, f"{sample}: it writes to the costs that it received; copy them first")


@check(MapperSpec)
def check_mapper_ends_if_it_says_so(subject: Subject) -> None:
    """With `ends=True`, a search of a small space ends without a limit."""
    spec = subject.spec
    assert isinstance(spec, MapperSpec)
    if not spec.ends:
        return
    sample = min(subject.samples(), key=lambda sample: sample.space.size)
    run = new_run(evaluations=None)
    run.relaxable = PlainModel().bind(sample.problem, sample.architecture)
    with suppress(*REFUSALS):
        for _ in driven(subject.make(), sample, run, Task(sample.space)):
            require(
                run.evaluated < MAX_EVALUATIONS,
                f"{sample}: `ends` is declared, but after {run.evaluated:,} evaluations of a space with {sample.space.size:,} mappings "
                "the search continues; end it, or declare ends=False",
            )
