"""Conversion of the demands of AccelForge's nodes to constraints."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.schema.constraints import Constraints, KeepRule, SpatialRule, Variant
from tilewright.schema.problem import Problem
from tilewright_adapters.accelforge.hardware import Hardware


def constraints(hardware: Hardware, problem: Problem | None) -> tuple[Constraints | None, list[str]]:
    """Return constraints on kept tensors, reuse and utilization, and warnings.

    A warning is given if `min_usage` exceeds the utilization that can be reached.
    """
    keep = []
    for memory in hardware.architecture.memories:
        must, may = hardware.keeps[memory.name]
        if must != may:
            keep.append(KeepRule(memory=memory.name, keep=tuple(sorted(must)), free=tuple(sorted(may - must))))
    allowed = {cluster: _allowed(problem, reuse) for cluster, (reuse, _) in hardware.reused.items()}
    wanted = {cluster: min(1.0, least) for cluster, (_, least) in hardware.reused.items()}
    reached = wanted if problem is None else _reached(hardware, problem, allowed, wanted)
    spatial = [
        SpatialRule(cluster=cluster, only=allowed[cluster], min_utilization=reached[cluster])
        for cluster in hardware.reused
        if allowed[cluster] is not None or reached[cluster] > 0
    ]
    warnings = [
        f"min_usage {wanted[cluster]:g} of {cluster} is out of reach: reduced to {reached[cluster]:g}"
        for cluster in wanted
        if reached[cluster] < wanted[cluster]
    ]
    if not keep and not spatial and not hardware.unsearched:
        return None, warnings
    variant = Variant(keep=tuple(keep), spatial=tuple(spatial), unsearched=hardware.unsearched)
    name = hardware.architecture.name
    return Constraints(name="accelforge", architecture=name, variants=(variant,)), warnings


def _allowed(problem: Problem | None, reuse: frozenset[str]) -> tuple[str, ...] | None:
    """Return the dimensions that may be unrolled while these tensors are reused; None: any."""
    if problem is None or not reuse:
        return None
    indexing = {name for tensor in problem.tensors if tensor.name in reuse for name in tensor.dimensions}
    return tuple(name for name in problem.dimensions if name not in indexing)


def _reached(
    hardware: Hardware,
    problem: Problem,
    allowed: Mapping[str, tuple[str, ...] | None],
    wanted: Mapping[str, float],
) -> dict[str, float]:
    """Return cluster -> minimum utilization, reduced to what all fanouts can reach together.

    If no mapping uses enough, AccelForge takes those that use the most. Here, fanouts with the
    fewest allowed dimensions choose first; each takes the largest product of divisors of the
    remaining sizes.
    """
    left = dict(problem.dimensions)
    sizes = {cluster.name: cluster.fanout.size for cluster in hardware.architecture.clusters}
    reached = dict(wanted)
    choosing = [cluster for cluster, least in wanted.items() if least > 0]
    for cluster in sorted(choosing, key=lambda chosen: len(left if allowed[chosen] is None else allowed[chosen] or ())):
        names = tuple(left) if allowed[cluster] is None else allowed[cluster] or ()
        used, taken = _fullest({name: left[name] for name in names}, sizes[cluster])
        for name, trips in taken.items():
            left[name] //= trips
        reached[cluster] = min(wanted[cluster], used / sizes[cluster])
    return reached


def _fullest(left: Mapping[str, int], room: int) -> tuple[int, dict[str, int]]:
    """Return the largest product of one divisor per size that is at most `room`, and the divisors."""
    best: dict[int, dict[str, int]] = {1: {}}
    for name, size in left.items():
        divisors = [factor for factor in range(1, min(size, room) + 1) if size % factor == 0]
        for product, taken in list(best.items()):
            for divisor in divisors:
                if product * divisor <= room:
                    best.setdefault(product * divisor, taken | {name: divisor})
    most = max(best)
    return most, best[most]
