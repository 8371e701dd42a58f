"""`calibrate` finds the parameters that made the measured cycles, and refuses damaged files by line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from support.command import Command
from tilewright.application.run.calibration import Errors, neighbours
from tilewright.errors import InputError

PROBLEM = {
    "name": "copy",
    "dimensions": {"K": 16, "C": 4, "P": 8},
    "tensors": [
        {"name": "I", "role": "input", "projection": ["K", "P"]},
        {"name": "O", "role": "output", "projection": ["K", "P"]},
    ],
}
PARAMETERS = "DRAM.read_bandwidth_words_per_cycle,DRAM.timing.latency_cycles,Buffer.timing.prefetch"
TRUE = {"DRAM.read_bandwidth_words_per_cycle": 2.0, "DRAM.timing.latency_cycles": 40, "Buffer.timing.prefetch": "next"}


def hardware() -> tw.Architecture:
    energies = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    return tw.Architecture.model_validate(
        {
            "name": "one",
            "clusters": [
                {"name": "chip", "memories": [{"name": "DRAM", "read_bandwidth_words_per_cycle": 8.0} | energies]},
                {"name": "core", "memories": [{"name": "Buffer"} | energies]},
            ],
            "compute": {"energy_per_operation_pj": 1.0},
        }
    )


def mapping(k: int, p: int) -> tw.Mapping:
    return tw.Mapping.model_validate(
        {
            "entries": [
                {"target": "chip", "keep": ["I", "O"], "temporal_tile_sizes": PROBLEM["dimensions"]},
                {
                    "target": "core",
                    "keep": ["I", "O"],
                    "temporal_order": ["K", "P"],
                    "temporal_tile_sizes": {"K": k, "P": p},
                },
                {"target": "core", "temporal_order": ["C", "K", "P"], "temporal_tile_sizes": {"K": 1, "C": 1, "P": 1}},
            ]
        }
    )


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Cycles of hardware with the true parameters."""
    (tmp_path / "copy.yaml").write_text(tw.Problem.model_validate(PROBLEM).to_yaml())
    lines = ["mapping,problem,cycles,note"]
    for k, p in ((1, 1), (2, 2), (4, 4), (8, 8), (16, 1), (1, 8), (2, 8), (16, 2)):
        (tmp_path / f"{k}_{p}.yaml").write_text(mapping(k, p).to_yaml())
        (report,) = tw.evaluate(mapping(k, p), PROBLEM, hardware().replace(TRUE), models="pipelined").reports
        lines.append(f"{k}_{p}.yaml,copy.yaml,{report.cycles},")
    (tmp_path / "cycles.csv").write_text("\n".join(lines))
    return tmp_path / "cycles.csv"


def test_a_limit_gives_the_best_so_far_and_writes_it(tilewright: Command, measured: Path) -> None:
    arch, out = measured.parent / "given.arch.yaml", measured.parent / "fitted.arch.yaml"
    arch.write_text(hardware().to_yaml(), encoding="utf-8")
    words = ("calibrate", arch, "--measured", measured, "--parameters", PARAMETERS, "--folds", 4, "-o", out)
    ran = tilewright(*words, "--seconds", 0)
    assert ran.code == 0 and "stopped by --seconds 0: these are the best values so far" in ran.err
    assert "unseen" not in ran.out and tw.load(out, "architecture") == hardware()
    data = tilewright(*words, "--seconds", 0, "--json").data
    assert data["stopped"] == "--seconds 0" and [each["measurements"] for each in data["errors"]] == [
        "as given",
        "fitted",
    ]
    assert tilewright(*words, "--seconds", -1).code == 2


