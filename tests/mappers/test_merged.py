"""Lemma 19: dimensions that are alike are searched as one, which loses no mapping and no cost."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright
from support.proofs.checking import check
from support.proofs.drawing import draw
from tilewright.application.run.search import search
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright_mappers.optimal.merged import Merged

SEEDS = range(40)
PRODUCT = "abcg,bcdeg->adeg; a=4 b=2 c=6 d=3 e=2 g=2"


def bound(space: MapSpace, **options: Any) -> Evaluator:
    return installed().make(CostModelSpec, "timeloop", options).bind(space.problem, space.architecture)


def image(space: MapSpace, **options: Any) -> Merged | None:
    evaluator = bound(space, **options)
    assert isinstance(evaluator, Relaxable)
    relaxation = evaluator.relaxation(space.skeleton, space.keeps)
    assert relaxation is not None
    return Merged.of(space, relaxation)


def drawn() -> Iterator[tuple[int, Merged, dict[str, Any]]]:
    """Yield drawn spaces that have an image, with the options of their cost model."""
    for seed in SEEDS:
        inputs = draw(seed, "alike", ragged=False)
        try:
            space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=inputs.constraints)
            merged = image(space, **inputs.model_options)
        except tilewright.TilewrightError:
            continue
        if merged is not None and space.factorizations:
            yield seed, merged, inputs.model_options


def costs(evaluator: Evaluator, rows: Candidates) -> np.ndarray[Any, Any]:
    """[n, 2]: energy and cycles, inf if a mapping is invalid."""
    found = evaluator.evaluate_batch(rows.batch())
    return np.where(found.valid[:, None], np.column_stack([found.energy_pj, found.cycles]), np.inf)


def merged_rows(merged: Merged, rows: Candidates) -> Candidates:
    """Images of mappings: the product of the members' trips, at the place of the innermost loop of a member."""
    trips = np.stack([rows.trips[:, :, list(group)].prod(axis=2) for group in merged.members], axis=2)
    orders = np.empty((len(rows), len(merged.space.temporal_slots), len(merged.members)), np.int8)
    for n, block in np.ndindex(orders.shape[:2]):
        here = rows.trips[n, rows.space.temporal_slots[block]]
        place = [d for d in rows.orders[n, block].tolist() if here[d] > 1]
        innermost = [max((place.index(d) for d in group if d in place), default=-1) for group in merged.members]
        orders[n, block] = np.argsort(innermost, kind="stable")
    return Candidates(merged.space, trips, orders, rows.keep)


def test_mappings_of_the_image_cost_the_same_in_the_whole_space() -> None:
    valid = 0
    for seed, merged, options in drawn():
        rows = merged.space.sample(np.random.default_rng(seed), 60)
        whole = merged.unmerged(rows)
        assert all(map(merged.whole.contains, whole.take(slice(0, 10)))), seed
        expected = costs(bound(merged.space, **options), rows)
        np.testing.assert_allclose(costs(bound(merged.whole, **options), whole), expected, rtol=1e-12)
        valid += int(np.isfinite(expected[:, 0]).sum())
    assert valid > 100


def test_no_mapping_costs_less_than_its_image() -> None:
    better = compared = 0
    for seed, merged, options in drawn():
        rows = merged.whole.sample(np.random.default_rng(seed), 60)
        there = merged_rows(merged, rows)
        assert all(map(merged.space.contains, there.take(slice(0, 10)))), seed
        before, after = costs(bound(merged.whole, **options), rows), costs(bound(merged.space, **options), there)
        valid = np.isfinite(before[:, 0])
        assert (after[valid] <= before[valid] * (1 + 1e-12)).all(), seed
        assert np.isinf(after[~valid]).all(), seed
        compared += int(valid.sum())
        better += int((after[valid] < before[valid] * (1 - 1e-12)).any(axis=1).sum())
    assert compared > 100 and better


@pytest.mark.exhaustive
def test_proofs_are_those_of_an_enumeration() -> None:
    proved = 0
    for seed in range(40):
        verdict = check(draw(seed, "alike", ragged=False), 3_000)
        assert not verdict.wrong, (seed, verdict.wrong)
        proved += verdict.status == "proved"
    assert proved > 5


