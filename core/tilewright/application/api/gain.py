"""The bound on what fusion can gain in a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.documents.searches import GainOutput
from tilewright.application.run.resident import ResidentNetwork
from tilewright.errors import NotConformableError, Reason
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.reports.costs import COSTS
from tilewright.schema.objective import Objective
from tilewright.tables import Column, Table, Tabular, numbers
from tilewright.values import attributes


@dataclass(frozen=True, repr=False)
class FusionGain(Tabular):
    """Bound on the gain of fusion, in the objective over the whole network.

    `least` bounds every mapping that keeps intermediate results in the memory `home`, whole or in tiles, and has a mapping
    of each layer's map space. `may_stay` are the layers whose results could stay there, because it is known which words
    are read. `unknown` are layers for which the workload does not state whose results they read; `told_unknown` says how many.
    With such layers, `least` and `gain` are None. With `claimed_by`, the bound is the claim of plugins that are not built in.

    Example:
        >>> import tilewright as tw
        >>> gain = tw.fusion_gain("nk,km->nm; n=4 k=4 m=4", "eyeriss", objective="energy", cache=False)
        >>> gain.home, gain.may_stay
        ('GlobalBuffer', ())
    """

    network: str
    architecture: str
    objective: Objective
    unfused: float
    least: float | None
    home: str | None
    may_stay: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    told_unknown: str = ""
    claimed_by: str | None = None

    def __repr__(self) -> str:
        most = "unknown" if self.gain is None else f"at most {100 * self.gain:.1f} %"
        return f"<FusionGain of {self.network} on {self.architecture}: {most}>"

    @property
    def gain(self) -> float | None:
        """Largest possible saving, as a fraction of the cost without fusion."""
        if self.least is None:
            return None
        share = 1 - self.least / self.unfused if self.unfused else 0.0
        return share if share > PROOF_TOLERANCE else 0.0

    def data(self) -> dict[str, Any]:
        return GainOutput(**self.figures()).data()

    def figures(self) -> dict[str, Any]:
        """Return the fields of its document by name."""
        return {
            "workload": self.network,
            "architecture": self.architecture,
            "objective": self.objective.name,
            **attributes(self, "unfused least gain home claimed_by"),
            "may_stay": list(self.may_stay),
            "unknown": list(self.unknown),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict."""
        return [{key: value for key, value in self.figures().items() if key not in ("may_stay", "unknown")}]

    def tables(self) -> Sequence[Table | str]:
        table = Table("mapping", objective_column(self.objective), title=f"{self.network} on {self.architecture}")
        table.add_row("unfused", self.unfused)
        if self.least is not None:
            table.add_row(self.bounded, self.least)
        return [table, self.told, *self.space]

    @property
    def bounded(self) -> str:
        """Name of the bound: the fused mappings that it covers."""
        return f"fused in {self.home}, at least" if self.home else "fused, at least"

    @property
    def space(self) -> list[str]:
        """Statement on the mappings that the bound covers; empty without a bound."""
        if self.least is None or self.home is None:
            return []
        return [
            f"that bound covers results in {self.home}, whole or in tiles, and the layers' map spaces, "
            f"where any tensor may bypass {self.home}"
            + (f"; it is claimed by {self.claimed_by}" if self.claimed_by else "")
        ]

    @property
    def has_choice(self) -> bool:
        """Whether a choice of results that stay can be the best: one is possible, or it is known that none is."""
        return bool(self.may_stay) or not self.unknown

    @property
    def told(self) -> str:
        """Statement on what may stay, and on what that can save."""
        if self.gain is None:
            some = ", ".join(self.unknown[:3]) + (", ..." if len(self.unknown) > 3 else "")
            return (
                f"nothing is known of what fusion can save: {self.told_unknown} ({some}). "
                "State it in a workload file: add `after: [MAKER]` and `reads: {OPERAND: [{maker: MAKER}]}` to such layers. "
                'Of another format, tw.load(FILE, "workload").to_yaml() writes one'
            )
        if self.home is None:
            return "no single on-chip memory may hold both operands and results: none can stay"
        saves = f"fusion in {self.home} saves at most {100 * self.gain:.1f} %"
        if not self.may_stay:
            return f"{saves}; no result may stay whole: the workload states none that layers read whole (reads), and that only layers read"
        return f"{saves}; {len(self.may_stay)} results may stay"


def objective_column(objective: Objective) -> Column:
    """Return the column of an objective, with its unit."""
    if objective.is_additive:
        return COSTS.figures["energy_pj" if objective.energy_power else "cycles"].column
    return numbers(objective.title, objective.unit)


def gain_of(network: ResidentNetwork) -> FusionGain:
    """Return what fusion can gain in a network at most.

    Raises:
        NotConformableError: A layer has no mapping.
        KeyboardInterrupt: The user has interrupted before every layer had a mapping.
    """
    plain, least = network.gain()
    if not math.isfinite(plain):
        failed = [cost.layer for cost in network.costs.values() if cost.layer is not None and cost.layer.report is None]
        unmapped = {  # a layer is searched in several cases
            layer.name: layer.error
            for layer in failed
            if layer.architecture is None or layer.architecture == network.configuration.architecture
        }
        reasons = [
            Reason(
                code="mapping",
                where=name,
                message=f"no mapping without fusion: {'none was found' if error is None else error.message}",
            )
            for name, error in unmapped.items()
        ]
        if not reasons:
            raise KeyboardInterrupt  # before every layer had a mapping
        hint = next((error.hint for error in unmapped.values() if error is not None and error.hint), None)
        told = f"{hint}; " if hint else ""
        raise NotConformableError(
            "the mapper of fused networks", reasons, hint=f"{told}`map` without --fuse says what each layer lacks"
        )
    configuration = network.configuration
    return FusionGain(
        network.workload.name,
        configuration.architecture.name,
        configuration.objective,
        plain,
        None if network.workload.unknown else min(plain, least),
        None if network.home is None else network.home.name,
        tuple(intermediate.maker for intermediate in network.may_stay),
        network.workload.unknown,
        network.workload.told_unknown,
        network.claimed_by,
    )
