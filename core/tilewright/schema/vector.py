"""Vector units, and vector layers: operators without a product, such as softmax, norms and activations.

    Softmax of 4 rows of 8 elements, on a unit of 2 lanes whose memory holds a row. By the table (`OPERATORS`), an element takes
    5 operations, and a row one more: 4 x (8 x 5 + 1) = 164 operations, in 82 cycles of the lanes.
    The memory outside reads each word once, and writes one. Where no row fits, it reads each word twice (`passes`).

docs/vector.md has the rules, and the table with its sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Name, Role, Size, Tensor
from tilewright.schema.quantities import Count, Energy, Rate
from tilewright.values import MisplacedError, Model

Operation = Literal["add", "multiply", "exponential", "compare", "divide", "convert"]
"""Kinds of operations. Subtractions are additions; roots and their reciprocals are divisions; logarithms, sines and cosines are exponentials."""
Operations = FrozenDict[Operation, Annotated[int, Field(ge=0, le=2**20, strict=True)]]
"""Kind of operation -> number of them."""


class OperatorWork(Model):
    """Operations of an operator, on rows of elements. Reductions are along rows.

    Example:
        >>> from tilewright.plugin import OperatorWork
        >>> OperatorWork(element={"multiply": 1, "add": 1}).passes
        1
    """

    element: Operations = Operations()
    """Operations per element."""
    row: Operations = Operations()
    """Operations per row, in addition."""
    block: Operations = Operations()
    """Operations per block, in addition, if the unit's memory holds no row, which is then cut into blocks."""
    again: Operations = Operations()
    """Operations per element that are repeated then."""
    passes: Count = 1
    """How often the words of the first operand come from the memories outside then."""
    sweeps: Count = 1
    """How often the unit reads each element of the first operand from its memory."""
    kept: Annotated[int, Field(ge=0, le=100, strict=True)] = 0
    """Intermediate values per element that the unit writes into its memory, if that holds whole rows."""
    source: str = Field(default="", max_length=1000)
    """Where the numbers are from."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not any((*self.element.values(), *self.row.values())):
            raise ValueError("an operator without operations; expected such as element: {add: 1}")
        return self

    @property
    def kinds(self) -> frozenset[Operation]:
        """Kinds of operations that a unit needs for it, with rows whole or cut."""
        parts = (self.element, self.row, self.block, self.again)
        return frozenset(kind for part in parts for kind, number in part.items() if number)

    def operations(self, rows: int, row: int, blocks: int | None) -> Counter[Operation]:
        """Return the operations of some rows.

        Args:
            rows: number of rows.
            row: elements of one.
            blocks: blocks of one; None: it is whole.
        """
        counts = Counter[Operation]()
        parts = [(self.element, rows * row), (self.row, rows)]
        parts += [] if blocks is None else [(self.block, rows * blocks), (self.again, rows * row)]
        for part, times in parts:
            counts.update({kind: number * times for kind, number in part.items() if number})
        return counts


class Unit(Model):
    """Vector unit. Each instance of its memory has one.

    Example:
        >>> from tilewright.plugin import Unit
        >>> Unit(name="Vector", lanes=128, memory="VMEM", energy_pj={"add": 0.1}).lanes
        128
    """

    name: Name
    """Name, which no memory has."""
    lanes: Count
    """Operations that start at once."""
    memory: Name
    """Memory that it reads and writes."""
    energy_pj: FrozenDict[Operation, Energy] = Field(min_length=1)
    """Kind of operation -> energy in pJ of one. The unit has these kinds, and no others."""
    cycles: FrozenDict[Operation, Rate] = FrozenDict()
    """Kind of operation -> cycles that a lane takes for one; 1 for those that are left out. 0.5: two at once."""
    operators: FrozenDict[str, OperatorWork] = FrozenDict()
    """Operator -> its operations on this unit, in place of those of the table."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for kind in self.cycles:
            if kind not in self.energy_pj:
                raise MisplacedError(
                    f"{self.name} has no energy of {kind}; expected {kind} in energy_pj", "cycles", kind
                )
        for operator in self.operators:
            if operator not in OPERATORS:
                told = f"no operator is called {operator}{suggestion(operator, OPERATORS)}"
                raise MisplacedError(f"{told}; expected one of {', '.join(OPERATORS)}", "operators", operator)
        return self

    def work_of(self, layer: VectorLayer) -> OperatorWork:
        """Return the operations of a layer: its own, else the unit's, else the table's."""
        return layer.work or self.operators.get(layer.operator) or layer.plain_work


