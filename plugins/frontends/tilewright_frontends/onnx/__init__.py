"""`onnx`: convolutions and matrix products of an ONNX graph.

Every other operator is listed with its reason. Shapes are sufficient: weights are read for densities alone,
and only operators that compute shapes are evaluated. A child process with limits of time and
memory reads the file, because it runs onnx's C++ code.
"""

from __future__ import annotations

import functools
import importlib.resources
import operator
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from onnx import NodeProto

from tilewright.errors import InputError
from tilewright.files import is_file
from tilewright.plugin.edges import with_returned
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends import OnnxOptions
from tilewright_frontends.limits import read_limited
from tilewright_frontends.nests import Unsupported, refusing, unique_name
from tilewright_frontends.onnx import edges
from tilewright_frontends.onnx.densities import with_densities
from tilewright_frontends.onnx.graph import Graph, load_graph
from tilewright_frontends.onnx.node import operator_of, values_read
from tilewright_frontends.onnx.operators import builder_of
from tilewright_frontends.onnx.unmapped import explain
from tilewright_frontends.onnx.vectors import vector_of
from tilewright_frontends.onnx.widths import with_widths
from tilewright_frontends.products import Product, beyond, listed, with_inputs
from tilewright_frontends.vectors import Vectors, uncounted
from tilewright_frontends.views import MAX_MAKERS, View

_NUMBERED = re.compile(r"[A-Za-z]*_?[0-9]*")
"""Names of operators that a program numbered, such as `n4` or `Conv_12`; the names of their weights tell more."""
CONSTANTS = ("Constant", "ConstantOfShape")
"""Operators whose results do not depend on inputs."""
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
_HUNDRED = 100 * 2**20
SECONDS = 5
"""CPU time for reading a file, and again for every 100 MiB of it."""
MEMORY = 768 * 2**20
"""Memory for reading a file of up to 100 MiB, in bytes.

Larger files get three times their size in addition.
"""


class OnnxFrontend:
    """A frontend that reads .onnx files and the networks of the onnx package."""

    def __init__(self, options: OnnxOptions) -> None:
        self.weights = options.density is not None
        self.batch = options.batch
        self.sizes = options.sizes
        self.branches = options.branches

    def recognises(self, source: str) -> bool:
        return source.endswith(".onnx") or source in FILES

    def load(self, source: str) -> Workload:
        """Return the workload of a file or library network.

        Raises:
            InputError: the file is unreadable, or a size is missing or unknown.
        """
        if source not in FILES:
            return self._read_file(Path(source))
        folder = importlib.resources.files("onnx") / "backend" / "test" / "data" / "light"
        with importlib.resources.as_file(folder / FILES[source]) as path:
            if not path.exists():
                raise InputError(f"the installed onnx {version('onnx')} lacks {source}")
            told = f"{FILES[source]} of the onnx package's backend tests"
            return read_file(path, source, told, self.batch, self.sizes, self.weights, self.branches)

    def _read_file(self, path: Path) -> Workload:
        hundreds = (os.path.getsize(path) if is_file(path) else 0) // _HUNDRED
        seconds, memory = SECONDS * (1 + hundreds), MEMORY + 3 * _HUNDRED * hundreds
        sizes = (self.batch, self.sizes, self.weights, self.branches)
        words = (path.stem or str(path), f"{path.name}: ONNX graph", *sizes)
        return read_limited(read_file, path, *words, seconds=seconds, memory=memory)


def read_file(
    path: Path,
    name: str,
    source: str,
    batch: int | None,
    sizes: Mapping[str, int],
    weights: bool = False,
    branches: Mapping[str, str] = FrozenDict(),
) -> Workload:
    """Read a model as a workload, with the densities of its weights if `weights`. Raises InputError."""
    with refusing(f"{path} is not a valid ONNX model"):
        return _workload(load_graph(path, name, batch, sizes, weights, branches), source, path.name)


