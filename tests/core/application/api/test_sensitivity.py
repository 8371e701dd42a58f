"""What larger bandwidths and capacities would change, and what is proved of it; strides and energies of layers as data."""

import csv
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import command
from tilewright.application.algorithms.totals import Cost
from tilewright.application.api.sensitivity import Effect, lines
from tilewright.errors import InputError
from tilewright.schema.objective import CYCLES, EDP

MEMORY_BOUND = "nk,km->nm; n=1 k=256 m=64"
COMPUTE_BOUND = "nk,km->nm; n=64 k=64 m=64"
NAMED = {"a": MEMORY_BOUND, "b": COMPUTE_BOUND}


def machine(dram: str = "8 B/cycle") -> tw.Architecture:
    return tw.new_architecture("m", array="4x4", buffer="8 KiB", dram=dram)


def test_bandwidth_helps_where_it_binds_and_the_optima_are_proved() -> None:
    report = tw.map(MEMORY_BOUND, machine(), objective="cycles", sensitivity=25, progress=False)
    effects = {(effect.part, effect.what): effect for effect in report.sensitivity}
    faster = tw.map(MEMORY_BOUND, machine("10 B/cycle"), objective="cycles", progress=False)

    assert list(effects) == [("DRAM", "bandwidth"), ("Buffer", "capacity"), ("Registers", "capacity")]
    dram = effects["DRAM", "bandwidth"]
    assert dram.proved and dram.searched and dram.cycles == faster.cycles and dram.before.cycles == report.cycles
    assert dram.told == "20 % fewer cycles (proved)" and dram.objective_change == pytest.approx(-0.2, abs=1e-3)
    assert effects["Buffer", "capacity"].told == "no effect on cycles (proved)"
    assert "no estimator supports" in (effects["Registers", "capacity"].reason or "")  # 64 is the largest
    assert "  25 % more DRAM bandwidth: 20 % fewer cycles (proved)" in str(report).splitlines()


@pytest.mark.exhaustive
def test_a_product_over_several_layers_is_not_proved() -> None:
    problems = [tw.load(text, "problem").replace({"name": name}) for name, text in NAMED.items()]
    layers = {"kind": "workload", "name": "w", "layers": [{"problem": problem.to_data()} for problem in problems]}
    edp, energy = (
        tw.map(layers, machine(), objective=name, sensitivity=20, progress=False) for name in ("edp", "energy")
    )

    assert all(layer.result is not None and layer.result.proved == "yes" for layer in edp.layers)
    assert not any(effect.proved for effect in edp.sensitivity)
    known = [effect for effect in energy.sensitivity if effect.after is not None]
    assert known and all(effect.proved for effect in known)


def test_a_mapper_that_does_not_end_gives_the_same_mappings() -> None:
    report = tw.map(COMPUTE_BOUND, machine(), mapper="random", evaluations=60, sensitivity=20, progress=False)

    assert not any(effect.searched or effect.proved for effect in report.sensitivity)
    assert "sensitivity, with the same mappings:" in str(report)
    larger = next(effect for effect in report.sensitivity if (effect.part, effect.what) == ("Buffer", "capacity"))
    assert larger.cycles == report.cycles and larger.energy_pj != report.energy_pj  # energies of the new size


def test_effects_without_a_change_share_a_line() -> None:
    base: dict[str, Any] = {"percent": 20, "objective": EDP, "before": Cost(100.0, 10), "searched": True}
    told = [
        Effect("A", "capacity", after=Cost(100.0, 10), proved=True, **base),
        Effect("B", "capacity", after=Cost(103.0, 10), **base),
        Effect("B", "bandwidth", after=Cost(100.0, 8), proved=True, **base),
        Effect("C", "bandwidth", after=Cost(100.0, 10), proved=True, **base),
        Effect("D", "capacity", reason="too large", **base),
    ]

    assert lines(told) == [
        "sensitivity, mappings searched again:",
        "  20 % more B bandwidth: 20 % lower EDP (proved), 20 % fewer cycles",
        "  20 % more B capacity: 3 % higher EDP, 3 % more energy",
        "  20 % more D capacity: unknown: too large",
        "  20 % more A capacity, or C bandwidth: no effect on EDP (proved)",
    ]
    assert lines([]) == []
    assert Effect("B", "bandwidth", after=Cost(1.0, 5), **(base | {"objective": CYCLES})).told == "50 % fewer cycles"


@pytest.mark.parametrize("more", [0, -1, 2000, "much", True])
def test_a_percentage_out_of_range_is_refused(more: Any) -> None:
    with pytest.raises(InputError, match="sensitivity"):
        tw.map(MEMORY_BOUND, "eyeriss", sensitivity=more, progress=False)


def test_it_is_in_the_files_and_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.yaml").write_text(machine().to_yaml(), encoding="utf-8")
    run = command(monkeypatch, capsys)
    ran = run("map", MEMORY_BOUND, "--arch", tmp_path / "m.yaml", "--sensitivity", 20, "--json", "-o", tmp_path / "run")
    (first, *_) = ran.data["sensitivity"]

    assert first["told"].endswith("fewer cycles") and first["proved"] and first["what"] == "bandwidth"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "What more of one bandwidth or capacity would change." in page and first["told"] in page
    other = run("map", MEMORY_BOUND, "--arch", tmp_path / "m.yaml", "--sensitivity", 20, "--algorithms", "native")
    assert other.code == 2 and "sensitivity is for layers" in other.err


def test_rows_say_what_limits_a_layer_and_where_its_energy_goes(tmp_path: Path) -> None:
    strided = "O[k,p,q] += I[c,2p+2r,2q+s] * W[k,c,r,s]; k=8 c=4 p=8 q=8 r=3 s=3"
    report = tw.map(strided, machine(), mapper="quickflow", evaluations=60, progress=False)
    (row,), (layer,) = report.rows(), report.layers
    report.save(tmp_path / "run")
    with (tmp_path / "run" / "summary.csv").open(encoding="utf-8", newline="") as file:
        (written,) = csv.DictReader(file)

    assert layer.report is not None and row["limited_by"] == layer.report.limited_by == written["limited_by"]
    places = {name: row[f"{name}_pj"] for name in ("DRAM", "Buffer", "Registers", "compute")}
    assert sum(places.values()) == pytest.approx(layer.energy_pj) and written["DRAM_pj"] == str(places["DRAM"])
    assert (row["stride"], row["dilation"]) == ("2", "2x1") and ", stride 2, dilation 2x1, " in str(report)


@pytest.mark.parametrize(
    ("formula", "stride", "dilation"),
    [
        ("O[k,p] += I[c,p+r] * W[k,c,r]; k=2 c=2 p=4 r=3", None, None),
        ("O[k,p] += I[c,2p+r] * W[k,c,r]; k=2 c=2 p=4 r=3", "2", None),
        ("O[k,p] += I[c,2p] * W[k,c]; k=2 c=2 p=4", "2", None),
        ("O[k,p] += I[c,p+3r] * W[k,c,r]; k=2 c=2 p=4 r=3", None, "3"),
        ("O[k,p,q] += I[c,2p+r,q+s] * W[k,c,r,s]; k=2 c=2 p=4 q=4 r=3 s=3", "2x1", None),
        ("nk,km->nm; n=2 k=2 m=2", None, None),
    ],
)
def test_strides_are_those_of_windows(formula: str, stride: str | None, dilation: str | None) -> None:
    problem = tw.load(formula, "problem")

    assert (problem.stride, problem.dilation) == (stride, dilation)
