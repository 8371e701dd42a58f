"""Relaxation of sparse hardware: the least cost of words for any tiles (docs/optimal.md, Lemma 17)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin import Relaxation
from tilewright.prices import operations_pj
from tilewright.prices.sparse import data_prices, metadata_prices
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.sparse import SparseMemory, TensorFormat
from tilewright_costmodels.timeloop.sparse.densities import Distribution, Uniform, hypergeometric
from tilewright_costmodels.timeloop.sparse.operations import (
    EXECUTED,
    FILL,
    GATED,
    READ,
    SKIPPED,
    UPDATE,
    perform,
    rounded,
    state_of,
)

ROUNDING_FACTOR = 1 - 1e-10
"""Factor below one by more than the rounding of probabilities."""


@dataclass(frozen=True)
class _Action:
    """An action on a tensor: `entries` that it may act on, and the `share` that it saves at most."""

    entries: tuple[int, ...]
    share: float
    kind: int


@dataclass(frozen=True)
class _Content:
    """Least contents of the tiles of a tensor in a memory.

    `exists`: share of the tiles that exist. `stored`: words per dense word; `charged`: those that cost energy.
    `pieces`: metadata per dense word, of formats with one rank.
    """

    exists: float
    stored: float
    charged: float
    pieces: float


class SparseRelaxation:
    """Least costs per word of sparse hardware.

    Args:
        dense: relaxation of the same hardware without its sparse parts.
        keeps: [E, T] entries that keep a tensor in all mappings, and in some; None: any entry may.
    """

    def __init__(
        self,
        problem: Problem,
        architecture: Architecture,
        densities: Mapping[str, Distribution],
        skeleton: Skeleton,
        dense: Relaxation,
        keeps: tuple[Bools, Bools] | None,
    ) -> None:
        self.problem, self.architecture, self.densities, self.dense = problem, architecture, densities, dense
        always, optional = keeps or (np.zeros_like(dense.memory, np.bool_), np.ones_like(dense.memory, np.bool_))
        self.always, self.maybe = always, (always | optional) & (dense.memory >= 0)
        self.clusters = [architecture.cluster_index[entry.target] for entry in skeleton.entries]
        self.holds = [number for number, entry in enumerate(skeleton.entries) if entry.holds]
        self.occupancies = cache(self._occupancies)
        self.actions: dict[int, list[_Action]] = {t: [] for t in range(len(problem.tensors))}
        self.exact = dense.exact
        for entry in self.holds:
            self._add_actions(entry)

    def find(self) -> Relaxation:
        """Return the relaxation."""
        shape = len(self.architecture.memories), len(self.problem.tensors)
        prices, moved, existing = np.zeros((3, *shape)), np.ones(shape), np.ones(shape[0])
        for t in range(shape[1]):
            for entry in np.flatnonzero(self.maybe[:, t]):
                m, content = self.dense.memory[entry, t], self._content(int(entry), t)
                prices[:, m, t], moved[m, t] = self._prices(int(entry), t, content)
                existing[m] = min(existing[m], content.exists)
        leakage = self.dense.leakage_pj * existing[self.dense.gate]
        self.exact &= bool((leakage == self.dense.leakage_pj).all())
        compute_pj, cycles = self._operations()
        return replace(
            self.dense,
            read_pj=prices[READ] * ROUNDING_FACTOR,
            fill_pj=prices[FILL] * ROUNDING_FACTOR,
            update_pj=prices[UPDATE] * ROUNDING_FACTOR,
            moved=moved * ROUNDING_FACTOR,
            leakage_pj=leakage,
            compute_pj=compute_pj,
            cycles_per_operation=cycles,
            exact=self.exact,
            rounded=True,
            order_matters=not self.exact,
        )

    # -- actions -------------------------------------------------------------------------------------------

    def _add_actions(self, entry: int) -> None:
        """Add the actions of the memories at a storage entry."""
        names = self.problem.tensor_names
        for memory in self.architecture.clusters[self.clusters[entry]].memories:
            for saving in memory.sparse.actions_on(self.problem.tensors) if memory.sparse else ():
                for option in saving.options:
                    t, kept = names.index(option.tensor), 1.0
                    for name in option.when_empty:  # no tile is empty more often than a single value
                        kept *= 1 - self.densities[name].empty((1,))
                    kind = GATED if saving.kind == "gate" else SKIPPED
                    self.actions[t].append(_Action(tuple(self._from(entry, t)), 1 - kept, kind))
                self.exact &= len(saving.options) == 1

    def _from(self, entry: int, t: int) -> Iterator[int]:
        """Yield the entries that may be the nearest one from `entry` outwards that keeps a tensor."""
        for outer in range(entry, -1, -1):
            if self.maybe[outer, t]:
                yield outer
                if self.always[outer, t]:
                    return

    def _is_constant(self, t: int) -> bool:
        """Return whether the actions on a tensor save the same share in all mappings: they decide on single values."""
        if not self.actions[t]:
            return True
        innermost = max(np.flatnonzero(self.maybe[:, t]), default=-1)
        alone = self.actions[t][0].entries == (innermost,) and len(self.actions[t]) == 1
        fanouts = (cluster.fanout.size for cluster in self.architecture.clusters[self.clusters[innermost] :])
        return alone and not self.problem.tensors[t].is_output and all(size == 1 for size in fanouts)

    # -- memories ------------------------------------------------------------------------------------------

    def _memory(self, entry: int, t: int) -> Memory:
        return self.architecture.memories[int(self.dense.memory[entry, t])]

    def _format(self, entry: int, t: int) -> TensorFormat | None:
        sparse = self._memory(entry, t).sparse
        return None if sparse is None else sparse.format_of(self.problem.tensors[t])

    def _occupancies(self, t: int, sent: bool) -> Floats:
        """Return [3, n] for all sizes of tiles: share that exists, nonzeros per word, share with a nonzero.

        Args:
            sent: empty tiles are not sent, because the parent has metadata.
        """
        density, shares = self.densities[self.problem.tensors[t].name], []
        mean = density.mean((1,))
        for words in _tile_words(self.problem, self.problem.tensors[t]):
            least, missing = 0, 0.0
            if sent and density.may_be_empty((words,)):
                missing = density.empty((words,))
                if isinstance(density, Uniform):  # the first possible number of nonzeros is taken for none
                    least = max(0, words - density.words + density.nonzeros)
                    missing = hypergeometric(least, words, density.nonzeros, density.words)
            exists = 1 - missing
            shares.append((exists, mean - least * missing / words, exists if sent else 1 - density.empty((words,))))
        return np.array(shares).T

    def _content(self, entry: int, t: int) -> _Content:
        memory, spec = self._memory(entry, t), self._format(entry, t)
        parents = list(self._from(entry - 1, t))
        sent = {self._format(parent, t) is not None for parent in parents}
        if not any(self.always[parent, t] for parent in parents):
            sent.add(False)
        rows = []
        for flag in sent:
            exists, nonzeros, busy = self.occupancies(t, flag)
            stored = exists if spec is None else nonzeros
            pieces = 0.0 * exists
            if spec is not None and len(spec.ranks) == 1:
                pieces = {"UOP": pieces, "UB": exists, "B": busy}.get(spec.ranks[0].format, nonzeros)
            # Timeloop takes partly filled blocks from tiles that exist, and counts the share of these again
            charged = stored * exists if spec is not None and memory.block_words > 1 else stored
            rows.append((exists, stored, charged, pieces))
        table = np.concatenate(rows, axis=1)
        low, high = table.min(axis=1), table.max(axis=1)
        differ = high - low > 1e-12
        self.exact &= not differ[1] and (spec is None or len(spec.ranks) == 1)
        self.exact &= not differ[3] or not metadata_prices(memory.sparse or SparseMemory()).any()
        return _Content(*low.tolist())

    def _prices(self, entry: int, t: int, content: _Content) -> tuple[Floats, float]:
        """Return pJ per word of each action, and the fraction of the words that takes bandwidth."""
        memory, spec, tensor = self._memory(entry, t), self._format(entry, t), self.problem.tensors[t]
        sparse = memory.sparse or SparseMemory()
        self.exact &= sparse.energy_pj("decompression") == sparse.energy_pj("compression") == 0
        instances = self.architecture.instances[self.clusters[entry]]
        charged = instances // memory.instances_per_macro / instances
        data, metadata, bits = data_prices(memory) * charged / memory.block_words, np.zeros((3, 3)), 0
        if spec is not None and len(spec.ranks) == 1:
            bits = sparse.metadata.bits_of(spec.ranks[0])[0]
            if bits:
                metadata = metadata_prices(sparse) * charged * bits / sparse.metadata.width_bits
                metadata /= memory.words_of(tensor)
        outer = max((saving.share for saving in self.actions[t] if min(saving.entries) < entry), default=0.0)
        savings = [saving for saving in self.actions[t] if entry in saving.entries]
        energies, ports = np.zeros(3), np.ones(3)
        for action in (READ, FILL, UPDATE) if tensor.is_output else (READ, FILL):
            kinds = {saving.kind for saving in savings if saving.share} if action != FILL else set[int]()
            saved = max((saving.share for saving in savings if saving.kind in kinds), default=0.0)
            skipped = max((saving.share for saving in savings if saving.kind in kinds & {SKIPPED}), default=0.0)
            if action == READ and tensor.is_output:  # what is saved is rounded up
                saved, skipped = math.ceil(saved), math.ceil(skipped)
            for prices, words in ((data, content.charged), (metadata, content.pieces)):
                least = min(prices[kind, action] for kind in {EXECUTED, *kinds})
                self.exact &= all(prices[kind, action] <= prices[EXECUTED, action] for kind in kinds)
                # what an outer action saves costs nothing here
                price = prices[EXECUTED, action] * (1 - saved) + least * saved
                kept = prices[EXECUTED, action] * (1 - max(saved, outer)) if prices is data else 0.0
                energies[action] += words * (kept if outer else price)
            ports[action] = content.stored * (1 - max(skipped, outer))
        limited = math.inf > min(
            rates[self.dense.memory[entry, t]]
            for rates in (self.dense.read_bandwidth, self.dense.write_bandwidth, self._shared_bandwidth())
        )
        moved = ports[: 3 if tensor.is_output else 2]
        self.exact &= not limited or bool(moved.min() == moved.max() and not bits)
        return energies, float(moved.min())

    def _shared_bandwidth(self) -> Floats:
        shared = self.dense.shared_bandwidth
        return np.full(len(self.dense.gate), np.inf) if shared is None else shared

    # -- operations ----------------------------------------------------------------------------------------

    def _operations(self) -> tuple[float, float]:
        """Return pJ of all operations, and cycles of one unit per operation."""
        compute, macs = self.architecture.compute, self.problem.macs
        operands = [self.problem.tensors.index(tensor) for tensor in self.problem.operands]
        nonzero = [rounded(self.densities[self.problem.tensors[t].name].mean((1,))) for t in operands]
        self.exact &= all(self._is_constant(t) for t in self.actions)
        if all(self._is_constant(t) for t in operands):
            left, cases = macs, set[tuple[float, ...]]()
            saved = {t: self.actions[t][0].share if self.actions[t] else 0.0 for t in sorted(operands)}
            for share in saved.values():
                left -= math.floor(left * share)
            shares = [rounded(saved[t]) for t in operands]
            for exist in itertools.product(*(self._may_exist(t) for t in operands)):
                a, first = state_of(nonzero[0], shares[1], not exist[0])
                b, second = state_of(nonzero[1], shares[0], not exist[1])
                if first and second:
                    gate, skip = (compute.sparse.gate, compute.sparse.skip) if compute.sparse else (False, False)
                    cases.add(tuple(map(float, perform(left, a, b, gate, skip))))
            if cases:
                self.exact &= len(cases) == 1
                energy = min(operations_pj(compute, *counts) for counts in cases)
                busy = min(actual + gated for actual, gated, _ in cases)
                return energy * ROUNDING_FACTOR, max(busy * compute.cycles_per_operation, 1) / macs * ROUNDING_FACTOR
        # shares are rounded to six decimals
        actual = macs * math.prod(max(0.0, density * (1 - 2e-5) - 2e-6) for density in nonzero)
        cycles = max(actual * compute.cycles_per_operation, 1) / macs * ROUNDING_FACTOR
        return operations_pj(compute, actual), cycles

    def _may_exist(self, t: int) -> set[bool]:
        """Return whether the zeros of an operand exist where units read it: without a format, they do."""
        return {self._format(entry, t) is None for entry in self._from(len(self.clusters) - 1, t)}


def _tile_words(problem: Problem, tensor: Tensor) -> list[int]:
    """Return the words of all tiles that divide the problem, ascending."""
    sizes = {1}
    for rank in tensor.projection:
        terms = [
            [step * (tile - 1) for tile in divisors(problem.dimensions[name])] for name, step in rank.terms.items()
        ]
        sides = {1 + sum(steps) for steps in itertools.product(*terms)}
        sizes = {words * side for words in sizes for side in sides}
    return sorted(sizes)
