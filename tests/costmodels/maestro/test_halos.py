"""Neighbours share the overlap of windows in all steps but the first one, as the declared approximation says."""

import pytest

import tilewright as tw
from tilewright.plugin import CostModelSpec, Entry, FrozenDict, installed

PROBLEM = tw.load("O[k,p] += I[c,p+r] * W[k,c,r]; k=2 c=2 p=4 r=3", "problem")
EDGE = tw.load("union_edge", "architecture")


def entry(target: str, *, keep: bool = False, order: str = "", temporal: str, spatial: str) -> Entry:
    """An entry with tile sizes of k, c, p and r, one digit each."""
    tiles, parts = (FrozenDict(dict(zip("kcpr", map(int, digits), strict=True))) for digits in (temporal, spatial))
    kept = ("I", "W", "O") if keep else None
    return Entry(
        target=target,
        keep=kept,
        temporal_order=tuple(order or "kcpr"),
        temporal_tile_sizes=tiles,
        spatial_tile_sizes=parts,
    )


@pytest.mark.parametrize(("steps", "sent"), [(1, 2 * 4 * 3), (2, 4 * 3 + 6)])
def test_each_neighbour_gets_its_tile_in_the_first_step(steps: int, sent: int) -> None:
    """Four sub-clusters have three columns of the input each, and all together six; c has one or two steps outside of them."""
    inside = f"2{2 // steps}43"
    alone = f"2{2 // steps}13"
    mapping = tw.Mapping(
        entries=(
            entry("C4", keep=True, temporal="2243", spatial="2243"),
            entry("C3", keep=True, order="ckpr", temporal=inside, spatial=inside),
            entry("C3", temporal=inside, spatial=alone),
            entry("C2", temporal=alone, spatial=alone),
            entry("C1", keep=True, temporal=alone, spatial=alone),
            entry("C1", order="kcrp", temporal="1111", spatial="1111"),
        )
    )
    report = tw.evaluate(mapping, PROBLEM, EDGE, models=["maestro", "oracle"])
    maestro, oracle = (
        next(level for level in one.levels if level.name == "L2").tensors["I"].reads for one in report.reports
    )
    assert (maestro, oracle) == (sent, 2 * 6)
    assert "gets a copy in the first step, and only words that are new to all in later ones" in " ".join(
        str(report.data()).split()
    )


def test_the_convention_says_so() -> None:
    spec = installed().find(CostModelSpec, "maestro").spec
    assert isinstance(spec, CostModelSpec) and "after the first step" in spec.conventions["halos"]
