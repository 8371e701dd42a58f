"""Constraints of Timeloop's map space, read and written."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import library
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import (
    Constraints,
    KeepRule,
    SpatialRule,
    TemporalRule,
    TripRange,
    UnsearchedRule,
    Variant,
)
from tilewright.schema.document import parse_document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_adapters.timeloop.reading.directives import FIELDS, UNREAD
from tilewright_adapters.timeloop.reading.maximizing import maximal

HARDWARE = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {word-bits: 16}}
    - {name: Buffer, class: SRAM, attributes: {entries: 4096}}
    - {name: "Spad[0..15]", class: regfile, attributes: {entries: 64, meshX: 4}}
    - {name: "MAC[0..31]", class: intmac, attributes: {meshX: 8}}
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [M, K]}
    - {name: W, projection: [K, N]}
    - {name: Z, projection: [M, N], read-write: true}
  instance: {M: 8, N: 12, K: 6}
"""
RULES = """
- {target: Buffer, type: temporal, factors: M=1 N<=4, permutation: KN}
- {target: Buffer, type: spatial, factors: K=1, permutation: MNK, split: 1}
- {target: Spad, type: spatial, factors: M=1 K=1}
- {target: Spad, type: bypass, keep: [A], bypass: [W]}
- {target: 1, type: temporal, factors: K=0}
"""
GEMM = library.workload("factorflow_gemms").layers[0].problem


def read(rules: str, head: str = "mapspace_constraints:\n  targets:") -> InputSet:
    text = HARDWARE + head + rules.replace("\n", "\n    ") + "\n"
    return TimeloopAdapter().read([parse_document(text, source="x.yaml")])


def variant(inputs: InputSet) -> Variant:
    assert inputs.constraints is not None
    (found,) = inputs.constraints.variants
    return found


def test_what_rules_mean() -> None:
    rules = RULES.replace("- {target: 1, type: temporal, factors: K=0}\n", "")
    inputs = read(rules)
    rule = variant(inputs)
    (buffer,) = rule.temporal
    assert (buffer.memory, buffer.only, buffer.order) == ("Buffer", ("N", "K"), ("N", "K"))
    assert buffer.factors["N"] == TripRange(min=1, max=4)
    assert {(r.cluster, r.only) for r in rule.spatial} == {
        ("Buffer", ("N",)),
        ("Buffer_X", ("M",)),
        ("Spad", ("N",)),
    }
    assert rule.keep == (
        KeepRule(memory="Buffer", free=("A", "W", "Z")),
        KeepRule(memory="Spad", keep=("A",), bypass=("W",), free=("Z",)),
    )
    assert inputs.problem and inputs.architecture and inputs.constraints
    assert MapSpace.of(inputs.problem, inputs.architecture, rule).size > 0


def test_numbers_count_levels_from_the_innermost_and_zero_is_all() -> None:
    rule = variant(read("\n- {target: 0, type: temporal, factors: K=0 M<=0}\n"))
    (spad,) = rule.temporal
    assert spad.memory == "Spad" and spad.factors["K"] == TripRange(min=6, max=6)
    assert spad.factors["M"] == TripRange(min=1, max=8)


@pytest.mark.parametrize(
    "head",
    [
        *("mapspace_constraints:", "mapspace_constraints:\n  targets:", "architecture_constraints:\n  targets:"),
        *("constraints:\n  version: 0.4\n  targets:", "mapspace:\n  template: uber\n  constraints:"),
        "mapspace:\n  constraints: mine\n  constraints_mine:",
    ],
)
def test_every_place_where_versions_look_for_them(head: str) -> None:
    assert read(RULES, head).constraints == read(RULES).constraints


def test_rules_below_a_target_with_attributes() -> None:
    nested = """
- name: Buffer
  constraints:
  - {type: temporal, attributes: {factors: M=1 N<=4, permutation: KN}}
  - {type: spatial, attributes: {factors: K=1, permutation: MNK, split: 1}}
- {target: Spad, type: spatial, factors: M=1 K=1}
- {target: Spad, type: bypassing, keep: [A], bypass: [W]}
- {target: Buffer, type: temporal, factors: K=0}
"""
    assert read(nested).constraints == read(RULES).constraints


