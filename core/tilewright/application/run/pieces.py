"""Pieces of a batch, between which a loop asks for Ctrl-C and its deadline."""

from __future__ import annotations

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.costmodel import CandidateEvaluator, Costs, Evaluator

GROWTH = 8
"""Largest ratio of the sizes of two successive pieces."""


def next_size(size: int, count: int, seconds: float, goal: float) -> int:
    """Return how many mappings the next piece has, so that it takes about `goal` seconds.

    Args:
        size: Size of the last piece.
        count: Mappings of it, evaluated in `seconds`.

    >>> next_size(4, 4, 1e-6, 0.1), next_size(1000, 1000, 1.0, 0.1)
    (32, 100)
    """
    return max(1, min(GROWTH * size, int(goal * (count / max(1e-9, seconds)))))


def costs_of(evaluator: Evaluator, batch: Candidates | MappingBatch) -> Costs:
    """Return the costs of mappings. An evaluator of candidates receives candidates as such."""
    if isinstance(batch, MappingBatch):
        return evaluator.evaluate_batch(batch)
    if isinstance(evaluator, CandidateEvaluator):
        return evaluator.evaluate_candidates(batch)
    return evaluator.evaluate_batch(batch.batch())
