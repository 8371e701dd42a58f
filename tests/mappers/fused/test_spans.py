"""Bounds by the states of tensors: none is above a tree, with all its tensors or with one that is away."""

from dataclasses import replace

import pytest

from support.fused_graphs import Graph, random_graph
from support.profiles import first
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright_mappers.fused.group import PARTS, _axes, _search, _shared
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.spans import SpanBounds
from tilewright_mappers.fused.tree import TreeSearch


def searched(graph: Graph, objective: Objective) -> TreeSearch:
    """Return the search of a graph's trees."""
    group, limits = graph.group(), Limits()
    shared = list(_shared(group, group.architecture.memories[1]))
    return _search(group, shared, _axes(group, shared, limits), objective, limits)


def best(search: TreeSearch, objective: Objective) -> float:
    """Return the cost of the best tree, found without bounds by states."""
    result = search.best(search.unfused())
    assert result.proved
    return objective.value(result.best.energy_pj, result.best.cycles)


def bounds(spans: SpanBounds, at: int, name: str, objective: Objective) -> float:
    """Return the bound on trees where a tensor that crosses a place is away."""
    away = tuple(False if name == other else None for other in spans.crossing(at))
    energy, cycles = (sum(pair) for pair in zip(spans.before(at, away), spans.after(at, away), strict=True))
    return objective.value(energy, cycles)


@pytest.mark.parametrize("seed", first(2, *range(30)))
@pytest.mark.parametrize("objective", [ENERGY, CYCLES])
def test_no_tree_costs_less_than_the_bound_of_its_states(seed: int, objective: Objective) -> None:
    graph = random_graph(seed, chain=seed % 3 == 0)
    search, last = searched(graph, objective), graph.count
    cost, before = best(search, objective), 0.0
    for parts in PARTS:
        spans = search.bounded(parts)
        if spans is None:
            return
        bound = objective.value(*spans.before(last))
        assert before <= bound <= cost * (1 + 1e-9) and bound == pytest.approx(objective.value(*spans.after(0)))
        before = bound
        for tensor in (one for one in search.shared if one.alike):
            others = [replace(one, alike=one.alike and one != tensor) for one in search.shared]
            limited = TreeSearch(search.layers, others, search.axes, objective, search.limits)
            for at in range(tensor.first + 1, tensor.last + 1):
                assert bounds(spans, at, tensor.name, objective) <= best(limited, objective) * (1 + 1e-9)
