"""Conversion of Timeloop's `problem` section: shape and instance."""

from __future__ import annotations

from tilewright.expressions import resolved
from tilewright.schema.document import parse_document, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Role, Tensor
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.sections import SPARSE, Sections
from tilewright_adapters.timeloop.reading.sparse import read_densities

_COMMON = ("commonBitwidth", "commonDatawidth")
"""Keys of Timeloop's quantisation fork with the bits of a value of every tensor; the second is older."""
_IN_INSTANCE = {"type", "name", "version", "notes", "bitwidths", *_COMMON}

SHAPES = {
    "cnn-layer": """
name: cnn-layer
dimensions: [R, S, P, Q, C, K, N]
coefficients: [{name: Wstride}, {name: Hstride}, {name: Wdilation}, {name: Hdilation}]
data-spaces:
- {name: Weights, projection: [C, K, R, S]}
- {name: Inputs, projection: [N, C, [[R, Wdilation], [P, Wstride]], [[S, Hdilation], [Q, Hstride]]]}
- {name: Outputs, projection: [N, K, Q, P], read-write: true}
""",
    "gemm": """
name: gemm
dimensions: [M, N, K]
data-spaces:
- {name: A, projection: [M, K]}
- {name: B, projection: [N, K]}
- {name: C, projection: [M, N]}
- {name: D, projection: [M, N], read-write: true}
""",
    "gemm-abz": """
name: gemm-ABZ
dimensions: [M, N, K]
data-spaces:
- {name: A, projection: [M, K]}
- {name: B, projection: [N, K]}
- {name: Z, projection: [M, N], read-write: true}
""",
}
"""Shapes that come with Timeloop; a problem without a shape has the first one."""


def read_problem(section: Cursor, sections: Sections) -> Problem:
    """Return the problem of a `problem` section.

    Sizes are in `instance` or next to the shape, which may be a section of its own. Without a
    shape, Timeloop's default applies: a convolution.

    Raises:
        InputError: the section is invalid.
    """
    if isinstance(section.value, list):
        raise section.error(
            f"{len(section.value)} problems in a list, as in LoopTree; only one is supported",
            hint="give one, as a mapping with shape and instance",
        )
    fields, separate = section.fields("problem"), sections.parts.get("shape")
    if "ops" in fields and "io" in fields:
        raise section.error(
            "this is a TileFlow problem: operations that are fused, with io and ops; only one operation is supported",
            hint="write the operation as a Timeloop problem with shape and instance",
        )
    shape = fields.get("shape", separate)
    for name, cursor in fields.items() if shape is None else ():
        if suggestion(name, ["shape"]):
            raise cursor.error(f"the problem has no 'shape', but '{name}'")
    if shape is None or isinstance(shape.value, str):
        shape = separate or _own_shape("cnn-layer" if shape is None else shape.value, shape or section)
    parts = shape.fields("shape")
    refuse_unknown(parts, {"name", "dimensions", "coefficients", "data_spaces", "version"}, "a shape")
    for part in ("dimensions", "data_spaces"):
        if part not in parts:
            raise shape.error(f"the shape has no '{part.replace('_', '-')}'")
    dimensions = tuple(item.text("a dimension") for item in parts["dimensions"].items("dimensions"))
    if len(set(dimensions)) != len(dimensions):
        raise parts["dimensions"].error(f"a dimension is repeated: {', '.join(dimensions)}")
    values = sections.variables()
    given = fields["instance"].fields("instance") if "instance" in fields else fields
    sizes = {
        name: size.with_value(resolved(size.value, values)) if values and isinstance(size.value, str) else size
        for name, size in given.items()
    }
    coefficients = _coefficients(parts.get("coefficients"))
    _check_instance(sizes, {*dimensions, *coefficients}, sections)
    coefficients |= {name: _coefficient(name, sizes[name], sections) for name in coefficients if name in sizes}
    missing = [name for name in dimensions if name not in sizes]
    if missing:
        where = fields.get("instance", section)
        raise where.error(f"dimension {missing[0]} has no size", hint=f"add '{missing[0]}: <size>' to the instance")
    tensors = _tensors(parts["data_spaces"], dimensions, coefficients)
    densities = {} if sections.dense else read_densities(given, [tensor.name for tensor in tensors], sections)
    return Problem(
        name=parts["name"].text("the shape's name") if "name" in parts and parts["name"].value != "" else "problem",
        dimensions=FrozenDict({name: _size(name, sizes[name]) for name in dimensions}),
        tensors=tuple(tensor.model_copy(update={"density": densities.get(tensor.name)}) for tensor in tensors),
    )


def value_bits(section: Cursor, problem: Problem) -> dict[str, int]:
    """Return the bits of one value by tensor, as Timeloop's quantisation fork gives them. Raises InputError."""
    fields = section.fields("problem") if isinstance(section.value, dict) else {}
    given = fields["instance"].fields("instance") if "instance" in fields else fields
    common = [given[key].whole(key) for key in _COMMON if key in given]
    by_tensor = dict.fromkeys(problem.tensor_names, common[0]) if common else {}
    if "bitwidths" not in given:
        return by_tensor
    widths = given["bitwidths"].fields("bitwidths")
    refuse_unknown(widths, problem.tensor_names, "bitwidths")
    return by_tensor | {name: width.whole(f"bit width of {name}") for name, width in widths.items()}


