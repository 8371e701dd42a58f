"""Reasons why a search found nothing, from a sample of its proposals."""

from __future__ import annotations

import time

import numpy as np

from tilewright.application.run.evaluation import FAILED
from tilewright.errors import Reason, TilewrightError
from tilewright.interrupts import stop_requested
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Task
from tilewright.plugin.result import CommonReason, Rejections
from tilewright.schema.mapping import Mapping

SAMPLED = 200
"""Maximum number of explained mappings."""
SECONDS = 5.0
"""Time after which no further mapping is explained."""


class RejectionSample:
    """Sample of proposals at equal distances, until a valid mapping is found."""

    def __init__(self) -> None:
        self.kept: list[Candidates | MappingBatch] = []
        self.every, self.seen = 1, 0

    def add(self, batch: Candidates | MappingBatch) -> None:
        """Add proposals to the sample.

        The size of the batch depends on the speed of the host, but does not affect the sample.
        """
        row = -self.seen % self.every
        while row < len(batch):
            self.kept.append(batch.take(np.array([row])))
            if len(self.kept) > 2 * SAMPLED:
                self.kept, self.every = self.kept[::2], 2 * self.every
            row += self.every - (self.seen + row) % self.every
        self.seen += len(batch)

    def explained(self, task: Task, evaluator: Evaluator) -> Rejections | None:
        """Return the reasons, the most common first.

        They come from the rules of legality and, for legal mappings, from the model.
        """
        until = time.perf_counter() + SECONDS
        examples: dict[tuple[str, str], tuple[int, str]] = {}
        sampled = 0
        for at in np.random.default_rng(0).permutation(len(self.kept))[:SAMPLED].tolist():
            if sampled and (time.perf_counter() > until or stop_requested()):
                break
            mapping = self.kept[at][0]
            reasons = legality(task.problem, task.architecture, mapping).reasons or _said(evaluator, mapping)
            sampled += 1
            for (code, where), message in {(reason.code, reason.where): reason.message for reason in reasons}.items():
                count, first = examples.get((code, where), (0, message))
                examples[code, where] = count + 1, first
        ordered = sorted(examples.items(), key=lambda item: -item[1][0])
        common = (
            CommonReason(code=code, where=where, count=count, example=first)
            for (code, where), (count, first) in ordered
        )
        return Rejections(sampled=sampled, reasons=tuple(common)) if sampled else None


def _said(evaluator: Evaluator, mapping: Mapping) -> tuple[Reason, ...]:
    try:
        return evaluator.explain(mapping).reasons
    except TilewrightError as error:
        return (Reason(code=FAILED, where="the cost model", message=error.message),)
