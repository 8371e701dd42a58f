"""Sums of results in a network, such as those of residual additions: which of them are one tensor."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tilewright.schema.problem import Problem
from tilewright.schema.read import Index, Read, shape_of
from tilewright.schema.workload import Workload

Kind = Literal["sum", "parts", "other"]


@dataclass(frozen=True)
class Operand:
    """An operand that layers make.

    Attributes:
        reads: with all coordinates written out, in order of execution of their makers.
        kind: `sum`: it is one result, or the sum of several, in all words but padding; `parts`: results that follow one another along a coordinate.
    """

    layer: str
    name: str
    reads: tuple[Read, ...]
    kind: Kind

    @property
    def makers(self) -> tuple[str, ...]:
        """The layers that make it, in order of execution."""
        return tuple(dict.fromkeys(read.maker for read in self.reads))


@dataclass(frozen=True)
class Addition:
    """How a layer sees that a maker adds its result to the sum before.

    Attributes:
        operators: those on the sum before, and on the result. An operator that all reads name acts on the sum of both.
        whole: coordinates of both results whose values an operator needs together, unless it needs those of the sum.
        words: for each coordinate, its size and its step in both results; None if the operand's are not those of both.
        start: the two words of the first point.
        reads: what tells words without coordinates apart.
    """

    operators: tuple[tuple[str, ...], tuple[str, ...]]
    whole: tuple[frozenset[tuple[int, int]], ...]
    words: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] | None
    start: tuple[tuple[int, ...], tuple[int, ...]]
    reads: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Sums:
    """The results of a workload, alone or added, with the layers that read them."""

    workload: Workload

    @cached_property
    def operands(self) -> dict[tuple[str, str], Operand]:
        """Layer and tensor -> operand, in order of execution."""
        made = dict[tuple[str, str], list[Read]]()
        for layer, tensor, read in self.workload.edges:
            made.setdefault((layer, tensor), []).append(read)
        operands = dict[tuple[str, str], Operand]()
        for (layer, tensor), reads in made.items():
            problem = self.workload.layer(layer).problem
            kind: Kind = "sum" if self._is_sum(reads, problem, tensor) else "other"
            if kind == "other" and _are_parts(reads, problem, tensor):
                kind = "parts"
            ordered = tuple(sorted(reads, key=lambda read: self._order[read.maker]))
            operands[layer, tensor] = Operand(layer, tensor, ordered, kind)
        return operands

    @cached_property
    def readers(self) -> dict[frozenset[str], dict[str, list[str]]]:
        """Makers of each sum -> its readers, with their operands.

        A single result is a sum of one. A result that only a later sum reads has no readers.
        """
        readers = dict[frozenset[str], dict[str, list[str]]]()
        for operand in self._of("sum", "parts"):
            for results in [operand.makers] if operand.kind == "sum" else [(maker,) for maker in operand.makers]:
                readers.setdefault(frozenset(results), {}).setdefault(operand.layer, []).append(operand.name)
        for makers in list(readers):
            if len(makers) == 2:
                readers.setdefault(frozenset({self._in_order(makers)[0]}), {})
        return readers

    @cached_property
    def partners(self) -> dict[str, set[str]]:
        """Maker of a part of an operand -> the makers of its other parts."""
        partners = dict[str, set[str]]()
        for operand in self._of("parts"):
            for maker in operand.makers:
                partners.setdefault(maker, set()).update({*operand.makers} - {maker})
        return partners

    @cached_property
    def unlike(self) -> frozenset[str]:
        """Makers of sums that layers see in several ways: of other words, or after other operators.

        The first results in order of execution are a sum, too, to which the next maker adds its result.
        """
        ways = dict[tuple[str, ...], set[Addition]]()
        for operand in self._of("sum"):
            for number, addition in enumerate(_additions(operand.reads), start=2):
                ways.setdefault(operand.makers[:number], set()).add(addition)
        return frozenset(name for makers, additions in ways.items() if not _are_one(additions) for name in makers)

    @cached_property
    def unknown(self) -> frozenset[str]:
        """Layers whose results have other uses."""
        unknown = {layer.name for layer in self.workload.layers if layer.returned}
        for number, layer in enumerate(self.workload.layers):
            before = [earlier.name for earlier in self.workload.layers[:number]] if layer.after is None else layer.after
            unknown |= set(before) - {read.maker for reads in layer.reads.values() for read in reads}
        for operand in self.operands.values():
            is_earlier = (
                self._order[operand.makers[-1]] >= self._order[operand.layer]
            )  # a result of the iteration before
            if operand.kind == "other" or is_earlier:
                unknown.update(operand.makers)
        for makers in self.readers:
            rest = frozenset(self._in_order(makers)[:-1])
            if (rest and rest not in self.readers) or makers & self.unlike:
                unknown |= makers
        return frozenset(unknown)

    @cached_property
    def last(self) -> dict[frozenset[str], str]:
        """Makers of each result that layers read, or of a sum -> the last of them, where nothing else uses it.

        So a sum of several is the result of its last maker, to which it adds the sum before.
        """
        last = {makers: self._in_order(makers)[-1] for makers in self.readers}
        twice = {name for name, count in Counter(last.values()).items() if count > 1}
        return {m: name for m, name in last.items() if not m & (self.unknown | self.partners.keys() | twice)}

    @cached_property
    def _order(self) -> dict[str, int]:
        return {layer.name: number for number, layer in enumerate(self.workload.layers)}

    def _in_order(self, makers: Iterable[str]) -> list[str]:
        return sorted(makers, key=self._order.__getitem__)

    def _of(self, *kinds: str) -> list[Operand]:
        return [operand for operand in self.operands.values() if operand.kind in kinds]

    def _is_sum(self, reads: Sequence[Read], problem: Problem, tensor: str) -> bool:
        """Return whether the operand is one result, or the sum of several, in all words but padding.

        The results of a sum have the same words. Those of a broadcast are fewer, and those of a concatenation are others.
        """
        if not all(read.fills(problem, tensor) for read in reads):
            return False
        makers = {read.maker: self.workload.layer(read.maker).problem for read in reads}
        words = {maker.tensor_words(maker.output) for maker in makers.values()}
        alike = len(words) == len({read.box for read in reads}) == 1 and not any(read.repeats for read in reads)
        return len(makers) == len(reads) and (len(reads) == 1 or alike)


def _are_parts(reads: Sequence[Read], problem: Problem, tensor: str) -> bool:
    """Return whether several results follow one another along one coordinate of an operand, and are all of its words."""
    if len({read.maker for read in reads}) < len(reads) or any(read.cut is not None for read in reads):
        return False
    partial = {at for read in reads for at, filled in enumerate(read.filled(problem, tensor)) if not filled}
    if len(partial) != 1:
        return False
    (along,) = partial
    ranges = sorted(((read.box[along], read) for read in reads), key=lambda pair: pair[0].start)
    ends = [0, *(values.stop for values, _ in ranges)]
    return (
        all(values.start == end for (values, _), end in zip(ranges, ends, strict=False))
        and ends[-1] == shape_of(problem, tensor)[along]
        and all(len(values) == read.values_along(along) for values, read in ranges)
    )


def _additions(reads: Sequence[Read]) -> Iterator[Addition]:
    """Yield what each maker but the first one adds, in order of execution."""
    common, start = set(reads[0].through), 0
    for before, read in itertools.pairwise(reads):
        common &= set(read.through)
        ends = [
            next((at for at, name in enumerate(names) if name in common), len(names))
            for names in (reads[0].through, read.through)
        ]
        digits, others = _digits(before), _digits(read)
        of_sum = _whole(reads[0], reads[0].read) == _whole(read, read.read)
        alike = digits.keys() == others.keys()
        yield Addition(
            (reads[0].through[start : ends[0]], read.through[: ends[1]]),
            () if of_sum else (_whole(reads[0], reads[0].made), _whole(read, read.made)),
            tuple(sorted((at[2], step, others[at]) for at, step in digits.items())) if alike else None,
            (_start(before), _start(read)),
            ()
            if alike
            else tuple(tuple(sorted((*at, *step) for at, step in steps.items())) for steps in (digits, others)),
        )
        start = ends[0]


def _digits(read: Read) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Return coordinate of the operand, coefficient and size of each coordinate of a read -> its step in the result."""
    return {
        (place, factor, read.sizes[name]): tuple(made.terms.get(name, 0) for made in read.made or ())
        for place, index in enumerate(read.read or ())
        for name, factor in index.terms.items()
        if read.sizes[name] > 1
    }


