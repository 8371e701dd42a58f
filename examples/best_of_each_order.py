"""Use Tilewright as a library: enumerate a small space and print the best mapping for every loop order in DRAM."""

from tilewright import library
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, FrontendSpec


def main() -> None:
    """Prints one line per order of the loops right inside DRAM."""
    registry = installed()
    problem = registry.make(FrontendSpec, "einsum").load("nk,km->nm; n=4 k=6 m=4").layers[0].problem
    architecture = library.architecture("union_edge")
    evaluator = registry.make(CostModelSpec, "timeloop").bind(problem, architecture)
    space = MapSpace.of(problem, architecture)
    print(f"{problem}: {space.size:,} mappings")
    best: dict[str, float] = {}
    for batch in space.enumerate():
        costs = evaluator.evaluate_batch(batch)
        for order, edp in zip(batch.order[:, 1].tolist(), costs.edp.tolist(), strict=True):
            name = " > ".join(problem.dimension_names[dimension] for dimension in order)
            best[name] = min(edp, best.get(name, float("inf")))
    for name, edp in sorted(best.items(), key=lambda item: item[1]):
        print(f"{name}: best EDP {edp:,.0f} pJ x cycles")


if __name__ == "__main__":
    main()
