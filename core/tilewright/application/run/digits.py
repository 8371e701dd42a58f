"""Digits: dimensions that are split so that coordinates of two tensors correspond one to one.

A layer may have one dimension of 4096 columns where another one has 8 groups, 4 heads and 128 channels. The read between
them says 512*g + 128*h + d. Then the dimension has three digits, of strides 512, 128 and 1. A digit is a dimension of its
own in the rewritten problem, and an index of the tensor's words has one coordinate for each digit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Tensor
from tilewright.schema.read import Index, shape_of

Key = tuple[str, str]
"""Layer and its dimension; or a link and its coordinate."""
Cuts = Mapping[Key, frozenset[int]]
"""Strides of the digits of each dimension or coordinate, without 1 and its size."""


class SplitError(ValueError):
    """A dimension cannot be split as the reads require; the text says why."""


@dataclass(frozen=True)
class Side:
    """A tensor of a layer, and its word at each point of a link: one index for each rank."""

    layer: str
    tensor: str
    index: tuple[Index, ...]


@dataclass(frozen=True)
class Link:
    """Words that several tensors have in common, point by point.

    Attributes:
        name: unique name.
        sizes: coordinates of a point, with the number of their values.
        sides: the tensors.
        whole: coordinates that an operator on the way needs together.
    """

    name: str
    sizes: Mapping[str, int]
    sides: tuple[Side, ...]
    whole: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Digit:
    """One coordinate of a rewritten tensor.

    Attributes:
        rank: the tensor's rank.
        stride: of the dimension's values; None: the rank is not one dimension alone, and stays unchanged.
        size: number of its values.
        part: coordinate of the link that steps it, and the stride there; None: its value is fixed.
        steps: values that the part takes.
        start: value at the first point.
    """

    rank: int
    stride: int | None
    size: int
    part: tuple[str, int] | None
    steps: int
    start: int


def plain_dimension(problem: Problem, rank: Rank) -> str | None:
    """Return the dimension that a rank is without a stride, apart from dimensions of size 1; None if it is a sum."""
    long = [name for name in rank.terms if problem.dimensions[name] > 1] or list(rank.terms)[:1]
    return None if len(long) > 1 or rank.terms[long[0]] != 1 else long[0]


def digits_of(cuts: Cuts, key: Key, size: int) -> list[tuple[int, int]]:
    """Return stride and size of each digit, from the smallest stride."""
    strides = [1, *sorted(cuts.get(key, ())), size]
    if size == 1:
        return [(1, 1)]
    return [(low, high // low) for low, high in itertools.pairwise(strides)]


def joined_coordinates(link: Link) -> Link:
    """Return the link with coordinates joined that are neighbours on all sides, such as h and d of 64*h + d."""
    while (pair := _neighbours(link)) is not None:
        high, low = pair
        sizes = {name: size * (link.sizes[high] if name == low else 1) for name, size in link.sizes.items()}
        del sizes[high]
        sides = tuple(
            Side(
                side.layer,
                side.tensor,
                tuple(
                    Index(
                        terms=FrozenDict({name: factor for name, factor in index.terms.items() if name != high}),
                        offset=index.offset,
                    )
                    for index in side.index
                ),
            )
            for side in link.sides
        )
        link = Link(link.name, sizes, sides, link.whole - {high})
    return link


def _neighbours(link: Link) -> tuple[str, str] | None:
    def above(high: str, low: str) -> bool:
        return all(
            any(
                low in index.terms and index.terms.get(high) == index.terms[low] * link.sizes[low]
                for index in side.index
            )
            for side in link.sides
        )

    long = [name for name, size in link.sizes.items() if size > 1]
    pairs = ((high, low) for high in long for low in long if high != low)
    return next((pair for pair in pairs if len({name in link.whole for name in pair}) == 1 and above(*pair)), None)


def cuts_of(problems: Mapping[str, Problem], links: Iterable[Link]) -> Cuts:
    """Return the digits that make all sides of all links correspond coordinate by coordinate.

    They are the common refinement of what each side states: a digit of one side is a digit of the others, too.

    Raises:
        SplitError: there are none, or a dimension may not be split.
    """
    links, cuts = list(links), dict[Key, frozenset[int]]()
    while True:
        before = dict(cuts)
        for link in links:
            for side in link.sides:
                problem = problems[side.layer]
                for rank, index in zip(problem.tensor(side.tensor).projection, side.index, strict=True):
                    name = plain_dimension(problem, rank)
                    if name is None:
                        _check_window(problem, side, link, rank, index, cuts)
                    else:
                        _refine(cuts, link, index, (side.layer, name), problem.dimensions[name])
        _check_chains(cuts, problems, {link.name: link for link in links})
        if cuts == before:
            return cuts


def _refine(cuts: dict[Key, frozenset[int]], link: Link, index: Index, key: Key, size: int) -> None:
    """Add the strides of an index to a dimension's, those of the dimension to its coordinates', and the reverse."""
    terms = sorted((factor, name) for name, factor in index.terms.items() if link.sizes[name] > 1)
    ends = [*(factor for factor, _ in terms[1:]), size][: len(terms)]
    strides = set(cuts.get(key, ()))
    for (factor, name), end in zip(terms, ends, strict=True):
        steps = link.sizes[name]
        last = factor * steps
        strides.add(factor)
        if end % last == 0 and index.offset // factor % steps == 0:
            strides.add(last)
        strides |= {factor * stride for stride in cuts.get((link.name, name), ())}
        inner = set(cuts.get((link.name, name), ()))
        for stride in strides:
            if factor < stride < last:
                if stride % factor:
                    raise SplitError(f"{key[1]} of {key[0]} has parts of {stride} and of {factor}, which do not nest")
                inner.add(stride // factor)
        if inner:
            cuts[link.name, name] = frozenset(inner)
    strides -= {1, size}
    if strides:
        cuts[key] = frozenset(strides)


def _check_window(problem: Problem, side: Side, link: Link, rank: Rank, index: Index, cuts: Cuts) -> None:
    long = [(name, factor) for name, factor in index.terms.items() if link.sizes[name] > 1]
    told = f"coordinate {rank} of {problem.name}.{side.tensor}"
    if len(long) > 1 or any(factor > 1 for _, factor in long):
        raise SplitError(f"{told} is not one dimension, and reads {index}")
    for name, _ in long:
        if cuts.get((link.name, name)):
            strides = ", ".join(map(str, sorted(cuts[link.name, name])))
            raise SplitError(f"{told} is not one dimension, and other layers read it in parts of {strides}")


def _check_chains(cuts: Cuts, problems: Mapping[str, Problem], links: Mapping[str, Link]) -> None:
    for (owner, name), strides in cuts.items():
        link = links.get(owner)
        size = problems[owner].dimensions[name] if link is None else link.sizes[name]
        for low, high in itertools.pairwise([*sorted(strides), size]):
            if high % low:
                what = f"{name} of {owner}" if link is None else f"a coordinate of {size} values"
                raise SplitError(f"{what} has parts of {low} and of {high}, which do not nest")
        if link is None:
            _check_splittable(problems[owner], name)


def _check_splittable(problem: Problem, name: str) -> None:
    for tensor in problem.tensors:
        for rank in tensor.projection:
            if name in rank.terms and plain_dimension(problem, rank) is None:
                raise SplitError(
                    f"{name} of {problem.name} cannot be split: it is in coordinate {rank} of {tensor.name}"
                )
        if name in tensor.dimensions and tensor.density is not None:
            if tensor.density.distribution in ("banded", "data"):
                raise SplitError(
                    f"{name} of {problem.name} cannot be split: {tensor.name} has its nonzero values by coordinate"
                )


def digits_along(problem: Problem, side: Side, link: Link, cuts: Cuts) -> list[Digit]:
    """Return the coordinates of a side, outermost first, with what steps them.

    Raises:
        SplitError: the points of the link are no box of the digits.
    """
    return [
        digit
        for rank, index in enumerate(side.index)
        for digit in reversed(list(_digits(problem, side, link, cuts, rank, index)))
    ]


def _digits(problem: Problem, side: Side, link: Link, cuts: Cuts, rank: int, index: Index) -> Iterator[Digit]:
    coordinate = problem.tensor(side.tensor).projection[rank]
    name = plain_dimension(problem, coordinate)
    if name is None:
        stepping = max(index.terms, key=link.sizes.__getitem__, default=None)
        one = None if stepping is None else (stepping, 1)
        steps = 1 if stepping is None else link.sizes[stepping]
        yield Digit(rank, None, shape_of(problem, side.tensor)[rank], one, steps, index.offset)
        return
    size = problem.dimensions[name]
    for stride, values in digits_of(cuts, (side.layer, name), size):
        part, steps = _part(link, cuts, index, stride, size)
        start = index.offset // stride % values if stride * values < size else index.offset // stride
        if start + steps > values:
            raise SplitError(
                f"{name} of {side.layer} is read as {index}, across the ends of parts of {stride * values}"
            )
        yield Digit(rank, stride, values, part, steps, start)


def _part(link: Link, cuts: Cuts, index: Index, stride: int, size: int) -> tuple[tuple[str, int] | None, int]:
    """Return the part of a coordinate that steps a digit, and its number of steps."""
    for name, factor in index.terms.items():
        steps = link.sizes[name]
        if steps == 1 and size == 1:
            return (name, 1), 1
        if steps > 1 and factor <= stride < factor * steps:
            part = stride // factor
            return (name, part), dict(digits_of(cuts, (link.name, name), steps))[part]
    return None, 1


def named_digits(problem: Problem, cuts: Cuts) -> dict[str, list[tuple[str, int, int]]]:
    """Return name, stride and size of the digits of each dimension, outermost first.

    A dimension that is not split keeps its name. The others are named after their stride, such as N_128.
    """
    taken, named = set(problem.dimensions), dict[str, list[tuple[str, int, int]]]()
    for name, size in problem.dimensions.items():
        digits = digits_of(cuts, (problem.name, name), size)
        if len(digits) == 1:
            named[name] = [(name, 1, size)]
            continue
        named[name] = [(fresh(f"{name}_{stride}", taken), stride, values) for stride, values in reversed(digits)]
    return named


def fresh(name: str, taken: set[str]) -> str:
    """Return the name, with underscores where it is taken, and take it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def split_ranks(
    problem: Problem, tensor: Tensor, named: Mapping[str, list[tuple[str, int, int]]]
) -> list[tuple[int, int | None, Rank]]:
    """Return the coordinates of a tensor after the split, each with its rank and stride as in `Digit`."""
    result = list[tuple[int, int | None, Rank]]()
    for number, rank in enumerate(tensor.projection):
        name = plain_dimension(problem, rank)
        if name is None or len(named[name]) == 1:
            result.append((number, None if name is None else 1, rank))
        else:
            result += [(number, stride, Rank.model_validate({"terms": {new: 1}})) for new, stride, _ in named[name]]
    return result