def test_what_is_wider_here_is_said() -> None:
    warnings = read(
        "\n- {target: Spad, type: temporal, permutation: K}"
        "\n- {target: Buffer, type: spatial, factors: M=4}"
        "\n- {target: DRAM, type: temporal, factors: N=99}"
        "\n- {target: Spad, type: utilization, min: 0.5}"
        "\n- {target: Buffer, type: spatial, maximize_dims: [[M]]}\n"
    ).warnings
    for words in (
        "maximize_dims of Buffer is ignored",
        "M may lie along X or Y",
        "N=99 exceeds",
        "utilization",
    ):
        assert any(words in warning for warning in warnings), words


@pytest.mark.parametrize(
    ("text", "outer", "inner"),
    [("K", (), ("K",)), ("KN_M", ("M",), ("N", "K")), ("_MK", ("K", "M"), ()), ("[K, _, N]", ("N",), ("K",))],
)
def test_what_a_permutation_leaves_out_steps_between_its_parts(
    text: str, outer: tuple[str, ...], inner: tuple[str, ...]
) -> None:
    rule = variant(read(f"\n- {{target: Buffer, type: temporal, permutation: {text}}}\n"))
    (buffer,) = rule.temporal
    if len(outer) + len(inner) == 3:
        assert (buffer.order, buffer.outermost, buffer.innermost) == ((*outer, *inner), (), ())
    else:
        assert (buffer.order, buffer.outermost, buffer.innermost) == ((), outer, inner)
    assert not [each for each in rule.unsearched if each.name != "spatial"]


def units_of(rules: Variant) -> list[UnsearchedRule]:
    return [each for each in rules.unsearched if each.name == "utilization"]


UNITS = "- {{target: Spad, type: {}, min: {}}}"


def test_units_in_use_over_one_fanout_or_all_of_them() -> None:
    one = HARDWARE.replace('"Spad[0..15]"', "Spad").replace("meshX: 4", "").replace("meshX: 8", "meshX: 32")
    text = one + "constraints:\n" + UNITS.format("parallelism", 0.25) + "\n"
    rules = TimeloopAdapter().read([parse_document(text, source="x.yaml")]).constraints
    assert rules is not None and [(each.cluster, each.min_utilization) for each in rules.variants[0].spatial] == [
        ("Spad", 0.25)
    ]
    whole = variant(read(f"\n{UNITS.format('utilization', 1)}\n"))
    assert {each.cluster: each.min_utilization for each in whole.spatial} == dict.fromkeys(
        ("Buffer", "Buffer_X", "Spad"), 1.0
    )
    assert not units_of(whole) and not variant(read(f"\n{UNITS.format('utilization', 0)}\n")).spatial
    half = variant(read(f"\n{UNITS.format('utilization', 0.5)}\n"))
    assert not half.spatial
    (rule,) = units_of(half)
    assert rule.joint is not None and rule.joint.min_utilization == 0.5
    assert set(rule.joint.clusters) == {"Buffer", "Buffer_X", "Spad"} and rule.where.startswith("x.yaml:")


def test_default_factors_bound_the_dimensions_without_a_bound_of_that_side() -> None:
    (buffer,) = variant(
        read("\n- {target: Buffer, type: temporal, factors: N<=6 K>=3, default_max_factor: 4, default_min_factor: 2}\n")
    ).temporal
    assert dict(buffer.factors) == {
        "M": TripRange(min=2, max=4),
        "N": TripRange(min=2, max=6),
        "K": TripRange(min=3, max=4),
    }


