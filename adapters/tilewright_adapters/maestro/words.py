"""Tokenizer of MAESTRO's files, with the location of every word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tilewright.errors import InputError, Location
from tilewright.files import MAX_TEXT, read_text
from tilewright.schema.document import suggestion
from tilewright_adapters.maestro.layer_table import is_layer_table, maestro_text

_WORD = re.compile(r"[^\s,:;()\->]+")
"""A word. Blanks, commas, colons, semicolons, parentheses, minus and greater-than only separate."""
_PLAIN = re.compile(r"[^\s{}]+(?: [^\s{}]+)*")

LARGEST = 2**40


class Words:
    """The words of a file. Braces are words only between blanks, as in MAESTRO.

    `//` starts a comment.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.position = 0
        self.words: list[tuple[str, Location]] = []
        self.lines = text.splitlines()
        for number, line in enumerate(self.lines, start=1):
            for match in _WORD.finditer(line.partition("//")[0]):
                place = Location(source, number, match.start() + 1)
                if len(match[0]) > MAX_TEXT:
                    raise InputError(
                        f"a word of {len(match[0]):,} characters; at most {MAX_TEXT:,} are read", location=place
                    )
                self.words.append((match[0], place))

    @property
    def next(self) -> str:
        """The next word; empty at the end of the file."""
        return self.words[self.position][0] if self.position < len(self.words) else ""

    @property
    def place(self) -> Location:
        """Location of the next word, or of the last one."""
        last = min(self.position, len(self.words) - 1)
        return self.words[last][1] if self.words else Location(self.source)

    def take(self) -> str:
        word = self.next
        self.position += 1
        return word

    def name(self) -> str:
        """Return the text before the next brace.

        MAESTRO splits a name with signs in it, such as `Conv2d-1`, into several words.
        """
        first = self.position
        while self.next and self.next != "{":
            self.position += 1
        if first == self.position:
            raise self.error(f"found {self._found()}; expected a name")
        (_, start), (last, end) = self.words[first], self.words[self.position - 1]
        if start.line != end.line or start.line is None or start.column is None or end.column is None:
            self.position = first
            raise self.error(
                f"the name that begins with {self._found()} does not end on this line", hint="write { after a name"
            )
        return self.lines[start.line - 1][start.column - 1 : end.column - 1 + len(last)]

    def expect(self, word: str) -> None:
        if self.next != word:
            raise self.error(f"expected '{word}', found {self._found()}", hint=self._braces())
        self.take()

    def one_of(self, known: Iterable[str], what: str) -> str:
        """Return the next word, which must be one of `known`."""
        known = tuple(known)
        if self.next not in known:
            hint = self._braces() or f"known: {', '.join(known)}"
            raise self.error(f"{self._found()} is not a {what}{suggestion(self.next, known)}", hint=hint)
        return self.take()

    def number(self, what: str, least: int = 1) -> int:
        """Return a whole number."""
        if not re.fullmatch(r"[0-9]{1,13}", self.next) or not least <= int(self.next) <= LARGEST:
            raise self.error(f"{what} must be a whole number from {least} to 2^40, found {self._found()}")
        return int(self.take())

    def error(self, message: str, *, hint: str | None = None) -> InputError:
        """Return an error at the next word."""
        return InputError(message, location=self.place, hint=hint)

    def _found(self) -> str:
        return f"'{self.next}'" if self.next else "the end of the file"

    def _braces(self) -> str | None:
        separate = ("{" in self.next or "}" in self.next) and len(self.next) > 1
        return "braces must be separated by blanks" if separate else None


def is_name(text: str) -> bool:
    """Return whether the text, before a brace, is read back as this name."""
    if len(text) > MAX_TEXT or not _PLAIN.fullmatch(text):
        return False
    words = Words(f"{text} {{", "a name")
    return words.next not in ("", "{") and words.name() == text and words.next == "{"


def read_words(path: Path) -> Words:
    """Read a file; a table of layers (CSV) as a network. Raises InputError if it is absent, too large or not text."""
    text, source = read_text(path), str(path)
    if path.suffix == ".csv" and is_layer_table(text):
        text = maestro_text(text, source)
    return Words(text, source)
