"""Candidates: their trip counts and their tile sizes describe the same mappings."""

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from support.map_spaces import rules
from tilewright.application.run.search import search
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, Costs, Proposals, Run, Task, objectives
from tilewright.schema.constraints import Cutting
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator
from tilewright.testing.strategies import architectures, problems


@st.composite
def candidates(draw: st.DrawFn, most: int = 12, factors: tuple[Cutting, ...] = ("perfect", "ragged")) -> Candidates:
    """Draw candidates of spaces with rules and small memories, with or without orders and keeps."""
    cutting = draw(st.sampled_from(factors))
    problem = draw(problems(max_dimensions=4, max_macs=500))
    architecture = draw(architectures(roomy=False, widths=True))
    space = MapSpace.of(problem, architecture, draw(rules(problem, architecture)), factors=cutting)
    assume(space.factorizations)
    drawn = space.sample(np.random.default_rng(draw(st.integers(0, 2**16))), draw(st.integers(0, most)))
    if draw(st.booleans()):
        drawn = replace(drawn, order=None)
    return replace(drawn, keep=None) if draw(st.booleans()) else drawn


def same(left: MappingBatch, right: MappingBatch) -> bool:
    names = ("temporal", "spatial", "order", "keep")
    return left.skeleton == right.skeleton and all(np.array_equal(getattr(left, n), getattr(right, n)) for n in names)


@given(candidates())
def test_their_batch_has_the_same_trips_orders_and_keeps(drawn: Candidates) -> None:
    back = Candidates.of(drawn.space, drawn.batch())

    assert np.array_equal(back.trips, drawn.trips)
    assert np.array_equal(back.orders, drawn.written_orders)
    assert np.array_equal(back.keeps, drawn.keeps)
    assert same(back.batch(), drawn.batch())
    assert list(drawn) == list(drawn.batch()) == [drawn[row] for row in range(len(drawn))]


@given(candidates(), st.randoms())
def test_loops_of_one_trip_are_written_first_wherever_they_stand(drawn: Candidates, random: Random) -> None:
    orders = drawn.orders.copy()
    for n, block in np.ndindex(orders.shape[:2]):
        several = drawn.trips[n, drawn.space.temporal_slots[block]] > 1
        loops = [d for d in orders[n, block].tolist() if several[d]]
        for d in np.flatnonzero(~several).tolist():
            loops.insert(random.randint(0, len(loops)), d)
        orders[n, block] = loops

    assert same(replace(drawn, order=orders).batch(), drawn.batch())


def test_an_order_that_repeats_a_dimension_is_illegal() -> None:
    space = tw.space("nk,km->nm; n=4 k=4 m=4", arch="eyeriss")
    drawn = space.sample(np.random.default_rng(0), 8)
    orders = drawn.orders.copy()
    orders[:, -1, 0] = orders[:, -1, 1]
    assert drawn.legal().any() and not replace(drawn, order=orders).legal().any()


@given(candidates())
def test_without_orders_and_keeps_they_are_of_the_space(drawn: Candidates) -> None:
    for mapping in replace(drawn, order=None, keep=None):
        assert drawn.space.contains(mapping).reasons == ()


@given(candidates())
def test_what_fits_is_what_has_no_fault_of_capacity(drawn: Candidates) -> None:
    architecture = drawn.space.architecture
    verdicts = [legality(drawn.space.problem, architecture, mapping) for mapping in drawn]

    assert drawn.fits().tolist() == [
        "capacity" not in {reason.code for reason in verdict.reasons} for verdict in verdicts
    ]


@given(candidates(), st.data())
def test_take_and_join_are_those_of_their_batches(drawn: Candidates, data: st.DataObject) -> None:
    chosen = np.array(
        data.draw(st.lists(st.integers(0, len(drawn) - 1)) if len(drawn) else st.just([])), dtype=np.int64
    )
    cut = data.draw(st.integers(0, len(drawn)))

    assert same(drawn.take(chosen).batch(), drawn.batch().take(chosen))
    assert same(Candidates.join([drawn.take(slice(0, cut)), drawn.take(slice(cut, None))]).batch(), drawn.batch())
    bare = replace(drawn, order=None, keep=None)
    assert same(Candidates.join([drawn, bare]).batch(), MappingBatch.join([drawn.batch(), bare.batch()]))


