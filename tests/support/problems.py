"""Short forms of problems, and random problems with their mappings and architectures."""

from hypothesis import strategies as st

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import SIZES, architectures, mappings, problems


def problem_of(output: str, *operands: str, **sizes: int) -> Problem:
    """From ranks as text, `n c p+r`; the first operand is the input T0, the others weights; sizes are 2 if not given."""
    tensors = [
        {"name": f"T{index}", "role": role, "projection": ranks.split()}
        for index, (role, ranks) in enumerate([("input", operands[0]), *(("weight", o) for o in operands[1:])])
    ]
    tensors.append({"name": "Z", "role": "output", "projection": output.split()})
    names = dict.fromkeys("".join(ch if ch.isalpha() else " " for ch in " ".join((*operands, output))).split())
    return Problem.model_validate(
        {"name": "p", "dimensions": {name: sizes.get(name, 2) for name in names}, "tensors": tensors}
    )


def problem_of_roles(tensors: str) -> Problem:
    """`I: n c p+r; W: k c r; O: n k p` with sizes 2."""
    roles = {"I": "input", "W": "weight", "V": "weight", "O": "output"}
    lines = [part.split(":") for part in tensors.split(";")]
    ranks = {name.strip(): text.split() for name, text in lines}
    names = dict.fromkeys(
        word for texts in ranks.values() for rank in texts for word in rank.replace("2*", "").split("+")
    )
    return Problem.model_validate(
        {
            "name": "p",
            "dimensions": dict.fromkeys(names, 2),
            "tensors": [{"name": n, "role": roles[n], "projection": r} for n, r in ranks.items()],
        }
    )


@st.composite
def triples(draw: st.DrawFn) -> tuple[Problem, Architecture, Mapping]:
    """A problem, an architecture and a mapping of the one to the other."""
    problem, architecture = draw(problems()), draw(architectures())
    return problem, architecture, draw(mappings(problem, architecture))


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
