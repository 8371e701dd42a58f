"""Programs of directives, which core converts to its schemas."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin.program import Tiles
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.values import Model
from tilewright_notations.directives.layer import DirectiveHardware, DirectiveLayer
from tilewright_notations.directives.tiles import array_of, problem_of, tiled_layer


class DirectiveProgram(Model):
    """Layers, each with its dataflow, on one hardware: a `Program` in MAESTRO's notation."""

    name: str
    layers: tuple[DirectiveLayer, ...] = Field(min_length=1)
    hardware: DirectiveHardware

    def architecture(self) -> Architecture:
        return array_of(self.hardware)

    def problem(self, layer: int) -> Problem:
        return problem_of(self.layers[layer])

    def tiles(self, layer: int) -> Tiles:
        return tiled_layer(self.layers[layer], self.hardware)