@pytest.mark.parametrize("trials", [1, 10, 40])
def test_ctrl_c_gives_the_best_so_far(measured: Path, trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The more trials, the better; the whole calibration takes some hundred."""
    asked = iter([False] * trials)
    monkeypatch.setattr("tilewright.application.api.hardware.calibration.stop_requested", lambda: next(asked, True))
    report = tw.calibrate(hardware(), measured, parameters=PARAMETERS, folds=4)
    assert report.stopped == "Ctrl-C" and "unseen" not in report.errors and "fitted rows" in repr(report)
    least = {1: 2.0, 10: 1.5, 40: 1.3}[trials]
    assert report.errors["fitted"].mean <= min(least, report.errors["as given"].mean)


def test_a_calibration_shows_its_progress(
    measured: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.application.api.progress.SECONDS", 0.0)
    tw.calibrate(hardware(), measured, parameters=PARAMETERS, folds=4, progress=True)
    told = capsys.readouterr().err
    assert (
        "0 of 5 fits done; all rows, factor 1." in told and "4 of 5 fits done; without fold 4 of 4, factor 1.0" in told
    )


def test_the_fit_makes_the_measured_cycles(measured: Path) -> None:
    report = tw.calibrate(hardware(), measured, parameters=PARAMETERS, test=measured, folds=4)
    assert report.errors["as given"].mean > 1.5
    assert report.errors["fitted"].mean == pytest.approx(report.errors["test fitted"].mean)
    assert report.errors["fitted"].mean < 1.02 and report.errors["unseen"].mean < 1.2
    assert report.after["Buffer.timing.prefetch"] == "next" and report.before["Buffer.timing.prefetch"] == "any"
    assert report.architecture.values()["DRAM.timing.latency_cycles"] == report.after["DRAM.timing.latency_cycles"]
    again = tw.load(report.save(measured.parent / "fitted.arch.yaml"), "architecture")
    assert again == report.architecture
    assert "factor between predicted and measured cycles" in str(report)


def test_the_command_writes_an_architecture(measured: Path, tilewright: Command) -> None:
    arch, fitted = measured.parent / "one.arch.yaml", measured.parent / "fitted.arch.yaml"
    arch.write_text(hardware().replace(TRUE | {"DRAM.timing.latency_cycles": 10}).to_yaml())
    words = ("calibrate", arch, "--measured", measured, "--folds", 2)
    done = tilewright(*words, "-o", fitted)
    assert done.code == 0 and "unseen" in done.out and "Spearman" in done.out and f"written to {fitted}" in done.err
    data = tilewright(*words, "--json").data
    latency = data["after"]["DRAM.timing.latency_cycles"]
    assert tw.load(fitted, "architecture").memories[0].timing.latency_cycles == latency > 30
    assert [each["measurements"] for each in data["errors"]] == ["as given", "fitted", "unseen"]
    missing = tilewright("calibrate", arch, "--measured", measured.parent / "cycle.csv")
    assert missing.code == 2 and "there is no file" in missing.err and "did you mean" in missing.err


def test_a_weight_counts_like_as_many_rows(measured: Path) -> None:
    """Measurements that no parameters explain: the fit prefers the heavier ones."""
    header, *rows = measured.read_text().splitlines()
    rows = [row.rsplit(",", 2)[0] + f",{1000 * (9 ** (at % 2))}" for at, row in enumerate(rows)]
    heavy, twice = measured.parent / "heavy.csv", measured.parent / "twice.csv"
    heavy.write_text(
        "\n".join(["mapping,problem,cycles,weight", *(f"{row},{3 - 2 * (at % 2)}" for at, row in enumerate(rows))])
    )
    twice.write_text("\n".join([header, *rows[::2], *rows[::2], *rows]))
    single = measured.parent / "plain.csv"
    single.write_text("\n".join([header, *rows]))
    weighted, other, plain = (
        tw.calibrate(hardware(), file, parameters=PARAMETERS, folds=2) for file in (heavy, twice, single)
    )
    assert weighted.after == other.after != plain.after
    assert weighted.errors["fitted"].mean == pytest.approx(other.errors["fitted"].mean)
    assert weighted.errors["fitted"].rows == 8 and [row.weight for row in weighted.predictions] == [3, 1] * 4


def test_the_rows_that_fit_worst_have_a_reason_and_all_are_drawn(tilewright: Command, measured: Path) -> None:
    """One row was measured at ten times its cycles; the chart shows all rows, before and after, and those of the test."""
    lines = measured.read_text().splitlines()
    cycles = float(lines[4].split(",")[2])
    lines[4] = lines[4].replace(str(int(cycles)), str(int(10 * cycles)))
    measured.write_text("\n".join(lines))
    arch, chart = measured.parent / "given.arch.yaml", measured.parent / "chart.svg"
    arch.write_text(hardware().replace(TRUE).to_yaml(), encoding="utf-8")
    words = ("calibrate", arch, "--measured", measured, "--test", measured, "--folds", 2, "--parameters", PARAMETERS)
    data = tilewright(*words, "--worst", 1, "--plot", chart, "--json").data
    rows = data["predictions"]
    assert len(rows) == 16 and [row["test"] for row in rows] == [False] * 8 + [True] * 8
    (reason,) = {row["reason"] for row in rows} - {None}
    assert rows[3]["reason"] == reason and reason.startswith("too few: schedule with its waits (")
    assert all(row["given"] == pytest.approx(row["measured"]) for at, row in enumerate(rows[:8]) if at != 3)
    drawn = chart.read_text()
    assert all(f"cycles, {name}" in drawn for name in ("as given", "fitted", "unseen", "test fitted"))
    shown = tilewright(*words, "--worst", 2).out
    assert "rows that fit worst" in shown and "cycles.csv, line 5" in shown


def test_declared_values_are_the_default_parameters(measured: Path) -> None:
    report = tw.calibrate(hardware().replace({"DRAM.timing.latency_cycles": 10}), measured, folds=2)
    assert list(report.before) == ["DRAM.read_bandwidth_words_per_cycle", "DRAM.timing.latency_cycles"]
    with pytest.raises(InputError, match="declares no bandwidth and no timing that could be fitted"):
        tw.calibrate(hardware().replace({"DRAM.read_bandwidth_words_per_cycle": None}), measured)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mapping,problem", "mappings,problem"), "line 1: there is no column 'mapping'; did you mean 'mappings'"),
        (("1_1.yaml,copy.yaml,", "1_1.yaml,copy.yaml,x"), r"line 2: cycles is 'x\d+'; expected a positive number"),
        (("1_1.yaml,copy.yaml,", "1_1.yaml,copy.yaml,-"), "line 2: cycles is '-"),
        (("1_1.yaml", "1_3.yaml"), "line 2: .*1_3.yaml"),
        (("1_1.yaml", ""), "line 2: no mapping is named"),
        (("1_1.yaml,copy.yaml", "1_1.yaml,copi.yaml"), "line 2: .*copi.yaml"),
        (("1_1.yaml,copy.yaml", "1_1.yaml,"), "line 2: .* contains only a mapping"),
        (("1_1.yaml", "copy.yaml"), "line 2: "),
        (("1_1.yaml,copy.yaml", 'x"y"z,"copy.yaml'), "line 1?[0-9]: "),
    ],
)
def test_damaged_files_are_refused_by_line(measured: Path, change: tuple[str, str], message: str) -> None:
    damaged = measured.parent / "damaged.csv"
    damaged.write_text(measured.read_text().replace(*change, 1))
    with pytest.raises(InputError, match=message):
        tw.calibrate(hardware(), damaged)


def test_a_weight_is_positive(measured: Path) -> None:
    measured.write_text(measured.read_text().replace("note", "weight").replace("\n1_8.yaml", "0\n1_8.yaml"))
    with pytest.raises(InputError, match="line 6: weight is '0'; expected a positive number"):
        tw.calibrate(hardware(), measured)


def test_a_mapping_that_the_model_rejects_is_named(measured: Path) -> None:
    small = hardware().replace({"Buffer.capacity_words": 20})
    with pytest.raises(InputError, match=r"line 4: cost model pipelined rejects the mapping: .*Buffer"):
        tw.calibrate(small, measured)


def test_wrong_arguments_are_refused(measured: Path) -> None:
    with pytest.raises(InputError, match="'Buffer.name' is no parameter that can be fitted"):
        tw.calibrate(hardware(), measured, parameters="Buffer.name")
    with pytest.raises(InputError, match="9 folds need at least 9"):
        tw.calibrate(hardware(), measured, folds=9)
    with pytest.raises(InputError, match="folds must be a number of at least 2"):
        tw.calibrate(hardware(), measured, folds=1)
    with pytest.raises(InputError, match="there is no file"):
        tw.calibrate(hardware(), measured.parent / "none.csv")


def test_the_errors_are_those_of_their_definitions() -> None:
    errors = Errors.of(np.log([2.0, 0.25, 1.0, 1.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    assert errors.mean == pytest.approx(8**0.25) and errors.median == pytest.approx(1.5) and errors.worst == 4
    assert errors.spearman == pytest.approx(0.3162, abs=1e-4)  # predictions 2, 0.75, 2, 4
    assert Errors.of(np.zeros(2), np.array([3.0, 3.0])).spearman is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("M.timing.prefetch", "next", ["any", "none"]),
        ("M.timing.latency_cycles", 0, [1, 8, 64]),
        ("M.timing.latency_cycles", 10, [0, 5, 20]),
        ("M.timing.burst_words", 2, [1, 4]),
        ("M.timing.step_cycles", 100, [0, 50, 200]),
        ("M.timing.requests.cycles", 1, [2, 9, 65]),
        ("M.read_bandwidth_words_per_cycle", 3.0, [1.5, 6.0]),
    ],
)
def test_values_are_tried_on_both_sides(name: str, value: Any, expected: list[Any]) -> None:
    assert neighbours(name, value, 2.0) == expected
