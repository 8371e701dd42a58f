"""A program's graph as a workload: tensor products in order, other operators listed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.plugin.edges import with_returned
from tilewright.schema.document import suggestion
from tilewright.schema.origin import Origin
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends.aliases import Aliases
from tilewright_frontends.nests import Shape, Unsupported, refusing, unique_name
from tilewright_frontends.products import Parts, connected
from tilewright_frontends.pt2 import moves
from tilewright_frontends.pt2.moves import tensors_in
from tilewright_frontends.pt2.operators import Node, builder_of, names_of
from tilewright_frontends.pt2.sizes import OpenSizeError, shape_of, symbols_of
from tilewright_frontends.pt2.vectors import vector_of
from tilewright_frontends.vectors import Vectors, uncounted
from tilewright_frontends.views import View, passed

MAX_NODES = 200_000
MOVES = frozenset(
    "view _unsafe_view reshape flatten unflatten squeeze unsqueeze transpose permute t expand expand_as repeat slice select split "
    "split_with_sizes chunk unbind cat stack pad constant_pad_nd clone contiguous alias detach copy to _to_copy type_as index "
    "index_select gather scatter embedding arange full zeros ones zeros_like ones_like full_like new_zeros new_ones empty lift_fresh_copy "
    "dropout getitem sym_size narrow roll flip movedim swapaxes as_strided tril triu upsample_nearest1d upsample_nearest2d pixel_shuffle lift unfold channel_shuffle "
    "sym_size_int repeat_interleave new_full scalar_tensor "
    "_assert_tensor_metadata _assert_scalar".split()
)
REDUCTIONS = frozenset(
    "sum mean amax amin max min any all prod var std argmax argmin norm linalg_vector_norm adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d _adaptive_avg_pool2d max_pool1d max_pool2d max_pool3d max_pool2d_with_indices avg_pool1d avg_pool2d avg_pool3d "
    "cumsum".split()
)


def read_workload(
    program: Mapping[str, Any], name: str, source: str, batch: int | None, sizes: Mapping[str, int]
) -> Workload:
    """Return the workload of a program.

    Args:
        program: the parsed JSON.
        name: name of the workload.
        source: name of the file, for messages.
        batch: value of the symbol that is the first dimension of the inputs.
        sizes: symbol -> value.

    Raises:
        InputError: a size is missing or unknown, nothing can be mapped, or an operator contradicts itself.
        LookupError, TypeError, ValueError: the program is malformed.
    """
    graph = program["graph_module"]["graph"]
    nodes = graph["nodes"]
    if len(nodes) > MAX_NODES:
        raise InputError(f"{source} has {len(nodes):,} operators; expected at most {MAX_NODES:,}")
    reader = _Reader(source, graph["tensor_values"], _sizes(program, source, batch, sizes))
    for index, node in enumerate(nodes):
        reader.read(index, node)
    if not reader.layers:
        operators = ", ".join(dict.fromkeys(unmapped.operator for unmapped in reader.unmapped))
        raise InputError(f"{source}: it has no tensor product; its operators are {operators or 'none'}")
    version = program.get("torch_version", "unknown")
    told = f"{source}: program of torch.export, torch {str(version)[:40]}"
    ends = tensors_in([output["as_tensor"] for output in graph.get("outputs", ()) if "as_tensor" in output])
    returned = {layer for value in ends for layer in reader.origins.get(value, ())}
    layers = with_returned(reader.layers, returned)
    unmapped, vectors = tuple(reader.unmapped), reader.vectors.every()
    return Workload(name=name, source=told, layers=layers, unmapped=unmapped, vectors=vectors)


def _sizes(program: Mapping[str, Any], source: str, batch: int | None, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return symbol -> value. Raises InputError if a symbol does not exist."""
    graph = program["graph_module"]["graph"]
    known: dict[str, None] = {}
    for value in graph["tensor_values"].values():
        for size in value["sizes"]:
            if "as_expr" in size:
                known |= dict.fromkeys(_symbols(str(size["as_expr"]["expr_str"])))
    for name in sizes:
        if name not in known:
            listed = f"it has: {', '.join(known)}" if known else "all its sizes are fixed"
            raise InputError(f"{source} has no symbolic size called '{name}'; {listed}{suggestion(name, known)}")
    chosen = dict(sizes)
    if batch is not None:
        first = {str(size["as_expr"]["expr_str"]) for size in _first_sizes(program) if "as_expr" in size}
        if not first & set(known):
            raise InputError(f"{source}: every input fixes its first dimension, so --batch has no effect; omit it")
        chosen |= dict.fromkeys(first & set(known), batch)
    return chosen


def _symbols(expression: str) -> tuple[str, ...]:
    try:
        return symbols_of(expression)
    except Unsupported:
        return ()  # reported if a layer has this size


