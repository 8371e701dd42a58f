"""Guard for each kind of plugin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tilewright.plugin.adapter import RecordedFigure
from tilewright.plugin.guard import answers
from tilewright.plugin.guard.calls import Owner, checked
from tilewright.plugin.guard.groupmappers import fault_of_result
from tilewright.plugin.guard.mappers import GuardedMapper
from tilewright.plugin.guard.models import guarded_model
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

Contract = Mapping[str, Callable[..., str | None]]
"""Method -> check of its answer, which is given with the arguments."""

CONTRACTS: dict[type[PluginSpec[Any]], Contract] = {
    FrontendSpec: {"recognises": answers.fault_of_flag, "load": answers.fault_of_workload},
    AdapterSpec: {
        "expressible": answers.fault_of_verdict,
        "render": answers.fault_of_files,
        "parse": answers.fault_of_inputs,
        "layers": partial(answers.fault_of_items, str, "names"),
        "edges": answers.fault_of_edges,
        "figures": partial(answers.fault_of_items, RecordedFigure, "RecordedFigure"),
    },
    GroupMapperSpec: {"search_group": fault_of_result},
    EstimatorSpec: {"estimate": answers.fault_of_estimate},
    AlgorithmSpec: {"alternatives": answers.fault_of_alternatives},
}
"""Kinds whose methods return data. The others return generators and evaluators, which have guards of their own."""
GUARDS: dict[type[PluginSpec[Any]], Callable[[Any, Owner], Any]] = {
    MapperSpec: GuardedMapper,
    CostModelSpec: guarded_model,
    StrategySpec: GuardedStrategy,
}


class Guarded:
    """A plugin whose answers are checked. It has the methods of its contract that the plugin has."""

    def __init__(self, plugin: Any, owner: Owner, contract: Contract) -> None:
        self.plugin, self.owner = plugin, owner
        for name, fault_of in contract.items():
            if callable(getattr(plugin, name, None)):
                setattr(self, name, partial(self._ask, name, fault_of))

    def _ask(self, name: str, fault_of: Callable[..., str | None], /, *arguments: Any, **named: Any) -> Any:
        method = getattr(self.plugin, name)
        given = inspect.signature(method).bind(*arguments, **named).args if named else arguments
        return checked(self.owner, name, lambda: method(*given), lambda told: fault_of(told, *given))


def guarded(kind: type[PluginSpec[Any]], plugin: Any, owner: Owner) -> Any:
    """Return a built plugin behind the guard of its kind."""
    return Guarded(plugin, owner, CONTRACTS[kind]) if kind in CONTRACTS else GUARDS[kind](plugin, owner)
