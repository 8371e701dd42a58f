"""Proofs that end at a gap: the bound holds, and the mapping is as near as asked for."""

import pytest

import tilewright as tw
from support.profiles import first


@pytest.mark.parametrize(
    ("layer", "arch", "gap"),
    first(1, ("n4", "eyeriss", "30%"), ("n29", "simba", 0.05), ("n12", "gemmini", "10%"), ("n29", "eyeriss", "20%")),
)
def test_no_mapping_is_better_by_more_than_the_gap(layer: str, arch: str, gap: str | float) -> None:
    words = {"constraints": "none", "cache": False, "progress": False}
    exact = tw.map(f"resnet50/{layer}", arch, **words).layers[0].result  # type: ignore[arg-type]
    report = tw.map(f"resnet50/{layer}", arch, gap=gap, **words)  # type: ignore[arg-type]
    near = report.layers[0].result
    part = float(gap.rstrip("%")) / 100 if isinstance(gap, str) else gap
    assert exact is not None and near is not None and exact.lower_bound and near.lower_bound and exact.proved == "yes"
    assert near.lower_bound <= exact.value * (1 + 1e-9)
    assert exact.value * (1 - 1e-9) <= near.value <= near.lower_bound * (1 + part) * (1 + 1e-6)
    assert near.evaluated <= exact.evaluated
    if near.proved != "yes":
        assert "ended at the gap that was asked for" in "\n".join(report.messages()) + str(report)


def test_a_near_bound_leaves_out_the_widest_pass() -> None:
    words = {"objective": "energy", "constraints": "none", "cache": False, "progress": False}
    exact = tw.map("resnet50/n29", "simba", **words).layers[0].result  # type: ignore[arg-type]
    options = {"narrow_gap": 0.9, "width": 512}
    near = tw.map("resnet50/n29", "simba", mapper_options=options, **words).layers[0].result  # type: ignore[arg-type]
    assert exact is not None and near is not None and exact.lower_bound and near.lower_bound
    assert "gap_by_narrow" in near.figures and near.figures["widest"] <= 2 * 256 < exact.figures["widest"]
    assert near.value / 1.9 <= near.lower_bound <= exact.value * (1 + 1e-9) and exact.value <= near.value * (1 + 1e-9)


@pytest.mark.parametrize("gap", ["5", "-1%", "most", 1.5])
def test_a_gap_is_a_part(gap: str | float) -> None:
    with pytest.raises(tw.errors.InputError, match="gap must be a part from 0 to 1"):
        tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", gap=gap, progress=False)


def test_a_gap_needs_a_prover() -> None:
    with pytest.raises(tw.errors.InputError, match="none of the mappers proves up to a gap"):
        tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", mapper="random", gap="5%", progress=False)
