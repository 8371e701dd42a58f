"""Random inputs, mostly expressible in AccelForge's files: each dimension has a tensor, and updates cost a write."""

from hypothesis import assume
from hypothesis import strategies as st

from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems


@st.composite
def inputs(draw: st.DrawFn, max_macs: int = 4096) -> InputSet:
    """A mapping with its problem and architecture."""
    problem, architecture = (
        draw(problems(max_macs=max_macs)),
        draw(architectures(roomy=draw(st.booleans()), widths=True)),
    )
    used = {name for tensor in problem.tensors for name in tensor.dimensions}
    assume(used)
    sizes = {name: size for name, size in problem.dimensions.items() if name in used}
    problem = Problem.model_validate(problem.to_data() | {"dimensions": sizes})
    data = architecture.to_data()
    for cluster in data["clusters"]:
        for memory in cluster.get("memories", ()):
            memory.pop("update_energy_pj", None)
    architecture = Architecture.model_validate(data)
    return InputSet(problem, architecture, draw(mappings(problem, architecture)))
