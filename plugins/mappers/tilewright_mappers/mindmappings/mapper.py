"""`mindmappings`: train or load a surrogate, descend on it from random mappings, evaluate projections."""

from __future__ import annotations

import itertools
import logging
import time
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import CostModel, CostModelSpec, Objective, Proposals, Run, Task, installed, objectives
from tilewright_mappers import MindMappingsOptions
from tilewright_mappers.mindmappings.dataset import training_set
from tilewright_mappers.mindmappings.relaxed import RelaxedSpace
from tilewright_mappers.mindmappings.store import Training, digest_of_data, keep, key_of, load
from tilewright_mappers.mindmappings.surrogate import Descent, Surrogate, train

SEED = 0
"""Seed of every training, so that a surrogate depends on its class and settings only."""
TOGETHER = 256
"""Maximum number of starts that descend together."""
HELD_OUT = 20
"""The last training mappings, one in HELD_OUT, are used for the error only."""
DRAWN, DRAWS = 1024, 64
"""Mappings drawn at once for the starts, and the maximum number of draws."""


@dataclass(frozen=True)
class MindMappings:
    """Mind Mappings search: random starts descend together, and every round proposes their projections."""

    options: MindMappingsOptions

    def search(self, task: Task, run: Run) -> Proposals:
        began = time.process_time()
        relaxed = RelaxedSpace(task.space)
        rows = starts(task.space, run.rng, self.options.starts)
        first = yield from objectives(rows, task, run)
        over = run.exhausted
        if over or self.options.rounds == 0:
            return
        before_training = time.process_time()
        trained = self._surrogate(task.space, run)
        if trained is None:
            run.short_of_time = True
            _log("the deadline ended the training; only random mappings were evaluated")
            return
        began += time.process_time() - before_training
        surrogate, record = trained
        run.figures.update(
            training_cpu_seconds=record.cpu_seconds,
            training_mappings=record.mappings,
            training_error=record.error,
        )
        descent, begin = descent_of(relaxed, task.objective), relaxed.vectors(rows)
        values, vectors = first.copy(), begin.copy()
        for part, _ in itertools.product(range(0, len(rows), TOGETHER), range(self.options.rounds)):
            here = slice(part, part + TOGETHER)
            lower = surrogate.descend(vectors[here].astype(np.float32), descent, self.options.steps, self.options.rate)
            projected = relaxed.project(rows.take(here), lower.astype(np.float64))
            rows = Candidates.join([rows.take(slice(0, part)), projected, rows.take(slice(part + TOGETHER, None))])
            values[here] = np.minimum(values[here], (yield from objectives(projected, task, run)))
            vectors[here] = relaxed.vectors(projected)
            moved = np.linalg.norm(vectors - begin, axis=1)[: part + TOGETHER]
            run.figures.update(search_cpu_seconds=time.process_time() - began, moved=float(moved.mean()))
            best = int(values.argmin())
            if np.isfinite(first[best]) and values[best] > 0:
                run.figures["improvement"] = float(first[best] / values[best])
            if run.exhausted:
                return

    def _surrogate(self, space: MapSpace, run: Run) -> tuple[Surrogate, Training] | None:
        """Return the surrogate of a class, from disk or trained now; None if the deadline comes first."""
        options = self.options
        model: CostModel = installed().make(CostModelSpec, options.model)
        key = key_of(space, options, self, model)
        length = RelaxedSpace(space).length
        stored = load(key, length) if options.keep else None
        if stored is not None:
            return stored
        _log(f"training a surrogate for problems like {space.problem.name}, up to a minute")
        began, rng = time.process_time(), np.random.default_rng(SEED)
        data = training_set(space, model, options.mappings, rng, lambda: run.remaining_seconds <= 0)
        if data is None:
            return None
        last = len(data.vectors) - len(data.vectors) // HELD_OUT
        surrogate = train(
            data.vectors[:last],
            data.targets[:last],
            options.width,
            options.epochs,
            rng,
            lambda: run.remaining_seconds <= 0,
        )
        if surrogate is None:
            return None
        errors = (surrogate.predict(data.vectors[last:]) - data.targets[last:]).sum(axis=1)
        error = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0
        seconds = time.process_time() - began
        record = Training(
            mappings=len(data.vectors),
            problems=data.problems,
            cpu_seconds=seconds,
            error=error,
            data=digest_of_data(data),
        )
        if options.keep:
            keep(key, surrogate, record)
        return surrogate, record


def _log(text: str) -> None:
    logging.getLogger("tilewright").warning("mindmappings: %s", text)


def starts(space: MapSpace, rng: np.random.Generator, count: int) -> Candidates:
    """Return at most `count` random mappings that fit; if none is found, the one with all factors outside.

    Raises:
        NoValidMappingError: The space is empty, or no mapping is found that fits.
    """
    parts: list[Candidates] = []
    for _ in range(DRAWS):
        rows = space.sample(rng, DRAWN)
        parts.append(rows.take(rows.fits()))
        if sum(map(len, parts)) >= count:
            break
    candidates = Candidates.join(parts).take(slice(0, count))
    return candidates if len(candidates) else Placement.each(space, rng)[0].start


def descent_of(relaxed: RelaxedSpace, objective: Objective) -> Descent:
    """Return the inputs that a descent changes: trips within their bounds, and positions."""
    trips, positions, _ = relaxed.parts
    lowest, highest = np.zeros((2, relaxed.length), dtype=np.float32)
    lowest[trips], highest[trips] = (bound.ravel() for bound in relaxed.bounds)
    highest[positions] = len(relaxed.space.problem.sizes) - 1
    groups = np.full(relaxed.length, -1, dtype=np.int32)
    groups[trips] = np.tile(np.arange(len(relaxed.space.problem.sizes)), len(relaxed.space.slots))
    return Descent(np.array(objective.powers, dtype=np.float32), lowest, highest, groups)
