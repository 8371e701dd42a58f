"""Lower bounds on the energy and cycles of all mappings of a problem on a machine, from the cost model's relaxation."""

from __future__ import annotations

import math

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import LayerSearch, bound
from tilewright.errors import TilewrightError
from tilewright.plugin.relaxed import Least, least_of
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload


def least(search: LayerSearch) -> Least:
    """Return lower bounds for all mappings of the space; zeros if the model offers no relaxation or the search cannot start."""
    try:
        space, _, evaluator = bound(search.distinct, search.configuration)
        return least_of(space, evaluator)
    except TilewrightError:  # the search raises the same error and reports it
        return 0.0, 0.0


def least_of_workload(architecture: Architecture, workload: Workload, configuration: RunConfiguration) -> Least:
    """Return lower bounds on the total energy in pJ and the total cycles of all layers."""
    here = configuration.on_architecture(architecture)
    bounds = [(layer.count, *least(LayerSearch(layer, here))) for layer in workload.distinct()]
    return math.fsum(count * energy for count, energy, _ in bounds), math.fsum(
        count * cycles for count, _, cycles in bounds
    )
