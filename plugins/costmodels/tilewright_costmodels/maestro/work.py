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
FINE, UNTRANSLATED, INEXACT, MOVES, OVERFLOW, NO_WORK_INSIDE, IDLE = map(integer, range(7))
"""Codes of faults. UNTRANSLATED: there are no directives, `Table.fault` says why. INEXACT: counts may pass 64 bits. Others are
MAESTRO's: a loop (its letter, what it covers) moves that nominally does not; a phase occurs (how often) more times than a
counter holds; a step has operations of which the level inside finds none; nothing is computed at all."""


class Hardware(NamedTuple):
    """Transfers in elements per cycle and cycles, energies in pJ. Shapes: M memories."""

    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int
    energies: Floats
    """[level, tensor, action]: of one access."""
    energy_per_operation_pj: float
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

    tiles: Ints
    """[D, column, L]"""
    about: Ints
    """[D, column]"""
    states: Ints
    """[D, S, column]"""
    steady: Ints
    """[D, S, L]: occurrences of the steady state."""
    active: Floats
    """[D, S]: sub-clusters at work, the mean over steps."""
    kinds: Ints
    """[kind, 5]: of phases: letters at their edge, in their steady state, and the one that moved last; how often such
    phases occur together, and the commonest of them."""
    group: Ints
    """[column]: of the phases looked at."""
    sums: Ints
    """[column]: of the sub-problem last worked out."""
    queue: Ints
    """[D, 1 + S]: how many sub-problems were met, and which."""


def work_for(letters: int, kind: type) -> Work:
    """Room for layers of so many letters."""
    deep, wide = MAX_LEVELS, 2**letters
    return Work(
        tiles=np.zeros((deep, 7, letters), kind),
        about=np.zeros((deep, 6), kind),
        states=np.zeros((deep, wide, 12), kind),
        steady=np.zeros((deep, wide, letters), kind),
        active=np.zeros((deep, wide)),
        kinds=np.zeros((3**letters, 5), kind),
        group=np.zeros(11, kind),
        sums=np.zeros(7, kind),
        queue=np.zeros((deep, 1 + wide), kind),
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
