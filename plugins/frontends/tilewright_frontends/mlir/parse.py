"""Parsing of MLIR text. No other module imports xdsl.

Generic form needs only the builtin dialect, regardless of the tool that printed it. Pretty form is
parsed with all dialects of xdsl; it lacks StableHLO, TOSA and torch, which `pretty` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects import builtin, get_all_dialects
from xdsl.ir import Attribute as XdslAttribute
from xdsl.ir import Block as XdslBlock
from xdsl.ir import Operation as XdslOperation
from xdsl.ir import Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from tilewright.errors import InputError
from tilewright.files import read_bytes
from tilewright_frontends.mlir import onnx_dialect, pretty
from tilewright_frontends.mlir.text import MAX_NUMBERS, Labels, Places, bits_of, readable, value_of
from tilewright_frontends.mlir.tree import AffineMap, Attribute, Block, Linear, NotLinear, Operation, Value, unwrapped

MAGIC = b"ML\xefR"
"""First bytes of MLIR bytecode."""
MAX_BYTES = 32 * 2**20
"""Maximum file size in bytes, weights included; xdsl needs about 10 s per million characters."""
GENERIC = "mlir-opt {} --mlir-print-op-generic --mlir-elide-elementsattrs-if-larger=16"
"""Command that prints a file in generic form; other -opt tools accept the same options."""

_PROGRAMS = {"stablehlo": "stablehlo-opt", "chlo": "stablehlo-opt", "vhlo": "stablehlo-opt"}
"""Dialect -> tool that prints operations which mlir-opt does not support."""
_SEPARATOR = re.compile(r"^// -----[ \t]*$", re.MULTILINE)
"""Line between the modules of a split file (`mlir-opt --split-input-file`)."""
_VERSIONED = re.compile(r"(?<![\w.])vhlo\.\w+_v\d")
_OPERATION = re.compile(r"(?P<dialect>\w+)\.[\w.$]+\s*\Z")


def read(path: Path) -> Operation:
    """Return the module in a file.

    Raises:
        InputError: the file is unreadable, is bytecode, or is text that cannot be parsed.
    """
    data = read_bytes(path, MAX_BYTES)
    if data.startswith(MAGIC):
        raise InputError(f"{path} is MLIR bytecode; expected text", hint=f"print it as text: {GENERIC.format(path)}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", hint=f"print it as text: {GENERIC.format(path)}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Operation:
    """Return the module in a text; `name` identifies it in messages. Raises InputError.

    A split file has several modules, each with its own aliases.
    """
    modules = list(_split(text))
    if len(modules) < 2:
        return _parse(text, name)
    try:
        operations = tuple(_parse(module, name) for module in modules)
    except InputError as error:
        try:
            return _parse(text, name)  # the lines may be comments in one module
        except InputError:
            raise error from None
    return Operation("builtin.module", (), (), {}, (Block((), operations),), 1, 1)


def _split(text: str) -> Iterator[str]:
    """Yield the modules of a split file, with blank lines before them so that positions stay valid."""
    start = 0
    for end in (*(match.start() for match in _SEPARATOR.finditer(text)), len(text)):
        if pretty.COMMENT.sub("", text[start:end]).strip():
            yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = end


def _parse(text: str, name: str) -> Operation:
    """Return one module. Raises InputError."""
    generic = '"builtin.module"(' in text or '"func.func"(' in text
    if _VERSIONED.search(text):
        raise InputError(
            f"{name}: vhlo is a form for storage, and is not read",
            hint=f"convert it: stablehlo-opt {name} --vhlo-legalize-to-stablehlo --mlir-print-op-generic",
        )
    if not generic and pretty.recognises(text):
        return _pretty(text, name)
    blanked, labels = readable(text, name)
    context = Context(allow_unregistered=True)
    context.load_dialect(builtin.Builtin)
    if not generic:
        for dialect, factory in get_all_dialects().items():
            if dialect != "builtin":
                context.register_dialect(dialect, factory)
        _load_named(context, blanked)
    try:
        parser = _Parser(context, blanked, name)
        module = parser.parse_module()
    except RecursionError:
        raise InputError(f"{name}: regions or types are nested too deeply") from None
    except ParseError as error:
        if not generic and pretty.suffices(text):
            return _pretty(text, name)
        start, program = error.span.start, "mlir-opt"
        message = error.msg.strip().partition("\n")[0] or "unexpected text"
        named = _OPERATION.search(blanked, max(0, start - 200), start)
        if "custom format" in message and named:  # xdsl's message if it cannot parse an operation's pretty form
            start, program = named.start(), _PROGRAMS.get(named["dialect"], program)
            message = f"the pretty form of {named[0].strip()} is not supported"
        at = Places(blanked).of(start)
        hint = None if generic else f"print generic form: {GENERIC.format(name).replace('mlir-opt', program, 1)}"
        if named and named["dialect"] in onnx_dialect.LOWERED:
            hint = onnx_dialect.EMIT
        raise InputError(f"{name}:{at[0]}:{at[1]}: {message}", hint=hint) from None
    except MemoryError:
        raise  # reported by the function that limits this process
    except Exception as error:  # xdsl raises many exception types for text that is not MLIR
        if not generic and pretty.suffices(text):
            return _pretty(text, name)
        raise InputError(
            f"{name} is not readable MLIR: {type(error).__name__}: {error}",
            hint=f"print generic form: {GENERIC.format(name)}",
        ) from None
    return _Translation(blanked, labels, parser.spans).operation(module)


def _pretty(text: str, name: str) -> Operation:
    """Return a module in pretty form that xdsl cannot parse. Raises InputError."""
    return pretty.read(*readable(text, name, data=False), name, _attribute)


def _attribute(text: str) -> Attribute:
    """Return an attribute of the builtin dialect. Raises ValueError."""
    context = Context()
    context.load_dialect(builtin.Builtin)
    try:
        return attribute_of(Parser(context, text).parse_attribute())
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # ParseError, and others for text that is not MLIR
        raise ValueError(str(getattr(error, "msg", error)).strip().partition("\n")[0]) from None


# -- linalg operators that xdsl lacks
# ------------------------------------------------------------------------------

_NAMED_LINALG = re.compile(r"(?<![\w.\"!#])linalg\.([a-z]\w{0,63})\s*(?:\{|ins\s*\()")
MAX_NAMED = 100
"""Maximum number of different ones in a text; linalg has fewer."""


def _load_named(context: Context, text: str) -> None:
    """Load named linalg operators that xdsl lacks.

    All have the same syntax: attributes, `ins(...)`, `outs(...)`, results.
    """
    from xdsl.dialects.linalg import Linalg

    known = {operation.name for operation in Linalg.operations}
    fromkeys = dict.fromkeys(f"linalg.{match[1]}" for match in _NAMED_LINALG.finditer(text))
    missing = [name for name in fromkeys if name not in known]
    if missing:
        context.load_registered_dialect("linalg")
    for name in missing[:MAX_NAMED]:
        context.load_op(_named(name))


def _named(name: str) -> type[XdslOperation]:
    from xdsl.dialects.linalg.abstract_ops import NamedOperation
    from xdsl.irdl import irdl_op_definition

    class Named(NamedOperation):
        """An operator with operands, results and attributes only."""

        PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

        @classmethod
        def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
            return Region()

        def get_default_indexing_maps(self) -> Sequence[Any]:
            return ()

        def get_iterator_types(self) -> builtin.ArrayAttr[Any]:
            return builtin.ArrayAttr(())

    Named.name = name
    return irdl_op_definition(Named)


# -- conversion from xdsl
# ------------------------------------------------------------------------------------------


class _Parser(Parser):
    """A parser that records where each operation begins, and where the text after it begins."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self.spans: dict[XdslOperation, tuple[int, int]] = {}

    def parse_operation(self) -> XdslOperation:
        start = self.pos
        operation = super().parse_operation()
        self.spans[operation] = start, self.pos
        return operation


