"""Constraints written for a structure apply regardless of the names of the dimensions."""

import pytest

import tilewright as tw
from support.problems import problem_of_roles
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, TemporalRule
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.workload import Layer, Workload

ARCHITECTURE = Architecture.from_yaml(
    """
    name: a
    clusters:
      - {name: D, memories: [{name: D, read_energy_pj: 1, write_energy_pj: 1}]}
      - {name: B, memories: [{name: B, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 8, axis: Y}}
      - {name: R, fanout: {size: 4, axis: X}}
    compute: {energy_per_operation_pj: 1}
    """
)
GEMM = problem_of_roles("I: d b e; W: e c; O: d b c")


def test_letters_become_the_problems_own_dimensions() -> None:
    constraints = Constraints.from_yaml(
        """
        name: c
        variants:
          - structure: gemm
            temporal: [{memory: B, only: [N, K], factors: {N: 2, G: 3}, order: [K, N]}]
            spatial: [{cluster: R, only: [M], factors: {M: {min: 2}}}]
        """
    )
    rules = constraints.rules_for(GEMM, ARCHITECTURE)
    assert rules is not None
    assert rules.temporal[0].only == ("d", "b", "e") and rules.temporal[0].order == ("e", "d", "b")
    assert {name: (r.min, r.max) for name, r in rules.temporal[0].factors.items()} == {"d": (2, 2), "b": (2, 2)}
    assert rules.spatial[0].only == ("c",)
    assert constraints.rules_for(problem_of_roles("I: i k l; W: k j; V: l j; O: i j"), ARCHITECTURE) is None
    assert Constraints.from_yaml(constraints.to_yaml()) == constraints


def test_outermost_and_innermost_loops_and_the_digest_of_rules_without_them() -> None:
    constraints = Constraints.from_yaml(
        "{name: c, variants: [{structure: gemm, temporal: [{memory: B, innermost: [N, K], outermost: [M]}]}]}"
    )
    rules = constraints.rules_for(GEMM, ARCHITECTURE)
    assert rules is not None and rules.temporal[0].innermost == ("d", "b", "e")
    assert rules.temporal[0].outermost == ("c",) and rules.temporal[0].has_order
    assert Constraints.from_yaml(constraints.to_yaml()) == constraints
    plain = TemporalRule(memory="B", order=("M", "K")).model_dump(mode="json")
    assert plain == {"memory": "B", "only": None, "factors": {}, "order": ["M", "K"]}
    with pytest.raises(InputError, match="name a dimension twice"):
        Constraints.from_yaml("{name: c, variants: [{temporal: [{memory: B, order: [M], innermost: [M]}]}]}")


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("{temporal: [{memory: Z}]}", "unknown memory 'Z'; known: D, B"),
        ("{spatial: [{cluster: RR}]}", "unknown cluster 'RR'"),
        ("{keep: [{memory: DD}]}", "unknown memory 'DD'; did you mean 'D'?; known: D, B"),
    ],
)
def test_names_that_nobody_knows(variant: str, message: str) -> None:
    constraints = Constraints.from_yaml(f"name: c\nvariants: [{variant}]")
    with pytest.raises(InputError) as caught:
        constraints.rules_for(GEMM, ARCHITECTURE)
    assert message in str(caught.value)


def test_an_aspect_reshapes_the_array_and_keeps_its_size() -> None:
    wide = Constraints.from_yaml("name: c\naspect: {B: 2, R: 16}").shape(ARCHITECTURE)
    assert wide.instances == (1, 1, 2, 32)
    with pytest.raises(InputError, match="gives 16 compute units, a has 32"):
        Constraints.from_yaml("name: c\naspect: {B: 4}").shape(ARCHITECTURE)
    with pytest.raises(InputError, match="unknown cluster 'Q'"):
        Constraints.from_yaml("name: c\naspect: {Q: 4}").shape(ARCHITECTURE)


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(InputError, match="min 3 is above max 2"):
        Constraints.from_yaml("name: c\nvariants: [{spatial: [{cluster: R, factors: {c: {min: 3, max: 2}}}]}]")


