"""Structures are recognised from projections, regardless of the names of the dimensions."""

import pytest

from support.problems import problem_of_roles
from tilewright.schema.structure import recognise


@pytest.mark.parametrize(
    ("tensors", "kind", "parts"),
    [
        ("I: n c p+r q+s; W: k c r s; O: n k p q", "conv", "N:n C:c P:p R:r Q:q S:s K:k"),
        ("I: b h 2*x+2*y; W: f h y; O: b f x", "conv", "N:b C:h Q:x S:y K:f"),
        ("I: n g x+u y+v z+w; W: g u v w; O: n g x y z", "conv", "N:n G:g P:x,y R:u,v Q:z S:w"),
        ("I: n c p q; W: k c r s; O: n k p+r q+s", "conv_transpose", "N:n C:c P:p Q:q K:k R:r S:s"),
        ("I: m k; W: k n; O: m n", "gemm", "N:m K:k M:n"),
        ("I: d b e a; W: e c; O: a b c d", "gemm", "N:d,b,a K:e M:c"),
        ("I: h m k; W: h k n; O: h m n", "gemm", "G:h N:m K:k M:n"),
    ],
)
def test_structures(tensors: str, kind: str, parts: str) -> None:
    found = recognise(problem_of_roles(tensors))
    assert found is not None and found.kind == kind
    assert {letter: ",".join(names) for letter, names in found.parts.items()} == dict(
        part.split(":") for part in parts.split()
    )


@pytest.mark.parametrize(
    "tensors",
    [
        "I: i k l; W: k j; V: l j; O: i j",  # three operands
        "I: a+b+c; W: c; O: a b",  # a window of three
        "I: a x; W: x; O: a y",  # y in the output only
        "I: a+r; W: r+a; O: a",  # weights that slide
    ],
)
def test_other_problems_have_no_structure(tensors: str) -> None:
    assert recognise(problem_of_roles(tensors)) is None
