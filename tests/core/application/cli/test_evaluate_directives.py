"""`tilewright evaluate --from maestro`: a tool's own files, evaluated without a Tilewright mapping."""

from pathlib import Path
from typing import Any

from support import EXAMPLE_FILES
from support.command import Command
from support.recorded.maestro import differences, load


def write(case: dict[str, Any], folder: Path) -> None:
    (folder / "case.m").write_text(case["mapping_file"])
    (folder / "hardware.m").write_text(case["hardware_file"])


def test_evaluate_prints_maestros_figures(tilewright: Command, tmp_path: Path) -> None:
    case = next(case for case in load("cases") if case["id"] == "hand_014")
    write(case, tmp_path)
    words = ["evaluate", "--from", "maestro", tmp_path / "case.m", tmp_path / "hardware.m", "--model", "maestro"]
    (result,) = tilewright(*words, "--json").data["results"]
    assert differences(result["columns"], case["columns"]) == []
    assert result["valid"] and result["macs"] == 480 and result["cycles"] == 193
    assert "MAESTRO counts 336 operations; the layer has 480" in result["warnings"]
    assert "cycles  193, limited by" in tilewright(*words).out
    untold = [word for word in words if word not in ("--from", "maestro", "--model")]
    assert tilewright(*untold, "--json").data["results"] == [result]
    ran = tilewright(*untold, "--arch", "eyeriss")
    assert ran.code == 2 and "directives include their problem and hardware" in ran.err


def test_models_of_mappings_are_given_the_tiles(tilewright: Command, tmp_path: Path) -> None:
    """4 x 6 x 8 on 4 PEs in 12 steps of 4: Timeloop's model sees the same operations and steps."""
    case = next(case for case in load("cases") if case["id"] == "hand_003")
    write(case, tmp_path)
    words = ["evaluate", "--from", "maestro", tmp_path / "case.m", tmp_path / "hardware.m"]
    theirs, ours = tilewright(*words, "--model", "maestro", "--model", "timeloop", "--json").data["results"]
    assert theirs["valid"] and ours["valid"] and ours["macs"] == theirs["macs"] == 192
    assert (theirs["cycles"], ours["cycles"]) == (49, 48)
    assert [level["name"] for level in ours["levels"]] == ["DRAM", "L2", "L1"]


def independent(folder: Path) -> Path:
    """Two SpatialMaps of independent dimensions: MAESTRO puts them on a diagonal and loses work."""
    case = next(case for case in load("rejects") if case["name"] == "two independent spatial maps")
    (folder / "case.m").write_text(case["mapping_file"])
    return folder / "case.m"


def test_directives_that_are_no_tiles_are_refused_by_them(tilewright: Command, tmp_path: Path) -> None:
    words = ["evaluate", "--from", "maestro", independent(tmp_path), "--model", "timeloop"]
    (result,) = tilewright(*words, "--json").data["results"]
    assert not result["valid"] and result["reasons"][0]["code"] == "diagonal"


def test_row_stationary_files_are_tiles_that_unroll_filters(tilewright: Command, tmp_path: Path) -> None:
    """The published Eyeriss dataflow: rows of the filter over PEs, and the rows of the input that each meets."""
    case = next(case for case in load("cases") if case["dimensions"].get("R") == 3 and case["levels"][-1][1][3] == "R")
    write(case, tmp_path)
    words = ["evaluate", "--from", "maestro", tmp_path / "case.m", tmp_path / "hardware.m", "--json"]
    theirs, ours = tilewright(*words, "--model", "maestro", "--model", "timeloop").data["results"]
    assert ours["macs"] == theirs["macs"] and ours["levels"][-1]["tensors"]["Weights"]["instances"] % 3 == 0


def test_tiles_are_converted_into_any_notation_and_back(tilewright: Command, tmp_path: Path) -> None:
    """Convert MAESTRO's files to Timeloop's (without the NoC) and Tilewright's files, and back.

    The results cost as MAESTRO's do.
    """
    write(next(case for case in load("cases") if case["id"] == "hand_003"), tmp_path)
    files = [tmp_path / "case.m", tmp_path / "hardware.m"]
    for notation in ("timeloop", "timeloop_v4", "tilewright"):
        words = ["convert", *files, "--from", "maestro", "--to", notation, "-o", tmp_path / notation]
        ran = tilewright(*words, "--lossy")
        assert ran.code == 0 and ("dropped network" in ran.err) == notation.startswith("timeloop"), ran.err
    ours = sorted((tmp_path / "tilewright").iterdir())
    words = ["evaluate", "--from", "tilewright", *ours, "--model", "maestro", "--json"]
    assert tilewright(*words).data["results"][0]["cycles"] == 49
    theirs = sorted((tmp_path / "timeloop").iterdir())
    words = ["convert", *theirs, "--from", "timeloop", "--to", "maestro", "-o", tmp_path / "again"]
    ran = tilewright(*words)
    assert ran.code == 0, ran.err
    text = next((tmp_path / "again" / "data" / "mapping").iterdir()).read_text()
    assert "TemporalMap(2,2) N;\n   TemporalMap(2,2) K;\n   SpatialMap(1,1) M;" in text


def test_what_is_no_tile_is_not_converted(tilewright: Command, tmp_path: Path) -> None:
    words = ["convert", independent(tmp_path), "--from", "maestro", "--to", "tilewright"]
    ran = tilewright(*words)
    assert ran.code == 2 and "[diagonal]" in ran.err


def test_the_diagonals_of_unions_figure_7(tilewright: Command, tmp_path: Path) -> None:
    """K_YR_XS: K over 2, R over 3, S over 3; rows of input and filter on a diagonal, as MAESTRO's notation says it."""
    figure = EXAMPLE_FILES / "union_figure_7.yaml"
    ran = tilewright("convert", figure, "--from", "union", "--to", "maestro", "-o", tmp_path)
    assert ran.code == 0, ran.err
    mapping, hardware = (next((tmp_path / "data" / name).iterdir()).read_text() for name in ("mapping", "hw"))
    assert hardware.startswith("num_pes: 18\n")
    for diagonal in (
        "Cluster(3, P);\n   SpatialMap(1,1) Y;\n   SpatialMap(1,1) R;",
        "SpatialMap(1,1) X;\n   SpatialMap(1,1) S;",
    ):
        assert diagonal in mapping
    words = ["evaluate", "--from", "union", figure, "--model", "maestro", "--model", "oracle", "--json"]
    theirs, truth = tilewright(*words).data["results"]
    assert (
        theirs["columns"]["num_macs"] == truth["execution"]["operations"]
        and theirs["columns"]["avg_utilized_pes"] == 18
    )


def test_several_layers_are_a_table_and_explained_one_by_one(tilewright: Command, tmp_path: Path) -> None:
    layer = "Layer {} {{ Type: GEMM Dimensions {{ M: 4, N: 6, K: 8 }} Dataflow {{ SpatialMap(1,1) M; TemporalMap(2,2) K; }} }}"
    (tmp_path / "two.m").write_text(f"Network net {{ {layer.format('A')} {layer.format('B')} }}")
    shown = tilewright("evaluate", tmp_path / "two.m").out
    assert [line.split()[:2] for line in shown.splitlines()[2:]] == [["A", "maestro"], ["B", "maestro"]]
    explained = tilewright("evaluate", tmp_path / "two.m", "--explain").out
    assert (
        explained.startswith(shown) and "A by maestro: 192 MACs" in explained and "B by maestro: 192 MACs" in explained
    )
