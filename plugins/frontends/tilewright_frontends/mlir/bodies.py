"""Vector layers of operations of MLIR with a body: reductions, windows, maps, `linalg.generic`, and nests of affine loops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tilewright.schema.origin import Origin
from tilewright.schema.vector import OPERATORS, OperatorWork, VectorLayer
from tilewright_frontends.mlir import affine, moves
from tilewright_frontends.mlir.tree import Block, OpenShape, Operation, Value
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.vectors import NO_ROW, NO_SHAPE, layer_with

NAMES: Mapping[str, str] = {
    **{
        name: name.capitalize()
        for name in "add sub mul div erf exp log sigmoid tanh floor ceil abs sin cos tan".split()
    },
    **{
        name: name.capitalize()
        for name in "reciprocal pow equal greater cast sinh cosh asin acos atan sqrt sign".split()
    },
    **dict.fromkeys("addf addi addv2".split(), "Add"),
    **dict.fromkeys("subf subi subtract".split(), "Sub"),
    **dict.fromkeys("mulf muli multiply square".split(), "Mul"),
    **dict.fromkeys("divf divsi divui divide realdiv intdiv".split(), "Div"),
    **dict.fromkeys("remf remsi remui remainder".split(), "Mod"),
    **dict.fromkeys("negf negate neg".split(), "Neg"),
    **dict.fromkeys("maximumf maxnumf maxsi maxui maximum max".split(), "Max"),
    **dict.fromkeys("minimumf minnumf minsi minui minimum min".split(), "Min"),
    **dict.fromkeys("cmpf cmpi compare".split(), "Equal"),
    **dict.fromkeys("andi and logical_and".split(), "And"),
    **dict.fromkeys("ori or logical_or".split(), "Or"),
    **dict.fromkeys("xori xor logical_xor".split(), "Xor"),
    **dict.fromkeys("not logical_not".split(), "Not"),
    **dict.fromkeys(
        "shli shrsi shrui shift_left shift_right_arithmetic shift_right_logical arithmetic_right_shift logical_left_shift "
        "logical_right_shift".split(),
        "BitShift",
    ),
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "bitwise_not": "BitwiseNot",
    "greater_equal": "GreaterOrEqual",
    "select": "Where",
    **dict.fromkeys(
        "extf truncf sitofp uitofp fptosi fptoui extsi extui trunci bitcast_convert convert "
        "convert_element_type".split(),
        "Cast",
    ),
    **dict.fromkeys("exponential exp2".split(), "Exp"),
    **dict.fromkeys("log2 log10".split(), "Log"),
    "sine": "Sin",
    "cosine": "Cos",
    "atan2": "Atan",
    **dict.fromkeys("power powf fpowi ipowi".split(), "Pow"),
    **dict.fromkeys("rsqrt cbrt".split(), "Sqrt"),
    **dict.fromkeys("round roundeven round_nearest_even round_nearest_afz trunc".split(), "Round"),
    **dict.fromkeys("absf absi".split(), "Abs"),
    "logistic": "Sigmoid",
    **dict.fromkeys("is_finite isfinite isnan".split(), "IsNaN"),
    "copysign": "Sign",
    **dict.fromkeys("clamp relu6".split(), "Clip"),
    **{name: name.capitalize() for name in "relu elu selu softplus softsign gelu mish".split()},
    "leakyrelu": "LeakyRelu",
    "elews_mul": "Mul",
}
"""Operation on elements, of `arith`, `math`, `stablehlo`, `tosa`, `tf` or `ta`, -> the name of the same work in the table of operations."""
SEVERAL: Mapping[str, tuple[str, ...]] = {
    "fma": ("Mul", "Add"),
    **dict.fromkeys("log1p log_plus_one".split(), ("Add", "Log")),
    **dict.fromkeys("expm1 exponential_minus_one".split(), ("Exp", "Sub")),
    "squareddifference": ("Sub", "Mul"),
}
"""Operation on elements -> names of its work, if it is that of several rows."""
SILENT = frozenset("constant yield return index index_cast index_castui load store apply linalg.yield".split())
"""Operations in a body that compute nothing, or addresses."""
REDUCED = {"Add": "ReduceSum", "Max": "ReduceMax", "Min": "ReduceMin", "Mul": "ReduceProd"}
WINDOWS = {"Max": "MaxPool"}
MOVED = "moves or names data, computes nothing"
Shapes = Callable[[Value], OpenShape | None]


def parts_of(kind: str) -> tuple[str, ...]:
    """Return the rows of the table of operations whose work an operation on elements does; empty: not known."""
    return SEVERAL.get(kind) or ((NAMES[kind],) if kind in NAMES else ())


def work_of(names: Sequence[str]) -> OperatorWork:
    """Return the sum of the work of rows of the table, per element."""
    element, rows = Counter[str](), Counter(names)
    for name in names:
        element.update({kind: count for kind, count in OPERATORS[name].element.items()})
    return OperatorWork.model_validate({"element": element, "source": f"the sum of {', '.join(rows)}"})


def _names(body: Block) -> list[str]:
    """Return the rows of the table for the operations of a body. Raises Unsupported."""
    names = list[str]()
    for operation in body.operations:
        kind = operation.kind.lower()
        if kind in SILENT:
            continue
        parts = parts_of(kind)
        if not parts or operation.regions:
            raise Unsupported(f"the table of operations has no row for {operation.name}")
        names += parts
    return names


def vector_of(
    operation: Operation, name: str, shape_of: Shapes, is_weight: Callable[[Value], bool], times: int, origin: Origin
) -> VectorLayer | str:
    """Return the vector layer of an operation with a body, or why it has none; `MOVED` if the body computes nothing."""
    try:
        if operation.name == "affine.for":
            return _nest(operation, name, times, origin)
        names = _names(operation.body)
        geometry = _geometry(operation, shape_of)
    except Unsupported as error:
        return str(error)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return NO_ROW
    if geometry is None:
        return NO_SHAPE
    rows, row, read, made = geometry
    if not names:
        return MOVED
    window = operation.kind in ("reduce_window",)
    return _layer(operation, name, names, (rows, row), read, made, is_weight, times, origin, window)


def _layer(
    operation: Operation,
    name: str,
    names: Sequence[str],
    sizes: tuple[int, int],
    read: Sequence[tuple[Value, Shape]],
    made: int,
    is_weight: Callable[[Value], bool],
    times: int,
    origin: Origin,
    window: bool = False,
) -> VectorLayer | str:
    rows, row = sizes
    label, work = operation.kind, work_of(names)
    plain = (WINDOWS if window else REDUCED).get(names[0]) if row > 1 else names[0]
    if len(names) == 1 and plain is not None:
        label, work = plain, OPERATORS[plain]
    operands = sorted(
        ((math.prod(shape), is_weight(value)) for value, shape in read), key=lambda pair: (pair[1], -pair[0])
    )
    large = [pair for pair in operands if pair[0] > 1] or operands[:1] or [(1, False)]
    return layer_with(name, label, work, rows, row, large, made, rows * row, times, origin)


def _geometry(operation: Operation, shape_of: Shapes) -> tuple[int, int, list[tuple[Value, Shape]], int] | None:
    """Return rows, elements of a row, what is read, and the words of the result; None: a shape is not known."""
    outs = len(operation.results) or 1
    given = [moves.fixed(shape_of(value)) for value in operation.operands]
    if any(shape is None for shape in given):
        return None
    shapes = [shape for shape in given if shape is not None]
    values, result = list(zip(operation.operands, shapes, strict=True)), shapes[-1]
    used = {operand for inner in operation.body.operations for operand in inner.operands}
    if maps := operation.maps("indexing_maps"):
        sizes = affine.loop_sizes(maps, shapes)
        kept = {loop for rank in maps[-1].results if not isinstance(rank, str) for loop in getattr(rank, "terms", {})}
        rows = math.prod(sizes[loop] for loop in kept)
        arguments = operation.body.arguments
        read = [pair for pair, argument in zip(values[:-outs], arguments, strict=False) if argument in used]
        return rows, math.prod(sizes) // max(rows, 1), read, math.prod(result)
    results = [moves.fixed(shape_of(value)) for value in operation.results]
    made = next((math.prod(shape) for shape in results if shape is not None), math.prod(result))
    inputs = values[: len(values) // 2] if operation.kind in ("reduce", "reduce_window") else values[:-outs]
    if operation.kind == "reduce_window":
        window = operation.attributes.get("window_dimensions")
        row = math.prod(size for size in window if isinstance(size, int)) if isinstance(window, tuple) else 0
        return made, row, inputs, made
    return made, math.prod(inputs[0][1]) // max(made, 1), inputs, made


def _nest(operation: Operation, name: str, times: int, origin: Origin) -> VectorLayer | str:
    """Return the vector layer of a perfect nest of affine loops."""
    loops, body = affine.perfect(operation)
    names = _names(body)
    loads = [part.operands[0] for part in body.operations if part.name.endswith(".load")]
    stores = [part.operands[1] for part in body.operations if part.name.endswith(".store")]
    shapes = {value: moves.fixed(value.shape) for value in (*loads, *stores)}
    if None in shapes.values() or len(stores) != 1:
        return NO_SHAPE if len(stores) == 1 else f"{len(stores)} stores in the body; expected one"
    if not names:
        return MOVED
    known = {value: shape for value, shape in shapes.items() if shape is not None}
    made, steps = math.prod(known[stores[0]]), math.prod(loops.sizes)
    rows = made if steps % made == 0 and stores[0] in loads else steps
    read = [(value, known[value]) for value in dict.fromkeys(loads) if value is not stores[0]]
    written = min(made, steps)
    return _layer(operation, name, names, (rows, steps // rows), read, written, lambda _: False, times, origin)
