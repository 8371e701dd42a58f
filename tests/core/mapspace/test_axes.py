"""Spaces without a dimension along two axes of one level: their union, and mappings that Timeloop's files express."""

from pathlib import Path

import pytest

import tilewright as tw
from support.profiles import first
from tilewright.mapspace.axes import on_one_axis
from tilewright.mapspace.space import MapSpace
from tilewright.schema.mapping import Mapping


def splits(space: MapSpace, mapping: Mapping) -> bool:
    """Return whether eyeriss' X and Y unroll one dimension; no memory is between them."""
    unrolled = {target: set[str]() for target in ("GlobalBuffer", "Column")}
    for loop in mapping.loops():
        if loop.spatial and loop.trips > 1:
            unrolled[mapping.entries[loop.entry].target].add(loop.dimension)
    return bool(unrolled["GlobalBuffer"] & unrolled["Column"])


@pytest.mark.parametrize(
    "problem", first(1, "nk,km->nm; n=4 k=1 m=2", "nk,km->nm; n=4 k=4 m=1", "nk,km->nm; n=4 k=2 m=2")
)
def test_the_union_has_all_mappings_without_a_split_dimension(problem: str) -> None:
    whole = tw.space(problem, "eyeriss", constraints="none")
    parts = on_one_axis(whole)
    every = [mapping for batch in whole.enumerate() for mapping in batch]
    assert any(splits(whole, mapping) for mapping in every)
    for mapping in every:
        assert any(part.contains(mapping) for part in parts) != splits(whole, mapping)


def test_what_timeloop_expresses_is_searched_and_written(tmp_path: Path) -> None:
    """The optimum of all mappings unrolls k along both axes."""
    words = {"constraints": "none", "progress": False, "cache": False}
    problem = "nk,km->nm; n=1 k=168 m=1"
    free = tw.map(problem, "eyeriss", **words)  # type: ignore[arg-type]
    own = tw.map(problem, "eyeriss", expressible="timeloop", folder=tmp_path, **words)  # type: ignore[arg-type]
    assert free.edp is not None and own.edp is not None and own.edp > free.edp
    assert own.layers[0].result is not None and own.layers[0].result.proved == "yes"
    assert "expressible in timeloop" in str(own) and not list(tmp_path.glob("*.certificate.yaml"))
    (file,) = tmp_path.glob("001_*.yaml")
    assert "map.yaml" in tw.convert([file], source="tilewright", target="timeloop").files
    with pytest.raises(tw.errors.InputError, match="adapter zigzag declares no limits"):
        tw.map(problem, "eyeriss", expressible="zigzag", **words)  # type: ignore[arg-type]
    refused = tw.map(problem, "eyeriss", expressible="timeloop", uneven=True, **words).layers[0]  # type: ignore[arg-type]
    assert refused.error is not None and "notation timeloop" in str(refused.error)


def test_too_many_choices_are_refused() -> None:
    many = tw.space(
        "abcdefghi,i->abcdefgh; " + " ".join(f"{name}=2" for name in "abcdefghi"), "eyeriss", constraints="none"
    )
    with pytest.raises(tw.errors.InputError, match="9 dimensions of .* at most 8"):
        on_one_axis(many)