def test_maximal_factors_are_those_that_timeloops_front_end_finds() -> None:
    rule = variant(
        read(
            "\n- {target: Spad, type: spatial, maximize_dims: [[N]]}\n- {target: Buffer, type: temporal, maximize_dims: [[M, K], [N]], maximize_dims_capacity: 12}\n"
        )
    )
    (spad,), (buffer,) = [each for each in rule.spatial if each.cluster == "Spad"], rule.temporal
    assert spad.factors["N"] == TripRange(min=2, max=2)
    assert {name: each.min for name, each in buffer.factors.items()} | {"N": 1} == {"M": 4, "K": 3, "N": 1}
    assert maximal({"A": 12, "B": 10}, ["A", "B"], 20) == {"A": 4, "B": 5}
    assert maximal({"A": 7}, ["A"], 4) == {"A": 4}
    assert maximal(dict.fromkeys("ABC", 2**50), ["A", "B", "C"], 2**40) is None  # too many to compare
    assert maximal({"A": 65}, ["A"], 16) == {"A": 13}  # as many units as 15, which does not divide
    odd = variant(read("\n- {target: Buffer, type: spatial, split: 3, factors: N=1 K=1, maximize_dims: [M]}\n"))
    assert {each.cluster: each.factors.get("M") for each in odd.spatial}["Buffer_X"] == TripRange(min=8, max=8)


def test_the_axes_of_a_level_are_compared_with_the_mapping() -> None:
    (rule,) = variant(read("\n- {target: Buffer, type: spatial, factors: M>=4, permutation: MNK}\n")).unsearched
    assert rule.joint is not None and rule.joint.clusters == ("Buffer_X", "Buffer") and rule.joint.apart
    assert rule.joint.first == ("M", "N", "K") and dict(rule.joint.factors) == {"M": TripRange(min=4)}
    some = variant(read("\n- {target: Buffer, type: spatial, permutation: M, split: 2}\n"))
    (rule,) = some.unsearched
    assert rule.joint is not None and rule.joint.others == (1, 1)
    assert {each.cluster: each.only for each in some.spatial} == {"Buffer": ("N", "K")}


def test_tensors_that_are_sent_separately() -> None:
    found = read("\n- {target: Spad, type: spatial, no_reuse: [A, W]}\n").architecture
    assert found is not None
    assert {each.name: (each.fanout.multicast, each.fanout.reduction) for each in found.clusters}["Spad"] == (
        False,
        True,
    )
    with pytest.raises(InputError, match="no_reuse of A alone"):
        read("\n- {target: Spad, type: spatial, no_reuse: [A]}\n")


