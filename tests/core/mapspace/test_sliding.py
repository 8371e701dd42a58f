"""Windows that slide in a shared loop: rows at home, lags, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import InputError
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.sliding import Window, alive_rows, covers, window_along, words_of_boxes
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import Problem

ROWS = 8


def layer(name: str, rows: int, stride: int = 1, taps: int = 3) -> dict[str, Any]:
    window = {"terms": {"P": stride, "R": 1}}
    return {
        "name": name,
        "dimensions": {"P": rows, "R": taps},
        "tensors": [
            {"name": "I", "role": "input", "projection": [window]},
            {"name": "W", "role": "weight", "projection": ["R"]},
            {"name": "O", "role": "output", "projection": ["P"]},
        ],
    }


def stack(tile: int, start: int, rows: int = 2, zeros: bool = True, before: int = 1) -> dict[str, Any]:
    """Return two layers; the second one has a stride of 2, and `before` rows of padding."""
    ones = {"target": "Buffer", "temporal_tile_sizes": {"P": 1, "R": 1}, "temporal_order": ["P", "R"]}
    energies = {"read_energy_pj": 2, "write_energy_pj": 3}
    memories: list[dict[str, Any]] = [{"name": "DRAM"} | energies, {"name": "Buffer", "capacity_words": 40} | energies]
    return {
        "name": "stack",
        "layers": [layer("one", ROWS), layer("two", ROWS // 2, stride=2)],
        "edges": [{"tensor": "T", "layers": {"one": "O", "two": "I"}, "offsets": {"two": [before]}, "zeros": zeros}],
        "axes": {"P": {"one": "P", "two": "P"}},
        "paces": {"P": {"one": {"rows": rows, "start": 0}, "two": {"start": start}}},
        "tree": {
            "entries": [
                {"target": "DRAM", "keep": ["one.I", "one.W", "two.W", "two.O"]},
                {"target": "Buffer", "keep": ["T"], "temporal_tile_sizes": {"P": tile}},
            ],
            "branches": [{"layer": "one", "entries": [ones]}, {"layer": "two", "entries": [ones]}],
        },
        "architecture": {
            "name": "m",
            "clusters": [{"name": one["name"], "memories": [one]} for one in memories],
            "compute": {"energy_per_operation_pj": 1},
        },
    }


def window(**changes: Any) -> Window:
    group = GroupMapping.model_validate(stack(1, 0))
    one = window_along(group, "T", "one", "two", "P")
    assert one is not None
    return replace(one, **changes)


def test_a_strided_window_waits_for_its_rows() -> None:
    one = window()
    assert (one.size, one.made, one.taken, one.stride, one.reach, one.before) == (8, 2, 1, 2, 2, 1)
    assert one.needed(1) == 2 and one.is_ready(1) and one.least_lag(1) == 0
    assert window(before=0).least_lag(1) == 1  # a window of three rows needs two steps of two rows


@pytest.mark.parametrize(("tile", "start", "rows"), [(1, 0, 3), (2, 0, 5), (1, 1, 5), (1, 2, 7)])
def test_rows_at_home_are_those_from_the_oldest_needed_to_the_newest(tile: int, start: int, rows: int) -> None:
    group = GroupMapping.model_validate(stack(tile, start))
    assert group_legality(group)
    for model in ("timeloop", "oracle"):
        report = evaluate_group(build_model(model), group)
        assert report.valid, report.reasons
        assert next(level.used_words for level in report.levels if level.name == "Buffer") == rows


def test_padding_without_zeros_takes_no_room() -> None:
    group = GroupMapping.model_validate(stack(1, 0, zeros=False))
    for model in ("timeloop", "oracle"):
        report = evaluate_group(build_model(model), group)
        reads = {row.tensor: row.reads.total for row in report.accesses if row.level == "Buffer" and row.layer == "two"}
        zeros = evaluate_group(build_model(model), GroupMapping.model_validate(stack(1, 0)))
        other = {row.tensor: row.reads.total for row in zeros.accesses if row.level == "Buffer" and row.layer == "two"}
        assert other["T"] - reads["T"] == 1  # the row ahead of the first one


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tile": 1, "start": 0, "before": 0}, "halo"),  # needs row 2, which step 1 makes
        ({"tile": 1, "start": 0, "rows": 1}, "halo"),  # eight steps of one layer, four of the other
        ({"tile": 2, "start": 1}, "halo"),  # a start in the middle of a tile
    ],
)
def test_steps_that_read_what_is_not_there_are_illegal(changes: dict[str, Any], code: str) -> None:
    verdict = group_legality(GroupMapping.model_validate(stack(**changes)))
    assert code in {reason.code for reason in verdict.reasons}


@pytest.mark.parametrize(
    ("paces", "message"),
    [
        ({"Q": {"one": {"rows": 2}}}, "there is no axis Q"),
        ({"P": {"three": {"rows": 2}}}, "axis P has no dimension of three"),
        ({"P": {"one": {"rows": 3}}}, "P of one has 8 rows; expected a number that divides them"),
    ],
)
def test_paces_that_do_not_fit_are_named(paces: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupMapping.model_validate(stack(1, 0) | {"paces": paces})


def test_zeros_with_sizes_are_refused() -> None:
    data = stack(1, 0)
    data["edges"][0]["sizes"] = [8]
    with pytest.raises(ValueError, match="all words exist; leave sizes out"):
        GroupMapping.model_validate(data)


def test_a_file_with_paces_comes_back() -> None:
    group = GroupMapping.model_validate(stack(1, 1))
    assert GroupMapping.from_yaml(group.to_yaml()) == group
    assert "for P in 5" in str(group)  # four steps of each layer, and one that the second one waits
    broken = group.to_yaml().replace("start: 1", "start: -1")
    with pytest.raises(InputError, match="start"):
        GroupMapping.from_yaml(broken)


def test_rows_between_windows_are_not_covered() -> None:
    def read(stride: int, taps: int) -> bool:
        problem = Problem.model_validate(layer("one", 4, stride, taps))
        return covers(4 * stride, problem, problem.tensor("I"), 0, 0)

    assert read(1, 1) and read(2, 2) and read(2, 3) and not read(2, 1)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(0, 2), st.integers(1, 6), st.integers(1, 3))
def test_rows_at_home_equal_those_of_stepping_through_the_loop(
    stride: int, taps: int, lag: int, before: int, steps: int, tile: int
) -> None:
    taps = max(taps, stride)
    length, before = steps * tile, min(before, taps - 1)
    size = (length - 1) * stride + taps - before
    size -= size % (tile * stride) if size > tile * stride else 0
    one = Window(0, size, stride, 1, stride, taps - 1, before, lag * tile, length, True)
    if not one.is_ready(tile) or size < 1:
        return
    here, most = set[int](), 0
    for step in range(steps + lag):
        here |= {row for row in range(step * tile * stride, (step + 1) * tile * stride) if row < size}
        turn = step - lag
        if turn >= 0:
            first = turn * tile * stride - before
            here |= set(range(first, first + (tile - 1) * stride + taps))
        most = max(most, len(here))
        if turn >= 0:
            here = {row for row in here if row >= (turn + 1) * tile * stride - before}
    assert alive_rows([one], tile) == most


@pytest.mark.parametrize("third", [0, 3])
def test_one_start_holds_for_all_readers_of_the_axis(third: int) -> None:
    """Layer one states no start, so it ends with layer three: of that, two has to know."""
    changed = stack(1, 0)
    changed["layers"].append(layer("three", 4, taps=1))
    changed["axes"]["P"]["three"] = "P"
    changed["paces"]["P"] |= {"one": {"rows": 2}, "three": {"start": third}}
    changed["tree"]["entries"][0]["keep"] += ["three.I", "three.W", "three.O"]
    changed["tree"]["branches"].append(changed["tree"]["branches"][0] | {"layer": "three"})
    group = GroupMapping.model_validate(changed)
    assert GroupMapping.from_yaml(group.to_yaml()) == group
    assert group.starts("P", ["one", "two"]) == {"one": third, "two": 0}
    assert [reason.code for reason in group_legality(group).reasons] == (["halo"] if third else [])


@pytest.mark.parametrize("zeros", [True, False])
def test_rows_at_home_are_counted_without_a_walk_through_a_long_loop(zeros: bool) -> None:
    length = 2**40
    two = [Window(0, length, 1, 1, 1, 2, before, 2 - before, length, zeros) for before in (1, 2)]
    assert alive_rows(two, 1) == 3
    assert alive_rows([replace(two[0], lag=length)], 1) == length + zeros


def test_boxes_that_overlap_count_common_words_once() -> None:
    assert words_of_boxes([[(0, 6), (0, 6)], [(-1, 6), (-1, 6)]]) == 36 + 36 - 25
    assert words_of_boxes([[(0, 6)], [(-1, 8)], [(0, 6)]]) == 8
    assert words_of_boxes([[(0, 2)], [(5, 3)], [(1, 5)]]) == 8


def test_a_whole_tensor_takes_the_rows_of_its_maker_and_the_zeros_around() -> None:
    """The maker has the rows 0 to 5, and the windows of the reader take -1 to 4."""
    data = stack(1, 0)
    data["layers"] = [layer("one", 6), layer("two", 2, stride=3)]
    del data["axes"], data["paces"]
    data["tree"]["entries"][1].pop("temporal_tile_sizes")
    data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = 6
    for model in ("timeloop", "oracle"):
        report = evaluate_group(build_model(model), GroupMapping.model_validate(data))
        assert [reason.code for reason in report.reasons] == ["alive"] and "need 7 words" in str(report.reasons[0])
