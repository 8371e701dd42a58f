"""`explore`: a workload mapped onto the architectures of a space, and the Pareto-optimal ones."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from tilewright.application.api.call_arguments import checked, whole
from tilewright.application.api.hardware.exploration_report import ExplorationReport
from tilewright.application.api.hardware.spaces import SpaceSource, architecture_space, fixed_energies, swept
from tilewright.application.api.load import Source, load_workload
from tilewright.application.api.load.kinds import is_foreign
from tilewright.application.api.plan import Plan, Sources, warn_of_inputs
from tilewright.application.api.progress import exploration_progress
from tilewright.application.api.settings import ExploreSettings
from tilewright.application.exploration.cluster import Cluster
from tilewright.application.exploration.exploring import Exploration
from tilewright.application.exploration.space import ArchitectureSpace, Point, Points
from tilewright.application.exploration.store import SCHEMA, Store
from tilewright.application.run.network import Engine, map_each
from tilewright.errors import CallError, InputError
from tilewright.plugin.guard.processes import Workers
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import StrategySpec
from tilewright.plugin.strategy import drawn
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

LOOKED_AT = 1000
"""Number of points among which to look for a valid architecture before the strategy starts."""
MAX_REASONS = 5
"""Maximum number of reasons listed if no point is a valid architecture."""
FILE = f"explorations-{SCHEMA.version}.sqlite"
"""File name of the store in the cache folder; the store of an earlier version stays unchanged."""


@checked
def explore(
    workload: Sources,
    space: SpaceSource | None = None,
    **settings: Unpack[ExploreSettings],
) -> ExplorationReport:
    """Map a workload onto the architectures of a space, as `tilewright explore` does.

    Every result, one layer on one architecture, is stored once it is found. Stored results are not searched again, so
    an interrupted exploration continues where it ended. The limits apply to each layer on each architecture.

    Args:
        workload: As for `map`. For several networks, the layers of all are searched, and shared ones once.
        space: A space of architectures: a library name, a file, a dict or an object.
        **settings: Those of `ExploreSettings` (tilewright.application.api.settings).

    Returns:
        The report. Invalid points, and layers without a mapping, are rows with their reasons.
        Ctrl-C returns the finished part.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid, or no point is a valid architecture.
        PluginError: Mapper or model cannot be built.
        OutputError: The store cannot be written to.
        ClusterError: No scheduler answers, or it has no workers that may search. The report's
            `failure` records a cluster that is lost later.

    Example:
        >>> import tilewright as tw
        >>> sweep = {"GlobalBuffer.capacity_words": [1024, 4096]}
        >>> report = tw.explore("nk,km->nm; n=4 k=4 m=4", arch="eyeriss", vary=sweep, mapper="random", evaluations=20)
        >>> len(report.rows())
        2
    """
    arch, vary = settings["arch"], settings["vary"] or None
    machines = _machines(space, arch, vary)
    points, cluster = settings["points"], settings["cluster"]
    strategy = settings["strategy"] or installed().default(StrategySpec, "exploration")
    whole(1, **({} if points is None else {"points": points}))
    whole(0, seed=settings["seed"])
    spec = installed().find(StrategySpec, strategy).spec
    samples = isinstance(spec, StrategySpec) and spec.samples
    if samples and points is None:
        raise InputError(f"strategy {strategy} needs a number of points", hint="for example points=100")
    options = settings["strategy_options"] or {}
    chosen = installed().make(StrategySpec, strategy, options)
    asked = min(points or len(machines), len(machines))
    built = Points(machines)
    tried = drawn(len(machines), LOOKED_AT if samples else asked, settings["seed"])
    plan, configuration = Plan.of_one(
        _together(workload, settings["weights"], settings["notation"]), _first(machines, map(built, tried)), settings
    )
    warn_of_inputs(plan.workload, configuration)
    name = ", ".join([strategy, *(f"{key}={value}" for key, value in options.items())])
    told = f"{name}{'' if points is None else f', {points} points by seed {plan.seed}'}"
    with ExitStack() as closing:
        kept = closing.enter_context(Store(_file(settings["store"], plan)))
        if kept.repaired:
            logging.getLogger("tilewright").warning(
                "warning: store %s was damaged: %d rows were taken out, and are searched again where they are asked for; the first: %s",
                kept.path, len(kept.repaired), kept.repaired[0],
            )  # fmt: skip
        seen = closing.enter_context(exploration_progress(asked, plan.objective, plan.progress))
        watch = seen.watch if seen else None
        engine: Engine = map_each
        if cluster is not None:
            engine = closing.enter_context(Cluster(cluster, configuration))
        elif plan.jobs > 1:
            engine = partial(map_each, workers=closing.enter_context(Workers(plan.jobs)))
        bounds = settings["bounds"] and vary is None
        together = isinstance(spec, StrategySpec) and spec.together
        exploration = Exploration(
            plan.workload, machines, configuration, kept, engine, chosen, told, asked, built, bounds, settings["retry"], watch, together,
            () if samples or together or vary is not None else tried,
        )  # fmt: skip
        complete = exploration.run()
        return ExplorationReport(exploration.record, exploration.points(), complete, exploration.failure)


def _machines(space: SpaceSource | None, arch: Source | None, vary: Mapping[str, Any] | None) -> ArchitectureSpace:
    """Return the space that is given, or the sweep of an architecture.

    Raises:
        CallError: Both are given, or none.
        InputError, UnknownNameError: One of them is invalid.
    """
    sweep = "an architecture and a field, such as --arch eyeriss --vary GlobalBuffer.capacity=32KiB,64KiB"
    if space is not None and arch is None and vary is None:
        return architecture_space(space)
    if space is not None or arch is None or vary is None:
        raise CallError(
            "explore needs a space, or an architecture and the fields to vary", hint=f"give --space, or {sweep}"
        )
    machines = swept(arch, vary)
    for name in fixed_energies(machines):
        logging.getLogger("tilewright").warning(
            "note: the energies of %s are the same at every capacity; `component: sram` in place of them has them estimated", name
        )  # fmt: skip
    return machines


@checked
def explored(file: str | os.PathLike[str], exploration: str | None = None) -> ExplorationReport:
    """Return an exploration from a store: the one whose key has this prefix, or the last one begun.

    Raises:
        InputError: There is no store, or it is damaged.
        UnknownNameError: The store has no such exploration.

    Example:
        >>> import tilewright as tw
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = f"{folder}/store.sqlite"
        ...     sweep = {"GlobalBuffer.capacity_words": [1024]}
        ...     first = tw.explore("nk,km->nm; n=4 k=4 m=4", arch="eyeriss", vary=sweep, evaluations=20, store=store)
        ...     again = tw.explored(store)
        >>> again.rows() == first.rows()
        True
    """
    with Store(file, make=False) as kept:
        return report_of(kept, exploration)


def report_of(store: Store, exploration: str | None = None) -> ExplorationReport:
    """Return an exploration from an open store; see `explored`."""
    record = store.one(exploration)
    return ExplorationReport(record, store.points(record))


def _file(store: str | os.PathLike[str] | None, plan: Plan) -> Path | None:
    """Return the file of the store, or None for no store.

    Raises:
        InputError: The run has plugin objects, so that its results have no key.
    """
    if store is not None and not plan.named:
        raise InputError(
            "a store holds results of installed plugins only",
            hint="objects have no version to key results by; install the plugin, or omit the store",
        )
    if store is not None:
        return Path(store)
    results = plan.results
    return None if results is None else results.folder / FILE


def _together(workload: Sources, weights: Sequence[int] | None, notation: str | None) -> Sources:
    """Return several networks as one, each repeated by its weight.

    A single network and files of another tool are returned unchanged.

    Raises:
        InputError: The weights do not suit the networks.
    """
    works: list[Any] = list(workload) if isinstance(workload, list | tuple) else [workload]
    if len(works) == 1 or any(isinstance(work, str | os.PathLike) and is_foreign(work, notation) for work in works):
        if weights is not None:
            raise InputError(
                "weights are for several networks", hint="give two networks or more, and a weight for each"
            )
        return workload
    if weights is not None and len(weights) != len(works):
        raise InputError(
            f"there are {len(weights)} weights for {len(works)} networks", hint="give one for each, such as 3,1"
        )
    for weight in weights or ():
        whole(1, weights=weight)
    networks = [load_workload(work) for work in works]
    if len({network.name for network in networks}) < len(networks):  # for example, one layer of each network
        networks = [_called(network, work) for network, work in zip(networks, works, strict=True)]
    return Workload.together(networks, weights or [1] * len(works))


def _called(network: Workload, source: Any) -> Workload:
    """Return the network, named as the user named it."""
    return network.model_copy(update={"name": os.fspath(source)}) if isinstance(source, str | os.PathLike) else network


def _first(space: ArchitectureSpace, tried: Iterable[Point]) -> Architecture:
    """Return the first valid architecture among the tried points.

    Raises:
        InputError: None of the tried points is valid.
    """
    told: Counter[str] = Counter()
    for point in tried:
        if point.architecture is not None:
            return point.architecture
        told["; ".join(map(str, point.reasons))] += 1
    said = "".join(f"\n  {count:,} because of {why}" for why, count in told.most_common(MAX_REASONS))
    raise InputError(f"none of {told.total():,} points of {space.name} that were tried is a valid architecture:{said}")
