"""Joining partial mappings of a chain is optimal, and its costs are those of the cost models."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import tilewright as tw
from support import EXAMPLE_FILES
from support.clocks import Clock, Pressed
from support.fused_graphs import Graph, compared, least, random_graph
from support.group_searches import search_group
from support.homes import GROUPS, resized
from support.interrupts import heard
from support.profiles import first, scaled
from support.random_groups import random_group
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective
from tilewright_mappers.fused import limits as fused_limits
from tilewright_mappers.fused import tree as fused_tree

TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
LINKLESS = build_model("timeloop", {"link_transfers": False})
OBJECTIVES: tuple[Objective, ...] = (ENERGY, CYCLES, EDP, ED2P)


@pytest.mark.exhaustive
@scaled(1)
@given(st.integers(0, 2**32), st.sampled_from(OBJECTIVES))
def test_no_random_group_in_the_same_room_costs_less(seed: int, objective: Objective) -> None:
    drawn = random_group(seed, levels=(1,))
    report = evaluate_group(TIMELOOP, drawn)
    assume(report.valid)
    peak = next(level.used_words for level in report.levels if level.name == "Buffer")
    tight = drawn.architecture.replace({"Buffer.capacity_words": max(1, peak or 0)})
    group = GroupMapping.model_validate(drawn.model_copy(update={"architecture": tight}).to_data())
    chain = search_group(group, objective)
    executed = evaluate_group(ORACLE, chain.group)
    assert executed.valid, executed.reasons
    counted = evaluate_group(TIMELOOP, chain.group)
    assert (counted.energy_pj, counted.cycles) == pytest.approx((chain.energy_pj, chain.cycles), rel=1e-9)
    if all(len(rank.terms) == 1 for p in group.layers for t in p.tensors for rank in t.projection):
        assert (executed.energy_pj, executed.cycles) == pytest.approx((chain.energy_pj, chain.cycles), rel=1e-9)
    cost, other = counted.of(objective), evaluate_group(TIMELOOP, group).of(objective)
    assert cost is not None and other is not None and cost <= other * (1 + 1e-9)


@pytest.mark.parametrize("kind", GROUPS)
@scaled(0.4)
@given(st.integers(0, 2**32), st.integers(1, 14), st.sampled_from([1, 1, 2, 3, 8]))
@example(230_222, 6, 1)  # of kind padding: the model refuses the best group in the larger buffer
def test_no_mapping_that_is_legal_in_a_buffer_costs_less_than_the_proof_of_that_buffer(
    kind: str, seed: int, words: int, more: int
) -> None:
    """A larger buffer never costs more. It may do all that the smaller one does, at the same cost."""
    drawn = GROUPS[kind](seed)
    small, large = (resized(drawn.group(), each) for each in (words, words + more))
    try:
        before = search_group(small, drawn.objective)
    except NotConformableError:
        assume(False)
    after = search_group(large, drawn.objective)
    assert after.of(drawn.objective) <= before.of(drawn.objective) * (1 + 1e-9)
    for room, bound in ((words + more, after.bound), (words, before.bound)):
        for found in (before, after):
            report = evaluate_group(LINKLESS, resized(found.group, room))
            cost = report.of(drawn.objective)
            # some tiles have no word that exists: the model refuses them, and executed they may cost less than searched
            refused = {reason.code for reason in report.reasons} == {"padding"}
            assert cost is not None or room == words or refused, report.reasons
            assert cost is None or cost == pytest.approx(found.of(drawn.objective), rel=1e-9)
            assert cost is None or bound <= cost * (1 + 1e-9)


def test_fusion_saves_words_of_the_outermost_memory() -> None:
    result = tw.fuse(EXAMPLE_FILES / "two_products.yaml", objective="energy")
    assert result.proved and result.gap == 0.0
    assert result.saved_words == 2 * 512
    assert "Hidden" in str(result) and "proved optimal" in str(result)
    assert GroupMapping.from_yaml(result.mapping.to_yaml()) == result.mapping
    unfused, fused = result.rows()
    assert fused["energy_pj"] < unfused["energy_pj"]


def test_an_outermost_memory_that_is_too_small_is_refused_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    group = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml")
    outermost = group.architecture.memories[0].name
    small = group.architecture.replace({f"{outermost}.capacity_words": 10})
    monkeypatch.setattr(fused_tree.TreeSearch, "best", None)  # the search is never asked
    with pytest.raises(NotConformableError, match=f"{outermost}: tiles alive at one moment need [0-9]+ words, 10 fit"):
        tw.fuse(GroupMapping.model_validate(group.to_data() | {"architecture": small.to_data()}))


@pytest.mark.parametrize("seed", first(2, *range(8), 1087))
@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("windows", [False, True])
def test_graphs_cost_what_brute_force_finds(seed: int, chain: bool, windows: bool) -> None:
    assert compared(seed, chain, windows).startswith(("equal", "refused by both"))


@pytest.mark.parametrize("seed", first(1, 14, 16))
def test_a_home_has_room_for_the_halo_of_its_windows(seed: int) -> None:
    assert compared(seed, chain=True, windows=True) == "equal, unfused, 2 layers"  # the halo does not fit


@pytest.mark.parametrize("seed", first(2, *range(4)))
@pytest.mark.parametrize("chain", [False, True])
def test_graphs_of_several_widths_cost_what_brute_force_finds(seed: int, chain: bool) -> None:
    assert compared(seed, chain, widths=True).startswith(("equal", "refused by both"))


def test_a_shared_part_keeps_a_result_for_its_only_reader_there() -> None:
    assert compared(8_300_041, widths=True) == "equal, fused, 3 layers"  # its maker is in another part


@pytest.mark.parametrize(("seed", "cost"), [(22, 64), (51, 234), (68, 54_234)])
def test_layers_share_loops_of_any_tensor_where_two_tensors_differ(seed: int, cost: float) -> None:
    graph = random_graph(seed)  # a residual connection: columns are one axis of its start, or of its end
    result = search_group(graph.group(), graph.objective)
    assert evaluate_group(ORACLE, result.group).of(graph.objective) == cost


def test_a_tile_of_one_layer_is_in_no_part_with_another_user() -> None:
    assert compared(159) == "equal, fused, 3 layers"  # both layers would keep a whole input there


@pytest.mark.parametrize("seed", [711, 767])
def test_a_result_that_is_read_at_once_and_later_links_its_maker_and_the_first_reader(seed: int) -> None:
    assert compared(seed).startswith("equal")  # its home is outside of the loops that both share


def test_a_result_stays_whole_outside_rows_that_are_not_the_first_shared_loop() -> None:
    notation = [{"I": "m+r k", "W0": "k n r", "M0": "m n"}, {"M0": "m+r k", "W1": "k n r", "M1": "m n"}]
    sizes = [{"m": 3, "k": 4, "n": 4, "r": 3}, {"m": 2, "k": 4, "n": 1, "r": 2}]
    graph = Graph(notation, sizes, 4, [2, 100, 8, 1], [None] * 4, ENERGY)
    result = search_group(graph.group(), ENERGY)
    assert result.energy_pj == evaluate_group(TIMELOOP, result.group).energy_pj == least(graph)[0] == 2_344


def test_the_buffer_keeps_the_halo_of_shared_rows() -> None:
    group = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml")
    result = search_group(group, ENERGY)
    for model in (TIMELOOP, ORACLE):
        assert evaluate_group(model, result.group).energy_pj == pytest.approx(result.energy_pj, rel=1e-9)
    assert result.energy_pj == 41_860 and evaluate_group(TIMELOOP, result.unfused).energy_pj == 68_524
    assert evaluate_group(ORACLE, group).energy_pj == result.energy_pj


def test_a_tile_for_some_readers_of_an_input_is_beyond_the_space_that_is_named() -> None:
    better = GroupMapping.from_file(Path(__file__).parents[2] / "data" / "groups" / "some_readers_share.yaml")
    result = tw.fuse(better, objective="energy")
    assert [evaluate_group(model, better).energy_pj for model in (ORACLE, TIMELOOP)] == [4_676, 4_676]
    assert result.fused.energy_pj == 5_224 and result.certificate is not None
    for told in (str(result), result.data()["space"], result.certificate.to_yaml()):
        assert "tiles that divide, each for one layer or all users of a tensor" in told


def test_a_search_that_would_list_too_many_nests_keeps_its_best_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    group = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml")
    least = search_group(group, ENERGY)
    for numbers in (300, 1_000, 10_000):
        monkeypatch.setattr(fused_limits, "NUMBERS", numbers)
        cut = search_group(group, ENERGY)
        assert cut.bound <= least.energy_pj <= cut.energy_pj
        assert evaluate_group(TIMELOOP, cut.group).energy_pj == pytest.approx(cut.energy_pj, rel=1e-9)
        assert cut.proved or numbers < 10_000


def test_parts_that_are_not_covered_are_refused() -> None:
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml").to_data()
    data["layers"][0]["tensors"][0]["projection"][0] = "2*P + R"
    with pytest.raises(NotConformableError, match="stride"):
        search_group(GroupMapping.model_validate(data))
    with pytest.raises(NotConformableError, match="expected two memories"):
        tw.fuse(EXAMPLE_FILES / "two_products.yaml", "tpu_v1")  # no memory for operands and results
    small = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml")
    none = small.architecture.replace({"Buffer.capacity_words": 1})
    assert search_group(small.model_copy(update={"architecture": none})).energy_pj > 0


@pytest.mark.parametrize(
    ("columns", "where"), [(2**10, ["two products"]), (2**11, ["up", "down"]), (2**30, ["up", "down"])]
)
def test_counts_beyond_double_precision_are_refused_before_the_search(
    columns: int, where: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_products.yaml").to_data()
    for layer, name in zip(data["layers"], "NK", strict=True):  # 2**43 times the columns, in each layer
        layer["dimensions"] |= {"M": 2**40, name: columns}
    del data["architecture"]["clusters"][1]["memories"][0]["capacity_words"]
    group = GroupMapping.model_validate(data)
    monkeypatch.delattr(fused_tree.TreeSearch, "_least")
    with pytest.raises(NotConformableError) as caught:
        search_group(group)
    assert [(reason.code, reason.where) for reason in caught.value.reasons] == [("overflow", each) for each in where]
    assert {reason.code for reason in evaluate_group(TIMELOOP, group).reasons} == {"overflow"}


@pytest.mark.parametrize("bits", first(2, {"input": 16}, {"M0": 12, "M1": 20}, {"output": 16}, {"weight": 24}))
def test_a_shared_tensor_is_as_wide_as_its_widest_use(bits: dict[str, int]) -> None:
    notation = [{"I": "m k", "W0": "k n", "M0": "m n"}, {"M0": "m k", "W1": "k n", "M1": "m n"}]
    sizes = dict.fromkeys("mkn", 4)
    data = Graph(notation, [sizes, sizes], 8, [100, 100, 1, 2], [None] * 4, ENERGY).group().to_data()
    assert data["layers"][1]["tensors"][0]["role"] == "input"
    data["layers"][1]["tensors"][0] |= {"role": "weight" if "weight" in bits else "input"}
    costs = list[float]()
    for words in range(2, 60, 6):
        memory = data["architecture"]["clusters"][1]["memories"][0]
        memory |= {"word_bits": 8, "bits_per_value": bits, "capacity_words": words}
        result = search_group(GroupMapping.model_validate(data), ENERGY)
        for model in (TIMELOOP, ORACLE):
            assert evaluate_group(model, result.group).energy_pj == pytest.approx(result.energy_pj, rel=1e-9)
        costs.append(result.energy_pj)
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("bits", "turned"), [({"input": 16}, False), ({"output": 16}, True)])
def test_the_optimum_of_every_home_is_legal_and_has_the_cost_of_its_execution(
    bits: dict[str, int], turned: bool
) -> None:
    _sweep(bits, turned, range(5, 70))


@pytest.mark.parametrize(("bits", "turned"), [({"input": 16}, False), ({"output": 16}, True), ({"weight": 24}, True)])
def test_the_optimum_of_some_homes_is_legal_and_has_the_cost_of_its_execution(
    bits: dict[str, int], turned: bool
) -> None:
    _sweep(bits, turned, (9, 17, 33, 65))


def _sweep(bits: dict[str, int], turned: bool, capacities: Iterable[int]) -> None:
    """Search a chain in buffers of several capacities; `turned`: both layers read different parts of one tensor."""
    notation = [
        {"A": "m k", "V" if turned else "W0": "k n", "M0": "m n"},
        {"M0": "m n", "V" if turned else "W1": "n k", "M1": "m k"},
    ]
    sizes = {"m": 8, "k": 2, "n": 4}
    data = Graph(notation, [sizes, sizes], 8, [100, 100, 1, 2], [None] * 4, ENERGY).group().to_data()
    costs = list[float]()
    for words in capacities:
        memory = data["architecture"]["clusters"][1]["memories"][0]
        memory |= {"word_bits": 8, "bits_per_value": bits, "capacity_words": words, "update_energy_pj": 50.0}
        result = search_group(GroupMapping.model_validate(data), ENERGY)
        for model in (TIMELOOP, ORACLE):
            report = evaluate_group(model, result.group)
            assert report.valid, report.reasons
            assert report.energy_pj == pytest.approx(result.energy_pj, rel=1e-9)
        costs.append(result.energy_pj)
    assert result.proved and costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_bounds_do_not_change_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for windows in (False, True):
        group = random_graph(seed, windows=windows).group()
        result = search_group(group, EDP)
        with monkeypatch.context() as patch:
            patch.setattr(fused_tree, "ALONE", 0)
            patch.setattr(fused_tree.TreeSearch, "_bound_all", lambda *_: None)
            patch.setattr(fused_tree.TreeSearch, "bounded", lambda *_: None)
            patch.setattr(fused_tree, "SHARES", (1.0,))
            again = search_group(group, EDP)
        assert again.energy_pj * again.cycles == pytest.approx(result.energy_pj * result.cycles, rel=1e-9)


@pytest.mark.parametrize("seed", first(1, 3, 22, 51))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_search_that_is_cut_has_a_mapping_and_a_bound(
    seed: int, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = random_graph(seed).group()
    whole = search_group(group, objective)
    best = evaluate_group(TIMELOOP, whole.group).of(objective) or 0.0
    looks = Clock()
    monkeypatch.setattr(fused_limits, "time", looks)
    assert whole.proved and search_group(group, objective).proved
    for at in range(0, looks.now, max(1, looks.now // 10)):
        monkeypatch.setattr(fused_limits, "time", Clock())
        cut = [search_group(group, objective, seconds=at)]
        monkeypatch.setattr(fused_limits, "time", Clock(interrupt=looks.now - at))
        with suppress(KeyboardInterrupt):  # as long as there is no mapping
            cut.append(search_group(group, objective))
        for found in cut:
            value = evaluate_group(TIMELOOP, found.group).of(objective) or 0.0
            assert found.bound <= best * (1 + 1e-9) and best <= value * (1 + 1e-9)
            assert not found.proved or found.bound == pytest.approx(value)


def test_a_user_who_interrupts_gets_the_mapping_and_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    group, looks = random_graph(22).group(), Clock()
    monkeypatch.setattr(fused_limits, "time", looks)
    search_group(group, ENERGY)
    monkeypatch.setattr(fused_limits, "time", Pressed(interrupt=looks.now))
    with heard(), pytest.warns(UserWarning, match="interrupted"):
        report = tw.fuse(group, objective="energy")
    assert not report.proved and report.gap is not None and report.gap >= 0.0 and report.fused.valid


def test_a_report_of_a_cut_search_has_the_gap_and_no_certificate() -> None:
    cut, whole = (tw.fuse(EXAMPLE_FILES / "two_products.yaml", objective="energy", seconds=each) for each in (0, None))
    assert not cut.proved and cut.certificate is None and cut.fused.energy_pj == cut.unfused.energy_pj
    assert cut.gap and cut.bound and cut.bound <= (whole.bound or 0) == whole.fused.energy_pj
    assert "cut at a gap of" in str(cut) and cut.data()["gap"] == cut.gap
