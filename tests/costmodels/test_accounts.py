"""What reports say of energy, cycles and room adds up, whichever cost model made them."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support import fake_timeloop
from support.maestro_mappings import cases as directive_cases
from tilewright.run.evaluation import build_model, evaluate
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Limit, Report, overlapping
from tilewright.testing.strategies import architectures, mappings, problems

Case = tuple[Problem, Architecture, Mapping]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Problems small enough to be executed, on memories with bandwidths and networks with energies."""
    problem, architecture = draw(problems(max_macs=200)), draw(architectures(roomy=draw(st.booleans())))
    energies = {"energy_per_hop_pj": draw(st.sampled_from([0.0, 0.5])), "energy_per_ingress_pj": 0.25}
    changes = {
        f"{c.name}.fanout.network.{name}": value for c in architecture.clusters for name, value in energies.items()
    }
    architecture = architecture.replace(changes | {"clock_ghz": 0.5})
    return problem, architecture, draw(mappings(problem, architecture))


def adds_up(report: Report, architecture: Architecture) -> None:
    """Energies by level and tensor, cycles by what binds them, words by memory."""
    levels = [level.energy_pj for level in report.levels]
    assert levels == pytest.approx([sum(c.energy_pj for c in each.tensors.values()) for each in report.levels])
    networks = sum(network.energy_pj for network in report.networks)
    assert sum(levels) + networks + (report.compute_energy_pj or 0.0) == pytest.approx(report.energy_pj)

    assert report.contradiction() is None and report.cycles
    assert sum(limit.binding_cycles for limit in report.limits) == report.cycles
    assert all(0 <= limit.binding_cycles <= limit.cycles <= report.cycles for limit in report.limits)
    assert report.busy_units is not None and report.compute_units == architecture.compute_instances
    assert 0 < report.busy_units <= report.compute_units * (1 + 1e-9)

    assert (report.architecture, report.clock_ghz) == (architecture.name, architecture.clock_ghz)
    assert all(each.capacity_words is None or each.used_words is not None for each in report.levels)
    assert all(each.capacity_words is None or (each.used_words or 0) <= each.capacity_words for each in report.levels)


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
