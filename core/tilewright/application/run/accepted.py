"""Restriction of map spaces to the declared capabilities of a plugin, before a search begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.application.run.evaluation import BuiltModel
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.capabilities import Capabilities
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, KeepRule, SpatialRule, TemporalRule
from tilewright.schema.problem import Problem

ANOTHER = "choose another one (tilewright plugins lists them), or another architecture"
"""Hint if neither constraints nor options can help."""
Barred = list[tuple[int, tuple[str, ...], str]]
"""Temporal loops that are not accepted: the entry, the dimensions, and the code of the reason."""


def narrowed_space(
    model: BuiltModel, problem: Problem, architecture: Architecture, constraints: Constraints
) -> tuple[MapSpace, bool]:
    """Return (the part of the map space that the cost model accepts, whether the constraints cover the problem).

    Raises:
        NotConformableError: The model accepts no part of it.
        InputError: The constraints do not suit the architecture.
    """
    shaped = constraints.shape(architecture)
    rules = constraints.rules_for(problem, shaped)
    space = MapSpace.of(problem, shaped, rules, factors=constraints.factors_for(problem, rules))
    narrowed = accepted(space, model.capabilities, f"cost model {model.name}")
    return narrowed, rules is not None or not constraints.variants


def accepted(space: MapSpace, capabilities: Capabilities, plugin: str) -> MapSpace:
    """Return the part of a space that a plugin accepts: the space itself, or one with more rules.

    Without uneven mappings, no loop separates the storage entries of a cluster. Without bypassing mappings, every
    memory level keeps all tensors that it may keep. Without window loops, no window has a loop outside the innermost
    storage level. A ragged space is never restricted to its perfect mappings.

    Raises:
        NotConformableError: The plugin accepts no mapping of it, with all reasons and a hint.
    """
    verdict = capabilities.judge(space.problem, space.architecture)
    if not verdict:
        raise NotConformableError(plugin, verdict.reasons, hint=ANOTHER)
    if space.factors == "ragged" and not capabilities.imperfect_factors:
        reason = Reason(code="imperfect", where="factors", message="ragged tiles are not accepted")
        raise NotConformableError(plugin, [reason], hint="say --factors perfect, or choose another one")
    barred = [*_barred(space, capabilities)]
    reasons = [
        *_forced_loops(space, barred),
        *(() if capabilities.bypassing_mappings else _forced_bypasses(space)),
        *_forced_unrollings(space, capabilities),
    ]
    keep = () if capabilities.bypassing_mappings else tuple(_keep_all(space))
    spatial = tuple(_unstrided(space, capabilities))
    narrowed = _with(space, temporal=_closed(space, barred), spatial=spatial, keep=keep)
    if not capabilities.repeated_loops:
        repeated = [*_repeated(narrowed)]
        reasons += _forced_loops(narrowed, repeated)
        narrowed = _with(narrowed, temporal=_closed(narrowed, repeated))
    if reasons:
        hint = "loosen the constraints (--constraints), or choose another one (tilewright plugins lists them)"
        raise NotConformableError(plugin, reasons, hint=hint)
    most = [limit for limit in (space.max_unrolled_loops, capabilities.max_unrolled_loops) if limit is not None]
    limits: dict[str, Any] = {
        "tile_copies": max(space.tile_copies, capabilities.tile_copies),
        "outputs_span_windows": space.outputs_span_windows or capabilities.outputs_span_windows,
        "max_unrolled_loops": min(most, default=None),
    }
    return (
        narrowed
        if all(getattr(space, name) == value for name, value in limits.items())
        else replace(narrowed, **limits)
    )


def _with(
    space: MapSpace,
    temporal: tuple[TemporalRule, ...] = (),
    spatial: tuple[SpatialRule, ...] = (),
    keep: tuple[KeepRule, ...] = (),
) -> MapSpace:
    """Return the space with more rules; without any, the space itself."""
    if not (temporal or spatial or keep):
        return space
    rules = space.rules
    more = {
        "temporal": (*rules.temporal, *temporal),
        "spatial": (*rules.spatial, *spatial),
        "keep": (*keep, *rules.keep),
    }
    return replace(space, rules=rules.model_copy(update=more))


def _closed(space: MapSpace, barred: Barred) -> tuple[TemporalRule, ...]:
    """Return rules that exclude loops from entries."""
    return tuple(
        TemporalRule(memory=memory, only=tuple(name for name in space.problem.dimensions if name not in names))
        for index, names, _ in barred
        if (memory := space.skeleton.entries[index].inside) is not None
    )


def _repeated(space: MapSpace) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Yield loops to exclude so that a dimension has one temporal loop between two unrollings.

    The outermost loop with the widest range stays.
    """
    for group in _groups(space):
        slots = [space.slots[index] for index in group]
        for dim, (name, size) in enumerate(space.problem.dimensions.items()):
            able = [slot for slot in slots if min(slot.highest[dim], size) > 1]
            home = max(
                able, key=lambda slot: (slot.lowest[dim] > 1, slot.highest[dim]), default=None
            )  # the first of equals
            yield from ((slot.entry, (name,), "repeated") for slot in able if slot is not home)


