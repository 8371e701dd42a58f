"""Constraints of Timeloop's map space, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import library
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.document import parse_document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop import TimeloopAdapter

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
    found = read(rules)
    rule = variant(found)
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
    assert found.problem and found.architecture and found.constraints
    assert MapSpace.of(found.problem, found.architecture, rule).size > 0


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
        "loops over M, N may be inside K",
        "M may lie along X or Y",
        "N=99 exceeds",
        "utilization",
    ):
        assert any(words in warning for warning in warnings), words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
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

    temporal = tuple(
        TemporalRule(
            memory=memory.name,
            only=only(),
            factors=factors(),
            order=tuple(draw(st.permutations(dims))) if draw(st.booleans()) else (),
        )
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
