"""Vector layers of a network's file: operators without a product whose shapes are known, and the layers that they read."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ParamSpec

from tilewright.schema.origin import Origin
from tilewright.schema.vector import OPERATORS, Operand, OperatorWork, VectorLayer
from tilewright.schema.workload import Unmapped
from tilewright_frontends.nests import Shape

SOFTMAX = frozenset("Softmax LogSoftmax Hardmax LpNormalization CumSum CumProd DynamicQuantizeLinear".split())
"""Operators along rows with a result per element, and one operand."""
NORMS = frozenset(name for name in OPERATORS if name.endswith("Normalization")) - {
    "BatchNormalization",
    "LpNormalization",
}
POOLS = frozenset("MaxPool AveragePool LpPool LRN Resize".split())
"""Operators whose rows are windows."""
REDUCTIONS = frozenset(name for name in OPERATORS if name.startswith(("Reduce", "Arg", "Global")))
ONE_OPERAND = frozenset("Clip QuantizeLinear DequantizeLinear Shrink Cast".split())
"""Operators whose other operands are a few constants."""
OF_SEVERAL = frozenset("Sum Mean Max Min".split())
"""Operators that combine any number of operands."""
MAX_ELEMENTS, MAX_OPERANDS = 2**40, 100
NO_ROW = "the table of operations has no row for it"
NO_SHAPE = "a shape is not known"
CONSTANT = "it depends on no input, and is computed once"


@dataclass(frozen=True)
class Fused:
    """Operator that does the work of several ones of the table: of `first` on its elements, of `main`, and of `last` on results."""

    first: tuple[str, ...]
    main: str
    last: tuple[str, ...] = ()

    @property
    def work(self) -> OperatorWork:
        """The sum of the operations. What `main` sweeps several times is kept."""
        main, is_reduced = OPERATORS[self.main], self.main in REDUCTIONS | POOLS
        element, row = Counter(main.element), Counter(main.row)
        for name in self.first:
            element.update(OPERATORS[name].element)
        for name in self.last:
            (row if is_reduced else element).update(OPERATORS[name].element)
        kept = main.kept + (1 if self.first and main.sweeps > 1 else 0)
        source = f"the sum of {', '.join((*self.first, self.main, *self.last))}"
        changes = {"element": element, "row": row, "kept": kept, "source": source}
        return OperatorWork.model_validate(main.model_dump() | changes)


Arguments = ParamSpec("Arguments")
CONTRADICTION = "its attributes contradict its shapes"


def unless_contradicting(function: Callable[Arguments, VectorLayer | str]) -> Callable[Arguments, VectorLayer | str]:
    """Return a function that says so of an operator whose attributes and shapes contradict each other."""

    @functools.wraps(function)
    def guarded(*args: Arguments.args, **words: Arguments.kwargs) -> VectorLayer | str:
        try:
            return function(*args, **words)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return CONTRADICTION

    return guarded


def interpolation(axes: int) -> OperatorWork:
    """Return the work of a linear interpolation along some axes, of a row of 2**axes elements."""
    steps = 2**axes - 1
    work = {"row": {"add": 2 * steps, "multiply": steps}, "source": f"{steps} interpolations"}
    return OPERATORS["Resize"] if axes == 2 else OperatorWork.model_validate(work)


def vector_layer(
    name: str,
    operator: str | Fused,
    operands: Sequence[tuple[Shape, bool]],
    result: Shape,
    *,
    row: int = 0,
    first: int = 1,
    count: int = 1,
    origin: Origin | None = None,
    called: str = "",
    work: OperatorWork | None = None,
) -> VectorLayer | str:
    """Return the vector layer of an operator of the table, or why there is none.

    Args:
        operands: shape of each, and whether it is a weight.
        result: shape of the result.
        row: elements that a softmax or a norm needs together, or words of a window; 0: not known.
        first: how many of the largest are wanted.
        called: name of the operator in the file, for work that is not that of the table.
        work: its operations, if they are not those of the table.
    """
    fused, operator = (operator, operator.main) if isinstance(operator, Fused) else (None, operator)
    known = [operand for operand in operands if math.prod(operand[0]) > 1] or list(operands[:1])
    if operator not in OPERATORS:
        return NO_ROW
    if not known:
        return NO_SHAPE
    if operator not in NORMS | SOFTMAX | {"BatchNormalization"}:  # the first one may be the smaller operand
        known.sort(key=lambda operand: (operand[1], -math.prod(operand[0])))
    if operator in ONE_OPERAND:
        known = known[:1]
    data, made = known[0][0], math.prod(result)
    words = math.prod(data)
    rows, given, row = made, row, 1
    added = 1 + len(fused.first) if fused and "Add" in fused.first else 1
    if operator in SOFTMAX | NORMS:
        row, rows = given, words // max(given, 1)
        known = known[: added if operator in SOFTMAX else 1 if operator.startswith("Mean") else 2 + added]
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
    label = called if called and (fused or work) else operator
    if fused is not None:
        work = fused.work
    elif operator in OF_SEVERAL and len(known) > 2:
        plain = OPERATORS[operator]
        kind = "compare" if operator in ("Max", "Min") else "add"
        told = f"{plain.source}, of {len(known)} operands"
        changed = {"element": dict(plain.element) | {kind: len(known) - 1}, "source": told}
        work = OperatorWork.model_validate(plain.model_dump() | changed)
    weights = [(math.prod(shape), is_weight) for shape, is_weight in known]
    return layer_with(name, label, work, rows, row, weights, made, made, count, origin)


def layer_with(
    name: str,
    operator: str,
    work: OperatorWork | None,
    rows: int,
    row: int,
    operands: Sequence[tuple[int, bool]],
    result: int,
    spread: int,
    count: int = 1,
    origin: Origin | None = None,
) -> VectorLayer | str:
    """Return a vector layer, or why its sizes are none.

    Args:
        operands: words of each, and whether it is a weight.
        spread: words of an operand, behind the first, that rows do not share.
    """
    sizes = (rows, row, rows * row, result, *(words for words, _ in operands))
    if not all(0 < size <= MAX_ELEMENTS for size in sizes):
        return "a size is 0, or more than 2**40"
    if len(operands) > MAX_OPERANDS:
        return f"it has more than {MAX_OPERANDS} operands"
    return VectorLayer(
        name=name,
        operator=operator,
        work=work,
        rows=rows,
        row=row,
        operands=tuple(
            Operand(
                name=f"X{place}",
                words=words,
                role="weight" if is_weight and place else "input",
                shared=bool(place) and words < spread,
            )
            for place, (words, is_weight) in enumerate(operands)
        ),
        result=result,
        count=count,
        operators=(name,),
        origin=origin,
    )


def uncounted(part: Unmapped, vector: VectorLayer | str) -> Unmapped:
    """Return an unmapped operator that tells why it is not counted, unless it is, or has nothing to count."""
    if isinstance(vector, VectorLayer) or not vector or part.operations == 0:
        return part
    return part.model_copy(update={"reason": f"{part.reason}; {vector}"})


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

    def add(self, layer: VectorLayer | str | None, values: Iterable[Hashable], results: Iterable[Hashable]) -> None:
        """Note a vector layer, or an operator that is neither: its results come from where its operands do."""
        if not isinstance(layer, VectorLayer):
            self.makers |= dict.fromkeys(results, self.reached(values))
            return
        self.layers.append(layer.model_copy(update={"after": self.reached(values)}))
        self.readers[layer.name] = {}
        self.makers |= dict.fromkeys(results, (layer.name,))

    def every(self) -> tuple[VectorLayer, ...]:
        """Return all vector layers with the layers that read them."""
        return tuple(layer.model_copy(update={"before": tuple(self.readers[layer.name])}) for layer in self.layers)
