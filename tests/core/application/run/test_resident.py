"""Networks whose results stay on chip: counts are those of executed groups, and no other choice costs less."""

import dataclasses
import itertools
import math
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.fused_networks import Known, compared, prepared, random_net
from support.groups import figures
from support.homes import NETWORKS
from support.homes import network as network_of
from support.products import products
from support.profiles import scaled
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.resident import Placement, ResidentNetwork, group_of
from tilewright.errors import InputError, NotConformableError
from tilewright.prices import rounding_difference
from tilewright.schema.objective import ED2P, EDP, Objective, ObjectiveName

TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
LINKLESS = build_model("timeloop", {"link_transfers": False})


def random_network(random: Random, visits: int = 1) -> tw.Workload:
    """Return products one after another, with the rows of one of several visits; a later one may read an earlier result."""
    sizes = [random.choice([1, 2, 4]) for _ in range(random.choice([3, 4, 5]))]
    makers = []
    for number in range(1, len(sizes) - 1):
        able = [at for at in range(number) if sizes[at + 1] == sizes[number]]
        makers.append(random.choice(able) if random.random() < 0.4 else number - 1)
    return tw.Workload.model_validate(products(random.choice([2, 4, 6]) // visits, sizes, makers))


def random_architecture(random: Random) -> tw.Architecture:
    def memory(name: str, **more: Any) -> dict[str, Any]:
        energies = {"read_energy_pj": random.choice([1, 2, 8]), "write_energy_pj": random.choice([1, 2, 8])}
        ports = {f"{each}_bandwidth_words_per_cycle": random.choice([None, 0.5, 1, 2]) for each in ("read", "write")}
        return {"name": name} | energies | ports | more

    fanout = random.choice([1, 2, 4])
    leakage = random.choice([0.0, 0.5]) if fanout == 1 else 0.0
    clusters: list[dict[str, Any]] = [
        {"name": "DRAM", "memories": [memory("DRAM", read_energy_pj=random.choice([4, 100]), write_energy_pj=50)]},
        {
            "name": "Buffer",
            "memories": [memory("Buffer", capacity_words=random.choice([8, 12, 20, 40]), leakage_pj_per_cycle=leakage)],
            "fanout": {"size": fanout},
        },
        {"name": "Reg", "memories": [memory("Reg", capacity_words=random.choice([3, 4, 8]))]},
    ]
    return tw.Architecture.model_validate(
        {"name": "small", "clusters": clusters[: random.choice([2, 3, 3])], "compute": {"energy_per_operation_pj": 0.5}}
    )


@pytest.mark.exhaustive
@scaled(1)
@given(st.integers(0, 2**32), st.sampled_from(["energy", "cycles"]))
def test_no_other_choice_of_residents_costs_less_and_groups_cost_the_same(seed: int, objective: ObjectiveName) -> None:
    random = Random(seed)
    network = prepared(random_network(random), random_architecture(random), objective)
    plain, least = network.gain()
    if not math.isfinite(plain):
        return
    random = Random(seed)
    tiled = prepared(random_network(random, visits=2), random_architecture(random), objective)
    leaked, cycles = rounding_difference(network.configuration.architecture)  # the bound of each half takes it off
    rounded = len(network.workload.layers) * (cycles if objective == "cycles" else leaked)
    # all layers on one half of the rows, then on the other
    assert 2 * tiled.gain()[1] + rounded >= least * (1 - 1e-9)
    placed = network.place()
    assert placed.bound <= placed.value * (1 + 1e-9) and placed.value <= plain * (1 + 1e-9)
    for count in range(len(network.may_stay) + 1):
        for chosen in itertools.combinations(range(len(network.may_stay)), count):
            lives = [
                frozenset(at for at in chosen if network.may_stay[at].first <= number <= network.may_stay[at].last)
                for number in range(len(network.workload.layers))
            ]
            cases = [network.case(number, live) for number, live in enumerate(lives)]
            network.cases.ask(cases)
            value = sum(network.costs[case].value for case in cases)
            assert placed.bound <= value * (1 + 1e-9) and least <= value * (1 + 1e-9)
            assert placed.value <= value * (1 + 1e-9) or placed.bound < placed.value * (1 - 1e-9)
    group = group_of(network, placed)
    if not placed.residents:
        return
    assert group is not None
    counted, executed = evaluate_group(TIMELOOP, group), evaluate_group(ORACLE, group)
    assert counted.valid and executed.valid, (counted.reasons, executed.reasons)
    assert counted.energy_pj == pytest.approx(placed.energy_pj, rel=1e-9)
    assert counted.cycles == pytest.approx(placed.cycles, abs=len(placed.costs))  # each layer alone rounds up
    assert figures(evaluate_group(LINKLESS, group)) == figures(executed)  # execution does not forward words
    if group.architecture.compute_instances == 1:
        assert (executed.energy_pj, executed.cycles) == pytest.approx((placed.energy_pj, placed.cycles), rel=1e-9)


def machine(home: dict[str, Any], beside: bool = False, **more: Any) -> dict[str, Any]:
    """Return an outermost memory of 100 pJ, and a home of 1 pJ, perhaps with a memory of weights beside it."""
    dram = {"name": "DRAM", "technology": "dram", "read_energy_pj": 100, "write_energy_pj": 100} | more
    memories = [{"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1} | more | home]
    if beside:
        memories[0]["holds"] = ["input", "output"]
        weights = {"name": "Weights", "holds": ["weight"], "capacity_words": 16}
        memories.append(weights | {"read_energy_pj": 1, "write_energy_pj": 1})
    clusters = [{"name": "DRAM", "memories": [dram]}, {"name": "Buffer", "memories": memories}]
    return {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}


BYTES: dict[str, Any] = {"word_bits": 16, "bits_per_value": {"input": 8, "output": 8}}


@pytest.mark.parametrize(
    ("rows", "sizes", "arch", "least", "stay"),
    [
        (4, (4, 4, 4, 4), machine({"capacity_words": 32}, beside=True), 8880.0, ["L0", "L1"]),
        (3, (2, 3, 2), machine({"capacity_words": 6}, **BYTES), 3680.0, ["L0"]),
        (3, (2, 3, 2), machine({"capacity_words": 10}), 4917.0, ["L0"]),
    ],
    ids=["results fill the home exactly", "half words", "less than a word of each is left"],
)
def test_room_is_exact(rows: int, sizes: tuple[int, ...], arch: Any, least: float, stay: list[str]) -> None:
    network = prepared(products(rows, sizes), arch, "energy")
    placed = network.place()
    assert placed.value == pytest.approx(least, rel=1e-9) == pytest.approx(placed.bound, rel=1e-8)
    assert [resident.maker for resident in placed.residents] == stay
    group = group_of(network, placed)
    assert group is not None
    for model in (TIMELOOP, ORACLE):
        assert evaluate_group(model, group).energy_pj == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("seed", [7, 1011])
def test_networks_cost_what_a_brute_force_finds(seed: int) -> None:
    assert "equal" in compared(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 106))
def test_more_networks_cost_what_a_brute_force_finds(seed: int) -> None:
    assert "equal" in compared(seed)


@pytest.mark.exhaustive
def test_a_network_costs_what_a_brute_force_finds_with_every_size_of_its_home() -> None:
    assert compared(14, every=True).endswith("sizes, all proved")


def test_a_layer_costs_no_more_with_more_room() -> None:
    """The home is dear, so all tensors bypass it, wherever there is room for them."""
    arch = machine({"capacity_words": 100, "read_energy_pj": 90, "write_energy_pj": 90})
    network = prepared(products(4, (2, 6, 2)), arch, "energy")
    network.gain()
    costs = []
    for left in (0, 1, 2, 3, 4, 30, 100):
        case = dataclasses.replace(network.case(0, frozenset()), reserved=(100 - left) * 16)
        network.cases.ask([case])
        costs.append(network.costs[case].value)
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("capacity", [[35, 36, 37, 38], [2, 3, 4]])
def test_a_larger_home_never_costs_more(capacity: list[int]) -> None:
    """Results fill 34 words of the home, so the other tensors have room for a value of each or not."""
    least = math.inf
    for words in capacity:
        arch = machine({"capacity_words": words, "read_energy_pj": 30, "write_energy_pj": 30})
        network = prepared(products(17, (2, 2, 3)), arch, "energy")
        placed = network.place()
        assert placed.value <= least * (1 + 1e-9) and placed.bound <= least * (1 + 1e-9)
        least = placed.value


@pytest.mark.parametrize("kind", NETWORKS)
@scaled(0.4)
@given(st.integers(0, 2**32), st.integers(1, 16), st.sampled_from([1, 1, 2, 3, 8]))
def test_no_mapping_that_is_legal_in_a_home_costs_less_than_the_proof_of_that_home(
    kind: str, seed: int, words: int, more: int
) -> None:
    """A larger home never costs more. It may do all that the smaller one does, at the same cost."""
    known: Known = {}
    small, large = (network_of(kind, seed, each, known) for each in (words, words + more))
    before, after = small.place(), large.place()
    if not math.isfinite(before.value):
        return
    assert after.value <= before.value * (1 + 1e-9)
    assert cost_in(large, before) == pytest.approx(before.value, rel=1e-9)
    for home, bound in ((large, after.bound), (small, before.bound)):
        for placed in (before, after):
            assert bound <= cost_in(home, placed) * (1 + 1e-9)


def cost_in(network: ResidentNetwork, placed: Placement) -> float:
    """Return what a placement that was found in another home costs here; inf if it is not legal."""
    costs = list[tuple[float, float]]()
    with suppress(NotConformableError, InputError):
        for number, live in enumerate(network.lives(resident.maker for resident in placed.residents)):
            layer = placed.costs[number].layer
            assert layer is not None and layer.result is not None and layer.result.best is not None
            costs.append(network.priced(number, live, layer.result.best))
        counts = [layer.count for layer in network.workload.layers]
        energy, cycles = (math.fsum(n * each[at] for n, each in zip(counts, costs, strict=True)) for at in (0, 1))
        return network.configuration.objective.value(energy, cycles)
    return math.inf


def test_a_rule_that_keeps_a_tensor_needs_room_for_it() -> None:
    arch = machine({"capacity_words": 32}, beside=True)
    for words, stay in ((["weight"], ["L0", "L1"]), (["input"], ["L0", "L1"]), (["output"], ["L0", "L1"])):
        keep = [{"memory": "Buffer", "keep": words}]
        rules = {"kind": "constraints", "name": "rules", "variants": [{"keep": keep}]}
        network = prepared(products(4, (4, 4, 4, 4)), arch, "energy", rules)
        placed = network.place()
        assert [resident.maker for resident in placed.residents] == stay and placed.bound >= placed.value * (1 - 1e-8)
    network = prepared(products(4, (4, 4, 4, 4, 4)), arch, "energy", rules)
    network.gain()
    case = dataclasses.replace(network.case(0, frozenset()), reserved=32 * 16)
    network.cases.ask([case])
    assert math.isinf(network.costs[case].bound)  # the result must be kept, and nothing is left


def test_rules_on_the_loops_of_the_outermost_memory_hold_for_layers_with_residents() -> None:
    temporal = [{"memory": "DRAM", "factors": {"M": 1, "N": 1, "K": 1}}]
    rules = {"kind": "constraints", "name": "rules", "variants": [{"temporal": temporal}]}
    network = prepared(products(4, (4, 4, 4)), machine({"capacity_words": 60}), "energy", rules)
    placed = network.place()
    assert [resident.maker for resident in placed.residents] == ["L0"]
    for cost in placed.costs:
        assert cost.layer is not None and cost.layer.mapping is not None
        factors = cost.layer.mapping.factors()
        assert set(factors[1][0].values()) == {1}, cost.layer.mapping


def test_values_as_wide_as_the_network_states_take_their_own_room() -> None:
    data = products(3, (2, 3, 2))
    for layer in data["layers"]:
        for tensor in layer["problem"]["tensors"]:
            tensor["bits"] = {"input": 8, "output": 8, "weight": 16}[tensor["role"]]
    network = prepared(data, machine({"capacity_words": 6}), "energy", value_bits="network")
    placed = network.place()
    assert placed.value == pytest.approx(3680.0, rel=1e-9) and placed.residents[0].words == 4.5
    group = group_of(network, placed)
    assert group is not None and evaluate_group(ORACLE, group).energy_pj == pytest.approx(3680.0, rel=1e-9)
    data["layers"][0]["problem"]["tensors"][1]["bits"] = 8  # layers whose values differ under one name
    other = prepared(data, machine({"capacity_words": 6}), "energy", value_bits="network")
    assert group_of(other, other.place()) is None


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_a_memory_in_slices_has_equal_counts(seed: int) -> None:
    net, random = random_net(seed), Random(seed)
    problem = tw.Problem.model_validate(net.workload()["layers"][0]["problem"])
    arch = tw.Architecture.model_validate(net.machine(200))
    sliced = arch.with_memories(lambda each: each.in_slices())
    assert tw.Architecture.model_validate(sliced.to_data()) == sliced
    start = {"target": "Out", "keep": ["X", "W", "Y"]}
    entries = net.entries(0, random.choice(net.rows(0, frozenset())), start)
    mapping = tw.Mapping.model_validate({"entries": entries})
    report, other = (tw.evaluate(mapping, problem, each, models="timeloop").reports[0] for each in (arch, sliced))
    assert report.valid and other.valid, (report.reasons, other.reasons)
    assert report.energy_pj == pytest.approx(other.energy_pj, rel=1e-9)
    assert report.cycles == pytest.approx(other.cycles, abs=1)


def npu(**ports: float) -> dict[str, Any]:
    """Return an array on one buffer, whose ports are counted once for residents and for tiles of other tensors."""
    dram = {"name": "DRAM", "technology": "dram", "read_energy_pj": 100, "write_energy_pj": 100}
    sram = {"name": "SRAM", "capacity_words": 1024, "read_energy_pj": 2, "write_energy_pj": 2} | ports
    registers = {"name": "RF", "capacity_words": 8, "read_energy_pj": 0.05, "write_energy_pj": 0.05}
    clusters = [
        {"name": "DRAM", "memories": [dram | {"shared_bandwidth_words_per_cycle": 2}]},
        {"name": "SRAM", "memories": [sram], "fanout": {"size": 4, "axis": "Y"}},
        {"name": "Row", "fanout": {"size": 4, "axis": "X"}},
        {"name": "PE", "memories": [registers]},
    ]
    return {"name": "npu", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.2}}


@pytest.mark.parametrize(
    ("ports", "cycles"),
    [
        ({"read_bandwidth_words_per_cycle": 4, "write_bandwidth_words_per_cycle": 4}, 640),
        ({"shared_bandwidth_words_per_cycle": 3}, 640),
    ],
)
def test_an_objective_never_loses_to_the_mapping_of_another(ports: dict[str, float], cycles: int) -> None:
    found = {each: prepared(products(8, (16, 32, 16)), npu(**ports), each).place() for each in ("cycles", "energy")}
    fast, frugal = found["cycles"], found["energy"]
    assert fast.cycles == cycles <= frugal.cycles and frugal.energy_pj <= fast.energy_pj * (1 + 1e-9)
    assert fast.bound <= fast.cycles and fast.bound >= fast.cycles * (1 - 1e-8)  # one port limits both layers
    if fast.cycles == frugal.cycles:  # of equally fast mappings, the one of less energy
        assert fast.energy_pj == pytest.approx(frugal.energy_pj, rel=1e-9)


def test_networks_refuse_objectives_that_do_not_add_up_over_layers() -> None:
    network = prepared(products(4, (4, 4, 4)), machine({"capacity_words": 20}), "energy")
    for objective in (EDP, ED2P, Objective(2, 1)):
        product = network.configuration.with_objective(objective, math.inf)
        with pytest.raises(NotConformableError, match=f"the {objective.title} of a network is not the sum") as raised:
            ResidentNetwork(network.workload, product, network.search)
        assert raised.value.hint == "give --objective energy or --objective cycles"
    group = group_of(network, network.place())
    assert group is not None
    with pytest.raises(InputError, match="objective is 'latency'; expected edp, ed2p, energy or cycles"):
        tw.fuse(group, objective="latency")  # type: ignore[arg-type]


def test_a_result_that_the_network_returns_does_not_stay() -> None:
    """The first result has to reach the outermost memory, so the network costs as much as its two parts apart."""
    arch, data = machine({"capacity_words": 32}, beside=True), products(4, (4, 4, 4, 4))
    first, others = (prepared(products(4, (4,) * count), arch, "energy").place() for count in (2, 3))
    assert prepared(data, arch, "energy").place().value == 8880
    data["layers"][0]["returned"] = True
    placed = prepared(data, arch, "energy").place()
    assert [resident.maker for resident in placed.residents] == ["L1"]
    assert placed.value == 12096 == first.value + others.value


def test_words_of_padding_count_in_a_network_and_not_in_its_group() -> None:
    """Four of 24 operations of the second layer read padding: 2 pJ and 2 cycles of the home's port for each."""
    network = network_of("convolutions", 126, 10, {})
    placed, group = network.place(), group_of(network, network.place())
    assert group is not None and placed.bound == placed.value == 156
    assert [(cost.energy_pj, cost.cycles) for cost in placed.costs] == [(130, 48), (2602, 108)]
    for model in (TIMELOOP, ORACLE):
        report = evaluate_group(model, group)
        assert (report.energy_pj, report.cycles) == (2724, 148)


@pytest.mark.parametrize(
    ("home", "cheaper"),
    [
        ({}, ["energy", "cycles"]),
        ({"read_bandwidth_words_per_cycle": 4}, ["energy"]),
        ({"read_energy_pj": 101}, []),
        ({"update_energy_pj": 101}, []),
        ({"block_words": 2}, []),
        ({"word_bits": 32}, []),
        ({"bits_per_value": {"input": 8}}, []),
    ],
)
def test_the_cost_without_residents_is_a_bound_if_no_access_to_the_home_costs_more(
    home: dict[str, Any], cheaper: list[str]
) -> None:
    data = products(4, (4, 4, 4))
    for objective in ("energy", "cycles"):
        network = prepared(data, machine({"capacity_words": 32} | home), objective)
        assert network.shrinks == (objective in cheaper)


@pytest.mark.parametrize(("update_energy", "carried"), [(None, True), (101, False)])
def test_bounds_carry_over_from_cases_with_more_residents(update_energy: float | None, carried: bool) -> None:
    home = {"capacity_words": 64, "update_energy_pj": update_energy}
    network = prepared(products(4, (4, 4, 4, 4)), machine(home), "energy")
    one, both = network.case(1, frozenset({0})), network.case(1, frozenset({0, 1}))
    network.cases.ask([one, both])
    costs, roomy = network.costs, dataclasses.replace(both, reserved=0)
    for case in [case for case in costs if case.resident == one.resident]:
        costs[case] = dataclasses.replace(costs[case], bound=0.0)
    assert one.resident < both.resident and 0 < costs[roomy].bound <= costs[one].value
    assert network.bound(1, frozenset({0})) == (costs[roomy].bound if carried else 0.0)
    costs[one] = dataclasses.replace(costs[one], value=1.0)
    assert network.bound(1, frozenset({0})) <= 1.0


@pytest.mark.parametrize(
    ("counts", "stay"), [((1, 1, 3), ["L0"]), ((1, 3, 1), []), ((3, 3, 1), ["L0"]), ((1, 1, 1), ["L0"])]
)
def test_a_result_stays_among_layers_that_are_repeated_equally_often(counts: tuple[int, ...], stay: list[str]) -> None:
    data = products(4, (4, 4, 4, 4))
    for layer, count in zip(data["layers"], counts, strict=True):
        layer["count"] = count
    network = prepared(data, machine({"capacity_words": 32}), "energy")
    assert [each.maker for each in network.may_stay][:1] == stay


def test_a_part_of_a_sum_stays_until_the_sum_is_complete() -> None:
    """L2 reads L0 + L1, and L3 reads that sum and L2. So L0 stays until L1 adds to it."""
    data = products(4, (4, 4, 4, 4, 4))
    for layer, makers in zip(data["layers"], ([], [], ["L0", "L1"], ["L0", "L1", "L2"]), strict=True):
        layer |= {"after": makers, "reads": {"A": [{"maker": maker} for maker in makers]} if makers else {}}
    network = prepared(data, machine({"capacity_words": 32}), "energy")
    lives = {each.maker: (each.first, each.last) for each in network.may_stay}
    assert lives == {"L0": (0, 1), "L1": (1, 2), "L2": (2, 3)}


def side_by_side(columns: tuple[int, int], **changes: Any) -> dict[str, Any]:
    """Return three products; the third reads the results of the others side by side, and `changes` change its second read."""
    data = products(4, (2, columns[0], columns[1], 2), makers=(0, 1))
    first, second, third = data["layers"]
    second["problem"]["dimensions"]["K"] = 2
    second |= {"after": [], "reads": {}}
    third["problem"]["dimensions"]["K"] = sum(columns)
    reads = [
        {
            "maker": f"L{number}",
            "sizes": {"m": 4, "n": columns[number]},
            "made": ["m", "n"],
            "read": ["m", f"n + {start}"],
        }
        for number, start in ((0, 0), (1, columns[0]))
    ]
    third |= {"after": ["L0", "L1"], "reads": {"A": [reads[0], reads[1] | changes]}}
    return data


def test_results_that_are_read_side_by_side_stay_together() -> None:
    """The reader takes both from home, or neither: 4 x 2 and 4 x 3 words."""
    network = prepared(side_by_side((2, 3)), machine({"capacity_words": 64}), "energy")
    assert [(each.maker, each.words, *each.partners) for each in network.may_stay] == [
        ("L0", 8, "L1"),
        ("L1", 12, "L0"),
    ]
    assert [resident.maker for resident in network.place().residents] == ["L0", "L1"]
    with pytest.raises(InputError, match="L0 stays only with L1: a layer reads all of them as one operand"):
        network.lives(["L0"])
    small = prepared(side_by_side((2, 3)), machine({"capacity_words": 19}), "energy")
    assert not small.place().residents


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ((2, 2), {"read": ["m", "n + 1"]}),  # both make the second column, and neither the last one
        ((2, 3), {"cut": "a pooling", "sizes": {}, "made": None, "read": None}),
    ],
)
def test_parts_that_are_not_all_words_of_an_operand_do_not_stay(
    columns: tuple[int, int], changes: dict[str, Any]
) -> None:
    data = side_by_side(columns, **changes)
    assert not prepared(data, machine({"capacity_words": 64}), "energy").may_stay


def test_a_result_that_is_repeated_in_a_sum_does_not_stay() -> None:
    """L1 makes one row, which is added to all four rows of L0: the sum has more words than its last maker's result."""
    data = products(4, (2, 2, 2, 2))
    _, second, third = data["layers"]
    second["problem"]["dimensions"]["M"] = 1
    second |= {"after": [], "reads": {}}
    row = {"maker": "L1", "sizes": {"m": 4, "n": 2}, "made": [0, "n"], "read": ["m", "n"]}
    third |= {"after": ["L0", "L1"], "reads": {"A": [{"maker": "L0"}, row]}}
    assert not prepared(data, machine({"capacity_words": 64}), "energy").may_stay
    third |= {"after": ["L1"], "reads": {"A": [row]}}  # alone, one row stays, and is read as four
    assert {each.maker: each.words for each in prepared(data, machine({"capacity_words": 64}), "energy").may_stay} == {
        "L1": 2
    }
