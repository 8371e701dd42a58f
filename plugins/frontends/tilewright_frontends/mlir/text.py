"""Text of a module: locations and data that no reader needs, lines and columns, shapes in types."""

from __future__ import annotations

import bisect
import math
import re

from tilewright.errors import InputError
from tilewright_frontends.mlir.tree import OpenShape, Value

MAX_NUMBERS = 64
"""Maximum length of a list; longer lists are data, not attributes of an operator."""
STRING = r'"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"'
_PIECES = re.compile(
    r"//[^\n]*|(?P<pretty>\barith\.constant\s+(?:\{[^{}\n]*\}\s*)?)?"
    rf'\bdense<(?P<data>{STRING}|[^\[\]<>"\n]*)>\s*:\s*(?P<type>tensor|vector)<(?P<shape>(?:\d{{1,18}}x)+)|{STRING}'
    r'|(?P<open>")|^(?P<alias>#loc\d*) = loc\(|(?<![\w.$#])loc\(',
    re.MULTILINE,
)
_INSIDE = re.compile(rf"{STRING}|[()\"]")
_NAMED = re.compile(r'\s*"((?:[^"\\\n]|\\.)*)"\s*(?:\(|$)')
_ALIAS = re.compile(r"\s*(#loc\d*)\s*$")
_NESTED = re.compile(r"\s*(?:callsite\(|fused(?:<[^<>]*>)?\[)(#loc\d*)")


def readable(text: str, name: str, data: bool = True) -> tuple[str, list[tuple[int, int, str]]]:
    """Return the text with locations and large constants blanked, and the named locations.

    xdsl supports only some locations. It would expand large data that are given as one number or
    string. Blanks keep all positions valid.

    Args:
        text: the text of a module.
        name: name of the file, for messages.
        data: whether to blank large constants.

    Returns:
        The text, and (start, end, name) of every location with a name, such as those of JAX.

    Raises:
        InputError: a string or location is not closed; xdsl would never finish on such a string.
    """
    hidden: list[tuple[int, int, str]] = []
    locations: list[tuple[int, int, str]] = []
    aliases: dict[str, str] = {}
    place = 0
    while match := _PIECES.search(text, place):
        place = match.end()
        if match["open"]:
            raise _unclosed(text, name, match.start())
        if data and match["shape"] and math.prod(map(int, match["shape"].split("x")[:-1])) > MAX_NUMBERS:
            if match["pretty"]:  # its result has the type of the data, so the shape is needed
                hidden.append((match.start("pretty"), match.start("type"), '"arith.constant"() : ()->'))
            else:
                hidden += [(*match.span("data"), ""), (*match.span("shape"), "0x")]
        if not match[0].endswith("loc("):
            continue
        end = _closing(text, place)
        if end is None:
            raise _unclosed(text, name, match.end())
        content = text[place : end - 1]
        if match["alias"]:
            aliases[match["alias"]] = content
        hidden.append((match.start(), end, ""))
        locations.append((match.start(), end, content))
        place = end
    kept, last = [], 0
    for start, end, instead in hidden:
        kept += [text[last:start], re.sub(r"[^\n]", " ", text[start : end - len(instead)]), instead]
        last = end
    named = [(start, end, _name(content, aliases)) for start, end, content in locations]
    return "".join([*kept, text[last:]]), [(start, end, label) for start, end, label in named if label]


def _unclosed(text: str, name: str, place: int) -> InputError:
    line, column = Places(text).of(place)
    return InputError(f"{name}:{line}:{column}: a string or location is not closed, or a string has an invalid escape")


def _closing(text: str, place: int) -> int | None:
    """Return the end of the parenthesis that is open at a position.

    None if it is not closed, or contains a string that is not closed.
    """
    depth = 1
    while match := _INSIDE.search(text, place):
        if match[0] == '"':
            return None
        place = match.end()
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return place
    return None


def _name(content: str, aliases: dict[str, str]) -> str | None:
    """Return the outermost name in a location; None if it contains only files and lines."""
    for _ in range(16):
        if named := _NAMED.match(content):
            return named[1]
        link = _ALIAS.match(content) or _NESTED.match(content)
        if link is None or link[1] not in aliases:
            return None
        content = aliases[link[1]]
    return None


class Places:
    """Conversion of text offsets to lines and columns, from 1."""

    def __init__(self, text: str) -> None:
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def of(self, place: int) -> tuple[int, int]:
        line = bisect.bisect_left(self._breaks, place)
        return line + 1, place - (self._breaks[line - 1] if line else -1)


class Labels:
    """Names of locations, found by the offset at which an operation ends.

    `found` holds (start, end, name) of the locations, which are blank in the text.
    """

    def __init__(self, text: str, labels: list[tuple[int, int, str]]) -> None:
        self.text, self.found = text, labels
        self.starts = [start for start, _, _ in labels]

    def of(self, end: int) -> str | None:
        """Return the name of the location that directly precedes an offset."""
        index = bisect.bisect_left(self.starts, end) - 1
        if index < 0 or self.text[self.found[index][1] : end].strip():
            return None
        return self.found[index][2]


_DIMENSIONS = re.compile(r"(?:tensor|memref|vector)<((?:(?:\d{1,18}|\?)x)*)(?!\*)|!torch\.v?tensor<\[([\d,?\s]*)\]")


def shape_of(kind: str) -> OpenShape | None:
    """Return the shape in a type: `tensor<8x?xf32>`, `!torch.vtensor<[8,?],f32>`.

    None if it is no tensor, or its rank is open.
    """
    match = _DIMENSIONS.match(kind)
    if match is None:
        return None
    sizes = match[1].split("x")[:-1] if match[2] is None else match[2].split(",") if match[2].strip() else []
    return tuple(None if size.strip() == "?" else int(size) for size in sizes)


_ELEMENT = re.compile(r"(complex<)?(?:!(?:quant\.\w+<|torch\.q(?:u?int)))?(?:[su]?i|u?int|u|b?f|tf)?(\d{1,9})(?!\d)")


def bits_of(element: str) -> int | None:
    """Return the bits of an element type; None if not known.

    Stored values count: 8 for `i8`, `f8E4M3FN` and `!quant.uniform<i8:f32, 0.1>`.

    >>> bits_of("bf16"), bits_of("complex<f32>"), bits_of("!torch.quint8"), bits_of("index")
    (16, 64, 8, None)
    """
    match = _ELEMENT.match(element)
    return None if match is None else int(match[2]) * (2 if match[1] else 1)


def value_of(kind: str) -> Value:
    """Return a value of a type, with its shape and the bits of its elements if it is a tensor."""
    shape, match = shape_of(kind), _DIMENSIONS.match(kind)
    bits = bits_of(kind[match.end() :].lstrip("], ")) if match else None
    return Value(shape, bits, kind.startswith("memref"))