def _whole(read: Read, side: Sequence[Index] | None) -> frozenset[tuple[int, int]]:
    """Return the coordinates, of the result or of the operand, whose values an operator needs together."""
    return frozenset(
        (place, index.terms[name])
        for place, index in enumerate(side or ())
        for name in read.whole
        if name in index.terms and read.sizes[name] > 1
    )


def _start(read: Read) -> tuple[int, ...]:
    return tuple(index.offset for index in read.made or ())


def _are_one(additions: Collection[Addition]) -> bool:
    """Return whether several layers see one sum: the same words of both results are added, after the same operators.

    Pairs of words are points of a space of both results' coordinates. Let all pairs lie in one plane, which contains no
    two points with equal coordinates in one of the results. Then each word of a result has one partner in all pairs.
    """
    first, *others = additions
    if not others:
        return True
    if any((other.operators, other.whole) != (first.operators, first.whole) for other in others):
        return False
    if any(addition.words is None for addition in additions):
        return False
    steps = [[*before, *result] for addition in additions for _, before, result in addition.words or ()]
    for other in others:
        ends = zip(other.start, first.start, strict=True)
        steps.append([at - begin for points in ends for at, begin in zip(*points, strict=True)])
    ranks = len(first.start[0])
    sides = [step[:ranks] for step in steps], [step[ranks:] for step in steps]
    return all(_rank(side) == _rank(steps) for side in sides)


def _rank(rows: Iterable[Sequence[int]]) -> int:
    """Return the rank of a matrix of integers, exactly: each row in turn clears its first column from the others."""
    rank, left = 0, [row for row in rows if any(row)]
    while left:
        pivot = left.pop()
        at = next(column for column, value in enumerate(pivot) if value)
        cleared = [[pivot[at] * value - row[at] * over for value, over in zip(row, pivot, strict=True)] for row in left]
        rank, left = rank + 1, [row for row in cleared if any(row)]
    return rank
