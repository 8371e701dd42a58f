"""`explore`: a workload mapped onto the machines of a space, and which of them nothing else beats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from tilewright import api
from tilewright.api.hardware.spaces import SpaceSource, architecture_space
from tilewright.api.settings import Plan, Settings, Sources
from tilewright.api.words import at_least, checked
from tilewright.errors import InputError
from tilewright.exploration.space import ArchitectureSpace, Point
from tilewright.files import write_text
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.run.network import MappedLayer, map_workload
from tilewright.schema.report import UNITS, Objective
from tilewright.schema.workload import Workload
from tilewright.tables import Table, Tabular, csv_text, numbers


@dataclass(frozen=True)
class Explored:
    """One point with what was found on it; no layers where it is no machine."""

    point: Point
    layers: tuple[MappedLayer, ...] = ()

    @property
    def energy_pj(self) -> float:
        """Of the whole workload; inf where some layer has no mapping."""
        return (
            math.fsum(math.inf if each.energy_pj is None else each.count * each.energy_pj for each in self.layers)
            if self.layers
            else math.inf
        )

    @property
    def cycles(self) -> float:
        """Of the whole workload, layer after layer; inf where some layer has no mapping."""
        return (
            sum(math.inf if each.cycles is None else each.count * each.cycles for each in self.layers)
            if self.layers
            else math.inf
        )

    @property
    def area_um2(self) -> float | None:
        return None if self.point.architecture is None else self.point.architecture.area_um2

    def of(self, objective: Objective) -> float:
        """The figure to make small: of sums over the workload; EDP is the product of both sums."""
        return {"edp": self.energy_pj * self.cycles, "energy": self.energy_pj, "cycles": self.cycles}[objective]

    @property
    def reason(self) -> str | None:
        """Why there is no figure."""
        if not self.layers:
            return "; ".join(map(str, self.point.reasons))
        without = [each for each in self.layers if each.report is None]
        told = [
            f"{each.name}: {each.error or (each.result.told if each.result else 'not searched')}" for each in without
        ]
        return "; ".join(told) or None


@dataclass(frozen=True, repr=False)
class ExplorationReport(Tabular):
    """What was explored, point by point. `asked`: how many points were to be tried."""

    workload: Workload
    space: ArchitectureSpace
    objective: Objective
    points: tuple[Explored, ...]
    asked: int

    def __repr__(self) -> str:
        return f"<ExplorationReport of {self.workload.name} on {self.space.name}: {len(self.points)} points>"

    @property
    def found(self) -> tuple[Explored, ...]:
        """Points on which every layer has a mapping, the best first."""
        good = [each for each in self.points if math.isfinite(each.energy_pj)]
        return tuple(sorted(good, key=lambda each: each.of(self.objective)))

    @property
    def front(self) -> tuple[Explored, ...]:
        """Those that no other is at least as good as in energy, cycles and area (where it is known) and better in one."""
        costs = {each.point.index: (each.energy_pj, each.cycles, each.area_um2 or 0.0) for each in self.found}

        def beaten(mine: tuple[float, ...]) -> bool:
            return any(
                other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in costs.values()
            )

        return tuple(each for each in self.found if not beaten(costs[each.point.index]))

    def rows(self) -> list[dict[str, Any]]:
        """One per point."""
        front = {each.point.index for each in self.front}
        return [
            {"point": each.point.index, **each.point.values}
            | {
                "energy_pj": _finite(each.energy_pj),
                "cycles": _finite(each.cycles),
                "edp": _finite(each.of("edp")),
                "area_um2": each.area_um2,
                "on_front": each.point.index in front,
                "reason": each.reason,
            }
            for each in self.points
        ]

    def data(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "schema_version": 1,
            "workload": self.workload.name,
            "space": self.space.name,
            "size": len(self.space),
            "asked": self.asked,
            "objective": self.objective,
            "points": self.rows(),
        }

    def save(self, file: str | Path) -> Path:
        """Write the rows as comma-separated values. Raises OutputError."""
        rows = self.rows()
        write_text(Path(file), csv_text(list(rows[0]) if rows else ["point"], rows))
        return Path(file)

    def tables(self) -> Sequence[Table | str]:
        found, front = self.found, self.front
        lines: list[Table | str] = [
            f"{self.workload.name} on {self.space.name}: {len(self.points):,} of {len(self.space):,} points tried, "
            f"{len(found):,} with mappings, {len(front):,} on the front of energy, cycles and area"
        ]
        lines += [f"  {self.asked - len(self.points):,} were not tried"] if len(self.points) < self.asked else []
        lines += [f"  {count:,} without: {why}" for why, count in self._without()]
        table = Table(
            "point", *self.space.choices, numbers("energy", "pJ"), numbers("cycles"), numbers("EDP", "pJ x cycles"),
            numbers("area", "mm2", decimals=4), title=f"the front, least {self.objective} ({UNITS[self.objective]}) first",
        )  # fmt: skip
        for each in front:
            area = None if each.area_um2 is None else each.area_um2 * 1e-6
            values = [value if isinstance(value, str) else f"{value:,.10g}" for value in each.point.values.values()]
            table.add_row(str(each.point.index), *values, each.energy_pj, each.cycles, each.of("edp"), area)
        return [*lines, "", table] if front else lines

    def _without(self) -> list[tuple[str, int]]:
        why = Counter(
            (each.point.reasons[0].where or each.point.reasons[0].code)
            if each.point.reasons
            else "layers without a mapping"
            for each in self.points
            if not math.isfinite(each.energy_pj)
        )
        return why.most_common()


@checked
def explore(
    workload: Sources,
    space: SpaceSource,
    *,
    mapper: str | Mapper = api.MAPPER,
    model: str | CostModel = api.MODEL,
    points: int | None = None,
    **settings: Unpack[Settings],
) -> ExplorationReport:
    """Map a workload onto the machines of a space; what `tilewright explore` does.

    What was searched before comes from the cache of results, so that an exploration that was ended goes on where it was.

    Args:
        workload: as for `map`.
        space: a space of architectures: a name of the library, a file, a dict or an object.
        mapper, model: names of installed plugins, or objects of your own.
        points: so many of the points, drawn at random by `seed`, each at most once; by default all, in order.
        Everything else: as for `map`; limits count for each layer on each machine. `folder`, `resume` and `force` are not taken.

    Returns:
        The report. Points that are no machine, and layers without a mapping, are rows with their reasons. Ctrl-C returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong, or no point is a machine.
        PluginError: mapper or model cannot be built.
    """
    found = architecture_space(space)
    for word in ("folder", "resume", "force"):
        if settings.get(word):
            raise InputError(
                f"explore takes no {word}",
                hint="save(FILE) of the report writes its rows; results are kept in the cache",
            )
    at_least(1, points=points)
    order = _order(len(found), points, settings.get("seed", 0))
    judged: list[Explored] = []
    plan = None
    with suppress(KeyboardInterrupt):
        for index in order:
            point = found.point(index)
            if point.architecture is None:
                judged.append(Explored(point))
                continue
            if plan is None:
                plan = Plan.of(workload, point.architecture, [mapper], [model], settings)
                (built,) = plan.models
                if built.error is not None:
                    raise built.error
                configuration = plan.configuration(mapper, built)
            here = replace(configuration, architecture=point.architecture)
            layers = tuple(map_workload(plan.workload, here, jobs=plan.jobs, cache=plan.results))
            ended = any(each.result is not None and each.result.stop == "cancelled" for each in layers)
            if ended or len(layers) < len(plan.workload.distinct()):
                break
            judged.append(Explored(point, layers))
    if plan is None:
        told = "; ".join(str(each.reason) for each in judged[:3])
        raise InputError(f"no point of {found.name} that was tried is a machine: {told or 'none was tried'}")
    return ExplorationReport(plan.workload, found, plan.objective, tuple(judged), len(order))


def _order(size: int, points: int | None, seed: int) -> Sequence[int]:
    if points is None or points >= size:
        return range(size)
    return [int(each) for each in np.random.default_rng(seed).choice(size, points, replace=False)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
