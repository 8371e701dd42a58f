"""Explicit loop nests: `affine.for`, and linalg operators with affine maps.

A nest becomes a problem if its body adds a product of at least two elements to one element of the
result. Every subscript must be a sum of loops with whole coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.schema.problem import Problem
from tilewright_frontends import nests
from tilewright_frontends.mlir.tree import (
    AffineMap,
    Block,
    Linear,
    NotLinear,
    OpenShape,
    Operation,
    Value,
    result_name,
)
from tilewright_frontends.nests import Shape, Unsupported
from tilewright_frontends.products import Product
from tilewright_frontends.views import Layout

ADDITIONS = frozenset({"arith.addf", "arith.addi", "complex.add"})
PRODUCTS = frozenset({"arith.mulf", "arith.muli", "complex.mul"})
CASTS = frozenset(
    f"arith.{kind}" for kind in "extf truncf extsi extui trunci sitofp uitofp fptosi fptoui index_cast bitcast".split()
)
MAX_FACTORS = 16
ENDS = frozenset({"affine.yield", "linalg.yield"})

Leaf = tuple[Value, tuple[Linear, ...]]
"""A buffer and the subscripts of one element."""


# -- the body
# ------------------------------------------------------------------------------------------------------


def factors_of(
    root: Value, made: Mapping[Value, Operation], is_result: Callable[[Value], bool], name: str
) -> list[Value]:
    """Return the factors of the product that is added to the stored element.

    Args:
        root: the value that is stored.
        made: value -> the operation that produces it.
        is_result: whether a value is the stored element before the addition.
        name: name of the result, for messages.

    Raises:
        Unsupported: the element is assigned, the last operation is no addition, or nothing is
            multiplied.
    """
    root = _without_casts(root, made)
    last = made.get(root)
    if last is None or last.kind == "constant":
        raise Unsupported(f"{name} is assigned, not summed into")
    if last.name == "math.fma":
        first, second, added = last.operands
        if not is_result(_without_casts(added, made)):
            raise Unsupported(f"the sum does not add to the element of {name} that is stored")
        return _factors([first, second], made)
    if last.name in PRODUCTS or last.name.endswith("load"):
        raise Unsupported(f"{name} is assigned, not summed into")
    if last.name not in ADDITIONS:
        raise Unsupported(f"it ends with {last.name}, not with an addition to {name}")
    parts = [_without_casts(operand, made) for operand in last.operands]
    rest = [part for part in parts if not is_result(part)]
    if len(rest) == 2:
        raise Unsupported(f"the sum does not add to the element of {name} that is stored")
    if not rest:
        raise Unsupported("nothing is multiplied: a sum")
    factors = _factors(rest, made)
    if len(factors) < 2:
        raise Unsupported("nothing is multiplied: a sum")
    return factors


def _without_casts(value: Value, made: Mapping[Value, Operation]) -> Value:
    while value in made and made[value].name in CASTS:
        value = made[value].operands[0]
    return value


def _factors(waiting: list[Value], made: Mapping[Value, Operation]) -> list[Value]:
    """Return the factors of a product without constants."""
    values: list[Value] = []
    waiting = waiting[::-1]
    while waiting:
        value = _without_casts(waiting.pop(), made)
        maker = made.get(value)
        if maker is not None and maker.name in PRODUCTS:
            waiting += reversed(maker.operands)
        elif maker is None or not maker.name.startswith("arith."):
            values.append(value)
        elif maker.kind != "constant":
            raise Unsupported(f"{maker.name} in the product")
        if len(values) + len(waiting) > MAX_FACTORS:
            raise Unsupported(f"a product of more than {MAX_FACTORS} factors")
    return values


def _makers(block: Block) -> dict[Value, Operation]:
    return {result: operation for operation in block.operations for result in operation.results}


def operations_in(block: Block) -> int:
    """Return the number of arithmetic operations of one iteration."""
    return sum(
        operation.name.startswith(("arith.", "math.")) and operation.kind != "constant"
        for operation in block.operations
    )


# -- the nest
# ------------------------------------------------------------------------------------------------------


def problem_of(
    name: str, sizes: Sequence[int], operands: Sequence[Sequence[Linear]], result: Sequence[Linear]
) -> Problem:
    """Return the problem: result += product of operands, each given by its subscripts.

    Args:
        name: name of the problem.
        sizes: sizes of the loops.
        operands: subscripts of every operand.
        result: subscripts of the result.

    Raises:
        Unsupported: a loop indexes no tensor or the result only, or runs in two directions.
    """
    tensors = _upright([[rank.terms for rank in ranks if rank.terms] for ranks in (*operands, result)])
    *read, written = [{loop for rank in ranks for loop in rank} for ranks in tensors]
    used = set().union(*read)
    for loop in sorted(written - used):
        raise Unsupported(f"loop {loop + 1} indexes the result only")
    for loop, size in enumerate(sizes):
        if loop not in used and size > 1:
            raise Unsupported(f"loop {loop + 1} indexes no tensor: it repeats the same work")
    names = _names(tensors)
    order = sorted(used, key=lambda loop: (loop not in written, loop))
    ranks = [[{names[loop]: factor for loop, factor in rank.items()} for rank in tensor] for tensor in tensors]
    return nests.contraction(name, {names[loop]: sizes[loop] for loop in order}, ranks[:-1], ranks[-1])


def _upright(tensors: Sequence[Sequence[Mapping[int, int]]]) -> list[list[dict[int, int]]]:
    """Return the subscripts with positive coefficients.

    A loop that is alone in a coordinate may run in either direction. A loop that runs backwards in
    every sum is reversed.
    """
    sums = [rank for ranks in tensors for rank in ranks if len(rank) > 1]
    for loop in {loop for rank in sums for loop in rank}:
        if len({rank[loop] > 0 for rank in sums if loop in rank}) > 1:
            raise Unsupported(f"loop {loop + 1} runs forwards in one subscript and backwards in another")
    return [[{loop: abs(factor) for loop, factor in rank.items()} for rank in ranks] for ranks in tensors]


def _names(tensors: Sequence[Sequence[Mapping[int, int]]]) -> dict[int, str]:
    """Return loop names: B0, M, N, K for a contraction of two operands, otherwise letters."""
    loops = sorted({loop for ranks in tensors for rank in ranks for loop in rank})
    is_plain = all(list(rank.values()) == [1] for ranks in tensors for rank in ranks)
    if len(tensors) != 3 or not is_plain:
        return {loop: chr(ord("a") + place) if place < 26 else f"d{place}" for place, loop in enumerate(loops)}
    letters = {(1, 1, 1): "B", (1, 0, 1): "M", (0, 1, 1): "N", (1, 1, 0): "K"}
    groups: dict[str, list[int]] = {}
    for loop in loops:
        first, second, result = (int(any(loop in rank for rank in ranks)) for ranks in tensors)
        groups.setdefault(letters.get((first, second, result), "L"), []).append(loop)
    return {
        loop: letter if len(group) == 1 and letter in "MNK" else f"{letter}{place}"
        for letter, group in groups.items()
        for place, loop in enumerate(group)
    }


# -- linalg
# --------------------------------------------------------------------------------------------------------


def has_maps(operation: Operation) -> bool:
    """Return whether the operation is one of linalg that its maps describe completely."""
    named = ("matmul", "batch_matmul", "batch_reduce_matmul", "generic", "contract")
    return operation.name in [f"linalg.{name}" for name in named] and len(operation.maps("indexing_maps")) > 0


def linalg_nest(operation: Operation, shapes: Sequence[Shape], name: str) -> Product:
    """Return the product of a `linalg.generic` or a similar operation.

    Raises:
        Unsupported: it is no product over affine loops.
        ValueError: maps and shapes contradict each other.
    """
    maps = operation.maps("indexing_maps")
    sizes = loop_sizes(maps, shapes)
    places = factor_places(operation)
    subscripts = [_linear(affine_map) for affine_map in maps]
    operands = [subscripts[place] for place in places]
    problem = problem_of(name, sizes, operands, subscripts[-1])
    values = (*(f"x{place}" for place in places), result_name(operation))
    given = [*(shapes[place] for place in places), shapes[-1]]
    return Product(problem, values, layouts=layouts(problem, [*operands, subscripts[-1]], given))


def layouts(
    problem: Problem, subscripts: Sequence[Sequence[Linear]], shapes: Sequence[OpenShape | None]
) -> dict[str, Layout]:
    """Return the layouts of a problem's tensors, given by the subscripts and the shapes of their values.

    Absent are tensors in another order, because a loop that indexes them runs backwards. So are those with a fixed
    subscript that takes a part.
    """
    backwards = {loop for ranks in subscripts for rank in ranks for loop, factor in rank.terms.items() if factor < 0}
    by_tensor = dict[str, Layout]()
    for tensor, ranks, shape in zip(problem.tensors, subscripts, shapes, strict=True):
        if shape is None or None in shape or any(not backwards.isdisjoint(rank.terms) for rank in ranks):
            continue
        fixed = [rank.constant for rank in ranks if rank.terms]
        if len(fixed) == len(ranks):
            by_tensor[tensor.name] = Layout(pads=tuple(-size for size in fixed))
        elif not any(fixed) and all(rank.terms or size == 1 for rank, size in zip(ranks, shape, strict=True)):
            by_tensor[tensor.name] = Layout()
    return by_tensor


def factor_places(operation: Operation) -> list[int]:
    """Return which operands of an operation with maps are multiplied, in the order of the product.

    Raises:
        Unsupported: its body is no sum of products of operands.
    """
    if not operation.regions:
        return list(range(len(operation.maps("indexing_maps")) - 1))
    body = operation.body
    ends = [end for end in body.operations if end.name in ENDS]
    if len(ends) != 1 or len(ends[0].operands) != 1:
        raise Unsupported("it has several results")
    result = body.arguments[-1]
    factors = factors_of(ends[0].operands[0], _makers(body), lambda value: value is result, "the result")
    if any(factor not in body.arguments or factor is result for factor in factors):
        raise Unsupported("a factor is not an element of an operand")
    return [body.arguments.index(factor) for factor in factors]


def loop_sizes(maps: Sequence[AffineMap], shapes: Sequence[Shape]) -> list[int]:
    """Return the size of every loop, from a coordinate that consists of it alone.

    Raises:
        Unsupported: there is no such coordinate.
        ValueError: sizes contradict each other.
    """
    sizes: dict[int, int] = {}
    for affine_map, shape in zip(maps, shapes, strict=False):
        nests.equal(len(affine_map.results), len(shape), "a map and the shape of its operand differ in rank")
        for rank, size in zip(affine_map.results, shape, strict=True):
            if isinstance(rank, Linear) and list(rank.terms.values()) == [1] and not rank.constant:
                (loop,) = rank.terms
                if sizes.setdefault(loop, size) != size:
                    raise ValueError(f"loop {loop + 1} has sizes {sizes[loop]} and {size}")
    count = maps[0].operands
    if missing := [loop for loop in range(count) if loop not in sizes]:
        raise Unsupported(f"the size of loop {missing[0] + 1} is unknown: no subscript consists of it alone")
    for affine_map, shape in zip(maps, shapes, strict=False):
        for rank, size in zip(affine_map.results, shape, strict=True):
            if isinstance(rank, Linear):
                last = rank.constant + sum(
                    factor * (sizes[loop] - 1) for loop, factor in rank.terms.items() if factor > 0
                )
                if last >= size:
                    raise ValueError(f"a subscript reaches {last} where there are {size} elements")
    return [sizes[loop] for loop in range(count)]


def _linear(affine_map: AffineMap) -> list[Linear]:
    return [_sum_of(result) for result in affine_map.results]


def _sum_of(result: Linear | NotLinear) -> Linear:
    if isinstance(result, NotLinear):
        raise Unsupported(f"'{result.text}' in a subscript is not a sum of loop variables")
    return result


# -- affine.for
# ----------------------------------------------------------------------------------------------------


@dataclass
class _Loops:
    """Loops of a nest, outermost first, and index values as sums of these loops."""

    sizes: list[int] = field(default_factory=list)
    known: dict[Value, Linear] = field(default_factory=dict)

    def enter(self, loop: Operation) -> None:
        """Add a loop.

        Raises:
            Unsupported: bounds are not constant, the loop never runs, or it carries values.
        """
        number = len(self.sizes)
        if loop.results:
            raise Unsupported(f"loop {number + 1} carries values (iter_args); print the nest before scalar replacement")
        low, high = _bound(loop, "lowerBoundMap", number), _bound(loop, "upperBoundMap", number)
        (step,) = loop.integers("step", 1)
        if step < 1 or high <= low:
            raise Unsupported(f"loop {number + 1} runs from {low} to {high} by {step}: it has no iteration")
        self.sizes.append(-(-(high - low) // step))
        self.known[loop.body.arguments[0]] = Linear({number: step}, low)

    def value(self, operand: Value, made: Mapping[Value, Operation]) -> Linear:
        """Return an index value as a sum of loops. Raises Unsupported."""
        if operand in self.known:
            return self.known[operand]
        maker = made.get(operand)
        if maker is not None and maker.kind == "constant":
            constant = maker.attributes.get("value")
            if isinstance(constant, int):
                return Linear({}, constant)
        if maker is not None and maker.name == "affine.apply":
            self.known[operand] = self.applied(maker, "map", maker.operands, made)[0]
            return self.known[operand]
        if maker is not None and maker.name in CASTS:
            return self.value(maker.operands[0], made)
        if maker is not None and maker.name.endswith("load"):
            raise Unsupported("a subscript is read from memory")
        raise Unsupported("a subscript is not made of loop variables")

    def applied(
        self, operation: Operation, key: str, operands: Sequence[Value], made: Mapping[Value, Operation]
    ) -> list[Linear]:
        """Return the results of an operation's map as sums of loops."""
        affine_map = operation.attributes.get(key)
        if not isinstance(affine_map, AffineMap):
            return [self.value(operand, made) for operand in operands]
        nests.equal(affine_map.operands, len(operands), f"a map and its operands at {operation.at} differ in number")
        return [self._substituted(_sum_of(rank), operands, made) for rank in affine_map.results]

    def _substituted(self, rank: Linear, operands: Sequence[Value], made: Mapping[Value, Operation]) -> Linear:
        terms: dict[int, int] = {}
        constant = rank.constant
        for place, factor in rank.terms.items():
            term = self.value(operands[place], made)
            constant += factor * term.constant
            for loop, times in term.terms.items():
                terms[loop] = terms.get(loop, 0) + factor * times
        return Linear({loop: factor for loop, factor in terms.items() if factor}, constant)


