"""Contract checks for mappers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from tilewright.application.run.accepted import accepted
from tilewright.application.run.search import search
from tilewright.errors import NotConformableError, NoValidMappingError, OverdueError, SpaceTooLargeError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legal, legality
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.guard.mappers import EMPTY, GuardedMapper
from tilewright.plugin.guard.processes import ask
from tilewright.plugin.mapper import Budget, Mapper, Proposals, Run, Task
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.constraints import TemporalRule
from tilewright.schema.mapping import Mapping
from tilewright.testing.corpus import Sample, content
from tilewright.testing.kit import CheckFailure, Subject, check, require
from tilewright.testing.reference import PlainEvaluator, PlainModel

ENOUGH = 2000
"""Number of evaluations that suffice to check a mapper."""
EXAMINED = 200
"""Number of illegal proposals of one search that are checked individually."""
PER_BATCH = 8
"""Number of legal proposals of one batch that are compared with the constraints."""

LEFT_TO_MODELS = ("capacity", "fanout")
"""Rules that a proposal may break; the cost model then reports infinite cost."""

REFUSALS = (SpaceTooLargeError, NotConformableError)
"""Errors with which a mapper may refuse a task before its first proposal."""


@dataclass(frozen=True)
class Proposal:
    """Batch as the mapper yielded it, its content at that moment, and its costs."""

    proposed: object
    batch: MappingBatch
    content: tuple[bytes, ...]
    costs: Costs


class _Drawing:
    """Warm-start mapper of these checks: draws a sample of the space."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 64)


def new_run(seed: int = 7, evaluations: int | None = ENOUGH) -> Run:
    """Return the state of a search with one warm-start mapper."""
    return Run(np.random.default_rng(seed), Budget(evaluations), starters=(_Drawing(),))


def _packed(sample: Sample, proposed: object) -> MappingBatch:
    """Return a proposal as a batch.

    Raises:
        CheckFailure: A mapper may not yield an object of this type.
    """
    if isinstance(proposed, Candidates):
        proposed = proposed.batch()
    if isinstance(proposed, MappingBatch):
        require(
            proposed.problem == sample.problem,
            f"it proposes mappings of {proposed.problem.name}, not of {sample.problem.name}",
        )
        return proposed
    good = isinstance(proposed, list | tuple) and all(isinstance(mapping, Mapping) for mapping in proposed)
    require(good, f"it yields {type(proposed).__name__}; expected Candidates, a MappingBatch or a list of Mapping")
    assert isinstance(proposed, list | tuple)
    require(bool(proposed), "it yields an empty list; end the search instead")
    return MappingBatch.pack(sample.problem, list(proposed))


def driven(
    mapper: Mapper, sample: Sample, run: Run, task: Task | None = None, evaluator: PlainEvaluator | None = None
) -> Iterator[Proposal]:
    """Drive a mapper as the host does and yield its proposals. The search ends with its budget.

    Args:
        task: default: EDP on the space of the sample.
        evaluator: costs of proposals; default: those of the plain cost model, which offers a relaxation.
    """
    task = task or Task(sample.space)
    if evaluator is None:
        evaluator = run.relaxable = PlainModel().bind(sample.problem, sample.architecture)
    generator = mapper.search(task, run)
    try:
        proposed = next(generator)
        empty = 0
        while True:
            batch = _packed(sample, proposed)
            empty = 0 if len(batch) else empty + 1
            require(empty < EMPTY, f"{sample}: search proposes empty batches without end")
            costs = evaluator.evaluate_batch(batch).within(task.most_cycles)
            yield Proposal(proposed, batch, content(batch), costs)
            run.evaluated += len(batch)
            if run.exhausted:
                return
            proposed = generator.send(costs)
    except StopIteration:
        return
    finally:
        with suppress(RuntimeError):  # another check reports a mapper that continues after close()
            generator.close()


def accepted_samples(subject: Subject) -> Iterator[Sample]:
    """Yield the samples for which the mapper proposes mappings.

    Raises:
        CheckFailure: The mapper refuses all samples.
    """
    refusals = []
    for sample in subject.samples():
        try:
            next(driven(subject.make(), sample, new_run()), None)
        except REFUSALS as error:
            refusals.append(f"{sample}: {error}")
        else:
            yield sample
    require(len(refusals) < len(subject.samples()), "it refuses every task of the test corpus: " + "; ".join(refusals))


