"""Spaces of architectures: counted exactly, every point a machine or the reasons why not, every fault with its place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import library
from tilewright.application.api.hardware.spaces import SpaceReport
from tilewright.errors import InputError, UnknownNameError

SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "buffers",
    "architecture": {
        "technology_nm": 45,
        "clusters": [
            {
                "name": "outside",
                "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100, "area_um2": 0}],
            },
            {
                "name": "chip",
                "memories": [{"name": "GLB", "block_words": 4, "component": "sram"}],
                "fanout": {"axis": "Y"},
            },
            {"name": "Row", "fanout": {"axis": "X"}},
        ],
        "compute": {"component": "mac"},
    },
    "choices": {"GLB.capacity_words": {"first": 4096, "last": 65536, "times": 2}, "rows": [4, 8, 16]},
    "set": {"chip.fanout.size": "rows", "Row.fanout.size": "64 // rows"},
    "limits": ["rows * rows <= 128", "area_mm2 <= 0.5"],
}


def changed(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (SPACE | changes).items() if value is not None}


LIBRARY = {
    "union_edge_aspects": (5, 5), "union_cloud_aspects": (6, 6), "union_chiplets": (11, 11), "sunstone_l1": (125, 51),
    "accelforge_buffer": (32, 32), "zigzag_forty": (40, 40), "cosa_k80_blocks": (8, 8),
}  # fmt: skip
"""Points, and how many of them are machines."""


@pytest.mark.parametrize("name", LIBRARY)
def test_the_librarys_spaces(name: str) -> None:
    space = tw.architecture_space(name)
    machines = [point.architecture for point in space.points() if point.architecture is not None]

    assert (len(space), len(machines)) == LIBRARY[name]
    assert len({machine.compute_instances for machine in machines}) == {"zigzag_forty": 4, "cosa_k80_blocks": 8}.get(
        name, 1
    )
    assert tw.ArchitectureSpace.from_yaml(space.to_yaml()) == space


def test_every_space_of_the_library_is_tried() -> None:
    assert set(library.names("spaces")) == set(LIBRARY)


def test_points_are_machines_with_their_choices() -> None:
    space = tw.architecture_space(SPACE)
    first = space.point(0)
    machine = first.architecture

    assert len(space) == 15 and first.values == {"GLB.capacity_words": 4096, "rows": 4} and machine is not None
    assert [cluster.fanout.size for cluster in machine.clusters] == [1, 4, 16]
    assert machine.memories[1].capacity_words == 4096 and machine.memories[1].estimates[0].estimator == "tables"
    assert tw.architecture_space(SPACE).architecture == SPACE["architecture"]


def test_what_is_no_machine_says_why() -> None:
    points = list(tw.architecture_space(SPACE).points())
    reasons = {point.index: [reason.where for reason in point.reasons] for point in points if point.reasons}

    assert all(reasons[index] == ["rows * rows <= 128"] for index in range(2, 15, 3))
    assert ["area_mm2 <= 0.5"] in reasons.values()
    small = tw.architecture_space(changed(choices={"GLB.capacity_words": [8, 4096], "rows": [4]}))
    assert (
        small.point(0).reasons[0].code == "architecture" and "a size of 16 bytes" in small.point(0).reasons[0].message
    )
    assert small.point(1).architecture is not None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_the_size_is_exact_and_every_point_is_another(sizes: list[int]) -> None:
    choices = {f"c{number}": list(range(size)) for number, size in enumerate(sizes)}
    space = tw.architecture_space({"kind": "space", "name": "s", "base": "eyeriss", "choices": choices})
    found = [tuple(space.values(index).items()) for index in range(len(space))]

    assert len(set(found)) == len(space) == len(found)
    with pytest.raises(IndexError):
        space.values(len(space))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"base": "eyeriss"}, "give base or architecture, one of them"),
        ({"architecture": None}, "give base or architecture"),
        ({"architecture": None, "base": "eyerisss", "choices": {"a": [1]}, "set": {}}, "did you mean 'eyeriss'"),
        ({"choices": {"GLB.capacities": [1]}}, "the machine has nothing at 'GLB.capacities'"),
        ({"choices": {"GLC.capacity_words": [1]}}, "did you mean 'GLB'"),
        ({"choices": {"a": []}}, "choices without values: a"),
        ({"choices": {"a": {"first": 1, "last": 9}}}, "plus or times"),
        ({"choices": {"a": {"first": 1, "last": 1e9, "plus": 1}}}, "1 to 10,000 values"),
        ({"limits": ["rows"]}, "is no comparison"),
        ({"set": {"chip.fanout.size": "rows", "GLB.capacity_words": "rows"}}, "GLB.capacity_words are one value"),
        ({"set": {"chip.fanout.size": "row"}}, "no choice or table 'row'; did you mean 'rows'"),
        ({"limits": ["rows < column"]}, "no choice or table 'column'"),
        ({"sets": {}}, "unknown key 'sets'; did you mean 'set'"),
        ({"tables": {"a": {"of": "none", "values": [1]}}}, "'none', which is no choice"),
        ({"tables": {"rows": {"of": "rows", "values": [1]}}}, "rows is a choice and a table"),
        ({"tables": {"a": {"of": "rows", "values": [1]}}}, "has 1 values for"),
        ({"choices": {"rows": [4, float("inf")]}}, "finite number"),
        ({"choices": {"rows": {"first": 1, "last": 4, "plus": float("inf")}}}, "finite number"),
        ({"tables": {"a": {"of": "rows", "values": [1, float("nan"), 2]}}}, "finite number"),
    ],
)
def test_faults_are_told(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        tw.architecture_space(changed(**changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"set": {"chip.fanout.size": "rows / 3"}}, "expected a whole number"),
        ({"set": {"chip.fanout.siz": "rows"}}, "unknown key 'siz'"),
        ({"set": {"compute.component.name.x": "rows"}}, "no part of a machine"),
        ({"limits": ["rows + __import__('os') < 2"]}, "no function '__import__'"),
    ],
)
def test_a_point_that_cannot_be_worked_out_is_refused(changes: dict[str, Any], told: str) -> None:
    point = tw.architecture_space(changed(**changes)).point(0)

    assert point.architecture is None and told in str(point.reasons[0])


def test_points_that_are_refused_alike_are_one_row() -> None:
    space = tw.architecture_space(changed(set={"chip.fanout.siz": "rows"}))
    text = str(SpaceReport.of(space))

    assert len(space) > 1 and text.count("unknown key 'siz'") == 1


def test_names_that_nobody_knows() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sunstone_l1'"):
        tw.architecture_space("sunstone_11")


def test_tables_go_with_a_choice() -> None:
    space = tw.architecture_space("zigzag_forty")
    read = {
        point.values["kibibytes"]: point.architecture.clusters[1].memories[0].read_energy_pj
        for point in space.points()
        if point.architecture is not None
    }

    assert len(space) == 40 and read == {32: 95, 64: 104, 128: 118, 256: 132, 512: 147}


def test_a_value_may_be_set_to_a_number() -> None:
    text = (
        "name: s\nbase: tpu_v1\nchoices: {Register.capacity_words: [2, 4]}\nset: {Accumulator.capacity_words: 1024}\n"
    )
    space = tw.ArchitectureSpace.from_yaml(text)
    assert space.set == {"Accumulator.capacity_words": "1024"}
    assert tw.ArchitectureSpace.from_yaml(space.to_yaml()) == space
