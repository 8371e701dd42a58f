"""Prices of programs of directives, by the models that take them."""

from __future__ import annotations

from typing import Any

from tilewright.conformability import Reason
from tilewright.costmodel import DirectiveModel
from tilewright.directives import DirectiveProgram
from tilewright.errors import PluginError, TilewrightError
from tilewright.plugin import CostModelSpec
from tilewright.registry import installed
from tilewright.report import Report


def price_directives(program: DirectiveProgram, name: str, options: dict[str, Any]) -> tuple[Report, ...]:
    """One report per layer; a model that takes mappings only gives a refusal for each."""
    registration = installed().find(CostModelSpec, name)
    model = installed().make(CostModelSpec, name, options)
    if not isinstance(model, DirectiveModel):
        message = f"{name} prices mappings; it does not take directives"
        reason = Reason(code="notation", where=f"program {program.name}", message=message)
        return tuple(
            Report(model=name, problem=layer.name, valid=False, reasons=(reason,), macs=layer.macs)
            for layer in program.layers
        )
    try:
        return model.explain_directives(program)
    except TilewrightError:
        raise
    except Exception as error:  # a stranger's model may raise anything
        raise PluginError(
            f"cost model '{name}' of {registration.distribution} failed: {type(error).__name__}: {error}"
        ) from error
