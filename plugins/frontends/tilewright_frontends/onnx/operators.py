"""Mapped operators of ONNX: conversion to loop nests of `nests`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import NodeProto

from tilewright.schema.problem import Problem
from tilewright_frontends import nests
from tilewright_frontends.nests import Shape, equal
from tilewright_frontends.onnx.graph import Graph
from tilewright_frontends.onnx.unmapped import attributes_of


def _conv(graph: Graph, node: NodeProto, name: str) -> Problem:
    data, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    groups = int(attributes_of(node).get("group", 1))
    equal(data[1], groups * weight[1], "channels of the input and of the weights differ")
    equal(weight[0] % groups, 0, f"{weight[0]} channels do not divide into {groups} groups")
    strides, dilations = _windows(node, data, weight)
    channels, positions = (weight[0] // groups, weight[1]), graph.shape(node.output[0])[2:]
    return nests.convolution(name, data[0], groups, channels, positions, weight[2:], strides, dilations)


def _conv_transpose(graph: Graph, node: NodeProto, name: str) -> Problem:
    data, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    groups = int(attributes_of(node).get("group", 1))
    equal(data[1], weight[0], "channels of the input and of the weights differ")
    equal(data[1] % groups, 0, f"{data[1]} channels do not divide into {groups} groups")
    strides, dilations = _windows(node, data, weight)
    channels = weight[1], data[1] // groups
    return nests.convolution(name, data[0], groups, channels, data[2:], weight[2:], strides, dilations, transposed=True)


def _windows(node: NodeProto, data: Shape, weight: Shape) -> tuple[Sequence[int], Sequence[int]]:
    """Return strides and dilations, one per spatial axis."""
    spatial = len(data) - 2
    equal(len(data), len(weight), "input and weights have different numbers of dimensions")
    nests.check_axes(spatial)
    attributes = attributes_of(node)
    return attributes.get("strides") or [1] * spatial, attributes.get("dilations") or [1] * spatial


def _gemm(graph: Graph, node: NodeProto, name: str) -> Problem:
    """Return a matrix product; the attributes may transpose either matrix."""
    a, b = graph.shape(node.input[0]), graph.shape(node.input[1])
    attributes = attributes_of(node)
    equal(len(a), 2, "Gemm needs matrices; dimensions found and expected")
    equal(len(b), 2, "Gemm needs matrices; dimensions found and expected")
    return nests.gemm(name, a[::-1] if attributes.get("transA") else a, b[::-1] if attributes.get("transB") else b)


def _matmul(graph: Graph, node: NodeProto, name: str) -> Problem:
    return nests.matmul(name, graph.shape(node.input[0]), graph.shape(node.input[1]))


def _einsum(graph: Graph, node: NodeProto, name: str) -> Problem:
    equation = attributes_of(node)["equation"].decode()
    return nests.einsum(name, equation, [graph.shape(value) for value in node.input])


Builder = Callable[[Graph, NodeProto, str], Problem]
"""A function from graph, node and layer name to a problem.

It raises Unsupported if there is no affine loop nest or a shape is unknown. It raises InputError
for open dimensions, and a Python error if the node contradicts itself.
"""

BUILDERS: dict[str, Builder] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Einsum": _einsum,
}
