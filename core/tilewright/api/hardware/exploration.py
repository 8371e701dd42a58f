"""`explore`: a workload mapped onto the machines of a space, and which of them nothing else beats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np

from tilewright import api
from tilewright.api.hardware.exploration_report import ExplorationReport
from tilewright.api.hardware.spaces import SpaceSource, architecture_space
from tilewright.api.settings import Plan, Settings, Sources
from tilewright.api.words import at_least, checked, one_of
from tilewright.errors import InputError
from tilewright.exploration.cluster import Cluster
from tilewright.exploration.exploring import Engine, Exploration
from tilewright.exploration.store import Store
from tilewright.exploration.strategies import Grid, Strategy
from tilewright.exploration.sunstone_arch import SunstoneArch
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.run.network import map_each
from tilewright.run.parallel import Workers

STRATEGIES = ("grid", "sunstone_arch")
FILE = "explorations.sqlite"
"""The store in the cache."""


@checked
def explore(
    workload: Sources,
    space: SpaceSource,
    *,
    mapper: str | Mapper = api.OTHERWISE,
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
        workload: as for `map`.
        space: a space of architectures: a name of the library, a file, a dict or an object.
        mapper, model: names of installed plugins, or objects of your own.
        strategy: `grid`, or `sunstone_arch`, which chooses sizes of the innermost memories by the tiles that need them.
        points: so many of the points, drawn at random by `seed`, each at most once; by default all.
        bounds: whether points are left out that another one surely beats in energy, cycles and area, by the cost model's relaxation.
        store: the SQLite file; by default one in the cache, and none without a cache.
        retry: search again what failed before.
        cluster: the address of a Dask scheduler (extra `dask`), whose workers search in place of `jobs` processes here.
        Everything else: as for `map`; limits count for each layer on each machine. `folder`, `resume` and `force` are not taken.

    Returns:
        The report. Points that are no machine, and layers without a mapping, are rows with their reasons. Ctrl-C returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong, or no point is a machine.
        PluginError: mapper or model cannot be built.
        OutputError: the store cannot be written to.
    """
    found = architecture_space(space)
    for word in ("folder", "resume", "force"):
        if settings.get(word):
            raise InputError(f"explore takes no {word}", hint="it goes on by itself with what is in the store")
    at_least(1, points=points)
    one_of("strategy", strategy, STRATEGIES)
    tried = [found.point(index) for index in _order(len(found), points, settings.get("seed", 0))]
    first = next((point.architecture for point in tried if point.architecture is not None), None)
    if first is None:
        told = "; ".join(str(each) for point in tried[:3] for each in point.reasons)
        raise InputError(f"no point of {found.name} that was tried is a machine: {told or 'none was tried'}")
    plan = Plan.of(workload, first, [mapper], [model], settings)
    (built,) = plan.models
    if built.error is not None:
        raise built.error
    configuration = plan.configuration(mapper, built)
    chosen: Strategy
    if strategy == "grid":
        chosen = Grid.of(tried, plan.workload, configuration, bounds)
    else:
        chosen = SunstoneArch.of(tried, plan.workload, plan.objective)
    told = f"{strategy}{'' if points is None else f', {points} points by seed {plan.seed}'}"
    with ExitStack() as closing:
        kept = closing.enter_context(Store(_file(store, plan)))
        engine: Engine = map_each
        if cluster is not None:
            engine = closing.enter_context(Cluster(cluster))
        elif plan.jobs > 1:
            engine = partial(map_each, workers=closing.enter_context(Workers(plan.jobs)))
        exploration = Exploration(
            plan.workload, found, configuration, kept, engine, chosen, told, len(tried), retry
        )  # fmt: skip
        with suppress(KeyboardInterrupt):
            exploration.run()
        return ExplorationReport(exploration.record, exploration.points())


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


def _order(size: int, points: int | None, seed: int) -> Sequence[int]:
    if points is None or points >= size:
        return range(size)
    return [int(each) for each in np.random.default_rng(seed).choice(size, points, replace=False)]
