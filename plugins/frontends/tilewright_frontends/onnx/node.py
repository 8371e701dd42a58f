"""Operators of a graph: names, attributes, subgraphs and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import GraphProto, NodeProto, helper


def is_standard(node: NodeProto) -> bool:
    """Return whether the operator is of ONNX's own domain."""
    return node.domain in ("", "ai.onnx")


def operator_of(node: NodeProto) -> str:
    """Return the operator's name, with its domain unless that is ONNX's: `com.microsoft.FusedConv`."""
    return node.op_type if is_standard(node) else f"{node.domain}.{node.op_type}"


def attributes_of(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def label_of(node: NodeProto) -> str:
    """Return the name by which a user names an operator: its own, or that of its first result."""
    return node.name or next(filter(None, node.output), "")


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the subgraphs of an operator, such as the branches of an `If`."""
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def operators_within(node: NodeProto) -> list[str]:
    """Return the names of all operators in the subgraphs of a node."""
    operators, waiting = list[str](), list(graphs_of(node))
    while waiting:
        for inner in waiting.pop().node:
            operators.append(operator_of(inner))
            waiting += graphs_of(inner)
    return operators


def values_read(node: NodeProto) -> Iterator[str]:
    """Yield the inputs of a node, including those that its subgraphs take from outside."""
    yield from (value for value in node.input if value)
    for graph in graphs_of(node):
        for inner in graph.node:
            yield from values_read(inner)


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """Return the operators so that each follows those that it reads from.

    Some programs write an operator before a value that its subgraphs read. Sorted operators keep
    their order.
    """
    makers = {value: place for place, node in enumerate(nodes) for value in node.output if value}
    needed = [[makers[value] for value in values_read(node) if value in makers] for node in nodes]
    if all(maker < place for place, before in enumerate(needed) for maker in before):
        return nodes
    import networkx as nx  # few programs are out of order

    reading: nx.DiGraph[int] = nx.DiGraph()
    reading.add_nodes_from(range(len(nodes)))
    reading.add_edges_from((place, maker) for place, before in enumerate(needed) for maker in before)
    return [nodes[place] for place in nx.dfs_postorder_nodes(reading)]
