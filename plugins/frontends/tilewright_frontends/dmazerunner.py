"""`dmazerunner`: networks of dMazeRunner (JSON), which list convolutions, products of matrices and depthwise convolutions.

Inputs contain their padding. `instances` is how often the network repeats a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tilewright.errors import InputError
from tilewright.files import read_text
from tilewright.schema.document import Document, FileModel, parse_document, validate
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Workload
from tilewright.values import Model
from tilewright_frontends import nests
from tilewright_frontends.nests import Extent, Unsupported, unique_name
from tilewright_frontends.sources import text_of

SUFFIX, SIGN = ".json", '"size_tensor_A"'


class ListedLayer(Model):
    """Name and repetitions of a layer. Its comment and `names_repeated_layers` are not used."""

    name: str
    instances: Annotated[int, Field(ge=1, strict=True)] = 1
    names_repeated_layers: tuple[str, ...] = ()
    comment: str | None = None


class Convolution(ListedLayer):
    """A convolution: sizes of the input (batch, channels, two axes) and of the filters (outputs, channels, two axes)."""

    size_tensor_A: tuple[Extent, Extent, Extent, Extent]
    size_tensor_B: tuple[Extent, Extent, Extent, Extent]
    strides: tuple[Extent, Extent]

    def problem(self, name: str, depthwise: bool) -> Problem:
        """Return the problem. A depthwise convolution has a filter for each channel. Raises ValueError, Unsupported."""
        (batch, channels, *inputs), (filters, inward, *window) = self.size_tensor_A, self.size_tensor_B
        nests.equal(channels, inward, "the channels of the input and of the filters differ")
        if depthwise:
            nests.equal(filters, 1, "a depthwise convolution has one filter for each channel")
        positions = nests.positions_within(inputs, window, self.strides)
        groups, outward, inward = (channels, 1, 1) if depthwise else (1, filters, channels)
        return nests.convolution(name, batch, groups, (outward, inward), positions, tuple(window), self.strides, (1, 1))


class Product(ListedLayer):
    """A product of matrices: M x K, and K x N."""

    size_tensor_A: tuple[Extent, Extent]
    size_tensor_B: tuple[Extent, Extent]


class NetworkFile(FileModel):
    """A network: lists of layers by operation."""

    CONV: tuple[Convolution, ...] = ()
    GEMM: tuple[Product, ...] = ()
    DW_CONV: tuple[Convolution, ...] = ()


class DMazeRunnerFrontend:
    """A frontend that reads networks of dMazeRunner."""

    def recognises(self, source: str) -> bool:
        """Return whether the file names the sizes of a layer's operands as dMazeRunner does."""
        text = text_of(source, SUFFIX)
        return text is not None and SIGN in text

    def load(self, source: str) -> Workload:
        """Return the layers in dMazeRunner's order: convolutions, products, depthwise convolutions. Raises InputError."""
        document = parse_document(read_text(source), source=source)
        layers = tuple(_layers(validate(NetworkFile, document), document))
        if not layers:
            raise InputError("the network has no layer", location=document.locate(()))
        name = unique_name(Path(source).stem, set())
        return Workload(name=name, source=f"{Path(source).name}: network of dMazeRunner", layers=layers)


def _layers(network: NetworkFile, document: Document) -> Iterator[Layer]:
    listed: dict[str, Sequence[Convolution | Product]] = {
        "CONV": network.CONV,
        "GEMM": network.GEMM,
        "DW_CONV": network.DW_CONV,
    }
    taken, names = set[str](), {layer.name for layers in listed.values() for layer in layers}
    for kind, layers in listed.items():
        for number, layer in enumerate(layers):
            place = document.locate((kind, number))
            name = unique_name(layer.name, taken, names)
            try:
                if isinstance(layer, Convolution):
                    problem = layer.problem(name, depthwise=kind == "DW_CONV")
                else:
                    problem = nests.gemm(name, layer.size_tensor_A, layer.size_tensor_B)
            except (Unsupported, ValueError) as error:
                raise InputError(f"{layer.name}: {error}", location=place) from None
            yield Layer(problem=problem, count=layer.instances, origin=Origin.at(place, layer.name))