def _bound(loop: Operation, key: str, number: int) -> int:
    affine_map = loop.attributes.get(key)
    which = "lower" if key.startswith("lower") else "upper"
    if not isinstance(affine_map, AffineMap) or len(affine_map.results) != 1:
        raise Unsupported(f"loop {number + 1} has no constant {which} bound (min or max); do not tile")
    (bound,) = affine_map.results
    if not isinstance(bound, Linear) or bound.terms:
        raise Unsupported(f"loop {number + 1} has no constant {which} bound; fix the shape, do not tile")
    return bound.constant


def perfect(operation: Operation) -> tuple[_Loops, Block]:
    """Return the loops of a perfect nest of `affine.for`, and the innermost body.

    Raises:
        Unsupported: it is no such nest, or a bound is not constant.
        ValueError: it contradicts itself.
    """
    loops = _Loops()
    body = operation.body
    loops.enter(operation)
    while (
        len(inner := [statement for statement in body.operations if statement.name not in ENDS]) == 1
        and inner[0].name == "affine.for"
    ):
        loops.enter(inner[0])
        body = inner[0].body
    for loop in inner:
        if loop.name == "affine.for":
            beside = ", ".join(sorted({other.name for other in inner if other is not loop})) or "another loop"
            raise Unsupported(f"an imperfect nest: {beside} next to a loop; initialise in a separate nest")
        if loop.regions:
            raise Unsupported(f"{loop.name} in the body")
    return loops, body


