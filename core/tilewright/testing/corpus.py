"""Corpus of small problems and architectures that every check can evaluate quickly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import KeepRule, Variant
from tilewright.schema.problem import Problem

_PROBLEMS = {
    "gemm": """
        name: gemm
        operation: gemm
        dimensions: {M: 4, N: 6, K: 3}
        tensors:
        - {name: A, role: input, projection: [M, K]}
        - {name: B, role: weight, projection: [K, N]}
        - {name: Z, role: output, projection: [M, N]}
        """,
    "conv": """
        name: conv
        operation: conv2d
        dimensions: {N: 1, K: 4, C: 2, P: 3, Q: 4, R: 3, S: 2}
        tensors:
        - {name: I, role: input, projection: [N, C, 2*P + R, Q + S]}
        - {name: W, role: weight, projection: [K, C, R, S]}
        - {name: O, role: output, projection: [N, K, P, Q]}
        """,
    "mttkrp": """
        name: mttkrp
        operation: mttkrp
        dimensions: {I: 4, J: 3, K: 2, L: 5}
        tensors:
        - {name: T, role: input, projection: [I, K, L]}
        - {name: B, role: weight, projection: [K, J]}
        - {name: C, role: weight, projection: [L, J]}
        - {name: Y, role: output, projection: [I, J]}
        """,
    "slide": """
        name: slide
        operation: conv1d
        dimensions: {K: 2, P: 4, R: 3}
        tensors:
        - {name: I, role: input, projection: [P + R]}
        - {name: W, role: weight, projection: [K, R]}
        - {name: O, role: output, projection: [K, P]}
        """,
    "tiny": """
        name: tiny
        operation: gemm
        dimensions: {M: 2, N: 2, K: 1}
        tensors:
        - {name: A, role: input, projection: [M, K]}
        - {name: B, role: weight, projection: [K, N]}
        - {name: Z, role: output, projection: [M, N]}
        """,
}

_ARCHITECTURES = {
    "flat": """
        name: flat
        clusters:
        - name: Main
          memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]
        - name: Buffer
          memories: [{name: Buffer, capacity_words: 40, read_energy_pj: 2, write_energy_pj: 2}]
        compute: {energy_per_operation_pj: 1}
        """,
    "array": """
        name: array
        clusters:
        - name: Main
          memories:
          - {name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64, read_bandwidth_words_per_cycle: 2}
        - name: Buffer
          memories: [{name: Buffer, capacity_words: 96, read_energy_pj: 4, write_energy_pj: 4}]
          fanout: {size: 4, axis: X}
        - name: Column
          fanout: {size: 2, axis: Y}
        - name: Element
          memories: [{name: Register, technology: register, capacity_words: 24, read_energy_pj: 1, write_energy_pj: 1}]
        compute: {energy_per_operation_pj: 1}
        """,
    "siblings": """
        name: siblings
        clusters:
        - name: Main
          memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]
        - name: Buffer
          memories: [{name: Buffer, capacity_words: 96, holds: [input, output], read_energy_pj: 4, write_energy_pj: 4}]
          fanout: {size: 3, axis: X}
        - name: Element
          memories:
          - {name: Moving, capacity_words: 24, holds: [input, output], read_energy_pj: 1, write_energy_pj: 1}
          - {name: Still, capacity_words: 24, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}
        compute: {energy_per_operation_pj: 1}
        """,
    "priced": """
        name: priced
        clusters:
        - name: Main
          memories:
          - {name: Main, technology: dram, read_energy_pj: 3, write_energy_pj: 5, read_bandwidth_words_per_cycle: 1.5, write_bandwidth_words_per_cycle: 1}
        - name: Buffer
          memories:
          - {name: Buffer, capacity_words: 64, read_energy_pj: 2, write_energy_pj: 4, read_bandwidth_words_per_cycle: 2}
          fanout: {size: 4}
        - name: Element
          memories: [{name: Register, technology: register, capacity_words: 8, read_energy_pj: 6, write_energy_pj: 7}]
        compute: {energy_per_operation_pj: 20}
        """,
    "cramped": """
        name: cramped
        clusters:
        - name: Main
          memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]
        - name: Buffer
          memories: [{name: Buffer, capacity_words: 2, read_energy_pj: 2, write_energy_pj: 2}]
        compute: {energy_per_operation_pj: 1}
        """,
}


@dataclass(frozen=True)
class Sample:
    """Problem, architecture and rules of one test case."""

    problem: Problem
    architecture: Architecture
    rules: Variant = Variant()

    def __str__(self) -> str:
        return f"{self.problem.name} on {self.architecture.name}"

    @cached_property
    def space(self) -> MapSpace:
        """Standard map space of the sample."""
        return MapSpace.of(self.problem, self.architecture, self.rules)

    def batch(self, count: int = 32, seed: int = 0) -> MappingBatch:
        """Return mappings drawn from the space; some may not fit the memories."""
        return self.space.sample(np.random.default_rng(seed), count).batch()


def _sample(problem: str, architecture: str) -> Sample:
    return Sample(Problem.from_yaml(_PROBLEMS[problem]), Architecture.from_yaml(_ARCHITECTURES[architecture]))


SAMPLES = (
    _sample("tiny", "flat"),  # small enough to enumerate
    _sample("gemm", "flat"),
    _sample("gemm", "array"),
    _sample("conv", "array"),
    _sample("conv", "siblings"),
    _sample("mttkrp", "array"),
)
"""Samples for all plugins. A plugin runs those that its capabilities allow."""


PRICED = (_sample("tiny", "priced"), _sample("gemm", "priced"), _sample("slide", "priced"))
"""Small spaces, with a window, in which operations and registers cost as much as the outermost memory, and bandwidths bind."""


def cramped(sample: Sample) -> Sample:
    """Return a sample with the same problem whose inner memory is too small for the tensors it must keep."""
    everything = Variant(keep=(KeepRule(memory="Buffer", keep=("input", "weight", "output")),))
    return Sample(sample.problem, Architecture.from_yaml(_ARCHITECTURES["cramped"]), everything)


def content(batch: MappingBatch) -> tuple[bytes, ...]:
    """Return the contents of a batch as bytes, for later comparison."""
    return tuple(array.tobytes() for array in (batch.temporal, batch.spatial, batch.order, batch.keep))


ENUMERABLE = 5000
"""Largest number of mappings that checks list."""


@cache
def enumerated(sample: Sample) -> tuple[MappingBatch, ...]:
    """Return all mappings of the space of a sample; none if there are more than `ENUMERABLE`."""
    if sample.space.size > ENUMERABLE:
        return ()
    return tuple(part.batch() for part in sample.space.enumerate())


def renamed(problem: Problem) -> Problem:
    """Return the problem with other names, whose alphabetical order is the reverse one."""
    dimensions, tensors = sorted(problem.dimensions), sorted(problem.tensor_names)
    new = {name: f"d{chr(ord('z') - number)}" for number, name in enumerate(dimensions)}
    other = {name: f"T{chr(ord('z') - number)}" for number, name in enumerate(tensors)}
    data = problem.to_data()
    data["name"] = "other"
    data["dimensions"] = {new[name]: size for name, size in problem.dimensions.items()}
    for tensor, stated in zip(problem.tensors, data["tensors"], strict=True):
        stated["name"] = other[tensor.name]
        stated["projection"] = [
            " + ".join(f"{step}*{new[name]}" for name, step in rank.terms.items()) for rank in tensor.projection
        ]
    return Problem.model_validate(data)


def with_other_names(sample: Sample) -> Sample:
    """Return a sample without rules, with other names of dimensions, tensors, memories and clusters."""
    data = sample.architecture.to_data()
    for number, cluster in enumerate(data["clusters"]):
        cluster["name"] = f"level{number}"
        for place, memory in enumerate(cluster.get("memories", ())):
            memory["name"] = f"store{number}{place}"
    return Sample(renamed(sample.problem), Architecture.model_validate(data))