@check(MapperSpec)
def check_mapper_proposes_mappings_of_the_task(subject: Subject) -> None:
    """Every proposal maps the problem onto the architecture, at any point of the search; only capacity and fanout may be exceeded."""
    for sample in accepted_samples(subject):
        number = examined = 0
        for proposal in driven(subject.make(), sample, new_run()):
            wrong = faults_of_proposal(sample, proposal, max(1, EXAMINED - examined))
            require(
                not wrong,
                f"{sample}: a proposal after {number} others of a search violates {'; '.join(wrong)}; "
                "propose mappings that task.space draws, lists or moves",
            )
            examined += int((~legal(sample.problem, sample.architecture, proposal.batch)).sum())
            number += len(proposal.batch)


def faults_of_proposal(sample: Sample, proposal: Proposal, most: int = EXAMINED) -> list[str]:
    """Return the broken rules of the first illegal mapping of a batch, except those that a cost model judges."""
    # tile sizes are capped at the dimension and would hide surplus trips
    if isinstance(proposal.proposed, Candidates):
        product = proposal.proposed.trips.prod(axis=1)
        short, surplus = (product < sample.problem.sizes).any(), (product != sample.problem.sizes).any()
        if short or (surplus and sample.space.factors == "perfect"):
            return ["the product of its trips, which is not the dimension's size"]
    for row in np.flatnonzero(~legal(sample.problem, sample.architecture, proposal.batch))[:most]:
        verdict = legality(sample.problem, sample.architecture, proposal.batch[int(row)])
        faults = [str(reason) for reason in verdict.reasons if reason.code not in LEFT_TO_MODELS]
        if faults:
            return faults
    return []


@check(MapperSpec)
def check_mapper_keeps_to_the_constraints(subject: Subject) -> None:
    """Every legal proposal satisfies the rules of the task's map space, at any point of the search."""
    for sample in _constrained(subject):
        number, chance = 0, np.random.default_rng(0)
        for proposal in driven(subject.make(), sample, new_run()):
            able = np.flatnonzero(legal(sample.problem, sample.architecture, proposal.batch))
            for row in chance.permutation(able)[:PER_BATCH]:
                broken = sample.space.obeyed(proposal.batch[int(row)]).reasons
                require(
                    not broken,
                    f"{sample}, constrained: proposal {number + row + 1} of a search violates {broken[:1]}; "
                    "propose mappings that task.space draws, lists or moves",
                )
            number += len(proposal.batch)


def _constrained(subject: Subject) -> Iterator[Sample]:
    """Yield samples that fix the loop order inside the outermost memory, if the mapper accepts them."""
    for sample in subject.samples():
        names = sample.problem.dimension_names
        rule = TemporalRule(memory=sample.architecture.memories[0].name, order=names[::-1])
        rules = sample.rules.model_copy(update={"temporal": (*sample.rules.temporal, rule)})
        constrained = Sample(sample.problem, sample.architecture, rules)
        with suppress(*REFUSALS, NoValidMappingError):
            accepted(constrained.space, subject.spec.capabilities, subject.spec.name)
            next(driven(subject.make(), constrained, new_run()), None)
            yield constrained


@check(MapperSpec)
def check_mapper_keeps_its_deadline(subject: Subject) -> None:
    """A search with a deadline yields or ends soon after it: long steps check `run.exhausted`."""
    for sample in itertools.islice(accepted_samples(subject), 1):
        for attempt in range(3):  # a loaded host may miss a deadline once, but not three times
            try:
                ask(subject.registration.owner, "search", _search_briefly, subject, sample)
                break
            except OverdueError as error:
                require(attempt < 2, f"{sample}: {error}, with a deadline after 0.2 s")


def _search_briefly(subject: Subject, sample: Sample) -> None:
    _search(subject.make(), sample, 50)  # compiles kernels before the deadline counts
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    mapper = GuardedMapper(subject.make(), subject.registration.owner)
    search(mapper, Task(sample.space), evaluator, Budget(seconds=0.2), seed=7)


