"""`explore`: a workload mapped onto the machines of a space, and which of them nothing else beats."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Unpack, get_args

import numpy as np

from tilewright import api
from tilewright.api.hardware.exploration_report import ExplorationReport
from tilewright.api.hardware.spaces import SpaceSource, architecture_space
from tilewright.api.load import load_workload
from tilewright.api.load.kinds import is_foreign
from tilewright.api.progress import exploration_progress
from tilewright.api.settings import Plan, Settings, Sources
from tilewright.api.words import at_least, checked, one_of
from tilewright.errors import InputError
from tilewright.exploration.cluster import Cluster
from tilewright.exploration.database import VERSION
from tilewright.exploration.exploring import Exploration
from tilewright.exploration.sampling import Sampler, Sampling
from tilewright.exploration.space import ArchitectureSpace, Point
from tilewright.exploration.store import Store
from tilewright.exploration.strategies import Grid, Strategy
from tilewright.exploration.sunstone_arch import SunstoneArch
from tilewright.interrupts import keeping
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.run.network import Engine, map_each
from tilewright.run.parallel import Workers
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

STRATEGIES = ("grid", "sunstone_arch", *get_args(Sampler))
LOOKED_AT = 1000
"""Points among which some machine is looked for before a strategy chooses."""
MOST_TOLD = 5
"""Reasons that are told where no point is a machine."""
FILE = f"explorations-{VERSION}.sqlite"
"""The store in the cache; that of an earlier version is left unchanged."""


@checked
@keeping()
def explore(
    workload: Sources,
    space: SpaceSource,
    *,
    weights: Sequence[int] | None = None,
    mapper: str | Mapper | None = None,
    model: str | CostModel = api.MODEL,
    strategy: str = "grid",
    points: int | None = None,
    bounds: bool = True,
    store: str | os.PathLike[str] | None = None,
    retry: bool = False,
    cluster: str | None = None,
    **settings: Unpack[Settings],
) -> ExplorationReport:
    """Map a workload onto the machines of a space; what `tilewright explore` does.

    Each layer on each machine is written to a store as soon as it is done, and what is there is not searched again, so that an
    exploration that was ended goes on where it was.

    Args:
        workload: as for `map`; of several networks the layers of all are searched, each that they share once.
        weights: how often each of several networks is executed; by default once each.
        space: a space of architectures: a name of the library, a file, a dict or an object.
        mapper, model: as for `map`.
        strategy: `grid`; `sunstone_arch`, which chooses sizes of the innermost memories by the tiles that need them; or (extra `optuna`) `nsga2`
            or `tpe`, which choose points by what was found on others, for the front or for the objective.
        points: so many of the points, drawn at random by `seed` unless the strategy chooses them, each at most once; by default all.
        bounds: whether points are left out that another one surely beats in energy, cycles and area, by the cost model's relaxation.
        store: the SQLite file; by default one in the cache, and none without a cache.
        retry: search again what failed before.
        cluster: the address of a Dask scheduler (extra `dask`), whose workers search in place of `jobs` processes here.
        Everything else: as for `map`; limits count for each layer on each machine. `folder` and `force` are not taken; `resume` says
            what is done in any case.

    Returns:
        The report. Points that are no machine, and layers without a mapping, are rows with their reasons. Ctrl-C returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong, or no point is a machine.
        PluginError: mapper or model cannot be built.
        OutputError: the store cannot be written to.
        ClusterError: no scheduler answers, or it has no workers that may search. One that is lost later is `failure` of the report.
    """
    found = architecture_space(space)
    settings.pop("resume", None)  # it goes on in any case
    for word in ("folder", "force"):
        if settings.get(word):
            raise InputError(f"explore takes no {word}", hint="it goes on by itself with what is in the store")
    at_least(1, points=points)
    one_of("strategy", strategy, STRATEGIES)
    sampler = next((each for each in get_args(Sampler) if each == strategy), None)
    if sampler is not None and points is None:
        raise InputError(f"strategy {strategy} chooses some of the points", hint="points=100 tries so many")
    order = _order(len(found), points if sampler is None else LOOKED_AT, settings.get("seed", 0))
    tried = [found.point(index) for index in order]
    plan, configuration = Plan.of_one(_together(workload, weights), _first(found, tried), mapper, model, settings)
    asked = len(tried) if sampler is None else min(points or len(tried), len(found))
    told = f"{strategy}{'' if points is None else f', {points} points by seed {plan.seed}'}"
    with ExitStack() as closing:
        kept = closing.enter_context(Store(_file(store, plan)))
        if kept.repaired:
            logging.getLogger("tilewright").warning(
                "warning: store %s was damaged: %d rows were taken out, and are searched again where they are asked for; the first: %s",
                kept.path, len(kept.repaired), kept.repaired[0],
            )  # fmt: skip
        seen = closing.enter_context(exploration_progress(asked, plan.objective, plan.progress))
        watch = seen.watch if seen else None
        chosen: Strategy
        if sampler is not None:
            chosen = Sampling(found, asked, sampler, plan.objective, plan.seed)
        elif strategy == "grid":
            chosen = Grid.of(tried, plan.workload, configuration, bounds, watch)
        else:
            chosen = SunstoneArch.of(tried, plan.workload, plan.objective)
        engine: Engine = map_each
        if cluster is not None:
            engine = closing.enter_context(Cluster(cluster, configuration))
        elif plan.jobs > 1:
            engine = partial(map_each, workers=closing.enter_context(Workers(plan.jobs)))
        exploration = Exploration(
            plan.workload, found, configuration, kept, engine, chosen, told, asked, retry, watch
        )  # fmt: skip
        complete = False
        with suppress(KeyboardInterrupt):
            complete = exploration.run()
        return ExplorationReport(exploration.record, exploration.points(), complete, exploration.failure)


@checked
def explored(file: str | os.PathLike[str], exploration: str | None = None) -> ExplorationReport:
    """What a store says of an exploration: of the one whose key begins so, or of the last one begun.

    Raises:
        InputError: there is no store, or it is damaged.
        UnknownNameError: it has no such exploration.
    """
    with Store(file, make=False) as kept:
        record = kept.one(exploration)
        return ExplorationReport(record, kept.points(record))


def _file(store: str | os.PathLike[str] | None, plan: Plan) -> Path | None:
    """Where results go; None: nowhere. Raises InputError."""
    if store is not None and not plan.named:
        raise InputError(
            "a store takes results of installed plugins", hint="nobody knows when an object becomes another one"
        )
    if store is not None:
        return Path(store)
    results = plan.results
    return None if results is None else results.folder / FILE


def _together(workload: Sources, weights: Sequence[int] | None) -> Sources:
    """Several networks as one, each executed as often as its weight says; one, or files of another tool, as they are. Raises InputError."""
    works: list[Any] = list(workload) if isinstance(workload, list | tuple) else [workload]
    if len(works) == 1 or any(isinstance(each, str | os.PathLike) and is_foreign(each) for each in works):
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
        at_least(1, weights=weight)
    networks = [load_workload(each) for each in works]
    if len({network.name for network in networks}) < len(networks):  # such as a layer of each
        networks = [_called(network, each) for network, each in zip(networks, works, strict=True)]
    return Workload.together(networks, weights or [1] * len(works))


def _called(network: Workload, source: Any) -> Workload:
    """By the words that name it."""
    return network.model_copy(update={"name": os.fspath(source)}) if isinstance(source, str | os.PathLike) else network


def _first(space: ArchitectureSpace, tried: Sequence[Point]) -> Architecture:
    """Some machine of the space. Raises InputError: none that was tried is one."""
    for point in tried:
        if point.architecture is not None:
            return point.architecture
    told = Counter("; ".join(map(str, point.reasons)) for point in tried)
    said = "".join(f"\n  {count:,} because of {why}" for why, count in told.most_common(MOST_TOLD))
    raise InputError(f"none of {len(tried):,} points of {space.name} that were tried is a machine:{said}")


def _order(size: int, points: int | None, seed: int) -> Sequence[int]:
    if points is None or points >= size:
        return range(size)
    return [int(each) for each in np.random.default_rng(seed).choice(size, points, replace=False)]
