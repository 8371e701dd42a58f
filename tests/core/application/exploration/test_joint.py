"""Joint searches: each mapping counts on the first machine that holds its tiles."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.application.exploration.joint import JointSearch, largest
from tilewright.errors import InputError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.tiling import leaves, maximal, tile_tree
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import EDP, Objective

CONV = "O[k,p] += I[c,p+r] * W[k,c,r]; p=14 k=4 c=4 r=3"


def machine(words: int, units: int = 1, pj: float = 0.0) -> Architecture:
    return Architecture.from_yaml(
        f"""
        name: m{words}
        clusters:
        - {{name: Main, memories: [{{name: Main, read_energy_pj: 64, write_energy_pj: 64}}], fanout: {{size: {units}}}}}
        - {{name: L1, memories: [{{name: L1, capacity_words: {words}, read_energy_pj: {pj or 0.1 * words}, write_energy_pj: {pj or 0.1 * words}}}]}}
        compute: {{energy_per_operation_pj: 1}}
        """
    )


def spaces(problem: str, *machines: Architecture) -> list[MapSpace]:
    return [tw.space(problem, each, constraints="none") for each in machines]


def joint(problem: str, *machines: Architecture, objective: Objective = EDP) -> JointSearch:
    model, some = installed().make(CostModelSpec, "timeloop"), spaces(problem, *machines)
    return JointSearch(some, [model.bind(each.problem, each.architecture) for each in some], objective)


def test_the_tile_tree_of_the_thesis_keeps_no_tile_for_four_words() -> None:
    """Figure 5.2: the root with 3 words, and the four leaves with 8, of P, K, C, R = 14, 4, 4, 3."""
    found = spaces(CONV, *map(machine, (3, 4, 8)))
    machines = tuple(each.architecture for each in found)
    space = replace(found[0], architecture=largest(machines), machines=machines)
    sizes = np.array(space.problem.sizes, dtype=np.int64)
    trips = np.ones((1, len(space.slots), len(sizes)), dtype=np.int64)
    outer, inner = space.temporal_slots[0], space.temporal_slots[-1]
    trips[0, outer] = sizes
    start, dims = Candidates(space, trips), range(len(sizes))
    tiles = tile_tree(start, outer, inner, dims)
    kept = tiles.take(maximal(tiles, outer, inner, dims))
    columns = [space.problem.dimension_names.index(name) for name in "pkcr"]
    by_machine = {
        (machines[holder].clusters[1].memories[0].capacity_words, tuple(row))
        for holder, row in zip(kept.holders().tolist(), kept.trips[:, inner][:, columns].tolist(), strict=True)
    }
    assert by_machine == {(3, (1, 1, 1, 1))} | {
        (8, each) for each in ((2, 2, 1, 1), (2, 1, 2, 1), (1, 2, 2, 1), (1, 1, 1, 3))
    }
    grown = leaves(start, outer, inner, dims)
    assert {row.tobytes() for row in grown.trips} == {row.tobytes() for row in kept.trips}


def test_all_mappings_are_evaluated_once_and_the_best_of_all_machines_is_found() -> None:
    problem, machines = "nk,km->nm; n=4 k=4 m=2", [machine(words) for words in (3, 8, 12, 32)]
    search, mapper = joint(problem, *machines), installed().make(MapperSpec, "exhaustive")
    result = search.run(mapper, Budget())
    alone = [joint(problem, each) for each in machines]
    values = [each.run(mapper, Budget()).value for each in alone]
    best = search.best()
    assert result.value == min(values) == min(value for value, _ in best)
    assert all(value >= least for (value, _), least in zip(best, values, strict=True))
    assert search.evaluated.sum() == alone[-1].evaluated.sum() < sum(each.evaluated.sum() for each in alone)
    assert search.tiles == alone[-1].tiles
    for (_, mapping), each in zip(best, machines, strict=True):
        assert mapping is not None and legality(search.space.problem, each, mapping)


def test_machines_of_other_structure_are_refused() -> None:
    with pytest.raises(InputError, match="m8 and m16 cannot be searched together, because their map spaces differ"):
        joint("nk,km->nm; n=4 k=4 m=2", machine(8), machine(16, units=4))


def test_a_memory_without_a_limit_stays_without() -> None:
    free = machine(8).model_copy(update={"clusters": (machine(8).clusters[0], machine(8).clusters[1].model_copy(update={
        "memories": (machine(8).clusters[1].memories[0].model_copy(update={"capacity_words": None}),)}))})  # fmt: skip
    assert largest([machine(8), machine(16)]).clusters[1].memories[0].capacity_words == 16
    assert largest([machine(8), free]).clusters[1].memories[0].capacity_words is None
