"""Evaluation: what installed cost models say of one mapping, or of a program of directives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.errors import NotConformableError, PluginError, Reason, TilewrightError
from tilewright.notations.directives import DirectiveHardware, DirectiveLayer, DirectiveProgram
from tilewright.notations.directives.tiles import tiled_layer
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.costmodel import DirectiveModel
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.report import Report


def price_by_all(inputs: InputSet, names: Sequence[str], options: Mapping[str, dict[str, Any]]) -> list[Report]:
    """One report per model. Of several, one that is not installed or fails is a report with that reason, as long as
    another is not.

    Raises:
        PluginError: no model could be asked.
    """
    assert inputs.problem is not None
    reports, failures = [], []
    for name in names:
        try:
            reports.append(price(inputs, name, options[name]))
        except PluginError as error:
            failures.append(error)
            message = f"{error.message}; {error.hint}" if error.hint else error.message
            reason = Reason(code="plugin_failed", where="", message=message)
            reports.append(
                Report(
                    model=name, problem=inputs.problem.name, valid=False, reasons=(reason,), macs=inputs.problem.macs
                )
            )
    if len(failures) == len(names):
        raise failures[0]
    return reports


def price(inputs: InputSet, name: str, options: dict[str, Any]) -> Report:
    """The report of one model; a refusal is a report too, with the reasons."""
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    registration = installed().find(CostModelSpec, name)
    model = installed().make(CostModelSpec, name, options)
    try:
        verdict = registration.spec.capabilities.judge(inputs.problem, inputs.architecture)
        if not verdict:
            raise NotConformableError(f"cost model {name}", verdict.reasons)
        return model.bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    except NotConformableError as error:
        return Report(
            model=name, problem=inputs.problem.name, valid=False, reasons=error.reasons, macs=inputs.problem.macs
        )
    except TilewrightError:
        raise
    except Exception as error:  # a stranger's model may raise anything
        raise PluginError(
            f"cost model '{name}' of {registration.distribution} failed: {type(error).__name__}: {error}"
        ) from error


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
    try:
        tiles = tiled_layer(layer, hardware)
    except NotConformableError as error:
        return Report(model=name, problem=layer.name, valid=False, reasons=error.reasons, macs=layer.macs)
    report = price(InputSet(tiles.problem, tiles.architecture, tiles.mapping), name, options)
    return report.model_copy(update={"warnings": (*tiles.warnings, *report.warnings)})