class Operand(Model):
    """Tensor that a vector layer reads.

    Example:
        >>> from tilewright.plugin import Operand
        >>> Operand(name="Scores", words=64).role
        'input'
    """

    name: Name
    """Name, unique in the layer."""
    words: Size
    """Its words. The memories outside supply each once in a pass."""
    role: Role = "input"
    """Role, which selects the memories that may hold it."""
    shared: bool = False
    """Whether all rows read the same words, such as the scales of a norm. The unit's memory then keeps them, if it has room."""

    @property
    def tensor(self) -> Tensor:
        """The operand as memories see it."""
        return Tensor(name=self.name, role=self.role, projection=())


class VectorLayer(Model):
    """Work of an operator without a product, on rows of elements.

    Example:
        >>> from tilewright.plugin import Operand, VectorLayer
        >>> scores = Operand(name="Scores", words=64)
        >>> VectorLayer(name="softmax", operator="Softmax", rows=8, row=8, operands=[scores], result=64).count
        1
    """

    name: str = Field(min_length=1)
    """Name, which no layer of the workload has."""
    operator: str = Field(min_length=1)
    """Kind of operator, such as `Softmax`: a row of the table, unless `work` is given."""
    work: OperatorWork | None = None
    """Operations of this layer; None: those of its operator."""
    rows: Size
    """Number of rows. Rows are spread over the units."""
    row: Size
    """Elements of a row. Reductions are along it: the words of a softmax, or the window of a pooling."""
    operands: tuple[Operand, ...] = Field(min_length=1, max_length=100)
    """Tensors that it reads. Operations are on the elements of the first one."""
    result: Size
    """Words of the result."""
    count: int = Field(default=1, ge=1, le=2**40, strict=True)
    """How often the network repeats it."""
    after: tuple[str, ...] | None = None
    """Names of the layers and vector layers whose results it reads; None: unknown."""
    before: tuple[str, ...] = ()
    """Names of the layers that read its result. Vector layers that read it state this by `after`."""
    operators: tuple[str, ...] = ()
    """Names of the unmapped operators that it counts."""
    origin: Origin | None = None
    """Place in the file of the network."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.work is None and self.operator not in OPERATORS:
            told = f"no operator is called {self.operator}{suggestion(self.operator, OPERATORS)}"
            known = f"expected work, or one of {', '.join(OPERATORS)}"
            raise MisplacedError(f"{told}; {known}", "operator")
        names = [operand.name for operand in self.operands]
        for place, operand in enumerate(self.operands):
            if names.count(operand.name) > 1 or operand.name == RESULT:
                told = f"operands need different names, and {RESULT} is the result: {operand.name}"
                raise MisplacedError(told, "operands", place, "name")
        if self.operands[0].shared:
            raise MisplacedError("operations are on the first operand, which no row shares", "operands", 0, "shared")
        if self.rows * self.row >= 2**53:
            raise MisplacedError(f"{self.rows * self.row:,} elements; expected less than 2**53", "rows")
        return self

    @property
    def elements(self) -> int:
        """Elements that operations are on."""
        return self.rows * self.row

    @property
    def plain_work(self) -> OperatorWork:
        """Its operations, unless a unit states others for its operator."""
        return self.work or OPERATORS[self.operator]

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Operands, then the result."""
        return (*(operand.tensor for operand in self.operands), Tensor(name=RESULT, role="output", projection=()))

    def renamed(self, named: Callable[[str], str]) -> VectorLayer:
        """Return the layer with other names of layers, its own and those of unmapped operators excluded."""
        after = None if self.after is None else tuple(map(named, self.after))
        return self.model_copy(
            update={"name": named(self.name), "after": after, "before": tuple(map(named, self.before))}
        )


