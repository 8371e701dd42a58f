"""A proof that leaves a gap says why, and which option closes it; `compare` cuts no prover that limits itself."""

import tilewright as tw

LAYER = "O[k,p,q] += I[c,p+r,q+s] * W[k,c,r,s]; k=16 c=8 p=14 q=14 r=3 s=3"


def test_a_gap_has_a_reason_with_its_option() -> None:
    report = tw.map(LAYER, "simba", constraints="none", mapper="optimal", mapper_options={"width": 2}, cache=False)
    reason = "stages have more states than are kept; --mapper-option width=N keeps N"
    assert report.data()["layers"][0]["search"]["gap_reason"] == reason
    line = next(line for line in str(report).splitlines() if line.startswith("not proved: "))
    assert "a mapping of this space may be up to" in line and line.endswith(reason)


def test_a_proof_names_what_its_space_fixes() -> None:
    report = tw.map("mk,kn->mn; m=4 n=4 k=4", "eyeriss", mapper="optimal", cache=False)
    assert "better, with spatial order as the problem lists its dimensions: yes" in str(report)
    assert report.data()["layers"][0]["search"]["gap_reason"] is None


def test_limits_on_evaluations_cut_heuristics_and_no_proof() -> None:
    report = tw.compare(LAYER, "eyeriss", mappers=["random", "optimal"], evaluations=50, cache=False, progress=False)
    heuristic, prover = (row["search"] for row in report.data()["rows"])
    assert heuristic["stopped_by"] == "--evaluations 50" and not heuristic["cut"]
    assert prover["gap"] < 1e-8 and prover["evaluated"] > 50 and not prover["cut"]
    assert "note: --evaluations does not limit optimal, which ends with its proof" in report.messages()


def test_a_prover_that_is_cut_is_marked() -> None:
    report = tw.compare(
        LAYER, "simba", constraints="none", mappers=["optimal"], seconds=0.01, cache=False, progress=False
    )
    assert report.data()["rows"][0]["search"]["cut"]
    assert "cut, " in str(report) and "so its mapping may be no optimum" in str(report)
