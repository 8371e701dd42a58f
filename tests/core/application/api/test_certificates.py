"""Certificates: what was proved is written, read back and proved again; what was changed is caught."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.certificates import with_parts
from tilewright import errors
from tilewright.plugin import Proposals, Run, Task
from tilewright.schema.mapped.certificate import Certificate, LayerClaim
from tilewright.schema.objective import CYCLES

pytestmark = pytest.mark.exhaustive

Layer = Certificate[LayerClaim]
CONV = "O[p,k] += I[p+r] * W[r,k]; p=8 r=3 k=4"


def certified(**settings: Any) -> Layer:
    found = tw.map(CONV, arch="eyeriss", cache=False, **settings).certificate("einsum")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def enumerated() -> Layer:
    return certified(mapper="exhaustive", objective="energy")


@pytest.fixture(scope="module")
def walked() -> Layer:
    """With a gap, since hardly any state is followed: a bound that can be raised without passing the incumbent."""
    found = certified(mapper="optimal", mapper_options={"width": 1, "orders": 1})
    assert found.gap > 0.01
    return found


def outcomes(certificate: Layer, limit: int = 0) -> dict[str, bool | None]:
    """Return the outcome of each check; by default nothing is enumerated."""
    found = tw.verify_certificate(certificate, samples=1000, limit=limit)
    passed = {check.name: check.passed for check in found.checks}
    assert found.right == (False not in passed.values() and passed.get("bound") is True)
    return passed


def test_it_is_read_back_as_it_was_written(enumerated: Layer, walked: Layer) -> None:
    for each in (enumerated, walked):
        assert Certificate.from_yaml(each.to_yaml()) == each == Certificate.from_yaml(each.to_json())
        counted = "# einsum on eyeriss: of 1,068 mappings, with spatial order as the problem lists its dimensions, none has less"
        assert each.to_yaml().startswith(counted)


def test_it_says_what_it_takes_to_check_it(walked: Layer) -> None:
    assert (
        walked.claim.incumbent.provenance is not None and walked.claim.incumbent.provenance.mapper.options["width"] == 1
    )
    assert (
        walked.claim.space.mappings == 1068
        and walked.claim.space.factors == "perfect"
        and walked.claim.space.rules.spatial
    )
    assert {"states", "pruned_by_bound", "pruned_by_dominance"} <= set(walked.claim.counts)
    assert walked.bound <= walked.value and walked.gap == pytest.approx(1 - walked.bound / walked.value)
    assert set(walked.versions) == {"python", "tilewright"}


def test_what_is_true_is_right(enumerated: Layer, walked: Layer) -> None:
    for each in (enumerated, walked):
        found = tw.verify_certificate(each, samples=1000)
        assert found.right and all(check.passed for check in found.checks), str(found)
        assert found.data()["right"] is True and len(found.to_frame()) == len(found.checks) == 11
        assert repr(found) == "<CertificateVerification of einsum: right>" and "11 of 11 checks passed" in str(found)
        assert found.warnings == ()


def test_without_an_enumeration_the_mapper_has_to_prove_it_again(walked: Layer) -> None:
    found = tw.verify_certificate(walked, samples=1000, limit=0)
    assert found.right
    assert [check.name for check in found.checks if check.passed is None] == ["all mappings"]


def test_a_proof_by_earlier_rules_is_proved_again_by_the_installed_ones(walked: Layer) -> None:
    older = walked.model_copy(update={"proof_version": 1})
    found = tw.verify_certificate(older, samples=1000, limit=0)
    prover = next(check for check in found.checks if check.name == "prover")
    assert found.right and prover.passed is None
    assert f"version 1 of the proofs of 'optimal'; version {walked.proof_version} is installed" in prover.message


def test_a_newer_proof_cannot_be_judged(walked: Layer) -> None:
    assert walked.proof_version is not None
    newer = walked.model_copy(update={"proof_version": walked.proof_version + 1})
    found = tw.verify_certificate(newer, samples=1, limit=0)
    prover = next(check for check in found.checks if check.name == "prover")
    assert not found.right and prover.passed is False and "cannot be judged" in prover.message


def test_other_versions_are_a_warning_and_contradicting_ones_a_fault(walked: Layer) -> None:
    """One rule for single layers and for groups."""
    origin = walked.claim.incumbent.provenance
    assert origin is not None
    record = origin.model.model_copy(update={"version": "9"})
    other = walked.claim.incumbent.model_copy(update={"provenance": origin.model_copy(update={"model": record})})
    found = tw.verify_certificate(with_parts(walked, incumbent=other), samples=1, limit=0)
    assert found.checks[0].passed is False and found.checks[0].message == "timeloop changed since"
    both = origin.model_copy(update={"model": record, "mapper": origin.mapper.model_copy(update={"version": "9"})})
    older = with_parts(
        walked,
        incumbent=walked.claim.incumbent.model_copy(update={"provenance": both}),
        versions={**walked.versions, "tilewright": "9"},
    )
    found = tw.verify_certificate(older, samples=1, limit=0)
    assert not found.right and found.checks[0].message == "versions changed since"
    older = older.sealed()
    found = tw.verify_certificate(older, samples=1, limit=0)
    assert found.right and found.checks[0].passed and "tilewright 9" in found.warnings[0]


def test_a_weaker_bound_is_true_and_says_so(enumerated: Layer) -> None:
    weaker = enumerated.model_copy(
        update={"bound": enumerated.bound * 0.9, "gap": 1 - 0.9 * enumerated.bound / enumerated.value}
    )
    found = tw.verify_certificate(weaker, samples=1, limit=0)
    assert found.right and "weaker than what is proved" in found.checks[-1].message


def test_a_contradiction_with_the_installed_prover_is_reported(walked: Layer) -> None:
    """A bound above the optimum, as a wrong rule of an earlier version could give."""
    wrong = walked.model_copy(update={"bound": 1.5 * walked.value, "proof_version": None})
    checks = {check.name: check for check in tw.verify_certificate(wrong, samples=1, limit=0).checks}
    assert "an earlier version" in checks["prover"].message
    assert checks["another seed"].passed is False
    assert "the certificate is wrong" in checks["another seed"].message
    assert "map the layer again" in checks["another seed"].message


CHANGES: dict[str, tuple[Callable[[Layer], dict[str, Any]], str]] = {
    "a bound above the incumbent": (lambda it: {"bound": it.value * 1.01}, "gap"),
    "a bound that is raised": (lambda it: {"bound": it.value, "gap": 0.0}, "bound"),
    "another gap": (lambda it: {"gap": it.gap / 2}, "gap"),
    "a lower value": (lambda it: {"value": it.bound, "gap": 0.0}, "figures"),
    "another objective": (lambda it: {"objective": CYCLES}, "figures"),
    "lower energy": (lambda it: {"incumbent": with_part(it, "figures", energy_pj=1.0)}, "figures"),
    "another machine": (lambda it: {"incumbent": machine(it, "GlobalBuffer.read_energy_pj", 0.5)}, "contents"),
    "another problem": (lambda it: {"incumbent": problem(it, {"p": 8, "r": 3, "k": 8})}, "contents"),
    "another mapping": (lambda it: {"incumbent": other_mapping(it)}, "contents"),
    "narrower rules": (lambda it: {"space": narrower(it)}, "contents"),
    "a larger space": (lambda it: {"space": it.claim.space.model_copy(update={"mappings": 10**9})}, "space"),
}


def with_part(it: Layer, part: str, **values: Any) -> tw.MappedProblem:
    changed = getattr(it.claim.incumbent, part).model_copy(update=values)
    return it.claim.incumbent.model_copy(update={part: changed})


def machine(it: Layer, path: str, value: float) -> tw.MappedProblem:
    return it.claim.incumbent.model_copy(
        update={"architecture": it.claim.incumbent.architecture.replace({path: value})}
    )


def problem(it: Layer, sizes: dict[str, int]) -> tw.MappedProblem:
    changed = it.claim.incumbent.problem.replace({f"dimensions.{name}": size for name, size in sizes.items()})
    return it.claim.incumbent.model_copy(update={"problem": changed})


def other_mapping(it: Layer) -> tw.MappedProblem:
    """One that costs more."""
    worse = tw.map(CONV, arch="eyeriss", mapper="random", evaluations=1, cache=False).layers[0].mapping
    assert worse is not None and worse != it.claim.incumbent.mapping
    return it.claim.incumbent.model_copy(update={"mapping": tw.Mapping(entries=worse.entries)})


def narrower(it: Layer) -> Any:
    rules = it.claim.space.rules.model_copy(
        update={"spatial": tuple(r.model_copy(update={"only": ()}) for r in it.claim.space.rules.spatial)}
    )
    return it.claim.space.model_copy(update={"rules": rules})


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_caught(walked: Layer, change: str) -> None:
    made, check = CHANGES[change]
    assert outcomes(with_parts(walked, **made(walked)))[check] is False


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("another machine", "figures"),
        ("another problem", "space"),
        ("another mapping", "figures"),
        ("narrower rules", "space"),
    ],
)
def test_digests_made_anew_do_not_help(walked: Layer, change: str, check: str) -> None:
    found = outcomes(with_parts(walked, **CHANGES[change][0](walked)).sealed())
    assert found["contents"] is True and found[check] is False


def test_a_false_claim_is_refuted(walked: Layer) -> None:
    """All of it fits together, but the incumbent is not the best."""
    worse = tw.map(CONV, arch="eyeriss", mapper="random", evaluations=1, cache=False).layers[0]
    assert worse.mapping is not None and worse.report is not None and worse.edp is not None
    figures = {name: getattr(worse.report, name) for name in ("cycles", "energy_pj", "edp", "utilization")}
    incumbent = with_part(walked, "figures", **figures).model_copy(
        update={"mapping": tw.Mapping(entries=worse.mapping.entries)}
    )
    false = with_parts(walked, incumbent=incumbent, value=worse.edp, bound=worse.edp, gap=0.0).sealed()
    assert [name for name, passed in outcomes(false, limit=2000).items() if passed is False] == [
        "random mappings", "neighbours", "all mappings", "another seed", "bound",
    ]  # fmt: skip


def test_a_machine_without_such_memories_has_no_such_space(walked: Layer) -> None:
    other = walked.claim.incumbent.model_copy(update={"architecture": tw.load("tpu_v1", "architecture")})
    found = tw.verify_certificate(with_parts(walked, incumbent=other).sealed())
    assert not found.right and found.checks[-1].passed is False and "none such" in found.checks[-1].message


@dataclass(frozen=True)
class Proving:
    """Third-party mapper, given as an object."""

    def search(self, task: Task, run: Run) -> Proposals:
        best = float("inf")
        for part in task.space.enumerate():
            costs = yield part
            best = min(best, float(costs.of(task.objective).min()))
        run.prove(best)


def test_whoever_proves_gets_a_certificate() -> None:
    """An object has no name under which it could be asked again; an enumeration can do without."""
    found = certified(mapper=Proving())
    assert found.claim.incumbent.provenance is not None and found.claim.incumbent.provenance.mapper.name == "Proving"
    assert found.gap == 0 and tw.verify_certificate(found, samples=1000).right
    alone = tw.verify_certificate(found, samples=1000, limit=0)
    assert not alone.right and [check.passed for check in alone.checks[-2:]] == [None, None]
    assert "cannot be asked" in alone.checks[-2].message


def test_where_nothing_is_proved_there_is_none(tmp_path: Path) -> None:
    report = tw.map(CONV, arch="eyeriss", mapper="random", evaluations=100, cache=False, folder=tmp_path)
    assert report.certificate("einsum") is None
    assert list(tmp_path.glob("*.certificate.yaml")) == []
    assert report.data()["layers"][0]["best"]["certificate_file"] is None


def test_it_stands_beside_the_mapping_file(tmp_path: Path, enumerated: Layer) -> None:
    report = tw.map(CONV, arch="eyeriss", mapper="exhaustive", objective="energy", cache=False, folder=tmp_path)
    name = report.data()["layers"][0]["best"]["certificate_file"]
    assert name == "001_einsum.certificate.yaml"
    assert Certificate.from_file(tmp_path / name) == enumerated
    assert tw.verify_certificate(tmp_path / name, samples=100).right


def test_what_is_none_is_refused(tmp_path: Path, enumerated: Layer) -> None:
    with pytest.raises(errors.InputError, match="'objective' is missing"):
        tw.verify_certificate({"kind": "certificate"})
    with pytest.raises(errors.InputError, match="samples must be a number of at least 1"):
        tw.verify_certificate(enumerated, samples=0)
    claim = enumerated.claim.to_data()
    with pytest.raises(errors.InputError, match="must have figures and provenance"):
        tw.verify_certificate(
            enumerated.to_data() | {"claim": claim | {"incumbent": claim["incumbent"] | {"figures": None}}}
        )
    file = tmp_path / "c.yaml"
    file.write_text(enumerated.to_yaml())
    with pytest.raises(errors.InputError, match="this one is of kind 'certificate'"):
        tw.map(file, arch="eyeriss")
