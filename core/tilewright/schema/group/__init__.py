"""Group mapping: several layers that share outer loops, and the memories where their tensors are at home.

Sources: LoopTree's trees and AccelForge's mapping files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tilewright.markup import Printed
from tilewright.schema.architecture import Architecture
from tilewright.schema.density import check_data
from tilewright.schema.document import FileModel, commented, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.mapping.entries import completed, shortened
from tilewright.schema.problem import MAX_PARTS, DimensionName, Name, Problem, Size
from tilewright.schema.read import shape_of
from tilewright.schema.vector import GroupVector
from tilewright.values import MisplacedError, Model

MAX_DEPTH = 20
"""Maximum number of parts inside one another."""


class Edge(Model):
    """Tensor that several layers use, or whose words outside `sizes` do not exist (padding)."""

    tensor: Name
    """The group's name of the tensor."""
    layers: FrozenDict[str, Name] = Field(min_length=1, max_length=MAX_PARTS)
    """Layer -> its own name of the tensor."""
    offsets: FrozenDict[str, tuple[Annotated[int, Field(ge=-(2**40), le=2**40, strict=True)], ...]] = FrozenDict()
    """Layer -> numbers to add to the group's coordinates to get the layer's."""
    sizes: tuple[Size, ...] | None = None
    """Words that exist along each coordinate; None: those that the maker writes, or all if no layer makes them."""
    zeros: bool = False
    """Words around those of the maker exist, as zeros: they take room and are read, as those of a layer on its own."""
    added: tuple[Name, ...] = Field(default=(), max_length=MAX_PARTS)
    """Layers that add the tensor to their own result, word by word, such as after a residual block. This costs nothing."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that files without them stay as they are."""
        return {name: value for name, value in handler(self).items() if value or name != "added"}

    @model_validator(mode="after")
    def _zeros_exist(self) -> Self:
        if self.zeros and self.sizes is not None:
            raise MisplacedError("with zeros, all words exist; leave sizes out", "sizes")
        return self


class Pace(Model):
    """Rows that a layer takes in a shared loop, and when it starts."""

    rows: Size = 1
    """Rows of the layer for each row of the axis, such as 2 if a window with a stride of 2 reads them."""
    start: Annotated[int, Field(ge=0, le=2**40, strict=True)] | None = None
    """Row of the axis at which the layer starts; None: it ends together with the longest one."""


