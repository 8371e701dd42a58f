"""Execution of vector layers on numbers: every operation of a unit, and every word that reaches or leaves a memory, is counted.

A unit works on its rows in order, and all units do so at the same time. A memory with room for whole rows (`Placement.holds`)
keeps the rows of the moment, and what rows share. Others keep nothing: each word that is needed again comes from outside again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.vector import OPERATORS, RESULT, Operand, Operation
from tilewright_costmodels.vector.counts import Placement, VectorCounts

Values = NDArray[np.float64]


@dataclass
class Lanes:
    """Operations of one unit on arrays, counted by kind, and the words that it reads and writes for them."""

    operations: Counter[Operation] = field(default_factory=Counter)
    read: Counter[int] = field(default_factory=Counter)
    written: int = 0

    def load(self, values: Values, operand: int = 0) -> Values:
        """Read values of an operand from the memory of the unit; intermediate values count as those of the first one."""
        self.read[operand] += values.size
        return values

    def store(self, values: Any) -> Values:
        """Write values into the memory of the unit."""
        written = np.atleast_1d(np.asarray(values, np.float64))
        self.written += written.size
        return written

    def _count(self, kind: Operation, result: Any) -> Any:
        self.operations[kind] += np.size(result)
        return result

    def add(self, a: Any, b: Any) -> Any:
        return self._count("add", a + b)

    def subtract(self, a: Any, b: Any) -> Any:
        return self._count("add", a - b)

    def multiply(self, a: Any, b: Any) -> Any:
        return self._count("multiply", a * b)

    def divide(self, a: Any, b: Any) -> Any:
        return self._count("divide", a / b)

    def root(self, a: Any) -> Any:
        return self._count("divide", np.sqrt(a))

    def exponential(self, a: Any, function: Callable[[Any], Any] = np.exp) -> Any:
        """Return an exponential, or a logarithm, sine or cosine."""
        return self._count("exponential", function(a))

    def convert(self, a: Any, function: Callable[[Any], Any] = np.rint) -> Any:
        return self._count("convert", function(a))

    def larger(self, a: Any, b: Any) -> Any:
        return self._count("compare", np.maximum(a, b))

    def smaller(self, a: Any, b: Any) -> Any:
        return self._count("compare", np.minimum(a, b))

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        """Return `a` where a comparison holds, else `b`."""
        return self._count("compare", np.where(condition, a, b))

    def total(self, values: Values, start: Any = 0.0) -> Any:
        """Return a running sum: an addition for each value."""
        self.operations["add"] += values.size
        return start + values.sum()

    def largest(self, values: Values, start: Any = -np.inf) -> Any:
        """Return a running maximum: a comparison for each value."""
        self.operations["compare"] += values.size
        return max(start, values.max())


Program = Callable[[Lanes, Sequence[Values], Sequence[slice] | None], Values]
"""(unit, row of each operand, blocks of a row that is cut) -> the result of a row."""


def _sigmoid(m: Lanes, x: Any, factor: Any = -1.0, top: Any = 1.0) -> Any:
    """Return top / (1 + exp(factor * x))."""
    return m.divide(top, m.add(1.0, m.exponential(m.multiply(factor, x))))


def _gelu(m: Lanes, x: Any) -> Any:
    inner = m.multiply(x, m.add(1.0, m.multiply(0.044715, m.multiply(x, x))))
    return _sigmoid(m, inner, -2.0 * np.sqrt(2.0 / np.pi), x)


def _tanh(m: Lanes, x: Any) -> Any:
    e = m.exponential(m.multiply(-2.0, x))
    return m.divide(m.subtract(1.0, e), m.add(1.0, e))


def _mish(m: Lanes, x: Any) -> Any:
    e = m.exponential(x)
    n = m.multiply(e, m.add(e, 2.0))
    return m.divide(m.multiply(x, n), m.add(n, 2.0))


_ERF = 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592


def _erf(m: Lanes, x: Any) -> Any:
    size = m.larger(x, -x)
    t = m.divide(1.0, m.add(1.0, m.multiply(0.3275911, size)))
    y = m.multiply(_ERF[0], t)
    for coefficient in _ERF[1:]:
        y = m.multiply(t, m.add(y, coefficient))
    y = m.multiply(y, m.exponential(m.multiply(-1.0, m.multiply(size, size))))
    y = m.subtract(1.0, y)
    return m.choose(x < 0, m.multiply(-1.0, y), y)


def _clipped(m: Lanes, x: Any, low: float = 0.0, high: float = 1.0) -> Any:
    return m.smaller(m.larger(x, low), high)


def _swiglu(m: Lanes, x: Any, y: Any) -> Any:
    return m.multiply(_sigmoid(m, x, top=x), y)


def _hyperbolic(m: Lanes, x: Any, combine: Callable[[Lanes, Any, Any], Any]) -> Any:
    e = m.exponential(x)
    return m.multiply(0.5, combine(m, e, m.divide(1.0, e)))


def _area(m: Lanes, x: Any, one: float) -> Any:
    """Return log(x + sqrt(x * x + one)); the root of a negative number counts as 0."""
    square = np.maximum(m.add(m.multiply(x, x), one), 0.0)
    return m.exponential(m.add(x, m.root(square)), lambda total: np.log(np.maximum(total, 1e-9)))


def _atanh(m: Lanes, x: Any) -> Any:
    x = np.clip(x, -0.99, 0.99)
    return m.multiply(0.5, m.exponential(m.divide(m.add(1.0, x), m.subtract(1.0, x)), np.log))


def _lstm(m: Lanes, *operands: Any) -> Any:
    """Return the state, from four products with the input, four with the last state, and the cell: in the order i, o, f, g."""
    i, o, f, g = (m.add(x, y) for x, y in zip(operands[:4], operands[4:8], strict=True))
    cell = m.add(m.multiply(_sigmoid(m, f), operands[8]), m.multiply(_sigmoid(m, i), _tanh(m, g)))
    return m.multiply(_sigmoid(m, o), _tanh(m, cell))


def _gru(m: Lanes, *operands: Any) -> Any:
    """Return the state, from three products with the input, three with the last state, and this: in the order z, r, n."""
    z, r = (_sigmoid(m, m.add(x, y)) for x, y in zip(operands[:2], operands[3:5], strict=True))
    n = _tanh(m, m.add(operands[2], m.multiply(r, operands[5])))
    return m.add(n, m.multiply(z, m.subtract(operands[6], n)))


def _elu(m: Lanes, x: Any, factor: float = 1.0) -> Any:
    return m.choose(x > 0, x, m.multiply(factor, m.subtract(m.exponential(x), 1.0)))


def _all(combine: Callable[[Lanes, Any, Any], Any]) -> Callable[..., Any]:
    return lambda m, *operands: reduce(lambda a, b: combine(m, a, b), operands)


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation on the whole parts of numbers, which counts as a comparison."""
    return lambda m, *operands: m.choose(True, function(*(np.asarray(x).astype(np.int64) for x in operands)), 0.0)