@given(candidates(factors=("perfect",)), st.data())
def test_a_move_and_its_reverse(drawn: Candidates, data: st.DataObject) -> None:
    """Rows by rows and all at once; products stay, other slots and dimensions are left alone."""
    slots, dims = drawn.trips.shape[1:]
    assume(slots > 1)
    source, target = data.draw(st.permutations(range(slots)))[:2]
    dimension = data.draw(st.integers(0, dims - 1))
    factor = np.array([data.draw(st.sampled_from([d for d in range(1, trips + 1) if trips % d == 0])) for trips in drawn.trips[:, source, dimension].tolist()], dtype=np.int64)  # fmt: skip
    moved = drawn.move(dimension, factor, source, target)

    assert np.array_equal(moved.trips.prod(axis=1), drawn.trips.prod(axis=1))
    assert np.array_equal(moved.trips[:, target, dimension], drawn.trips[:, target, dimension] * factor)
    touched = np.zeros((slots, dims), dtype=np.bool_)
    touched[[source, target], dimension] = True
    assert np.array_equal(moved.trips[:, ~touched], drawn.trips[:, ~touched])
    assert np.array_equal(moved.move(dimension, factor, target, source).trips, drawn.trips)
    columns = [np.full(len(drawn), each, dtype=np.int64) for each in (source, target)]
    assert np.array_equal(drawn.move(np.full(len(drawn), dimension), factor, *columns).trips, moved.trips)


SAMPLE = SAMPLES[1]


def test_a_factor_that_is_not_there_cannot_move() -> None:
    drawn = Candidates.of(SAMPLE.space, SAMPLE.batch(3))
    with pytest.raises(ValueError, match="does not divide"):
        drawn.move(0, 10_007, 0, 1)


@given(candidates(factors=("ragged",)), st.data())
def test_a_ragged_move_leaves_the_fewest_trips_behind(drawn: Candidates, data: st.DataObject) -> None:
    """The target takes more, no slot more than before but it, and all is settled."""
    slots, dims = drawn.trips.shape[1:]
    assume(slots > 1 and len(drawn))
    source, target = data.draw(st.permutations(range(slots)))[:2]
    dimension = data.draw(st.integers(0, dims - 1))
    before = drawn.trips[:, :, dimension]
    factor = data.draw(st.integers(1, int(before[:, source].min())))
    moved = drawn.move(dimension, factor, source, target)
    after, size = moved.trips[:, :, dimension], drawn.space.problem.sizes[dimension]

    assert (after[:, target] <= before[:, target] * factor).all()
    assert (np.delete(after, target, axis=1) <= np.delete(before, target, axis=1)).all()
    assert (np.delete(moved.trips, dimension, axis=2) == np.delete(drawn.trips, dimension, axis=2)).all()
    free = MapSpace.of(drawn.space.problem, drawn.space.architecture, None, drawn.space.skeleton, "ragged")
    for mapping, chain in zip(replace(moved, space=free), after.tolist(), strict=True):
        assert not {"ragged", "coverage", "nesting"} & {reason.code for reason in free.contains(mapping).reasons}
        assert math.prod(chain) >= size and (math.prod(chain[1:]) < size or chain[0] == 1)


def test_arrays_of_other_shapes_are_refused() -> None:
    drawn = Candidates.of(SAMPLE.space, SAMPLE.batch(3))
    with pytest.raises(ValueError, match=r"order has shape .* expected \(3, "):
        replace(drawn, order=drawn.orders[:2])
    assert not drawn.trips.flags.writeable


class Counting(PlainEvaluator):
    """Takes candidates, and counts how many came as such."""

    seen = 0

    def evaluate_candidates(self, given: Candidates) -> Costs:
        self.seen += len(given)
        return self.evaluate_batch(given.batch())


class Drawing:
    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, 20)


def test_the_driver_hands_them_on_as_they_are_where_that_is_offered() -> None:
    plain = PlainEvaluator(SAMPLE.problem, SAMPLE.architecture)
    counting = Counting(SAMPLE.problem, SAMPLE.architecture)
    first, second = (search(Drawing(), Task(SAMPLE.space), each, Budget(evaluations=90)) for each in (plain, counting))

    assert counting.seen == first.evaluated == second.evaluated == 90
    assert first.best is not None and first.best == second.best and first.value == second.value


def test_objectives_are_those_of_all_candidates_as_far_as_the_budget_goes() -> None:
    told: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []

    class Asking:
        def search(self, task: Task, run: Run) -> Proposals:
            drawn = task.space.sample(np.random.default_rng(5), 9000)
            told.append((yield from objectives(drawn, task, run)))

    evaluator = PlainEvaluator(SAMPLE.problem, SAMPLE.architecture)
    search(Asking(), Task(SAMPLE.space), evaluator, Budget())
    assert search(Asking(), Task(SAMPLE.space), evaluator, Budget(evaluations=8192)).evaluated == 8192
    costs = evaluator.evaluate_batch(SAMPLE.space.sample(np.random.default_rng(5), 9000).batch())

    assert np.array_equal(told[0], np.where(costs.valid, costs.edp, np.inf))
    assert np.array_equal(told[1], np.where(np.arange(9000) < 8192, told[0], np.inf))
