"""Capacity that tiles need in memories, if a cost model requires several copies of each tile."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Rank, Tensor


def slices_of_each(memory: Memory, tensors: Iterable[Tensor]) -> int:
    """Return the slices that a memory needs for one value of each tensor that it may hold.

    Without a rule, a memory with this room keeps all of them. A smaller one may bypass any of them.
    """
    return sum(memory.slices_of(tensor) for tensor in tensors if memory.may_hold(tensor))


def usable_words(memory: Memory, architecture: Architecture, copies: int) -> int | None:
    """Return the capacity for one copy of the tiles, in words; None if unlimited.

    The outermost cluster holds a single copy.
    """
    if memory.capacity_words is None or memory in architecture.clusters[0].memories:
        return memory.usable_words
    return math.floor(memory.capacity_words / max(memory.multiple_buffering, copies))


def usable_slices(architecture: Architecture, copies: int) -> Floats:
    """Return the capacity of all memories for one copy of the tiles, in slices, [memory]; inf: unlimited."""
    words = [usable_words(memory, architecture, copies) for memory in architecture.memories]
    slices = [memory.slices_per_word for memory in architecture.memories]
    return np.array([math.inf if word is None else word * count for word, count in zip(words, slices, strict=True)])


def shared_words(memory: Memory, uses: Iterable[Tensor]) -> float:
    """Return the words of one value of a tensor that several layers use, each with a name and a role of its own.

    A value has the width of its widest use.
    """
    return max(memory.words_of(use) for use in uses)


def spanning(problem: Problem) -> tuple[Tensor, ...]:
    """Return the tensors, with windows also in the output.

    A coordinate of the output that an operand has inside a window becomes the coordinate of the operand.
    """
    windows = set(problem.windows)
    sliding = [rank for tensor in problem.operands for rank in tensor.projection if windows & set(rank.terms)]

    def spanned(rank: Rank) -> Rank:
        return next((other for other in sliding if len(rank.terms) == 1 and set(rank.terms) < set(other.terms)), rank)

    return tuple(
        tensor.model_copy(update={"projection": tuple(map(spanned, tensor.projection))}) if tensor.is_output else tensor
        for tensor in problem.tensors
    )