@dataclass
class _Translation:
    text: str
    labels: list[tuple[int, int, str]]
    spans: dict[XdslOperation, tuple[int, int]]
    values: dict[SSAValue, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places, self.names = Places(self.text), Labels(self.text, self.labels)

    def operation(self, source: XdslOperation) -> Operation:
        start, end = self.spans.get(source, (0, 0))
        line, column = self.places.of(start)
        name = source.op_name.data if isinstance(source, builtin.UnregisteredOp) else source.name
        every = {**source.attributes, **source.properties}
        name, attributes = unwrapped(name, {key: attribute_of(attribute) for key, attribute in every.items()})
        return Operation(
            name=name,
            operands=tuple(self.value(operand) for operand in source.operands),
            results=tuple(self.value(result) for result in source.results),
            attributes=attributes,
            regions=tuple(self.block(region.blocks[0]) for region in source.regions if len(region.blocks)),
            line=line,
            column=column,
            label=self.names.of(end),
        )

    def block(self, source: XdslBlock) -> Block:
        arguments = tuple(self.value(argument) for argument in source.args)
        return Block(arguments, tuple(self.operation(operation) for operation in source.ops))

    def value(self, source: SSAValue) -> Value:
        if source not in self.values:
            value = Value(None)
            if isinstance(source.type, builtin.ShapedType):
                shape = tuple(size if size >= 0 else None for size in source.type.get_shape())
                element = source.type.get_element_type() if isinstance(source.type, builtin.ContainerType) else ""
                value = Value(shape, bits_of(str(element)), isinstance(source.type, builtin.MemRefType))
            elif isinstance(source.type, builtin.UnregisteredAttr):
                value = value_of(str(source.type))
            self.values[source] = value
        return self.values[source]


def attribute_of(source: XdslAttribute) -> Attribute:
    """Return the part of an attribute that the frontend uses."""
    for kind, reader in _READERS:
        if isinstance(source, kind):
            return reader(source)
    return None


def _numbers(values: list[object], count: int) -> Attribute:
    """Return whole numbers; a single one is repeated `count` times."""
    numbers = values * count if len(values) == 1 else values
    return tuple(int(number) if isinstance(number, int) else None for number in numbers)


def _dense(elements: builtin.DenseIntOrFPElementsAttr) -> Attribute:
    count = 1
    for size in elements.get_shape() or ():
        count *= size
    return _numbers(list(elements.get_values()), count) if 0 < count <= MAX_NUMBERS else None


def _array(numbers: builtin.DenseArrayBase[Any]) -> Attribute:
    return _numbers(list(numbers.get_values()), 1) if len(numbers) <= MAX_NUMBERS else None


def _map(attribute: builtin.AffineMapAttr) -> AffineMap:
    data = attribute.data
    return AffineMap(data.num_dims + data.num_symbols, tuple(_linear(result, data.num_dims) for result in data.results))


def _linear(expression: AffineExpr, dimensions: int) -> Linear | NotLinear:
    try:
        terms, constant = _sum(expression, dimensions)
    except ValueError:
        return NotLinear(str(expression))
    return Linear({place: factor for place, factor in terms.items() if factor}, constant)


def _sum(expression: AffineExpr, dimensions: int) -> tuple[dict[int, int], int]:
    """Return coefficients and constant of a sum. Raises ValueError if it is no sum."""
    if isinstance(expression, AffineConstantExpr):
        return {}, expression.value
    if isinstance(expression, AffineDimExpr):
        return {expression.position: 1}, 0
    if isinstance(expression, AffineSymExpr):
        return {dimensions + expression.position: 1}, 0
    if not isinstance(expression, AffineBinaryOpExpr):
        raise ValueError
    (left, first), (right, second) = _sum(expression.lhs, dimensions), _sum(expression.rhs, dimensions)
    if expression.kind == AffineBinaryOpKind.Add:
        return {place: left.get(place, 0) + right.get(place, 0) for place in {**left, **right}}, first + second
    if expression.kind == AffineBinaryOpKind.Mul and not (left and right):
        terms, factor = (left, second) if left else (right, first)
        return {place: factor * term for place, term in terms.items()}, first * second
    raise ValueError


_READERS: list[tuple[type[XdslAttribute], Callable[..., Attribute]]] = [
    (builtin.IntegerAttr, lambda attribute: int(attribute.value.data)),
    (builtin.IntAttr, lambda attribute: int(attribute.data)),
    (builtin.StringAttr, lambda attribute: str(attribute.data)),
    (builtin.SymbolRefAttr, lambda attribute: str(attribute.string_value())),
    (builtin.AffineMapAttr, _map),
    (builtin.DenseArrayBase, _array),
    (builtin.DenseIntOrFPElementsAttr, _dense),
    (builtin.ArrayAttr, lambda attribute: tuple(attribute_of(item) for item in attribute.data)),
    (builtin.UnregisteredAttr, str),
]
