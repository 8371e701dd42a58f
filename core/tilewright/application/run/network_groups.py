"""Layers of a network as a group mapping: the edges between them, and dimensions that correspond one to one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.run.digits import (
    Cuts,
    Digit,
    Link,
    Side,
    SplitError,
    cuts_of,
    digits_along,
    fresh,
    joined_coordinates,
    named_digits,
    split_ranks,
)
from tilewright.application.run.sums import Sums
from tilewright.errors import NotConformableError, Reason, UnknownNameError
from tilewright.mapspace.group_legality import is_padded, moving_axes
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import MAX_PARTS, Problem, Rank, Tensor
from tilewright.schema.read import Index, Read, shape_of
from tilewright.schema.workload import Layer, Workload

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


@dataclass(frozen=True)
class LeftOut:
    """A read that is no edge of a group.

    Attributes:
        maker, reader: the layers. The maker of an input is a layer outside the group, or the name of its value.
        operand: the reader's tensor; None: it is not known.
        reason: why it is no edge.
    """

    maker: str
    reader: str
    operand: str | None
    reason: str

    def __str__(self) -> str:
        read = self.reader if self.operand is None else f"{self.reader}.{self.operand}"
        return f"{read} reads {self.maker}: {self.reason}"


@dataclass(frozen=True)
class NetworkGroup:
    """Layers of a network as a group.

    Attributes:
        group: the group, with all tensors at home in the outermost memory that may hold them, and the layers in
            sequence. It has no axes: a search derives them from the edges. Padding exists as zeros, as in layers on their own.
        dimensions: layer -> dimension in the group -> (dimension in the network, factor). A dimension without an entry has
            size 1, and the network does not have it.
        left_out: reads of results and of inputs in common that are no edges. Such tensors go through the outermost memory.
        rows: edge of a result -> (layer, dimension) whose values an operator on the way needs together, such as a softmax.
    """

    group: GroupMapping
    dimensions: FrozenDict[str, FrozenDict[str, tuple[str, int]]]
    left_out: tuple[LeftOut, ...]
    rows: FrozenDict[str, frozenset[tuple[str, str]]]

    @property
    def apart(self) -> frozenset[tuple[str, str]]:
        """Maker and reader of each result that is no edge. No rule of groups sees that they may share no loop."""
        order = {layer.name: number for number, layer in enumerate(self.group.layers)}
        pairs = ((read.maker, read.reader) for read in self.left_out)
        return frozenset(pair for pair in pairs if pair[0] in order and order[pair[0]] < order[pair[1]])

    def broken(self, group: GroupMapping) -> tuple[Reason, ...]:
        """Return a reason for each result that is no edge, and that its reader would read before it is whole.

        Args:
            group: these layers and edges with another tree, which is legal.
        """
        return tuple(reason for pair in sorted(self.apart) for reason in _early(group, *pair))


def _early(group: GroupMapping, maker: str, reader: str) -> Iterator[Reason]:
    made, read = group.paths[maker], group.paths[reader]
    where = f"{reader} reads {maker}"
    if read.place < made.place:
        yield Reason(code="unfinished", where=where, message=f"{reader} runs before {maker}; exchange the branches")
    for place, other in zip(made.places, read.places, strict=False):
        if place != other:
            break
        for axis in moving_axes(group, place):
            text = f"it is unknown which words a step of {axis} reads; loop over {axis} inside the branches"
            yield Reason(code="unfinished", where=where, message=text)


def group_of_layers(
    workload: Workload, names: Sequence[str], architecture: Architecture, sums: bool = True
) -> NetworkGroup:
    """Return some layers as a group.

    A dimension that another layer has in parts is split, such as the columns of a product that are heads of an attention.
    The rewritten problems have the same unit operations, and the same words of each tensor. Edges are results that only
    layers of the group read, and inputs for which the workload states that several layers read the same words.

    Args:
        workload: the network.
        names: layers that follow one another in the workload's order.
        architecture: the machine.
        sums: a sum of results, as after a residual addition, is an edge: the last maker adds the sum before to its result.

    Raises:
        UnknownNameError: There is no such layer.
        NotConformableError: These layers cannot be one group.
    """
    known = [layer.name for layer in workload.layers]
    for name in names:
        if name not in known:
            raise UnknownNameError(f"{workload.name} has no layer '{name}'{suggestion(name, known)}")
    reasons = tuple(_obstacles(workload, names))
    if reasons:
        raise NotConformableError("a group of layers", reasons, hint="name fewer layers")
    layers = workload.picked(names)
    tensors = _Joined(workload, layers, Sums(workload).last if sums else {})
    return _built(workload, layers, architecture, tensors)


def _obstacles(workload: Workload, names: Sequence[str]) -> Iterator[Reason]:
    order = {layer.name: number for number, layer in enumerate(workload.layers)}
    chosen = [workload.layer(name) for name in sorted(set(names), key=order.__getitem__)]
    if len(chosen) < len(names):
        yield Reason(code="layers", where=workload.name, message="a layer is named twice")
    if not 0 < len(chosen) <= MAX_PARTS:
        yield Reason(code="layers", where=workload.name, message=f"{len(chosen)} layers; expected 1 to {MAX_PARTS}")
        return
    first = order[chosen[0].name]
    for number, layer in enumerate(chosen):
        if order[layer.name] != first + number:
            between = workload.layers[first + number].name
            yield Reason(
                code="order", where=layer.name, message=f"{between} runs before it, and is not among the layers"
            )
            break
    for layer in chosen:
        if layer.count != chosen[0].count:
            text = f"it and {chosen[0].name} have different counts, {layer.count} and {chosen[0].count}"
            yield Reason(code="count", where=layer.name, message=text)
    for layer in chosen[1:]:
        if layer.after is None:
            yield Reason(code="reads", where=layer.name, message="the workload does not state whose results it reads")


@dataclass(frozen=True)
class _Shared:
    """A tensor that several layers use: a result, or an input."""

    maker: str | None
    links: tuple[Link, ...]
    reads: tuple[tuple[str, str, str], ...]
    """Maker, reader and operand of each read. A layer that adds a result reads it in its own result."""
    added: frozenset[str] = frozenset()
    """Layers that add the result to their own."""

    @property
    def base(self) -> tuple[str, str]:
        """The layer, and its tensor, that the tensor of the group is named after."""
        side = self.links[0].sides[0]
        return side.layer, side.tensor


class _Joined:
    """The tensors of some layers that may be edges, as many as correspond one to one, in order of execution."""

    def __init__(self, workload: Workload, layers: Sequence[Layer], sums: Mapping[frozenset[str], str]) -> None:
        self.problems = {layer.name: layer.problem for layer in layers}
        self.left_out, self.shared = list[LeftOut](), list[_Shared]()
        self.cuts: Cuts = {}
        self.order = {layer.name: number for number, layer in enumerate(layers)}
        self.reads: dict[frozenset[str], list[tuple[Layer, str, tuple[Read, ...]]]] = {}
        """Makers of an operand -> its readers, with the operand and the reads."""
        for layer in layers:
            for operand, made in layer.reads.items():
                self.reads.setdefault(frozenset(read.maker for read in made), []).append((layer, operand, made))
        known = {makers: last for makers, last in sums.items() if makers <= self.problems.keys()}
        strange = frozenset[str]().union(
            *(makers for makers, last in known.items() if len(makers) > 1 and not self._is_plain(makers, last))
        )
        self.sums = {makers: last for makers, last in known.items() if len(makers) > 1 and not makers & strange}
        """Makers of each sum of several results that is one tensor -> the last of them."""
        for candidate in (*self._results(layers), *self._inputs(workload)):
            links = [link for shared in self.shared for link in shared.links]
            try:
                cuts = cuts_of(self.problems, [*links, *candidate.links])
                coordinates = [_coordinates(shared, self.problems, cuts) for shared in (*self.shared, candidate)]
                _check_added([*self.shared, candidate], coordinates)
            except SplitError as error:
                self.left_out += [LeftOut(*read, reason=str(error)) for read in candidate.reads]
            else:
                self.shared.append(candidate)
                self.cuts = cuts

    def _is_plain(self, makers: frozenset[str], last: str) -> bool:
        """Return whether a sum may be a tensor of the group: its readers run later, and need no coordinates whole.

        The last maker reads none of the results, since it would need words both as an operand and for its result.
        """
        if any(layer.name == last and some & makers for some, users in self.reads.items() for layer, *_ in users):
            return False
        for layer, operand, made in self.reads.get(makers, ()):
            if self.order[layer.name] <= self.order[last] or any(read.cut or read.whole for read in made):
                return False
            reads = self._written_out(layer, operand, made)
            links = [_added_link(read, reads[last], self.problems) for name, read in reads.items() if name != last]
            if len(reads) < len(made) or any(isinstance(link, str) for link in links):
                return False
        return makers in self.reads

    def _written_out(self, layer: Layer, operand: str, made: Sequence[Read]) -> dict[str, Read]:
        """Return maker -> its read, with all coordinates."""
        return {read.maker: read.within(self.problems[read.maker], layer.problem, operand) for read in made}

    def _results(self, layers: Sequence[Layer]) -> Iterator[_Shared]:
        """Yield the results whose readers all state what they read, and put the others among those left out."""
        order, added = self.order, self._added()
        reads = dict[str, list[tuple[str, str | None, Link | str]]]()
        for layer in layers:
            stated = {read.maker for made in layer.reads.values() for read in made}
            for maker in layer.after or ():
                if maker not in stated:
                    reads.setdefault(maker, []).append((layer.name, None, "the workload does not state which words"))
            for operand, made in layer.reads.items():
                makers = frozenset(read.maker for read in made)
                for read in made:
                    link = self._link(layer, operand, read, made)
                    if isinstance(link, str) or read.maker == self.sums.get(makers, read.maker):
                        reads.setdefault(read.maker, []).append((layer.name, operand, link))
        for maker, adders in added.items():
            reads.setdefault(maker, []).extend(
                (last, self.problems[last].output.name, link) for last, link in adders.items()
            )
        for maker in sorted(reads, key=order.__getitem__):
            users = reads[maker]
            twice = [
                (reader, operand)
                for number, (reader, operand, _) in enumerate(users)
                if reader in [user for user, *_ in users[:number]]
            ]
            told = {(reader, operand): text for reader, operand, text in users if isinstance(text, str)}
            told |= {pair: f"{pair[0]} reads it in another operand, too" for pair in twice if pair not in told}
            if not told:
                links = tuple(link for *_, link in users if isinstance(link, Link))
                read_by = tuple((maker, reader, str(operand)) for reader, operand, _ in users)
                yield _Shared(maker, links, read_by, frozenset(added.get(maker, ())))
                continue
            (first, _), cause = next(iter(told.items()))
            self.left_out += [
                LeftOut(maker, reader, operand, told.get((reader, operand)) or f"{first} reads it, too: {cause}")
                for reader, operand, _ in users
            ]

    def _link(self, layer: Layer, operand: str, read: Read, together: Sequence[Read]) -> Link | str:
        """Return the words of a read, or why it is no edge."""
        if read.cut is not None:
            return read.cut
        if len(together) > 1 and frozenset(other.maker for other in together) not in self.sums:
            return f"several layers make {operand}: {', '.join(dict.fromkeys(other.maker for other in together))}"
        if self.order[read.maker] >= self.order[layer.name]:
            return f"{read.maker} runs later, so it is an earlier result"
        maker = self.problems[read.maker]
        read = read.within(maker, layer.problem, operand)
        made = Side(read.maker, maker.output.name, read.made or ())
        link = _link_of(f"{layer.name}.{operand}", read, (made, Side(layer.name, operand, read.read or ())))
        return _mismatch(link, self.problems, read) or link

    def _added(self) -> dict[str, dict[str, Link | str]]:
        """Return each result that layers add to their own -> these layers, with the words of both results."""
        added = dict[str, dict[str, Link | str]]()
        for makers, last in self.sums.items():
            rest = makers - {last}
            before = self.sums.get(rest, next(iter(rest)))
            reads = self._written_out(*self.reads[makers][0])
            added.setdefault(before, {})[last] = _added_link(reads[before], reads[last], self.problems)
        return added

    def _inputs(self, workload: Workload) -> Iterator[_Shared]:
        """Yield the inputs that several layers read alike: values of one name, or reads from the same layers outside."""
        groups = dict[Any, list[tuple[str, str, Read]]]()
        for name, problem in self.problems.items():
            layer = workload.layer(name)
            for tensor in problem.operands:
                reads = layer.reads.get(tensor.name, ())
                outside = [read.within(workload.layer(read.maker).problem, problem, tensor.name) for read in reads]
                if any(read.maker in self.problems for read in reads):
                    continue
                if outside and all(read.fills(problem, tensor.name) for read in outside):
                    groups.setdefault(_words_of(outside), []).append((name, tensor.name, outside[0]))
                elif tensor.name in layer.inputs:
                    same = _equal_words(layer.inputs[tensor.name], problem, tensor.name)
                    groups.setdefault(same.maker, []).append((name, tensor.name, same))
        for users in groups.values():
            if len(users) == 1:
                continue
            sides = tuple(Side(name, operand, read.read or ()) for name, operand, read in users)
            link = _link_of(f"{users[0][0]}.{users[0][1]} in common", users[0][2], sides)
            told = tuple((read.maker, name, operand) for name, operand, read in users)
            error = _mismatch(link, self.problems)
            if len({name for name, *_ in users}) < len(users):
                error = "a layer reads it in two operands"
            if error:
                self.left_out += [LeftOut(*names, reason=error) for names in told]
            else:
                yield _Shared(None, (link,), told)


def _added_link(read: Read, other: Read, problems: Mapping[str, Problem]) -> Link | str:
    """Return the words of two results that a layer reads as one operand, or why they do not correspond."""
    names = dict[str, str]()
    for ours, theirs in zip(read.read or (), other.read or (), strict=True):
        if len(ours.terms) == len(theirs.terms) == 1 and [*ours.terms.values()] == [*theirs.terms.values()]:
            names |= dict(zip(theirs.terms, ours.terms, strict=True))
    before, made = read.made or (), other.made or ()
    same = tuple(
        Index(terms=FrozenDict({names.get(at, ""): c for at, c in i.terms.items()}), offset=i.offset) for i in made
    )
    if before != same:
        return f"{read.maker} and {other.maker} have other coordinates, and are added"
    sides = (
        Side(read.maker, problems[read.maker].output.name, before),
        Side(other.maker, problems[other.maker].output.name, before),
    )
    link = _link_of(f"{other.maker} adds {read.maker}", read, sides)
    return _mismatch(link, problems) or link


def _words_of(reads: Sequence[Read]) -> tuple[Any, ...]:
    """Return what is equal for operands that read the same words. Of a sum, the operands have equal coordinates, too."""
    return tuple(
        (read.maker, read.made, tuple(read.sizes.items()), read.through, read.whole)
        + (() if len(reads) == 1 else (read.read,))
        for read in reads
    )


def _equal_words(value: str, problem: Problem, tensor: str) -> Read:
    """Return the read of a named value, with the operand's coordinates."""
    shape = shape_of(problem, tensor)
    words = tuple(Index(terms=FrozenDict({f"x{place}": 1})) for place in range(len(shape)))
    sizes = FrozenDict({f"x{place}": size for place, size in enumerate(shape)})
    return Read(maker=value, sizes=sizes, made=words, read=words)