Fate = Literal["read", "left", "no effect", "refused"]
TABLE: dict[tuple[str, str], tuple[Fate, str]] = {
    ("temporal", "factors"): ("read", "{target: Buffer, type: temporal, factors: M=2}"),
    ("temporal", "permutation"): ("read", "{target: Buffer, type: temporal, permutation: M}"),
    ("temporal", "split"): ("no effect", "{target: Buffer, type: temporal, split: 1}"),
    ("temporal", "factors_only"): ("read", "{target: Buffer, type: temporal, factors_only: [M=2]}"),
    ("temporal", "no_iteration_over_dataspaces"): (
        "read",
        "{target: Buffer, type: temporal, no_iteration_over_dataspaces: [A]}",
    ),
    ("temporal", "must_iterate_over_dataspaces"): (
        "read",
        "{target: Buffer, type: temporal, must_iterate_over_dataspaces: [A]}",
    ),
    ("temporal", "maximize_dims"): (
        "read",
        "{target: Buffer, type: temporal, maximize_dims: [[M]], maximize_dims_capacity: 4}",
    ),
    ("temporal", "maximize_dims_capacity"): (
        "no effect",
        "{target: Buffer, type: temporal, maximize_dims_capacity: 4}",
    ),
    ("temporal", "default_max_factor"): ("read", "{target: Buffer, type: temporal, default_max_factor: 3}"),
    ("temporal", "default_min_factor"): ("read", "{target: Buffer, type: temporal, default_min_factor: 2}"),
    ("temporal", "remainders"): ("no effect", "{target: Buffer, type: temporal, remainders: 2}"),
    ("temporal", "no_reuse"): ("refused", "{target: Buffer, type: temporal, no_reuse: [A]}"),
    ("temporal", "no_temporal_reuse"): ("refused", "{target: Buffer, type: temporal, no_temporal_reuse: [A]}"),
    ("temporal", "rmw_first_update"): ("refused", "{target: Buffer, type: temporal, rmw_first_update: [Z]}"),
    ("temporal", "rmw_on_first_writeback"): (
        "refused",
        "{target: Buffer, type: temporal, rmw_on_first_writeback: [Z]}",
    ),
    ("spatial", "factors"): ("read", "{target: Spad, type: spatial, factors: M=2}"),
    ("spatial", "permutation"): ("left", "{target: Buffer, type: spatial, permutation: MNK}"),
    ("spatial", "split"): ("read", "{target: Buffer, type: spatial, permutation: MNK, split: 1}"),
    ("spatial", "factors_only"): ("read", "{target: Spad, type: spatial, factors_only: [M=2]}"),
    ("spatial", "no_iteration_over_dataspaces"): (
        "read",
        "{target: Spad, type: spatial, no_iteration_over_dataspaces: [A]}",
    ),
    ("spatial", "must_iterate_over_dataspaces"): (
        "read",
        "{target: Spad, type: spatial, must_iterate_over_dataspaces: [A]}",
    ),
    ("spatial", "maximize_dims"): ("read", "{target: Spad, type: spatial, maximize_dims: [[M]]}"),
    ("spatial", "maximize_dims_capacity"): ("no effect", "{target: Spad, type: spatial, maximize_dims_capacity: 2}"),
    ("spatial", "default_max_factor"): ("read", "{target: Spad, type: spatial, default_max_factor: 1}"),
    ("spatial", "default_min_factor"): ("read", "{target: Spad, type: spatial, default_min_factor: 2}"),
    ("spatial", "remainders"): ("no effect", "{target: Spad, type: spatial, remainders: 2}"),
    ("spatial", "no_reuse"): ("read", "{target: Spad, type: spatial, no_reuse: [A, W]}"),
    ("spatial", "no_multicast_no_reduction"): ("read", "{target: Spad, type: spatial, no_multicast_no_reduction: [Z]}"),
    ("spatial", "no_link_transfer"): ("read", "{target: Spad, type: spatial, no_link_transfer: [A]}"),
    ("bypass", "keep"): ("read", "{target: Buffer, type: bypass, keep: [A]}"),
    ("bypass", "bypass"): ("read", "{target: Buffer, type: datatype, bypass: [A]}"),
    ("bypass", "keep_only"): ("read", "{target: Buffer, type: dataspace, keep_only: [A]}"),
    ("bypass", "bypass_only"): ("read", "{target: Buffer, type: bypassing, bypass_only: [A]}"),
    ("bypass", "stream"): ("no effect", "{target: Buffer, type: bypass, stream: [A]}"),
    ("bypass", "no_coalesce"): ("refused", "{target: Buffer, type: bypass, no_coalesce: [A]}"),
    ("bypass", "passthrough"): ("refused", "{target: Buffer, type: bypass, passthrough: [A]}"),
    ("parallelism", "min"): ("left", "{target: Spad, type: parallelism, min: 0.5}"),
    ("overbooking", "proportion"): ("no effect", "{target: Spad, type: max_overbooked_proportion, proportion: 0.1}"),
    ("type", "no_multicast"): ("refused", "{target: Spad, type: no_multicast}"),
}
"""Every word of Timeloop's constraints -> what becomes of it, with an example."""


def test_the_table_has_every_word_of_the_grammar() -> None:
    known = {(kind, word) for kind, words in FIELDS.items() for word in words}
    assert known <= TABLE.keys()
    assert {word for kind, word in TABLE.keys() - known} >= UNREAD.keys()


@pytest.mark.parametrize(("kind", "word"), TABLE)
def test_each_word_of_the_grammar_is_read_left_or_refused(kind: str, word: str) -> None:
    fate, rule = TABLE[kind, word]
    target = "Buffer" if "Buffer" in rule else "Spad"
    plain = read(
        f"\n- {{target: {target}, type: {'bypass' if kind in ('type', 'parallelism', 'overbooking') else kind}}}\n"
    )
    if fate == "refused":
        with pytest.raises(InputError) as caught:
            read(f"\n- {rule}\n")
        assert word in str(caught.value)
        return
    inputs = read(f"\n- {rule}\n")
    without = [each for each in variant(inputs).unsearched if each not in variant(plain).unsearched]
    if fate == "left":
        assert [each.joint is not None for each in without] == [True]
        return
    changed = (inputs.constraints, inputs.architecture) != (plain.constraints, plain.architecture)
    assert not without and changed == (fate == "read")