def _size(name: str, given: Cursor) -> int:
    """Return the size of a dimension. Raises InputError."""
    word = given.value
    if isinstance(word, str) and word.isidentifier():
        hint = f"give its value (--set {word}=1), or add a file with 'variables: {{{word}: 1}}'"
        raise given.error(f"dimension {name} is '{word}', but there is no such variable", hint=hint)
    return given.whole(f"dimension {name}")


def _coefficient(name: str, given: Cursor, sections: Sections) -> int:
    """Return a coefficient. Raises InputError.

    Some exporters write a dilation of 0 for none; it is read as 1. A stride of 0 is read as
    Timeloop reads it: the tensor does not move along that dimension.
    """
    if given.value != 0 or isinstance(given.value, bool):
        return given.whole(f"coefficient {name}")
    dilates = name.lower().endswith("dilation")
    meaning = "read as 1, no dilation" if dilates else "its dimension moves nothing, as in Timeloop"
    sections.warnings.append(f"{given.document.locate(given.path)}: {name} is 0: {meaning}")
    return int(dilates)


def _coefficients(section: Cursor | None) -> dict[str, int]:
    """Return name -> default; 1 if none is given."""
    result: dict[str, int] = {}
    for item in section.items("coefficients") if section and section.value else ():
        fields = item.fields("a coefficient")
        if "name" not in fields:
            raise item.error("a coefficient has no 'name'")
        name = fields["name"].text("a coefficient's name")
        result[name] = fields["default"].whole(f"default of {name}") if "default" in fields else 1
    return result


def _own_shape(name: str, where: Cursor) -> Cursor:
    """Return one of the shapes that come with Timeloop. Raises InputError."""
    known = {word: word for word in SHAPES} | {word.replace("-", "_"): word for word in SHAPES}
    if name.lower() not in known:
        raise where.error(
            f"unknown shape '{name}'{suggestion(name, known)}",
            hint=f"Timeloop has {', '.join(SHAPES)}; define other shapes by name, dimensions and data-spaces",
        )
    return Cursor(parse_document(SHAPES[known[name.lower()]], source=f"Timeloop's shape {name}"))


def _check_instance(sizes: dict[str, Cursor], known: set[str], sections: Sections) -> None:
    for name, cursor in sizes.items():
        if name in SPARSE:
            if sections.dense or name == "sparse_optimizations":
                sections.omit(name, cursor)
            continue
        if name == "data_spaces":
            if not cursor.value:
                continue
            raise cursor.error("data-space bounds in the instance are not supported: they would change results")
        if name in known | _IN_INSTANCE | {"shape", "instance"}:
            continue
        meant = suggestion(name, known)
        written = next((known_name for known_name in known if known_name.lower() == name.lower()), None)
        if meant and written is None:
            raise cursor.error(f"'{name}' is not a dimension or coefficient{meant}")
        place = cursor.document.locate(cursor.path)
        unlike = f" ({written} is a different name)" if written else ""
        sections.warnings.append(
            f"{place}: '{name}' is not a dimension or coefficient{unlike}: ignored, as in Timeloop"
        )


def _tensors(section: Cursor, dimensions: tuple[str, ...], coefficients: dict[str, int]) -> tuple[Tensor, ...]:
    rows: list[tuple[str, bool, tuple[Rank, ...]]] = []
    for item in section.items("data-spaces"):
        fields = item.fields("a data-space")
        refuse_unknown(fields, {"name", "projection", "read_write", "ranks"}, "a data-space")
        for part in ("name", "projection"):
            if part not in fields:
                raise item.error(f"the data-space has no '{part}'")
        places = [cursor for cursor in fields["projection"].items("the projection") if cursor.value != []]  # []: scalar
        ranks = tuple(rank for rank in (_rank(place, dimensions, coefficients) for place in places) if rank.terms)
        written = fields.get("read_write")
        rows.append((fields["name"].text("a data-space's name"), _is_true(written), ranks))
    if sum(written for _, written, _ in rows) != 1:
        count = sum(written for _, written, _ in rows)
        raise section.error(f"{count} data-spaces are read-write", hint="set 'read-write: True' on the output alone")
    first = next((name for name, written, _ in rows if not written and name[0] not in "wW"), None)

    def role(name: str, written: bool) -> Role:
        return "output" if written else "input" if name == first else "weight"

    return tuple(Tensor(name=name, role=role(name, written), projection=ranks) for name, written, ranks in rows)


def _is_true(cursor: Cursor | None) -> bool:
    return cursor is not None and cursor.truth("read-write")


def _rank(rank: Cursor, dimensions: tuple[str, ...], coefficients: dict[str, int]) -> Rank:
    """Return a coordinate from a dimension's name or a list of terms.

    A term is `[dimension]` or `[dimension, coefficient]`.
    """
    terms: dict[str, int] = {}
    if isinstance(rank.value, str):
        return Rank(terms=FrozenDict({rank.choice("dimension", dimensions): 1}))
    for term in rank.items("a rank"):
        name, factor = None, 1
        for part in term.items("a term"):
            if part.value in dimensions:
                if name is not None:
                    raise term.error(f"a product of dimensions ({name} and {part.value}) is not affine")
                name = str(part.value)
            elif isinstance(part.value, int) and not isinstance(part.value, bool):
                factor *= part.whole("a coefficient")
            else:
                factor *= coefficients[part.choice("dimension or coefficient", [*dimensions, *coefficients])]
        if name is None:
            raise term.error("a term without a dimension", hint="write [dimension] or [dimension, coefficient]")
        if factor:
            terms[name] = terms.get(name, 0) + factor
    return Rank(terms=FrozenDict(terms))