@pytest.mark.parametrize("rule", ["as_prescribed", "as_needed"])
@pytest.mark.parametrize(("size", "factors", "least"), [(16, "perfect", 8), (12, "ragged", 8), (6, "perfect", 6)])
def test_a_prescribed_unrolling_that_does_not_divide_leaves_a_smaller_tile(
    size: int, factors: str, least: int, rule: str
) -> None:
    """No more than the dimension's iterations are unrolled."""
    problem = GEMM.model_copy(update={"dimensions": FrozenDict({**GEMM.dimensions, "c": size})})
    constraints = Constraints.from_yaml(
        f"name: c\nfactors: {rule}\nvariants: [{{spatial: [{{cluster: B, factors: {{c: 8}}}}]}}]"
    )
    rules = constraints.rules_for(problem, ARCHITECTURE)
    assert rules is not None and constraints.factors_for(problem, rules) == factors
    assert (rules.spatial[0].factors["c"].min, rules.spatial[0].factors["c"].max) == (least, least)
    assert MapSpace.of(problem, ARCHITECTURE, rules, factors=constraints.factors_for(problem, rules)).size > 0


@pytest.mark.parametrize(("rule", "cutting"), [("as_prescribed", "perfect"), ("as_needed", "ragged")])
def test_only_as_needed_looks_at_divisors(rule: str, cutting: str) -> None:
    problem = GEMM.model_copy(update={"dimensions": FrozenDict({**GEMM.dimensions, "c": 34})})
    constraints = Constraints.from_yaml(f"name: c\nfactors: {rule}")
    assert constraints.factors_for(problem, None) == cutting


BY_LAYER = {
    "kind": "constraints",
    "name": "by_layer",
    "variants": [
        {"structure": "conv", "keep": [{"memory": "DRAM", "free": ["input"]}]},
        {"operations": ["depthwise_conv2d"], "keep": [{"memory": "DRAM", "free": ["output"]}]},
        {"layers": ["b3_*", "mine"], "keep": [{"memory": "DRAM", "free": ["weight"]}]},
    ],
}


@pytest.mark.parametrize(
    ("layer", "label", "free"),
    [
        ("b2_pw1", None, "input"),
        ("b2_dw", None, "output"),
        ("b3_pw1", None, "weight"),
        ("b3_dw", None, "weight"),
        ("b2_dw", "mine", "weight"),
        ("b2_dw", "other", "output"),
    ],
)
def test_rules_for_a_layer_come_before_those_for_its_operation(layer: str, label: str | None, free: str) -> None:
    constraints = Constraints.model_validate(BY_LAYER)
    problem = tw.load(f"mobilenetv2/{layer}", "problem").model_copy(update={"label": label})
    variant = constraints.variant_for(constraints.labelled(problem))
    assert variant is not None and variant.keep[0].free == (free,)


def test_layers_of_equal_work_and_other_rules_are_searched_apart(caplog: pytest.LogCaptureFixture) -> None:
    """A word of `layers` that selects none is told; without rules for layers the two are one search."""
    one = tw.load("nk,km->nm; n=8 k=8 m=8", "problem")
    network = Workload(name="net", layers=tuple(Layer(problem=one.model_copy(update={"name": name})) for name in "ab"))
    rule = {"layers": ["b", "c?"], "spatial": [{"cluster": "Column", "only": []}]}
    rules = Constraints.model_validate({"name": "apart", "variants": [rule]})
    report = tw.map(
        network, "eyeriss", constraints=rules, mapper="random", evaluations=200, cache=False, progress=False
    )
    assert [(layer.name, layer.problem.label) for layer in report.layers] == [("a", None), ("b", "b")]
    assert "layers 'c?' is no layer, pattern or label here; layers are a, b" in caplog.text
    assert len(tw.map(network, "eyeriss", mapper="random", evaluations=20, progress=False).layers) == 1
