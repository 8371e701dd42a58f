"""Objectives of a program: the published weights, or energy and cycles in logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.mapspace.batch import Floats
from tilewright.mapspace.space import MapSpace
from tilewright.schema.report import Objective
from tilewright_mappers.cosa.program import Linear, Program, total
from tilewright_mappers.cosa.tiling import Tiling
from tilewright_mappers.cosa.traffic import Traffic, Transfer

UTILIZATION, COMPUTE, TRAFFIC = 0.1, 10.0, 1.0
"""CoSA's weights, as in its code."""
TIE = 0.001
"""Weight of energy among mappings of equal cycles."""
TOUCHING = tuple(0.5 * step for step in range(-14, 5))
"""Points of the tangents of the exponential: energy fractions from e**-7 to e**2."""


def steps(tiling: Tiling) -> Linear:
    """Return the logarithm of the steps of all loops: the cycles without waiting for memories."""
    return total(tiling.product(slot) for slot in tiling.space.temporal_slots)


def published(tiling: Tiling, traffic: Traffic) -> Linear:
    """Return CoSA's sum of logarithms: 10 x compute + traffic - 0.1 x utilization (section III-C).

    Utilization covers all bounded memories. Traffic counts words of each tensor into the outermost
    fanout.
    """
    space = tiling.space
    bounded = [memory.name for memory in space.architecture.memories if memory.usable_words is not None]
    filled = total(tiling.words(entry, tensor) for name in bounded for entry, tensor in tiling.held(name))
    return steps(tiling) * COMPUTE + total(_sent(tiling, traffic)) * TRAFFIC - filled * UTILIZATION


def _sent(tiling: Tiling, traffic: Traffic) -> list[Linear]:
    """Return the words of each tensor through the outermost fanout."""
    spatial = [slot for slot in tiling.space.spatial_slots if (tiling.space.slots[slot].most or 1) > 1]
    border = tiling.space.slots[spatial[0]].entry if spatial else 0
    found = []
    for tensor in range(len(tiling.space.problem.tensors)):
        inner = [entry for entry in range(border + 1, len(tiling.space.skeleton)) if tiling.keep[entry, tensor]]
        words = traffic.passes(inner[0], tensor) + tiling.words(inner[0], tensor) if inner else steps(tiling)
        found.append(words + (tiling.product(spatial[0]) if spatial else 0.0))
    return found


@dataclass(frozen=True)
class Shares:
    """Energy as a sum of transfers, each a fraction of an estimate; cycles as a logarithm."""

    tiling: Tiling
    moves: list[Transfer]

    def energy_pj(self, values: Floats) -> float:
        """Return the energy of a solution in pJ, at least 1, because programs use fractions of it."""
        moved = sum(move.words(values) * move.energy_pj for move in self.moves)
        return max(1.0, _computing(self.tiling.space) + moved)

    def cycles(self, program: Program) -> Linear:
        """Return the logarithm of the cycles: the maximum over loops and over memories."""
        taken = steps(self.tiling)
        waiting = [
            move.log_words - move.instances - math.log(move.values_per_cycle)
            for move in self.moves
            if move.values_per_cycle is not None
        ]
        if not waiting:
            return taken
        cycles = program.variable(0.0, 200.0, whole=False)
        for each in [taken, *waiting]:
            program.require(cycles - each, lower=0.0)
        return cycles

    def energy(self, program: Program, whole_pj: float) -> Linear:
        """Return a lower bound on the energy as a fraction of `whole_pj`: tangents of the exponential."""
        parts = []
        for move in self.moves:
            if move.energy_pj > 0:
                part = program.variable(0.0, math.inf, whole=False)
                level = move.log_words + math.log(move.energy_pj / whole_pj)
                for at in TOUCHING:
                    program.require(part - (level - at + 1.0) * math.exp(at), lower=0.0)
                parts.append(part)
        return total(parts) + _computing(self.tiling.space) / whole_pj

    def of(self, objective: Objective, program: Program, whole_pj: float) -> Linear:
        """Return the objective's substitute: cycles in logarithms, energy in fractions.

        The logarithm of a fraction is at most the fraction less 1, and equal at `whole_pj`. So a
        lower sum means a lower energy x cycles.
        """
        if objective == "cycles":
            return self.cycles(program) + self.energy(program, whole_pj) * TIE
        energy = self.energy(program, whole_pj)
        return energy if objective == "energy" else energy + self.cycles(program)


def least_energy_pj(space: MapSpace) -> float:
    """Return the first estimate of the energy in pJ.

    Every word moves once, and every operation reads from the cheapest memory.
    """
    problem, outer = space.problem, space.architecture.memories[0]
    cheapest = min(memory.read_energy_pj / memory.block_words for memory in space.architecture.memories)
    once = sum(problem.tensor_words(tensor) for tensor in problem.tensors) * outer.read_energy_pj
    return max(1.0, _computing(space) + once + problem.macs * cheapest * len(problem.tensors))


def _computing(space: MapSpace) -> float:
    return space.problem.macs * space.architecture.compute.energy_per_operation_pj
