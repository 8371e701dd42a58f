"""Workload: a network of problems; equal problems are recognised and mapped once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tilewright.errors import InputError, UnknownNameError
from tilewright.markup import Head, tabulated
from tilewright.schema.density import check_data
from tilewright.schema.document import FileModel, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Name, Problem
from tilewright.schema.read import Read, shape_of
from tilewright.schema.vector import VectorLayer, check_vectors
from tilewright.values import MisplacedError, Model, grouped

if TYPE_CHECKING:
    import networkx as nx


Content = Literal["network", "layers"]
"""Contents of a workload: a whole network, or a list of layers without totals."""
Values = Annotated[int, Field(ge=0, le=2**60, strict=True)]
"""Number of values in memory."""


class Layer(Model):
    """One problem of a network.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Layer
        >>> Layer(problem=tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), count=3).count
        3
    """

    problem: Problem
    """The loops of the layer."""
    after: tuple[str, ...] | None = None
    """Names of all layers whose results it reads; None: unknown."""
    count: int = Field(default=1, ge=1, strict=True)
    """How often the network repeats it, for example in identical blocks."""
    reads: FrozenDict[Name, tuple[Read, ...]] = FrozenDict()
    """Operand -> the layers of `after` that make it, with the words of each. () means none.

    Words of the other layers of `after` are unknown, and in which operand they are.
    """
    inputs: FrozenDict[Name, str] = FrozenDict()
    """Operand -> name of its value. Operands of one name have the same words, coordinate by coordinate, whoever makes them."""
    returned: bool = Field(default=False, strict=True)
    """Whether the network returns the result, or values of it, although layers read it: it has to leave the chip."""
    origin: Origin | None = None
    """Place in the file of the network; None: the workload's own file names it."""

    @property
    def name(self) -> str:
        return self.problem.name

    def renamed(self, named: Callable[[str], str]) -> Layer:
        """Return the layer with other names of layers, its own included, and of the values of operands."""
        reads = {
            tensor: tuple(read.model_copy(update={"maker": named(read.maker)}) for read in reads)
            for tensor, reads in self.reads.items()
        }
        return self.model_copy(
            update={
                "problem": self.problem.model_copy(update={"name": named(self.name)}),
                "after": None if self.after is None else tuple(map(named, self.after)),
                "reads": FrozenDict(reads),
                "inputs": FrozenDict({tensor: named(value) for tensor, value in self.inputs.items()}),
            }
        )


class Unmapped(Model):
    """An operator that is not mapped, and the reason; no operator is dropped silently.

    Example:
        >>> from tilewright.plugin import Unmapped
        >>> Unmapped(name="pool", operator="MaxPool", reason="no products").reason
        'no products'
    """

    name: str
    """Name of the operator in the network."""
    operator: str
    """Kind of operator, such as `Softmax`."""
    reason: str
    """Why it is not mapped."""
    operations: int | None = Field(default=None, ge=0)
    """Estimated scalar operations, which give its fraction of the work; None: unknown."""
    origin: Origin | None = None
    """Place in the file of the network."""


