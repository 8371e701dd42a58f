"""Prices of programs of directives, by the models that take them; by others where the directives are tiles."""

from __future__ import annotations

from typing import Any

from tilewright.adapter import InputSet
from tilewright.costmodel import DirectiveModel
from tilewright.directives import DirectiveHardware, DirectiveLayer, DirectiveProgram
from tilewright.directives.tiles import tiled_layer
from tilewright.errors import NotConformableError, PluginError, TilewrightError
from tilewright.plugin import CostModelSpec
from tilewright.registry import installed
from tilewright.report import Report


def price_directives(program: DirectiveProgram, name: str, options: dict[str, Any]) -> tuple[Report, ...]:
    """One report per layer. A model that takes mappings only is given the tiles, where the directives are tiles."""
    registration = installed().find(CostModelSpec, name)
    model = installed().make(CostModelSpec, name, options)
    if not isinstance(model, DirectiveModel):
        return tuple(_price_tiles(layer, program.hardware, name, options) for layer in program.layers)
    try:
        return model.explain_directives(program)
    except TilewrightError:
        raise
    except Exception as error:  # a stranger's model may raise anything
        raise PluginError(
            f"cost model '{name}' of {registration.distribution} failed: {type(error).__name__}: {error}"
        ) from error


def _price_tiles(layer: DirectiveLayer, hardware: DirectiveHardware, name: str, options: dict[str, Any]) -> Report:
    from tilewright.cli.evaluate import price

    try:
        tiles = tiled_layer(layer, hardware)
    except NotConformableError as error:
        return Report(model=name, problem=layer.name, valid=False, reasons=error.reasons, macs=layer.macs)
    report = price(InputSet(tiles.problem, tiles.architecture, tiles.mapping), name, options)
    return report.model_copy(update={"warnings": (*tiles.warnings, *report.warnings)})
