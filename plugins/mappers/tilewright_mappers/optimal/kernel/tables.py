"""What the walk reads, as arrays: the problem, the skeleton, what is ahead; and how a state is laid out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import structure
from tilewright.mapspace.batch import Bools, Floats, Ints

DEAD, STILL, SLIDING = 0, 1, 2
"""How a tensor's tile fares in the loops since it was kept: every step brings another; none has moved it; a window moves on."""
NEVER, ALWAYS, MAYBE = 0, 1, 2


@structure
class Shape(NamedTuple):
    """The problem. Shapes: D dimensions, T tensors, P terms, R coordinates of all tensors, J trips and K numbers of tiles at most."""

    ragged: bool
    """Tiles need not divide a dimension."""
    sizes: Ints
    trip: Ints
    """[D, J]: what a loop may take, ascending; 0: no more."""
    left: Ints
    """[D, K]: how many tiles a dimension may consist of, descending; 0: no more."""
    stride: Ints
    """[D]: of the place in `left`."""
    moves: Bools
    """[T, D]."""
    rank: Ints
    """[T, D]: the coordinate of a window that the dimension moves together with others; -1: none."""
    coefficient: Ints
    """[T, D]: there."""
    start: Ints
    """[T + 1]."""
    dimension: Ints
    """[P]."""
    factor: Ints
    """[P]."""
    last: Bools
    """[P]."""
    output: Bools
    """[T]."""
    odd: Bools
    """[T]: nothing is said of how its words move."""
    vague: Bools
    """[T]: an output with windows or holes, whose first sums are those of the whole tensor, divided among sub-clusters."""
    blind: Bools
    """[T]: an operand with ragged windows, of which nothing is said but what units read."""
    whole: Floats
    """[T]: words."""
    least: Floats
    """[T]: words without holes; of those that are blind, 0."""
    first: Ints
    """[P]: of a coordinate's place in `covered`."""
    step: Ints
    """[P]: there, of the place in `left`."""
    covered: Floats
    """Values of coordinates that tiles of a size cover together; those between them that no iteration takes are holes."""


@structure
class Layout(NamedTuple):
    """Where things stand in the rows of a state: integers, of which the first are what states are told apart by; numbers."""

    used: int
    usual: int
    inner: int
    window: int
    conf: int
    keys: int
    """Up to here, `conf` included."""
    trace: int
    flag: int
    unrolled: int
    """[T + 1], of ragged tiles: bits of dimensions that are unrolled inside, since a tensor was kept; at all."""
    left: int
    """[D]: places in `Shape.left`."""
    tile: int
    """[D]: iterations, as if the last one were as large as the others."""
    integers: int
    tensors: int
    """What there is of every tensor, one after another."""
    side: int
    last: int
    """[D], of ragged tiles: steps that the last one takes, of those that the others take; then by how much more words the first
    instance may move than the average one."""
    port: int
    """[J]: words through every port."""
    pending: Ints
    """[T + 1]: the first of a tensor's words that are not settled, one for each port that it may use, and the place after all."""
    credit: Ints
    """[T + 1]: as many of an output's first sums."""
    through: Ints
    """[numbers]: of these, the port."""
    numbers: int


@structure
class Level(NamedTuple):
    """The level whose loops are walked: its slots in space, outermost first, K at most in any level."""

    slot: Ints
    """[K]; -1: none."""
    vertical: Bools
    """[K]."""
    least: Ints
    """[K]: sub-clusters that have to be used."""
    width: int
    """Sub-clusters along X."""
    kept: Ints
    """[T]: whether the entry directly inside keeps the tensor: `NEVER`, `ALWAYS`, `MAYBE`."""
    fill_pj: Floats
    """[T]: of a value there."""
    alone: bool
    """There is no fanout further out."""


@structure
class Keeping(NamedTuple):
    """An entry that keeps. Shapes: T tensors."""

    outermost: bool
    read_pj: Floats
    fill_pj: Floats
    update_pj: Floats
    """[T]: 0 of inputs."""
    reads: Ints
    """[T]: the number of the port among those of the tensor; -1: no limit."""
    writes: Ints
    leakage: Floats
    """[M]: pJ per cycle that leak with an instance of a memory in use, at the innermost entry that may use it; 0 at others."""
    memory: Ints
    """[T]."""
    words: Floats
    """[T]: of one value."""
    slices: Floats
    """[T]: of one value (see `Memory.slices_per_word`)."""
    usable: Floats
    """[M]: slices."""