def _link_of(name: str, read: Read, sides: tuple[Side, ...]) -> Link:
    """Return a link. Ranks that have no coordinate on all sides get one with a single value."""
    sizes, indices = dict(read.sizes), [list(side.index) for side in sides]
    if len({len(index) for index in indices}) == 1:
        for rank in range(len(indices[0])):
            if not any(index[rank].terms for index in indices):
                new = fresh(f"x{rank}", taken := set(sizes))
                sizes |= dict.fromkeys(taken - sizes.keys(), 1)
                for index in indices:
                    index[rank] = Index(terms=FrozenDict({new: 1}), offset=index[rank].offset)
    made = tuple(Side(side.layer, side.tensor, tuple(index)) for side, index in zip(sides, indices, strict=True))
    return joined_coordinates(Link(name, sizes, made, frozenset(read.whole)))


def _mismatch(link: Link, problems: Mapping[str, Problem], read: Read | None = None) -> str | None:
    """Return why the sides of a link do not correspond one to one; None if they may.

    Args:
        read: the read, if the first side is the result of its maker.
    """
    for side in link.sides:
        used = [name for index in side.index for name in index.terms if link.sizes[name] > 1]
        for name, size in link.sizes.items():
            if size > 1 and used.count(name) != 1:
                return f"{side.layer}.{side.tensor} repeats its words, {size} times"
    if read is None:
        return None
    maker, reader = link.sides
    if not read.fills(problems[reader.layer], reader.tensor):
        return f"{maker.layer} makes only a part of {reader.tensor}"
    gap = read.gap(problems[maker.layer], problems[reader.layer], reader.tensor)
    if gap is not None:
        return f"{reader.tensor} has padding in place of words of {maker.layer}, along coordinate {gap}"
    return None


