"""Objectives of a program: CoSA's weighted terms, or energy and cycles in logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.mapspace.space import MapSpace
from tilewright.prices import operations_pj
from tilewright.schema.objective import Objective
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.measures import Terms, border_of, steps
from tilewright_mappers.cosa.program import Linear, Program, total
from tilewright_mappers.cosa.traffic import Traffic, Transfer

TIE = 0.001
"""Weight of energy among mappings of equal cycles."""
BALANCED_TIE = 0.01
"""Weight of the sum among mappings of equal balance; the solver's gap hides smaller ones."""
TOUCHING = tuple(0.5 * step for step in range(-14, 5))
"""Points of the tangents of the exponential: energy fractions from e**-7 to e**2."""


def weighted(traffic: Traffic, options: CosaOptions, program: Program) -> Linear:
    """Return CoSA's weighted sum of logarithms, or the balance of traffic and compute.

    The balance is the absolute difference of both. Among equal ones, the least sum is best.
    """
    terms = Terms.of(traffic, options)
    if options.objective_form == "published":
        return terms.total - inside(traffic) * (options.inner_preference * options.traffic_weight)
    difference = program.variable(0.0, math.inf, whole=False)
    for one, other in ((terms.traffic, terms.compute), (terms.compute, terms.traffic)):
        program.require(difference - one + other, lower=0.0)
    return difference + terms.total * BALANCED_TIE


def inside(traffic: Traffic) -> Linear:
    """Return the logarithms of all factors inside the outermost fanout, for each tensor that they index.

    A factor counts once for each level outside it, from 2 below the fanout.
    """
    space, border = traffic.space, border_of(traffic.space)
    stored = np.flatnonzero(traffic.keep.any(axis=1))
    parts = []
    for index, slot in enumerate(space.slots):
        if slot.entry > border:
            outside = int(((stored > border) & (stored < slot.entry + slot.spatial)).sum())
            for indexing in traffic.indexing:
                parts += [traffic.tiling.trips(index, dim) * (outside + 1) for dim in sorted(indexing)]
    return total(parts)


@dataclass(frozen=True)
class Shares:
    """Energy as a sum of transfers, each a fraction of an estimate; cycles as a logarithm."""

    traffic: Traffic
    moves: list[Transfer]

    def energy_pj(self, values: Floats) -> float:
        """Return the energy of a solution in pJ, at least 1, because programs use fractions of it."""
        moved = sum(move.words(values) * move.energy_pj for move in self.moves)
        return max(1.0, _computing(self.traffic.space) + moved)

    def cycles(self, program: Program) -> Linear:
        """Return the logarithm of the cycles: the maximum over loops and over memories."""
        taken = steps(self.traffic)
        waiting = [
            move.log_words - move.instances - math.log(move.values_per_cycle)
            for move in self.moves
            if move.values_per_cycle is not None
        ]
        if not waiting:
            return taken
        cycles = program.variable(0.0, 200.0, whole=False)
        for linear in [taken, *waiting]:
            program.require(cycles - linear, lower=0.0)
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
        return total(parts) + _computing(self.traffic.space) / whole_pj

    def of(self, objective: Objective, program: Program, whole_pj: float) -> Linear:
        """Return the objective's substitute: cycles in logarithms, energy in fractions.

        The logarithm of a fraction is at most the fraction less 1, and equal at `whole_pj`. So a
        lower sum means a lower energy x cycles.
        """
        if not objective.energy_power:
            return self.cycles(program) + self.energy(program, whole_pj) * TIE
        energy = self.energy(program, whole_pj) * objective.energy_power
        return energy + self.cycles(program) * objective.cycle_power if objective.cycle_power else energy


def least_energy_pj(space: MapSpace) -> float:
    """Return the first estimate of the energy in pJ.

    Every word moves once, and every operation reads from the cheapest memory.
    """
    problem, outer = space.problem, space.architecture.memories[0]
    cheapest = min(memory.read_energy_pj / memory.block_words for memory in space.architecture.memories)
    once = sum(problem.tensor_words(tensor) for tensor in problem.tensors) * outer.read_energy_pj
    return max(1.0, _computing(space) + once + problem.macs * cheapest * len(problem.tensors))


def _computing(space: MapSpace) -> float:
    return float(operations_pj(space.architecture.compute, space.problem.macs))