class Part(Model):
    """Part of the tree: entries, then a layer, or branches that run in sequence at every step.

    Entries of a layer are those of its own mapping. Entries of a shared part have axes instead of
    dimensions, and `keep` has the group's names of tensors.
    """

    layer: str | None = None
    """Name of the layer; None: the part has branches."""
    entries: tuple[Entry, ...] = Field(default=(), max_length=MAX_PARTS)
    """Entries outside the layer or the branches, outermost first."""
    branches: tuple[Part, ...] = Field(default=(), max_length=MAX_PARTS)
    """Parts that run in sequence."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.layer is None) == (not self.branches):
            raise ValueError("a part has either a layer or branches")
        return self

    def layers(self) -> Iterator[str]:
        """Yield the layers below, in order of execution."""
        if self.layer is not None:
            yield self.layer
        for branch in self.branches:
            yield from branch.layers()


Place = tuple[int, ...]
"""Branch numbers from the root to a part."""


@dataclass(frozen=True)
class Path:
    """Mapping of one layer: all entries from the root to the layer.

    `places` has the place of each entry's part, and the entry's number in it. `starts` has, for each
    entry, how many entries are outside its part.
    """

    problem: Problem
    mapping: Mapping
    place: Place
    places: tuple[tuple[Place, int], ...]
    starts: tuple[int, ...]
    names: FrozenDict[str, str]
    """The layer's name of a tensor -> the group's."""

    def keepers(self, tensor: str) -> list[int]:
        """Return the storage entries of a tensor of the layer, outermost first."""
        return [index for index, entry in enumerate(self.mapping.entries) if tensor in (entry.keep or ())]


class GroupMapping(Printed, FileModel):
    """Layers, the edges between them, and a tree of entries: shared parts with branches.

    `axes` join dimensions of layers: a shared loop over an axis steps all of them. Layers of different sizes there end
    together, so a larger one starts earlier; `paces` says otherwise. A tensor without an edge is named `layer.tensor`. The home of a tensor is
    its outermost storage entry.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> list(group.paths), len(group.users)
        (['einsum'], 3)
    """

    schema_version: Literal[1] = 1
    kind: Literal["group_mapping"] = "group_mapping"
    name: str = Field(min_length=1)
    """Name of the group."""
    axes: FrozenDict[DimensionName, FrozenDict[str, DimensionName]] = FrozenDict()
    """Axis -> the dimension of each layer that it joins."""
    paces: FrozenDict[DimensionName, FrozenDict[str, Pace]] = FrozenDict()
    """Axis -> the pace of layers that take other rows than the axis, or start at a row of their own."""
    edges: tuple[Edge, ...] = Field(default=(), max_length=MAX_PARTS)
    """Tensors that layers share."""
    tree: Part
    """Loops that layers share, and their own."""
    layers: tuple[Problem, ...] = Field(min_length=1, max_length=MAX_PARTS)
    """Problems of the group."""
    architecture: Architecture
    """The machine."""
    vectors: tuple[GroupVector, ...] = Field(default=(), max_length=MAX_PARTS)
    """Vector layers between the layers, such as a softmax, in order of execution."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that files without them stay as they are."""
        return {name: value for name, value in handler(self).items() if value or name != "vectors"}

    @model_validator(mode="before")
    @classmethod
    def _inherit_tiles(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("tree"), dict):
            return value
        sizes, axes, paces = _raw_sizes(value.get("layers")), value.get("axes", {}), value.get("paces", {})
        if not all(
            isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values()) for rows in (axes, paces)
        ):
            return value
        if not all(isinstance(name, str) for row in axes.values() for name in row.values()):
            return value
        return value | {"tree": _completed(value["tree"], sizes, _Axes(axes, paces, sizes), 0)}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_data(tensor.density for problem in self.layers for tensor in problem.tensors)
        names = [problem.name for problem in self.layers]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise MisplacedError(f"layer names repeat: {name}", "layers", number, "name")
        ran = list(self.tree.layers())
        odd = sorted(set(names).symmetric_difference(ran)) or sorted(name for name in ran if ran.count(name) > 1)
        if odd:
            raise MisplacedError(f"every layer has one place in the tree; check {', '.join(odd)}", "tree")
        for axis, dimensions in self.axes.items():
            self._check_axis(axis, dimensions)
        for axis, paces in self.paces.items():
            self._check_paces(axis, paces)
        for number, edge in enumerate(self.edges):
            self._check_edge(number, edge)
        self._check_names()
        self._check_part(self.tree, ("tree",))
        for number, vector in enumerate(self.vectors):
            self._check_vector(number, vector)
        return self

    def _check_vector(self, number: int, vector: GroupVector) -> None:
        taken = {problem.name for problem in self.layers} | {other.name for other in self.vectors[:number]}
        if vector.name in taken:
            raise MisplacedError(f"layer names repeat: {vector.name}", "vectors", number, "name")
        edges = {
            edge.tensor: maker for edge in self.edges if (maker := self.maker(edge.tensor)) and len(edge.layers) > 1
        }
        if vector.tensor not in edges:
            told = (
                f"{vector.tensor} is no edge that a layer makes and another one reads{suggestion(vector.tensor, edges)}"
            )
            raise MisplacedError(f"{told}; expected one of {', '.join(edges) or 'none'}", "vectors", number, "tensor")
        known = self._layer(edges[vector.tensor]).output.dimensions
        for place, name in enumerate(vector.row):
            if name not in known or name in vector.row[:place]:
                told = f"{name} is no dimension of {vector.tensor} in {edges[vector.tensor]}{suggestion(name, known)}"
                raise MisplacedError(
                    f"{told}; expected some of {', '.join(known)}, each once", "vectors", number, "row", place
                )

    def _check_names(self) -> None:
        """Check that no two tensors of the group have one name: an edge's, or `layer.tensor`."""
        joined = {pair for edge in self.edges for pair in edge.layers.items()}
        taken = {edge.tensor: f"edge {edge.tensor}" for edge in self.edges}
        for number, problem in enumerate(self.layers):
            for tensor in problem.tensor_names:
                name, told = f"{problem.name}.{tensor}", f"tensor {tensor} of layer {problem.name}"
                if (problem.name, tensor) in joined:
                    continue
                if name in taken:
                    text = f"{taken[name]} and {told} are both named {name} in the group; rename one"
                    raise MisplacedError(text, "layers", number, "name")
                taken.setdefault(name, told)

    def _check_axis(self, axis: str, dimensions: FrozenDict[str, str]) -> None:
        for layer, dimension in dimensions.items():
            problem = self._layer(layer, "axes", axis)
            if dimension not in problem.dimensions:
                hint = suggestion(dimension, problem.dimensions)
                raise MisplacedError(f"{layer} has no dimension {dimension}{hint}", "axes", axis, layer)
            other = next((name for name, layers in self.axes.items() if layers.get(layer) == dimension), axis)
            if other != axis:
                text = f"axes {other} and {axis} both step {dimension} of {layer}; expected one axis for a dimension"
                raise MisplacedError(text, "axes", axis, layer)

    def _check_paces(self, axis: str, paces: FrozenDict[str, Pace]) -> None:
        if axis not in self.axes:
            raise MisplacedError(f"there is no axis {axis}{suggestion(axis, self.axes)}", "paces", axis)
        for layer, pace in paces.items():
            if layer not in self.axes[axis]:
                hint = suggestion(layer, self.axes[axis])
                raise MisplacedError(f"axis {axis} has no dimension of {layer}{hint}", "paces", axis, layer)
            dimension = self.axes[axis][layer]
            size = self._layer(layer).dimensions[dimension]
            if size % pace.rows:
                text = f"{dimension} of {layer} has {size} rows; expected a number that divides them"
                raise MisplacedError(text, "paces", axis, layer, "rows")

    def _check_edge(self, number: int, edge: Edge) -> None:
        at = ("edges", number)
        if edge.tensor in (other.tensor for other in self.edges[:number]):
            raise MisplacedError(f"a second edge {edge.tensor}; one edge lists all layers", *at, "tensor")
        ranks = set[int]()
        for layer, name in edge.layers.items():
            problem = self._layer(layer, *at, "layers")
            if name not in problem.tensor_names:
                hint = suggestion(name, problem.tensor_names)
                raise MisplacedError(f"{layer} has no tensor {name}{hint}", *at, "layers", layer)
            if any((layer, name) in other.layers.items() for other in self.edges[:number]):
                raise MisplacedError(f"{layer}.{name} is on an edge already", *at, "layers", layer)
            ranks.add(len(problem.tensor(name).projection))
        makers = [user for user, name in edge.layers.items() if self._layer(user).tensor(name).is_output]
        if len(makers) > 1:
            raise MisplacedError(f"{' and '.join(makers)} make {edge.tensor}; expected one maker", *at, "layers")
        for place, layer in enumerate(edge.added):
            output = self._layer(layer, *at, "added", place).output
            if layer in edge.added[:place]:
                raise MisplacedError(f"{layer} is listed twice; expected each layer once", *at, "added", place)
            if not makers or layer in edge.layers:
                told = f"{layer} cannot add {edge.tensor}: expected a result of the group, and layers that neither make nor read it"
                raise MisplacedError(told, *at, "added", place)
            ranks.add(len(output.projection))
            made = self._layer(makers[0])
            shapes = [shape_of(problem, problem.output.name) for problem in (made, self._layer(layer))]
            if shapes[0] != shapes[1]:
                sizes = " and ".join(" x ".join(map(str, shape)) for shape in shapes)
                raise MisplacedError(f"{layer} adds {edge.tensor}, but their sizes are {sizes}", *at, "added", place)
        for layer in edge.offsets:
            if layer not in edge.layers:
                raise MisplacedError(f"{layer} does not use {edge.tensor}", *at, "offsets", layer)
        ranks |= {len(row) for row in (*edge.offsets.values(), *([edge.sizes] if edge.sizes else ()))}
        if edge.added and any(edge.offsets.get(makers[0], ())):
            raise MisplacedError(f"{edge.tensor} is added, so its maker has no offset", *at, "offsets", makers[0])
        if len(ranks) > 1:
            raise MisplacedError(f"{edge.tensor} has {sorted(ranks)} coordinates; expected one number", *at)

    def _check_part(self, part: Part, at: tuple[str | int, ...]) -> None:
        below = set(part.layers())
        known = self._shared_axes(part) if part.layer is None else set(self._layer(part.layer).dimensions)
        kind = f"axis of {' and '.join(sorted(below))}" if part.layer is None else f"dimension of {part.layer}"
        for number, entry in enumerate(part.entries):
            for name in sorted(entry.temporal_tile_sizes.keys() ^ known):
                what = f"{name} has no tile size" if name in known else f"{name} is no {kind}{suggestion(name, known)}"
                raise MisplacedError(what, *at, "entries", number, "temporal_tile_sizes")
            if part.layer is None:
                for name in (*(entry.keep or ()), *entry.unicast):
                    users = self.users.get(name)
                    if users is None or below.isdisjoint(users):
                        hint = suggestion(name, self.users)
                        raise MisplacedError(f"no layer below has a tensor {name}{hint}", *at, "entries", number)
        for number, branch in enumerate(part.branches):
            self._check_part(branch, (*at, "branches", number))

    def _layer(self, name: str, *at: str | int) -> Problem:
        for problem in self.layers:
            if problem.name == name:
                return problem
        hint = suggestion(name, [layer.name for layer in self.layers])
        raise MisplacedError(f"there is no layer {name}{hint}", *at)

    def _shared_axes(self, part: Part) -> set[str]:
        return {axis for axis, dimensions in self.axes.items() if dimensions.keys() >= set(part.layers())}

    @classmethod
    def of(cls, problem: Problem, architecture: Architecture, mapping: Mapping) -> Self:
        """Return the group of one layer."""
        return cls(
            name=problem.name,
            tree=Part(layer=problem.name, entries=mapping.entries),
            layers=(problem,),
            architecture=architecture,
        )

    @cached_property
    def users(self) -> dict[str, dict[str, str]]:
        """The group's tensors -> the layers that use each, with their own name of it, in order of execution."""
        order = list(self.tree.layers())
        users = {
            edge.tensor: {layer: edge.layers[layer] for layer in order if layer in edge.layers} for edge in self.edges
        }
        joined = {(layer, name) for edge in self.edges for layer, name in edge.layers.items()}
        for problem in sorted(self.layers, key=lambda layer: order.index(layer.name)):
            for name in problem.tensor_names:
                if (problem.name, name) not in joined:
                    users[f"{problem.name}.{name}"] = {problem.name: name}
        return users

    @cached_property
    def needs(self) -> dict[str, dict[str, str]]:
        """The group's tensors -> the layers that use each, as in `users`, or add it to their result, whose name is told."""
        order = list(self.tree.layers())
        added = {edge.tensor: {layer: self._layer(layer).output.name for layer in edge.added} for edge in self.edges}
        needs = {tensor: users | added.get(tensor, {}) for tensor, users in self.users.items()}
        return {tensor: {layer: users[layer] for layer in order if layer in users} for tensor, users in needs.items()}

    def edge_of(self, tensor: str) -> Edge | None:
        """Return the edge of a tensor of the group; None if one layer uses it and states nothing of its words."""
        return next((edge for edge in self.edges if edge.tensor == tensor), None)

    def maker(self, tensor: str) -> str | None:
        """Return the layer that makes a tensor of the group, or None."""
        for layer, name in self.users[tensor].items():
            if self._layer(layer).tensor(name).is_output:
                return layer
        return None

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Mapping of each layer from the root, in order of execution."""
        return {path.problem.name: path for path in self._paths(self.tree, (), ())}

    def _paths(self, part: Part, place: Place, outside: tuple[tuple[Part, Place], ...]) -> Iterator[Path]:
        outside = (*outside, (part, place))
        for number, branch in enumerate(part.branches):
            yield from self._paths(branch, (*place, number), outside)
        if part.layer is None:
            return
        problem = self._layer(part.layer)
        names = {name: tensor for tensor, users in self.users.items() for at, name in users.items() if at == part.layer}
        tensors = {tensor: name for name, tensor in names.items()}
        tiles = dict(problem.dimensions)
        entries: list[Entry] = []
        places: list[tuple[Place, int]] = []
        starts: list[int] = []
        for outer, at in outside:
            start = len(entries)
            for number, entry in enumerate(outer.entries):
                made = entry if outer is part else self._translated(entry, part.layer, tiles, tensors)
                tiles = dict(made.spatial_tile_sizes)
                entries.append(made)
                places.append((at, number))
                starts.append(start)
        if entries:
            yield Path(problem, Mapping(entries=tuple(entries)), place, tuple(places), tuple(starts), FrozenDict(names))

    def _translated(self, entry: Entry, layer: str, tiles: dict[str, int], tensors: dict[str, str]) -> Entry:
        """Return a shared entry with the dimensions and tensors of a layer."""
        dims = {axis: self.axes[axis][layer] for axis in entry.temporal_tile_sizes}
        problem = self._layer(layer)

        def within(axis: str, size: int) -> int:
            inside = size <= self.extent(axis, self.axes[axis])
            return min(size * self.rows(axis, layer), problem.dimensions[dims[axis]]) if inside else size

        rest = tuple(name for name in tiles if name not in dims.values())
        return Entry(
            target=entry.target,
            keep=None if entry.keep is None else tuple(tensors[name] for name in entry.keep if name in tensors),
            temporal_order=(*rest, *(dims[axis] for axis in entry.temporal_order)),
            temporal_tile_sizes=FrozenDict(
                tiles | {dims[a]: within(a, n) for a, n in entry.temporal_tile_sizes.items()}
            ),
            spatial_tile_sizes=FrozenDict(tiles | {dims[a]: within(a, n) for a, n in entry.spatial_tile_sizes.items()}),
            spatial_order=None
            if entry.spatial_order is None
            else (*rest, *(dims[axis] for axis in entry.spatial_order)),
            unicast=tuple(tensors[name] for name in entry.unicast if name in tensors),
        )

    def titled(self) -> str:
        """Return the loop tree below a title line."""
        return f"loop tree:\n{self}"

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back, without values that entries inherit."""
        data = super().to_data()
        sizes = {layer.name: dict(layer.dimensions) for layer in self.layers}
        return data | {
            "tree": _shortened(
                self.tree.model_dump(mode="json"), sizes, _Axes(data.get("axes", {}), data.get("paces", {}), sizes)
            )
        }

    def to_yaml(self) -> str:
        """Return the YAML form, with the loop tree as a comment; `from_yaml` reads it back."""
        return commented(str(self)) + super().to_yaml()

    def __str__(self) -> str:
        return "\n".join(self._lines(self.tree, "", {}))

    def _lines(self, part: Part, indent: str, sizes: dict[str, int]) -> Iterator[str]:
        """Yield the loop tree: loops, kept tensors, and the branches after `then`."""
        if part.layer is None:
            whole = {axis: self.extent(axis, part.layers()) for axis in self._shared_axes(part)}
        else:
            whole = dict(self._layer(part.layer).dimensions)
        incoming = {name: min(size, sizes.get(name, size)) for name, size in whole.items()}
        for entry in part.entries:
            for spatial in (False, True):
                tiles = entry.spatial_tile_sizes if spatial else entry.temporal_tile_sizes
                if spatial and entry.keep:
                    yield f"{indent}{entry.target} holds {', '.join(entry.keep)}"
                order = (entry.spatial_order or tuple(tiles)) if spatial else entry.temporal_order
                for name in order:
                    trips = -(-incoming[name] // tiles[name])
                    if trips > 1:
                        yield f"{indent}{'parallel ' if spatial else ''}for {name} in {trips}" + (
                            f" over {entry.target}" if spatial else ""
                        )
                        indent += "  "
                incoming |= tiles
        if part.layer is not None:
            problem = self._layer(part.layer)
            yield f"{indent}{problem.unit_operation}: {str(problem).partition(';')[0]}"
        for branch in part.branches:
            yield f"{indent}then {', '.join(branch.layers())}:"
            below = set(branch.layers())
            inside = {axis: size for axis, size in incoming.items() if below <= self.axes[axis].keys()}
            inner = inside
            if branch.layer is not None:
                inner = {self.axes[at][branch.layer]: n * self.rows(at, branch.layer) for at, n in inside.items()}
            yield from self._lines(branch, indent + "  ", inner)

    def rows(self, axis: str, layer: str) -> int:
        """Return a layer's rows for each row of an axis."""
        paces = self.paces.get(axis) or FrozenDict()
        return paces[layer].rows if layer in paces else 1

    def length(self, axis: str, layer: str) -> int:
        """Return the rows of an axis that a layer takes."""
        return self._layer(layer).dimensions[self.axes[axis][layer]] // self.rows(axis, layer)

    def starts(self, axis: str, layers: Iterable[str]) -> dict[str, int]:
        """Return the row of a shared loop of some layers at which each of them starts; the first one is at 0.

        All layers of the axis together decide on the start of one whose file states none.
        """
        paces = self.paces.get(axis) or FrozenDict()
        rows = {layer: (self.length(axis, layer), _start(paces.get(layer))) for layer in self.axes[axis]}
        return _starts(rows, layers)

    def extent(self, axis: str, layers: Iterable[str]) -> int:
        """Return the rows of a shared loop of some layers, from the first start to the last end."""
        return max(start + self.length(axis, layer) for layer, start in self.starts(axis, layers).items())


def _start(pace: Pace | None) -> int | None:
    return None if pace is None else pace.start


def _starts(rows: dict[str, tuple[int, int | None]], layers: Iterable[str]) -> dict[str, int]:
    """Return the starts of some layers after the first of them.

    Args:
        rows: length and stated start of each layer of the axis.
    """
    last = max(length + (start or 0) for length, start in rows.values())
    starts = {layer: last - rows[layer][0] if (begin := rows[layer][1]) is None else begin for layer in layers}
    first = min(starts.values())
    return {layer: start - first for layer, start in starts.items()}


@dataclass(frozen=True)
class _Axes:
    """Axes and paces of a file that is not checked yet."""

    axes: dict[str, Any]
    paces: dict[str, Any]
    whole: dict[str, dict[str, Any]]

    def rows(self, axis: str, layer: str) -> int:
        rows = self._pace(axis, layer).get("rows", 1)
        return rows if isinstance(rows, int) and rows > 0 else 1

    def extent(self, axis: str, sizes: dict[str, Any]) -> Any:
        """Return the rows of a loop of some layers; the first size if some are no numbers. Loops outside have no starts left."""
        is_whole = all(size == self.whole[layer][self.axes[axis][layer]] for layer, size in sizes.items())
        starts = {layer: self._pace(axis, layer).get("start") if is_whole else None for layer in self.axes[axis]}
        whole: dict[str, Any] = sizes
        if is_whole:
            whole = {layer: self.whole.get(layer, {}).get(name) for layer, name in self.axes[axis].items()}
        numbers = [*whole.values(), *(start for start in starts.values() if start is not None)]
        if not sizes or not all(isinstance(number, int) for number in numbers):
            return next(iter(sizes.values()), None)
        lengths = {layer: size // self.rows(axis, layer) for layer, size in whole.items()}
        begins = _starts({layer: (length, starts[layer]) for layer, length in lengths.items()}, sizes)
        return max(start + lengths[layer] for layer, start in begins.items())

    def _pace(self, axis: str, layer: str) -> dict[str, Any]:
        pace = self.paces.get(axis, {}).get(layer)
        pace = pace.model_dump() if isinstance(pace, Pace) else pace
        return pace if isinstance(pace, dict) else {}


def _raw_sizes(layers: Any) -> dict[str, dict[str, Any]]:
    """Return the sizes of the layers in a file that is not checked yet."""
    return {
        layer["name"]: dict(layer["dimensions"])
        for layer in (layers if isinstance(layers, list | tuple) else ())
        if isinstance(layer, dict) and isinstance(layer.get("name"), str) and isinstance(layer.get("dimensions"), dict)
    }


def _below(part: Any) -> set[str]:
    """Return the layers below a part that is not checked yet."""
    if not isinstance(part, dict):
        return set()
    branches = part.get("branches")
    inner = [_below(branch) for branch in branches] if isinstance(branches, list) else []
    return {str(part["layer"])}.union(*inner) if part.get("layer") is not None else set().union(*inner)


def _incoming(part: dict[str, Any], sizes: dict[str, dict[str, Any]], axes: _Axes) -> dict[str, Any]:
    """Return the tile sizes that the first entry of a part inherits."""
    if part.get("layer") is not None:
        return dict(sizes.get(str(part["layer"]), {}))
    below = _below(part)
    return {
        axis: axes.extent(
            axis,
            {
                at: sizes[at][name]
                for at, name in dimensions.items()
                if at in below and isinstance(name, str) and name in sizes.get(at, {})
            },
        )
        for axis, dimensions in axes.axes.items()
        if below and below <= dimensions.keys()
    }


def _inside(
    part: dict[str, Any], sizes: dict[str, dict[str, Any]], axes: _Axes, last: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the layers' sizes after the last entry of a shared part."""
    sizes_inside = {layer: dict(tile) for layer, tile in sizes.items()}
    for axis, size in last.items():
        for layer in _below(part):
            dimension = axes.axes.get(axis, {}).get(layer)
            if isinstance(dimension, str) and layer in sizes_inside:
                whole = sizes_inside[layer].get(dimension)
                both = isinstance(size, int) and isinstance(whole, int)
                sizes_inside[layer][dimension] = min(size * axes.rows(axis, layer), whole) if both else size
    return sizes_inside


def _completed(part: Any, sizes: dict[str, dict[str, Any]], axes: _Axes, depth: int) -> Any:
    """Return a part with all inherited values; unchanged where it is no part at all."""
    if not isinstance(part, dict):
        return part
    if depth > MAX_DEPTH:
        raise ValueError(f"the tree is deeper than {MAX_DEPTH} parts")
    entries, branches = part.get("entries", []), part.get("branches", [])
    if isinstance(entries, list):
        made = completed(entries, _incoming(part, sizes, axes))
        if made is not None:
            part = part | {"entries": made}
            last = made[-1]["spatial_tile_sizes"] if made else {}
            sizes = _inside(part, sizes, axes, last if part.get("layer") is None else {})
    if isinstance(branches, list):
        part = part | {"branches": [_completed(branch, sizes, axes, depth + 1) for branch in branches]}
    return part


def _shortened(part: dict[str, Any], sizes: dict[str, dict[str, Any]], axes: _Axes) -> dict[str, Any]:
    """Return a part without the values that `_completed` restores."""
    entries = part["entries"]
    inner = _inside(part, sizes, axes, entries[-1]["spatial_tile_sizes"]) if entries else sizes
    short = {
        "layer": part["layer"],
        "entries": list(shortened(entries, _incoming(part, sizes, axes))),
        "branches": [_shortened(branch, inner, axes) for branch in part["branches"]],
    }
    return {key: value for key, value in short.items() if value}
