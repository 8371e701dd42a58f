"""Parser of MAESTRO's mapping file: a network of layers, each with its dataflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError

from tilewright.errors import Location
from tilewright.schema.document import suggestion
from tilewright.values import plain_fault
from tilewright_adapters.maestro.words import Words
from tilewright_notations.directives import DirectiveLayer, Map

TYPES = ("CONV", "DSCONV", "NGCONV", "TRCONV", "GEMM")
NO_LAYERS = ("FC", "POOL", "LSTM")
DIMENSIONS = ("N", "K", "C", "R", "S", "Y", "X", "Y'", "X'", "G", "M")
_WINDOWS = {"Y": "R", "X": "S"}

DirectiveLevels = tuple[tuple[Map, ...], ...]


@dataclass
class _Draft:
    """A layer under construction."""

    name: str
    type: str | None = None
    strides: dict[str, int] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)
    levels: DirectiveLevels | None = None
    cluster_sizes: tuple[int, ...] = ()


class NetworkReader:
    """Parser of one file.

    `dataflows`: layer type -> file with the dataflow for such layers that have none; "" means
    all other types.
    """

    def __init__(self, words: Words, dataflows: Mapping[str, Words] | None = None) -> None:
        self.words = words
        self.dataflows = dataflows or {}
        self.constants: dict[str, int] = {}
        self.layers: list[DirectiveLayer] = []
        self.applied: dict[str, list[str]] = {}
        """Dataflow file -> names of the layers it was applied to."""
        self.bare: dict[str, Location] = {}
        """Layers without a dataflow, as in model files; they get one level without directives."""

    def read(self) -> tuple[str, tuple[DirectiveLayer, ...]]:
        """Return the name of the network and its layers. Raises InputError with the line."""
        words = self.words
        while words.next == "Constant":
            self._constant()
        if words.next != "Network":
            message = f"found '{words.next}'; expected a mapping file to begin with Network"
            raise words.error(message, hint="a Dataflow belongs inside a Layer, a Layer inside a Network")
        words.take()
        name = "network" if words.next == "{" else words.name()
        words.expect("{")
        while words.next != "}":
            if words.next == "Constant":
                self._constant()
                continue
            if words.next in ("FPS", "Probability", "Dependency"):
                message = f"{words.next} is a key of XRBench, which schedules several networks; MAESTRO has none"
                raise words.error(
                    message, hint="delete FPS, Probability and Dependency, and give one Network in a file"
                )
            words.expect("Layer")
            self._layer()
        words.expect("}")
        if words.next:
            raise words.error(f"found '{words.next}' after the network; expected the end of the file")
        if not self.layers:
            raise words.error("the network has no layer")
        return name, tuple(self.layers)

    def _constant(self) -> None:
        self.words.expect("Constant")
        name = self.words.take()
        self.constants[name] = self.words.number(f"constant {name}")

    def _layer(self) -> None:
        words = self.words
        draft = _Draft(words.name())
        words.expect("{")
        while words.next != "}":
            match words.one_of(("Type", "Stride", "Dimensions", "Dataflow"), "part of a layer"):
                case "Type":
                    draft.type = self._type()
                case "Stride":
                    if draft.dimensions:
                        raise words.error("Stride must come before Dimensions")
                    draft.strides = self._sizes("stride", ("X", "Y"))
                case "Dimensions":
                    draft.dimensions = self._dimensions(draft)
                case _:
                    if not draft.dimensions:
                        raise words.error("Dimensions must come before Dataflow")
                    draft.levels, draft.cluster_sizes = self._dataflow(draft)
        self._finish(draft)
        words.expect("}")

    def _type(self) -> str:
        if self.words.next in NO_LAYERS:
            message = f"MAESTRO does not support layers of type {self.words.next}"
            raise self.words.error(message, hint="write FC as GEMM or as CONV over 1 x 1")
        if self.words.next == "BMM":
            raise self.words.error("MAESTRO has no batched matrix product", hint="write one GEMM and count it B times")
        return self.words.one_of(TYPES, "layer type")

    def _sizes(self, what: str, known: tuple[str, ...]) -> dict[str, int]:
        self.words.expect("{")
        sizes: dict[str, int] = {}
        while self.words.next != "}":
            name = self.words.one_of(known, "dimension")
            size = self._number(f"{what} {name}", sizes)
            if sizes.setdefault(name, size) != size:  # a file shipped with MAESTRO repeats one
                self.words.position -= 1
                raise self.words.error(f"{what} {name} has two values, {sizes[name]} and {size}")
        self.words.expect("}")
        return sizes

    def _dimensions(self, draft: _Draft) -> dict[str, int]:
        """Return the dimensions, with output rows and columns converted to input ones."""
        sizes = self._sizes("size of", DIMENSIONS)
        for name, window in _WINDOWS.items():
            outputs = sizes.pop(f"{name}'", None)
            if outputs is None:
                continue
            if name in sizes:
                raise self.words.error(f"both {name} and {name}' are given; expected one of them")
            if window not in sizes:
                raise self.words.error(f"{name}' needs the size of {window}")
            sizes[name] = (outputs - 1) * draft.strides.get(name, 1) + sizes[window]
        return sizes

    def _number(self, what: str, sizes: dict[str, int]) -> int:
        """Return a number, a constant, or `Sz(R)`: the size of a dimension of the layer."""
        words = self.words
        if words.next in self.constants:
            return self.constants[words.take()]
        if words.next != "Sz":
            if words.next[:1].isalpha():
                known = (
                    ", ".join(self.constants) or f"none are defined; write 'Constant {words.next} 1' above the Network"
                )
                raise words.error(
                    f"{what}: unknown constant '{words.next}'{suggestion(words.next, self.constants)}",
                    hint=f"constants: {known}; a size of the layer is written Sz(R)",
                )
            return words.number(what)
        words.take()
        return sizes[words.one_of(sizes, "dimension of this layer with a size before this")]

    def _dataflow(self, draft: _Draft) -> tuple[DirectiveLevels, tuple[int, ...]]:
        words = self.words
        words.expect("{")
        levels: list[list[Map]] = [[]]
        clusters: list[int] = []
        while words.next != "}":
            directive = words.one_of(("TemporalMap", "SpatialMap", "Cluster"), "directive")
            size = self._number(f"size of {directive}", draft.dimensions)
            if directive == "Cluster":
                if words.next in ("P", "L"):
                    words.take()
                clusters.append(size)
                levels.append([])
                continue
            offset = self._number(f"offset of {directive}", draft.dimensions)
            dimension = words.one_of(DIMENSIONS, "dimension")
            if dimension.rstrip("'") not in draft.dimensions:
                words.position -= 1
                has = " ".join(draft.dimensions)
                raise words.error(f"layer {draft.name} has no dimension {dimension}; it has {has}")
            levels[-1].append(Map(spatial=directive == "SpatialMap", size=size, offset=offset, dimension=dimension))
        words.expect("}")
        return tuple(tuple(level) for level in levels), tuple(clusters)

    def _given(self, draft: _Draft) -> tuple[DirectiveLevels, tuple[int, ...]]:
        """Return the dataflow for a layer that has none.

        It comes from a dataflow file, or from the previous layer, as in MAESTRO.
        """
        words = self.dataflows.get(draft.type or "", self.dataflows.get(""))
        if words is None:
            if self.layers and self.layers[-1].name not in self.bare:
                return self.layers[-1].levels, self.layers[-1].cluster_sizes
            self.bare[draft.name] = self.words.place
            return ((),), ()
        self.applied.setdefault(words.source, []).append(draft.name)
        outer, self.words = self.words, words
        words.position = 0
        try:
            words.expect("Dataflow")
            dataflow = self._dataflow(draft)
            if words.next:
                raise words.error(f"found '{words.next}' after the dataflow; expected the end of the file")
        finally:
            self.words = outer
        return dataflow

    def _finish(self, draft: _Draft) -> None:
        levels, clusters = draft.levels, draft.cluster_sizes
        if draft.type is None:
            raise self.words.error(f"layer {draft.name} has no Type")
        if not draft.dimensions:
            raise self.words.error(f"layer {draft.name} has no Dimensions")
        if levels is None:
            levels, clusters = self._given(draft)
        try:
            layer = DirectiveLayer.model_validate(
                {
                    "name": draft.name,
                    "type": draft.type,
                    "dimensions": draft.dimensions,
                    "strides": draft.strides,
                    "levels": levels,
                    "cluster_sizes": clusters,
                }
            )
        except ValidationError as error:
            raise self.words.error(f"layer {draft.name}: {plain_fault(error.errors()[0])}") from None
        self.layers.append(layer)


FileKind = Literal["mapping", "dataflow", "hardware"]


def kind_of(words: Words) -> FileKind:
    """Return the kind of a file.

    Mapping files open with Network or Constant; other first words of a layer are parts of one.
    """
    if words.next == "Dataflow":
        return "dataflow"
    parts = ("Network", "Constant", "Layer", "Type", "Dimensions")
    return "mapping" if words.next in parts else "hardware"
