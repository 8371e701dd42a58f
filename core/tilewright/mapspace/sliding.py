"""Windows that slide over the rows of a tensor, while a shared loop makes them tile by tile.

In a loop over an axis the maker makes some rows of the tensor at each step, and a reader reads a window of them. With a
stride of 2, a kernel of 3 rows and one row of padding:

    step      made rows   rows that the reader takes (it starts one step later)
    0         0 1         -
    1         2 3         -1 0 1
    2         4 5          1 2 3      row 1 has stayed at home since step 0: the halo

So a home keeps the rows from the oldest that some reader still needs to the newest that is there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.schema.group import Edge, GroupMapping
from tilewright.schema.problem import Problem, Tensor


@dataclass(frozen=True)
class Window:
    """Rows of a tensor that a reader takes in a shared loop over an axis. All counts are of rows.

    Attributes:
        coordinate: of the tensor.
        size: rows that the maker makes.
        made: rows that the maker makes for each row of the axis.
        taken: rows of the reader for each row of the axis.
        stride: between the windows of neighbouring rows of the reader; `taken * stride == made`.
        reach: rows of a window after its first.
        before: rows of the first window ahead of the first row made.
        lag: rows of the axis by which the reader starts after the maker.
        length: rows of the axis that the reader takes.
        is_stored: rows that are not made exist, as zeros.
    """

    coordinate: int
    size: int
    made: int
    taken: int
    stride: int
    reach: int
    before: int
    lag: int
    length: int
    is_stored: bool

    @property
    def stays(self) -> bool:
        """Whether a step reads rows of earlier steps, so that the home keeps them."""
        return self.reach >= self.stride or self.before != 0 or self.lag != 0

    def needed(self, tile: int) -> int:
        """Return the rows that have to be made before the reader's first step of a tile."""
        return min(self.size, (tile * self.taken - 1) * self.stride + self.reach + 1 - self.before)

    def is_ready(self, tile: int) -> bool:
        """Return whether each step of a tile reads only rows that were made by then. The maker runs first in a step."""
        return self.lag >= 0 and (self.lag // tile + 1) * tile * self.made >= self.needed(tile)

    def least_lag(self, tile: int) -> int:
        """Return the fewest rows of the axis by which the reader may start later: a multiple of the tile."""
        return max(0, -(-self.needed(tile) // (tile * self.made)) - 1) * tile


def window_along(group: GroupMapping, tensor: str, maker: str, reader: str, axis: str) -> Window | None:
    """Return how a reader's window slides along an axis; None if the axis does not step one coordinate of both so.

    The maker's rows are one dimension. The reader has to read all of them, and words of a part of `sizes` do not slide.
    """
    source, sink = group.axes[axis][maker], group.axes[axis][reader]
    ours, others = (_layer(group, layer).tensor(group.needs[tensor][layer]) for layer in (maker, reader))
    stepped = [
        number
        for number, (rank, other) in enumerate(zip(ours.projection, others.projection, strict=True))
        if source in rank.terms or sink in other.terms
    ]
    if len(stepped) != 1:
        return None
    window = window_at(group, tensor, maker, reader, stepped[0])
    starts, made, taken = group.starts(axis, (maker, reader)), group.rows(axis, maker), group.rows(axis, reader)
    if window is None or window.stride * taken != made or sink not in others.projection[stepped[0]].terms:
        return None
    return replace(
        window, made=made, taken=taken, lag=starts[reader] - starts[maker], length=group.length(axis, reader)
    )


def window_at(group: GroupMapping, tensor: str, maker: str, reader: str, coordinate: int) -> Window | None:
    """Return how a reader's window slides along a coordinate in a loop with one of its rows at a step; None if it does not."""
    edge = group.edge_of(tensor)
    if edge is None or edge.sizes is not None:
        return None
    made, read = _layer(group, maker), _layer(group, reader)
    ours, others = made.tensor(edge.layers[maker]), read.tensor(group.needs[tensor][reader])
    sink = stepping(read, others, coordinate)
    if sink is None or list(ours.projection[coordinate].terms.values()) != [1]:
        return None
    before = _offset(edge, reader, coordinate) - _offset(edge, maker, coordinate)
    (source,), rank = ours.projection[coordinate].terms, others.projection[coordinate].terms
    if not covers(made.dimensions[source], read, others, coordinate, before):
        return None
    return Window(
        coordinate=coordinate,
        size=made.dimensions[source],
        made=rank[sink],
        taken=1,
        stride=rank[sink],
        reach=sum(c * (read.dimensions[at] - 1) for at, c in rank.items() if at != sink),
        before=before,
        lag=0,
        length=read.dimensions[sink],
        is_stored=edge.zeros,
    )


def stepping(problem: Problem, tensor: Tensor, coordinate: int) -> str | None:
    """Return the dimension of a layer's result that steps a coordinate of its operand; None if there is no such one."""
    able = [at for at in tensor.projection[coordinate].terms if at in problem.output.dimensions]
    return able[0] if len(able) == 1 else None


def covers(size: int, reader: Problem, read: Tensor, coordinate: int, before: int) -> bool:
    """Return whether a reader reads all rows that a maker makes along a coordinate.

    Args:
        size: rows made.
        before: rows of the first window ahead of the first row made.
    """
    rows = 1
    for factor, name in sorted((factor, name) for name, factor in read.projection[coordinate].terms.items()):
        if reader.dimensions[name] > 1 and factor > rows:
            return False  # rows between the windows are not read
        rows += factor * (reader.dimensions[name] - 1)
    return before >= 0 and rows - before >= size


def alive_rows(windows: Sequence[Window], tile: int) -> int:
    """Return the most rows that a home keeps at one moment, for readers of one tensor.

    A row lives from the step that makes it, or that reads it if it is a zero, until the last reader has taken it.
    """
    most = 0
    for step in _turns(windows, tile):
        made = min(windows[0].size, (step + 1) * tile * windows[0].made)
        newest, oldest = made, list[int]()
        for window in windows:
            turn = step - window.lag // tile
            if turn * tile >= window.length:
                continue
            first = turn * tile * window.made - window.before if turn >= 0 else -window.before
            if turn >= 0 and window.is_stored:
                rows = min(tile, window.length - turn * tile) * window.taken
                newest = max(newest, first + (rows - 1) * window.stride + window.reach + 1)
            oldest.append(first if window.is_stored else max(first, 0))
        most = max(most, newest - min(oldest, default=newest))
    return most


def _turns(windows: Sequence[Window], tile: int) -> list[int]:
    """Return the steps at which a home may keep most rows.

    Between those at which a layer starts, ends, or leaves the first rows, the number of rows is a convex function of the step.
    """
    turns = {0, -(-windows[0].size // (tile * windows[0].made))}
    for window in windows:
        begin = window.lag // tile
        turns |= {begin, begin - (-window.length // tile), begin - (-window.before // (tile * window.made))}
    last = max(1, *(-(-(window.lag + window.length) // tile) for window in windows))
    return sorted({step for turn in turns for step in (turn - 1, turn, turn + 1) if 0 <= step < last} | {last - 1})


def words_of_boxes(boxes: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return the words of several boxes together, each with the first coordinate and the extent along every coordinate.

    Words in several boxes count once (inclusion and exclusion).
    """

    def within(box: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
        return all(b <= a and a + n <= b + m for (a, n), (b, m) in zip(box, other, strict=True))

    distinct = list(dict.fromkeys(tuple(box) for box in boxes))
    largest = [box for box in distinct if not any(box != other and within(box, other) for other in distinct)]
    words = 0
    for count in range(1, len(largest) + 1):
        for some in itertools.combinations(largest, count):
            common = [
                min(first + size for first, size in column) - max(first for first, _ in column)
                for column in zip(*some, strict=True)
            ]
            words += (1 if count % 2 else -1) * math.prod(max(0, size) for size in common)
    return words


def _layer(group: GroupMapping, name: str) -> Problem:
    return next(problem for problem in group.layers if problem.name == name)


def _offset(edge: Edge, layer: str, coordinate: int) -> int:
    row = edge.offsets.get(layer)
    return row[coordinate] if row else 0
