"""Reported energy, cycles and capacities add up for every cost model."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support import fake_timeloop
from support.maestro_mappings import cases as directive_cases
from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.reports import LevelReport, Limit, NetworkReport, Report, TensorCounts, overlapping
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.tables import as_text
from tilewright.testing.strategies import architectures, mappings, problems

Case = tuple[Problem, Architecture, Mapping]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Problems small enough to be executed, on memories with bandwidths and networks with energies."""
    problem, architecture = draw(problems(max_macs=200)), draw(architectures(roomy=draw(st.booleans()), widths=True))
    energies = {"energy_per_hop_pj": draw(st.sampled_from([0.0, 0.5])), "energy_per_ingress_pj": 0.25}
    changes = {
        f"{c.name}.fanout.network.{name}": value for c in architecture.clusters for name, value in energies.items()
    }
    architecture = architecture.replace(changes | {"clock_ghz": 0.5})
    return problem, architecture, draw(mappings(problem, architecture))


def adds_up(report: Report, architecture: Architecture) -> None:
    """Energies by level and tensor, cycles by what binds them, words by memory."""
    levels = [level.energy_pj for level in report.levels]
    tensors = [sum(c.energy_pj for c in each.tensors.values()) for each in report.levels]
    assert levels == pytest.approx([pj + each.leakage_pj for pj, each in zip(tensors, report.levels, strict=True)])
    networks = sum(network.energy_pj for network in report.networks)
    assert sum(levels) + networks + (report.compute_energy_pj or 0.0) == pytest.approx(report.energy_pj)

    parts, rows = list(report.energy_parts()), report.rows()
    assert sum(part.energy_pj for part in parts) == pytest.approx(report.energy_pj)
    assert sum(row["share"] for row in rows) == pytest.approx(1) or not report.energy_pj
    assert sum(row["pj_per_mac"] for row in rows) == pytest.approx(report.pj_per_mac)
    for level in report.levels:
        assert sum(part.energy_pj for part in parts if part.place == level.name) == pytest.approx(level.energy_pj)
    for table in [*report.tables(), *report.explained().tables()]:
        assert isinstance(table, str) or all(len(line) <= 80 for line in table.lines(80))

    assert report.contradiction() is None and report.cycles
    assert sum(limit.binding_cycles for limit in report.limits) == report.cycles
    assert all(0 <= limit.binding_cycles <= limit.cycles <= report.cycles for limit in report.limits)
    assert report.busy_units is not None and report.compute_units == architecture.compute_instances
    assert 0 < report.busy_units <= report.compute_units * (1 + 1e-9)

    assert (report.architecture, report.clock_ghz) == (architecture.name, architecture.clock_ghz)
    assert all(each.capacity_words is None or each.used_words is not None for each in report.levels)
    assert all(each.capacity_words is None or (each.used_words or 0) <= each.capacity_words for each in report.levels)


def test_a_reader_sees_where_the_energy_goes_and_what_limits_the_speed() -> None:
    """By hand: 48 words in at 2 per cycle take 24 cycles, 12 operations on 2 of 4 units take 6."""
    limits = [
        Limit(name="DRAM", action="read", cycles=24, words=48, words_per_cycle=2),
        Limit(name="compute", action="compute", cycles=6),
    ]
    counts: dict[str, Any] = {"reads": 24, "fills": 0, "updates": 0, "instances": 1, "tile_words": 24}
    tensors = {name: TensorCounts(**counts, energy_pj=pj) for name, pj in (("A", 60.0), ("B", 20.0))}
    level = LevelReport(name="DRAM", instances=1, cycles=24, energy_pj=80.0, tensors=FrozenDict(tensors))
    network = NetworkReport(name="Chip", tensor="A", ingresses=24, energy_pj=8.0)
    report = Report(
        model="m", problem="p", architecture="a", valid=True, macs=12, cycles=24, energy_pj=100.0, edp=2400.0,
        utilization=0.125, compute_energy_pj=12.0, levels=(level,), networks=(network,), limits=overlapping(limits),
        busy_units=2, compute_units=4, clock_ghz=0.5,
    )  # fmt: skip

    assert as_text(report.tables(), 80) == FORM
    assert report.seconds == pytest.approx(48e-9) and report.giga_macs_per_second == pytest.approx(0.25)


