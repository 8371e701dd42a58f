"""Rules of group mappings: peaks are those of an execution, and each rule accepts and refuses next to its limit."""

from typing import Any

import pytest

from support import EXAMPLE_FILES
from support.fused_padded import PaddedPair
from support.random_groups import random_group
from support.tiled_groups import SUMS, Case
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.mapspace.group_legality import (
    ends_with_sequence,
    group_legality,
    is_padded,
    joined_dimensions,
    tile_peaks,
)
from tilewright.mapspace.group_padding import existing_words
from tilewright.schema.group import GroupMapping

ORACLE = build_model("oracle")


@pytest.mark.parametrize("seed", [1, 5, 7, 15, 27, 38])
def test_peaks_of_tiles_are_those_of_an_execution(seed: int) -> None:
    group = random_group(seed)
    report = evaluate_group(ORACLE, group)
    assert report.valid and group_legality(group)
    assert tile_peaks(group) == {level.name: level.used_words for level in report.levels}


def test_a_tile_inside_all_loops_needs_room() -> None:
    """Beside 512 words of weights and 128 of Hidden, one of Inputs or 32 of Outputs."""
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml").to_data()
    ones = dict.fromkeys("MNK", 1)
    loops = {"target": "Buffer", "temporal_tile_sizes": ones, "temporal_order": ["M", "N", "K"]}
    kept = {"target": "Buffer", "keep": ["Inputs"]}
    data["tree"]["branches"][0]["entries"] = [loops, kept, {"target": "Buffer"}]
    for outputs, words in ((["Outputs"], 32), ([], 1)):
        data["tree"]["branches"][1]["entries"][0]["keep"] = outputs
        group = GroupMapping.model_validate(data)
        report = evaluate_group(ORACLE, group)
        assert tile_peaks(group)["Buffer"] == 2 * 256 + 128 + words
        assert [level.used_words for level in report.levels if level.name == "Buffer"] == [2 * 256 + 128 + words]


def test_words_beyond_the_sizes_of_an_edge_do_not_exist() -> None:
    """The first of 4 rows is that of the window for T0, and the second one for T1."""
    group = PaddedPair(5).group()
    assert [is_padded(group, name) for name in ("T0", "T1", "L0.W0")] == [True, True, False]
    assert [existing_words(group, name) for name in ("T0", "T1")] == [[(0, 3), (0, 0)], [(0, 3), (0, 1)]]
    report = evaluate_group(ORACLE, group)
    assert tile_peaks(group)["DRAM"] == report.levels[0].used_words


def test_a_tile_above_a_sequence_ends_with_it_if_several_branches_use_it_and_no_loop_is_between() -> None:
    """The buffer keeps rows of Hidden for both layers, and all weights of each, with a loop over rows inside them."""
    group = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml")
    path = group.paths["first"]
    (*_, weights), (rows,) = path.keepers("Weights"), path.keepers("Outputs")
    assert ends_with_sequence(group, "Hidden", path, rows)
    assert not ends_with_sequence(group, "first.Weights", path, rows)  # one branch uses it
    assert not ends_with_sequence(group, "Hidden", path, weights)  # a loop over rows is inside


@pytest.mark.parametrize(
    ("rows", "legal"), [((66, 64), True), ((64, 64), False), ((66, 63), False)], ids=["halo", "none left", "too few"]
)
def test_layers_whose_rows_differ_by_their_halo_share_a_loop(rows: tuple[int, int], legal: bool) -> None:
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml").to_data()
    for layer, size in zip(data["layers"], rows, strict=True):
        layer["dimensions"]["P"] = size
    assert bool(group_legality(GroupMapping.model_validate(data))) is legal


@pytest.mark.parametrize(
    ("tile", "legal"), [({"P": 1}, True), ({"P": 2}, True), ({"P": 4}, False), ({"P": 64}, False), ({"P": 66}, True)]
)
def test_a_loop_over_different_rows_has_a_tile_that_divides_all(tile: dict[str, int], legal: bool) -> None:
    """66 and 64 rows: their tiles of 1 and 2 rows end together. One tile of 66 rows is no loop."""
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml").to_data()
    data["tree"]["entries"][2]["temporal_tile_sizes"] = tile
    for branch in data["tree"]["branches"]:
        branch["entries"][-1]["temporal_order"].insert(0, "P")
        branch["entries"][-1]["temporal_tile_sizes"]["P"] = 1
    data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = 1000
    found = group_legality(GroupMapping.model_validate(data))
    assert bool(found) is legal, found.reasons


