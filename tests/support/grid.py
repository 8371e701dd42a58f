"""Every mapper under every cost model on small problems and architectures: found and existing mappings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np

import tilewright as tw
from tilewright.application.run.evaluation import bind, build_model
from tilewright.errors import NotConformableError, NoValidMappingError, SpaceTooLargeError, TilewrightError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.mapper import Mapper, Proposals, Run, Task
from tilewright.plugin.registry import Registration, installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

PROBLEMS = [
    """
    name: gemm
    operation: gemm
    dimensions: {M: 8, N: 4, K: 6}
    tensors:
    - {name: A, role: input, projection: [M, K]}
    - {name: B, role: weight, projection: [K, N]}
    - {name: Z, role: output, projection: [M, N]}
    """,
    """
    name: matrix_vector
    operation: gemm
    dimensions: {M: 16, K: 12}
    tensors:
    - {name: A, role: weight, projection: [M, K]}
    - {name: B, role: input, projection: [K]}
    - {name: Z, role: output, projection: [M]}
    """,
    """
    name: conv
    operation: conv2d
    dimensions: {K: 4, C: 2, P: 4, Q: 2, R: 3, S: 1}
    tensors:
    - {name: I, role: input, projection: [C, P + R, Q + S]}
    - {name: W, role: weight, projection: [K, C, R, S]}
    - {name: O, role: output, projection: [K, P, Q]}
    """,
    """
    name: strided
    operation: conv1d
    dimensions: {K: 4, C: 3, P: 4, R: 3}
    tensors:
    - {name: I, role: input, projection: [C, 2*P + R]}
    - {name: W, role: weight, projection: [K, C, R]}
    - {name: O, role: output, projection: [K, P]}
    """,
    """
    name: depthwise
    operation: depthwise_conv1d
    dimensions: {C: 8, P: 6, R: 3}
    tensors:
    - {name: I, role: input, projection: [C, P + R]}
    - {name: W, role: weight, projection: [C, R]}
    - {name: O, role: output, projection: [C, P]}
    """,
    """
    name: mttkrp
    operation: mttkrp
    dimensions: {I: 4, J: 4, K: 2, L: 3}
    tensors:
    - {name: T, role: input, projection: [I, K, L]}
    - {name: B, role: weight, projection: [K, J]}
    - {name: C, role: weight, projection: [L, J]}
    - {name: Y, role: output, projection: [I, J]}
    """,
]
ARCHITECTURES = [
    """
    name: array
    clusters:
    - name: Main
      memories:
      - {name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64, read_bandwidth_words_per_cycle: 4}
    - name: Buffer
      memories: [{name: Buffer, capacity_words: 128, read_energy_pj: 4, write_energy_pj: 4}]
      fanout: {size: 4, axis: X}
    - name: Column
      fanout: {size: 2, axis: Y}
    - name: Element
      memories: [{name: Register, technology: register, capacity_words: 32, read_energy_pj: 1, write_energy_pj: 1}]
    compute: {energy_per_operation_pj: 1}
    """,
    """
    name: systolic
    clusters:
    - name: Main
      memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]
    - name: Chip
      memories: [{name: Unified, capacity_words: 64, holds: [input], read_energy_pj: 4, write_energy_pj: 4}]
      fanout: {size: 4, axis: Y}
    - name: Row
      memories: [{name: Accumulator, capacity_words: 16, holds: [output], read_energy_pj: 2, write_energy_pj: 2}]
      fanout: {size: 4, axis: X}
    - name: Element
      memories: [{name: Weight, capacity_words: 2, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}]
    compute: {energy_per_operation_pj: 1}
    """,
    """
    name: tight
    clusters:
    - name: Main
      memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]
    - name: Buffer
      memories: [{name: Buffer, capacity_words: 48, read_energy_pj: 4, write_energy_pj: 4}]
      fanout: {size: 3, axis: X}
    - name: Element
      memories: [{name: Register, capacity_words: 14, read_energy_pj: 1, write_energy_pj: 1}]
    compute: {energy_per_operation_pj: 1}
    """,
]
EVALUATIONS = 400
"""Mappings per search."""
ENUMERATED = 4_000
"""Maximum size of a space that is enumerated; in larger ones, this number of mappings is drawn."""
OPTIONS: dict[str, dict[str, object]] = {
    "cosa": {"rounds": 1, "nodes": 200},
    "exhaustive": {"limit": ENUMERATED},
    "mindmappings": {"mappings": 500, "epochs": 1, "width": 8, "starts": 64, "rounds": 3, "keep": False},
}
"""Options of mappers that would take long."""


ONE_BY_ONE = ("oracle", "pipelined")
"""Cost models that take each mapping of a batch by itself, so that 400 take long."""


@dataclass(frozen=True)
class Outcome:
    """Result of one search. `exists`: whether a valid mapping is known; `refused`: the part that refused by name."""

    mapper: str
    model: str
    problem: str
    architecture: str
    exists: bool
    valid: bool
    refused: str = ""
    failure: str = ""

    @property
    def good(self) -> bool:
        """A valid mapping was found where one exists, and only there; or the search was refused."""
        return not self.failure and (bool(self.refused) or self.valid == self.exists)


@dataclass(frozen=True)
class FirstValid:
    """A mapper that ends with the first valid mapping."""

    mapper: Mapper

    def search(self, task: Task, run: Run) -> Proposals:
        run.starters = getattr(self.mapper, "starters", ())
        proposals = self.mapper.search(task, run)
        with suppress(StopIteration):
            batch = next(proposals)
            while True:
                assert not isinstance(batch, Sequence), "built-in mappers propose arrays"
                parts = []
                for start in range(0, len(batch), 4):
                    parts.append((yield batch.take(slice(start, start + 4))))
                    if parts[-1].valid.any():
                        return
                batch = proposals.send(Costs.join(parts))


def usable(kind: type[MapperSpec] | type[CostModelSpec]) -> list[Registration]:
    """Return the plugins with all their dependencies."""
    return [plugin for plugin in installed().of_kind(kind) if not plugin.spec.missing()]


def pairs() -> Iterator[tuple[Problem, Architecture]]:
    """Every problem on every architecture."""
    return itertools.product(map(Problem.from_yaml, PROBLEMS), map(Architecture.from_yaml, ARCHITECTURES))


@cache
def grid(model: str) -> tuple[Outcome, ...]:
    """Every mapper under one cost model, on every pair."""
    return tuple(
        searched(mapper, model, problem, architecture, known)
        for problem, architecture in pairs()
        for known in [exists(model, problem, architecture)]
        for mapper in (plugin.name for plugin in usable(MapperSpec))
    )


def searched(mapper: str, model: str, problem: Problem, architecture: Architecture, known: bool) -> Outcome:
    """One search, as a user starts it."""
    options = OPTIONS.get(mapper, {})
    built = installed().make(MapperSpec, mapper, options)
    report = tw.map(
        problem,
        architecture,
        mapper=FirstValid(built) if model in ONE_BY_ONE else mapper,
        model=model,
        evaluations=None if mapper == "exhaustive" else EVALUATIONS,
        mapper_options=None if model in ONE_BY_ONE else options,
        cache=False,
        progress=False,
    )
    (layer,) = report.layers
    error = layer.error
    refusing = isinstance(error, NotConformableError | SpaceTooLargeError)
    before = layer.result is None or not layer.result.evaluated
    return Outcome(
        mapper,
        model,
        problem.name,
        architecture.name,
        exists=known,
        valid=layer.report is not None and layer.report.valid,
        refused=str(error) if refusing and before else "",
        failure="" if error is None or (refusing and before) or isinstance(error, NoValidMappingError) else str(error),
    )


def exists(model: str, problem: Problem, architecture: Architecture) -> bool:
    """Whether the model accepts some mapping of the whole map space, which is listed, or drawn from where it is large."""
    try:
        evaluator = bind(build_model(model), problem, architecture)
    except TilewrightError:
        return False
    space = MapSpace.of(problem, architecture, rules=None)
    for candidates in _candidates(space):
        legal = np.flatnonzero(candidates.legal())
        for start in range(0, len(legal), 4):
            if evaluator.evaluate_batch(candidates.take(legal[start : start + 4]).batch()).valid.any():
                return True
    return False


def _candidates(space: MapSpace) -> Iterator[Candidates]:
    if space.size <= ENUMERATED:
        yield from space.enumerate()
        return
    rng = np.random.default_rng(0)
    for _ in range(0, ENUMERATED, 1000):
        yield space.sample(rng, 1000)


def always_there() -> list[str]:
    """Built-in cost models that need nothing else."""
    return [
        plugin.name
        for plugin in usable(CostModelSpec)
        if plugin.distribution == BUILTIN and not (plugin.spec.needs or plugin.spec.programs)
    ]


def table() -> str:
    """The grid as a Markdown table: of the pairs that some mapping exists for, how many each mapper found one for.

    Mappers with equal cells share a row.
    """
    models = always_there()
    head = [f"| mapper | {' | '.join(f'`{model}`' for model in models)} |", f"| --- |{' ---: |' * len(models)}"]
    rows: dict[str, list[str]] = {}
    for mapper in (plugin.name for plugin in usable(MapperSpec) if plugin.distribution == BUILTIN):
        cells = []
        for model in models:
            known = [case for case in grid(model) if case.mapper == mapper and case.exists]
            refused = sum(bool(case.refused) for case in known)
            text = f"{sum(case.valid for case in known)} of {len(known)}"
            cells.append(f"{text}, {refused} refused" if refused else text)
        rows.setdefault(" | ".join(cells), []).append(f"`{mapper}`")
    return "\n".join([*head, *(f"| {', '.join(mappers)} | {cells} |" for cells, mappers in rows.items())])