WORDWISE: Mapping[str, Callable[..., Any]] = {
    "Add": Lanes.add,
    "Sub": Lanes.subtract,
    "Sum": _all(Lanes.add),
    "Mean": lambda m, *operands: m.multiply(_all(Lanes.add)(m, *operands), 1 / len(operands)),
    "Mul": Lanes.multiply,
    "Neg": lambda m, x: m.multiply(-1.0, x),
    "Div": Lanes.divide,
    "Sqrt": Lanes.root,
    "Reciprocal": lambda m, x: m.divide(1.0, x),
    "Max": _all(Lanes.larger),
    "Min": _all(Lanes.smaller),
    "Relu": lambda m, x: m.larger(x, 0.0),
    "Abs": lambda m, x: m.larger(x, -x),
    "Equal": lambda m, x, y: m.choose(x == y, 1.0, 0.0),
    "Greater": lambda m, x, y: m.choose(x > y, 1.0, 0.0),
    "Less": lambda m, x, y: m.choose(x < y, 1.0, 0.0),
    "GreaterOrEqual": lambda m, x, y: m.choose(x >= y, 1.0, 0.0),
    "LessOrEqual": lambda m, x, y: m.choose(x <= y, 1.0, 0.0),
    "Not": lambda m, x: m.choose(x == 0, 1.0, 0.0),
    "And": lambda m, x, y: m.choose((x != 0) & (y != 0), 1.0, 0.0),
    "Or": lambda m, x, y: m.choose((x != 0) | (y != 0), 1.0, 0.0),
    "Xor": lambda m, x, y: m.choose((x != 0) != (y != 0), 1.0, 0.0),
    "Where": lambda m, x, y, z: m.choose(x != 0, y, z),
    "Sign": lambda m, x: m.choose(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)),
    "ThresholdedRelu": lambda m, x: m.choose(x > 1.0, x, 0.0),
    "IsNaN": lambda m, x: m.choose(np.isnan(x), 1.0, 0.0),
    "IsInf": lambda m, x: m.choose(np.isinf(x), 1.0, 0.0),
    "BitShift": _whole(lambda x, y: np.left_shift(x, abs(y))),
    "BitwiseAnd": _whole(np.bitwise_and),
    "BitwiseNot": _whole(np.bitwise_not),
    "BitwiseOr": _whole(np.bitwise_or),
    "BitwiseXor": _whole(np.bitwise_xor),
    "Exp": Lanes.exponential,
    "Log": lambda m, x: m.exponential(x, np.log),
    "Sin": lambda m, x: m.exponential(x, np.sin),
    "Cos": lambda m, x: m.exponential(x, np.cos),
    "Asin": lambda m, x: m.exponential(np.clip(x, -1.0, 1.0), np.arcsin),
    "Acos": lambda m, x: m.exponential(np.clip(x, -1.0, 1.0), np.arccos),
    "Atan": lambda m, x: m.exponential(x, np.arctan),
    "Tan": lambda m, x: m.divide(m.exponential(x, np.sin), m.exponential(x, np.cos)),
    "Sinh": lambda m, x: _hyperbolic(m, x, Lanes.subtract),
    "Cosh": lambda m, x: _hyperbolic(m, x, Lanes.add),
    "Asinh": lambda m, x: _area(m, x, 1.0),
    "Acosh": lambda m, x: _area(m, x, -1.0),
    "Atanh": _atanh,
    "Floor": lambda m, x: m.convert(x, np.floor),
    "Ceil": lambda m, x: m.convert(x, np.ceil),
    "Round": Lanes.convert,
    "Cast": Lanes.convert,
    "Mod": lambda m, x, y: m.subtract(x, m.multiply(y, m.convert(m.divide(x, y), np.floor))),
    "Pow": lambda m, x, y: m.exponential(m.multiply(y, m.exponential(x, np.log))),
    "Clip": _clipped,
    "LeakyRelu": lambda m, x: m.larger(x, m.multiply(0.01, x)),
    "PRelu": lambda m, x, y: m.choose(x >= 0, x, m.multiply(y, x)),
    "Sigmoid": _sigmoid,
    "Tanh": _tanh,
    "HardSigmoid": lambda m, x: _clipped(m, m.add(m.multiply(0.2, x), 0.5)),
    "HardSwish": lambda m, x: m.multiply(x, _clipped(m, m.add(m.multiply(1 / 6, x), 0.5))),
    "Swish": lambda m, x: _sigmoid(m, x, top=x),
    "SwiGLU": _swiglu,
    "GeGLU": lambda m, x, y: m.multiply(_gelu(m, x), y),
    "QuickGelu": lambda m, x: _sigmoid(m, x, -1.702, x),
    "Gelu": _gelu,
    "Elu": _elu,
    "Selu": lambda m, x: m.multiply(1.0507, _elu(m, x, 1.67326)),
    "Celu": lambda m, x: m.choose(x > 0, x, m.multiply(2.0, m.subtract(m.exponential(m.multiply(0.5, x)), 1.0))),
    "Shrink": lambda m, x: m.choose(x < -0.5, m.add(x, 0.5), m.choose(x > 0.5, m.subtract(x, 0.5), 0.0)),
    "Softsign": lambda m, x: m.divide(x, m.add(1.0, m.larger(x, -x))),
    "Softplus": lambda m, x: m.exponential(m.add(1.0, m.exponential(x)), np.log),
    "Mish": _mish,
    "Erf": _erf,
    "BatchNormalization": lambda m, x, y, z: m.add(m.multiply(x, y), z),
    "DequantizeLinear": lambda m, x: m.multiply(m.subtract(m.convert(x), 3.0), 0.1),
    "QuantizeLinear": lambda m, x: _clipped(m, m.add(m.convert(m.multiply(10.0, x)), 3.0), -128.0, 127.0),
    "RotaryEmbedding": lambda m, x, y, z: m.add(m.multiply(x, y), m.multiply(np.roll(x, 1), z)),
    "RNN": lambda m, x, y: _tanh(m, m.add(x, y)),
    "LSTM": _lstm,
    "GRU": _gru,
}
"""Operator -> its result at each element, from elements of the operands."""