def test_another_template_and_the_outermost_bypass_leave_mappings_out() -> None:
    found = variant(
        read("\n- {target: DRAM, type: bypass, bypass: [A]}\n", "mapspace:\n  template: ruby\n  constraints:")
    )
    told = {each.name: each.missing for each in found.unsearched}
    assert told == {"template ruby": True, "bypass": True, "spatial": False}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{target: Buffer, type: utilization, min: 0.5}", "name the innermost level, Spad"),
        ("{target: Spad, type: utilization, min: 1.5}", "write at most 1"),
        ("{target: Spad, type: utilization}", "no 'min'"),
        ("{target: Buffer, type: temporal, factors: M>=9}", "M>=9 exceeds the dimension"),
        ("{target: Buffer, type: temporal, maximize_dims: [[M]]}", "needs a maximize_dims_capacity"),
        ("{target: Bufer, type: temporal}", "did you mean 'Buffer'"),
        ("{target: Buffer, type: tempral}", "did you mean 'temporal'"),
        ("{type: temporal}", "no 'target'"),
        ("{target: Buffer}", "no 'type'"),
        ("{target: Buffer, type: temporal, factors: M!4}", "cannot read the factors"),
        ("{target: Buffer, type: temporal, factors: X=4}", "unknown dimension 'X'"),
        ("{target: Buffer, type: temporal, factors: 'M<=2 M>=3'}", "contradict"),
        ("{target: Buffer, type: temporal, permutation: MM}", "a dimension is repeated in 'MM'"),
        ("{target: Buffer, type: bypass, keep: [B]}", "no tensor 'B'"),
        ("{target: Buffer, type: temporal, no_reuse: [A]}", "no_reuse"),
        ("{target: Buffer, type: spatial, maximise_dims: [[M]]}", "did you mean 'maximize_dims'"),
    ],
)
def test_faults_are_named_with_their_place(rule: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"\n- {rule}\n")
    assert words in str(caught.value) and str(caught.value).startswith("x.yaml:")


def back(adapter: TimeloopAdapter, inputs: InputSet, *, ours: bool = True) -> InputSet:
    files = adapter.render(inputs)
    return adapter.read([parse_document(t, source=n) for n, t in files.items() if ours or n != "tilewright.yaml"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", ["v3", "v4"])
@pytest.mark.parametrize("name", [n for n in library.names("architectures") if n != "eyeriss"])
def test_published_dataflows_come_back_and_leave_the_same_space(version: str, name: str) -> None:
    adapter = TimeloopAdapter("v3" if version == "v3" else "v4")
    architecture = library.architecture(name)
    rules = library.default_constraints(name) or Constraints(name="free", variants=(Variant(),))
    inputs = InputSet(GEMM, architecture, constraints=rules)
    verdict = adapter.expressible(inputs)
    if version == "v4" and name == "sparse_tensor_core":  # it skips in space
        assert {reason.code for reason in verdict.reasons} == {"sparse"}
        return
    if architecture.compute.cycles_per_operation > 1:  # Timeloop has one
        assert {reason.code for reason in verdict.reasons} == {"cycles_per_operation"}
        return
    assert verdict, verdict.reasons
    again, seen = back(adapter, inputs), back(adapter, inputs, ours=False)
    assert (again.problem, again.architecture, again.constraints) == (GEMM, architecture, rules)
    assert seen.problem and seen.architecture and seen.constraints
    theirs = seen.constraints.rules_for(seen.problem, seen.architecture)
    ours = rules.rules_for(GEMM, architecture)
    if version == "v3" and len(architecture.clusters[0].memories) == 1:
        found = MapSpace.of(seen.problem, seen.architecture, theirs).size
        assert found == MapSpace.of(GEMM, architecture, ours).size


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (Variant(temporal=(TemporalRule(memory="Register", order=("M", "N")),)), "order"),
        (
            Variant(
                spatial=(
                    SpatialRule(cluster="Buffer", only=("M",), min_utilization=0.5),
                    SpatialRule(cluster="Column", only=("N",)),
                )
            ),
            "utilization",
        ),
        (
            Variant(temporal=(TemporalRule(memory="Register", factors=FrozenDict({"M": TripRange(min=2, max=4)})),)),
            "at_least",
        ),
        (
            Variant(
                spatial=(SpatialRule(cluster="Buffer", only=("M", "N")), SpatialRule(cluster="Column", only=("M",)))
            ),
            "axes",
        ),
        (Variant(temporal=(TemporalRule(memory="Register", outermost=("M",)),)), "order"),
        (Variant(temporal=(TemporalRule(memory="Nowhere"),)), "constraints"),
    ],
)
def test_what_timeloop_has_no_words_for_is_refused(rules: Variant, code: str) -> None:
    from tilewright.testing.corpus import SAMPLES

    sample = next(each for each in SAMPLES if str(each) == "gemm on array")
    constraints = Constraints(name="mine", variants=(rules,))
    inputs = InputSet(sample.problem, sample.architecture, constraints=constraints)
    assert [reason.code for reason in TimeloopAdapter().expressible(inputs).reasons] == [code]
    alone = InputSet(constraints=constraints, problem=sample.problem)
    assert [reason.code for reason in TimeloopAdapter().expressible(alone).reasons] == ["parts"]


