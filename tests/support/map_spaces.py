"""Random rules for map spaces."""

from hypothesis import strategies as st

from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Variant
from tilewright.schema.problem import Problem


@st.composite
def rules(draw: st.DrawFn, problem: Problem, architecture: Architecture) -> Variant:
    """Draw rules of every kind that a map space has; some leave it empty."""
    names = list(problem.dimensions)
    skeleton = Skeleton.for_architecture(architecture)
    subset = st.lists(st.sampled_from(names), unique=True)
    bounds = st.dictionaries(
        st.sampled_from(names),
        st.one_of(st.integers(1, 3), st.builds(lambda m: {"min": 1, "max": m}, st.integers(1, 6))),
        max_size=1,
    )
    temporal, spatial, keep = [], [], []
    for entry in skeleton.entries[1:]:
        if entry.steps and entry.inside and draw(st.booleans()):
            ordered = draw(st.permutations(names))[: draw(st.sampled_from([0, 0, 1, 2, 3]))]
            first, last = sorted(draw(st.sampled_from([0, 0, 1, 3])) for _ in range(2))
            temporal.append(
                {
                    "memory": entry.inside,
                    "only": draw(st.none() | subset),
                    "factors": draw(bounds) if draw(st.booleans()) else {},
                    "outermost": ordered[:first],
                    "order": ordered[first:last],
                    "innermost": ordered[last:],
                }
            )
        if entry.unrolls and draw(st.booleans()):
            size = architecture.cluster(entry.target).fanout.size
            spatial.append(
                {
                    "cluster": entry.target,
                    "only": draw(st.none() | subset),
                    "factors": draw(bounds) if draw(st.booleans()) else {},
                    "min_utilization": draw(st.sampled_from([0.0, 0.0, 1 / size, 0.5])),
                    "max_utilization": draw(st.sampled_from([1.0, 1.0, 0.5])),
                }
            )
    for memory in architecture.memories:
        if draw(st.integers(0, 2)) == 0:
            words = [*problem.tensor_names, "input", "output"]
            bypass, free = draw(st.sampled_from(words)), draw(st.sampled_from(words))
            keep.append({"memory": memory.name, "bypass": [bypass], "free": [free]})
    return Variant.model_validate({"temporal": temporal, "spatial": spatial, "keep": keep})
