"""Parser of libconfig, the notation of Timeloop's oldest files (.cfg), with locations."""

from __future__ import annotations

import bisect
import re
from typing import Any

from tilewright.errors import InputError, Location
from tilewright.files import MAX_TEXT
from tilewright.schema.document import MAX_DEPTH, MAX_NODES, Document, Path_

# Spaces are one token each: Python 3.11.2 takes an unclosed comment for one in a repeated possessive group.
_TOKEN = re.compile(
    r"""(?P<space>\s++|\#[^\n]*+|//[^\n]*+|/\*.*?\*/)
      |(?P<include>@include\b)
      |(?P<text>"(?:[^"\\]++|\\.)*+")
      |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+L{0,2}|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?L{0,2}))
      |(?P<name>[A-Za-z*][-A-Za-z0-9_*]*)
      |(?P<sign>[{}()\[\]=:;,])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CLOSING = {"{": "}", "(": ")", "[": "]"}


def parse_libconfig(text: str, source: str) -> Document:
    """Return the document. Raises InputError with line and column."""
    reader = _Reader(text, source)
    data = reader.group(())
    return Document(data, source, reader.marks)


class _Reader:
    """A recursive-descent parser."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source = text, source
        self.marks: dict[Path_, Location] = {(): Location(source, 1, 1)}
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.position = 0
        self.kind, self.token, self.start = "", "", 0
        self.step()

    def step(self) -> None:
        """Advance to the next token; its kind is `end` after the last one."""
        while self.position < len(self.text):
            match = _TOKEN.match(self.text, self.position)
            self.start = self.position
            if match is None:
                raise self.error(f"cannot read {self.text[self.position]!r}")
            self.position = match.end()
            if match.lastgroup != "space" and len(match[0]) > MAX_TEXT:
                raise self.error(f"a value has {len(match[0]):,} characters; expected at most {MAX_TEXT:,}")
            if match.lastgroup == "include":
                raise self.error("@include is not supported", hint="give the included files as inputs")
            if match.lastgroup != "space":
                self.kind, self.token = str(match.lastgroup), match[0]
                return
        self.kind, self.token, self.start = "end", "the end", len(self.text)

    def error(self, message: str, hint: str | None = None) -> InputError:
        return InputError(message, location=self.place(), hint=hint)

    def place(self) -> Location:
        line = bisect.bisect_right(self.lines, self.start)
        return Location(self.source, line, self.start - self.lines[line - 1] + 1)

    def expect(self, *tokens: str) -> None:
        if self.kind != "sign" or self.token not in tokens:
            raise self.error(f"expected {' or '.join(repr(token) for token in tokens)}, found {self.token!r}")
        self.step()

    def group(self, path: Path_, closing: str | None = None) -> dict[str, Any]:
        """Parse settings up to the closing brace, or to the end."""
        result: dict[str, Any] = {}
        while self.kind == "name":
            name = self.token
            if name in result:
                raise self.error(f"'{name}' is repeated")
            self.step()
            self.expect("=", ":")
            result[name] = self.value((*path, name))
            while self.kind == "sign" and self.token in (";", ","):
                self.step()
        if closing is not None:
            self.expect(closing)
        elif self.kind != "end":
            raise self.error(f"expected a setting, name = value; found {self.token!r}")
        return result

    def value(self, path: Path_) -> Any:
        self.marks[path] = self.place()
        if len(path) > MAX_DEPTH:
            raise self.error(f"values are nested in more than {MAX_DEPTH} levels")
        if len(self.marks) > MAX_NODES:
            raise self.error(f"the file has more than {MAX_NODES:,} values")
        if self.kind == "sign" and self.token in _CLOSING:
            opening = self.token
            self.step()
            return self.group(path, "}") if opening == "{" else self.series(path, _CLOSING[opening])
        if self.kind not in ("text", "number", "name"):
            raise self.error(f"expected a value, found {self.token!r}")
        return self.scalar()

    def series(self, path: Path_, closing: str) -> list[Any]:
        result: list[Any] = []
        while not (self.kind == "sign" and self.token == closing):
            result.append(self.value((*path, len(result))))
            if self.kind == "sign" and self.token == ",":
                self.step()
            elif not (self.kind == "sign" and self.token == closing):
                raise self.error(f"expected ',' or {closing!r}, found {self.token!r}")
        self.step()
        return result

    def scalar(self) -> Any:
        kind, token = self.kind, self.token
        if kind == "name":
            if token.lower() not in ("true", "false"):
                raise self.error(f"expected a value, found {token!r}", hint="put text in double quotes")
            self.step()
            return token.lower() == "true"
        if kind == "number":
            value = self.number(token.rstrip("L"))
            self.step()
            return value
        words = []
        while self.kind == "text":  # adjacent texts are one
            words.append(_ESCAPE.sub(r"\1", self.token[1:-1]))
            self.step()
        return "".join(words)

    def number(self, token: str) -> int | float:
        try:
            if token.lower().lstrip("+-").startswith("0x"):
                return int(token, 16)
            return int(token) if re.fullmatch(r"[-+]?[0-9]+", token) else float(token)
        except ValueError:
            raise self.error("a number has too many digits") from None
