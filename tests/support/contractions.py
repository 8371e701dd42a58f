"""Random contractions of two tensors over plain coordinates, every kind of dimension and every layout."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from tilewright.schema.problem import Problem

KINDS = {"g": (1, 1, 1), "m": (1, 0, 1), "n": (0, 1, 1), "k": (1, 1, 0), "x": (1, 0, 0), "y": (0, 1, 0)}
"""Letter -> whether the first operand, the second and the result have such a dimension."""


@st.composite
def contractions(draw: st.DrawFn, most: int = 20_000) -> Problem:
    """Draw a contraction of up to seven dimensions and `most` operations; some dimensions have size 1."""
    kinds = draw(st.lists(st.sampled_from("gmmmnnkkkxy"), min_size=2, max_size=7))
    names = [f"{kind}{at}" for at, kind in enumerate(kinds)]
    sizes: dict[str, int] = {}
    for name in draw(st.permutations(names)):
        room = most // math.prod(sizes.values())
        sizes[name] = draw(st.sampled_from([size for size in (1, 2, 3, 4, 5, 7) if size <= max(1, room)]))
    tensors = [
        {
            "name": name,
            "role": role,
            "projection": draw(st.permutations([word for word in names if KINDS[word[0]][at]])),
        }
        for at, (name, role) in enumerate([("A", "input"), ("B", "weight"), ("C", "output")])
    ]
    return Problem.model_validate({"name": "contraction", "dimensions": sizes, "tensors": tensors})
