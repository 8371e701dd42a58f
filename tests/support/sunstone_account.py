"""Sunstone's own model of energy and latency, for one array between two on-chip memories.

The published figures use it. Every operand is read from L1 at each operation. A tile is reused only
over the loops directly outside it, in its order. A window's halo is saved along one dimension that
is not unrolled. Outputs are read back except for the first time. Latency is that of the operations
or of L2's words. The order of each block is chosen from inside, regardless of the mapping.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.looporders import Prefix, ordering_trie, reuse_maximal
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.reports import Report
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor

Extents = NDArray[np.float64]


class SunstoneAccount(BatchEvaluator):
    """`edp` of mappings of a space with the slots DRAM, L2, X, Y, L1; valid where the tiles fit."""

    def __init__(self, space: MapSpace, case: dict[str, Any]) -> None:
        self.problem: Problem = space.problem
        self.space, self.case = space, case
        self.orders = reuse_maximal(ordering_trie(space.problem))
        self.known: dict[bytes, float] = {}

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        given = Candidates.of(self.space, batch)
        values = np.full(len(batch), np.inf)
        for index in np.flatnonzero(given.fits()):
            dram, l2, across, down, l1 = given.trips[index, :5].astype(np.float64)
            key = np.stack([l1, across * down, l2]).tobytes()
            if key not in self.known:
                self.known[key] = self._edp(l1, across * down, l2, dram)
            values[index] = self.known[key]
        cycles = np.where(np.isfinite(values), float(self.problem.macs), np.inf)  # enough for any number of units
        return Costs(np.isfinite(values), values / self.problem.macs, cycles)

    def explain(self, mapping: Mapping) -> Report:
        raise NotImplementedError

    def _edp(self, l1: Extents, unrolled: Extents, l2: Extents, dram: Extents) -> float:
        case, macs = self.case, float(np.prod(l1 * unrolled * l2 * dram))
        energy = 2.2 * macs + case["l1_pj"] * macs * (len(self.problem.tensors) + 1)
        latency = macs / float(np.prod(unrolled))
        none = np.ones_like(unrolled)
        for tile, across, here, outer, inner_pj, outer_pj, bandwidth in (
            (l1, unrolled, l2, dram, case["l1_pj"], case["l2_pj"], case["l2_bandwidth"]),
            (l1 * unrolled * l2, none, dram, none, case["l2_pj"], case["dram_pj"], np.inf),
        ):
            options = []
            for order in self.orders:
                added, words = 0.0, 0.0
                for number, tensor in enumerate(self.problem.tensors):
                    filled = self._filled(number, tensor, order, tile, across, here, outer)
                    shared = float(np.prod(across[self._absent(tensor)]))
                    read, drained = filled / shared, 0.0
                    if tensor.role == "output":
                        drained = read
                        read -= self._words(tensor, tile * across * here * outer)
                    added += inner_pj * read * shared + outer_pj * (read + drained)
                    words += read
                slowed = max(latency, words / bandwidth)
                options.append(((energy + added) * slowed, energy + added, slowed))
            _, energy, latency = min(options)
        return float(energy * latency)

    def _filled(
        self, number: int, tensor: Tensor, order: Prefix, tile: Extents, across: Extents, here: Extents, outer: Extents
    ) -> float:
        """Words written into all copies of the inner memory."""
        extent, loops = tile.copy(), across * here * outer
        for _, dim in (pair for pair in order.reuse if pair[0] == number):
            if dim in self._absent(tensor):
                loops[dim] /= here[dim]
            elif all(across[other] == 1 for other in self._window(tensor, dim)):
                loops[dim] /= here[dim]
                extent[dim] *= here[dim]
        return self._words(tensor, extent) * float(np.prod(loops))

    def _absent(self, tensor: Tensor) -> list[int]:
        return [d for d, name in enumerate(self.problem.dimension_names) if name not in tensor.dimensions]

    def _window(self, tensor: Tensor, dim: int) -> list[int]:
        names = self.problem.dimension_names
        return [names.index(n) for rank in tensor.projection if names[dim] in rank.terms for n in rank.terms]

    def _words(self, tensor: Tensor, extent: Extents) -> float:
        names = self.problem.dimension_names
        ranks = [1 + sum(c * (extent[names.index(n)] - 1) for n, c in rank.terms.items()) for rank in tensor.projection]
        return float(np.prod(ranks))
