"""ZigZag's results: `LAYER_complete.json` has a layer, and the mapping that a search chose for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from pydantic import BeforeValidator

from tilewright.errors import InputError, Location
from tilewright.schema.document import Document, validate
from tilewright.values import Model
from tilewright_adapters.zigzag.allocation import Stored
from tilewright_adapters.zigzag.files import AcceleratorFile, ArrayDimension, Size
from tilewright_notations.operand_loops import OPERANDS

_LOOP = re.compile(r"\((\w+), ([1-9]\d{0,12})\)")
OTHER_HARDWARE = "give the accelerator file of the search"


def _loop(text: object) -> tuple[str, int]:
    """Return the dimension and the trips of a loop such as `(K, 32)`."""
    match = _LOOP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"'{text}' is not a loop; expected one like '(K, 32)'")
    return match[1].upper(), int(match[2])


Loop = Annotated[tuple[str, int], BeforeValidator(_loop)]
Levels = dict[str, tuple[tuple[Loop, ...], ...]]
"""Operand -> the loops of each of its memories, all innermost first."""


class ResultLayer(Model):
    """The layer, with the unrolling that was used."""

    name: str
    type: str
    equation: str
    equation_relations: tuple[str, ...] = ()
    loop_dimensions: dict[str, Size]
    operand_precision: dict[str, int]
    user_spatial_mapping: dict[ArrayDimension, dict[str, Size]]
    memory_operand_links: dict[str, str]


class ResultArray(Model):
    operational_unit: Any = None
    dimensions: dict[str, int]
    systolic_dimensions: Any = None


class ResultAccelerator(Model, extra="ignore"):
    """The part of the accelerator that a result states; bandwidths are missing."""

    name: str
    operational_array: ResultArray
    mem_size_dict: dict[str, tuple[int, ...]]


class ResultInputs(Model):
    accelerator: ResultAccelerator
    layer: ResultLayer
    spatial_mapping: Any = None
    temporal_mapping: Levels


def is_result(data: object) -> bool:
    """Return whether a document is a result, of a layer or of several."""
    return isinstance(data, dict) and data.keys() >= {"inputs", "outputs"}


def read_result(document: Document) -> ResultInputs:
    """Return the inputs of a result. Raises InputError."""
    layer = document.data["inputs"].get("layer") if isinstance(document.data["inputs"], dict) else None
    if isinstance(layer, list | None):
        place = document.locate(("inputs", "layer"))
        raise InputError("this result has no layer with a mapping", location=place, hint="give LAYER_complete.json")
    return validate(ResultInputs, document.at("inputs"))


def documents_of(document: Document, result: ResultInputs) -> dict[str, Document]:
    """Return the workload and the mapping of a result, as ZigZag's files say them.

    Raises:
        InputError: the operands have other loops.
    """
    layer = result.layer
    loops = {name: list(chain.from_iterable(levels)) for name, levels in result.temporal_mapping.items()}
    if set(loops) != set(OPERANDS) or any(order != loops["O"] for order in loops.values()):
        place = document.locate(("inputs", "temporal_mapping"))
        raise InputError("the operands I, W and O do not have the same loops in the same order", location=place)
    workload = {
        "id": 0,
        "name": layer.name,
        "operator_type": layer.type,
        "equation": layer.equation,
        "dimension_relations": list(layer.equation_relations),
        "loop_dims": list(layer.loop_dimensions),
        "loop_sizes": list(layer.loop_dimensions.values()),
        "operand_precision": dict(layer.operand_precision),
    }
    mapping = {
        "name": layer.name,
        "spatial_mapping": {
            axis: [f"{name}, {count}" for name, count in counts.items()]
            for axis, counts in layer.user_spatial_mapping.items()
        },
        "memory_operand_links": dict(layer.memory_operand_links),
        "temporal_ordering": [list(loop) for loop in loops["O"]],
    }
    marks: Mapping[tuple[str | int, ...], Location] = {(): document.locate(("inputs", "layer"))}
    return {
        "problem": Document([workload], document.source, marks),
        "mapping": Document([mapping], document.source, marks),
    }


def check_accelerator(said: ResultAccelerator, file: AcceleratorFile, where: Document) -> None:
    """Refuse an accelerator that is not the one of the result.

    Raises:
        InputError: sizes of the array or of memories differ.
    """
    sizes = {
        operand: tuple(memory.size for memory in file.memories.values() if operand in memory.operands)
        for operand in said.mem_size_dict
    }
    array = file.operational_array.extent
    pairs: list[tuple[str, object, object]] = [
        ("sizes of the array", said.operational_array.dimensions, array),
        ("bits of the memories", said.mem_size_dict, sizes),
    ]
    for what, theirs, ours in pairs:
        if theirs != ours:
            text = f"the result is of another accelerator, {said.name}: {what} are {theirs}, and {ours} in {file.name}"
            raise InputError(text, location=where.locate(("inputs", "accelerator")), hint=OTHER_HARDWARE)


def check_levels(
    levels: Levels, stored: Mapping[str, Stored], order: Sequence[tuple[str, int]], taken: Mapping[str, Sequence[int]]
) -> None:
    """Refuse a result whose memories keep other tiles than the allocation rule gives.

    Loops that do not index an operand are left out: ZigZag moves them inwards, and tiles stay the same.

    Args:
        levels: the loops of the result.
        stored: operand -> its properties.
        order: temporal loops, innermost first.
        taken: operand -> number of loops that each memory keeps.

    Raises:
        ValueError: a tile differs.
    """
    for operand, counts in taken.items():
        ends = [sum(counts[: level + 1]) for level in range(len(counts))]
        ours = [[loop for loop in order[:end] if stored[operand].indexed_by(loop[0])] for end in ends]
        said = [list(level) for level in levels[operand]]
        inside = [list(chain.from_iterable(said[: level + 1])) for level in range(len(said))]
        theirs = [[loop for loop in loops if stored[operand].indexed_by(loop[0]) and loop[1] > 1] for loops in inside]
        if ours != theirs:
            raise ValueError(
                f"the memories of {operand} keep the loops {said} in the result, and ZigZag's rule gives {ours}; "
                "a result does not state padding: give the workload file, too"
            )