def _groups(space: MapSpace) -> list[list[int]]:
    """Return slots of loops outside the innermost storage level, outermost first.

    The groups are separated by slots with a forced unrolling.
    """
    last = max(index for index, entry in enumerate(space.skeleton.entries) if entry.holds)
    groups: list[list[int]] = [[]]
    for index, slot in enumerate(space.slots):
        if slot.spatial and (slot.least > 1 or max(slot.lowest) > 1):
            groups.append([])
        elif not slot.spatial and slot.entry <= last:
            groups[-1].append(index)
    return groups


def _unstrided(space: MapSpace, capabilities: Capabilities) -> Iterator[SpatialRule]:
    """Yield rules that exclude unrolled strided windows."""
    strided = () if capabilities.strided_window_unrolling else space.problem.strided_windows
    for slot in space.unrolled_slots if strided else ():
        target = space.skeleton.entries[space.slots[slot].entry].target
        only = tuple(name for name in space.problem.dimensions if name not in strided)
        yield SpatialRule(cluster=target, only=only)


def _forced_unrollings(space: MapSpace, capabilities: Capabilities) -> Iterator[Reason]:
    """Yield a reason for each rule that forces an unrolling that is not accepted."""
    names, most = space.problem.dimension_names, capabilities.max_unrolled_loops
    forced = [
        (slot, name)
        for slot in space.unrolled_slots
        for dim, name in enumerate(names)
        if space.slots[slot].lowest[dim] > 1
    ]
    for slot, name in forced:
        if not capabilities.strided_window_unrolling and name in space.problem.strided_windows:
            text = f"{space.describe(space.slots[slot])} must unroll {name}, a window that slides by more than one"
            yield Reason(code="window", where=f"dimension {name}", message=text)
    if most is not None and len(forced) > most:
        text = f"the constraints unroll {len(forced)} loops, at most {most} accepted"
        yield Reason(code="unrolled", where="constraints", message=text)


def _barred(space: MapSpace, capabilities: Capabilities) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Yield temporal loops that are not accepted: the entry, the dimensions, and the code of the reason."""
    if not capabilities.uneven_mappings:
        yield from ((index, space.problem.dimension_names, "uneven") for index in _between(space))
    windows, entries = space.problem.windows, space.skeleton.entries
    if windows and not capabilities.window_loops:
        last = max(index for index, entry in enumerate(entries) if entry.holds)
        yield from ((index, windows, "window") for index in range(1, last + 1) if entries[index].steps)


def _between(space: MapSpace) -> list[int]:
    """Return entries with loops between two storage entries of the same cluster."""
    entries, (always, free) = space.skeleton.entries, space.keeps
    holding = [index for index in range(len(entries)) if (always | free)[index].any()]
    indices = []
    for index, entry in enumerate(entries):
        here = [at for at in holding if entries[at].target == entry.target]
        if entry.steps and here and here[0] < index <= here[-1]:
            indices.append(index)
    return indices


def _forced_loops(space: MapSpace, barred: Barred) -> Iterator[Reason]:
    """Yield a reason for each rule that forces an excluded loop."""
    so = {
        "uneven": "so every mapping is uneven there",
        "window": "which must be whole in time there",
        "repeated": "which already has an outer loop with no unrolling between",
    }
    for slot in space.temporal_slots:
        steps = dict(zip(space.problem.dimension_names, space.slots[slot].lowest, strict=True))
        for index, dimensions, code in barred:
            names = [name for name in dimensions if steps[name] > 1]
            if space.slots[slot].entry == index and names:
                target = space.skeleton.entries[index].target
                text = f"{space.describe(space.slots[slot])} must step {', '.join(names)}, {so[code]}"
                yield Reason(code=code, where=f"cluster {target}", message=text)


def _forced_bypasses(space: MapSpace) -> Iterator[Reason]:
    """Yield a reason for each memory level that rules let a tensor bypass."""
    always, free = space.keeps
    for cluster in space.architecture.clusters:
        here = [at for at, entry in enumerate(space.skeleton.entries) if entry.holds and entry.target == cluster.name]
        names = [
            name for number, name in enumerate(space.problem.tensor_names) if not (always | free)[here, number].any()
        ]
        if cluster.memories and names:
            text = f"the constraints let {', '.join(names)} bypass it; every tensor must go through it"
            yield Reason(code="bypass", where=f"cluster {cluster.name}", message=text)


def _keep_all(space: MapSpace) -> Iterator[KeepRule]:
    """Yield rules that keep all optional tensors."""
    _, free = space.keeps
    for entry, row in zip(space.skeleton.entries, free, strict=True):
        cluster = space.architecture.cluster(entry.target)
        for tensor, on in zip(space.problem.tensors, row, strict=True):
            memory = cluster.memory_for(tensor) if on else None
            if memory is not None:
                yield KeepRule(memory=memory.name, keep=(tensor.name,))
