"""Enumerate a small map space and print the best mapping for every loop order in DRAM."""

import tilewright as tw
from tilewright.plugin import CostModelSpec


def main() -> None:
    """Prints one line per order of the loops right inside DRAM."""
    space = tw.space("nk,km->nm; n=4 k=6 m=4", arch="union_edge", constraints="none")
    problem = space.problem
    evaluator = tw.installed().make(CostModelSpec, "timeloop").bind(problem, space.architecture)
    print(f"{problem}: {space.size:,} mappings")
    best: dict[str, float] = {}
    for part in space.enumerate():
        costs = evaluator.evaluate_batch(part.batch())
        for order, edp in zip(part.orders[:, 0].tolist(), costs.edp.tolist(), strict=True):
            name = " > ".join(problem.dimension_names[dimension] for dimension in order)
            best[name] = min(edp, best.get(name, float("inf")))
    for name, edp in sorted(best.items(), key=lambda item: item[1]):
        print(f"{name}: best EDP {edp:,.0f} pJ x cycles")


if __name__ == "__main__":
    main()
