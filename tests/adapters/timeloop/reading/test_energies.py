"""Energy tables: which row of an action counts, and which action."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.reports import LevelReport, Report
from tilewright.schema.document import parse_document
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.reading.clusters import ESTIMATED, dearest_energies
from tilewright_adapters.timeloop.reading.energies import READ, UPDATE, WRITE, Energies, pick, read_energies


def table(text: str) -> Energies:
    return read_energies(Cursor(parse_document(text, source="ERT.yaml")))


LISTED = """
version: 0.4
tables:
- name: system.GLB
  actions:
  - {name: read, arguments: {data_delta: 1}, energy: 1.5}
  - {name: read, arguments: {data_delta: 0}, energy: 4.0}
  - {name: read, arguments: {data_delta: 2}, energy: 0.25}
  - {name: write, energy: 3.0}
  - {name: write, energy: 2.0}
"""
BY_NAME = """
version: 0.2
tables:
  system.GLB:
    read: [{energy: 1.5}, {energy: 4.0}, {energy: 0.25}]
    write: [{energy: 3.0}, {energy: 2.0}]
"""


@pytest.mark.parametrize("text", [LISTED, BY_NAME])
def test_the_dearest_row_of_an_action_counts_wherever_it_stands(text: str) -> None:
    assert table(text) == {"GLB": {"read": 4.0, "write": 3.0}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"read": 1.0, "write": 2.0}, (1.0, 2.0, 2.0)),
        ({"read": 1.0, "write": 2.0, "update": 3.0}, (1.0, 2.0, 3.0)),
        ({"read": 1.0, "write": 2.0, "update": 3.0, "random_write": 4.0}, (1.0, 4.0, 4.0)),
        ({"random_read": 5.0, "read": 1.0, "fill": 6.0, "write": 2.0}, (5.0, 6.0, 2.0)),
        ({"random_update": 7.0, "random_fill": 8.0, "write": 2.0}, (None, 8.0, 7.0)),
        ({"access": 1.0}, (None, None, None)),
    ],
)
def test_the_first_name_of_an_action_counts(
    given: dict[str, float], expected: tuple[float | None, float | None, float | None]
) -> None:
    assert tuple(pick(given, names) for names in (READ, WRITE, UPDATE)) == expected


MATRIX = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 64, block-size: 4, word-bits: 16}}
    subtree:
    - name: PE
      local:
      - {name: weight_reg, class: reg_storage, attributes: {depth: 64, width: 16}}
      - {name: mac, class: intmac, attributes: {datawidth: 16}}
problem:
  shape:
    name: mv
    dimensions: [M, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]]]}
    - {name: Z, projection: [[[M]]], read-write: True}
  instance: {M: 4, K: 8}
mapping:
- {target: DRAM, type: temporal, factors: M=4 K=1, permutation: KM}
- {target: weight_reg, type: temporal, factors: M=1 K=8, permutation: KM}
ERT:
  version: 0.3
  tables:
  - name: system.DRAM
    actions: [{name: read, energy: 100}, {name: write, energy: 100}]
  - name: system.PE.weight_reg
    actions: [{name: access, energy: 0.009}, {name: idle, energy: 0.001}]
  - name: system.PE.mac
    actions: [{name: compute, energy: 1}]
"""


def registers(report: Report) -> LevelReport:
    return next(level for level in report.levels if level.name == "weight_reg")


def printed(report: Report) -> str:
    """Return dense statistics in the form of 2020."""
    lines = [
        "Level 0",
        "=== mac ===",
        "    STATS",
        "    -----",
        f"    Energy (total) : {report.compute_energy_pj:.2f} pJ",
    ]
    for number, level in enumerate(reversed(report.levels), 1):
        lines += [f"Level {number}", f"=== {level.name} ===", "    STATS", "    -----", f"    Cycles : {level.cycles}"]
        for name, counts in level.tensors.items():
            lines += [f"    {name}:", f"        Utilized capacity : {counts.tile_words}"]
            lines += [f"        Utilized instances (max) : {counts.instances}"]
            for kind in ("reads", "fills", "updates"):
                lines.append(f"        Scalar {kind} (per-instance) : {getattr(counts, kind)}")
            lines.append(f"        Energy (total) : {counts.energy_pj:.2f} pJ")
    lines += ["Summary Stats", f"Utilization: {report.utilization:.2f}", f"Cycles: {report.cycles}"]
    return "\n".join([*lines, f"Energy: {(report.energy_pj or 0) / 1e6:.8f} uJ", ""])


def test_a_table_with_access_alone_costs_its_dearest_action_as_before_june_2021(tmp_path: Path) -> None:
    path, old = tmp_path / "all.yaml", tmp_path / "old.stats.txt"
    path.write_text(MATRIX)
    given = tw.evaluate([path], notation="timeloop", reading={"one_energy": True})
    (ours,) = given.reports
    assert registers(ours).energy_pj == pytest.approx(164 * 0.009)
    assert not any("lacks" in text for text in given.warnings)
    now = tw.evaluate([path], notation="timeloop")
    assert registers(now.reports[0]).energy_pj == pytest.approx(160.9, abs=0.1)
    assert any("lacks 'read' or 'write' of weight_reg" in text and "--one-energy" in text for text in now.warnings)

    old.write_text(printed(ours))
    found = tw.diff_stats(old, [path], notation="timeloop")
    wrong = [figure for figure in found.figures if not figure.equal]
    assert {figure.level for figure in wrong} == {"weight_reg", "total"}
    assert {cause.code for figure in wrong for cause in figure.causes} == {"no_action"} and not found.unexplained
    same = tw.diff_stats(old, [path], notation="timeloop", reading={"one_energy": True})
    assert all(figure.equal for figure in same.figures)
    old.write_text(printed(ours).replace("Energy (total) : 0.58 pJ", "Energy (total) : 0.68 pJ"))
    assert tw.diff_stats(old, [path], notation="timeloop").unexplained


def test_the_dearest_action_is_read_back_from_the_warning() -> None:
    found = dearest_energies([f"the energy table lacks: {ESTIMATED} a 0.009 pJ, b_2 1e-05 pJ.", "other a 3 pJ."])
    assert found == {"a": 0.009, "b_2": 1e-05}
