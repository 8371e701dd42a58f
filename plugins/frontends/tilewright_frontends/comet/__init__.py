"""`comet`: tensor products in COMET's language (.ta).

A product of several factors is computed pair by pair, from the left or as brackets say, as COMET does without options:

    D[i,l] = A[i,j] * B[j,k] * C[k,l];      D_1[i,k] += A[i,j] * B[j,k];  D[i,l] += D_1[i,k] * C[k,l]

A label is summed in the last product that has it, unless the result has it. Transpositions and operations word by word are listed.
Sparse tensors are refused: the work depends on data that the file does not have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NoReturn

from tilewright.errors import InputError
from tilewright.files import read_text
from tilewright.plugin.edges import Access, Operation, edges_by_name, with_returned
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Role
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends import CometOptions, nests
from tilewright_frontends.comet import language
from tilewright_frontends.comet.language import Assignment, Binary, Printed, Reference, Scalar, Sum, Token, Turned
from tilewright_frontends.einsum import operation_of, roles_of
from tilewright_frontends.nests import SINGLE, refusing, unique_name
from tilewright_frontends.vectors import Vectors, vector_layer

SUFFIX = ".ta"
MONOIDS = {"@(+)": "Add", "@(-)": "Sub", "@(*)": "Mul", "@(/)": "Div", "@(min)": "Min"}
"""Operator word by word -> its name in the table of operations."""
SHOWN = 20
"""Maximum number of reasons in a message."""


class CometFrontend:
    """A frontend that reads .ta files."""

    def __init__(self, options: CometOptions) -> None:
        self.sizes = options.sizes

    def recognises(self, source: str) -> bool:
        return source.endswith(SUFFIX)

    def load(self, source: str) -> Workload:
        """Return the products of a program as layers.

        Raises:
            InputError: the file is unreadable, a statement is not read, or a tensor is sparse. Or a label has no size or two,
                or there is no product.
        """
        program = language.parse(read_text(source), source)
        sizes = _sizes(program, self.sizes, source)
        reader = _Reader(source, program, sizes)
        for statement in program.statements:
            reader.statement(statement)
        name = Path(source).name
        if not reader.layers:
            told = [f"  {source}:{part.reason.replace(': ', f': {part.operator}: ', 1)}" for part in reader.unmapped]
            rest = [f"  and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
            raise InputError("\n".join([f"{source}: it has no product of tensors", *told[:SHOWN], *rest]))
        return Workload(
            name=unique_name(Path(source).stem, set()),
            source=f"{name}: program of COMET",
            layers=with_returned(list(reader.connected()), reader.returned),
            unmapped=tuple(reader.unmapped),
            vectors=reader.vectors.every(),
        )


def _sizes(program: language.Program, given: Mapping[str, int], source: str) -> dict[str, int]:
    """Return the size of every label that has one. Raises InputError if a size is needed, or is not."""
    known = {name: extent.size for name, extent in program.labels.items() if isinstance(extent.size, int)}
    for name in given:
        if name in known:
            raise InputError(f"{source}: label {name} has the size {known[name]}", hint=f"omit --size {name}=...")
        if name not in program.labels:
            labels = list(program.labels)
            raise InputError(f"{source} has no label '{name}'; it has: {', '.join(labels)}{suggestion(name, labels)}")
    used = set[str]()
    for statement in program.statements:
        if isinstance(statement, Sum):
            used.update(_labels(statement.operand))
        elif isinstance(statement, Assignment) and not isinstance(statement.value, Scalar):
            used.update((*statement.target.labels, *_labels(statement.value)))
    missing = [name for name in program.labels if name in used and name not in known and name not in given]
    if missing:
        raise InputError(
            f"{source}: the sizes of the labels {', '.join(missing)} are open",
            hint=f"give them: {' '.join(f'--size {name}=N' for name in missing)}",
        )
    return known | dict(given)


def _labels(expression: language.Expression) -> Iterator[str]:
    """Yield the labels of an expression, in order, with repetitions."""
    if isinstance(expression, Reference | Turned):
        yield from expression.labels
    elif isinstance(expression, Binary):
        yield from _labels(expression.left)
        yield from _labels(expression.right)


@dataclass(frozen=True)
class _Value:
    """A tensor or an intermediate result with its labels here. `key`: its name among all values. `name`: for a layer."""

    key: str
    name: str
    labels: tuple[str, ...]
    bits: int


@dataclass
class _Reader:
    """Collector of layers and unmapped operations, in order."""

    source: str
    program: language.Program
    sizes: Mapping[str, int]
    layers: list[Layer] = field(default_factory=list)
    unmapped: list[Unmapped] = field(default_factory=list)
    returned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.vectors, self.taken, self.operations = Vectors(), set[str](), list[Operation]()
        self.coordinates = dict[str, tuple[str, ...]]()
        """Value -> names of its coordinates, in order, if it is transposed."""
        self.target = ""
        """Name of the tensor that the statement assigns to."""

    def fail(self, at: Token, message: str, hint: str | None = None) -> NoReturn:
        language.fail(self.source, at, message, hint)

    def statement(self, statement: language.Statement) -> None:
        """Add the operations of a statement."""
        if isinstance(statement, Printed):
            self.returned.update(self.vectors.reached([statement.name]))
            return
        self.target = statement.name if isinstance(statement, Sum) else statement.target.name
        if isinstance(statement, Sum):
            operand = self.operand(statement.operand)
            name = unique_name(self.target, self.taken)
            result = _Value(f"%{name}", name, (), operand.bits)
            self.leave("ReduceSum", "a reduction without weights", [operand], result, statement.operand.at)
            return
        expression = statement.value
        if isinstance(expression, Scalar):
            if any(operation.result.value == self.target for operation in self.operations):
                self.operations.append(Operation("fill", {}, Access(self.target, ())))
            return
        target, at = self.referred(statement.target), statement.target.at
        repeated = [label for place, label in enumerate(target.labels) if label in target.labels[:place]]
        if repeated:
            self.fail(at, f"label {repeated[0]} is repeated in the result")
        absent = [label for label in target.labels if label not in set(_labels(expression))]
        if absent:
            self.fail(at, f"label {absent[0]} is in the result only; expected it in an operand")
        if isinstance(expression, Binary):
            self.binary(expression, set(target.labels), target, statement.adds)
        else:
            operand = self.referred(expression.operand if isinstance(expression, Turned) else expression)
            self.same_labels([operand, target], at, "an assignment")
            self.moved(operand, target, at, statement.adds)

    # -- expressions
    # --------------------------------------------------------------------------------------------

    def referred(self, reference: Reference) -> _Value:
        """Return a declared tensor with labels, whose sizes are those of its axes."""
        tensors, at = self.program.tensors, reference.at
        tensor = tensors.get(reference.name)
        if tensor is None:
            self.fail(at, f"no tensor is called {reference.name}{suggestion(reference.name, tensors)}")
        if len(tensor.extents) != len(reference.labels):
            self.fail(at, f"{reference.name} has {len(tensor.extents)} axes, and {len(reference.labels)} labels here")
        for place, (extent, label) in enumerate(zip(tensor.extents, reference.labels, strict=True)):
            size, declared = self.size(label, at), extent.size
            declared = self.size(declared, extent.at) if isinstance(declared, str) else declared
            if None not in (declared, size) and declared != size:
                self.fail(at, f"axis {place} of {reference.name} has the size {declared}, and its label {label} {size}")
        return _Value(reference.name, reference.name, reference.labels, tensor.bits)

    def size(self, label: str, at: Token) -> int | None:
        """Return the size of a label; None: it is open, and nothing needs it."""
        if label not in self.program.labels:
            self.fail(at, f"no label is called {label}{suggestion(label, self.program.labels)}")
        return self.sizes.get(label)

    def operand(self, expression: Reference | Turned) -> _Value:
        """Return a tensor, transposed if the expression says so."""
        if isinstance(expression, Reference):
            return self.referred(expression)
        value = self.referred(expression.operand)
        result = self.inner(expression.labels, value.bits)
        self.moved(value, result, expression.at)
        return result

    def inner(self, labels: tuple[str, ...], bits: int) -> _Value:
        """Return an intermediate result of the statement."""
        names = (f"{self.target}_{number}" for number in count(1))
        name = next(name for name in names if name not in self.taken and name not in self.program.tensors)
        self.taken.add(name)
        return _Value(f"%{name}", name, labels, bits)

    def binary(self, expression: Binary, needed: set[str], target: _Value | None = None, adds: bool = False) -> _Value:
        """Return the result of an operator.

        Args:
            expression: the operator with its operands.
            needed: labels of the result, and those that the statement needs outside the expression.
            target: where the statement writes the result; None: it is an intermediate one.
            adds: whether the old words of the target stay in the sum.
        """
        at, operator = expression.at, expression.operator
        product = operator == language.PRODUCT
        if not product and operator not in MONOIDS:
            known = f"{language.PRODUCT}, {', '.join(MONOIDS)}"
            self.fail(
                at,
                f"the operator {operator} is neither a sum of products nor a known one word by word",
                f"known: {known}",
            )
        sides = expression.left, expression.right
        outside = [needed | set(_labels(other)) if product else needed for other in reversed(sides)]
        left, right = (self.value(side, labels) for side, labels in zip(sides, outside, strict=True))
        operands = [value for value in (left, right) if value is not None]
        if not operands:
            self.fail(at, "both operands are numbers; expected a tensor")
        labels, bits = operands[0].labels, max(value.bits for value in operands)
        if product and len(operands) == 2:
            labels = tuple(dict.fromkeys(label for value in operands for label in value.labels if label in needed))
            result = target or self.inner(labels, bits)
            self.product(operands, result, at)
        else:
            result = target or self.inner(labels, bits)
            self.same_labels([*operands, result], at, f"the operator {'@(*)' if product else operator}")
            kind = MONOIDS["@(*)" if product else operator]
            self.leave(kind, "word by word: no product of tensors", operands, result, at, adds)
        return result

    def value(self, expression: language.Expression, needed: set[str]) -> _Value | None:
        """Return the value of an operand; None: it is a number."""
        if isinstance(expression, Scalar):
            return None
        return self.binary(expression, needed) if isinstance(expression, Binary) else self.operand(expression)

    def same_labels(self, values: Sequence[_Value], at: Token, what: str) -> None:
        first = values[0].labels
        for value in values:
            if sorted(value.labels) != sorted(first):
                said = f"{value.name}[{', '.join(value.labels)}] and {values[0].name}[{', '.join(first)}]"
                self.fail(at, f"{what} has {said}; expected the same labels")

    # -- operations
    # --------------------------------------------------------------------------------------------

    def product(self, operands: Sequence[_Value], result: _Value, at: Token) -> None:
        """Add the layer of a product."""
        values, names = (*operands, result), set[str]()
        tensors = [unique_name(value.name, names) for value in values]
        labels = dict.fromkeys((*result.labels, *(label for value in operands for label in value.labels)))
        if not labels:
            self.fail(at, "a product of single words has no loop")
        wide = {value.bits for value in values} != {SINGLE}
        with refusing(f"{self.source}:{at.line}:{at.column}: the product of {' and '.join(tensors[:-1])}"):
            roles: list[Role] = [*roles_of(tensors[:-1]), "output"]
            given = [
                nests.tensor_of(name, role, nests.plain(value.labels)).model_copy(
                    update={"bits": value.bits if wide else None}
                )
                for name, role, value in zip(tensors, roles, values, strict=True)
            ]
            sizes = {label: self.sizes[label] for label in labels}
            problem = nests.problem_of(self.name(result), None, sizes, given)
            problem = problem.model_copy(update={"operation": operation_of(problem)})
        self.layers.append(Layer(problem=problem, origin=self.origin(at)))
        read = {tensor: self.access(value) for tensor, value in zip(tensors, operands, strict=False)}
        self.coordinates.pop(result.key, None)
        self.operations.append(Operation(problem.name, read, self.access(result), problem))
        self.vectors.matrix(problem.name, [value.key for value in operands], [result.key])

    def moved(self, operand: _Value, result: _Value, at: Token, adds: bool = False) -> None:
        """Add a copy, transposed if the labels have another order."""
        if adds:
            self.leave("Add", "word by word: no product of tensors", [operand], result, at, adds)
            return
        read = self.access(operand)
        places = [operand.labels.index(label) for label in result.labels]
        self.coordinates[result.key] = tuple(read.coordinates[place] for place in places)
        name = self.name(result)
        operator = "transpose" if places != sorted(places) else "copy"
        self.note(name, operator, "moves data, computes nothing", 0, at)
        self.operations.append(Operation(name, {"X": read}, self.access(result), copies=True))
        self.vectors.add(None, [operand.key], [result.key])

    def leave(
        self, kind: str, reason: str, operands: Sequence[_Value], result: _Value, at: Token, adds: bool = False
    ) -> None:
        """Add an operation that is no layer; `kind`: its name in the table of operations."""
        read = [*operands, *([result] if adds else [])]
        name, shapes = self.name(result), [self.shape(value) for value in read]
        self.note(name, kind, reason, max(math.prod(shape) for shape in shapes), at)
        accesses = {f"X{place}": self.access(value) for place, value in enumerate(read)}
        self.coordinates.pop(result.key, None)
        self.operations.append(Operation(name, accesses, self.access(result)))
        layer = vector_layer(
            name, kind, [(shape, False) for shape in shapes], self.shape(result), origin=self.origin(at)
        )
        self.vectors.add(layer, [value.key for value in read], [result.key])

    def note(self, name: str, operator: str, reason: str, operations: int, at: Token) -> None:
        told = f"{at.line}:{at.column}: {reason}"
        self.unmapped.append(
            Unmapped(name=name, operator=operator, reason=told, operations=operations, origin=self.origin(at))
        )

    def name(self, result: _Value) -> str:
        """Return the name of the operation that makes a value."""
        return result.name if result.key == f"%{result.name}" else unique_name(result.name, self.taken)

    def origin(self, at: Token) -> Origin:
        return Origin(node=self.target, file=Path(self.source).name, line=at.line, column=at.column)

    def shape(self, value: _Value) -> tuple[int, ...]:
        return tuple(self.sizes[label] for label in value.labels)

    def access(self, value: _Value) -> Access:
        places = tuple(f"x{place}" for place in range(len(value.labels)))
        return Access(value.key, self.coordinates.get(value.key, places))

    def connected(self) -> Iterator[Layer]:
        """Yield the layers with the layers that they read."""
        edges = edges_by_name(self.operations)
        for layer in self.layers:
            reads = edges[layer.name]
            after = tuple(dict.fromkeys(read.maker for made in reads.values() for read in made))
            yield layer.model_copy(update={"after": after, "reads": FrozenDict(reads)})
