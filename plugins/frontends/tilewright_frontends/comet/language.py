"""The language of COMET as statements, each with its line. Nothing is computed here.

    def main() {
      IndexLabel [i, j] = [8];                 # also [0:8], [0:8:2], [?]
      Tensor<double> A([i, j], {Dense});
      C[i, k] = A[i, j] * B[j, k];
      print(C);
    }

`#` and `//` begin comments. Fills (`A[i, j] = 1.5;`, `= random();`), `print` and timers have no work and are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tilewright.errors import InputError, Location

MAX_DEPTH = 50
"""Maximum number of nested brackets in an expression."""
MAX_OPERATORS = 200
"""Maximum number of operators in a statement."""
MAX_PROGRAM = 2_000
"""Maximum number of operators and of statements with work in a program."""
SKIPPED = frozenset(("print", "printElapsedTime", "getTime"))
"""Functions without work on tensors."""
FILLS = frozenset(("random", "comet_read", "read_from_file"))
"""Functions that give a tensor its first words."""
BITS = {"double": 64, "float": 32, "int": 64}
"""Type of elements -> bits."""
PRODUCT = "@(+,*)"
"""The operator of a sum of products, also written `*`."""
OPERATORS = {
    "*": PRODUCT,
    ".*": "@(*)",
    "+": "@(+)",
    "-": "@(-)",
    "/": "@(/)",
}
_PRECEDENCE = {"+": 20, "-": 20, "*": 40, "/": 40, ".*": 40}
_TOKEN = re.compile(
    r"(?P<gap>(?:\s+|#[^\n]*|//[^\n]*)+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>(?:[0-9]+(?:\.(?!\*)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r'|(?P<ring>@\s*\([^()\n]*\))|(?P<text>"[^"\n]*")|(?P<mark>\.\*|[+\-]=|[-+*/=\[\](){}<>,;:?])'
)


@dataclass(frozen=True)
class Token:
    """A word of the text, and where it begins. The last one is empty."""

    kind: str
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Reference:
    """A tensor with its labels."""

    name: str
    labels: tuple[str, ...]
    at: Token


@dataclass(frozen=True)
class Turned:
    """A transposed tensor: the labels in their new order."""

    operand: Reference
    labels: tuple[str, ...]
    at: Token


@dataclass(frozen=True)
class Scalar:
    """A number, or what fills a tensor."""

    at: Token


@dataclass(frozen=True)
class Binary:
    """Two operands; the operator is written as a semiring, `@(+,*)`, or as a monoid, `@(+)`."""

    operator: str
    left: Expression
    right: Expression
    at: Token


Expression = Reference | Turned | Scalar | Binary


@dataclass(frozen=True)
class Extent:
    """Size of a label or of an axis: a number, None (`?`), or the label that has it."""

    size: int | str | None
    at: Token


@dataclass(frozen=True)
class Declaration:
    """A dense tensor."""

    name: str
    extents: tuple[Extent, ...]
    bits: int
    at: Token


@dataclass(frozen=True)
class Assignment:
    """`target = value;`. `adds`: the old words of the target stay in the sum."""

    target: Reference
    value: Expression
    adds: bool


@dataclass(frozen=True)
class Sum:
    """`var name = SUM(operand);`."""

    name: str
    operand: Reference | Turned


@dataclass(frozen=True)
class Printed:
    """`print(name);`: the program returns the tensor."""

    name: str


Statement = Assignment | Sum | Printed


@dataclass(frozen=True)
class Program:
    """Labels, tensors, and the statements with work, in order."""

    labels: dict[str, Extent]
    tensors: dict[str, Declaration]
    statements: tuple[Statement, ...]


def parse(text: str, source: str) -> Program:
    """Return the program in a text.

    Raises:
        InputError: the text has a statement that is not read, or a sparse tensor.
    """
    return _Parser(_tokens(text, source), source).program()


def fail(source: str, at: Token, message: str, hint: str | None = None) -> NoReturn:
    """Raise an error at a token."""
    raise InputError(message, location=Location(source, at.line, at.column), hint=hint)


def _tokens(text: str, source: str) -> list[Token]:
    tokens, place, line, start = list[Token](), 0, 1, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        at = Token("end", "", line, place - start + 1)
        if match is None:
            fail(source, at, f"unexpected {text[place]!r}")
        word = match[0]
        if match.lastgroup != "gap":
            tokens.append(Token(str(match.lastgroup), word, line, at.column))
        elif "\n" in word:
            line, start = line + word.count("\n"), place + word.rindex("\n") + 1
        place = match.end()
    return [*tokens, Token("end", "", line, place - start + 1)]


class _Parser:
    def __init__(self, tokens: Sequence[Token], source: str) -> None:
        self.tokens, self.source, self.place = tokens, source, 0
        self.labels = dict[str, Extent]()
        self.tensors = dict[str, Declaration]()
        self.statements = list[Statement]()
        self.operators = self.every = 0
        """Operators of the statement, and of all statements."""

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def fail(self, message: str, hint: str | None = None, at: Token | None = None) -> NoReturn:
        fail(self.source, at or self.next, message, hint)

    def take(self, *words: str) -> Token | None:
        """Return the next token if it is one of the words."""
        token = self.next
        if token.text not in words or token.kind in ("end", "text"):
            return None
        self.place += 1
        return token

    def expect(self, word: str, after: str) -> Token:
        """Return the next token, which has to be a word."""
        return self.take(word) or self.fail(f"expected {word!r} after {after}, found {self.said()}")

    def kind(self, kind: str, what: str) -> Token:
        """Return the next token, which has to be of a kind."""
        token = self.next
        if token.kind != kind:
            self.fail(f"expected {what}, found {self.said()}")
        self.place += 1
        return token

    def said(self) -> str:
        return repr(self.next.text[:40]) if self.next.kind != "end" else "the end of the file"

    def program(self) -> Program:
        """Read `def main() { statements }`."""
        if not self.take("def"):
            self.fail(f"expected 'def main() {{', found {self.said()}", "COMET's programs have one function")
        name = self.kind("name", "the name of a function")
        self.expect("(", name.text)
        if not self.take(")"):
            self.fail(f"function {name.text} has arguments", "declare its tensors inside, with sizes")
        self.expect("{", f"{name.text}()")
        while not self.take("}"):
            if self.next.kind == "end":
                self.fail("expected '}' at the end of the function, found the end of the file")
            if self.take(";"):
                continue
            self.statement()
            self.expect(";", "a statement")
            if len(self.statements) + self.every > MAX_PROGRAM:
                self.fail(f"more than {MAX_PROGRAM:,} operations in a program")
        if self.next.kind != "end":
            self.fail(f"{self.said()} follows {name.text}()", "give each function a file of its own")
        return Program(self.labels, self.tensors, tuple(self.statements))

    def statement(self) -> None:
        """Read one statement up to its semicolon."""
        at = self.next
        name = self.kind("name", "a statement")
        if name.text == "IndexLabel":
            self.label()
        elif name.text == "Tensor":
            self.declaration()
        elif name.text == "var":
            self.variable()
        elif self.next.text == "[":
            self.assignment(name)
        elif name.text in SKIPPED and self.next.text == "(":
            self.call(name)
        elif name.text != "return" or self.next.text != ";":
            self.fail(
                f"the statement '{name.text}' is not read",
                "IndexLabel, Tensor, A[i, k] = ..., var x = SUM(...), print and timers are",
                at,
            )

    # -- declarations
    # --------------------------------------------------------------------------------------------

    def names(self) -> list[Token]:
        """Read `[i, j]`, after the bracket."""
        names = list[Token]()
        while not self.take("]"):
            names.append(self.kind("name", "a label"))
            if not self.take(",") and self.next.text != "]":
                self.fail(f"expected ',' or ']' after label {names[-1].text}, found {self.said()}")
        return names

    def label(self) -> None:
        """Read `IndexLabel [i, j] = [0:8:2]`; without a range the size is open."""
        names = self.names() if self.take("[") else [self.kind("name", "a label")]
        size = self.range() if self.take("=") else None
        for name in names:
            if name.text in self.labels:
                self.fail(f"label {name.text} is declared twice", at=name)
            self.labels[name.text] = Extent(size, name)

    def range(self) -> int | None:
        """Read `[8]`, `[0:8]`, `[0:8:2]` or `[?]`, and return the number of values."""
        self.expect("[", "'='")
        numbers = list[int | None]()
        at = self.next
        while not numbers or self.take(":"):
            numbers.append(None if self.take("?") else self.whole())
        self.expect("]", "a range")
        if len(numbers) > 3:
            self.fail("a range has a start, an end and a step", at=at)
        start, end, step = ([0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1])[:3]
        if start is None or step == 0 or step is None:
            self.fail("expected a range such as 8, 0:8, 0:8:2 or ?", at=at)
        if end is None:
            return None
        size = -(-(end - start) // step)
        if size < 1:
            self.fail(f"the range has {max(size, 0)} values", at=at)
        return size

    def whole(self) -> int:
        token = self.kind("number", "a whole number or '?'")
        if not re.fullmatch("[0-9]{1,15}", token.text):
            self.fail(f"expected a whole number, found {token.text[:40]}", at=token)
        return int(token.text)

    def declaration(self) -> None:
        """Read `Tensor<double> A([i, 8], {Dense})`."""
        self.expect("<", "Tensor")
        kind = self.kind("name", "double, float or int")
        if kind.text not in BITS:
            self.fail(f"elements are {kind.text}; expected {', '.join(BITS)}", at=kind)
        self.expect(">", kind.text)
        name = self.kind("name", "the name of a tensor")
        self.expect("(", name.text)
        self.expect("[", f"{name.text}(")
        extents = list[Extent]()
        while not self.take("]"):
            at = self.next
            label = self.next.text if self.next.kind == "name" else None
            self.place += label is not None
            extents.append(Extent(label or (None if self.take("?") else self.whole()), at))
            if not self.take(",") and self.next.text != "]":
                self.fail(f"expected ',' or ']' after an axis of {name.text}, found {self.said()}")
        self.expect(",", f"the axes of {name.text}")
        self.format(name)
        self.expect(")", f"the format of {name.text}")
        if name.text in self.tensors:
            self.fail(f"tensor {name.text} is declared twice", at=name)
        self.tensors[name.text] = Declaration(name.text, tuple(extents), BITS[kind.text], name)

    def format(self, tensor: Token) -> None:
        """Read `Dense`, `{Dense}` or `{D, D}`; refuse formats that leave zeros out."""
        at, formats = self.next, list[str]()
        braced = self.take("{") is not None
        while not formats or self.take(","):
            formats.append(self.kind("name", "a format such as Dense").text)
        if braced:
            self.expect("}", "a format")
        if not set(formats) <= {"Dense", "D"}:
            said = ", ".join(formats)
            self.fail(
                f"tensor {tensor.text} is sparse: its format is {said}; only dense products are read",
                f"for the dense work, write {{Dense}} in place of {{{said}}}; for that of the nonzeros, write the product as "
                f"a problem file, where {tensor.text} has a density, such as density: 0.1",
                at,
            )

    # -- statements with work
    # --------------------------------------------------------------------------------------------

    def call(self, name: Token) -> None:
        """Skip `print(C[i, j])` and the like, up to the bracket that closes it."""
        if name.text == "print" and self.tokens[self.place + 1 : self.place + 2]:
            self.statements.append(Printed(self.tokens[self.place + 1].text))
        self.skip()

    def skip(self) -> None:
        """Skip a bracket with its contents."""
        begin, depth = self.next, 0
        while True:
            depth += (self.next.text in ("(", "[", "{")) - (self.next.text in (")", "]", "}"))
            if self.next.kind == "end":
                self.fail("the bracket is not closed", at=begin)
            self.place += 1
            if not depth:
                return

    def variable(self) -> None:
        """Read `var t = getTime()` or `var a = SUM(A[i, j])`."""
        name = self.kind("name", "the name of a variable")
        self.expect("=", name.text)
        function = self.kind("name", "getTime() or SUM(...)")
        if function.text in SKIPPED and self.next.text == "(":
            self.skip()
        elif function.text == "SUM" and self.take("("):
            operand = self.expression(0, 0)
            if not isinstance(operand, Reference | Turned):
                self.fail("SUM of an expression; expected a tensor", "assign it to a tensor first", operand.at)
            self.expect(")", "the operand of SUM")
            self.statements.append(Sum(name.text, operand))
        else:
            self.fail(f"{function.text} is not read here; expected getTime() or SUM(...)", at=function)

    def assignment(self, name: Token) -> None:
        """Read `C[i, k] += expression`. A fill is skipped."""
        target = self.reference(name)
        if at := self.take("<"):
            self.fail(f"a mask of {name.text}: which words are computed depends on data", at=at)
        operator = self.take("=", "+=", "-=") or self.fail(f"expected '=' after {name.text}, found {self.said()}")
        filled = self.filled() if operator.text == "=" else None
        if filled is None:
            self.take("-", "+")
        self.operators = 0
        self.statements.append(Assignment(target, filled or self.expression(0, 0), adds=operator.text != "="))

    def filled(self) -> Scalar | None:
        """Skip `random()`, another function that fills a tensor, or a list of numbers; None: there is none."""
        at = self.next
        if at.kind == "name" and at.text != "transpose" and self.tokens[self.place + 1].text == "(":
            if at.text not in FILLS:
                self.fail(f"the function {at.text} is not read", f"known: {', '.join(sorted(FILLS))}, transpose")
            self.place += 1
        elif at.text != "[":
            return None
        self.skip()
        return Scalar(at)

    def reference(self, name: Token) -> Reference:
        self.expect("[", name.text)
        return Reference(name.text, tuple(label.text for label in self.names()), name)

    def expression(self, lowest: int, depth: int) -> Expression:
        """Read operands with operators of at least this precedence. Equal ones associate to the left."""
        left = self.primary(depth)
        while True:
            token = self.next
            precedence = 40 if token.kind == "ring" else _PRECEDENCE.get(token.text, -1)
            if token.kind not in ("ring", "mark") or precedence < lowest or precedence < 0:
                return left
            self.place += 1
            self.operators, self.every = self.operators + 1, self.every + 1
            if self.operators > MAX_OPERATORS:
                self.fail(f"more than {MAX_OPERATORS} operators in a statement", at=token)
            right = self.expression(precedence + 1, depth)
            operator = OPERATORS.get(token.text) or re.sub(r"\s", "", token.text)
            left = Binary(operator, left, right, token)

    def primary(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} nested brackets")
        if self.take("("):
            inside = self.expression(0, depth + 1)
            self.expect(")", "an expression")
            return inside
        if self.next.kind == "number":
            return Scalar(self.kind("number", "a number"))
        name = self.kind("name", "a tensor such as A[i, j]")
        if name.text == "transpose" and self.next.text == "(":
            return self.transposed(name)
        if self.next.text != "[":
            self.fail(f"expected '[' and the labels of {name.text}, found {self.said()}")
        return self.reference(name)

    def transposed(self, at: Token) -> Turned:
        """Read `transpose(A[i, j], {j, i})`, after the name."""
        self.expect("(", "transpose")
        operand = self.reference(self.kind("name", "a tensor such as A[i, j]"))
        self.expect(",", f"{operand.name}[...]")
        self.expect("{", "','")
        labels = list[str]()
        while not self.take("}"):
            labels.append(self.kind("name", "a label").text)
            self.take(",")
        self.expect(")", "the labels in their new order")
        if sorted(labels) != sorted(operand.labels):
            said = ", ".join(operand.labels)
            self.fail(f"transpose gives {', '.join(labels)}; expected an order of {said}", at=at)
        return Turned(operand, tuple(labels), at)
