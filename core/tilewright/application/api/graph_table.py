"""Table of a mapped network's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.reports.costs import COSTS
from tilewright.tables import Column, Table, numbers

if TYPE_CHECKING:
    import networkx as nx


def graph_table(graph: nx.DiGraph[str]) -> Table:
    """Return a table of a mapped network's layers in execution order, with energies and inputs."""
    column, *columns = COSTS.columns("graph")
    table = Table(
        "layer", Column("reads results of", wrapped=True), numbers("count", rank=2), numbers("MACs", rank=3),
        column, numbers("% of energy", decimals=1), *columns, title=graph.name,
    )  # fmt: skip
    whole = graph.graph["content"] == "network"
    total = sum(node.get("energy_pj", 0.0) for _, node in graph.nodes(data=True)) if whole else None
    for name, node in graph.nodes(data=True):
        energy, *others = COSTS.data("graph", node).values()
        share = 100 * energy / total if energy and total else None
        before = ", ".join(graph.predecessors(name)) or "-"
        table.add_row(name, before, node["count"], node["macs"] * node["count"], energy, share, *others)
    return table