def _first_sizes(program: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the first size of every input that is not a parameter."""
    module = program["graph_module"]
    for spec in module["signature"]["input_specs"]:
        argument = spec.get("user_input", {}).get("arg", {})
        value = module["graph"]["tensor_values"].get(argument.get("as_tensor", {}).get("name"))
        if value and value["sizes"]:
            yield value["sizes"][0]


RECURRENT = frozenset("lstm gru rnn_tanh rnn_relu".split())
CONTROL = "control flow: its subgraph is not read"


class _Reader:
    """Collector of layers and unmapped operators. `origins`: tensor -> layers it depends on."""

    def __init__(self, source: str, values: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self.source, self.values, self.sizes = source, values, sizes
        self.layers: list[Layer] = []
        self.unmapped: list[Unmapped] = []
        self.taken: set[str] = set()
        self.origins: dict[str, tuple[str, ...]] = {}
        self.views: dict[str, tuple[View, ...]] = {}
        self.aliases = Aliases[str]()
        self.vectors = Vectors()

    def read(self, index: int, raw: Mapping[str, Any]) -> None:
        """Read one node."""
        target = str(raw["target"]).removeprefix("torch.ops.")
        space, _, rest = target.partition(".")
        operator, _, overload = rest.partition(".")
        arguments = names_of(raw["inputs"])
        results = tuple(tensors_in([list(output.values())[0] for output in raw["outputs"]]))
        read = list(tensors_in(arguments.values()))
        path = _label(raw.get("metadata") or {})
        label = path or (results[0] if results else f"{operator or target}_{index}")
        before = self._before(read)
        builder = builder_of(operator) if space == "aten" else None
        reason = None
        place = Origin(node=path or None, output=results[0] if results else None, file=Path(self.source).name)
        if builder is not None:
            with refusing(f"{self.source}: {target} '{label}' is malformed"):
                node = Node(operator, overload, arguments, self._shapes(label, target, (*read, *results)), results)
                try:
                    before = self._add(builder(node, label), node, place)
                except Unsupported as error:
                    reason = str(error)
        if builder is None or reason is not None:
            said, operations = self._explained(operator or target, results, read)
            name = unique_name(label, self.taken)
            told = Unmapped(name=name, operator=target, reason=reason or said, operations=operations, origin=place)
            vector = vector_of(operator, arguments, self._known_shape, results, name, place)
            self.unmapped.append(told if reason or said == CONTROL else uncounted(told, vector))
            self.vectors.add(vector, read, results)
            known = {value: shape for value in (*read, *results) if (shape := self._known_shape(value)) is not None}
            self._pass(Node(operator if space == "aten" else "", overload, arguments, known, results), name, before)
        self.origins |= dict.fromkeys(results, before)

    def _add(self, parts: Parts, node: Node, place: Origin) -> tuple[str, ...]:
        """Add the layers of an operator, and what of it is none. Return the layers behind its results."""
        connection = connected(
            parts,
            moves.reads(node),
            self.views,
            node.shapes,
            self._before,
            self.taken,
            1,
            place,
            self.vectors,
            node.results,
        )
        self.layers += connection.layers
        self.unmapped += connection.unmapped
        self.views |= {result: connection.views[result] for result in node.results if result in connection.views}
        return (connection.last,)

    def _before(self, values: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layer for value in values for layer in self.origins.get(value, ())))

    def _pass(self, node: Node, name: str, before: tuple[str, ...]) -> None:
        """Note the views of the results of an operator that is no layer."""
        moved = moves.passed_on(node, name, self.views)
        first = next(iter(moves.reads(node)), None)
        if first is not None and node.operator in moves.ALIASING:
            for result in node.results:
                self.aliases.join(result, first)
        if first is not None and moves.changes(node):
            for alias in self.aliases.of(first):
                told = f"{node.operator} '{name}' changes it in place"
                changed = (*self.views.get(alias, ()), *(view for views in moved.values() for view in views))
                self.views[alias] = passed(view.without(told) for view in changed)
                self.origins[alias] = tuple(dict.fromkeys((*self.origins.get(alias, ()), *before)))
            for result in node.results:
                self.aliases.join(result, first)
        self.views |= moved

    def _known_shape(self, name: str) -> Shape | None:
        try:
            return shape_of(self.values[name], self.sizes) if name in self.values else None
        except (OpenSizeError, Unsupported):
            return None

    def _shapes(self, label: str, target: str, names: Sequence[str]) -> dict[str, Shape]:
        """Return the shapes of tensors. Raises InputError if a size is open."""
        try:
            return {name: shape_of(self.values[name], self.sizes) for name in names if name in self.values}
        except OpenSizeError as error:
            raise InputError(
                f"{self.source}: {target} '{label}' has the open size {error}",
                hint=f"give --size {error}=N, or --batch N",
            ) from None
        except Unsupported as error:
            raise InputError(f"{self.source}: {target} '{label}': {error}", hint="export it with fixed sizes") from None

    def _explained(self, operator: str, results: Sequence[str], read: Sequence[str]) -> tuple[str, int | None]:
        """Return the reason why an operator is not mapped, and its estimated scalar operations."""
        if operator in MOVES:
            return "moves or names data, computes nothing", 0
        if operator in REDUCTIONS:
            return "a reduction without weights", self._elements(read[:1])
        if operator in ("cond", "while_loop", "scan", "map_impl"):
            return CONTROL, None
        if operator in RECURRENT:
            return "a recurrent cell: the products of its gates are not mapped", None
        return "not a product of tensors over affine loops", self._elements(results)

    def _elements(self, names: Sequence[str]) -> int | None:
        try:
            counts = [math.prod(shape_of(self.values[name], self.sizes)) for name in names if name in self.values]
        except (OpenSizeError, Unsupported):
            return None
        return max(counts, default=None)


def _label(metadata: Mapping[str, Any]) -> str:
    """Return the path of the innermost module, as its author named it: `layer1.0.conv1`."""
    last = str(metadata.get("nn_module_stack", "")).rpartition(";")[2]
    parts = last.split(",")
    path = parts[1] if len(parts) > 1 else ""
    return path.replace("L['self']", "").replace("L__self__", "").strip("._")
