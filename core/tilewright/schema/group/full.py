"""Full form of a group mapping: all loops and tiles of each layer, and which of them are shared."""

from __future__ import annotations

from typing import Literal

from tilewright.schema.document import FileModel
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping.full import FullLoop, FullTensor, FullTile
from tilewright.values import Model


class FullGroupLoop(FullLoop):
    """Loop outside a layer of a group."""

    layers: tuple[str, ...]
    """Layers that run in sequence at every step. It is one loop, which has the same number in the lists of all of them.

    Its `tile` may differ between layers, which then take several rows at a step.
    """


class FullGroupTile(FullTile):
    """Tile that a memory keeps of a tensor of a group."""

    layers: tuple[str, ...]
    """Layers that use this tile. If it is larger for some of them (a halo), the memory keeps the largest."""


class FullGroupTensor(FullTensor):
    """Tensor of a layer of a group."""

    group_name: str
    """Name of the tensor in the group; layers with the same one use the same words."""
    offsets: tuple[int, ...]
    """Numbers to add to the group's coordinates to get the layer's."""
    existing: tuple[tuple[int, int], ...] | None
    """First and last word that exist along each of the group's coordinates. Others are padding. None: all exist.

    Words that exist, of a tensor that some layer makes, but that this layer does not make, are zeros.
    """


class FullGroupLayer(Model):
    """Layer of a group, with all loops outside it."""

    name: str
    """Name of the layer."""
    unit_operation: str
    """Work of one iteration."""
    dimensions: FrozenDict[str, int]
    """Dimension -> its size."""
    skipped: FrozenDict[str, int]
    """Dimension -> first iterations of its loops that execute nothing, since other layers start earlier.

    Iteration i of the loops is i - `skipped` of the layer. Those after the dimension's last one execute nothing, too.
    """
    tensors: tuple[FullGroupTensor, ...]
    """Tensors of the layer."""
    adds: tuple[str, ...]
    """The group's tensors that it adds to its result, word by word."""
    ragged: bool
    """Whether some step is shorter than the others of its loop."""
    loops: tuple[FullGroupLoop, ...]
    """Loops, outermost first; shared ones come first."""
    tiles: tuple[FullGroupTile, ...]
    """Tiles, outermost first, with the words that exist or are padding."""
    unicast: FrozenDict[str, tuple[str, ...]]
    """Cluster -> tensors that it sends to, or collects from, each sub-cluster separately."""


class FullGroup(FileModel):
    """Group mapping with all loops and tiles of its layers, for code generators.

    Loops of one step are left out. Layers run in order, at every step of the loops that they share.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> full = tw.full_group(group)
        >>> full.kind, full.layers[0].loops[0].layers
        ('full_group_mapping', ('einsum',))
    """

    schema_version: Literal[1] = 1
    kind: Literal["full_group_mapping"] = "full_group_mapping"
    name: str
    """Name of the group."""
    architecture: str
    """Name of the architecture."""
    layers: tuple[FullGroupLayer, ...]
    """Layers in order of execution."""
