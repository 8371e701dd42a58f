"""Vector layers of a network's file: operators without a product whose shapes are known, and the layers that they read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

from tilewright.schema.origin import Origin
from tilewright.schema.vector import OPERATORS, Operand, VectorLayer
from tilewright_frontends.nests import Shape

SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
NORMS = frozenset(("LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"))
POOLS = frozenset(("MaxPool", "AveragePool"))
REDUCTIONS = frozenset(name for name in OPERATORS if name.startswith(("Reduce", "Arg", "Global")))
ONE_OPERAND = frozenset("Clip QuantizeLinear DequantizeLinear".split())
"""Operators whose other operands are a few constants."""
MAX_ELEMENTS = 2**40


def vector_layer(
    name: str,
    operator: str,
    operands: Sequence[tuple[Shape, bool]],
    result: Shape,
    *,
    row: int = 0,
    first: int = 1,
    count: int = 1,
    origin: Origin | None = None,
) -> VectorLayer | None:
    """Return the vector layer of an operator of the table; None: it is no such operator, or its sizes are unusual.

    Args:
        operands: shape of each, and whether it is a weight.
        result: shape of the result.
        row: elements that a softmax or a norm needs together, or words of a window; 0: not known.
        first: how many of the largest are wanted.
    """
    known = [operand for operand in operands if math.prod(operand[0]) > 1] or list(operands[:1])
    if operator not in OPERATORS or not known:
        return None
    if operator not in NORMS | SOFTMAX | {"BatchNormalization"}:  # the first one may be the smaller operand
        known.sort(key=lambda operand: (operand[1], -math.prod(operand[0])))
    if operator in ONE_OPERAND:
        known = known[:1]
    data, made = known[0][0], math.prod(result)
    words = math.prod(data)
    rows, given, row = made, row, 1
    if operator in SOFTMAX | NORMS:
        row, rows = given, words // max(given, 1)
        known = known[: 3 if operator in NORMS else 1]
    elif operator in REDUCTIONS:
        row, known = words // max(made, 1), known[:1]
    elif operator in POOLS:
        row, known = given, known[:1]
    elif operator == "TopK":
        rows = made // max(first, 1)
        row, known = words // max(rows, 1) * first, known[:1]
    elif operator == "BatchNormalization":
        row, rows, known = max(1, math.prod(data[2:])), math.prod(data[:2]), known[:3]
    elif any(math.prod(shape) < made for shape, _ in known[1:]):
        row = result[-1] if result else 1
        rows = made // max(row, 1)
    if not all(
        0 < size <= MAX_ELEMENTS for size in (rows, row, rows * row, made, *(math.prod(one) for one, _ in known))
    ):
        return None
    return VectorLayer(
        name=name,
        operator=operator,
        rows=rows,
        row=row,
        operands=tuple(
            Operand(
                name=f"X{place}",
                words=math.prod(shape),
                role="weight" if weight and place else "input",
                shared=bool(place) and math.prod(shape) < made,
            )
            for place, (shape, weight) in enumerate(known)
        ),
        result=made,
        count=count,
        operators=(name,),
        origin=origin,
    )


class Vectors:
    """Collector of vector layers. For each value, it knows the layers and vector layers that its words come from."""

    def __init__(self) -> None:
        self.layers: list[VectorLayer] = []
        self.readers = dict[str, dict[str, None]]()  # vector layer -> layers that read its result
        self.makers = dict[Hashable, tuple[str, ...]]()

    def reached(self, values: Iterable[Hashable]) -> tuple[str, ...]:
        """Return the layers and vector layers that some values come from."""
        return tuple(dict.fromkeys(maker for value in values for maker in self.makers.get(value, ())))

    def matrix(self, name: str, values: Iterable[Hashable], results: Iterable[Hashable]) -> None:
        """Note a layer."""
        for maker in self.reached(values):
            if maker in self.readers:
                self.readers[maker][name] = None
        self.makers |= dict.fromkeys(results, (name,))

    def add(self, layer: VectorLayer | None, values: Iterable[Hashable], results: Iterable[Hashable]) -> None:
        """Note a vector layer, or an operator that is neither: its results come from where its operands do."""
        if layer is None:
            self.makers |= dict.fromkeys(results, self.reached(values))
            return
        self.layers.append(layer.model_copy(update={"after": self.reached(values)}))
        self.readers[layer.name] = {}
        self.makers |= dict.fromkeys(results, (layer.name,))

    def every(self) -> tuple[VectorLayer, ...]:
        """Return all vector layers with the layers that read them."""
        return tuple(layer.model_copy(update={"before": tuple(self.readers[layer.name])}) for layer in self.layers)
