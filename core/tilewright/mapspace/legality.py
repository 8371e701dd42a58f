"""Legality checks: the rules that a mapping breaks.

`legality` checks one mapping and explains every violation. `legal` checks a batch. The rules
themselves are compiled, in `rules`.

Four mappings of a product with M, K, N = 4, 8, 2. The architecture has two buffers of 16 words, unrolled along K.
A row is a mapping, and its tile is that of a buffer:

    tile of M, K, N   buffers   words of A, B, Z    code
    1, 4, 2           2         4 + 8 + 2 = 14      LEGAL
    4, 4, 2           2         16 + 8 + 8 = 32     CAPACITY
    1, 2, 2           4         2 + 4 + 2 = 8       FANOUT
    4, 4, 2           4         16 + 8 + 8 = 32     TEMPORAL

The last mapping breaks three rules. Its K of 4 exceeds the tile of 2 that is sent to a buffer, which is checked first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.compiled import LANES, compiled, for_kernel
from tilewright.errors import Reason, Verdict
from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.rules.legality_kernel import check_tiles
from tilewright.mapspace.rules.scratch import Scratch, hold_tiles, scratch_of
from tilewright.mapspace.rules.tables import (
    BACKING,
    CAPACITY,
    FANOUT,
    HOME,
    LEGAL,
    REST,
    SPATIAL,
    TEMPORAL,
    TWICE,
    UNROLL,
    WHOLE,
    Codes,
    Rules,
    rules_of,
)
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.document import suggestion
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

MAX_EXPLAINED = 1000
"""Maximum number of violations that are explained."""


def legality(problem: Problem, architecture: Architecture, mapping: Mapping) -> Verdict:
    """Return a verdict with a reason for every rule that the mapping breaks.

    The codes of the reasons are:

    - `dimension`, `target`, `tensor`: A name is unknown.
    - `order`: Entries do not run from outer to inner clusters.
    - `coverage`: Iterations are missing or repeated.
    - `nesting`: A tile is larger than the enclosing tile.
    - `fanout`: An unrolling uses more sub-clusters than exist.
    - `split`: An entry unrolls but is not the last one of its cluster.
    - `keep`: A tensor is kept where it is not allowed, or twice in a cluster.
    - `backing`: No entry keeps a tensor.
    - `capacity`: The tiles do not fit a memory.
    - `more`: The number of violations beyond the first thousand.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import legality
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> bool(legality(layer.mapping.problem, layer.mapping.architecture, layer.mapping))
        True
    """
    names = tuple(_unknown_names(problem, architecture, mapping))
    if names:  # the other rules need valid names
        return Verdict(reasons=names)
    skeleton = Skeleton.of(mapping)
    rules = rules_of(problem, architecture, skeleton)
    scratch = scratch_of(rules, faults=4 * len(skeleton) * (len(problem.sizes) + len(problem.tensors)) ** 2)
    count, _ = _check_batch(rules, MappingBatch.pack(problem, [mapping]), scratch)
    told = scratch.faults[: min(count, MAX_EXPLAINED)].tolist()
    more = (
        ()
        if count <= MAX_EXPLAINED
        else (Reason(code="more", where="", message=f"{count - MAX_EXPLAINED:,} further violations"),)
    )
    return Verdict(
        reasons=(
            *(
                Reason(code=code, where=place(mapping, index), message=text)
                for code, index, text in _misplaced(architecture, skeleton)
            ),
            *(_reason(problem, architecture, mapping, *map(int, fault)) for fault in told),
            *more,
        )
    )


def broken_rules(problem: Problem, architecture: Architecture, batch: MappingBatch) -> Codes:
    """Return the code of the first rule that each mapping breaks, int8 [n]; `rules.LEGAL` if none.

    Arrays that no mapping object can represent break a rule, too. Examples are a tile size below 1
    and an order that lacks a dimension.
    """
    known = (
        batch.problem.dimension_names == problem.dimension_names and batch.problem.tensor_names == problem.tensor_names
    )
    targets = all(entry.target in architecture.cluster_index for entry in batch.skeleton.entries)
    if not known or not targets or any(_misplaced(architecture, batch.skeleton)):
        return np.full(len(batch), WHOLE, dtype=np.int8)
    rules = rules_of(problem, architecture, batch.skeleton)
    return _check_batch(rules, batch, scratch_of(rules))[1]


def legal(problem: Problem, architecture: Architecture, batch: MappingBatch) -> Bools:
    """Return whether each mapping of a batch is legal, bool [n]. `legality` gives the reasons for one mapping.

    For example, `batch.take(legal(problem, architecture, batch))` has the legal mappings of a batch only.

    Example:
        >>> import tilewright as tw
        >>> import numpy as np
        >>> from tilewright.plugin import legal
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> batch = space.sample(np.random.default_rng(0), 4).batch()
        >>> legal(space.problem, space.architecture, batch).shape
        (4,)
    """
    return np.asarray(broken_rules(problem, architecture, batch) == LEGAL)


def memory_table(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Ints:
    """Return the memory that may keep each tensor at each entry, [entry, tensor]: its index in `architecture.memories`; -1: none.

    For example, the first row is [0, 0, 0] if the outermost entry may keep all three tensors in the first memory.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Skeleton, memory_table
        >>> machine = tw.load("eyeriss", "architecture")
        >>> memory_table(tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), machine, Skeleton.for_architecture(machine))[0].tolist()
        [0, 0, 0]
    """
    memories: Ints = rules_of(problem, architecture, skeleton).memory.astype(np.int64)
    return memories


def _check_batch(rules: Rules, batch: MappingBatch, scratch: Scratch) -> tuple[int, Codes]:
    """Return the number of violations of the last mapping, and the first violated code of each."""
    codes = np.empty(len(batch), dtype=np.int8)
    absent = np.zeros((0, *batch.order.shape[1:]), dtype=np.int8)
    count = check_tiles(
        rules=rules,
        temporal=for_kernel(batch.temporal),
        spatial=for_kernel(batch.spatial),
        order=for_kernel(batch.order),
        spatial_order=for_kernel(absent if batch.spatial_order is None else batch.spatial_order),
        keep=for_kernel(batch.keep),
        codes=codes,
        scratch=scratch,
    )
    return count, codes


def backing_warnings(problem: Problem, mapping: Mapping) -> list[str]:
    """Return a warning for every tensor that the outermost entry of a legal mapping does not keep."""
    warnings = []
    for name in problem.tensor_names:
        backing = next(entry.target for entry in mapping.entries if name in (entry.keep or ()))
        if name not in (mapping.entries[0].keep or ()):
            text = f"{name} bypasses {mapping.entries[0].target}: traffic outside {backing} is not counted for it"
            warnings.append(text)
    return warnings


def place(mapping: Mapping, index: int) -> str:
    """Return the name of an entry for messages."""
    return f"entry {index} on {mapping.entries[index].target}"


def _unknown_names(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    for name in sorted(set(problem.dimensions).symmetric_difference(mapping.dimension_names)):
        whose = "the mapping has no tile sizes for it" if name in problem.dimensions else "the problem does not have it"
        yield Reason(code="dimension", where=f"dimension {name}", message=whose)
    for index, entry in enumerate(mapping.entries):
        if entry.target not in architecture.cluster_index:
            hint = suggestion(entry.target, architecture.cluster_index)
            yield Reason(
                code="target",
                where=f"entry {index}",
                message=f"{architecture.name} has no cluster '{entry.target}'{hint}",
            )
        for name in (*(entry.keep or ()), *entry.unicast):
            if name not in problem.tensor_names:
                hint = suggestion(name, problem.tensor_names)
                yield Reason(code="tensor", where=place(mapping, index), message=f"no tensor '{name}'{hint}")


def _misplaced(architecture: Architecture, skeleton: Skeleton) -> Iterator[tuple[str, int, str]]:
    """Yield (code, entry, message) for violations that every mapping over the skeleton shares."""
    position = 0
    for index, entry in enumerate(skeleton.entries):
        target = architecture.cluster_index[entry.target]
        if target < position:
            yield "order", index, f"comes after {architecture.clusters[position].name}, which is inside it"
        position = max(position, target)
        if entry.holds and architecture.clusters[target].is_virtual:
            yield "keep", index, "the cluster is virtual: it has no memory"


def _reason(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    code: int,
    entry: int,
    which: int,
    value: int,
    limit: int,
) -> Reason:
    """Return a violation as a reason with a message."""
    dimension = f"dimension {problem.dimension_names[which]}" if code in (WHOLE, REST, TEMPORAL, SPATIAL) else ""
    tensor = problem.tensors[which] if code in (TWICE, HOME, BACKING) else None
    where = place(mapping, entry)
    if code == WHOLE:
        text = f"the tiles cover {value} iterations, the problem has {limit}"
        return Reason(code="coverage", where=dimension, message=text)
    if code == REST:
        text = f"the innermost tile has {value} iterations; expected 1"
        return Reason(code="coverage", where=dimension, message=text)
    if code in (TEMPORAL, SPATIAL):
        text = f"{'temporal' if code == TEMPORAL else 'spatial'} tile of {value} exceeds the enclosing tile of {limit}"
        return Reason(code="nesting", where=f"{where}, {dimension}", message=text)
    if code == FANOUT:
        return Reason(code="fanout", where=where, message=f"uses {value} sub-clusters, but the cluster has {limit}")
    if code == UNROLL:
        text = f"unrolls over {value} sub-clusters, but only the last entry on a cluster may unroll"
        return Reason(code="split", where=where, message=text)
    if code == CAPACITY:
        memory = architecture.memories[which]
        whole, part = divmod(value, memory.slices_per_word)
        need = f"{whole + part / memory.slices_per_word:.15g}" if part else f"{whole}"
        text = f"the tiles need {need if value < 2**53 else 'more than 2**53'} words, {memory.usable_words} fit"
        return Reason(code="capacity", where=memory.name, message=text)
    assert tensor is not None
    if code == TWICE:
        return Reason(code="keep", where=where, message=f"{tensor.name} is already kept in this cluster")
    if code == HOME:
        cluster = architecture.cluster(mapping.entries[entry].target)
        able = [memory.name for memory in cluster.memories if memory.may_hold(tensor)]
        text = f"no memory there may hold {tensor.name} ({tensor.role})"
        if able:
            text = f"{' and '.join(able)} may hold {tensor.name} ({tensor.role}); make their 'holds' disjoint"
        return Reason(code="keep", where=where, message=text)
    return Reason(code="backing", where=f"tensor {tensor.name}", message="is bypassed in all memories")


def fits(architecture: Architecture, batch: MappingBatch) -> Bools:
    """Return whether the tiles fit the memories, bool [n].

    All entries of one memory count towards its capacity.
    """
    rules = rules_of(batch.problem, architecture, batch.skeleton)
    return np.asarray((_slices(rules, batch) <= rules.usable).all(axis=1))


def words_needed(architecture: Architecture, batch: MappingBatch, memory: Memory) -> Floats:
    """Return the words [n] that the tiles need in a memory of limited capacity."""
    need = _slices(rules_of(batch.problem, architecture, batch.skeleton), batch)
    return np.asarray(need[:, architecture.memories.index(memory)] / memory.slices_per_word)


def _slices(rules: Rules, batch: MappingBatch) -> Floats:
    need = np.empty((len(batch), len(rules.usable)), dtype=np.float64)
    _count_slices(rules, for_kernel(batch.temporal), for_kernel(batch.keep), need, scratch_of(rules))
    return need


@compiled
def _count_slices(rules: Rules, temporal: Ints, keep: Bools, need: Floats, scratch: Scratch) -> None:
    """Write the slices that every mapping needs in every memory of limited capacity, [n, M]."""
    for first in range(0, len(temporal), LANES):
        hold_tiles(rules, temporal, keep, first, scratch)
        for n in range(first, min(first + LANES, len(temporal))):
            for memory in range(need.shape[1]):
                need[n, memory] = scratch.need[memory, n - first]
