"""The kernel: what mappings move, counted one after another by the rules of Timeloop (docs/timeloop.md), and what it costs.

Counts are float64, exact below 2**53; the model refuses problems beyond.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules import tile_words
from tilewright_costmodels.timeloop.costs import (
    FILLS,
    HOPS,
    INGRESSES,
    LINKS,
    PARTITION_WORDS,
    READS,
    ROUTERS,
    TILE_WORDS,
    UPDATES,
    cost,
)
from tilewright_costmodels.timeloop.flow import (
    deliver,
    deliveries_of,
    describe_children,
    measure,
    overlap_of,
    pass_on,
    revisits,
)
from tilewright_costmodels.timeloop.nest import (
    CHILDREN,
    CONTENT,
    LINKED,
    OUTSIDE,
    PASSES,
    PEER,
    SERVED,
    SHARE,
    SHIFT,
    Job,
    unfold,
)
from tilewright_costmodels.timeloop.sharing import (
    ACCESSES,
    DIMENSION,
    FAR,
    NO_SHIFT,
    SENT,
    STEP,
    make_room,
    sharing,
)
from tilewright_costmodels.timeloop.tables import (
    ALONE,
    DISPLACEMENT,
    HOLDS,
    IN_DRAM,
    KEPT,
    OUTPUT,
    RELEVANT,
    SLIDING,
    STOP,
)


@compiled
def evaluate(job: Job, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Count what every mapping moves, and say what the counts cost.

    Args:
        job: its counts are of `n` mappings, or of one: the last.
        valid: which mappings are legal; those that do not fit the mesh become False.
    """
    tensors, hardware, nest, unrolled, actions = job.tensors, job.hardware, job.nest, job.unrolled, job.counts.actions
    levels, count = len(hardware.level), len(tensors.whole)
    for n in range(len(valid)):
        row = n if len(job.counts.compute_cycles) > 1 else 0
        kept = n if len(job.mappings.keep) > 1 else 0
        if valid[n]:
            valid[n] = unfold(job, n, row)
        if not valid[n]:
            continue
        make_room(job.accounts)
        job.counts.compute_cycles[row] = nest.level[levels - 1, PASSES] * hardware.cycles_per_operation
        for tensor in range(count):
            measure(job, row, tensor)
            sliding = tensors.whole[tensor, SLIDING] > 0.0
            c, loop = -1, 0  # the innermost loop so far that moves the tensor
            at, still, credited = -1, 0.0, 0.0
            nest.level[0, PEER] = nest.level[0, SHARE] = 0.0
            for level in range(levels):
                children, end, inner = nest.level[level, CHILDREN], nest.end[level], level == levels - 1
                while loop < end:
                    d = nest.loop[loop, DIMENSION]
                    if tensors.by_dimension[tensor, d, RELEVANT]:
                        c = loop
                    nest.loop[loop, SHIFT] = tensors.by_dimension[tensor, d, DISPLACEMENT] * nest.loop[loop, STEP]
                    loop += 1
                deliveries, tangled, account = 1.0, False, 0
                if children > 1.0:
                    deliveries, tangled = deliveries_of(job, n, tensor, level)
                    if tangled or job.detailed:
                        length = describe_children(job, n, tensor, level, NO_SHIFT, not tangled)
                        account = sharing(hardware, length, job.accounts)
                        deliveries = float(job.accounts.pool[account])
                # compute has no register: every operation fetches its words
                words, tile, slides, overlap = nest.trips[end, OUTSIDE], 1.0, False, 0.0
                keeps = False
                if not inner:  # every step of loop c, and every restart of it, moves a whole tile
                    words = nest.trips[c + 1, OUTSIDE]
                    keeps = job.mappings.keep[kept, hardware.level[level + 1, HOLDS], tensor] & KEPT > 0
                if keeps or (not inner and (children > 1.0 or job.detailed)):  # else only the ratio of counts matters
                    tile = tile_words(tensors.terms, tensor, nest.inside, hardware.level[level, STOP])
                    actions[(row * levels + level + 1) * count + tensor, TILE_WORDS] = tile
                    words *= tile
                    slides = sliding and c >= 0 and tensors.by_dimension[tensor, nest.loop[c, DIMENSION], ALONE] == 0
                if slides:
                    if at != c:
                        at = c
                        still, credited = revisits(job, c)
                    overlap = overlap_of(job, tensor, level, c, tile)
                    words -= tile * still + overlap * credited
                nest.level[level, CONTENT] = words * deliveries
                nest.level[level, SERVED] = words * children
                nest.level[level, LINKED] = 0.0
                if job.detailed:
                    unrolled.sizes[tensor, level] = 0
                if slides and job.link_transfers and children > 1.0 and c == end - 1:
                    words = pass_on(job, n, tensor, level, c, tile, overlap, deliveries, words)
                if job.detailed:
                    deliver(tensor, level, words, account, unrolled, job.accounts)
                if not inner:
                    nest.level[level + 1, SHARE] = nest.level[level, SERVED] / children
                    nest.level[level + 1, PEER] = nest.level[level, LINKED] / job.counts.instances[row, level + 1]
            _access(job, n, row, tensor)
        energy_pj[n], cycles[n] = cost(hardware, job.counts, row)