@pytest.mark.parametrize(("arch", "mixed"), [("eyeriss", True), ("tpu_v1", False)])
def test_forty_dimensions_are_proved(arch: str, mixed: bool) -> None:
    kinds = {"m": "AZ", "n": "BZ", "k": "AB", "g": "ABZ"}
    names = [f"{kind}{number}" for number in range(13) for kind in "mnk"] + ["g0"]
    names = names if mixed else sorted(names)
    tensors = [
        {"name": name, "role": role, "projection": [each for each in names if name in kinds[each[0]]]}
        for name, role in (("A", "input"), ("B", "weight"), ("Z", "output"))
    ]
    problem = {"kind": "problem", "name": "network", "dimensions": dict.fromkeys(names, 2), "tensors": tensors}
    space = tilewright.space(problem, arch=arch, constraints="none")
    result = search(installed().make(MapperSpec, "optimal"), Task(space), bound(space), Budget(evaluations=100_000))
    assert result.best is not None and result.proved
    assert space.contains(result.best)
    assert math.prod(space.problem.sizes) == 2**40


def test_members_have_the_same_tensors() -> None:
    merged = image(tilewright.space(PRODUCT, arch="eyeriss", constraints="none"))
    assert merged is not None
    assert merged.members == ((0,), (1, 2), (3, 4), (5,))
    assert dict(merged.space.problem.dimensions) == {"a": 4, "b": 12, "d": 6, "g": 2}


@pytest.mark.parametrize(
    ("rule", "apart"),
    [
        ({"temporal": [{"memory": "DRAM", "factors": {"b": {"max": 1}}}]}, True),
        ({"temporal": [{"memory": "DRAM", "factors": {"b": {"min": 2}}}]}, True),
        ({"temporal": [{"memory": "DRAM", "order": ["b", "a"]}]}, True),
        ({"temporal": [{"memory": "DRAM", "only": ["a", "b"]}]}, True),
        ({"temporal": [{"memory": "DRAM", "only": ["a"]}]}, False),
        ({"temporal": [{"memory": "DRAM", "factors": {"b": {"max": 2}, "c": {"max": 6}, "a": 2}}]}, False),
        ({"temporal": [{"memory": "DRAM", "factors": {"b": 1, "c": 1}}]}, False),
        ({"temporal": [{"memory": "DRAM", "innermost": ["a"]}]}, False),
    ],
)
def test_a_rule_on_one_member_tells_it_apart(rule: dict[str, Any], apart: bool) -> None:
    constraints = {"kind": "constraints", "name": "rules", "variants": [rule]}
    merged = image(tilewright.space(PRODUCT, arch="eyeriss", constraints=constraints))
    assert merged is not None
    assert ((1, 2) in merged.members) != apart
    if not apart:
        number, slots = merged.members.index((1, 2)), merged.space.slots
        members = [math.prod(slot.highest[d] for d in (1, 2)) for slot in merged.whole.slots]
        assert [slot.highest[number] for slot in slots] == members


@pytest.mark.parametrize(("order", "linked"), [("abcgde", 4), ("debcag", 4), ("abgcde", 5), ("dabgec", 6)])
def test_with_links_only_neighbours_in_the_problem_are_alike(order: str, linked: int) -> None:
    """A tensor without a memory inside a fanout reaches units directly, and the unit beside may forward its words."""
    problem = tilewright.space(PRODUCT, arch="tpu_v1").problem
    turned = problem.model_dump() | {"dimensions": {name: problem.dimensions[name] for name in order}}
    space = tilewright.space(turned, arch="tpu_v1", constraints="none")
    for links, count in ((True, linked), (False, 4)):
        merged = image(space, link_transfers=links)
        assert count == (6 if merged is None else len(merged.members))


def test_windows_and_ragged_tiles_are_not_merged() -> None:
    window = "O[n,m,p,q] += I[n,m,p+r,q] * W[r]; n=2 m=2 p=4 q=4 r=2"
    assert image(tilewright.space(window, arch="eyeriss", constraints="none")) is None
    assert image(tilewright.space(window.replace("r=2", "r=1"), arch="eyeriss", constraints="none")) is not None
    assert image(tilewright.space(PRODUCT, arch="eyeriss", constraints="none", factors="ragged")) is None
    assert image(tilewright.space(PRODUCT, arch="eyeriss", constraints="none"), first_fills=True) is None