@structure
class Ahead(NamedTuple):
    """What lies outside of a place in the walk. Shapes: S slots, T tensors, M memories, J ports."""

    slots: Ints
    """[S]: position among the level's slots in space (`used` counts), -1: outside of the level; -2: behind or not in space."""
    most: Ints
    """[S]."""
    able: Bools
    """[S, D]: more than one trip is allowed, and not chosen yet."""
    near: Bools
    """[T, S, D]: an unrolling there, inside of the next entry that surely keeps the tensor, may have sub-clusters share its words."""
    passes: Bools
    """[T]: neighbours may pass on what enters a memory, so that less of it arrives."""
    apart: Bools
    """[T, S]: the first slot in space of a level in which tiles along a window differ as its longest unrolling says, whatever neighbours pass
    on."""
    read_pj: Floats
    """[T]: least energy of a value that leaves the next memory."""
    update_pj: Floats
    rest_pj: Floats
    """[T]: of what every word costs beyond, whatever happens."""
    distinct: Floats
    """[T]: words that the next memory to keep the tensor delivers at least, whatever happens."""
    compulsory: Floats
    """[T]: 1 if the outermost memory delivers each word at least once to the next one that always keeps the tensor, else 0."""
    last: Bools
    """[T]: the next entry to keep it is the outermost."""
    between: Bools
    """[T]: some entry that surely keeps it is not the outermost."""
    cycles: Floats
    """[T]: per value that leaves an instance of the next memory, or enters it from inside; 0: not known, or no limit."""
    beyond: Bools
    """[T, S]: a slot in space outside of the next entry that surely keeps the tensor."""
    memory: Ints
    """[T]: number of the outermost memory."""
    words: Floats
    """[T]: of one value there."""
    read_bandwidth: Floats
    """[M]."""
    write_bandwidth: Floats
    keeper: Ints
    """[T]: number of the next entry that surely keeps it, and of its memory; -1: that has room for whatever it keeps."""
    slices: Floats
    """[T]: of one value there (see `Memory.slices_per_word`)."""
    usable: Floats
    """[T]: slices there."""
    outer: Floats
    """[K, R, C]: energy at least of what memories outside deliver, by share, by which tensors' tiles stay, and by the shape's
    number (see `outer.py`); no share: not known."""
    share: Floats
    """[K]: sub-clusters of a fanout along dimensions that do not move the tensor `direct`."""
    direct: int
    """-1: none, and one share."""
    split: Bools
    """[S]: slots in space of that fanout."""
    across: Floats
    """[K]: sub-clusters that may share the tensor there beside these, along windows."""
    row: Ints
    """[T]: what a tensor that stays adds to the row; 0: what is delivered of it is not in `outer`."""
    counted: Floats
    """[T]: of `rest_pj`, what is in `outer`."""
    enters_pj: Floats
    """[T]: of a value that enters the memory where it stays."""


@structure
class Costing(NamedTuple):
    """What is to be made small, and how words cost."""

    energy: bool
    """It counts."""
    cycles: bool
    product: bool
    """EDP."""
    dominate: bool
    whole: bool
    """Cycles are rounded up."""
    links: bool
    """Neighbours may pass on words."""
    outputs: int
    margin: float
    """pJ that a state has to cost less than another one to stand for it, unless they take the same words and cycles."""
    compute_pj: float
    most_cycles: float
    """Mappings that take more are not looked for."""
    bandwidth: Floats
    """[J]: of the ports."""


@structure
class Bag(NamedTuple):
    """States, and a hash table of them."""

    open: Bools
    """[D]: dimensions that may yet be unrolled."""
    numbers: Floats
    integers: Ints
    following: Ints
    """The next state with the same hash; -1: none."""
    heads: Ints
    """By hash two chains: of states that are counted in full, and of others."""
    alive: Bools
    made: Ints
    """[3]: states; pruned by bound; by dominance."""
    what: Ints
    """What was done."""


@structure
class Work(NamedTuple):
    """Room."""

    reached: NDArray[np.bool_]
    words: Floats
    written: Floats
    ports: Floats
    rest: Floats
    room: Floats
    place: Ints
    group: Ints
    size: Ints
    table: Ints
    meets: Ints
    weight: Ints
    once: Floats
    again: Floats
    spare: Floats
    copies: Floats
    most: Floats
    need: Floats
    steep: Floats
    slope: Floats
    cycles: Floats
    beside: Floats
    log: Floats
    gain: Floats
    along: Floats
    within: Floats
