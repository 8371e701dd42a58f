"""Plans of fused networks do what the reads of their workloads ask for, and the judge of that finds plans that do not."""

import dataclasses
from functools import cache
from typing import Any

import pytest

import tilewright as tw
from support.followed_networks import Judge, outcome
from tilewright.application.api.network_fusion import NetworkFusion
from tilewright.schema.group import GroupMapping


@pytest.mark.parametrize("seed", [17, 37])
def test_plans_of_random_networks_follow_their_reads(seed: int) -> None:
    """`python -m support.followed_networks 500` follows hundreds."""
    assert "WRONG" not in (told := outcome(seed)), told


def layer(name: str, ranks: str, reads: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a product of 4 x 4 words, or of a column and a row."""
    first, second = ranks.split()
    tensors = (("I", "input", first), ("W", "weight", second), ("O", "output", "mn"))
    problem = {
        "name": name,
        "dimensions": {at: 1 if at == "k" else 4 for at in sorted({*first, *second})},
        "tensors": [{"name": one, "role": role, "projection": [*at]} for one, role, at in tensors],
    }
    after = list(dict.fromkeys(read["maker"] for read in reads))
    return {"problem": problem, "after": after, "reads": {"I": reads} if reads else {}} | more


def read(maker: str, made: str = "i j", size: int = 4, **more: Any) -> dict[str, Any]:
    return {"maker": maker, "sizes": {"i": size, "j": 4}, "made": made.split(), "read": ["i", "j"]} | more


def network(second: list[dict[str, Any]], count: int = 1, **more: Any) -> tw.Workload:
    """Return two results, and two layers that read them; the first one reads the sum."""
    first = [read("a"), read("b")]
    layers = [
        layer("a", "mk kn", []),
        layer("b", "mk kn", [], **more),
        layer("c", "mn n", first),
        layer("d", "mn n", second),
    ]
    return tw.Workload.model_validate({"name": "sums", "layers": [one | {"count": count} for one in layers]})


SAME = [read("a"), read("b")]


@cache
def fused(words: int) -> NetworkFusion:
    """Return the plan of a sum that two layers read alike."""
    memories: list[dict[str, Any]] = [
        {"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100},
        {"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1, "capacity_words": words},
    ]
    clusters = [{"name": one["name"], "memories": [one]} for one in memories]
    machine = {"name": "two", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}
    arch = tw.Architecture.model_validate(machine)
    return tw.fuse_network(network(SAME), arch, objective="energy", cache=False, seconds=60)


@pytest.mark.parametrize("words", [20, 100])
@pytest.mark.parametrize(
    ("second", "question"),
    [
        (SAME, None),
        ([one | {"through": ["relu"]} for one in SAME], None),
        ([read("a"), read("b", "j i")], "WHAT"),
        ([read("a", through=["relu"]), read("b")], "WHAT"),
        ([read("a", through=["softmax"], whole=["j"]), read("b")], "WHAT"),
        ([read("b")], "WHAT"),
    ],
)
def test_two_readers_of_one_sum_ask_for_the_same(
    words: int, second: list[dict[str, Any]], question: str | None
) -> None:
    """The plan shares loops with few words, and keeps whole results with many."""
    plan = fused(words)
    assert bool(plan.parts) == (words == 20)
    told = Judge(dataclasses.replace(plan, workload=network(second))).follow()
    assert (question is None) == (not told)
    assert question is None or any(text.startswith(question) for text in told), told


def changed(plan: NetworkFusion, **update: Any) -> NetworkFusion:
    """Return a plan whose part has other data."""
    part = plan.parts[0]
    mapping = GroupMapping.model_validate(part.mapping.to_data() | update)
    return dataclasses.replace(plan, parts=(dataclasses.replace(part, mapping=mapping),))


def test_a_plan_that_does_not_do_what_layers_ask_for_is_found() -> None:
    plan = fused(20)
    data = plan.parts[0].mapping.to_data()
    assert not Judge(plan).follow()
    a, b = data["edges"]
    without = changed(plan, edges=[a | {"added": []}, b])
    assert any("WHAT, ('c', 'I')" in text for text in Judge(without).follow())
    late = changed(plan, edges=[a, b | {"offsets": {"c": [1, 0]}}])
    assert any("WHAT, ('c', 'I')" in text for text in Judge(late).follow())
    branches = data["tree"]["branches"]
    mixed = changed(plan, tree=data["tree"] | {"branches": [branches[at] for at in (1, 0, 2, 3)]})
    assert any("WHEN, ('b', 'O')" in text for text in Judge(mixed).follow())
    mixed = changed(plan, tree=data["tree"] | {"branches": [branches[at] for at in (0, 2, 1, 3)]})
    assert any("WHEN, ('c', 'I')" in text for text in Judge(mixed).follow())
    returned = dataclasses.replace(plan, workload=network(SAME, returned=True))
    assert any("WHERE, b: the network returns b" in text for text in Judge(returned).follow())


@pytest.mark.parametrize(("words", "question"), [(20, "WHEN"), (100, "WHERE")])
def test_a_result_of_the_iteration_before_does_not_stay(words: int, question: str) -> None:
    """Here b runs last, so c and d read what it made in the iteration before."""
    data = network(SAME, count=2).to_data()
    data["layers"] = [data["layers"][at] for at in (0, 2, 3, 1)]
    plan = dataclasses.replace(fused(words), workload=tw.Workload.model_validate(data))
    assert any(text.startswith(question) for text in Judge(plan).follow())
