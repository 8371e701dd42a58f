"""Mappings: loops multiply to the problem, and entries inherit."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.problems import triples
from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import dump_yaml
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapped import BoundMapping, MappedProblem
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


def test_levels_without_tensors_and_loops_are_no_lines_of_the_nest() -> None:
    mapping = Mapping.from_yaml(
        """
        entries:
          - {target: D, keep: [A], temporal_tile_sizes: {M: 8}}
          - {target: links, keep: []}
          - {target: B, keep: [], temporal_tile_sizes: {M: 2}}
          - {target: R, keep: [A], temporal_tile_sizes: {M: 1}}
        """
    )
    assert str(mapping).split() == "D holds A for M in 4 B holds nothing for M in 2 R holds A".split()


@st.composite
def odd_mappings(draw: st.DrawFn) -> tuple[Problem, Architecture, Mapping]:
    """Entries with any tile sizes and any orders: files hold mappings that are wrong, too."""
    problem, architecture, mapping = draw(triples())
    names, size = list(problem.dimensions), st.integers(1, 4)
    data = mapping.model_dump(mode="json")
    for entry in data["entries"] if draw(st.booleans()) else ():
        entry["temporal_tile_sizes"] = {name: draw(size) for name in draw(st.permutations(names))}
        entry["spatial_tile_sizes"] = {name: draw(size) for name in draw(st.permutations(names))}
        entry["temporal_order"] = draw(st.permutations(names))
        entry["spatial_order"] = draw(st.none() | st.permutations(names))
    return problem, architecture, Mapping.model_validate(data)


@given(odd_mappings())
def test_short_forms_and_long_ones_are_read_back_equal(triple: tuple[Problem, Architecture, Mapping]) -> None:
    problem, architecture, mapping = triple
    long = dump_yaml({"kind": "mapping", **mapping.model_dump(mode="json")})
    assert Mapping.from_yaml(mapping.to_yaml()) == Mapping.from_yaml(mapping.to_json()) == mapping
    assert Mapping.from_yaml(long) == mapping and len(mapping.to_json()) <= len(mapping.model_dump_json(indent=2))
    assert Mapping.from_yaml(BoundMapping.of(mapping, problem, architecture).to_yaml()) == mapping

    whole = MappedProblem(mapping=mapping, problem=problem, architecture=architecture)
    text = whole.to_yaml()
    assert MappedProblem.from_yaml(text) == MappedProblem.from_yaml(whole.to_json()) == whole
    assert MappedProblem.from_yaml(dump_yaml(whole.model_dump(mode="json", exclude_none=True))) == whole
    assert "".join(f"# {line}\n" for line in str(whole).splitlines()[1:]) in text


def test_infinite_options_of_plugins_are_written(tmp_path: Path) -> None:
    report = tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", mapper="random", evaluations=20, cache=False, progress=False)
    report.save(tmp_path)
    whole = MappedProblem.from_file(next(tmp_path.glob("0*.yaml")))
    assert whole.provenance is not None
    mapper = whole.provenance.mapper.model_copy(update={"options": FrozenDict({"limit": math.inf})})
    infinite = whole.model_copy(update={"provenance": whole.provenance.model_copy(update={"mapper": mapper})})
    assert MappedProblem.from_yaml(infinite.to_yaml()) == infinite


@pytest.mark.parametrize(
    ("order", "message"), [("[M]", "steps M, K: temporal_order must list them"), ("[K, M, M]", "every dimension once")]
)
def test_an_order_that_says_too_little_or_too_much_is_refused(order: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Mapping.from_yaml(
            f"""
            entries:
              - {{target: D, temporal_tile_sizes: {{M: 8, K: 6, N: 2}}}}
              - {{target: B, temporal_tile_sizes: {{M: 1, K: 1}}, temporal_order: {order}}}
            """
        )
