"""Graph of a fused network: which results stay on chip for which readers, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.application.api.graph_table import graph_table
from tilewright.application.api.network_fusion import NetworkFusion
from tilewright.application.documents.searches import FusedLink
from tilewright.application.run.case_costs import home_of
from tilewright.application.run.sums import Sums
from tilewright.mapspace.room import shared_words
from tilewright.schema.architecture import Memory
from tilewright.schema.workload import Layer, costed_graph
from tilewright.tables import Column, Table, Tabular

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class FusedRead:
    """A result that a layer reads.

    Attributes:
        maker, reader: the layers.
        operand: the reader's tensor; None: the workload does not state it.
        reason: why the words go through the outermost memory; None: they stay on chip.
    """

    maker: str
    reader: str
    operand: str | None
    reason: str | None

    @property
    def stays(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, repr=False)
class FusionGraph(Tabular):
    """A fused network with its graph."""

    fusion: NetworkFusion

    def __repr__(self) -> str:
        return f"<FusionGraph of {self.fusion.gain.network}: {sum(read.stays for read in self.reads)} of {len(self.reads)} reads stay>"

    @cached_property
    def reads(self) -> tuple[FusedRead, ...]:
        """The results that layers read, in order of execution."""
        return tuple(read for layer in self.fusion.workload.layers for read in self._reads_of(layer))

    @property
    def graph(self) -> nx.DiGraph[str]:
        """Return the workload's graph with `energy_pj` and `cycles` of each layer.

        An edge has `stays`, and `reason` if some words that the layer reads do not stay. Any networkx writer accepts it.
        """
        graph = costed_graph(self.fusion.workload, dict(zip(self.fusion.layers, self.fusion.costs, strict=True)))
        for before, name in graph.edges:
            reasons = [read.reason for read in self.reads if (read.maker, read.reader) == (before, name)]
            told = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
            graph.edges[before, name].update({"stays": not told} | ({"reason": told} if told else {}))
        return graph

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map NET --fuse --graph --json`."""
        return self.fusion.data() | {"links": [FusedLink(**row).data() for row in self.rows()]}

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per result and operand that it is read in."""
        return [
            {
                "maker": read.maker,
                "reader": read.reader,
                "operand": read.operand,
                "stays": read.stays,
                "reason": read.reason,
            }
            for read in self.reads
        ]

    def tables(self) -> Sequence[Table | str]:
        title = f"results that stay in {self.fusion.gain.home}" if self.fusion.gain.home else "results"
        table = Table("result of", "read by", "stays", Column("because", wrapped=True), title=title)
        for read in self.reads:
            reader = read.reader if read.operand is None else f"{read.reader}.{read.operand}"
            table.add_row(read.maker, reader, "yes" if read.stays else "no", read.reason or "")
        return [*self.fusion.tables(), "", graph_table(self.graph), "", table]

    def _reads_of(self, layer: Layer) -> Iterator[FusedRead]:
        stated = {read.maker for reads in layer.reads.values() for read in reads}
        for maker in layer.after or ():
            if maker not in stated:
                yield FusedRead(maker, layer.name, None, "it is not stated which words are read")
        for operand, reads in layer.reads.items():
            cuts = {read.maker: read.cut for read in reads}
            for maker in cuts:
                reason = cuts[maker] or self._reason(layer, operand, list(cuts))
                yield FusedRead(maker, layer.name, operand, reason)

    def _reason(self, reader: Layer, operand: str, makers: Sequence[str]) -> str | None:
        """Return why an operand does not stay; None if it does. A sum of several results is complete with the last one."""
        maker = max(makers, key=self._order.__getitem__)
        if any(operand in kept.operands.get(reader.name, ()) for kept in self.fusion.residents if kept.maker == maker):
            return None
        if any(part.keeps(maker, reader.name) for part in self.fusion.parts):
            return None
        home = home_of(self.fusion.architecture)
        if maker in self.fusion.gain.may_stay and home is not None:
            made, read = self.fusion.workload.layer(maker).problem, reader.problem
            words = made.tensor_words(made.output) * shared_words(home, (made.output, read.tensor(operand)))
            if home.usable_words is not None and words > home.usable_words:
                return f"its {words:,.15g} words do not fit {home.name}, which has {home.usable_words:,}"
            return "it may stay, but the cheapest choice that was found sends it out"
        if home is None:
            return "no single on-chip memory may hold both operands and results"
        return next((text for name in makers for text in self._obstacles(name, home)), "it cannot stay whole there")

    def _obstacles(self, maker: str, home: Memory) -> Iterator[str]:
        """Yield what keeps a result from staying: what the workload states, or leaves out, and what the home may hold."""
        made = self.fusion.workload.layer(maker)
        if not home.may_hold(made.problem.output):
            yield f"{home.name} may not hold results"
        if made.returned:
            yield f"the network returns the result of {maker}"
        for layer in self.fusion.workload.layers[self._order[maker] + 1 :]:
            if layer.after is None:
                yield f"it is not stated whose results {layer.name} reads"
        for layer in self.fusion.workload.layers:
            reads = [(operand, read) for operand, every in layer.reads.items() for read in every if read.maker == maker]
            if maker in (layer.after or ()) and not reads:
                yield f"it is not stated which words {layer.name} reads"
            for operand, read in reads:
                whole = read.within(made.problem, layer.problem, operand)
                if not home.may_hold(layer.problem.tensor(operand)):
                    yield f"{home.name} may not hold {layer.name}.{operand} ({layer.problem.tensor(operand).role})"
                if read.cut is not None:
                    yield f"{layer.name}.{operand} reads {maker}: {read.cut}"
                elif self._sums.operands[layer.name, operand].kind != "other":
                    if maker in self._sums.unlike:
                        yield f"layers see sums of {maker} in several ways, of other words or after other operators"
                elif not whole.fills(layer.problem, operand):
                    yield f"{maker} makes only a part of {layer.name}.{operand}"
                elif all(other.cut is None for other in layer.reads[operand]):
                    yield f"{layer.name}.{operand} joins {maker} with results of other words"
            if reads and layer.count != made.count:
                yield f"{layer.name} and {maker} have different counts, {layer.count} and {made.count}"

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.fusion.workload)

    @cached_property
    def _order(self) -> dict[str, int]:
        return {layer.name: number for number, layer in enumerate(self.fusion.workload.layers)}
