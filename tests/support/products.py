"""Random tensor products without windows."""

from hypothesis import strategies as st

from tilewright.schema.problem import Problem
from tilewright.testing.strategies import SIZES


@st.composite
def products(draw: st.DrawFn) -> Problem:
    """Two operands, each tensor with a dimension at most once."""
    names = "ABCD"[: draw(st.integers(1, 4))]
    sizes = {name: draw(st.sampled_from(SIZES[:6])) for name in names}
    ranks = st.lists(st.sampled_from(names), unique=True)
    tensors = [
        {"name": f"T{index}", "role": role, "projection": draw(ranks)}
        for index, role in enumerate(("input", "weight", "output"))
    ]
    return Problem.model_validate({"name": "product", "dimensions": sizes, "tensors": tensors})
