"""What the kernel reads, writes and works in. Letters are sets as bits of a number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import integer
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.notations.directives.table import MAX_LEVELS

COUNTER_LIMIT = 2**31
"""MAESTRO counts the steps of a phase in 32 bits and aborts, or goes on with a wrong number, beyond."""
NONE = integer(0)
INPUT, FILTER, OUTPUT = map(integer, range(3))
FULL, PART, FRESH, FRESH_PART = range(4)
"""Of the tiles of a letter: a whole one, the last, and what is new in each."""
IN_SPACE, SPLIT, PAIR, CLUSTERS, EDGE_CLUSTERS = range(5)
"""Of a level: letters in space, the first and the second of them, sub-clusters, and those at work in the last fold."""
MET, SHORT, UNROLLED, EDGES, PARTIAL = range(5)
"""Of a sub-problem: the row it was met in; letters whose first step is short, for which one step covers everything, that
have an edge state, and in whose edge in space the last sub-cluster has a short tile."""
OCCURRENCES, INPUT_SENT, FILTER_SENT, EGRESS, MACS, ARRIVING, LEAVING, COMPUTE = range(8)
"""Columns of `Result.steps`, for one occurrence; COMPUTE is 0 where a phase does no work and is passed over."""
ALL_MACS, CYCLES = 5, 6
"""In `Work.sums`, after the first five: operations with those of phases passed over, negative ones included."""
READS, FILLS, UPDATES = range(3)
L2, L1 = range(2)


FINE, UNTRANSLATED, INEXACT, MOVES, OVERFLOW, NO_WORK_INSIDE, IDLE = map(integer, range(7))
"""Codes of faults. UNTRANSLATED: there are no directives, `Table.fault` says why. INEXACT: counts may pass 64 bits. Others are
MAESTRO's: a loop (its letter, what it covers) moves that nominally does not; a phase occurs (how often) more times than a
counter holds; a step has operations of which the level inside finds none; nothing is computed at all."""


class Hardware(NamedTuple):
    """Transfers in elements per cycle and cycles, energies in pJ. Shapes: M memories."""

    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int
    prices: Floats
    """[level, tensor, action]: of one access."""
    price_of_operation: float
    home: Ints
    """[level, tensor]: the memory that holds the tensor; NOWHERE: one without limit."""
    capacity: Ints
    """[M]: elements."""
    held: Ints
    """[tensor]: elements of the whole tensor, outputs regardless of strides."""


class Result(NamedTuple):
    """What rows come to. Shapes: n rows; levels are L2 and L1, tensors input, filter and output."""

    counts: Ints
    """[n, level, tensor, action]: reads, fills, updates; reads of inputs from L1 are the operations."""
    required: Ints
    """[n, level, tensor]: elements of buffer, both copies of a tile."""
    cycles: Ints
    """[n]"""
    energy_pj: Floats
    """[n]"""
    fits: Bools
    """[n]: the memories hold what is required."""
    fault: Ints
    """[n, 4]: code, level and two numbers."""
    active: Floats
    """[n]: sub-clusters at work, the mean over steps."""
    phases: Ints
    """[n]: how many rows of `steps` were written; 0 unless they were asked for or needed."""
    steps: Ints
    """[phase, column]: the phases of the outermost level in MAESTRO's order, of the row that wrote them last."""


class Work(NamedTuple):
    """Room for one row. Shapes: D levels, L letters, S = 2**L sub-problems, each by the letters of the level outside
    whose tile is the short last one."""

    nominal: Ints
    """[D, L]: sizes of the sub-problem without short tiles."""
    inputs: Ints
    """[D, 4, L]: tiles, in input rows and columns."""
    results: Ints
    """[D, 4, L]: the same, in outputs for Y and X; strides are not regarded."""
    inside: Ints
    """[D, L]: the letters placed inside a letter."""
    levels: Ints
    """[D, 5]"""
    states: Ints
    """[D, S, 5]"""
    steady: Ints
    """[D, S, L]: occurrences of the steady state."""
    queue: Ints
    """[D, S]: the sub-problems met."""
    cycles: Ints
    """[D, S]"""
    active: Floats
    """[D, S]"""
    fault: Ints
    """[D, S, 4]"""
    queued: Ints
    """[D]: how many."""
    sums: Ints
    """[7]: of the sub-problem last worked out."""


def work_for(letters: int, kind: type) -> Work:
    """Room for layers of so many letters."""
    deep, wide = MAX_LEVELS, 2**letters
    return Work(
        nominal=np.zeros((deep, letters), kind),
        inputs=np.zeros((deep, 4, letters), kind),
        results=np.zeros((deep, 4, letters), kind),
        inside=np.zeros((deep, letters), kind),
        levels=np.zeros((deep, 5), kind),
        states=np.zeros((deep, wide, 5), kind),
        steady=np.zeros((deep, wide, letters), kind),
        queue=np.zeros((deep, wide), kind),
        queued=np.zeros(deep, kind),
        cycles=np.zeros((deep, wide), kind),
        active=np.zeros((deep, wide)),
        fault=np.zeros((deep, wide, 4), kind),
        sums=np.zeros(7, kind),
    )


def result_for(rows: int, letters: int, kind: type) -> Result:
    """Room for what so many rows come to."""
    return Result(
        counts=np.zeros((rows, 2, 3, 3), kind),
        required=np.zeros((rows, 2, 3), kind),
        cycles=np.zeros(rows, kind),
        energy_pj=np.zeros(rows),
        fits=np.zeros(rows, np.bool_),
        fault=np.zeros((rows, 4), kind),
        active=np.zeros(rows),
        phases=np.zeros(rows, kind),
        steps=np.zeros((3**letters, 8), kind),
    )
