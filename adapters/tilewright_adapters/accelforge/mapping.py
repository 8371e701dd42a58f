"""Conversion of AccelForge's mapping of one einsum, a list of nodes from the outermost in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Mapping as MappingOf

from tilewright.errors import InputError
from tilewright.schema.document import Document, suggestion, validate
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.values import Model
from tilewright_adapters.accelforge.files import ComputesData, SpreadData, StorageData, TemporalData
from tilewright_adapters.accelforge.hardware import Hardware, tensors_of
from tilewright_adapters.loopblocks import LoopBlock, mapping_of

_NODES: dict[str, type[Model]] = {
    "Storage": StorageData,
    "Temporal": TemporalData,
    "Spatial": SpreadData,
    "Compute": ComputesData,
}
_SEVERAL = ("Pipeline", "Split")


def read_mapping(
    document: Document, problem: Problem, hardware: Hardware, others: Collection[str], warnings: list[str]
) -> Mapping:
    """Convert a list of nodes to a mapping. Raises InputError.

    Args:
        document: the list of nodes.
        problem: the einsum.
        hardware: the architecture and its names.
        others: tensors of other einsums, which are skipped.
        warnings: list to which warnings are added.
    """
    walk = Walk(problem.dimensions, problem.tensors, hardware, others)
    for node in _flat(document, problem.name, warnings):
        walk.node(node)
    return mapping_of(problem, walk.finished(document))


def _flat(nodes: Document, einsum: str, warnings: list[str]) -> Iterator[Document]:
    """Yield the nodes in order; of einsums in sequence, those of one if no loop encloses them."""
    if not isinstance(nodes.data, list):
        raise InputError("a mapping has a list of nodes", location=nodes.locate(()))
    for index in range(len(nodes.data)):
        node = nodes.at(index)
        kind = node.tags.get((), "")
        if kind in ("!Nested", "!Mapping") and isinstance(node.data, dict) and "nodes" in node.data:
            yield from _flat(node.at("nodes"), einsum, warnings)
        elif kind == "!Sequential" and isinstance(node.data, dict) and "nodes" in node.data:
            around = [nodes.at(place).tags.get((), "") for place in range(index)]
            if "!Temporal" in around or "!Spatial" in around:
                raise InputError(
                    "loops around several einsums fuse them, so that one einsum alone has no mapping",
                    location=node.locate(()),
                    hint="read the whole group: give the files without /EINSUM",
                )
            yield from _branch(node.at("nodes"), einsum, warnings)
        else:
            yield node


def _branch(nodes: Document, einsum: str, warnings: list[str]) -> Iterator[Document]:
    """Yield the nodes of the branch that computes this einsum. Raises InputError if there is none."""
    branches = [nodes.at(index) for index in range(len(nodes.data) if isinstance(nodes.data, list) else 0)]
    computed = [_computed(branch) for branch in branches]
    matches = [branch for branch, names in zip(branches, computed, strict=True) if einsum in names]
    if len(matches) != 1:
        known = ", ".join(sorted({name for names in computed for name in names})) or "none"
        raise InputError(
            f"{len(matches)} branches compute {einsum}; expected one",
            location=nodes.locate(()),
            hint=f"branches exist for {known}",
        )
    left_out = sorted({name for names in computed for name in names} - {einsum})
    warnings.append(f"{nodes.locate(())}: einsums in sequence: {', '.join(left_out)} ignored")
    branch = matches[0]
    inside = isinstance(branch.data, dict) and "nodes" in branch.data
    yield from _flat(branch.at("nodes"), einsum, warnings) if inside else iter([branch])


def _computed(node: Document) -> set[str]:
    """Return the einsums that a branch computes."""
    if node.tags.get((), "") == "!Compute" and isinstance(node.data, dict):
        return {str(node.data.get("einsum"))}
    inside = node.data.get("nodes") if isinstance(node.data, dict) else None
    if not isinstance(inside, list):
        return set()
    return {name for index in range(len(inside)) for name in _computed(node.at("nodes", index))}


class Walk:
    """Nodes from the outermost in, as blocks.

    Args:
        tile: dimension -> size outside the first node.
        tensors: the tensors that nodes may keep.
        hardware: the architecture and its names.
        others: tensors of other einsums, which are skipped.
        nested: memories need not be in the order of the architecture, because a group's tensors
            have an order each.
    """

    def __init__(
        self,
        tile: MappingOf[str, int],
        tensors: Sequence[Tensor],
        hardware: Hardware,
        others: Collection[str],
        nested: bool = False,
    ) -> None:
        self.tensors, self.hardware, self.others, self.nested = tensors, hardware, others, nested
        self.clusters = [cluster.name for cluster in hardware.architecture.clusters]
        self.tile = dict(tile)
        self.blocks: list[LoopBlock] = []
        self.loops: list[tuple[str, int]] = []
        self.unrolled: list[tuple[int, str, int, int]] = []
        self.at = 0
        self.computes = False
        self.stored = set[str]()
        self.sliding: tuple[str, list[Tensor]] = ("", [])

    def node(self, node: Document) -> None:
        kind = node.tags.get((), "").removeprefix("!")
        place = node.locate(())
        if kind in _SEVERAL:
            raise InputError(f"!{kind}: several einsums at once; only one is supported", location=place)
        if kind not in _NODES:
            hint = f"supported: {', '.join('!' + tag for tag in (*_NODES, 'Nested'))}{suggestion(kind, _NODES)}"
            raise InputError(f"node !{kind} is not supported in a mapping", location=place, hint=hint)
        if self.computes:
            raise InputError("nodes follow !Compute; expected it to be last", location=place)
        data = validate(_NODES[kind], node)
        try:
            if type(data) is not TemporalData:
                self.settle(lambda _: True)
            if not isinstance(data, SpreadData):
                self.unroll()
            if isinstance(data, StorageData):
                self.storage(data)
            elif isinstance(data, TemporalData):
                self.loop(data)
            else:
                self.computes = True
        except ValueError as error:
            raise InputError(str(error), location=place) from None

    def storage(self, data: StorageData) -> None:
        if data.binding:
            raise ValueError(f"{data.component}: a binding of tensors to units is not supported")
        known = self.hardware.cluster_of
        if data.component not in known:
            raise ValueError(f"unknown memory {data.component}{suggestion(data.component, known)}")
        tensors = [name for name in data.tensors if name not in self.others]
        if data.tensors and not tensors:
            return
        known_tensors = [tensor.name for tensor in self.tensors]
        for name in tensors:
            if name not in known_tensors:
                raise ValueError(f"the einsum has no tensor {name}{suggestion(name, known_tensors)}")
        cluster = known[data.component]
        if self.clusters.index(cluster) < self.at and not self.nested:
            raise ValueError(f"{data.component} is inside {self.inside}; expected outer memories first")
        inner = () if self.nested else [name for name in tensors if name in self.stored]
        sliding = [tensor for tensor in self.tensors if tensor.name in inner and _windows(tensor)]
        self.stored.update(tensors)
        if not sliding or len(sliding) < len(tensors):
            self.keep(cluster, [name for name in tensors if name not in [tensor.name for tensor in sliding]])
        self.sliding = (cluster, sliding)

    def settle(self, ends: Callable[[Tensor], bool]) -> None:
        """Keep the tensors with windows whose walk inwards ends here.

        AccelForge measures their tile below the loops that index them alone, and below the first loop of a window.
        The loop of a window fetches overlapping words once, as here. The outermost memory keeps the whole tensor.
        """
        cluster, tensors = self.sliding
        ended = [tensor.name for tensor in tensors if ends(tensor)]
        if ended:
            self.keep(cluster, ended)
        self.sliding = (cluster, [tensor for tensor in tensors if tensor.name not in ended])

    def keep(self, cluster: str, tensors: list[str]) -> None:
        """Keep tensors inside the loops so far."""
        last = self.blocks[-1] if self.blocks else None
        if (
            last is not None
            and last.target == cluster
            and last.keep is not None
            and not self.loops
            and not last.unrolled
        ):
            last.keep += tensors
        else:
            self.blocks.append(LoopBlock(cluster, tensors, self.loops))
            self.loops = []
        self.at = self.clusters.index(cluster)

    def loop(self, data: TemporalData) -> None:
        name, before = data.rank_variable, self.tile.get(data.rank_variable)
        if data.initial_tile_shape is not None:
            raise ValueError(
                f"initial_tile_shape of {name}: a first tile of another size keeps a halo, which is not supported [halo]"
            )
        if before is None:
            raise ValueError(f"the einsum has no variable {name}{suggestion(name, self.tile)}")
        if data.tile_shape > before:
            raise ValueError(f"tile_shape {data.tile_shape} of {name} exceeds the outer tile, {before}")
        self.tile[name] = data.tile_shape
        if not isinstance(data, SpreadData):
            if data.tile_shape < before:
                self.settle(lambda tensor: name not in tensor.dimensions)
            self.loops.append((name, data.tile_shape))
            if data.tile_shape < before:
                self.settle(lambda tensor: name in _windows(tensor))
            return
        where = (data.component, data.name)
        if where not in self.hardware.unrolled_at:
            known = ", ".join(" ".join(pair) for pair in self.hardware.unrolled_at) or "none"
            raise ValueError(f"{data.component} has no fanout {data.name}; known: {known}")
        trips, cluster = -(-before // data.tile_shape), self.hardware.unrolled_at[where]
        if cluster is None and trips > 1:
            raise ValueError(
                f"{name} is unrolled {trips} times over {data.name} of {data.component}, whose fanout is 1"
            )
        if cluster is not None:
            self.unrolled.append((self.clusters.index(cluster), name, before, data.tile_shape))

    def unroll(self) -> None:
        """Add adjacent spatial unrollings to the blocks, outermost cluster first."""
        given, self.unrolled = self.unrolled, []
        for index, name, tile in _outermost_first(given):
            cluster = self.clusters[index]
            if index < self.at and not self.nested:
                raise ValueError(
                    f"{name} is unrolled below {cluster}, inside {self.inside}; expected outer clusters first"
                )
            if not self.blocks or self.blocks[-1].target != cluster or self.loops:
                self.blocks.append(LoopBlock(cluster, loops=self.loops))
                self.loops = []
            self.blocks[-1].unrolled[name] = tile
            self.blocks[-1].unicast = tensors_of(self.hardware.shared, cluster, self.tensors)
            self.at = index
        if given:
            self.at = max(index for index, *_ in given) + 1

    @property
    def inside(self) -> str:
        return self.clusters[self.at] if self.at < len(self.clusters) else "the last spatial unrolling"

    def finished(self, document: Document, shared: bool = False) -> list[LoopBlock]:
        """Return the blocks. Raises InputError.

        Args:
            document: the list of nodes.
            shared: branches follow, instead of `!Compute`.
        """
        place = document.locate(())
        try:
            self.unroll()
        except ValueError as error:
            raise InputError(str(error), location=place) from None
        if not self.computes and not shared:
            raise InputError("there is no !Compute; expected it as the last node", location=place)
        if self.loops:
            if self.at >= len(self.clusters) and not shared:
                raise InputError("temporal loops between the last spatial unrolling and !Compute", location=place)
            self.blocks.append(LoopBlock(self.clusters[-1], loops=self.loops))
        if not self.blocks and not self.nested:
            raise InputError("the mapping keeps no tensors and has no loops", location=place)
        return self.blocks


def _windows(tensor: Tensor) -> set[str]:
    """Return the dimensions that share a coordinate of a tensor."""
    return {name for rank in tensor.projection if len(rank.terms) > 1 for name in rank.terms}


def _outermost_first(given: list[tuple[int, str, int, int]]) -> Iterator[tuple[int, str, int]]:
    """Yield cluster, dimension and tile, outermost first.

    `given` holds cluster, dimension, tile outside and tile inside of each unrolling.

    Raises:
        ValueError: tiles of a dimension whose inner cluster comes first do not divide.
    """
    tiles: dict[str, int] = {}
    for _, name, before, _ in given:
        tiles.setdefault(name, before)
    swapped = {
        name
        for at, name, *_ in given
        if [a for a, n, *_ in given if n == name] != sorted(a for a, n, *_ in given if n == name)
    }
    for index, name, before, tile in sorted(given, key=lambda row: row[0]):
        if name in swapped:
            if before % tile:
                raise ValueError(
                    f"unrollings of {name} list an inner cluster first; expected tiles that divide, or outer clusters first"
                )
            tiles[name] //= before // tile
            tile = tiles[name]
        yield index, name, tile