def test_what_a_model_leaves_out_is_not_told() -> None:
    little = Report(model="m", problem="p", valid=True, macs=12, cycles=24, energy_pj=100.0, edp=2400.0)
    text = as_text(little.explained().tables(), 80)
    assert "cycles  24\n" in text and "unnamed parts  100.0" in text and "limit" not in text and "reads" not in text
    assert "energy  -, - pJ per MAC" in str(Report(model="m", problem="p", valid=True, macs=12))


def test_parts_without_energy_add_up_to_all_of_it() -> None:
    nothing = Report(
        model="m", problem="p", valid=True, macs=12, cycles=24, energy_pj=0.0, edp=0.0, compute_energy_pj=0.0
    )
    compute, total = (line.split() for line in as_text(nothing.explained().tables(), 80).splitlines()[-2:])
    assert compute == ["compute", "0", "0.00", "0.0000"] and total == ["total", "0", "100.00", "0.0000"]


FORM = """\
p on a by m: 12 MACs
  energy  100 pJ, 8.333 pJ per MAC, 80.0 % of it in DRAM
  cycles  24, limited by DRAM reads, utilization 12.5 %
  time    48.00 ns at 0.5 GHz, 0.25 GMAC/s (0.5 GOPS), 240 GOPS/W
  EDP     2.400 nJ x cycles

limit       cycles  of the run  because
                             %
DRAM reads      24       100.0  48 words at 2 per cycle
compute          6        25.0  2 of 4 units work

energy          A     B    all  energy  filled
                %     %      %  pJ/MAC       %
DRAM         60.0  20.0   80.0   6.667
NoC of Chip   8.0          8.0   0.667
compute                   12.0   1.000
total        68.0  20.0  100.0   8.333"""


@pytest.mark.parametrize("model", ["timeloop", "oracle"])
@given(case=cases())
def test_where_everything_overlaps_one_limit_binds_all_cycles(case: Case, model: str) -> None:
    report = evaluate(build_model(model), *case)
    assume(report.valid)

    adds_up(report, case[1])
    assert max(limit.cycles for limit in report.limits) == report.cycles
    assert [limit.binding_cycles for limit in report.limits if limit.binding_cycles] == [report.cycles]
    for limit in report.limits:
        if limit.words is not None and limit.words_per_cycle is not None:
            assert limit.cycles == pytest.approx(limit.words / limit.words_per_cycle, abs=1)
    for level in report.levels:
        mine = [limit.cycles for limit in report.limits if limit.name in ("compute", level.name)]
        assert level.cycles == max(mine)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(case=directive_cases(most=1))
def test_where_steps_follow_each_other_the_limits_share_the_cycles(
    case: tuple[Problem, Architecture, list[Mapping]],
) -> None:
    problem, architecture, (mapping,) = case
    report = evaluate(build_model("maestro"), problem, architecture, mapping)
    assume(report.valid)

    adds_up(report, architecture)
    assert {limit.action for limit in report.limits} == {"compute", "send", "collect", "read", "write"}


def test_a_program_s_own_cycles_are_limits() -> None:
    from support.recorded.timeloop import cases as recorded

    case = recorded()[0]
    model = build_model("timeloop_binary", {"path": fake_timeloop.program("good")})
    report = evaluate(model, case.problem, case.architecture, case.mapping)

    assert report.valid and report.contradiction() is None
    assert report.limits[0] == Limit(
        name="compute", action="compute", cycles=report.cycles or 0, binding_cycles=report.cycles or 0
    )


def wrong() -> Iterator[tuple[Limit, ...]]:
    good = Limit(name="compute", action="compute", cycles=10, binding_cycles=10)
    yield (good.model_copy(update={"binding_cycles": 9}),)
    yield (good.model_copy(update={"cycles": 11}),)
    yield (good, good)
    yield (good.model_copy(update={"cycles": 9}),)


@pytest.mark.parametrize("limits", list(wrong()))
def test_limits_that_do_not_explain_the_cycles_are_refused(limits: tuple[Limit, ...]) -> None:
    with pytest.raises(ValueError, match="bind"):
        Report(model="m", problem="p", valid=True, macs=1, cycles=10, limits=limits)


def test_the_first_of_equal_limits_binds() -> None:
    first, second = overlapping(Limit(name=name, action="read", cycles=7) for name in "ab")

    assert (first.binding_cycles, second.binding_cycles) == (7, 0)