class GroupVector(Model):
    """Vector layer between two layers of a group: it changes a tensor's words where they are at home, tile by tile.

    Example:
        >>> from tilewright.plugin import GroupVector
        >>> GroupVector(name="softmax", operator="Softmax", tensor="P", row=["S"]).row
        ('S',)
    """

    name: str = Field(min_length=1)
    """Name, which no layer of the group has."""
    operator: str = Field(min_length=1)
    """Kind of operator, such as `Softmax`: a row of the table, unless `work` is given."""
    work: OperatorWork | None = None
    """Operations of this layer; None: those of its operator."""
    tensor: Name
    """Edge of the group, with a maker and a reader. Its words are the first operand, and the result takes their place."""
    row: tuple[Name, ...] = Field(default=(), max_length=100)
    """Dimensions of the maker along which a row is; none: a row is one element."""
    operands: tuple[Operand, ...] = Field(default=(), max_length=99)
    """Further operands, which come from the outermost memory; their words are those for the whole tensor."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self.on(1, 1, "X", [operand.words for operand in self.operands])
        return self

    def on(self, rows: int, row: int, name: str, words: Sequence[int]) -> VectorLayer:
        """Return the layer on one tile.

        Args:
            rows, row: rows of the tile, and elements of one.
            name: name of the operand that the tile is.
            words: of each further operand.
        """
        first = Operand(name=name, words=rows * row)
        others = [
            operand.model_copy(update={"words": count}) for operand, count in zip(self.operands, words, strict=True)
        ]
        return VectorLayer(
            name=self.name, operator=self.operator, work=self.work, rows=rows, row=row, operands=(first, *others),
            result=rows * row,
        )  # fmt: skip


RESULT = "Outputs"
"""Name of the result of a vector layer in reports."""


def _each(names: str, source: str, **element: int) -> Mapping[str, OperatorWork]:
    """Return the work of operators that take the same operations per element."""
    return dict.fromkeys(names.split(), _rows(source, element))


def _rows(source: str, element: Mapping[str, int], row: Mapping[str, int] | None = None, **more: Any) -> OperatorWork:
    return OperatorWork.model_validate({"element": element, "row": row or {}, "source": source, **more})


_PLAIN = "definition"
_NORM = "sums of x and of x * x in one sweep; Ba et al. 2016, equation 4"
OPERATORS: Mapping[str, OperatorWork] = {
    **_each("Add Sub Sum", _PLAIN, add=1),
    **_each("Mul Neg", _PLAIN, multiply=1),
    **_each("Div Sqrt Reciprocal", _PLAIN, divide=1),
    **_each(
        "Max Min Relu Abs Equal Greater Less GreaterOrEqual LessOrEqual Not And Or Xor Where Sign ThresholdedRelu IsNaN IsInf "
        "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor",
        _PLAIN, compare=1,
    ),
    **_each("Exp Log Sin Cos Asin Acos Atan", _PLAIN, exponential=1),
    **_each("Tan", "sin(x) / cos(x)", exponential=2, divide=1),
    **_each("Sinh Cosh", "(e - 1 / e) / 2 or (e + 1 / e) / 2, e = exp(x)", exponential=1, divide=1, add=1, multiply=1),
    **_each("Asinh Acosh", "log(x + sqrt(x * x + 1)), or with - 1", multiply=1, add=2, divide=1, exponential=1),
    **_each("Atanh", "log((1 + x) / (1 - x)) / 2", add=2, divide=1, exponential=1, multiply=1),
    **_each("Floor Ceil Round Cast", _PLAIN, convert=1),
    **_each("Mod", "x - y * floor(x / y)", divide=1, convert=1, multiply=1, add=1),
    **_each("Mean", "a sum, times 1 / n", add=1, multiply=1),
    **_each("Pow", "exp(y * log(x))", exponential=2, multiply=1),
    **_each("Clip", "two bounds", compare=2),
    **_each("LeakyRelu PRelu", "max(x, a * x), or the other way round", compare=1, multiply=1),
    **_each("Sigmoid", "1 / (1 + exp(-x))", multiply=1, exponential=1, add=1, divide=1),
    **_each("Tanh", "(1 - e) / (1 + e), e = exp(-2 * x)", multiply=1, exponential=1, add=2, divide=1),
    **_each("HardSigmoid", "min(max(a * x + b, 0), 1)", multiply=1, add=1, compare=2),
    **_each("HardSwish", "x * min(max(x / 6 + 1/2, 0), 1); Howard et al. 2019, section 5.2", multiply=2, add=1, compare=2),
    **_each("Swish", "x / (1 + exp(-x)); Ramachandran et al. 2017, equation 1", multiply=1, exponential=1, add=1, divide=1),
    **_each("SwiGLU", "Swish(x) * y; Shazeer 2020, equation 6", multiply=2, exponential=1, add=1, divide=1),
    **_each("GeGLU", "Gelu(x) * y; Shazeer 2020, equation 6", multiply=5, exponential=1, add=2, divide=1),
    **_each("QuickGelu", "x / (1 + exp(-1.702 * x)); Hendrycks and Gimpel 2016, section 2", multiply=1, exponential=1, add=1, divide=1),
    **_each("Gelu", "x / (1 + exp(-2 * z)), z as in Hendrycks and Gimpel 2016, section 2", multiply=4, exponential=1, add=2, divide=1),
    **_each("Elu", "x, or a * (exp(x) - 1)", compare=1, exponential=1, add=1, multiply=1),
    **_each("Selu Celu", "a scaled x, or a * (exp(b * x) - 1)", compare=1, exponential=1, add=1, multiply=2),
    **_each("Shrink", "0, or x with a shift to 0", compare=2, add=2),
    **_each("Softsign", "x / (1 + abs(x))", compare=1, add=1, divide=1),
    **_each("Softplus", "log(1 + exp(x))", exponential=2, add=1),
    **_each("Mish", "x * n / (n + 2), n = e * (e + 2), e = exp(x)", exponential=1, add=2, multiply=2, divide=1),
    **_each("Erf", "Abramowitz and Stegun, 7.1.26", compare=2, multiply=10, add=6, divide=1, exponential=1),
    **_each("BatchNormalization", "one scale and one shift", multiply=1, add=1),
    **_each("DequantizeLinear", "(q - zero) * scale", convert=1, add=1, multiply=1),
    **_each("QuantizeLinear", "round(x / scale) + zero, two bounds", multiply=1, convert=1, add=1, compare=2),
    **_each("RotaryEmbedding", "x * cos + y * sin; Su et al. 2021, equation 34", multiply=2, add=1),
    **_each("RNN", "tanh of a sum of two products", add=3, multiply=1, exponential=1, divide=1),
    **_each(
        "LSTM", "three Sigmoid and two Tanh, sums of two products, f * c + i * g, and o * tanh(c)",
        add=12, multiply=8, exponential=5, divide=5,
    ),
    **_each(
        "GRU", "two Sigmoid and a Tanh, sums of two products, one times r, and n + z * (h - n)",
        add=9, multiply=5, exponential=3, divide=3,
    ),
    "Softmax": OperatorWork.model_validate(
        {
            "element": {"compare": 1, "add": 2, "exponential": 1, "multiply": 1},
            "row": {"divide": 1},
            "block": {"add": 1, "exponential": 1, "multiply": 1},
            "again": {"add": 1, "exponential": 1},
            "passes": 2,
            "sweeps": 3,
            "kept": 1,
            "source": "Milakov and Gimelshein 2018, algorithms 2 and 3, the latter by blocks",
        }
    ),
    "SoftmaxBlock": _rows(
        "exp(x - m) of a block, with running maximum and sum; Dao 2023, algorithm 1, lines 9 and 10",
        {"compare": 1, "add": 2, "exponential": 1}, {"add": 1, "exponential": 1, "multiply": 1}, passes=2, sweeps=2,
    ),
    "SoftmaxRescale": _rows("partial results x exp(m before - m); Dao 2023, algorithm 1, line 10", {"multiply": 1}),
    "SoftmaxScale": _rows("results / sum; Dao 2023, algorithm 1, line 12", {"multiply": 1}, {"divide": 1}),
    "LogSoftmax": OperatorWork.model_validate(
        {
            "element": {"compare": 1, "add": 3, "exponential": 1},
            "row": {"exponential": 1, "add": 1},
            "block": {"add": 1, "exponential": 1, "multiply": 1},
            "passes": 2,
            "sweeps": 3,
            "source": "x - (m + log(sum(exp(x - m)))), sums as of Softmax",
        }
    ),
    **dict.fromkeys(
        ("LayerNormalization", "InstanceNormalization", "GroupNormalization"),
        _rows(_NORM, {"add": 4, "multiply": 3}, {"multiply": 3, "add": 2, "divide": 1}, passes=2, sweeps=2),
    ),
    "MeanVarianceNormalization": _rows(
        "LayerNormalization without scales and shifts",
        {"add": 3, "multiply": 2}, {"multiply": 3, "add": 2, "divide": 1}, passes=2, sweeps=2,
    ),
    "RMSNormalization": _rows(
        "Zhang and Sennrich 2019, equation 4", {"add": 1, "multiply": 3}, {"multiply": 1, "add": 1, "divide": 1},
        passes=2, sweeps=2,
    ),
    "LpNormalization": _rows("x / sqrt(sum(x * x))", {"multiply": 2, "add": 1}, {"divide": 2}, passes=2, sweeps=2),
    "DynamicQuantizeLinear": _rows(
        "minimum and maximum, then QuantizeLinear", {"compare": 4, "multiply": 1, "convert": 1, "add": 1},
        {"add": 1, "multiply": 1, "divide": 1}, passes=2, sweeps=2,
    ),
    "Hardmax": _rows("the place of the maximum, and ones and zeros", {"compare": 2}, passes=2, sweeps=2),
    "LRN": _rows(
        "x / (k + a * sum(x * x)) ** b; Krizhevsky et al. 2012, section 3.3", {"multiply": 1, "add": 1},
        {"multiply": 2, "add": 1, "exponential": 2, "divide": 1},
    ),
    "Resize": _rows("linear along two axes: three interpolations of a row of four", {}, {"add": 6, "multiply": 3}),
    "CumSum": _rows("running sum", {"add": 1}),
    "CumProd": _rows("running product", {"multiply": 1}),
    "ReduceLogSum": _rows("running sum, and its logarithm", {"add": 1}, {"exponential": 1}),
    "ReduceLogSumExp": _rows(
        "m + log(sum(exp(x - m))), sums as of Softmax", {"compare": 1, "add": 2, "exponential": 1},
        {"exponential": 1, "add": 1}, block={"add": 1, "exponential": 1, "multiply": 1}, sweeps=2,
    ),
    "SelectiveScan": _rows(
        "a state of a channel and token; Gu and Dao 2023, algorithm 2", {"multiply": 4, "exponential": 1, "add": 2},
        {"multiply": 2, "add": 1},
    ),
    "ReduceSum": _rows("running sum", {"add": 1}),
    "ReduceL1": _rows("running sum", {"compare": 1, "add": 1}),
    **dict.fromkeys(
        ("ReduceMean", "AveragePool", "GlobalAveragePool"), _rows("running sum, and 1 / n", {"add": 1}, {"multiply": 1})
    ),
    **dict.fromkeys(
        ("ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "ArgMax", "ArgMin"), _rows("running maximum", {"compare": 1})
    ),
    "ReduceVariance": _rows(
        "sums of x and of x * x in one sweep", {"add": 2, "multiply": 1}, {"multiply": 3, "add": 1}
    ),
    "ReduceProd": _rows("running product", {"multiply": 1}),
    "ReduceSumSquare": _rows("running sum", {"multiply": 1, "add": 1}),
    **dict.fromkeys(
        ("ReduceL2", "LpPool", "GlobalLpPool"), _rows("running sum, and a root", {"multiply": 1, "add": 1}, {"divide": 1})
    ),
    "TopK": _rows("a maximum for each of k; a row has k times the candidates", {"compare": 1}),
}  # fmt: skip
"""Operator -> its operations. Files may state others: `Unit.operators`, `VectorLayer.work`."""


def check_units(units: Sequence[Unit], memories: Sequence[str], compute: str) -> None:
    """Check the names of the units of a machine with these memories and this compute unit.

    Raises:
        MisplacedError: a name is not unique, or a memory is not known.
    """
    names = {*memories, compute}
    for number, unit in enumerate(units):
        if unit.name in names:
            raise MisplacedError(f"a memory or unit is called {unit.name}, too", "units", number, "name")
        names.add(unit.name)
        if unit.memory not in memories:
            told = f"{unit.memory} is not a memory; expected one of {', '.join(memories)}"
            raise MisplacedError(told, "units", number, "memory")


def check_vectors(layers: Sequence[str], vectors: Sequence[VectorLayer]) -> None:
    """Check the names of vector layers of a workload with these layers.

    Raises:
        MisplacedError: a name is not unique, or not known.
    """
    known, matrix = {*layers, *(layer.name for layer in vectors)}, set(layers)
    taken = set(layers)
    for number, vector in enumerate(vectors):
        if vector.name in taken:
            raise MisplacedError(f"layer names repeat: {vector.name}", "vectors", number, "name")
        taken.add(vector.name)
        for field, names, allowed in (("after", vector.after or (), known), ("before", vector.before, matrix)):
            for place, name in enumerate(names):
                if name not in allowed or name == vector.name:
                    told = f"{vector.name} is {field} {name}, which is not a layer{suggestion(name, sorted(allowed))}"
                    raise MisplacedError(told, "vectors", number, field, place)