@pytest.mark.parametrize(
    ("offsets", "plain", "windows"),
    [([0, 0], {("M", "M"), ("N", "K")}, set()), ([0, 1], {("M", "M")}, {"K"})],
)
def test_coordinates_are_one_if_no_offset_parts_them(
    offsets: list[int], plain: set[tuple[str, str]], windows: set[str]
) -> None:
    data: dict[str, Any] = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml").to_data()
    (edge,) = [edge for edge in data["edges"] if len(edge["layers"]) > 1]
    maker, reader = edge["layers"]
    edge["offsets"] = {reader: offsets}
    group = GroupMapping.model_validate(data)
    assert joined_dimensions(group, edge["tensor"], maker, reader) == (plain, windows)


@pytest.mark.parametrize(("tensor", "branch"), [("up.Inputs", 0), ("down.Outputs", 1)])
@pytest.mark.parametrize("whole", [True, False])
def test_inputs_and_results_are_in_the_outermost_memory_or_whole_in_their_home(
    tensor: str, branch: int, whole: bool
) -> None:
    data: dict[str, Any] = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml").to_data()
    entries = data["tree"]["entries"]
    entries[0]["keep"].remove(tensor)
    if whole:  # outside of all branches
        entries[1]["keep"].append(tensor)
        del data["tree"]["branches"][branch]["entries"][0]
    codes = [reason.code for reason in group_legality(GroupMapping.model_validate(data)).reasons]
    assert codes == ([] if whole else ["home"])


def test_all_layers_keep_a_tensor_in_one_memory_of_a_cluster() -> None:
    data: dict[str, Any] = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml").to_data()
    (buffer,) = data["architecture"]["clusters"][1]["memories"]
    parts = [{"holds": ["input", "weight"]}, {"name": "Sums", "holds": ["output"]}]
    data["architecture"]["clusters"][1]["memories"] = [buffer | part for part in parts]
    (reason,) = group_legality(GroupMapping.model_validate(data)).reasons
    assert reason.code == "home" and "its layers keep it in different memories there: Buffer, Sums" in reason.message


def added(number: int, **places: str) -> dict[str, Any]:
    """Return a group of `SUMS`, as data: `places` has the memory that keeps each result; else it is DRAM."""
    case = Case(0, sums=True)
    case.layers, case.added = SUMS[number]
    case.sizes, case.capacity = {"m": 4, "a": 2, "b": 2, "c": 2, "d": 2}, 1000
    data = case.group().to_data()
    dram = data["tree"]["entries"][0]
    home = {"target": "Home", "keep": [name for name, memory in places.items() if memory == "Home"]}
    dram["keep"] = [name for name in dram["keep"] if name not in home["keep"]]
    data["tree"]["entries"] = [dram, home]
    return data


def told(data: dict[str, Any]) -> list[str]:
    return [f"{reason.code}: {reason.message}" for reason in group_legality(GroupMapping.model_validate(data)).reasons]


def test_a_result_is_added_after_it_is_made() -> None:
    data = added(2)
    assert not told(data)
    data["tree"]["branches"].reverse()
    assert told(data) == ["unfinished: L1 runs before L0, which makes it; exchange the branches"]


def test_a_result_is_added_inside_its_home() -> None:
    data = added(1, T1="Home")
    assert not told(data)
    first, second, last = data["tree"]["branches"]
    home = data["tree"]["entries"].pop()
    data["tree"]["branches"] = [{"entries": [home], "branches": [first, second]}, last]
    assert told(data) == ["home: L2 adds it outside of its home; keep it in a part outside of both"]


def test_a_result_stays_until_it_is_added() -> None:
    """T1 and T2 have 8 words each; T2 is read by the last layer, which adds T1."""
    data = added(1, T1="Home", T2="Home")
    assert tile_peaks(GroupMapping.model_validate(data))["Home"] == 16
    data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = 15
    assert told(data) == ["alive: tiles alive at one moment need 16 words, 15 fit"]
    peaks = evaluate_group(ORACLE, GroupMapping.model_validate(added(1, T1="Home", T2="Home")))
    assert {level.name: level.used_words for level in peaks.levels}["Home"] == 16


def test_a_shared_loop_may_not_step_a_sum_that_is_added_whole() -> None:
    """Rows of T1 are made one by one, but L1 adds them in a loop over its columns."""
    data = added(2, T1="Home")
    data["axes"] = {"r": {"L0": "m", "L1": "m"}}
    data["tree"]["entries"][-1]["temporal_tile_sizes"] = {"r": 1}
    for branch in data["tree"]["branches"]:
        branch["entries"][0]["temporal_tile_sizes"]["m"] = 1
    group = GroupMapping.model_validate(data)
    assert not told(data) and evaluate_group(ORACLE, group).valid
    data["axes"] = {"r": {"L0": "m", "L1": "b"}}
    data["layers"][1]["dimensions"]["b"] = data["layers"][0]["dimensions"]["b"] = 4
    for branch in data["tree"]["branches"]:
        branch["entries"][0]["temporal_tile_sizes"] = dict.fromkeys(branch["entries"][0]["temporal_tile_sizes"], 1)
    assert any(text.startswith("unfinished") for text in told(data))