@check(MapperSpec)
def check_mapper_finds_a_valid_mapping(subject: Subject) -> None:
    """On small tasks with mostly valid mappings, a few thousand evaluations find a valid one."""
    for sample in accepted_samples(subject):
        result = _search(subject.make(), sample, ENOUGH)
        if result.error is not None:
            raise CheckFailure(f"{sample}: the search failed: {result.error}")
        require(result.best is not None, f"{sample}: no valid mapping among {result.evaluated} proposals")


@contextmanager
def _global_chance(seed: int) -> Iterator[None]:
    """Seed the global generators that a faulty mapper might use, and restore them afterwards."""
    plain, arrays = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(arrays)


@check(MapperSpec)
def check_mapper_same_seed_same_proposals(subject: Subject) -> None:
    """One seed gives one sequence of proposals: `run.rng` is the only source of randomness."""
    for sample in accepted_samples(subject):
        sequences = []
        for elsewhere in (1, 2):
            with _global_chance(elsewhere):
                sequences.append(
                    [proposal.content for proposal in driven(subject.make(), sample, new_run(evaluations=500))]
                )
        require(sequences[0] == sequences[1], f"{sample}: two searches with one seed propose different mappings")


@check(MapperSpec)
def check_mapper_keeps_no_state(subject: Subject) -> None:
    """A mapper stores only its options: a second search with the same object repeats the first."""
    mapper = subject.make()
    for sample in accepted_samples(subject):
        first, second = (
            [proposal.content for proposal in driven(mapper, sample, new_run(evaluations=500))] for _ in range(2)
        )
        require(first == second, f"{sample}: the second search of one object differs from its first")


@check(MapperSpec)
def check_mapper_leaves_proposals_alone(subject: Subject) -> None:
    """A mapper does not write to a batch that it has yielded."""
    for sample in accepted_samples(subject):
        proposals = list(driven(subject.make(), sample, new_run()))
        require(
            all(content(_packed(sample, proposal.proposed)) == proposal.content for proposal in proposals),
            f"{sample}: a batch changed after it was yielded",
        )


@check(MapperSpec)
def check_mapper_can_be_stopped_anywhere(subject: Subject) -> None:
    """Closing the search at any point ends it at once and without an error."""
    for sample in accepted_samples(subject):
        evaluator = PlainModel().bind(sample.problem, sample.architecture)
        for point in range(4):
            run = new_run()
            run.relaxable = evaluator
            proposals = subject.make().search(Task(sample.space), run)
            _advance(proposals, sample, evaluator, point)
            try:
                proposals.close()
            except RuntimeError as error:
                raise CheckFailure(
                    f"{sample}: it continues after being closed: {error}; do not catch GeneratorExit"
                ) from error


def _advance(proposals: Proposals, sample: Sample, evaluator: PlainEvaluator, count: int) -> None:
    """Advance by `count` proposals, or fewer if the search ends."""
    costs: Costs | None = None
    for _ in range(count):
        try:
            proposed = next(proposals) if costs is None else proposals.send(costs)
        except StopIteration:
            return
        costs = evaluator.evaluate_batch(_packed(sample, proposed))


class _Hopeless(PlainEvaluator):
    """Evaluator that finds every mapping invalid."""

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        nothing = np.full(len(batch), np.inf)
        return Costs(np.zeros(len(batch), dtype=np.bool_), nothing, nothing)


@check(MapperSpec)
def check_mapper_survives_a_hopeless_task(subject: Subject) -> None:
    """If every cost is infinite, the search continues or ends, without an error or a bound."""
    for sample in accepted_samples(subject):
        evaluator = _Hopeless(sample.problem, sample.architecture)
        result = search(subject.make(), Task(sample.space), evaluator, Budget(ENOUGH), seed=7)
        if result.error is not None and not isinstance(result.error, REFUSALS):
            raise CheckFailure(f"{sample}: all costs are infinite, and the search failed: {result.error}")
        bound = result.lower_bound
        require(
            bound is None or not np.isfinite(bound) or bound <= 0,
            f"{sample}: it reports a lower bound of {bound}, although all costs are infinite",
        )


def _search(mapper: Mapper, sample: Sample, evaluations: int) -> Result:
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    return search(mapper, Task(sample.space), evaluator, Budget(evaluations), seed=7)