@kernel_part
def _access(job: Job, n: int, row: int, tensor: int) -> None:
    """Reads, fills and updates of a tensor at every level, those that bypass it folded into the next one outside."""
    nest, actions = job.nest, job.counts.actions
    levels, count = job.counts.instances.shape[1], len(job.tensors.whole)
    kept = n if len(job.mappings.keep) > 1 else 0
    output = job.tensors.whole[tensor, OUTPUT] > 0.0
    for level in range(levels - 1, -1, -1):
        at = (row * levels + level) * count + tensor
        content, peer = nest.level[level, CONTENT], nest.level[level, PEER]
        reads = fills = updates = 0.0
        if job.mappings.keep[kept, job.hardware.level[level, HOLDS], tensor] & KEPT == 0:
            # the level outside is accessed as often, in its own mix of deliveries
            factor = content * nest.level[level - 1, CHILDREN] / nest.level[level - 1, SERVED]
            nest.level[level - 1, CONTENT] *= factor
            nest.level[level - 1, LINKED] = 0.0
            if job.detailed:
                for size in range(job.unrolled.sizes[tensor, level - 1]):
                    job.unrolled.words[tensor, level - 1, size, ACCESSES] *= factor
        elif output:
            # the first partial sum of every word is written, not added; a box with holes promises more words than exist
            part = actions[at, PARTITION_WORDS]
            reads = max(0.0, np.floor(content + peer - part + 0.5))
            fills = max(0.0, np.floor(nest.level[level, SHARE] + peer - part + 0.5)) if level else 0.0
            updates = np.floor(content + 0.5)
        else:
            reads = np.floor(content + peer + 0.5)
            fills = np.floor(nest.level[level, SHARE] + peer) if level else 0.0
        actions[at, READS], actions[at, FILLS], actions[at, UPDATES] = reads, fills, updates
    if job.detailed:
        for level in range(levels):
            _network(job, n, row, tensor, level)


@kernel_part
def _network(job: Job, n: int, row: int, tensor: int, level: int) -> None:
    """Hops, routers and ingresses below one instance of a level (Timeloop's legacy network)."""
    actions, words = job.counts.actions, job.unrolled.words
    at = (row * job.counts.instances.shape[1] + level) * len(job.tensors.whole) + tensor
    kept = n if len(job.mappings.keep) > 1 else 0
    keeps = job.mappings.keep[kept, job.hardware.level[level, HOLDS], tensor] & KEPT > 0
    hops = routers = ingresses = 0.0
    for size in range(job.unrolled.sizes[tensor, level]):
        accesses = np.floor(words[tensor, level, size, ACCESSES] + 0.5)
        if job.tensors.whole[tensor, OUTPUT] > 0.0 and job.hardware.noc[level, IN_DRAM] > 0.0:
            # DRAM cannot add: partial sums go down and come back
            accesses = max(accesses, 2.0 * accesses - actions[at, PARTITION_WORDS]) if keeps else 0.0
        words[tensor, level, size, SENT] = accesses
        if accesses > 0.0:
            far = words[tensor, level, size, FAR]
            hops += far
            routers += np.trunc((1.0 + far // accesses) * accesses)
            ingresses += accesses
    actions[at, HOPS], actions[at, ROUTERS], actions[at, INGRESSES] = hops, routers, ingresses
    actions[at, LINKS] = job.nest.level[level, LINKED]