@dataclass(frozen=True)
class _Coordinates:
    """Coordinates of a tensor of the group.

    Attributes:
        users: layer -> its digit of each coordinate; None: one value, of a dimension that the layer does not have.
        starts: layer -> what to add to the group's coordinates to get the layer's.
        sizes: the words that exist; None: all that the maker has.
    """

    users: dict[str, list[Digit | None]]
    starts: dict[str, list[int]]
    sizes: list[int] | None


def _coordinates(shared: _Shared, problems: Mapping[str, Problem], cuts: Cuts) -> _Coordinates:
    """Return the coordinates that all users of a tensor have in common.

    Raises:
        SplitError: they do not correspond one to one.
    """
    digits = [
        {side.layer: digits_along(problems[side.layer], side, link, cuts) for side in link.sides}
        for link in shared.links
    ]
    if shared.maker is None:
        return _common(digits[0])
    made = digits[0][shared.maker]
    matches = list[tuple[str, list[Digit | None]]]()
    for by_layer in digits:
        maker, (reader, others) = (
            by_layer[shared.maker],
            next(item for item in by_layer.items() if item[0] != shared.maker),
        )
        matched = [_matched(digit, others) for digit in maker]
        _check_all_matched(reader, others, matched)
        matches.append((reader, matched))
    kept = [
        at
        for at, digit in enumerate(made)
        if digit.size > 1 or all(m[at] for _, m in matches) or any((d := m[at]) and d.size > 1 for _, m in matches)
    ]
    users: dict[str, list[Digit | None]] = {shared.maker: [made[at] for at in kept]}
    starts = {shared.maker: [0] * len(kept)}
    for (reader, matched), by_layer in zip(matches, digits, strict=True):
        users[reader] = [matched[at] for at in kept]
        starts[reader] = [(d.start if (d := matched[at]) else 0) - by_layer[shared.maker][at].start for at in kept]
    return _Coordinates(users, starts, None)


