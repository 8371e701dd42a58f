"""Bounds that another result of a run refutes: a mapping of the same space costs less by the same model."""

from __future__ import annotations

from dataclasses import replace

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import MappedLayer
from tilewright.errors import PluginError
from tilewright.formats import Form
from tilewright.plugin.guard.calls import Owner, fault
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.objective import Objective


def tried(
    layer: MappedLayer, configuration: RunConfiguration, bound: float, objective: Objective, cost: float, finder: str
) -> MappedLayer:
    """Return a layer without its bound if a cost refutes it. That is a failure of the plugin that made the bound.

    The layer keeps its mapping, and has the failure as its error.

    Args:
        bound: The layer's lower bound on the objective of mappings by a model.
        cost: Objective of one of these mappings by this model; inf if none is known.
        finder: Which search found that mapping, for the message.
    """
    result = layer.result
    if result is None or may_bound(bound, cost):
        return layer
    form = Form.of([bound, cost], objective.unit)
    told = f"its bound {form.text(bound)} is above {form.text(cost)} {form.unit} that {finder} found"
    error: PluginError = fault(_prover(configuration, result), f"{told}; so the bound is dropped")
    return replace(layer, result=replace(result, lower_bound=None, claimed_by=None, error=error), error=error)


def _prover(configuration: RunConfiguration, result: Result) -> Owner:
    """Return the plugin that made a bound: the mapper, or the cost model if the claim is only that one's."""
    mapper, model = configuration.mapper_record, configuration.model.record
    is_models = result.claimed_by is not None and result.claimed_by == claimant(model)
    kind, record = (CostModelSpec.kind, model) if is_models else (MapperSpec.kind, mapper)
    return Owner(kind, record.name, record.distribution, record.version)
