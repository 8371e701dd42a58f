"""Rules that are not searched are compared with a mapping, and every statement names the space that it is about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, UnsearchedRule, Variant
from tilewright.schema.mapping import Mapping
from tilewright.schema.unsearched import JudgedRule, covers_files, judged, statement, unsearched_notes

ARCHITECTURE = Architecture.from_yaml(
    """
    name: grid
    clusters:
      - {name: D, memories: [{name: D, read_energy_pj: 10, write_energy_pj: 10}]}
      - {name: Y, memories: [{name: B, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 4, axis: Y}}
      - {name: X, fanout: {size: 4, axis: X}}
    compute: {energy_per_operation_pj: 1}
    """
)
EINSUM = "Z[m,n] += A[m,k] * B[k,n]; m=4 n=4 k=4"
MAPPING = Mapping.from_yaml(
    """
    entries:
      - {target: D, keep: [A, B, Z], temporal_tile_sizes: {m: 4, n: 4, k: 4}}
      - {target: Y, keep: [A, B, Z], temporal_tile_sizes: {m: 4, n: 4, k: 4}}
      - {target: Y, temporal_order: [n, k], temporal_tile_sizes: {m: 4, n: 2, k: 1}, spatial_tile_sizes: {m: 2, n: 2, k: 1}}
      - {target: X, temporal_tile_sizes: {m: 2, n: 2, k: 1}, spatial_tile_sizes: {m: 1, n: 1, k: 1}}
    """
)
"""m over Y and X, n over X: 8 of 16 units."""


def rule(joint: dict[str, Any] | None, missing: bool = False) -> UnsearchedRule:
    told = {"name": "spatial", "where": "rules.yaml:3", "why": "what is not searched", "missing": missing}
    return UnsearchedRule.model_validate(told | {"joint": None if joint is None else {"clusters": ["X", "Y"]} | joint})


@pytest.mark.parametrize(
    ("joint", "fault"),
    [
        ({"min_utilization": 0.5}, None),
        ({"min_utilization": 0.51}, "8 of 16 sub-clusters in use"),
        ({"factors": {"m": 4, "n": {"max": 2}}}, None),
        ({"factors": {"n": {"min": 3}}}, "2 trips of n"),
        ({"apart": True}, "m over X and Y"),
        ({"apart": True, "clusters": ["X"]}, None),
        ({"first": ["n", "m"]}, None),
        ({"first": ["m", "n"]}, "n over X, and m over a later fanout"),
        ({"last": ["n"]}, "n over X, and m over a later fanout"),
        ({"last": ["m"]}, None),
        ({"first": ["n"], "others": [1, 1]}, None),
        ({"others": [1, 1]}, "m, n over X"),
        (None, None),
    ],
)
def test_a_mapping_is_compared_with_a_rule_over_several_fanouts(
    joint: dict[str, Any] | None, fault: str | None
) -> None:
    (found,) = judged(Variant(unsearched=(rule(joint),)), MAPPING, ARCHITECTURE)
    assert found.fault == fault and found.satisfied == (None if joint is None else fault is None)


def test_the_statement_claims_the_files_space_only_if_the_mapping_satisfies_all_its_rules() -> None:
    kept, broken, unknown = JudgedRule(rule({}), None), JudgedRule(rule({}), "a fault"), JudgedRule(rule(None), None)
    missing = JudgedRule(rule(None, missing=True), None)

    def said(*rules: JudgedRule, proved: bool = True) -> Sequence[str]:
        return statement(rules, proved)

    assert said() == () and covers_files(())
    assert said(kept) == (
        "the mapping satisfies the rule of rules.yaml that is not searched, so it is optimal under all of its rules, too",
    )
    assert said(kept, kept, proved=False) == ("the mapping satisfies the 2 rules of rules.yaml that are not searched",)
    assert said(kept, broken) == (
        "optimal in a space wider than that of rules.yaml; the mapping breaks its rules:",
        "  rules.yaml:3: spatial: what is not searched; the mapping has a fault",
    )
    assert said(unknown, proved=False)[0].startswith("searched in a space wider than that of rules.yaml; it is unknown")
    assert said(kept, missing)[0] == "optimal in a space that lacks mappings of rules.yaml:"
    assert covers_files([kept]) and not any(covers_files([kept, each]) for each in (broken, unknown, missing))


def constraints(joint: dict[str, Any]) -> Constraints:
    return Constraints(name="file", variants=(Variant(unsearched=(rule(joint),)),))


@pytest.mark.parametrize(("share", "passed"), [(0.25, True), (1.0, None)])
def test_report_json_certificate_and_its_check_say_so(share: float, passed: bool | None) -> None:
    joint = {"min_utilization": share} | ({} if passed else {"factors": {"k": 3}})
    report = tw.map(EINSUM, ARCHITECTURE, constraints=constraints(joint), objective="energy", cache=False)
    (layer,) = report.data()["layers"]
    assert [each["satisfied"] for each in layer["unsearched"]] == [bool(passed)]
    claim = (
        "so it is optimal under all of its rules, too" if passed else "optimal in a space wider than that of rules.yaml"
    )
    certificate = report.certificate("einsum")
    assert certificate is not None and claim in str(certificate) and claim in str(report)
    assert report._proofs == {"einsum": "yes" if passed else "yes, wider"}
    assert type(certificate).from_yaml(certificate.to_yaml()) == certificate
    verified = tw.verify_certificate(certificate, samples=10, limit=0)
    assert verified.right and {check.name: check.passed for check in verified.checks}["rules"] is passed
    assert claim in str(verified)


def test_rules_that_are_all_searched_leave_documents_as_they_were() -> None:
    assert "unsearched" not in Variant().model_dump(mode="json")
    report = tw.map(
        EINSUM, ARCHITECTURE, constraints=Constraints(name="none"), mapper="random", evaluations=10, cache=False
    )
    assert report.data()["layers"][0]["unsearched"] == [] and "wider" not in str(report)


def test_a_search_of_the_same_space_is_found_in_the_cache_whatever_is_not_searched(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"mapper": "random", "evaluations": 10, "cache": tmp_path}
    for number, share in enumerate((0.25, 1.0)):
        report = tw.map(EINSUM, ARCHITECTURE, constraints=constraints({"min_utilization": share}), **settings)
        assert report["einsum"].cached == (number > 0)
        assert report.unsearched(report["einsum"])[0].rule.joint == rule({"min_utilization": share}).joint


def test_other_reports_name_the_rules_without_a_mapping() -> None:
    problem = tw.load(EINSUM, "problem")
    told = unsearched_notes(constraints({}), [problem])
    assert told == (
        "the searched space is wider than that of rules.yaml: spatial is not searched; `map` says whether the mapping fits",
    )
    assert unsearched_notes(Constraints(name="none"), [problem]) == ()
    settings: dict[str, Any] = {"constraints": constraints({}), "evaluations": 20, "cache": False}
    assert told[0] in str(tw.compare(EINSUM, ARCHITECTURE, mappers=["random"], models=["timeloop"], **settings))
    assert told[0] in str(tw.front(EINSUM, ARCHITECTURE, mapper="random", points=2, **settings))