def _check_added(some: Sequence[_Shared], coordinates: Sequence[_Coordinates]) -> None:
    """Check that a result has the same coordinates where it is added to, and where other layers read it.

    Raises:
        SplitError: they differ.
    """
    made = {
        shared.maker: common.users[shared.maker]
        for shared, common in zip(some, coordinates, strict=True)
        if shared.maker
    }
    for shared, common in zip(some, coordinates, strict=True):
        for layer in shared.added:
            if any(common.starts.get(layer, ())) or common.users[layer] != made.get(layer, common.users[layer]):
                raise SplitError(f"{layer} adds {shared.maker} in other coordinates")


def _common(digits: Mapping[str, list[Digit]]) -> _Coordinates:
    """Return the coordinates of an input that several layers read."""
    first, *others = digits.values()
    parts = [digit for digit in first if digit.part is not None]
    matches = [[_matched(digit, user) for digit in parts] for user in others]
    for layer, user, matched in zip(list(digits)[1:], others, matches, strict=True):
        _check_all_matched(layer, user, matched)
    _check_all_matched(next(iter(digits)), first, list(parts))
    every = [list[Digit | None](parts), *matches]
    kept = [
        at
        for at, digit in enumerate(parts)
        if digit.steps > 1 or all(m[at] for m in every) or any((d := m[at]) and d.size > 1 for m in every)
    ]
    users = {layer: [user[at] for at in kept] for layer, user in zip(digits, every, strict=True)}
    starts = {layer: [d.start if d else 0 for d in user] for layer, user in users.items()}
    sizes = [parts[at].steps for at in kept]
    padded = any(
        d is not None and d.size > size for user in users.values() for d, size in zip(user, sizes, strict=True)
    )
    return _Coordinates(users, starts, sizes if padded else None)


