"""`einsum`: one or more formulas and their sizes on one line.

    O[n,k,p,q] += I[n,c,2p+r,2q+s] * W[k,c,r,s]; n=1 k=256 c=128 p=56 q=56 r=3 s=3
    nk,km->nm; n=4 k=5 m=6

Several formulas are a network: a tensor is read by its name.

    H[m,n] += X[m,k] * W1[k,n]; Y[m,p] += H[m,n] * W2[n,p]; m=4 k=8 n=16 p=8

Operands whose name starts with W or w are weights, the others inputs. If names do not distinguish
operands, the first is the input and the others are weights. `str(problem)` writes the long form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tilewright.errors import InputError, Location
from tilewright.files import MAX_TEXT
from tilewright.plugin.edges import Access, Operation, edges_by_name
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import MAX_PARTS, Problem, Rank, Role, Tensor
from tilewright.schema.structure import recognise
from tilewright.schema.workload import Layer, Workload

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
MAX_SIZE = 2**40
MAX_COEFFICIENT = 2**31
SHORT_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXY"
"""Names of operands in the short form, which has none; the result is Z."""
_SHOWN = 120
"""Number of characters that an error shows of a long line."""


class EinsumFrontend:
    """A frontend that reads formulas as a workload, one layer each."""

    def recognises(self, source: str) -> bool:
        return "->" in source or ("=" in source and ("[" in source or ";" in source))

    def load(self, source: str) -> Workload:
        """Return the workload of formulas. Raises InputError with a caret below the error."""
        problems = parse_einsums(source)
        if len(problems) == 1:
            return Workload.of(problems[0])
        operations = [
            Operation(
                problem.name,
                {tensor.name: _access(tensor) for tensor in problem.operands},
                _access(problem.output),
                problem,
            )
            for problem in problems
        ]
        edges = edges_by_name(operations)
        layers = (
            Layer(
                problem=problem,
                after=tuple(dict.fromkeys(read.maker for reads in edges[problem.name].values() for read in reads)),
                reads=FrozenDict(edges[problem.name]),
            )
            for problem in problems
        )
        return Workload(name="einsums", layers=tuple(layers))


def _access(tensor: Tensor) -> Access:
    """Return the access of a tensor, whose coordinates count in order."""
    return Access(tensor.name, tuple(f"x{place}" for place in range(len(tensor.projection))))


def parse_einsum(text: str) -> Problem:
    """Return the problem of one formula with sizes.

    Raises:
        InputError: the formula is invalid; a caret marks the error.

    >>> parse_einsum("nk,km->nm; n=4 k=5 m=6").macs
    120
    """
    problems = parse_einsums(text)
    if len(problems) > 1:
        raise InputError(f"{len(problems)} formulas; expected one")
    return problems[0]


def parse_einsums(text: str) -> list[Problem]:
    """Return the problems of formulas. Several have the names of their results.

    Raises:
        InputError: a formula is invalid; a caret marks the error.
    """
    if len(text) > MAX_TEXT:
        raise InputError(f"the formula has {len(text):,} characters; expected at most {MAX_TEXT:,}")
    line = _Line(re.sub(r"\s", " ", text))
    formula = text.partition(";")[0]
    if re.search("->|,", formula) and "[" not in formula:
        formulas = [_short(line)]
    else:
        formulas = list(_formulas(line))
    sizes = _sizes(line)
    _check_dimensions(line, formulas, sizes)
    return [_problem("einsum" if len(formulas) == 1 else tensors[-1].name, tensors, sizes) for tensors in formulas]


def _problem(name: str, tensors: Sequence[Tensor], sizes: Mapping[str, int]) -> Problem:
    used = {dimension for tensor in tensors for dimension in tensor.dimensions}
    dimensions = FrozenDict({name: size for name, size in sizes.items() if name in used})
    problem = Problem(name=name, dimensions=dimensions, tensors=tuple(tensors))
    return problem.model_copy(update={"operation": operation_of(problem)})


def _formulas(line: _Line) -> Iterator[list[Tensor]]:
    """Parse the long forms before the sizes."""
    ranks, written = dict[str, int](), set[str]()
    while True:
        column = line.skip()
        tensors = _long(line)
        result = tensors[-1].name
        if result in written:
            line.fail(f"{result} is the result of two formulas", "give each result a name of its own", column)
        written.add(result)
        line.count(len(written), "formulas")
        for tensor in tensors:
            if ranks.setdefault(tensor.name, len(tensor.projection)) != len(tensor.projection):
                known = f"{ranks[tensor.name]} coordinates before, and {len(tensor.projection)} here"
                line.fail(f"{tensor.name} has {known}", column=column)
        yield tensors
        line.skip()
        if not re.compile(rf"{NAME} *\[").match(line.text, line.column):
            return


def operation_of(problem: Problem) -> str | None:
    """Return the kind of operation, such as `gemm` or `depthwise_conv2d`; None if it is unclear."""
    structure = recognise(problem)
    if structure is None:
        return None
    parts = structure.parts
    if structure.kind == "gemm":
        return "gemm" if "K" in parts and ("M" in parts or "N" in parts) else None
    axes = len(parts.get("R", ())) + len(parts.get("S", ()))
    if axes > 3:
        return None
    depthwise = structure.kind == "conv" and "G" in parts and "C" not in parts
    return f"{'depthwise_' if depthwise else ''}{structure.kind}{axes}d"


@dataclass
class _Line:
    """The text and the position of the parser. `seen`: dimension -> column of its first use."""

    text: str
    column: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    def take(self, pattern: str) -> str | None:
        """Return the next token if it matches the pattern, otherwise None."""
        self.skip()
        match = re.compile(pattern).match(self.text, self.column)
        if match is None:
            return None
        self.column = match.end()
        return match[0]

    def skip(self) -> int:
        """Skip blanks and return the column of the next token."""
        while self.text.startswith(" ", self.column):
            self.column += 1
        return self.column

    def count(self, number: int, what: str) -> None:
        """Check a number of parts against the maximum of a problem."""
        if number > MAX_PARTS:
            self.fail(f"more than {MAX_PARTS} {what}")

    def fail(self, message: str, hint: str | None = None, column: int | None = None) -> NoReturn:
        """Raise an error that shows the line with a caret below a column (default: the next token)."""
        at = self.skip() if column is None else column
        begin = max(0, at - _SHOWN // 2)
        shown = self.text[begin : begin + _SHOWN]
        raise InputError(
            f"{message}\n  {shown}\n  {' ' * (at - begin)}^", hint=hint, location=Location("einsum", 1, at + 1)
        )


def _long(line: _Line) -> list[Tensor]:
    """Parse `O[..] += A[..] * B[..] ;`."""
    columns: dict[str, int] = {}
    output = _reference(line, columns)
    if not line.take(r"\+?="):
        line.fail("expected '+=' after the result")
    operands = [_reference(line, columns)]
    while line.take(r"\*"):
        operands.append(_reference(line, columns))
        line.count(len(operands) + 1, "tensors")
    _end_of_formula(line, "expected '*' and another operand, or ';' and the sizes")
    roles = roles_of([name for name, _ in operands])
    tensors = [
        Tensor(name=name, role=role, projection=ranks) for (name, ranks), role in zip(operands, roles, strict=True)
    ]
    return [*tensors, Tensor(name=output[0], role="output", projection=output[1])]


def _end_of_formula(line: _Line, message: str) -> None:
    if line.take(";"):
        return
    if line.skip() == len(line.text):
        line.fail("the sizes are missing", "add them after a semicolon, like '; n=4 k=5'")
    line.fail(message)


def _reference(line: _Line, columns: dict[str, int]) -> tuple[str, tuple[Rank, ...]]:
    """Parse `I[n, c, 2p+r]`; `columns` records where each tensor appears."""
    column = line.skip()
    name = line.take(NAME)
    if name is None:
        line.fail("expected a tensor like I[n, c, 2p+r]")
    if name in columns:
        line.fail(f"tensor {name} is repeated", "give each tensor a name of its own", column)
    columns[name] = column
    if not line.take(r"\["):
        line.fail(f"expected '[' and the coordinates of {name}", f"like {name}[n, c, 2p+r], or {name}[] for a scalar")
    if line.take(r"\]"):
        return name, ()
    ranks = [_rank(line)]
    while line.take(","):
        ranks.append(_rank(line))
        line.count(len(ranks), f"coordinates of {name}")
    if not line.take(r"\]"):
        line.fail(
            f"expected '+', ',' or ']' in the coordinates of {name}",
            "write a coordinate as a sum such as 2p+3r: coefficients first, no subtraction",
        )
    return name, tuple(ranks)


def _rank(line: _Line) -> Rank:
    """Parse `2p + 3*r`; terms of one dimension are added."""
    terms: dict[str, int] = {}
    while True:
        column = line.skip()
        number = line.take("[0-9]+")
        if number is not None:
            line.take(r"\*")
        at = line.skip()
        name = line.take(NAME)
        if name is None:
            constant = "a coordinate is a sum of dimensions; omit constants and padding"
            line.fail("expected a dimension", None if number is None else constant)
        line.seen.setdefault(name, at)
        line.count(len(line.seen), "dimensions")
        terms[name] = terms.get(name, 0) + _whole(line, number or "1", MAX_COEFFICIENT, "a coefficient", column)
        if terms[name] > MAX_COEFFICIENT:
            line.fail(f"the coefficients of {name} add up to more than {MAX_COEFFICIENT}", column=column)
        if not line.take(r"\+(?!=)"):
            return Rank(terms=FrozenDict(terms))


def _whole(line: _Line, digits: str, most: int, what: str, column: int) -> int:
    """Parse a whole number from 1 to `most`."""
    if not re.fullmatch("-?[0-9]+", digits):
        line.fail(f"{what} is '{digits}'; expected a whole number", column=column)
    value = int(digits[:20])  # longer ones exceed the limit, and Python refuses very long ones
    if not 1 <= value <= most:
        line.fail(f"{what} is {digits[:20]}; expected 1 to {most}", column=column)
    return value


def _short(line: _Line) -> list[Tensor]:
    """Parse `nk,km->nm ;`."""
    operands = [_letters(line)]
    while line.take(","):
        operands.append(_letters(line))
    if not line.take("->"):
        line.fail("expected a letter per dimension, ',' or '->', like 'nk,km->nm'")
    column = line.skip()
    output = _letters(line)
    _end_of_formula(line, "expected a letter per dimension, or ';' and the sizes")
    if len(operands) > len(SHORT_NAMES):
        line.fail(f"{len(operands)} operands; the short form supports {len(SHORT_NAMES)}", column=0)
    if len(set(output)) < len(output):
        line.fail("a dimension is repeated in the result", column=column)
    roles: list[Role] = ["input" if index == 0 else "weight" for index in range(len(operands))]
    tensors = [
        Tensor(name=name, role=role, projection=_plain(letters))
        for name, role, letters in zip(SHORT_NAMES, roles, operands, strict=False)
    ]
    return [*tensors, Tensor(name="Z", role="output", projection=_plain(output))]


def _letters(line: _Line) -> str:
    """Parse the dimensions of one operand; blanks between them are ignored."""
    letters = ""
    while letter := line.take("[A-Za-z]"):
        line.seen.setdefault(letter, line.column - 1)
        letters += letter
        line.count(len(letters), "dimensions of one tensor")
    if line.take(r"\."):
        line.fail("an ellipsis is not supported", "write a letter for each", line.column - 1)
    return letters


def _plain(letters: str) -> tuple[Rank, ...]:
    return tuple(Rank(terms=FrozenDict({letter: 1})) for letter in letters)


def roles_of(names: Sequence[str]) -> list[Role]:
    """Return the roles of operands by their names: those that begin with W or w are weights."""
    weights = [name[0] in "Ww" for name in names]
    if any(weights) and not all(weights):
        return ["weight" if weight else "input" for weight in weights]
    return ["input" if index == 0 else "weight" for index in range(len(names))]


def _sizes(line: _Line) -> dict[str, int]:
    """Parse `n=4, k=5 m=6`, separated by blanks or commas; unknown dimensions are errors."""
    sizes: dict[str, int] = {}
    while line.skip() < len(line.text):
        at = line.column
        name = line.take(NAME)
        if name is None or not line.take("="):
            line.fail("expected a size like n=4", column=at)
        if name in sizes:
            line.fail(f"dimension {name} has two sizes", column=at)
        if name not in line.seen:
            line.fail(f"no tensor has dimension {name}{_similar(name, line.seen)}", column=at)
        column = line.skip()
        sizes[name] = _whole(line, line.take("[^ ,;]*") or "", MAX_SIZE, f"the size of {name}", column)
        line.take(",")
    return sizes


def _similar(name: str, known: dict[str, int]) -> str:
    """Return `; did you mean 'N'?`: the other case first, then similar spellings."""
    return f"; did you mean '{name.swapcase()}'?" if name.swapcase() in known else suggestion(name, known)


def _check_dimensions(line: _Line, formulas: Sequence[Sequence[Tensor]], sizes: dict[str, int]) -> None:
    missing = [name for name in line.seen if name not in sizes]
    if missing:
        what = f"dimension {missing[0]} has no size"
        if len(missing) > 1:
            what = f"dimensions {', '.join(missing)} have no size"
        line.fail(what, "add " + " ".join(f"{name}=..." for name in missing), line.seen[missing[0]])
    for *operands, result in formulas:
        read = {name for tensor in operands for name in tensor.dimensions}
        for name in result.dimensions:
            if name not in read:
                what = f"dimension {name} is in the result only; expected it in an operand"
                line.fail(what, column=line.seen[name])
        if not read:
            line.fail("the formula has no dimension", column=0)