class Kept(Model):
    """Values that a language model keeps in memory from token to token.

    Example:
        >>> from tilewright.plugin import Kept
        >>> Kept(weights=100, cache=2 * 8 * 4).words
        164
    """

    weights: Values
    """Matrices and look-ups, each once, whether a pass reads them or not."""
    cache: Values
    """Keys and values of all tokens of all sequences, after this pass."""
    states: Values = 0
    """States of all sequences, which do not grow with the tokens."""

    @property
    def words(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.states


@dataclass(frozen=True)
class DistinctProblem:
    """A problem, the names of all layers equal to it, and their number including repetitions.

    `origins` are those of the layers that have one, by name.
    """

    problem: Problem
    layers: tuple[str, ...]
    count: int
    origins: FrozenDict[str, Origin] = FrozenDict()

    @property
    def origin(self) -> Origin | None:
        """Origin of the first layer."""
        return self.origins.get(self.layers[0])

    def origins_data(self) -> dict[str, dict[str, Any]]:
        """Return the origins as plain data, without absent parts."""
        return {name: origin.model_dump(exclude_none=True) for name, origin in self.origins.items()}


class Workload(FileModel):
    """Layers in execution order, and operators that are not mapped.

    Example:
        >>> import tilewright as tw
        >>> workload = tw.load("squeezenet", "workload", batch=1)
        >>> workload.name, len(workload.layers) > 20
        ('squeezenet', True)
    """

    schema_version: Literal[1] = 1
    kind: Literal["workload"] = "workload"
    name: str = Field(min_length=1)
    """Name of the network."""
    source: str | None = None
    """Origin of the layers."""
    content: Content = "network"
    """`network`: all layers, with their counts, so that totals have a meaning. `layers`: a list of layers, without totals."""
    layers: tuple[Layer, ...]
    """Layers in execution order."""
    unmapped: tuple[Unmapped, ...] = ()
    """Operators that are not mapped."""
    vectors: tuple[VectorLayer, ...] = ()
    """Layers without a product, in execution order; they count unmapped operators."""
    kept: Kept | None = None
    """Values that a language model keeps for its next token; None: there are none, or they are not stated."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that files without them stay as they are."""
        return {name: value for name, value in handler(self).items() if value or name not in ("vectors", "kept")}

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        check_data(tensor.density for layer in self.layers for tensor in layer.problem.tensors)
        names = set[str]()
        for number, layer in enumerate(self.layers):
            if layer.name in names:
                raise MisplacedError(f"layer names repeat: {layer.name}", "layers", number)
            names.add(layer.name)
        for layer in self.layers:
            for name in layer.after or ():
                if name not in names:
                    raise ValueError(f"layer {layer.name} comes after {name}, which is not a layer")
        shapes = dict[str, tuple[str, tuple[int, ...]]]()
        for number, layer in enumerate(self.layers):
            for tensor, value in layer.inputs.items():
                self._check_input(layer, tensor, value, shapes, ("layers", number, "inputs", tensor))
            for tensor, reads in layer.reads.items():
                for place, read in enumerate(reads):
                    self._check_read(layer, tensor, read, ("layers", number, "reads", tensor, place))
        check_vectors([layer.name for layer in self.layers], self.vectors)
        return self

    @staticmethod
    def _check_operand(layer: Layer, tensor: str, at: tuple[str | int, ...]) -> None:
        operands = [operand.name for operand in layer.problem.operands]
        if tensor not in operands:
            hint = suggestion(tensor, operands)
            raise MisplacedError(f"{layer.name} has no operand {tensor}{hint}", *at)

    def _check_input(
        self,
        layer: Layer,
        tensor: str,
        value: str,
        shapes: dict[str, tuple[str, tuple[int, ...]]],
        at: tuple[str | int, ...],
    ) -> None:
        """Check one operand against the first one of the same value; `shapes` has the first ones."""
        self._check_operand(layer, tensor, at)
        shape = shape_of(layer.problem, tensor)
        first, other = shapes.setdefault(value, (f"{layer.name}.{tensor}", shape))
        if shape != other:
            sizes = [" x ".join(map(str, lengths)) or "one value" for lengths in (shape, other)]
            text = f"{layer.name}.{tensor} is {sizes[0]}, but {first} is {sizes[1]}: expected one shape for {value}"
            raise MisplacedError(text, *at)

    def _check_read(self, layer: Layer, tensor: str, read: Read, at: tuple[str | int, ...]) -> None:
        self._check_operand(layer, tensor, at[:-1])
        if read.maker not in (layer.after or ()):
            hint = suggestion(read.maker, layer.after or ())
            raise MisplacedError(f"{layer.name} is not after {read.maker}{hint}", *at, "maker")
        try:
            read.within(self.layer(read.maker).problem, layer.problem, tensor)
        except ValueError as error:
            raise MisplacedError(str(error), *at) from None

    def layer(self, name: str) -> Layer:
        """Return the layer of that name. Raises KeyError."""
        return self._layers[name]

    @cached_property
    def _layers(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def edges(self) -> tuple[tuple[str, str, Read], ...]:
        """Layer, operand and read, with all coordinates written out, in order of execution."""
        return tuple(
            (layer.name, tensor, read.within(self.layer(read.maker).problem, layer.problem, tensor))
            for layer in self.layers
            for tensor, reads in layer.reads.items()
            for read in reads
        )

    def picked(self, names: Sequence[str]) -> tuple[Layer, ...]:
        """Return these layers with the edges between them, in the workload's order.

        Words that another layer makes, too, or reads, too, are unknown: they come from outside, or have to go there.
        So are results that the network returns.
        """
        chosen = set(names)
        others = {
            earlier.name: f"{layer.name} is not among the layers, and may read it"
            for number, layer in enumerate(self.layers)
            if layer.name not in chosen and layer.after is None
            for earlier in self.layers[:number]
        }
        others |= {
            name: f"{layer.name} is not among the layers"
            for layer in self.layers
            if layer.name not in chosen
            for name in layer.after or ()
        }
        others |= {
            layer.name: f"the network returns the result of {layer.name}" for layer in self.layers if layer.returned
        }

        def kept(reads: tuple[Read, ...]) -> tuple[Read, ...]:
            outer = next((f"{read.maker} is not among the layers" for read in reads if read.maker not in chosen), None)
            inner = [read for read in reads if read.maker in chosen]
            reasons = [outer or others.get(read.maker) for read in inner]
            return tuple(
                read if read.cut or reason is None else Read(maker=read.maker, cut=reason)
                for read, reason in zip(inner, reasons, strict=True)
            )

        return tuple(
            layer.model_copy(
                update={
                    "after": None if layer.after is None else tuple(name for name in layer.after if name in chosen),
                    "reads": FrozenDict({tensor: kept(reads) for tensor, reads in layer.reads.items()}),
                }
            )
            for layer in self.layers
            if layer.name in chosen
        )

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Layers that may read any result before them, in order: the workload does not state which ones they read."""
        return tuple(layer.name for number, layer in enumerate(self.layers) if number and layer.after is None)

    @property
    def told_unknown(self) -> str:
        """How many layers do not state whose results they read, as a clause; empty if all do."""
        if len(self.unknown) > 1:
            return f"{len(self.unknown)} layers do not state whose results they read"
        return "one layer does not state whose results it reads" if self.unknown else ""

    @classmethod
    def of(cls, problem: Problem) -> Workload:
        """Return a workload of one layer."""
        return cls(name=problem.name, source=problem.source, layers=(Layer(problem=problem),))

    def only(self, name: str, told: str | None = None) -> Workload:
        """Return one layer, executed once, as a workload.

        Args:
            name: name of the layer, or in the network's file that of its operator, result or weights.
            told: name of this workload for messages.

        Raises:
            UnknownNameError: There is no such layer, or several are from operators of that name.
        """
        names, nodes = [layer.name for layer in self.layers], dict[str, list[str]]()
        for layer in self.layers:
            origin = layer.origin
            for node in () if origin is None else dict.fromkeys((origin.node, origin.output, origin.weights)):
                if node is not None:
                    nodes.setdefault(node, []).append(layer.name)
        spellings = (name, f"/{name}")  # exporters name operators like paths
        made = next(([spelling] for spelling in spellings if spelling in names), None)
        made = made or next((nodes[spelling] for spelling in spellings if spelling in nodes), [])
        if len(made) != 1:
            told = told or self.name
            if made:
                raise UnknownNameError(f"{told} has several layers from '{name}'", hint=f"name one: {', '.join(made)}")
            raise UnknownNameError(
                f"{told} has no layer '{name}'{suggestion(name, [*names, *nodes])}",
                hint=f"its layers: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}",
            )
        layer = self.layer(made[0])
        one = Layer(problem=layer.problem, origin=layer.origin)
        return Workload(name=one.name, source=layer.problem.source or self.source, layers=(one,))

    @classmethod
    def together(cls, networks: Sequence[Workload], weights: Sequence[int]) -> Workload:
        """Return several networks as one, each executed as often as its weight.

        Layers are called `network/layer`. The first layer of a network reads no results of the others.

        Raises:
            InputError: two networks have one name.
        """
        names = [network.name for network in networks]
        if len(set(names)) < len(names):
            raise InputError(f"two networks have one name: {', '.join(names)}")
        layers = (
            layer.renamed(f"{network.name}/{{}}".format).model_copy(
                update={"count": weight * layer.count} | ({} if number or layer.after else {"after": ()})
            )
            for network, weight in zip(networks, weights, strict=True)
            for number, layer in enumerate(network.layers)
        )
        told = (f"{weight} x {name}" if weight > 1 else name for name, weight in zip(names, weights, strict=True))
        unmapped = tuple(operator for network in networks for operator in network.unmapped)
        vectors = (
            vector.renamed(f"{network.name}/{{}}".format).model_copy(update={"count": weight * vector.count})
            for network, weight in zip(networks, weights, strict=True)
            for vector in network.vectors
        )
        content = cls.content_of(networks)
        name = " + ".join(told)
        return cls(name=name, content=content, layers=tuple(layers), unmapped=unmapped, vectors=tuple(vectors))

    @staticmethod
    def content_of(parts: Sequence[Workload]) -> Content:
        """Return the content of all parts together: a list of layers if one of them is."""
        return "layers" if any(part.is_list for part in parts) else "network"

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """Graph of the layers, with plain attributes that any networkx writer accepts.

        A node is a layer name with `macs`, `dimensions` (sizes other than 1, as text) and `count`.
        An edge is a result read by another layer.
        """
        import networkx as nx  # imported here because networkx takes longer to import than most commands to run

        graph: nx.DiGraph[str] = nx.DiGraph(name=self.name, content=self.content)
        for layer in self.layers:
            graph.add_node(
                layer.name, macs=layer.problem.macs, dimensions=layer.problem.long_dimensions, count=layer.count
            )
        graph.add_edges_from((before, layer.name) for layer in self.layers for before in layer.after or ())
        return graph

    @property
    def is_list(self) -> bool:
        """Whether it is a list of layers, which has no totals."""
        return self.content == "layers"

    def told(self) -> list[str]:
        """Return a line that takes the place of totals; none for a network."""
        return [f"{self.name} is a list of layers, not a network: it has no total"] if self.is_list else []

    def _repr_html_(self) -> str:
        """Return the distinct layers as a table for notebooks."""
        what = "a list of" if self.is_list else f"{self.macs:,} operations in"
        heads = [
            Head("layer"),
            Head("sizes"),
            Head("stride"),
            Head("count", right=True),
            Head("operations", right=True),
        ]
        rows = [
            (one.problem.name, one.problem.long_dimensions, one.problem.stride or "", one.count, one.problem.macs)
            for one in self.distinct()
        ]
        return tabulated(f"{self.name}: {what} {len(self.layers):,} layers", heads, rows)

    @property
    def macs(self) -> int:
        """MACs of all layers, including repetitions. For a list of layers this is no figure of a network."""
        return sum(layer.problem.macs * layer.count for layer in self.layers)

    def distinct(self) -> tuple[DistinctProblem, ...]:
        """Return each different problem once, in order of first appearance, with its layers."""
        groups = grouped((layer.problem.content_key, layer) for layer in self.layers)
        return tuple(
            DistinctProblem(
                group[0].problem,
                tuple(layer.name for layer in group),
                sum(layer.count for layer in group),
                FrozenDict({layer.name: layer.origin for layer in group if layer.origin is not None}),
            )
            for group in groups.values()
        )


def costed_graph(workload: Workload, costs: Mapping[str, Any]) -> nx.DiGraph[str]:
    """Return the workload's graph with `energy_pj` and `cycles` over all repetitions of a layer.

    Args:
        workload: the network.
        costs: layer name -> an object with `energy_pj` and `cycles` of one repetition; None or
            absent if the layer is not mapped.
    """
    graph = workload.graph.copy()
    for layer in workload.layers:
        cost = costs.get(layer.name)
        if cost is not None and cost.energy_pj is not None:
            graph.nodes[layer.name].update(energy_pj=cost.energy_pj * layer.count, cycles=cost.cycles * layer.count)
    return graph