def _softmax(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    """Return a softmax in three sweeps, or online: with a running maximum, and a sum that follows it."""
    x = operands[0]
    if blocks is None:
        top = m.largest(m.load(x))
        kept = m.store(m.exponential(m.subtract(m.load(x), top)))
        return m.store(m.multiply(m.load(kept), m.divide(1.0, m.total(kept))))
    top, total = _online(m, x, blocks)
    scale = m.divide(1.0, total)
    parts = [m.store(m.multiply(m.exponential(m.subtract(m.load(x[part]), top)), scale)) for part in blocks]
    return np.concatenate(parts)


def _online(m: Lanes, x: Values, blocks: Sequence[slice]) -> tuple[Any, Any]:
    """Return the maximum of a row, and the sum of exp(x - maximum), block by block."""
    top, total = np.float64(-np.inf), np.float64(0.0)
    for part in blocks:
        now = m.largest(m.load(x[part]), top)
        total = m.multiply(total, m.exponential(m.subtract(top, now)))
        total = m.total(m.exponential(m.subtract(m.load(x[part]), now)), total)
        top = now
    return top, total


def softmax_block(m: Lanes, x: Values, top: Any = -np.inf, total: Any = 0.0) -> tuple[Values, Any, Any, Any]:
    """Return exp(x - maximum) of a block of a row, the maximum and the sum so far, and the factor for partial results.

    Args:
        top, total: the maximum and the sum of the blocks before.
    """
    now = m.largest(m.load(x), top)
    factor = m.exponential(m.subtract(top, now))
    kept = m.store(m.exponential(m.subtract(m.load(x), now)))
    return kept, now, m.total(kept, m.multiply(total, factor)), factor


def softmax_rescale(m: Lanes, x: Values, factor: Any) -> Values:
    """Return the partial results of a row, for the maximum of a later block."""
    return m.store(m.multiply(m.load(x), factor))


def softmax_scale(m: Lanes, x: Values, total: Any) -> Values:
    """Return the results of a row, divided by the sum of all blocks."""
    return m.store(m.multiply(m.load(x), m.divide(1.0, total)))


def _top_and_total(m: Lanes, x: Values, blocks: Sequence[slice] | None) -> tuple[Any, Any]:
    """Return the maximum of a row, and the sum of exp(x - maximum)."""
    if blocks is not None:
        return _online(m, x, blocks)
    top = m.largest(m.load(x))
    return top, m.total(m.exponential(m.subtract(m.load(x), top)))


def _log_softmax(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    x = operands[0]
    top, total = _top_and_total(m, x, blocks)
    return m.store(m.subtract(m.load(x), m.add(top, m.exponential(total, np.log))))


def _shared(operands: Sequence[Values], place: int, default: float) -> Values:
    return operands[place] if place < len(operands) else np.full(operands[0].size, default)


def _mean_and_variance(m: Lanes, x: Values) -> tuple[Any, Any]:
    """Return the mean and the variance of a row."""
    total, squares = m.total(x), m.total(m.multiply(x, x))
    mean, square = m.multiply(total, 1 / x.size), m.multiply(squares, 1 / x.size)
    return mean, m.subtract(square, m.multiply(mean, mean))


def _moments(m: Lanes, values: Values) -> tuple[Any, Any]:
    """Return the mean of a row, and 1 / its standard deviation."""
    mean, variance = _mean_and_variance(m, m.load(values))
    return mean, m.divide(1.0, np.sqrt(m.add(variance, 1e-5)))


def _layer_norm(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    mean, scale = _moments(m, operands[0])
    scaled = m.multiply(m.subtract(m.load(operands[0]), mean), scale)
    gains, shifts = (m.load(_shared(operands, place, 2.0 - place), place) for place in (1, 2))
    return m.store(m.add(m.multiply(scaled, gains), shifts))


def _rms_norm(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    x = m.load(operands[0])
    square = m.multiply(m.total(m.multiply(x, x)), 1 / x.size)
    scale = m.divide(1.0, np.sqrt(m.add(square, 1e-5)))
    return m.store(m.multiply(m.multiply(m.load(x), scale), m.load(_shared(operands, 1, 1.0), 1)))


def _mean_variance(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    mean, scale = _moments(m, operands[0])
    return m.store(m.multiply(m.subtract(m.load(operands[0]), mean), scale))


def _unit_length(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    x = m.load(operands[0])
    length = m.root(m.total(m.multiply(x, x)))
    return m.store(m.multiply(m.load(x), m.divide(1.0, length)))


def _quantised(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    """Return whole numbers from 0 to 255, for the range of a row."""
    x = m.load(operands[0])
    low, high = -m.largest(-x), m.largest(x)
    scale = m.divide(1.0, m.multiply(1 / 255, max(m.subtract(high, low), 1e-9)))
    return m.store(_clipped(m, m.add(m.convert(m.multiply(scale, m.load(x))), -np.rint(low * scale)), 0.0, 255.0))


def _hardmax(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    place = _place(m, m.load(operands[0]), True)
    x = m.load(operands[0])
    return m.store(m.choose(np.arange(x.size) == place, 1.0, 0.0))


def _local_response(m: Lanes, x: Values) -> Any:
    total = m.add(1.0, m.multiply(1e-4 / x.size, m.total(m.multiply(x, x))))
    return m.divide(x[x.size // 2], m.exponential(m.multiply(0.75, m.exponential(total, np.log))))


def _interpolated(m: Lanes, x: Values) -> Any:
    a, b, c, d = np.resize(x, 4)
    left, right = (m.add(low, m.multiply(0.25, m.subtract(high, low))) for low, high in ((a, b), (c, d)))
    return m.add(left, m.multiply(0.75, m.subtract(right, left)))


def _running(kind: Operation, function: Callable[[Values], Values]) -> Program:
    def run(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
        return m.store(m._count(kind, function(m.load(operands[0]))))

    return run


def _log_sum(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    top, total = _top_and_total(m, operands[0], blocks)
    return m.store(m.add(top, m.exponential(total, np.log)))


def _scan(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
    """Return the next value of a channel whose state is 1: x, time step, and the vectors B, C and A of a state space."""
    x, step, inward, outward, decay = (m.load(_shared(operands, place, 1.0), place) for place in range(5))
    driven = m.multiply(m.multiply(step[0], x[0]), inward)
    state = m.add(m.multiply(m.exponential(m.multiply(step, decay)), 1.0), driven)
    return m.store(m.add(m.total(m.multiply(state, outward)), m.multiply(0.5, x[0])))


def _reduced(value: Callable[[Lanes, Values], Any]) -> Program:
    return lambda m, operands, blocks: m.store(value(m, m.load(operands[0])))


def _mean(m: Lanes, x: Values) -> Any:
    return m.multiply(m.total(x), 1 / x.size)


def _place(m: Lanes, x: Values, largest: bool) -> Any:
    m.operations["compare"] += x.size
    return float(x.argmax() if largest else x.argmin())


def _product(m: Lanes, x: Values) -> Any:
    m.operations["multiply"] += x.size
    return x.prod()


ROWS: Mapping[str, Program] = {
    "Softmax": _softmax,
    "SoftmaxBlock": lambda m, operands, blocks: softmax_block(m, operands[0])[0],
    "SoftmaxRescale": lambda m, operands, blocks: softmax_rescale(m, operands[0], 0.5),
    "SoftmaxScale": lambda m, operands, blocks: softmax_scale(m, operands[0], 2.0),
    "LogSoftmax": _log_softmax,
    **dict.fromkeys(("LayerNormalization", "InstanceNormalization", "GroupNormalization"), _layer_norm),
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms_norm,
    "SelectiveScan": _scan,
    "LpNormalization": _unit_length,
    "DynamicQuantizeLinear": _quantised,
    "Hardmax": _hardmax,
    "LRN": _reduced(_local_response),
    "Resize": _reduced(_interpolated),
    "CumSum": _running("add", np.cumsum),
    "CumProd": _running("multiply", np.cumprod),
    "ReduceLogSum": _reduced(lambda m, x: m.exponential(m.total(x), np.log)),
    "ReduceLogSumExp": _log_sum,
    "ReduceSum": _reduced(Lanes.total),
    "ReduceL1": _reduced(lambda m, x: m.total(m.larger(x, -x))),
    **dict.fromkeys(("ReduceMean", "AveragePool", "GlobalAveragePool"), _reduced(_mean)),
    **dict.fromkeys(("ReduceMax", "MaxPool", "GlobalMaxPool", "TopK"), _reduced(Lanes.largest)),
    "ReduceMin": _reduced(lambda m, x: -m.largest(-x)),
    "ArgMax": _reduced(lambda m, x: _place(m, x, True)),
    "ArgMin": _reduced(lambda m, x: _place(m, x, False)),
    "ReduceVariance": _reduced(lambda m, x: _mean_and_variance(m, x)[1]),
    "ReduceProd": _reduced(_product),
    "ReduceSumSquare": _reduced(lambda m, x: m.total(m.multiply(x, x))),
    **dict.fromkeys(("ReduceL2", "LpPool", "GlobalLpPool"), _reduced(lambda m, x: m.root(m.total(m.multiply(x, x))))),
}
"""Operator along rows -> its program. `TopK` executes the first of its maxima over all the comparisons."""


def _wordwise(function: Callable[..., Any]) -> Program:
    def run(m: Lanes, operands: Sequence[Values], blocks: Sequence[slice] | None) -> Values:
        return m.store(function(m, *(m.load(values, place) for place, values in enumerate(operands))))

    return run


PROGRAMS: Mapping[str, Program] = {**ROWS, **{name: _wordwise(function) for name, function in WORDWISE.items()}}


@dataclass(frozen=True, eq=False)
class Executed:
    """An executed layer: its counts, and the operands and the result of each row."""

    counts: VectorCounts
    operands: Sequence[Sequence[Values]]
    results: Sequence[Values]


def execute(placed: Placement, seed: int = 0) -> Executed:
    """Execute a layer on random numbers between 1/4 and 2, of both signs where the operator takes such.

    Raises:
        NotConformableError: see `Placement.check`; a file states the layer's operations, or the operator has other operands
            than its program (`program`).
    """
    placed.check()
    layer, work = placed.layer, placed.work
    if work != OPERATORS.get(layer.operator) and (layer.operator not in OF_SEVERAL or work.row):
        placed.refuse("program", "a file states its operations; only those of the table have a program to execute")
    if layer.operator in ROWS and len(layer.operands) > TAKEN.get(layer.operator, 1):
        placed.refuse("program", f"{layer.operator} has at most {TAKEN.get(layer.operator, 1)} operands")
    program, draw = PROGRAMS[layer.operator], np.random.default_rng(seed)
    blocks = None
    if placed.blocks is not None:
        length = -(-layer.row // placed.blocks)
        blocks = [slice(start, min(start + length, layer.row)) for start in range(0, layer.row, length)]
    traffic, memory, every = _Traffic(placed), placed.memory.name, Lanes()
    units = [range(layer.rows)[start:end] for start, end in _spans(layer.rows, placed.units)]
    operands, results, most = dict[int, Sequence[Values]](), dict[int, Values](), Lanes()
    signs = (1.0,) if layer.operator in POSITIVE else (-1.0, 1.0)
    shared = {operand.name: _numbers(draw, operand.words, signs) for operand in layer.operands if operand.shared}
    for step in range(max(map(len, units))):
        for number, rows in enumerate(units):
            if step >= len(rows):
                continue
            row, lanes = rows[step], Lanes()
            operands[row] = [
                np.resize(shared[operand.name] if operand.shared else _numbers(draw, layer.row, signs), layer.row)
                for operand in layer.operands
            ]
            for operand in layer.operands:
                again = work.passes if blocks is not None and operand is layer.operands[0] else 1
                for _ in range(again):
                    traffic.deliver(operand, row, number)
            try:
                results[row] = program(lanes, operands[row], blocks)
            except TypeError:
                placed.refuse("program", f"{layer.operator} has other operands than these {len(layer.operands)}")
            if +lanes.operations != work.operations(1, layer.row, None if blocks is None else len(blocks)):
                placed.refuse("program", f"a file states other operations than those of {layer.operator}")
            words = _span(layer.result, layer.rows, row)
            lanes.written += words - results[row].size  # a result may be narrower or wider, such as of an arg max
            traffic.leave(lanes, row, number, words)
            for total in (every, most) if number == 0 else (every,):
                total.operations.update(lanes.operations)
        traffic.forget()
    counts = traffic.counts
    counts.operations, counts.most = every.operations, most.operations
    assert memory in {name for name, _ in counts.moved}
    return Executed(counts, [operands[row] for row in range(layer.rows)], [results[row] for row in range(layer.rows)])


OF_SEVERAL = frozenset("Sum Mean Max Min".split())
"""Operators that combine any number of operands."""
TAKEN = {
    "LayerNormalization": 3,
    "InstanceNormalization": 3,
    "GroupNormalization": 3,
    "RMSNormalization": 2,
    "SelectiveScan": 5,
}
"""Operator along rows -> its operands, if it has more than one, such as scales and shifts."""
POSITIVE = frozenset("Div Sqrt Reciprocal Log Pow Mod ReduceLogSum".split())
"""Operators that are executed on positive numbers."""


def _numbers(draw: np.random.Generator, count: int, signs: Sequence[float]) -> Values:
    return np.asarray(draw.uniform(0.25, 2.0, count) * draw.choice(signs, count), np.float64)


def _spans(rows: int, units: int) -> list[tuple[int, int]]:
    """Return the rows of each unit, first and end: the first units have one more if they do not divide."""
    share, rest = divmod(rows, units)
    starts = [number * share + min(number, rest) for number in range(units + 1)]
    return list(zip(starts, starts[1:], strict=False))


def _span(words: int, rows: int, row: int) -> int:
    """Return how many words belong to a row: word w belongs to the row at w / words of all rows."""
    return -(-(row + 1) * words // rows) - -(-row * words // rows)


class _Traffic:
    """Words that reach and leave memories."""

    def __init__(self, placed: Placement) -> None:
        self.placed, self.counts = placed, VectorCounts()
        self.kept = set[tuple[str, int, str]]()  # memory, instance, operand whose words of the moment it keeps
        self.layer = placed.layer

    def _add(self, memory: str, tensor: str, kind: str, words: int, unit: int) -> None:
        first = unit // (self.placed.units // self.placed.instances[memory]) == 0
        self.counts.add(memory, tensor, kind, words, words if first else 0)

    def deliver(self, operand: Operand, row: int, unit: int) -> None:
        """Bring the words of a row, or those that rows share, into the memory of a unit."""
        path = self.placed.paths[operand.name]
        self._reach(operand, row, unit, len(path) - 1)

    def _reach(self, operand: Operand, row: int, unit: int, place: int) -> None:
        path = self.placed.paths[operand.name]
        memory = path[place]
        instance = unit // (self.placed.units // self.placed.instances[memory.name])
        name = operand.name if operand.shared else f"{operand.name} {row}"
        if place == 0 or (memory.name, instance, name) in self.kept:
            return
        self._reach(operand, row, unit, place - 1)
        words = operand.words if operand.shared else _span(operand.words, self.layer.rows, row)
        self._add(path[place - 1].name, operand.name, "reads", words, unit)
        self._add(memory.name, operand.name, "fills", words, unit)
        if self.placed.holds(memory):
            self.kept.add((memory.name, instance, name))

    def leave(self, lanes: Lanes, row: int, unit: int, words: int) -> None:
        """Count what a unit read and wrote for a row, and send the result to its home."""
        home, path = self.placed.memory.name, self.placed.paths[RESULT]
        for place, operand in enumerate(self.layer.operands):
            self._add(home, operand.name, "reads", lanes.read[place], unit)
        self._add(home, RESULT, "updates", lanes.written, unit)
        for inner, outer in zip(path[::-1], path[-2::-1], strict=False):
            self._add(inner.name, RESULT, "reads", words, unit)
            self._add(outer.name, RESULT, "updates", words, unit)

    def forget(self) -> None:
        """Drop the rows of the moment; what rows share stays."""
        shared = {operand.name for operand in self.layer.operands if operand.shared}
        self.kept = {item for item in self.kept if item[2] in shared}
