"""Views: which words of a value a layer makes, behind operators that move words or change values.

Each axis of a value is a sum of coordinates of the view, plus an offset. Operators without an affine form
cut the view, and their reason stays with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.read import Index, Read, shape_of
from tilewright.schema.workload import Layer
from tilewright_frontends.nests import Shape

MAX_MAKERS = 64
"""Maximum number of layers behind one operand; with more, its reads are left out as unknown."""
REPEATED = "the layer is executed several times"
Operands = Mapping[str, tuple["Layout | None", Sequence["View"]]]
"""Operand -> its layout in the value, None if it has other words, and the views of the value."""


@dataclass(frozen=True)
class Axis:
    """One axis of a value: `names` are coordinates in row-major order, the last one counts single words."""

    size: int
    names: tuple[str, ...] = ()
    offset: int = 0


@dataclass(frozen=True)
class View:
    """Words of a value that one layer makes; the fields are those of `Read`.

    `made` has terms and offset of each coordinate of the maker's result. Every coordinate has at
    least two values. `reduced` are axes that a reduction has removed: a word of the value needs all words along them.
    """

    maker: str
    sizes: Mapping[str, int]
    made: tuple[tuple[Mapping[str, int], int], ...]
    axes: tuple[Axis, ...]
    through: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    cut: str | None = None
    reduced: tuple[Axis, ...] = ()

    @classmethod
    def of(cls, problem: Problem, shape: Shape) -> View:
        """Return the view of a layer's result, whose words the value has in the same order."""
        sizes: dict[str, int] = {}
        made, axes = list[tuple[Mapping[str, int], int]](), list[Axis]()
        for place, (rank, size) in enumerate(
            zip(problem.output.projection, shape_of(problem, problem.output.name), strict=True)
        ):
            name = next(iter(rank.terms)).lower() if len(rank.terms) == 1 else f"x{place}"
            name = f"{name}_{place}" if name in sizes else name
            if size > 1:
                sizes[name] = size
            made.append(({name: 1} if size > 1 else {}, 0))
            axes.append(Axis(size, (name,) if size > 1 else ()))
        return cls(problem.name, sizes, tuple(made), tuple(axes)).reshaped(shape)

    @property
    def shape(self) -> Shape:
        return tuple(axis.size for axis in self.axes)

    def without(self, reason: str) -> View:
        """Return the view cut for a reason; a view that is cut keeps its first reason."""
        return self if self.cut else View(self.maker, {}, (), (), self.through, cut=reason)

    def via(self, operator: str, whole: Iterable[int] = ()) -> View:
        """Return the view after an operator on words, which needs the words along some axes together."""
        through = self.through if operator in self.through else (*self.through, operator)
        names = {name for axis in whole for name in self.axes[axis].names} if not self.cut else set()
        return replace(self, through=through, whole=self.whole | names)

    def summed(self, axes: Iterable[int]) -> View:
        """Return the view after a reduction, such as the maximum of each row. The axes that it needs whole get size 1."""
        view = self
        for place in axes:
            if view.cut:
                return view
            axis = view.axes[place]
            if axis.size > 1 and not _is_full(view, axis):
                return view.without("a sum over words that several layers make")
            gone = (axis,) if axis.names else ()
            view = replace(view._with_axis(place, Axis(1)), reduced=(*view.reduced, *gone))
        return view

    def transposed(self, order: Sequence[int]) -> View:
        return self if self.cut else replace(self, axes=tuple(self.axes[axis] for axis in order))

    def reshaped(self, shape: Shape) -> View:
        """Return the view of a value with the same words in the same order."""
        if self.cut or self.shape == tuple(shape):
            return self
        if math.prod(shape) != math.prod(self.shape):
            return self.without(f"{_sized(self.shape)} words are read as {_sized(shape)}: packed or cached")
        view, axes = self, list[Axis]()
        left: list[Axis] = [part for axis in self.axes for part in self._parts(axis)]
        for size in reversed(shape):
            taken, need = list[Axis](), size
            while need > 1:
                part = left.pop()
                if part.size > need and part.size % need == 0:
                    view, rest, part = view._divided(part, need)
                    left += rest
                if need % part.size or (part.size != need and not _is_full(view, part)):
                    return self.without(f"a reshape from {_sized(self.shape)} to {_sized(shape)} mixes coordinates")
                taken.append(part)
                need //= part.size
            names = tuple(name for part in reversed(taken) for name in part.names)
            offset = taken[-1].offset * (size // taken[-1].size) if taken else 0
            axes.append(Axis(size, names, offset))
        return replace(view, axes=tuple(reversed(axes)))

    def _parts(self, axis: Axis) -> list[Axis]:
        """Return an axis as single coordinates, if these are all of it."""
        if axis.size == 1:
            return []
        return [Axis(self.sizes[name], (name,)) for name in axis.names] if _is_full(self, axis) else [axis]

    def _divided(self, part: Axis, inner: int) -> tuple[View, list[Axis], Axis]:
        """Return the view with a part of an axis as two, the second of size `inner`; unchanged if words would mix."""
        count = math.prod(self.sizes[name] for name in part.names)
        block, place = divmod(part.offset, inner)
        if place + count <= inner:
            return self, [Axis(part.size // inner, (), block)], Axis(inner, part.names, place)
        if len(part.names) != 1 or place or count % inner:
            return self, [], part
        view, first, second = self._split(part.names[0], inner)
        return view, [Axis(part.size // inner, (first,), block)], Axis(inner, (second,))

    def _split(self, name: str, inner: int) -> tuple[View, str, str]:
        """Return the view with a coordinate as two, the second with `inner` values, and their names."""
        taken = self.sizes.keys()
        first, second = (_fresh(f"{name}{end}", taken) for end in ("o", "i"))
        sizes = {k: v for k, v in self.sizes.items() if k != name} | {first: self.sizes[name] // inner, second: inner}
        made = tuple(
            ({k: v for k, v in terms.items() if k != name} | {first: terms[name] * inner, second: terms[name]}, offset)
            if name in terms
            else (terms, offset)
            for terms, offset in self.made
        )
        whole = self.whole - {name} | {first, second} if name in self.whole else self.whole
        return replace(self, sizes=sizes, made=made, whole=whole), first, second

    def sliced(self, axis: int, start: int, size: int, step: int = 1) -> View | None:
        """Return the view of every step-th word along an axis; None: no word is the maker's."""
        if self.cut:
            return self
        old = self.axes[axis]
        if (start, size, step) == (0, old.size, 1):
            return self
        if not old.names:
            hit = start <= old.offset < start + size * step and (old.offset - start) % step == 0
            return self._with_axis(axis, Axis(size, (), (old.offset - start) // step)) if hit else None
        name, inner = old.names[0], math.prod(self.sizes[other] for other in old.names[1:])
        if inner > 1 and (step != 1 or start % inner or size % inner or old.offset):
            return self.without("a slice through a reshaped coordinate")
        if step != 1 and old.offset:
            return self.without("a slice with a step after padding")
        if step < 1:
            return self.without("a slice that reverses the order")
        low = max(0, start - old.offset) // inner
        count = min(self.sizes[name], (start + (size - 1) * step + 1 - old.offset + inner - 1) // inner) - low
        count = -(-count // step)
        if count < 1:
            return None
        made = tuple(
            ({k: v * step if k == name else v for k, v in terms.items()}, offset + low * terms.get(name, 0))
            for terms, offset in self.made
        )
        names = old.names if count > 1 else old.names[1:]
        kept = Axis(size, names, max(0, old.offset - start))
        if count > 1:
            return replace(self._with_axis(axis, kept), made=made, sizes={**self.sizes, name: count})
        made = tuple(({k: v for k, v in terms.items() if k != name}, offset) for terms, offset in made)
        sizes = {k: v for k, v in self.sizes.items() if k != name}
        return replace(self._with_axis(axis, kept), made=made, sizes=sizes, whole=self.whole - {name})

    def padded(self, axis: int, before: int, size: int) -> View | None:
        """Return the view in a longer or shorter axis, where the first word has another place.

        None: no word is left.
        """
        if self.cut:
            return self
        if before < 0:
            view = self.sliced(axis, -before, self.axes[axis].size + before)
            return None if view is None else view.padded(axis, 0, size)
        old = self.axes[axis]
        moved = self._with_axis(axis, replace(old, size=max(size, before + old.size), offset=before + old.offset))
        return moved if moved.cut else moved.sliced(axis, 0, size)

    def broadcast(self, shape: Shape) -> View:
        """Return the view of a value whose words repeat along axes of size 1 or new axes in front."""
        if self.cut:
            return self
        view = replace(self, axes=(*(Axis(1),) * (len(shape) - len(self.axes)), *self.axes))
        for place, size in enumerate(shape):
            if view.axes[place].size == 1 < size:
                gone = next((axis for axis in view.reduced if axis.size == size), None)
                if gone is not None:  # a row gets its own sum back
                    left = tuple(axis for axis in view.reduced if axis is not gone)
                    view = replace(view._with_axis(place, gone), reduced=left, whole=view.whole | set(gone.names))
                    continue
                name = _fresh(f"x{place}", view.sizes.keys())
                view = replace(view._with_axis(place, Axis(size, (name,))), sizes={**view.sizes, name: size})
        return view if view.shape == tuple(shape) else self.without("the shapes do not broadcast")

    def _with_axis(self, place: int, axis: Axis) -> View:
        return replace(self, axes=(*self.axes[:place], axis, *self.axes[place + 1 :]))

    def read(self) -> Read:
        """Return the read of an operand whose coordinates are the value's axes."""
        if self.reduced:
            return self.without(f"words are summed: {', '.join(self.through) or 'a reduction'}").read()
        if self.cut:
            return Read(maker=self.maker, through=self.through, cut=self.cut)
        made = tuple(Index(terms=FrozenDict(terms), offset=offset) for terms, offset in self.made)
        whole = tuple(name for name in self.sizes if name in self.whole)
        read = tuple(
            Index(
                terms=FrozenDict(
                    {
                        name: math.prod(self.sizes[part] for part in axis.names[place + 1 :])
                        for place, name in enumerate(axis.names)
                    }
                ),
                offset=axis.offset,
            )
            for axis in self.axes
        )
        return Read(
            maker=self.maker, sizes=FrozenDict(self.sizes), made=made, read=read, through=self.through, whole=whole
        )


@dataclass(frozen=True)
class Layout:
    """How an operand's coordinates follow from the value's axes.

    Attributes:
        shape: the value is reshaped to it first; None: not at all.
        order: its axes are transposed after that; None: not at all.
        pads: words of the tensor in front of those of the value, along each of the tensor's last coordinates. Negative: the
            value has that many words in front of the tensor's.
    """

    shape: Shape | None = None
    order: tuple[int, ...] | None = None
    pads: tuple[int, ...] = ()

    def result(self, problem: Problem, shape: Shape) -> View:
        """Return the view of a layer's result in a value: reshaped and transposed, the tensor has the value's shape."""
        words = shape_of(problem, problem.output.name) if self.shape is None else self.shape
        order = tuple(range(len(words))) if self.order is None else self.order
        view = View.of(problem, words)
        for place, pad in enumerate(self.pads, len(words) - len(self.pads)):
            moved = view.padded(place, -pad, shape[order.index(place) - len(words)])
            if moved is None:
                return view.without(f"no word of {problem.name} is in its result")
            view = moved
        return view.transposed(order).reshaped(shape)

    def read(self, view: View, problem: Problem, tensor: str) -> Read | None:
        """Return the read of an operand; None: the operand has no word of the view."""
        result: View | None = view if self.shape is None else view.reshaped(self.shape)
        assert result is not None
        if self.order is not None:
            result = result.transposed(self.order)
        extents, spatial = shape_of(problem, tensor), len(self.pads)
        if result.cut:
            return result.read()
        plain = len(extents) - spatial
        result = result.reshaped((*extents[:plain], *result.shape[len(result.shape) - spatial :]))
        for place, pad in enumerate(self.pads):
            result = None if result is None else result.padded(plain + place, pad, extents[plain + place])
        return None if result is None else result.read()


def layer_of(problem: Problem, operands: Operands, before: Sequence[str], count: int, alone: bool = True) -> Layer:
    """Return a layer with its reads.

    Args:
        problem: its problem, with the name in the workload.
        operands: the values of its operands.
        before: layers whose results reach the operator.
        count: how often the layer is executed.
        alone: whether the operator has no other layer, which may read their results.
    """
    if len(before) > MAX_MAKERS:
        operands, alone = {}, False
    by_tensor: dict[str, tuple[Read, ...]] = {}
    for tensor, (layout, made) in operands.items():
        if count > 1:
            made = [view.without(REPEATED) for view in made]
        elif layout is None:
            made = [view.without(f"{problem.name} reads {tensor} in another order") for view in made]
        views_read = [(layout or Layout()).read(view, problem, tensor) for view in made]
        kept = tuple(read for read in views_read if read is not None)
        if kept:
            by_tensor[tensor] = kept
    makers = dict.fromkeys(read.maker for reads in by_tensor.values() for read in reads)
    lost = tuple(
        Read(maker=maker, cut=f"no operand of {problem.name} has words of it")
        for maker in (before if alone else ())
        if maker not in makers
    )
    if lost:
        first = problem.operands[0].name
        by_tensor = {first: (*by_tensor.get(first, ()), *lost)} | {k: v for k, v in by_tensor.items() if k != first}
    after = (*before, *(maker for maker in makers if maker not in before))
    return Layer(problem=problem, after=after, count=count, reads=FrozenDict(by_tensor))


def result_of(problem: Problem, layout: Layout | None, shape: Shape | None, count: int) -> View:
    """Return the view of a layer's result in a value of that shape; None: that of the problem's tensor."""
    words = shape_of(problem, problem.output.name)
    if count > 1:
        return View.of(problem, words).without(REPEATED)
    if layout is None:
        return View.of(problem, words).without(f"{problem.name} writes its result in another order")
    return layout.result(problem, words if shape is None else shape)


def joined(views: Iterable[View]) -> tuple[View, ...]:
    """Return views without repetitions: one with the same words has the operators of both."""
    by_key: dict[object, View] = {}
    for view in views:
        words = tuple((tuple(sorted(terms.items())), offset) for terms, offset in view.made)
        key = view.maker, tuple(sorted(view.sizes.items())), words, view.axes, view.cut, view.reduced
        old = by_key.get(key)
        through = view.through if old is None else _in_order(old.through, view.through)
        by_key[key] = replace(view, through=through, whole=view.whole if old is None else old.whole | view.whole)
    return tuple(by_key.values())


def _in_order(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Return the operators of two ways, in an order that both have."""
    ordered, place = list[str](), 0
    for name in first:
        if name in second[place:]:
            end = second.index(name, place)
            ordered += [other for other in second[place:end] if other not in ordered]
            place = end + 1
        ordered += [] if name in ordered else [name]
    return (*ordered, *(other for other in second[place:] if other not in ordered))


def passed(parts: Iterable[View]) -> tuple[View, ...]:
    """Return the views of a result without repetitions; none if it has words of too many makers."""
    views = joined(parts)
    return views if len({view.maker for view in views}) <= MAX_MAKERS else ()


def _is_full(view: View, axis: Axis) -> bool:
    return not axis.offset and math.prod(view.sizes[name] for name in axis.names) == axis.size


def _fresh(name: str, taken: Iterable[str]) -> str:
    used, number, free = set(taken), 2, name
    while free in used:
        free, number = f"{name}{number}", number + 1
    return free


def _sized(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "one value"
