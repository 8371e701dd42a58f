"""`einsum`: one readable line with its sizes.

    O[n,k,p,q] += I[n,c,2p+r,2q+s] * W[k,c,r,s]; n=1 k=256 c=128 p=56 q=56 r=3 s=3
    nk,km->nm; n=4 k=5 m=6

Operands whose name begins with W or w are weights and the others inputs; where no name does, the first operand is the
input and the others are weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from tilewright.document import suggestion
from tilewright.errors import InputError
from tilewright.frozen import FrozenDict
from tilewright.problem import Problem, Rank, Role, Tensor, parse_terms
from tilewright.structure import recognise
from tilewright.workload import Workload

_REFERENCE = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([^\[\]]*)\]\s*")
_SIZE = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\S+)\s*,?\s*")


class EinsumFrontend:
    """Reads a formula as a workload of one layer."""

    def recognises(self, source: str) -> bool:
        return "->" in source or ("=" in source and "[" in source)

    def load(self, source: str) -> Workload:
        """Raises InputError with a caret under the fault."""
        return Workload.of(parse_einsum(source))


def parse_einsum(text: str) -> Problem:
    """The problem that a formula with sizes stands for. Raises InputError."""
    line = _Line(text)
    formula, separator, rest = text.partition(";")
    if not separator:
        line.fail(len(text), "the sizes are missing", "add them after a semicolon, like '; n=4 k=5'")
    tensors = _short(line, formula) if "->" in formula else _long(line, formula)
    sizes = _sizes(line, rest, len(formula) + 1)
    _check_sizes(line, tensors, sizes, len(formula) + 1)
    problem = Problem(name="einsum", dimensions=FrozenDict(sizes), tensors=tuple(tensors))
    return problem.model_copy(update={"operation": _operation(problem)})


def render_einsum(problem: Problem) -> str:
    """The line that `parse_einsum` reads back to the same dimensions and tensors, where roles follow the names."""
    return str(problem)


@dataclass(frozen=True)
class _Line:
    text: str

    def fail(self, column: int, message: str, hint: str | None = None) -> NoReturn:
        """An error that shows the line with a caret below the column."""
        raise InputError(f"{message}\n  {self.text}\n  {' ' * column}^", hint=hint)


def _long(line: _Line, formula: str) -> list[Tensor]:
    left, sign, right = formula.partition("+=")
    if not sign:
        left, sign, right = formula.partition("=")
    if not sign:
        line.fail(len(formula), "expected '+=' between the result and the product")
    output = _reference(line, left, 0)
    operands = []
    start = len(left) + len(sign)
    for part in right.split("*") if "[" not in right else _factors(right):
        operands.append(_reference(line, part, start))
        start += len(part) + 1
    names = [name for name, _ in [output, *operands]]
    for index, name in enumerate(names):
        if name in names[:index]:
            line.fail(formula.rindex(name), f"tensor {name} stands twice", "give each operand a name of its own")
    roles = _roles([name for name, _ in operands])
    return [
        *(Tensor(name=name, role=role, projection=ranks) for (name, ranks), role in zip(operands, roles, strict=True)),
        Tensor(name=output[0], role="output", projection=output[1]),
    ]


def _factors(right: str) -> list[str]:
    """Split at the stars that stand outside brackets (2*p inside is a coefficient)."""
    parts, depth, begin = [], 0, 0
    for index, letter in enumerate(right):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "*" and depth == 0:
            parts.append(right[begin:index])
            begin = index + 1
    return [*parts, right[begin:]]


def _reference(line: _Line, part: str, start: int) -> tuple[str, tuple[Rank, ...]]:
    match = _REFERENCE.fullmatch(part)
    if not match:
        line.fail(start + len(part) - len(part.lstrip()), "expected a tensor like I[n, c, 2p+r]")
    ranks = []
    position = start + match.start(2)
    for index in match[2].split(",") if match[2].strip() else []:
        try:
            terms = parse_terms(index)
        except ValueError as error:
            line.fail(position, str(error))
        if 0 in terms.values():
            line.fail(position, "a coefficient of 0 makes no sense")
        ranks.append(Rank(terms=FrozenDict(terms)))
        position += len(index) + 1
    return match[1], tuple(ranks)


def _short(line: _Line, formula: str) -> list[Tensor]:
    left, _, right = formula.partition("->")
    parts = [part.strip() for part in left.split(",")]
    for part in [*parts, right.strip()]:
        if not re.fullmatch(r"[A-Za-z]*", part) or (not part and part is not right.strip()):
            line.fail(max(0, formula.find(part)), f"cannot read '{part}': one letter per dimension, like 'nk,km->nm'")
    if len(parts) > 24:
        line.fail(0, "more than 24 operands")
    names = [chr(ord("A") + index) for index in range(len(parts))]
    roles: list[Role] = ["input", *["weight" for _ in parts[1:]]]  # type: ignore[list-item]

    def ranks(letters: str) -> tuple[Rank, ...]:
        return tuple(Rank(terms=FrozenDict({letter: 1})) for letter in letters)

    return [
        *(Tensor(name=n, role=role, projection=ranks(p)) for n, role, p in zip(names, roles, parts, strict=True)),
        Tensor(name="Z", role="output", projection=ranks(right.strip())),
    ]


def _roles(names: list[str]) -> list[Role]:
    if any(name[0] in "Ww" for name in names):
        return ["weight" if name[0] in "Ww" else "input" for name in names]
    return ["input" if index == 0 else "weight" for index in range(len(names))]


def _sizes(line: _Line, rest: str, start: int) -> dict[str, int]:
    sizes: dict[str, int] = {}
    position = len(rest) - len(rest.lstrip(" ,"))
    while position < len(rest):
        match = _SIZE.match(rest, position)
        if not match:
            line.fail(start + position, "expected a size like n=4")
        name, value = match[1], match[2].rstrip(",")
        column = start + match.start(2)
        if not value.isdecimal():
            line.fail(column, f"'{value}' is not a whole number")
        if int(value) < 1:
            line.fail(column, f"dimension {name} has size {value}; a size is at least 1")
        if name in sizes:
            line.fail(start + position, f"dimension {name} gets two sizes")
        sizes[name] = int(value)
        position = match.start(2) + len(value)
        position += len(rest[position:]) - len(rest[position:].lstrip(" ,\t\n"))
    return sizes


def _check_sizes(line: _Line, tensors: list[Tensor], sizes: dict[str, int], start: int) -> None:
    used = [name for tensor in tensors for rank in tensor.projection for name in rank.terms]
    for name in dict.fromkeys(used):
        if name not in sizes:
            line.fail(len(line.text), f"dimension {name} has no size", f"add {name}=...")
    for name in sizes:
        if name not in used:
            column = start + re.search(rf"\b{name}\s*=", line.text[start:]).start()  # type: ignore[union-attr]
            line.fail(column, f"no tensor has dimension {name}{suggestion(name, used)}")
    operands = {name for tensor in tensors if not tensor.is_output for name in tensor.dimensions}
    for name in dict.fromkeys(used):
        if name not in operands:
            line.fail(0, f"dimension {name} is in the result only; no operand says what varies along it")


def _operation(problem: Problem) -> str | None:
    """The kind where the structure shows it clearly."""
    structure = recognise(problem)
    if structure is None:
        return None
    if structure.kind == "gemm":
        return "gemm"
    axes = len(structure.parts.get("R", ())) + len(structure.parts.get("S", ()))
    depthwise = structure.kind == "conv" and "G" in structure.parts and "C" not in structure.parts
    return ("depthwise_" if depthwise else "") + f"{structure.kind}{axes}d"