@st.composite
def random_rules(draw: st.DrawFn, problem: Problem, architecture: Architecture) -> Constraints:
    dims = problem.dimension_names

    def only() -> tuple[str, ...] | None:
        chosen = draw(st.sets(st.sampled_from(dims)))
        return tuple(name for name in dims if name in chosen) if draw(st.booleans()) else None

    def factors() -> FrozenDict[str, TripRange]:
        names = draw(st.sets(st.sampled_from(dims), max_size=2))
        return FrozenDict(
            {name: TripRange(max=draw(st.integers(1, problem.dimensions[name]))) for name in sorted(names)}
        )

    def order() -> dict[str, tuple[str, ...]]:
        drawn = tuple(draw(st.permutations(dims)))
        return draw(st.sampled_from([{}, {"order": drawn}, {"innermost": drawn[: len(dims) // 2]}]))

    temporal = tuple(
        TemporalRule(memory=memory.name, only=only(), factors=factors()).model_copy(update=order())
        for memory in architecture.memories[1:]
        if draw(st.booleans())
    )
    spatial = tuple(
        SpatialRule(cluster=cluster.name, only=only(), factors=factors())
        for cluster in architecture.clusters
        if cluster.fanout.size > 1 and draw(st.booleans())
    )
    names = problem.tensor_names
    keep = tuple(
        KeepRule(memory=memory.name, bypass=tuple(n for n in names if draw(st.booleans())), free=(names[0],))
        for memory in architecture.memories[1:]
        if memory.holds is None
    )
    return Constraints(name="random", variants=(Variant(temporal=temporal, spatial=spatial, keep=keep),))


@given(st.data())
def test_random_rules_come_back_and_leave_the_same_space(data: st.DataObject) -> None:
    from tilewright.testing.corpus import SAMPLES

    sample = data.draw(st.sampled_from([each for each in SAMPLES if each.problem.name in ("tiny", "gemm")]))
    rules = data.draw(random_rules(sample.problem, sample.architecture))
    inputs = InputSet(sample.problem, sample.architecture, constraints=rules)
    adapter = TimeloopAdapter()
    if not adapter.expressible(inputs):
        assert {reason.code for reason in adapter.expressible(inputs).reasons} == {"axes"}
        return
    assert back(adapter, inputs).constraints == rules
    seen = back(adapter, inputs, ours=False)
    assert seen.problem and seen.architecture and seen.constraints
    theirs = MapSpace.of(seen.problem, seen.architecture, seen.constraints.variants[0])
    assert theirs.size == MapSpace.of(sample.problem, sample.architecture, rules.variants[0]).size
