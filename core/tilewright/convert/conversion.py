"""Conversion: files of one notation into those of another, through the core schemas.

Notations are nodes of a graph whose hub is the core schemas: an adapter parses into it and renders out of it. An adapter
may also declare links, notations into which it translates its own files directly.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.convert.dropped import Loss, simplified
from tilewright.errors import InputError, NotConformableError, PluginError, TilewrightError, UnknownNameError
from tilewright.notations.directives.tiles import tiled
from tilewright.plugin.adapter import Adapter, InputSet, Translator
from tilewright.plugin.registry import Registry
from tilewright.plugin.specs import AdapterSpec

if TYPE_CHECKING:
    import networkx as nx

CORE = "core schemas"
"""The hub of the graph."""


@dataclass(frozen=True)
class Conversion:
    """What came out.

    Attributes:
        files: file name -> text, as the other tool expects them.
        route: the notations on the way, the hub among them.
        adapters: `distribution/name` of the adapters used, in order.
        warnings: what the readers could not keep.
        dropped: what the other notation cannot hold and was left out.
    """

    files: Mapping[str, str]
    route: tuple[str, ...]
    adapters: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    dropped: tuple[Loss, ...] = ()


def notations(registry: Registry) -> nx.DiGraph[str]:
    """Node: the hub, or the long name of an adapter; edge: what turns one into the other, its long name as `adapter`."""
    import networkx as nx  # most commands need no graph

    graph: nx.DiGraph[str] = nx.DiGraph()
    for registration in registry.of_kind(AdapterSpec):
        spec, name = registration.spec, registration.long_name
        assert isinstance(spec, AdapterSpec)
        graph.add_edge(name, CORE, adapter=name)
        graph.add_edge(CORE, name, adapter=name)
        for other in spec.links:
            with suppress(UnknownNameError):  # a link to what is not installed leads nowhere
                graph.add_edge(name, registry.find(AdapterSpec, other).long_name, adapter=name)
    return graph


def convert(files: Sequence[Path], source: str, target: str, registry: Registry, *, lossy: bool = False) -> Conversion:
    """Read files of one notation and write them in another, by the shortest way.

    Args:
        source, target: names of adapters.
        lossy: leave out what the target cannot hold, as far as that can be left out, and list it.

    Raises:
        UnknownPluginError, AmbiguousPluginError: no single adapter has that name.
        InputError: the files cannot be read, there is nothing in them, or both notations are the same.
        NotConformableError: the target cannot hold what they say; every reason is listed.
        PluginError: an adapter crashed or cannot be built.
    """
    import networkx as nx

    first, last = (registry.find(AdapterSpec, name).long_name for name in (source, target))
    if first == last:
        raise InputError(f"--from and --to are both {source}", hint="name two notations")
    graph = notations(registry)
    way = nx.shortest_path(graph, first, last)
    used = tuple(str(graph.edges[edge]["adapter"]) for edge in pairwise(way))
    inputs, found, warnings, dropped = InputSet(), dict[str, str](), list[str](), tuple[Loss, ...]()
    with tempfile.TemporaryDirectory() as folder:
        for number, ((here, there), name) in enumerate(zip(pairwise(way), used, strict=True)):
            adapter = registry.make(AdapterSpec, name)
            with _blaming(name):
                if there == CORE:
                    inputs = adapter.parse(files)
                    warnings += inputs.warnings
                    continue
                if here == CORE:
                    inputs = _known(adapter, inputs)
                    warnings += [warning for warning in inputs.warnings if warning not in warnings]
                found, dropped = (
                    _render(adapter, name, inputs, lossy)
                    if here == CORE
                    else (_translate(adapter, name, files, there), dropped)
                )
            if there != last:
                files = write_files(Path(folder) / str(number), found)
    names = tuple(node if node == CORE else registry.find(AdapterSpec, node).spec.name for node in way)
    return Conversion(found, names, tuple(dict.fromkeys(used)), tuple(warnings), dropped)


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write named texts below a folder, made if need be. Raises InputError: it cannot be written."""
    paths = []
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            paths.append(path)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error}") from None
    return paths


def _known(adapter: Adapter, inputs: InputSet) -> InputSet:
    """Directives as tiles for an adapter that knows none. Raises NotConformableError: they are no tiles."""
    if inputs.directives is None or adapter.expressible(replace(inputs, warnings=())):
        return inputs
    tiles = tiled(inputs.directives)
    return InputSet(tiles.problem, tiles.architecture, tiles.mapping, warnings=tiles.warnings)


def _render(adapter: Adapter, name: str, inputs: InputSet, lossy: bool) -> tuple[dict[str, str], tuple[Loss, ...]]:
    inputs = replace(inputs, warnings=())
    verdict, losses = adapter.expressible(inputs), tuple[Loss, ...]()
    if not verdict and lossy:
        inputs, losses = simplified(inputs, adapter.expressible)
        verdict = adapter.expressible(inputs)
    if not verdict:
        raise NotConformableError(f"adapter {name}", verdict.reasons)
    return dict(adapter.render(inputs)), losses


def _translate(adapter: Adapter, name: str, files: Sequence[Path], notation: str) -> dict[str, str]:
    if not isinstance(adapter, Translator):
        raise PluginError(f"adapter {name} declares a link to {notation}, but has no method 'translate'")
    return dict(adapter.translate(files, notation))


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    """A stranger's adapter may raise anything; what is not meant for the user becomes a PluginError."""
    try:
        yield
    except TilewrightError:
        raise
    except Exception as error:
        raise PluginError(f"adapter '{name}' failed: {type(error).__name__}: {error}") from error