def _matched(digit: Digit, others: Sequence[Digit]) -> Digit | None:
    if digit.part is None:
        return None
    return next((other for other in others if other.part == digit.part), None)


def _check_all_matched(layer: str, digits: Sequence[Digit], matched: Sequence[Digit | None]) -> None:
    for digit in digits:
        if digit.size > 1 and digit not in matched:
            raise SplitError(f"{layer} has {digit.size} words along a coordinate where the others have one")


def _built(workload: Workload, layers: Sequence[Layer], architecture: Architecture, joined: _Joined) -> NetworkGroup:
    named = {name: named_digits(problem, joined.cuts) for name, problem in joined.problems.items()}
    ranks = {
        (name, tensor.name): split_ranks(problem, tensor, named[name])
        for name, problem in joined.problems.items()
        for tensor in problem.tensors
    }
    taken = {
        name: {new for digits in by_name.values() for new, *_ in digits} | set(by_name)
        for name, by_name in named.items()
    }
    units = dict[tuple[str, int], str]()
    projections = {pair: tuple(rank for *_, rank in parts) for pair, parts in ranks.items()}
    edges, rows = list[dict[str, Any]](), dict[str, frozenset[tuple[str, str]]]()
    pairs = {
        (side.layer, side.tensor)
        for shared in joined.shared
        for link in shared.links
        for side in link.sides
        if side.layer not in shared.added
    }
    used = {f"{name}.{tensor}" for name, tensor in ranks if (name, tensor) not in pairs}
    for shared in joined.shared:
        coordinates = _coordinates(shared, joined.problems, joined.cuts)
        tensors = {side.layer: side.tensor for link in shared.links for side in link.sides}
        for layer, digits in coordinates.users.items():
            names = {(rank, stride): new for rank, stride, new in ranks[layer, tensors[layer]]}
            unit = 0
            projection = list[Rank]()
            for digit in digits:
                if digit is not None:
                    projection.append(names[digit.rank, digit.stride])
                    continue
                new = units.get((layer, unit)) or units.setdefault((layer, unit), fresh("U", taken[layer]))
                projection.append(Rank.model_validate({"terms": {new: 1}}))
                unit += 1
            projections[layer, tensors[layer]] = tuple(projection)
        name = _edge_name(".".join(shared.base), used)
        starts = {layer: shift for layer, shift in coordinates.starts.items() if any(shift)}
        tensors = {layer: tensor for layer, tensor in tensors.items() if layer not in shared.added}
        edges.append(
            {"tensor": name, "layers": tensors, "offsets": starts, "added": sorted(shared.added)}
            | ({} if coordinates.sizes is None else {"sizes": coordinates.sizes})
        )
        together = frozenset(_rows(shared, joined, ranks))
        if together:
            rows[name] = together
    problems = [
        _rewritten(
            layer.problem, named[layer.name], projections, [new for (at, _), new in units.items() if at == layer.name]
        )
        for layer in layers
    ]
    dimensions = {
        name: FrozenDict({new: (old, stride) for old, digits in by_name.items() for new, stride, _ in digits})
        for name, by_name in named.items()
    }
    data = {
        "name": workload.name,
        "layers": [problem.model_dump(mode="json") for problem in problems],
        "edges": edges,
        "tree": _tree(problems, edges, architecture),
        "architecture": architecture.model_dump(mode="json"),
    }
    group = GroupMapping.model_validate(data)
    padded = [is_padded(group, edge.tensor) for edge in group.edges]
    if any(padded):  # a layer on its own counts its padding as words, so these layers do, too
        stored = [
            edge | {"zeros": zeros} | ({"sizes": None} if zeros else {})
            for edge, zeros in zip(edges, padded, strict=True)
        ]
        group = GroupMapping.model_validate(data | {"edges": stored})
    return NetworkGroup(group, FrozenDict(dimensions), tuple(joined.left_out), FrozenDict(rows))


