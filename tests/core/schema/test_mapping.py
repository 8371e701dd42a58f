"""Mappings: loops multiply to the problem, and entries inherit."""

from hypothesis import given

from support.problems import triples
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


@given(triples())
def test_loops_and_factors_multiply_to_the_problem(triple: tuple[Problem, Architecture, Mapping]) -> None:
    problem, _, mapping = triple
    trips = dict.fromkeys(problem.dimensions, 1)
    for loop in mapping.loops():
        trips[loop.dimension] *= loop.trips
    assert trips == dict(problem.dimensions)
    assert mapping.is_perfect


def test_a_mapping_may_leave_out_what_it_inherits() -> None:
    mapping = Mapping.from_yaml(
        """
        entries:
          - {target: D, keep: [A], temporal_tile_sizes: {M: 8, K: 6}}
          - {target: B, keep: [], temporal_tile_sizes: {M: 3}, spatial_tile_sizes: {K: 4}}
          - {target: B, temporal_tile_sizes: {M: 1, K: 1}, temporal_order: [K, M]}
        """
    )
    assert [dict(entry.temporal_tile_sizes) for entry in mapping.entries] == [
        {"M": 8, "K": 6}, {"M": 3, "K": 6}, {"M": 1, "K": 1},
    ]  # fmt: skip
    assert mapping.entries[1].keep == () and mapping.entries[2].keep is None
    assert [(loop.dimension, loop.trips, loop.spatial) for loop in mapping.loops()] == [
        ("M", 3, False), ("K", 2, True), ("K", 4, False), ("M", 3, False),
    ]  # fmt: skip
    assert not mapping.is_perfect
