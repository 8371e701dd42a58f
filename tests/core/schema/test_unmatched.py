"""Names that match nothing are reported once, with the existing names, and have no other effect."""

import pytest

import tilewright as tw
from support.problems import problem_of_roles
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.unmatched import unmatched

ARCHITECTURE = Architecture.from_yaml(
    """
    name: a
    clusters:
      - {name: D, memories: [{name: D, read_energy_pj: 1, write_energy_pj: 1}]}
      - name: B
        fanout: {size: 8}
        memories:
          - {name: B, holds: [input, wieght, Q], read_energy_pj: 1, write_energy_pj: 1}
          - {name: C, holds: [O], read_energy_pj: 1, write_energy_pj: 1}
    compute: {energy_per_operation_pj: 1}
    """
)
GEMM = problem_of_roles("I: d b e; W: e c; O: d b c")
OTHER = problem_of_roles("I: i k l; W: k j; V: l j; O: i j")
TOLD = [
    "memory B of a holds tensor 'wieght', which does not exist; did you mean 'weight'? known: I, W, O, input, weight, output",
    "memory B of a holds tensor 'Q', which does not exist; known: I, W, O, input, weight, output",
]


def rules(text: str) -> Constraints:
    return Constraints.from_yaml(f"name: c\nvariants: [{text}]")


def test_a_tensor_that_no_problem_has() -> None:
    assert list(unmatched([GEMM], ARCHITECTURE)) == TOLD
    assert all("I, W, O, V, input" in text for text in unmatched([GEMM, OTHER, GEMM], ARCHITECTURE))
    roomy = ARCHITECTURE.replace({"B.holds": ["I", "weight"], "C.holds": ["O", "V"]})
    assert unmatched([GEMM, OTHER], roomy) == () and len(unmatched([GEMM], roomy)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{spatial: [{cluster: B, only: [x, d]}]}", "for B names dimension 'x', which does not exist; known: d, b, e, c"),
        ("{temporal: [{memory: D, factors: {x: 4}, order: [x]}]}", "for D names dimension 'x'"),
        ("{structure: gemm, temporal: [{memory: D, only: [G, M, X]}]}", "dimension 'X', which does not exist; known: G, M, N, K"),
        ("{keep: [{memory: B, bypass: [weigth]}]}", "for B names tensor 'weigth', which does not exist; did you mean 'weight'?"),
    ],
)  # fmt: skip
def test_a_rule_on_what_is_absent(text: str, said: str) -> None:
    (told,) = unmatched([GEMM], ARCHITECTURE.replace({"B.holds": ["input"]}), rules(text))
    assert told.startswith("constraints c: the rule ") and said in told


def test_the_rest_of_a_rule_holds() -> None:
    text = "{temporal: [{memory: D, only: [x, d, e], factors: {x: 4, e: 2}, order: [e, x, d]}], spatial: [{cluster: B, only: [x]}]}"
    found = rules(text).rules_for(GEMM, ARCHITECTURE)
    assert (
        found
        == rules(
            text.replace("x, d, e", "d, e").replace("x: 4, ", "").replace("x, d", "d").replace("[x]", "[]")
        ).variants[0]
    )
    assert (
        unmatched(
            [GEMM],
            ARCHITECTURE.replace({"B.holds": None}),
            rules("{structure: conv, temporal: [{memory: D, only: [x]}]}"),
        )
        == ()
    )


def test_map_evaluate_and_space_tell() -> None:
    constraints = rules("{temporal: [{memory: D, only: [d, b, e, c, x]}]}")
    report = tw.map(GEMM, ARCHITECTURE, constraints=constraints, mapper="random", evaluations=200, cache=False)
    assert list(report.warnings[:2]) == TOLD and "dimension 'x'" in report.warnings[2] and len(report.warnings) == 3
    assert report.data()["warnings"] == list(report.warnings)
    assert all(report.messages().count(f"warning: {text}") == 1 for text in report.warnings)
    assert list(tw.evaluate(report.layers[0]).warnings) == TOLD
    compared = tw.compare(
        GEMM, ARCHITECTURE, constraints=constraints, mappers="random", models="timeloop", evaluations=50
    )
    assert [text for text in compared.messages() if "which does not exist" in text] == [
        f"warning: {w}" for w in report.warnings
    ]
    with pytest.warns(UserWarning) as caught:
        tw.space(GEMM, ARCHITECTURE, constraints)
    assert [str(each.message) for each in caught] == list(report.warnings)
    assert all(each.filename == __file__ for each in caught)
    assert tw.map("resnet50/n7", "simba", mapper="random", evaluations=50).warnings == ()


def test_nothing_in_the_library_is_unmatched() -> None:
    problems = {
        name: layer.problem for name in tw.library.names("workloads") for layer in tw.library.workload(name).layers
    }
    for name in tw.library.names("architectures"):
        for constraints in tw.library.constraints_for(name).values():
            assert unmatched(list(problems.values()), tw.library.architecture(name), constraints) == ()