def _edge_name(name: str, used: set[str]) -> str:
    """Return the name of an edge: that of its maker's or first reader's tensor, if it may be one."""
    return fresh(name if _NAME.fullmatch(name) else "T", used)


def _rows(shared: _Shared, joined: _Joined, ranks: Mapping[tuple[str, str], Any]) -> Iterator[tuple[str, str]]:
    for link in shared.links if shared.maker is not None else ():
        for side in link.sides if link.whole else ():
            names = {(rank, stride): new for rank, stride, new in ranks[side.layer, side.tensor]}
            for digit in digits_along(joined.problems[side.layer], side, link, joined.cuts):
                if digit.part is not None and digit.part[0] in link.whole:
                    yield from ((side.layer, name) for name in names[digit.rank, digit.stride].terms)


def _rewritten(
    problem: Problem,
    named: Mapping[str, list[tuple[str, int, int]]],
    projections: Mapping[tuple[str, str], tuple[Rank, ...]],
    units: Sequence[str],
) -> Problem:
    """Return the problem with digits, and with the coordinates of its edges; the same one if nothing changes."""
    tensors = tuple(
        tensor.model_copy(update={"projection": projections[problem.name, tensor.name]}) for tensor in problem.tensors
    )
    if tensors == problem.tensors:
        return problem
    sizes = {new: size for digits in named.values() for new, _, size in digits} | dict.fromkeys(units, 1)
    operation = problem.operation if sizes == problem.dimensions else None
    return Problem.model_validate(
        problem.model_dump()
        | {"operation": operation, "dimensions": sizes, "tensors": [tensor.model_dump() for tensor in tensors]}
    )