def _workload(graph: Graph, source: str, file: str) -> Workload:
    layers: list[Layer] = []
    products_of = list[Product]()  # of each layer, with the values of the file that it reads
    unmapped: list[Unmapped] = []
    vectors = Vectors()
    origin: dict[str, int] = {}  # value -> bit set of the layers it depends on, through unmapped operators
    views: dict[str, tuple[View, ...]] = {}
    taken: set[str] = set()
    ends, returned, copied = frozenset(graph.ends), set[str](), 0  # `copied`: bit set of layers
    named = frozenset(node.name for node in graph.nodes)
    written = Counter(value for node in graph.nodes for value in node.output)
    computed = frozenset(value for node in graph.nodes if node.op_type not in CONSTANTS for value in node.output)
    for index, (node, times) in enumerate(zip(graph.nodes, graph.times, strict=True)):
        name = unique_name(node.name or "_".join([node.op_type, *node.output[:1]]) or f"operator_{index}", taken, named)
        place = Origin(node=node.name or None, output=next(filter(None, node.output), None), file=file)
        before = functools.reduce(operator.or_, (origin.get(value, 0) for value in values_read(node)), 0)
        few = before.bit_count() <= MAX_MAKERS
        inner: tuple[View, ...] = ()  # of the result of the part before
        parts, named_so = read_operator(graph, node, name), False
        products = {part.values[-1] for part in parts if isinstance(part, Product)}
        results = [f"{name}/inner", *filter(None, node.output)]
        copied |= before if products and {*node.output} & ends - products else 0  # such as keys for a cache
        for number, part in enumerate(parts):
            content = part if isinstance(part, Unmapped) else part.problem
            values = (
                [results[0], *(part.values[:-1] if isinstance(part, Product) else ())]
                if number
                else [*values_read(node)]
            )
            label = name if content.name == name and not named_so else unique_name(content.name, taken, named)
            named_so |= label == name
            if isinstance(part, Unmapped):
                told, vector = listed(part, label, times, place)
                if builder_of(node) is None:
                    vector = vector_of(graph, node, label, times, graph.varying, place)
                    told = uncounted(told, vector)
                unmapped.append(told)
                vectors.add(vector, values, results)
                if number:
                    inner = beyond(inner, label, vector)
                elif few:
                    views |= edges.results(graph, node, label, views, part.reason, times)
            else:
                problem = with_densities(graph, part, with_widths(graph, part)).model_copy(update={"name": label})
                if any(tensor.bits for tensor in problem.tensors):
                    problem = problem.model_copy(update={"source": operator_of(node)})
                known = (views | {part.values[0]: inner} if inner else views) if few else {}
                if number:
                    before = functools.reduce(operator.or_, (origin.get(value, 0) for value in part.values), before)
                names = [layers[maker].name for maker in _ones(before)]
                made = part.layer(problem, known, names, times, alone=few and len(products) == 1)
                weights = None if _NUMBERED.fullmatch(node.name) is None else _weights(problem, part.values, computed)
                layers.append(made.model_copy(update={"origin": place.model_copy(update={"weights": weights})}))
                fixed = {value for value in node.input if written[value] <= 1 and times == 1}
                products_of.append(
                    replace(part, values=tuple(value if value in fixed else "" for value in part.values))
                )
                vectors.matrix(label, values, results)
                before = 1 << len(layers) - 1
                inner = part.result(problem, graph.shapes.get(part.values[-1]), times)
                views |= {value: inner for value in node.output if value == part.values[-1]}
        origin |= {value: before for value in node.output if value}
    for value in ends:
        makers = [view.maker for view in views.get(value, ())] or [layers[n].name for n in _ones(origin.get(value, 0))]
        returned.update(makers)
    returned.update(layers[number].name for number in _ones(copied))
    layers = with_inputs(layers, products_of)
    return Workload(
        name=graph.name,
        source=source,
        layers=with_returned(layers, returned),
        unmapped=tuple(unmapped),
        vectors=vectors.every(),
    )


def _weights(problem: Problem, values: Sequence[str], computed: Collection[str]) -> str | None:
    """Return the name of the first operand that is a weight and is not computed; None if there is none."""
    pairs = zip(problem.tensors, values, strict=False)
    return next((value for tensor, value in pairs if tensor.role == "weight" and value and value not in computed), None)


def _ones(number: int) -> Iterator[int]:
    """Return the positions of the set bits."""
    return (index for index, bit in enumerate(reversed(f"{number:b}")) if bit == "1")


def read_operator(graph: Graph, node: NodeProto, name: str) -> list[Product | Unmapped]:
    """Return the products of an operator, each reading the previous one's result, or why it has none. Raises InputError."""
    kind, builder = operator_of(node), builder_of(node)
    with refusing(f"{graph.name}: {kind} '{name}' is malformed"):
        if builder is None:
            reason, operations = explain(graph, node)
            return [Unmapped(name=name, operator=kind, reason=reason, operations=operations)]
        try:
            return builder(graph, node, name)
        except Unsupported as error:
            return [Unmapped(name=name, operator=kind, reason=str(error))]
