"""`onnx`: the convolutions and matrix products of an ONNX graph; every other operator is listed with its reason.

Nothing is executed and no weight is read: shapes are enough.
"""

from __future__ import annotations

import importlib.resources
from importlib.metadata import version
from pathlib import Path

from onnx import NodeProto

from tilewright.errors import InputError
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.nests import Unsupported, refusing, unique_name
from tilewright_frontends.onnx.graph import Graph, load_graph, values_read
from tilewright_frontends.onnx.operators import BUILDERS
from tilewright_frontends.onnx.unmapped import explain, operator_of

FILES = {
    "resnet50": "light_resnet50.onnx",
    "vgg19": "light_vgg19.onnx",
    "inception_v1": "light_inception_v1.onnx",
    "inception_v2": "light_inception_v2.onnx",
    "densenet121": "light_densenet121.onnx",
    "squeezenet": "light_squeezenet.onnx",
    "shufflenet": "light_shufflenet.onnx",
    "alexnet": "light_bvlc_alexnet.onnx",
    "zfnet": "light_zfnet512.onnx",
}
"""Library name -> file among the backend tests of the onnx package."""


class OnnxFrontend:
    """Loads .onnx files and the networks that ship with the onnx package."""

    def __init__(self, options: OnnxOptions) -> None:
        self.batch = options.batch
        self.sizes = options.sizes

    def recognises(self, source: str) -> bool:
        return source.endswith(".onnx") or source in FILES

    def load(self, source: str) -> Workload:
        """Raises InputError: unreadable files, sizes that are missing or do not exist in the model."""
        if source not in FILES:
            path = Path(source)
            return self._workload(path, path.stem or source, f"{path.name}: ONNX graph")
        folder = importlib.resources.files("onnx") / "backend" / "test" / "data" / "light"
        with importlib.resources.as_file(folder / FILES[source]) as path:
            if not path.exists():
                raise InputError(f"onnx {version('onnx')}, installed here, does not carry {source}")
            return self._workload(path, source, f"{FILES[source]} of the onnx package's backend tests")

    def _workload(self, path: Path, name: str, source: str) -> Workload:
        with refusing(f"{path} is not a sound ONNX model"):
            graph = load_graph(path, name, self.batch, self.sizes)
            return _workload(graph, source)


def _workload(graph: Graph, source: str) -> Workload:
    layers: list[Layer] = []
    unmapped: list[Unmapped] = []
    origin: dict[str, tuple[str, ...]] = {}  # value -> layers it was made from, seen through unmapped operators
    taken: set[str] = set()
    for index, node in enumerate(graph.nodes):
        name = unique_name(node.name or f"{node.op_type}_{index}", taken)
        before = tuple(dict.fromkeys(layer for value in values_read(node) for layer in origin.get(value, ())))
        read = _read(graph, node, name)
        if isinstance(read, Unmapped):
            unmapped.append(read)
        else:
            layers.append(Layer(problem=read.problem, after=before))
            before = (name,)
        origin |= {value: before for value in node.output if value}
    return Workload(name=graph.name, source=source, layers=tuple(layers), unmapped=tuple(unmapped))


def _read(graph: Graph, node: NodeProto, name: str) -> Layer | Unmapped:
    operator = operator_of(node)
    with refusing(f"{graph.name}: {operator} '{name}' is malformed"):
        if operator not in BUILDERS:
            reason, operations = explain(graph, node)
            return Unmapped(name=name, operator=operator, reason=reason, operations=operations)
        try:
            return Layer(problem=BUILDERS[operator](graph, node, name))
        except Unsupported as error:
            return Unmapped(name=name, operator=operator, reason=str(error))
