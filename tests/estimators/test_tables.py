"""The tables: as CACTI where it was run, near it between, silent elsewhere; figures of Aladdin, DRAM and nodes."""

import csv
import statistics
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import ROOT
from tilewright.plugin import Attribute, Estimate, Reason
from tilewright_estimators.grid import FIGURES, Sram, cacti_grid
from tilewright_estimators.tables import TablesEstimator

BETWEEN = ROOT / "tests" / "data" / "estimators" / "cacti_between.csv"


def asked(component: str, action: str, node: float, **sizes: Attribute) -> Estimate | Reason:
    return TablesEstimator().estimate(component, sizes, action, node)


def told(component: str, action: str, node: float, **sizes: Attribute) -> Estimate:
    answer = asked(component, action, node, **sizes)
    assert isinstance(answer, Estimate), answer
    return answer


@cache
def errors() -> dict[str, list[float]]:
    """Figure -> relative errors in %, ascending, against runs between the points."""
    found: dict[str, list[float]] = {name: [] for name in FIGURES}
    with open(BETWEEN, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sram = Sram(float(row["technology_nm"]), float(row["bytes"]), float(row["width_bits"]), int(row["banks"]))
            figures = cacti_grid().at(sram)
            for name in FIGURES:
                found[name].append(100 * abs(getattr(figures, name) / float(row[name]) - 1))
    return {name: sorted(each) for name, each in found.items()}


@pytest.mark.parametrize(
    ("figure", "median", "nine_of_ten", "worst"),
    [
        ("read_pj", 2.9, 11.9, 28.1),
        ("write_pj", 2.3, 7.7, 20.5),
        ("area_um2", 2.6, 8.3, 27.6),
        ("leak_mw", 3.4, 16.2, 41.0),
    ],
)
def test_errors_between_the_points_are_those_that_are_stated(
    figure: str, median: float, nine_of_ten: float, worst: float
) -> None:
    found = errors()[figure]

    assert len(found) == 160
    assert statistics.median(found) <= median and found[144] <= nine_of_ten and found[-1] <= worst


def test_points_are_met() -> None:
    points = cacti_grid().points

    assert len(points) == 1570
    for (node, size, width, banks), figures in points.items():
        found = cacti_grid().at(Sram(node, size, width, banks))
        assert [getattr(found, name) for name in FIGURES] == pytest.approx(figures)


@given(
    st.floats(22, 90),
    st.integers(512, 2**22),
    st.integers(4, 64),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.integers(1, 8),
)
def test_every_size_in_the_range_is_answered_within_its_neighbours(
    node: float, size: int, width_bytes: int, banks: int, ports: int
) -> None:
    width = 8 * width_bytes
    answer = asked("sram", "read", node, size_bits=8 * size, width_bits=width, banks=banks, ports=ports)

    assert isinstance(answer, Estimate) == (size >= 64 * banks * width_bytes and ports == 1)
    if isinstance(answer, Estimate):
        assert 0.1 < answer.energy_pj < 5000 and answer.bits == width


@pytest.mark.parametrize(
    ("sizes", "node", "said"),
    [
        ({"size_bits": 2048, "width_bits": 32}, 45, "a size of 256 bytes; expected 512"),
        ({"size_bits": 2**26, "width_bits": 64}, 45, "a size of 8.38861e+06 bytes"),
        ({"size_bits": 2**20, "width_bits": 1024}, 45, "a width of 1,024 bits; expected 32"),
        ({"size_bits": 2**20, "width_bits": 8}, 45, "block_words: 4 makes accesses wide enough"),
        ({"size_bits": 2**20, "width_bits": 64}, 16, "a technology node of 16 nm"),
        ({"size_bits": 2**20, "width_bits": 64, "banks": 3}, 45, "3 banks"),
        ({"size_bits": 2**15, "width_bits": 512, "banks": 4}, 45, "expected at least 16,384 for that width"),
        ({"size_bits": 2**20, "width_bits": 64, "ports": 2}, 45, "2 ports"),
        ({"size_bits": 2**20}, 45, "needs width_bits"),
        ({"size_bits": 2**20, "width_bit": 64}, 45, "did you mean 'width_bits'"),
    ],
)
def test_what_is_outside_is_refused(sizes: dict[str, float], node: float, said: str) -> None:
    answer = asked("sram", "read", node, **sizes)

    assert isinstance(answer, Reason)
    assert said in answer.message


def test_aladdin_at_40_nm() -> None:
    assert told("adder", "compute", 40, width_bits=32).energy_pj == pytest.approx(0.21)
    assert told("multiplier", "compute", 45, width_bits=32).area_um2 == pytest.approx(
        6350 * (0.61538 + 0.38462 * 2.2), 1e-4
    )
    assert told("mac", "compute", 40, multiplier_bits=32, adder_bits=32).energy_pj == pytest.approx(12.68 + 0.21)
    assert told("register", "read", 40, size_bits=256, width_bits=16).energy_pj == pytest.approx(16 * 0.009)


@pytest.mark.parametrize(
    ("node", "component", "sizes", "energy", "area"),
    [
        (45, "register", {"size_bits": 16, "width_bits": 16}, 0.166, 140),
        (7, "register", {"size_bits": 16, "width_bits": 16}, 0.016, 8.3),
        (45, "mac", {"multiplier_bits": 8, "adder_bits": 16}, 1.033, 783),
        (7, "mac", {"multiplier_bits": 8, "adder_bits": 16}, 0.0974, 46),
        (65, "mac", {"multiplier_bits": 8, "adder_bits": 16}, 1.28138, 1174.80),
        (16, "mac", {"multiplier_bits": 8, "adder_bits": 16}, 0.179244, 147.160),
        (45, "adder", {"width_bits": 32}, 0.242, None),
    ],
)
def test_other_nodes_are_as_hwcomponents_has_them(
    node: float, component: str, sizes: dict[str, float], energy: float, area: float | None
) -> None:
    answer = told(component, "read" if component == "register" else "compute", node, **sizes)

    digits = 5e-6 if node in (65, 16) else 3e-2 if node == 7 else 5e-3
    assert answer.energy_pj == pytest.approx(energy, rel=digits)
    assert area is None or answer.area_um2 == pytest.approx(area, rel=digits)


def test_dram_by_its_kind() -> None:
    assert told("dram", "read", 45, kind="LPDDR4", width_bits=64).energy_pj == 512
    assert isinstance(asked("dram", "read", 45, kind="DDR9", width_bits=64), Reason)


@given(st.sampled_from([("adder", 1), ("multiplier", 2), ("comparator", 1)]), st.integers(1, 64))
def test_units_grow_with_their_width(unit: tuple[str, int], width: int) -> None:
    component, power = unit
    one, two = (told(component, "compute", 22, width_bits=each) for each in (width, 2 * width))

    assert two.energy_pj == pytest.approx(2**power * one.energy_pj)
    assert one.area_um2 is not None and two.area_um2 == pytest.approx(2**power * one.area_um2)
