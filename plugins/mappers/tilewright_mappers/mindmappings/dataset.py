"""Training data: random mappings of random problems of one class, with their costs over lower bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import NoValidMappingError, TilewrightError
from tilewright.mapspace.batch import Floats
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.counting import used_words
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import CostModel
from tilewright.prices import operations_pj
from tilewright.schema.problem import Problem
from tilewright_mappers.mindmappings.relaxed import RelaxedSpace

PER_PROBLEM = 256
"""Maximum number of mappings of one problem."""
DRAWN = 512
"""Number of mappings drawn at once."""
DRAWS = 4
"""Maximum number of draws per problem; few mappings fit some architectures."""
MAX_TRIES = 4
"""Maximum number of problems, as a multiple of the problems that suffice if all mappings fit."""
MAX_WINDOW = 11
"""Maximum size of a filter's rows and columns in the class of small windows."""


@dataclass(frozen=True)
class TrainingSet:
    """Vectors, float32 [n, length], and targets, float32 [n, 2], of `problems` problems.

    The targets are log2 of energy and of cycles over their lower bounds.
    """

    vectors: NDArray[np.float32]
    targets: NDArray[np.float32]
    problems: int


def size_ranges(problem: Problem) -> list[tuple[int, int]]:
    """Return the minimum and the maximum size of every dimension in the class of a problem.

    A dimension of size 1 stays. Small windows have up to MAX_WINDOW. The maximum of the others is 16
    if no size exceeds it, else a power of two of at least 2048.
    """
    largest = max(problem.sizes)
    most = 16 if largest <= 16 else max(2048, 1 << (largest - 1).bit_length())
    small = [name in problem.windows and size <= MAX_WINDOW for name, size in problem.dimensions.items()]
    return [
        (1, MAX_WINDOW) if windowed else (1, 1) if size == 1 else (2, most)
        for windowed, size in zip(small, problem.sizes, strict=True)
    ]


def random_sizes(problem: Problem, rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield sizes of problems in the class of `problem`: log-uniform, without prime factors above 7."""
    smooth = [_smooth(*limits) for limits in size_ranges(problem)]
    while True:
        yield [
            int(able[np.abs(np.log(able) - rng.uniform(math.log(able[0]), math.log(able[-1]))).argmin()])
            for able in smooth
        ]


def _smooth(least: int, most: int) -> NDArray[np.int64]:
    """Return the numbers from `least` to `most` without prime factors above 7."""
    numbers = np.array([1], dtype=np.int64)
    for prime in (2, 3, 5, 7):
        powers = prime ** np.arange(math.floor(math.log(most, prime)) + 1)
        numbers = np.outer(numbers, powers).ravel()
    return np.sort(numbers[(numbers >= least) & (numbers <= most)])


def training_set(
    space: MapSpace, model: CostModel, count: int, rng: np.random.Generator, stop: Callable[[], bool]
) -> TrainingSet | None:
    """Return about `count` mappings of problems in the class of `space`, or None if `stop` returns true.

    All mappings are uniform samples of the spaces of their problems, without those that do not fit.

    Raises:
        NoValidMappingError: No valid mapping was drawn.
    """
    vectors: list[NDArray[np.float32]] = []
    targets: list[NDArray[np.float32]] = []
    total, error = 0, TilewrightError("no mapping that was drawn for the training fits the memories")
    fields = [f"dimensions.{name}" for name in space.problem.dimension_names]
    sizes = random_sizes(space.problem, rng)
    for _ in range(MAX_TRIES * math.ceil(count / PER_PROBLEM)):
        if stop():
            return None
        if total >= count:
            break
        try:
            here = replace(space, problem=space.problem.replace(dict(zip(fields, next(sizes), strict=True))))
            evaluator = model.bind(here.problem, here.architecture)
            rows = _fitting(here, rng)
            costs = evaluator.evaluate_batch(rows.batch())
        except TilewrightError as caught:  # the rules may exclude some sizes, and a model large ones
            error = caught
            continue
        good = costs.valid & (costs.energy_pj > 0) & (costs.cycles > 0)
        if good.any():
            figures = np.stack([costs.energy_pj, costs.cycles], axis=1)[good]
            vectors.append(RelaxedSpace(here).vectors(rows.take(good)).astype(np.float32))
            targets.append(np.log2(figures / lower_bounds(here)).astype(np.float32))
            total += len(figures)
    if not total:
        text = f"no surrogate can be trained for problems like {space.problem.name}: {error.message}"
        raise NoValidMappingError(text, hint="use another mapper, or loosen the constraints")
    return TrainingSet(np.concatenate(vectors), np.concatenate(targets), len(vectors))


def _fitting(space: MapSpace, rng: np.random.Generator) -> Candidates:
    """Return at most PER_PROBLEM random mappings that fit."""
    parts: list[Candidates] = []
    for _ in range(DRAWS):
        rows = space.sample(rng, DRAWN)
        parts.append(rows.take(rows.fits()))
        if sum(map(len, parts)) >= PER_PROBLEM:
            break
    return Candidates.join(parts).take(slice(0, PER_PROBLEM))


def lower_bounds(space: MapSpace) -> Floats:
    """Return lower bounds on energy in pJ and on cycles, [2]; at least 1, because costs are divided by them.

    Energy counts all operations, and every word once at the cheapest outermost memory. Cycles count
    the operations over all compute units. Sharper bounds vary more with the sizes, and are learned worse.
    """
    problem, architecture = space.problem, space.architecture
    word = min(
        min(memory.read_energy_pj, memory.write_energy_pj) / memory.block_words
        for memory in architecture.clusters[0].memories
    )
    words = sum(used_words(problem, tensor) for tensor in problem.tensors)
    energy = operations_pj(architecture.compute, problem.macs) + words * word
    units = math.prod(cluster.fanout.size for cluster in architecture.clusters)
    return np.array([max(1.0, energy), max(1.0, problem.macs / units)])
