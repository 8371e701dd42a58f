"""Fused groups on arrays: the optimum is that of brute force, and its costs are those of the cost models."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.clocks import Clock
from support.fused_arrays import Pair, least
from support.group_searches import search_group
from support.profiles import first, scaled
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective
from tilewright_mappers.fused import group as fused_group
from tilewright_mappers.fused import limits as fused_limits
from tilewright_mappers.fused.arrays import ArrayLayer
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.parts import FAR, HOME

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop", {"link_transfers": False})


def check(seed: int) -> None:
    pair = Pair(seed)
    brute = least(pair)
    if brute is None:
        with pytest.raises(NotConformableError):
            search_group(pair.group(), pair.objective)
        return
    result = search_group(pair.group(), pair.objective)
    for model in (ORACLE, TIMELOOP):
        report = evaluate_group(model, result.group)
        assert (report.energy_pj, report.cycles) == pytest.approx((result.energy_pj, result.cycles), rel=1e-9)
        assert report.of(pair.objective) == pytest.approx(brute, rel=1e-9)


@pytest.mark.parametrize("seed", first(4, *range(8)))
def test_pairs_cost_what_brute_force_finds(seed: int) -> None:
    check(seed)


@pytest.mark.exhaustive
@scaled(1)
@given(st.integers(0, 2**32))
def test_random_pairs_cost_what_brute_force_finds(seed: int) -> None:
    check(seed)


def two_products(units: int, registers: int) -> GroupMapping:
    """Return two products of 4 x 4 x 4 on an array, with a buffer of 64 words."""
    pair = Pair(0)
    pair.siblings, pair.sizes, pair.units, pair.capacity = False, dict.fromkeys("mabc", 4), (units, units), 64
    pair.layers = [
        {"T0": ("m", "a"), "W0": ("a", "b"), "T1": ("m", "b")},
        {"T1": ("m", "b"), "W1": ("b", "c"), "T2": ("m", "c")},
    ]
    pair.common, pair.registers, pair.held, pair.leakage = "T1", registers, None, [0.0, 0.0]
    pair.energies, pair.bandwidths = [128, 128, 6, 8, 0.5, 0.5], [4, 4, 16, 16, None, None]
    return pair.group()


def test_the_bound_inside_tiles_counts_the_words_that_must_move() -> None:
    """Each of three tensors has 16 words. An access costs 128 pJ in the outermost memory, an operation 0.5 pJ."""
    group = two_products(2, 4)
    layer = ArrayLayer(group.layers[0], group.architecture, (), Limits())
    whole = np.array([layer.whole])
    for states, words in (((FAR, FAR, FAR), 48), ((FAR, FAR, HOME), 32), ((HOME, HOME, HOME), 0), ((64, 16, HOME), 80)):
        energy, cycles = layer.least(whole, states)
        assert energy[0] >= 64 * 0.5 + words * 128 and cycles[0] >= max(64 / 4, words / 4)
        branches = layer.branches(layer.whole, states, 64, EDP)
        assert branches and all(energy[0] <= branch.energy_pj and cycles[0] <= branch.cycles for branch in branches)


def test_the_optimum_is_that_of_a_published_mapper() -> None:
    group = two_products(2, 4)
    result = search_group(group, ENERGY)  # FFM: 8,963.2 pJ with 0.4 pJ an operation
    assert result.energy_pj == pytest.approx(8_963.2 + 0.1 * 2 * 64, rel=1e-9)
    assert evaluate_group(ORACLE, result.group).energy_pj == pytest.approx(result.energy_pj, rel=1e-9)
    assert search_group(group, CYCLES).cycles == 2 * 64 / 4


def test_more_units_or_registers_never_cost_more() -> None:
    costs = [[search_group(two_products(units, registers), EDP) for registers in (1, 2, 4)] for units in (1, 2)]
    edps = [[each.energy_pj * each.cycles for each in row] for row in costs]
    assert all(row == sorted(row, reverse=True) for row in edps)
    assert all(b <= a for a, b in zip(*edps, strict=True))


def test_a_search_by_a_model_that_forwards_words_is_not_proved() -> None:
    result = tw.fuse(two_products(2, 4), objective="energy", model_options={"link_transfers": False})
    assert result.proved and result.certificate is not None
    assert math.isclose(result.fused.energy_pj or 0, 8_976.0)
    pair = Pair(19)  # neighbours forward words of its optimum
    forwarded = tw.fuse(pair.group(), objective="energy")
    assert not forwarded.proved and "not proved" in str(forwarded)


@pytest.mark.parametrize("path", ["DRAM", "Buffer"])
def test_memories_leak_during_all_cycles(path: str) -> None:
    group = two_products(2, 4)
    leaking = group.architecture.replace({f"{path}.leakage_pj_per_cycle": 100.0})
    data = group.model_copy(update={"architecture": leaking}).to_data()
    result = search_group(GroupMapping.model_validate(data), ENERGY)
    assert evaluate_group(ORACLE, result.group).energy_pj == pytest.approx(result.energy_pj, rel=1e-9)
    assert result.cycles == 32 and result.energy_pj >= 8_976 + 32 * 100


@pytest.mark.parametrize("objective", first(1, ENERGY, EDP, ED2P))
def test_a_search_on_an_array_that_is_cut_has_a_mapping_and_a_bound(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, looks = two_products(2, 4), Clock()
    monkeypatch.setattr(fused_limits, "time", looks)
    best = search_group(group, objective).of(objective)
    for at in range(0, looks.now, looks.now // 6):
        monkeypatch.setattr(fused_limits, "time", Clock())
        cut = [search_group(group, objective, seconds=at)]
        monkeypatch.setattr(fused_limits, "time", Clock(interrupt=looks.now - at))
        with suppress(KeyboardInterrupt):  # as long as there is no mapping
            cut.append(search_group(group, objective))
        for found in cut:
            value = evaluate_group(TIMELOOP, found.group).of(objective)
            assert value == pytest.approx(found.of(objective), rel=1e-9)
            assert 0 < found.bound <= best * (1 + 1e-9) and best <= found.of(objective) * (1 + 1e-9)
            without = evaluate_group(ORACLE, found.unfused).of(objective)
            assert without is not None and found.of(objective) <= without * (1 + 1e-9)


def test_a_user_who_interrupts_a_search_without_a_limit_has_a_fused_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    group = two_products(2, 4)
    monkeypatch.setattr(fused_limits, "time", Clock())
    least = search_group(group, ENERGY)
    monkeypatch.setattr(fused_group, "QUICK", 10**9)
    looks = Clock()
    monkeypatch.setattr(fused_limits, "time", looks)
    with monkeypatch.context() as patch:
        patch.setattr(fused_group, "FEW", (2, 2))
        search_group(group, ENERGY)
        patch.setattr(fused_limits, "time", Clock(interrupt=looks.now // 2))
        cut = search_group(group, ENERGY)
    assert not cut.proved and least.energy_pj <= cut.energy_pj
    assert cut.energy_pj < evaluate_group(ORACLE, cut.unfused).of(ENERGY)  # type: ignore[operator]


def test_few_tiles_give_a_fused_mapping_of_long_dimensions_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(0)
    pair.siblings, pair.sizes, pair.units, pair.capacity = False, dict.fromkeys("mabc", 240), (16, 16), 65_536
    pair.layers = [
        {"T0": ("m", "a"), "W0": ("a", "b"), "T1": ("m", "b")},
        {"T1": ("m", "b"), "W1": ("b", "c"), "T2": ("m", "c")},
    ]
    pair.common, pair.registers, pair.held, pair.leakage = "T1", 64, None, [0.0, 0.0]
    pair.energies, pair.bandwidths = [64, 64, 2, 2, 0.2, 0.2], [4, 4] + [None] * 4
    monkeypatch.setattr(fused_group, "QUICK", 10**9)
    monkeypatch.setattr(fused_limits, "time", Clock(interrupt=20_000))
    cut = search_group(pair.group(), ENERGY)
    assert not cut.proved and evaluate_group(TIMELOOP, cut.group).energy_pj == pytest.approx(cut.energy_pj, rel=1e-9)
    assert "T1" not in (cut.group.tree.entries[0].keep or ())  # it stays in the buffer
    assert cut.energy_pj < evaluate_group(TIMELOOP, cut.unfused).of(ENERGY)  # type: ignore[operator]


def test_a_limit_holds_where_an_array_has_many_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(0)
    pair.siblings, pair.sizes, pair.units, pair.capacity = False, dict.fromkeys("mabc", 5_040), (16,), 4_096
    pair.layers = [
        {"T0": ("m", "a"), "W0": ("a", "b"), "T1": ("m", "b")},
        {"T1": ("m", "b"), "W1": ("b", "c"), "T2": ("m", "c")},
    ]
    pair.common, pair.registers, pair.held = "T1", 16, None
    monkeypatch.setattr(fused_limits, "time", clock := Clock())
    search_group(pair.group(), ENERGY, seconds=0)
    first = clock.now  # until there is a mapping
    for seconds in (0, 1_000, 10_000):
        monkeypatch.setattr(fused_limits, "time", clock := Clock())
        result = search_group(pair.group(), ENERGY, seconds)
        assert not result.proved and not result.unfused_proved
        assert clock.now <= first + seconds + 50
        assert evaluate_group(TIMELOOP, result.group).energy_pj == pytest.approx(result.energy_pj, rel=1e-9)


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("PE.fanout.size", 2, "one unit for each register file"),
        ("Register.leakage_pj_per_cycle", 1.0, "registers that leak"),
        ("Register.block_words", 2, "share an access"),
        ("Buffer.fanout.multicast", False, "without multicast"),
        ("DRAM.fanout.size", 2, "expected two memories"),
        ("Buffer.fanout.network.energy_per_hop_pj", 1.0, "networks that cost energy"),
    ],
)  # fmt: skip
def test_arrays_that_are_not_covered_are_refused(path: str, value: object, text: str) -> None:
    group = two_products(2, 4)
    data = group.model_copy(update={"architecture": group.architecture.replace({path: value})}).to_data()
    with pytest.raises(NotConformableError, match=text):
        search_group(GroupMapping.model_validate(data))


def test_windows_on_arrays_are_refused() -> None:
    data = two_products(2, 4).to_data()
    data["layers"][0]["dimensions"]["r"] = 1
    data["layers"][0]["tensors"][0]["projection"][0] = "m + r"
    data["layers"][0]["tensors"][1]["projection"].append("r")
    data["tree"]["branches"][0]["entries"][-1]["temporal_tile_sizes"]["r"] = 1
    data["tree"]["branches"][0]["entries"][-1]["temporal_order"] = ["a", "b", "m", "r"]
    with pytest.raises(NotConformableError, match="windows are not searched on arrays"):
        search_group(GroupMapping.model_validate(data))


def test_nothing_is_proved_where_neighbours_may_forward_words() -> None:
    """The optimum without forwarding costs 1,176 pJ by either count. Another mapping of the space costs 760 with it."""
    pair = Pair(8)
    pair.energies[2] *= 20
    group = pair.group()
    for links, proved in ((True, False), (False, True)):
        result = tw.fuse(group, objective=pair.objective.name, model_options={"link_transfers": links})
        assert result.fused.of(pair.objective) == pytest.approx(1176)
        assert result.proved is proved and (result.certificate is None) is not proved
