"""Constructive placement: which tilings, orders and keeps it tries, and what cannot fit."""

import math

import numpy as np
import pytest

import tilewright as tw
from support.mappers import ARRAY, FLAT, placement, run
from tilewright.errors import NoValidMappingError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, reuse_orders, with_orders
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.testing.corpus import SAMPLES, cramped


@pytest.mark.parametrize("space", [FLAT, ARRAY], ids=str)
def test_placement_inwards_finds_every_tiling_that_fits(space: MapSpace) -> None:
    """Slot by slot from the inside it reaches exactly the factors of all mappings of the space that fit."""
    moves = placement(space)
    moves.most = 10**6
    rows = moves.unroll(moves.start)
    for slot in reversed(space.temporal_slots[1:]):
        rows = moves.into(slot, rows)
    wanted = set()
    for batch in space.enumerate():
        wanted |= {row.tobytes() for row in batch.take(batch.fits()).trips}
        if len(wanted) > 10**5:
            break
    assert not moves.subsampled
    assert {row.tobytes() for row in rows.trips} == wanted and len(rows) == len(wanted)


def test_placement_obeys_rules() -> None:
    rules = Variant(
        temporal=(TemporalRule(memory="Buffer", only=("M", "K"), factors=FrozenDict({"K": TripRange(max=1)})),),
        spatial=(SpatialRule(cluster="Buffer", only=("N",), min_utilization=0.5),),
    )
    space = MapSpace.of(ARRAY.problem, ARRAY.architecture, rules)
    moves = placement(space)
    rows = moves.unroll(moves.start)
    for slot in reversed(space.temporal_slots[1:]):
        rows = moves.into(slot, rows)
    assert len(rows) > 10 and all(space.contains(mapping) for mapping in rows)


def test_orders_are_combined_once() -> None:
    """Every row with all combinations of orders that differ in non-unit loops."""
    rows = Candidates(ARRAY, ARRAY.sample(np.random.default_rng(1), 30).trips)
    orders = reuse_orders(ARRAY.problem)
    made = with_orders(rows, [orders] * len(ARRAY.temporal_slots))
    assert all(ARRAY.contains(mapping) for mapping in made)
    for row in rows.trips:
        mine = made.orders[(made.trips == row).all(axis=(1, 2))]
        wanted = [
            {tuple(d for d in each if row[slot, d] > 1) for each in orders.tolist()} for slot in ARRAY.temporal_slots
        ]
        copies = int((rows.trips == row).all(axis=(1, 2)).sum())
        assert len(mine) == copies * math.prod(map(len, wanted))


def test_what_cannot_fit_is_said() -> None:
    with pytest.raises(NoValidMappingError, match="no start mapping fits"):
        Placement.each(cramped(SAMPLES[1]).space, np.random.default_rng(0))
    assert isinstance(run("local", cramped(SAMPLES[1]).space).error, NoValidMappingError)


def test_every_choice_of_what_is_kept_is_tried() -> None:
    rules = Variant(keep=(KeepRule(memory="Buffer", free=("input", "weight")),))
    space = MapSpace.of(ARRAY.problem, ARRAY.architecture, rules)
    assert len(Placement.each(space, np.random.default_rng(0))) == 4
    assert run("local", space).evaluated == 4


def test_a_start_is_found_wherever_one_mapping_fits() -> None:
    """The outer loops may have four of eight rows, so the other two must be unrolled: three words fit a unit."""
    memories = [
        {"name": name, "read_energy_pj": 1, "write_energy_pj": 1, "capacity_words": words}
        for name, words in (("DRAM", None), ("Registers", 3))
    ]
    clusters = [{"name": memory["name"], "memories": [memory]} for memory in memories]
    architecture = Architecture.model_validate(
        {
            "name": "two",
            "clusters": [clusters[0] | {"fanout": {"size": 2}}, clusters[1]],
            "compute": {"energy_per_operation_pj": 1},
        }
    )
    rules = Variant(
        temporal=(
            TemporalRule(memory="DRAM", factors=FrozenDict({"m": TripRange(max=4)})),
            TemporalRule(memory="Registers", factors=FrozenDict({"m": TripRange(max=2)})),
        ),
    )
    space = MapSpace.of(tw.load("mk,kn->mn; m=8 k=2 n=2", "problem"), architecture, rules)
    fitting = sum(int(part.fits().sum()) for part in space.factorings())
    for mapper in ("quickflow", "optimal"):
        result = run(mapper, space)
        assert result.best is not None and fitting > 0, result.error


def test_a_mapper_goes_on_without_a_start() -> None:
    """No mapping fits: the prover ends after its search, and a warm start is no error."""
    result = run("optimal", cramped(SAMPLES[1]).space)
    assert result.error is None and result.best is None
