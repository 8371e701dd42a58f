"""Guard for each kind of plugin."""

from __future__ import annotations

from typing import Any

from tilewright.plugin.guard.algorithms import GuardedAlgorithm
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.estimators import GuardedEstimator
from tilewright.plugin.guard.groupmappers import GuardedGroupMapper
from tilewright.plugin.guard.mappers import GuardedMapper
from tilewright.plugin.guard.models import guarded_model
from tilewright.plugin.guard.notations import GuardedAdapter, GuardedFrontend
from tilewright.plugin.guard.strategies import GuardedStrategy
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    PluginSpec,
    StrategySpec,
)

GUARDS: dict[type[PluginSpec[Any]], Any] = {
    MapperSpec: GuardedMapper,
    GroupMapperSpec: GuardedGroupMapper,
    CostModelSpec: guarded_model,
    FrontendSpec: GuardedFrontend,
    AdapterSpec: GuardedAdapter,
    EstimatorSpec: GuardedEstimator,
    AlgorithmSpec: GuardedAlgorithm,
    StrategySpec: GuardedStrategy,
}


def guarded(kind: type[PluginSpec[Any]], plugin: Any, owner: Owner) -> Any:
    """Return a built plugin behind the guard of its kind."""
    return GUARDS[kind](plugin, owner)