def affine_nest(operation: Operation, name: str) -> tuple[Product, dict[str, Value]]:
    """Return the product of a perfect nest of `affine.for`, and its buffers by their names there, the result last.

    Raises:
        Unsupported: it is no product over affine loops.
        ValueError: it contradicts itself.
    """
    loops, body = perfect(operation)
    inner = [statement for statement in body.operations if statement.name not in ENDS]
    made = _makers(body)
    stores = [statement for statement in inner if statement.name.endswith(".store")]
    if len(stores) != 1:
        raise Unsupported(f"{len(stores)} stores in the body; expected one")
    target = stores[0].operands[1]
    written = loops.applied(stores[0], "map", stores[0].operands[2:], made)
    read = {
        statement.results[0]: _element(statement, loops, made)
        for statement in inner
        if statement.name.endswith(".load")
    }
    factors = factors_of(
        stores[0].operands[0],
        made,
        lambda value: value in read and read[value] == (target, tuple(written)),
        "the result",
    )
    if any(factor not in read for factor in factors):
        raise Unsupported("a factor is not an element of a tensor")
    if any(read[factor][0] is target for factor in factors):
        raise Unsupported("the result is also a factor")
    subscripts = [*(read[factor][1] for factor in factors), written]
    problem = problem_of(name, loops.sizes, subscripts[:-1], written)
    buffers = [*(read[factor][0] for factor in factors), target]
    known = layouts(problem, subscripts, [buffer.shape for buffer in buffers])
    values = {f"b{place}": buffer for place, buffer in enumerate(buffers)}
    return Product(problem, tuple(values), layouts=known), values


def _element(load: Operation, loops: _Loops, made: Mapping[Value, Operation]) -> Leaf:
    return load.operands[0], tuple(loops.applied(load, "map", load.operands[1:], made))


def affine_operations(operation: Operation) -> int | None:
    """Return the arithmetic operations of a loop nest; None if a bound is not constant."""
    loops = _Loops()
    try:
        loops.enter(operation)
        inside = [affine_operations(part) if part.name == "affine.for" else 0 for part in operation.body.operations]
    except (Unsupported, ValueError, LookupError):
        return None
    return math.prod(loops.sizes) * (sum(count or 0 for count in inside) + operations_in(operation.body))
