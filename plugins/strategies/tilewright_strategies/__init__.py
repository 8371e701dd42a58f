"""Registration of the built-in strategies; a strategy's module is imported when it is built."""

from __future__ import annotations

from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import StrategySpec, lazy

GROUP = 16
"""Number of points whose layers are searched together."""


@hookimpl
def tilewright_plugins() -> list[StrategySpec]:
    """Return the built-in strategies."""
    return [
        StrategySpec(
            name="grid",
            default_for=("exploration",),
            summary="All points or, if bounds are known, the most promising first and none that is dominated by its bounds.",
            factory=lazy("tilewright_strategies.grid", "Grid"),
            interface=1,
        ),
        StrategySpec(
            name="sunstone_arch",
            summary="Sizes of the innermost memories by the tiles that need them, in one joint search (Sunstone-arch).",
            factory=lazy("tilewright_strategies.sunstone_arch", "SunstoneArch"),
            interface=1,
            together=True,
        ),
        *(
            StrategySpec(
                name=name,
                summary=f"Points by {sampler} of Optuna, which learns from earlier points, for the {purpose}.",
                factory=lazy("tilewright_strategies.sampling", "Sampling", name),
                interface=1,
                needs=("optuna",),
                hint="pip install optuna",
                samples=True,
            )
            for name, sampler, purpose in (("nsga2", "NSGA-II", "Pareto front"), ("tpe", "TPE", "objective"))
        ),
    ]
