"""Reading of pretty-printed StableHLO, TOSA, torch, onnx-mlir and COMET, whose syntax xdsl lacks.

The reader finds operations, their operands, attributes and result types, and the regions in them.
It needs no syntax of single operations, because all follow one pattern:

    %results = dialect.name operands and attributes {regions} : types
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tilewright.errors import InputError
from tilewright_frontends.mlir.text import MAX_NUMBERS, STRING, Labels, Places, value_of
from tilewright_frontends.mlir.tree import WRAPPED, Attribute, Block, Operation, Value, unwrapped

_READ = re.compile(r"(?<![\w.\"!#@%])(?:stablehlo|chlo|mhlo|tosa|torch|onnx|ta)\.[a-zA-Z]")
COMMENT = re.compile(r"//[^\n]*")
_PRODUCTS = re.compile(r"(?<![\w.!#@%])(?:stablehlo|mhlo|chlo|tosa|torch|linalg|onnx|ta)\.[a-zA-Z]")
_LINALG = re.compile(r"(?<![\w.!#@%])linalg\.[a-z]")
_LOOPS = re.compile(r"(?<![\w.!#@%])affine\.(?:for|parallel)\b")


def recognises(text: str) -> bool:
    """Return whether the text has pretty operations that only this reader reads."""
    code = COMMENT.sub("", text)
    return _READ.search(code) is not None and _LINALG.search(code) is None and suffices(text)


def suffices(text: str) -> bool:
    """Return whether this reader can read a text in pretty form: it has products, and no affine loops."""
    code = COMMENT.sub("", text)
    return _PRODUCTS.search(code) is not None and _LOOPS.search(code) is None


def read(text: str, labels: list[tuple[int, int, str]], name: str, attribute: Callable[[str], Attribute]) -> Operation:
    """Return the module.

    Args:
        text: the text without locations.
        labels: start, end and name of the locations.
        name: name of the file, for messages.
        attribute: reads affine maps; it raises ValueError.

    Raises:
        InputError: brackets do not match, an alias has two meanings, a map is unreadable, or regions
            are nested too deeply.
    """
    reader = _Reader(text, Labels(text, labels), name, attribute)
    try:
        block = reader.block({})
    except RecursionError:
        raise InputError(f"{name}: regions are nested too deeply") from None
    if reader.place < len(text):
        raise reader.error("unexpected '}'", reader.place)
    if len(block.operations) == 1 and block.operations[0].name == "builtin.module":
        return block.operations[0]
    return Operation("builtin.module", (), (), {}, (block,), 1, 1)


_GAP = re.compile(r"(?:\s+|//[^\n]*|\{-#.*?#-\})+", re.DOTALL)
_TOKEN = re.compile(rf"{STRING}|//[^\n]*|[()\[\]{{}}\n]")
_REGION = re.compile(r'[ \t]*(?://[^\n]*)?(?:\n|\Z)(?!\s*+(?:[\w.$]++|"[^"\n]*")\s*+[=,])')
"""The start of a region: a new line that does not begin with an attribute."""
_NEXT = re.compile(
    r'(?:%[\w$.\-]++(?::\d++)?\s*+,?\s*+)++=|\^|\}|\)|"|#|!|\{-#|\Z|[a-zA-Z_]\w*\.[\w.$]|(?:return|call|func|module)\b'
)
"""The start of an operation, of a block, or of a definition, or the end of a region."""
_AFTER_TYPES = re.compile(r"\b(?:cond|do|reducer|else|attributes)\b")
_ALIAS = re.compile(r"([!#][\w.$]+)\s*=\s*(.*)", re.DOTALL)
_USED = re.compile(r"#[\w.$]++(?!\s*<)")
_MAPS = re.compile(r"\bindexing_maps\s*=\s*\[")
_NAME = r"%[\w$.\-]++"
_STATEMENT = re.compile(rf'\s*((?:{_NAME}(?::\d+)?\s*+,?\s*+)+=)?\s*"?([\w.$]+)"?')
_FUNCTION = re.compile(r'\s*(?:\w+\.)?func\s+(?:(public|private|nested)\s+)?@("[^"]*"|[\w$.\-]+)\s*\(')
_ARGUMENT = re.compile(rf"\s*({_NAME})\s*:\s*(.*)", re.DOTALL)
_OPERAND = re.compile(rf"({_NAME}(?:#\d++)?+)(?!\s*[:=])")
_PARTS_OF_LINALG = re.compile(r"\b(?:ins|outs)\s*\(([^:()]*):")
_COUNTERS = re.compile(r"^\s*\([^()]*\)\s*=(?=\s*\()")
_INTO = re.compile(r"\s(?:to|into)\s")
_APPLIES = re.compile(r"(?:\bapplies\s+|^\s*\{\s*)([a-z]+\.\w+)")
_BOUND = re.compile(rf"({_NAME})\s*=\s*({_NAME}(?:#\d+)?)")
_CALLEE = re.compile(r'@("[^"]*"|[\w$.\-]+)')
_PLAIN = {"module": "builtin.module", "call": "func.call", "return": "func.return", "func": "func.func"}
"""Names that are printed without their dialect."""

Scope = dict[str, Value]


@dataclass
class _Reader:
    text: str
    labels: Labels
    name: str
    attribute: Callable[[str], Attribute]
    place: int = 0
    places: Places = field(init=False)
    aliases: dict[str, str] = field(default_factory=dict)
    """Name of a type or attribute -> its text."""
    known: dict[str, Attribute] = field(default_factory=dict)
    """Text of affine maps -> the maps."""

    def __post_init__(self) -> None:
        self.places = Places(self.text)

    def value(self, kind: str) -> Value:
        return value_of(self.aliases.get(kind.strip(), kind))

    def error(self, message: str, place: int) -> InputError:
        line, column = self.places.of(place)
        return InputError(f"{self.name}:{line}:{column}: {message}")

    def block(self, scope: Scope, arguments: tuple[Value, ...] = ()) -> Block:
        """Read operations up to the bracket that ends their region."""
        operations: list[Operation] = []
        while True:
            if gap := _GAP.match(self.text, self.place):
                self.place = gap.end()
            if self.place >= len(self.text) or self.text[self.place] == "}":
                return Block(arguments, tuple(operations))
            start, statement, regions = self._statement(scope)
            if statement.startswith("^"):
                typed = self._arguments(statement.partition("(")[2].rpartition(")")[0], scope)
                arguments = arguments or typed  # those of the first block
            elif alias := _ALIAS.match(statement):
                found_text = COMMENT.sub("", alias[2]).strip()
                if self.aliases.setdefault(alias[1], found_text) != found_text:
                    raise self.error(f"re-declaration of alias '{alias[1]}'", start)
            elif not statement.startswith(("#", "!")):
                operations.append(self._operation(start, statement, regions, scope))

    def _statement(self, scope: Scope) -> tuple[int, str, list[Block]]:
        """Read to the end of a line outside of all brackets.

        Returns:
            Where the statement starts, its text without regions, and the regions.
        """
        start = last = self.place
        pieces, regions, depth = list[str](), list[Block](), 0
        while match := _TOKEN.search(self.text, self.place):
            self.place = match.end()
            token = match[0]
            if token == "{" and _REGION.match(self.text, self.place):
                pieces.append(self.text[last : match.start()])
                regions.append(self._region("".join(pieces), scope, match.start()))
                last = self.place
            elif token in ("(", "[", "{"):
                depth += 1
            elif token in (")", "]", "}"):
                if depth == 0:
                    self.place = match.start()
                    break
                depth -= 1
            elif token == "\n" and depth == 0 and not self._continues(start, match.start()):
                break
        else:
            self.place = len(self.text)
            if depth:
                raise self.error("a bracket is not closed", start)
        if self.place == start:
            raise self.error(f"unexpected '{self.text[start]}'", start)
        pieces.append(self.text[last : self.place])
        return start, "".join(pieces), regions

    def _continues(self, start: int, end: int) -> bool:
        """Return whether a statement continues after a line that ends at `end`."""
        line = COMMENT.sub("", self.text[max(start, self.text.rfind("\n", start, end)) : end]).rstrip()
        gap = _GAP.match(self.text, end)
        if self.text[start] == "^" and line.endswith(":"):
            return False  # a block begins
        return line.endswith((",", "=", ":", "->")) or not _NEXT.match(self.text, gap.end() if gap else end)

    def _region(self, head: str, scope: Scope, start: int) -> Block:
        """Read a region; the values outside are visible inside, except in a function."""
        function = _FUNCTION.match(head)
        inner: Scope = {} if function else dict(scope)
        if function:
            arguments = self._arguments(_bracketed(head[function.end() :]), inner)
        else:  # a loop gives names to its operands
            bound = {match[1]: replace(scope[match[2]]) for match in _BOUND.finditer(head) if match[2] in scope}
            inner |= bound
            arguments = tuple(bound.values())
        block = self.block(inner, arguments)
        if self.place >= len(self.text):
            raise self.error("a region is not closed", start)
        self.place += 1
        return block

    def _arguments(self, text: str, scope: Scope) -> tuple[Value, ...]:
        values: list[Value] = []
        for part in _parts(text):
            if match := _ARGUMENT.match(part):
                scope[match[1]] = self.value(match[2])
                values.append(scope[match[1]])
        return tuple(values)

    def _operation(self, start: int, text: str, regions: list[Block], scope: Scope) -> Operation:
        match = _STATEMENT.match(text)
        if match is None:
            raise self.error(f"expected an operation, found '{text[:20].strip()}'", start)
        name = _PLAIN.get(match[2], match[2])
        rest, types = _typed(text[match.end() :])
        rest = _COUNTERS.sub("", rest)
        read = ", ".join(_PARTS_OF_LINALG.findall(text)) if name.startswith("linalg.") else ""
        operands = tuple(scope.setdefault(operand[1], Value(None)) for operand in _OPERAND.finditer(read or rest))
        results = [(result, self.value(kind)) for result, kind in _results(match[1] or "", types)]
        scope |= dict(results)
        line, column = self.places.of(start + len(match[1] or "") + bool(match[1]))
        name, attributes = unwrapped(name, _attributes(name, rest) | self._maps(name, text, start))
        if function := _FUNCTION.match(text):
            attributes = {"sym_name": function[2].strip('"'), "sym_visibility": function[1]}
        if body := _APPLIES.search(rest):  # the short form of a region of one operation
            regions = [Block((), (Operation(body[1], (), (), {}, (), line, column),))]
        values = tuple(value for _, value in results)
        return Operation(name, operands, values, attributes, tuple(regions), line, column, self.labels.of(self.place))

    def _maps(self, name: str, text: str, start: int) -> dict[str, Attribute]:
        """Return the affine maps of an operation of linalg or of COMET, with aliases replaced by their text."""
        if not name.startswith(("linalg.", "ta.")) or not ("#" in text or "indexing_maps" in text):
            return {}
        for _ in range(2):  # an alias of all attributes, with aliases of maps inside
            text = _USED.sub(lambda match: self.aliases.get(match[0], match[0]), text)
        match = _MAPS.search(text)
        if match is None:
            return {}
        maps = f"[{_bracketed(text[match.end() :])}]"
        try:
            if maps not in self.known:
                self.known[maps] = self.attribute(maps)
        except ValueError as error:
            raise self.error(f"indexing_maps of {name}: {error}", start) from None
        return {"indexing_maps": self.known[maps]}


def _bracketed(text: str) -> str:
    """Return the text before the bracket that closes one opened before."""
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in ("(", "[", "{")) - (match[0] in (")", "]", "}"))
        if depth < 0:
            return text[: match.start()]
    return text


_LEVEL = re.compile(rf"{STRING}|->|[()\[\]{{}}<>:,]")


def _levels(text: str) -> Iterator[tuple[str, int]]:
    """Yield (token, position) of colons, commas and arrows outside of all brackets."""
    depth = 0
    for match in _LEVEL.finditer(text):
        token = match[0]
        if token in ("(", "[", "{", "<"):
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
        elif depth == 0 and not token.startswith('"'):
            yield token, match.start()


def _parts(text: str) -> list[str]:
    """Return the parts between commas."""
    ends = [place for token, place in _levels(text) if token == ","]
    return [text[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True)]


def _typed(text: str) -> tuple[str, list[str]]:
    """Return operands and attributes of an operation, and its types: those of results if marked."""
    colons = [place for token, place in _levels(text) if token == ":"]
    if not colons:  # linalg: operands have their types in brackets, and results follow an arrow
        colons = [place - 1 for token, place in _levels(text) if token == "->"][-1:]
    if not colons:
        return text, []
    colon = colons[0]
    rest, types = text[:colon], text[colon + 1 :]
    further = _AFTER_TYPES.search(types)
    types = types[: further.start()] if further else types
    arrows = [place for token, place in _levels(types) if token == "->"]
    types = (types[arrows[-1] + 2 :] if arrows else _INTO.split(types)[-1]).strip()
    if types.startswith("("):
        types = _bracketed(types[1:])
    return rest, [part.strip() for part in _parts(types)]


def _results(text: str, types: list[str]) -> list[tuple[str, str]]:
    """Return the names and types of results: `%0 =`, `%0:2 =`, `%a, %b =`."""
    names: list[str] = []
    for part in text.rstrip(" =").split(",") if text else ():
        name, _, count = part.strip().partition(":")
        names += [f"{name}#{place}" for place in range(min(int(count), MAX_NUMBERS))] if count else [name]
    types = types[-len(names) :] if len(types) >= len(names) else types * len(names)
    types += [""] * (len(names) - len(types))
    return list(zip(names, types, strict=False))


# -- attributes
# ----------------------------------------------------------------------------------------------------

_VALUE = re.compile(
    rf"(?<![\w.])([\w.]++)\s*+=\s*+(?:array<i\d+(?::(?P<array>[-\d,\s]*))?>|(?P<text>{STRING})|(?P<list>\[[-\d,\s:siu\[\]]*\])"
    r"|dense<(?P<dense>[-\d,\s\[\]]*)>\s*:\s*(?:tensor|vector)<(?P<shape>(?:\d{1,9}x)*)|(?P<dialect>#\w[\w.]*<)"
    r"|(?P<number>-?\d{1,18})(?![\w.])|(?P<truth>true|false)\b)"
)
_WHOLE = re.compile(r"(?<![\w:])-?\d{1,18}")
_DIMS = re.compile(r"(batching|contracting)_dims = \[([\d, ]*)\] x \[([\d, ]*)\]")
_IN_BRACKETS = re.compile(r"\b(pad|stride|dilation|out_pad)\(\[([-\d, ]*)\]\)")
_LAYOUT = re.compile(r"dim_numbers = (\[[^\]]*\]x\[[^\]]*\]->\[[^\]]*\])")
_WINDOW = {"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation"}
_SCALAR = re.compile(r"\s*dense<(-?\d+)>\s*$")
_WHOLE_NUMBER = re.compile(r"\s*(-?\d{1,18})\s*$")
_DENSE = re.compile(r"\s*dense<(\[[-\d,\s\[\]]*\])>")
_AXIS = re.compile(r"\b(dimension|dim)\((\d{1,9})\)")
_RANGES = re.compile(r"\[(\s*\d{1,18}:\d{1,18}(?::\d{1,18})?(?:,\s*\d{1,18}:\d{1,18}(?::\d{1,18})?)*)\]")
_PART = re.compile(r"\[([\d, ]*)\]\s*\[([\d, ]*)\]\s*\[([\d, ]*)\]")
_STATIC = ("static_offsets", "static_sizes", "static_strides")
_LOW = re.compile(r"\blow\[([\d, ]*)\]")
_DIRECTION = re.compile(r"\b(LT|LE|GT|GE|EQ|NE)\b")
_CONSTANT = re.compile(rf"\s*(?:(-?\d+)|(true|false)|({STRING}))")


def _attributes(name: str, text: str) -> dict[str, Attribute]:
    """Return the attributes that operators of `mlir` need, under the names of generic form."""
    if name.endswith((".constant", ".const", ".const_shape", ".literal")):
        match = _SCALAR.match(text) or _WHOLE_NUMBER.match(text)
        listed = None if match else _DENSE.match(text)
        if listed and len(numbers := tuple(map(int, _WHOLE.findall(listed[1])))) <= MAX_NUMBERS:
            return {"value": numbers}
        return {"value": int(match[1])} if match else dict(_values(text))
    if name.endswith(".compare"):
        return {"comparison_direction": _DIRECTION.findall(text)[0] if _DIRECTION.search(text) else None}
    if name.startswith("torch.constant."):
        match = _CONSTANT.match(text)
        value = None if match is None else match[3].strip('"') if match[3] else _number(match[1] or match[2])
        return {"value": value} if "=" not in text else {key: value for key, value in _values(text)}
    attributes = dict(_values(text))
    attributes |= {key: tuple(map(int, _WHOLE.findall(numbers))) for key, numbers in _IN_BRACKETS.findall(text)}
    attributes |= {key: int(number) for key, number in _AXIS.findall(text)}
    if ranges := _RANGES.search(text) if name.endswith(".slice") else None:
        parts = [[*map(int, bounds.split(":")), 1] for bounds in ranges[1].split(",")]
        attributes |= {
            "start_indices": tuple(bounds[0] for bounds in parts),
            "strides": tuple(bounds[2] for bounds in parts),
        }
    if (part := _PART.search(text) if name.endswith((".extract_slice", ".insert_slice")) else None) is not None:
        attributes |= {
            key: tuple(map(int, _WHOLE.findall(numbers))) for key, numbers in zip(_STATIC, part.groups(), strict=True)
        }
    if name == "tensor.pad" and (low := _LOW.search(text)):
        attributes["static_low"] = tuple(map(int, _WHOLE.findall(low[1])))
    if name == WRAPPED and (kind := re.match(rf"\s*({STRING})", text)):
        attributes["name"] = kind[1].strip('"')
    if callee := _CALLEE.search(text):
        attributes |= {"callee": callee[1].strip('"'), "decomposition": callee[1].strip('"')}
    if dims := _DIMS.findall(text):
        sides = ("lhs", "rhs")
        told = [
            f"{side}_{kind}_dimensions = [{places[place]}]"
            for kind, *places in dims
            for place, side in enumerate(sides)
        ]
        attributes["dot_dimension_numbers"] = ", ".join(told)
    if layout := _LAYOUT.search(text):
        attributes["dimension_numbers"] = layout[1]
        attributes |= {full: attributes[short] for short, full in _WINDOW.items() if short in attributes}
    return attributes


def _number(text: str) -> int:
    return int(text == "true") if text in ("true", "false") else int(text)


def _values(text: str) -> Iterator[tuple[str, Attribute]]:
    for match in _VALUE.finditer(text):
        key = match[1]
        if match["text"]:
            yield key, match["text"][1:-1]
        elif match["dialect"]:
            yield key, match["dialect"] + _angled(text[match.end() :])
        elif match["number"] or match["truth"]:
            yield key, _number(match["number"] or match["truth"])
        else:
            numbers = tuple(
                int(number) for number in _WHOLE.findall(match["array"] or match["list"] or match["dense"] or "")
            )
            if match["dense"] is not None and "[" not in match["dense"] and len(numbers) == 1:
                count = 1
                for size in match["shape"].split("x")[:-1]:
                    count *= int(size)
                numbers = numbers * min(count, MAX_NUMBERS)
            yield key, numbers[:MAX_NUMBERS]


def _angled(text: str) -> str:
    """Return the text up to the angle bracket that closes one opened before."""
    depth = 1
    for match in re.finditer(r"->|[<>]", text):
        depth += {"<": 1, ">": -1}.get(match[0], 0)
        if depth == 0:
            return text[: match.end()]
    return text