def _tree(
    problems: Sequence[Problem], edges: Sequence[Mapping[str, Any]], architecture: Architecture
) -> dict[str, Any]:
    """Return the tree with all tensors at home outermost, and each layer's loops in the innermost cluster."""
    joined = {pair: edge["tensor"] for edge in edges for pair in edge["layers"].items()}
    uses = dict[str, list[Tensor]]()
    for problem in problems:
        for tensor in problem.tensors:
            name = joined.get((problem.name, tensor.name), f"{problem.name}.{tensor.name}")
            uses.setdefault(name, []).append(tensor)
    homes = dict[str, list[str]]()
    for name, tensors in uses.items():
        home = next(
            (
                cluster.name
                for cluster in architecture.clusters
                if all(any(memory.may_hold(tensor) for memory in cluster.memories) for tensor in tensors)
            ),
            None,
        )
        if home is None:
            reason = Reason(code="home", where=f"tensor {name}", message="no memory may hold it for all its layers")
            raise NotConformableError(f"architecture {architecture.name}", (reason,))
        homes.setdefault(home, []).append(name)
    inner = architecture.clusters[-1].name
    return {
        "entries": [
            {"target": cluster.name, "keep": homes[cluster.name]}
            for cluster in architecture.clusters
            if cluster.name in homes
        ],
        "branches": [
            {
                "layer": problem.name,
                "entries": [
                    {
                        "target": inner,
                        "keep": [],
                        "temporal_tile_sizes": dict.fromkeys(problem.dimensions, 1),
                        "temporal_order": list(problem.dimensions),
                    }
                ],
            }
            for problem in problems
        ],
    }
