"""`scalesim`: topologies of SCALE-Sim (CSV), whose rows are convolutions, or products of matrices.

A first line names the columns: those of `SIZES` after the name, or `Layer, M, N, K`. A second stride along the width,
`Batch Size` and `Sparsity` may follow. uSystolic-Sim adds `Layer Type` and `MAC Cycles`. Lines may end in commas.
`#` begins a comment. Rows with a name alone are headings.

Inputs contain their padding. A window lies within the input, as in SCALE-Sim 1 and in uSystolic-Sim:

    rows of the output = (IFMAP Height - Filter Height) // stride + 1

SCALE-Sim 2 and 3 round up instead. If the stride leaves a rest, they count one more window, which ends beyond the input.

A name that contains `DP` marks a depthwise convolution, as in SCALE-Sim 2 and 3: each channel has Num Filter filters of its
own. SCALE-Sim 1 reads such a row like any other. Both count rows x columns x filter x Channels x Num Filter
multiplications. Other names, such as `Conv2_dw`, mean nothing to SCALE-Sim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError, Location
from tilewright.files import read_text
from tilewright.schema.density import Density
from tilewright.schema.document import suggestion
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends import MAX_SIZE, ScaleSimOptions, nests
from tilewright_frontends.nests import Unsupported, unique_name
from tilewright_frontends.sources import text_of

SUFFIX = ".csv"
MAX_ROWS = 10_000
DEPTHWISE = "DP"
"""Part of the name of a depthwise convolution."""
NAMES = (["layername"], ["layer"], ["l"])
"""Titles of the first column, as letters alone."""
GEMM = ("m", "n", "k")
CONVOLUTION = ("ifmap", "ifmap", "filter", "filter", "channel", "numfilter", "stride")
"""Beginnings of the titles after the name, in their order, as letters alone. Some files call both sizes of the input `width`."""
SIZES = ("IFMAP Height", "IFMAP Width", "Filter Height", "Filter Width", "Channels", "Num Filter", "Strides")
FURTHER = {"stride": "Stride W", "batchsize": "Batch Size", "sparsity": "Sparsity"}
"""Beginning of the title of a column that may follow -> its name here."""
UNUSED = ("maccycles",)
"""Columns without a meaning for the loops."""
_LETTER = re.compile(r"[A-Za-z]\w{0,30}")


@dataclass(frozen=True)
class Table:
    """Columns of a topology: titles here, by their place; and rows: line -> cells."""

    columns: Mapping[int, str]
    ignored: Sequence[str]
    rows: Mapping[int, Sequence[str]]

    @property
    def is_gemm(self) -> bool:
        return "M" in self.columns.values()


class ScaleSimFrontend:
    """A frontend that reads topologies of SCALE-Sim and of uSystolic-Sim."""

    def __init__(self, options: ScaleSimOptions) -> None:
        self.batch, self.sizes = options.batch, options.sizes

    def recognises(self, source: str) -> bool:
        """Return whether the file is a table with the columns of a topology."""
        text = text_of(source, SUFFIX)
        if text is None:
            return False
        _, titles = next(_lines(text), (0, []))
        words = [_word(title) for title in titles]
        return words[:1] in NAMES and (tuple(words[1:4]) == GEMM or "ifmapheight" in words or "ifmapwidth" in words)

    def load(self, source: str) -> Workload:
        """Return the rows as layers. Rows that SCALE-Sim cannot read either are listed as not mapped.

        Raises:
            InputError: the file is unreadable or has other columns, a letter has no size, or no row can be mapped.
        """
        table = _table(read_text(source), source)
        if table.is_gemm and self.batch is not None:
            raise InputError(f"{source}: its products have no batch; M counts all rows", hint="omit --batch")
        self._check_letters(table, source)
        layers, unmapped, taken = list[Layer](), list[Unmapped](), set[str]()
        names = {cells[0] for cells in table.rows.values()}
        for line, cells in table.rows.items():
            origin = Origin(node=cells[0] or None, file=Path(source).name, line=line)
            name = unique_name(cells[0], taken, names)
            try:
                layers.append(Layer(problem=self._problem(name, cells, table), origin=origin))
            except Unsupported as error:
                unmapped.append(Unmapped(name=name, operator="row", reason=f"{line}: {error}", origin=origin))
        if not layers:
            told = f"; line {unmapped[0].reason}" if unmapped else ""
            raise InputError(f"the table has no layer{told}", location=Location(source))
        ignored = f"; without the columns {', '.join(table.ignored)}" if table.ignored else ""
        return Workload(
            name=unique_name(Path(source).stem, set()),
            source=f"{Path(source).name}: topology of SCALE-Sim{ignored}",
            layers=tuple(layers),
            unmapped=tuple(unmapped),
        )

    def _problem(self, name: str, cells: Sequence[str], table: Table) -> Problem:
        """Return the problem of a row. Raises Unsupported."""
        row = {title: cells[place] if place < len(cells) else "" for place, title in table.columns.items()}
        kind, sparsity = row.pop("Layer Type", "GEMM"), row.pop("Sparsity", "")
        if kind.upper() != "GEMM":
            raise Unsupported(f"layer type {kind}; SCALE-Sim maps GEMM alone")
        sizes = {
            title: self._size(title, cell) for title, cell in row.items() if cell or title in SIZES or table.is_gemm
        }
        problem = _product(name, sizes) if table.is_gemm else _convolution(name, sizes, self.batch, cells[0])
        density = _density(sparsity) if sparsity else None
        if density is None:
            return problem
        tensors = tuple(
            tensor.model_copy(update={"density": density}) if tensor.role == "weight" else tensor
            for tensor in problem.tensors
        )
        return problem.model_copy(update={"tensors": tensors})

    def _size(self, title: str, cell: str) -> int:
        if cell in self.sizes:
            return self.sizes[cell]
        if not re.fullmatch(r"[0-9]{1,12}", cell) or not 1 <= int(cell) <= MAX_SIZE:
            expected = "expected a whole number from 1 to 2^31"
            raise Unsupported(f"{title} is {cell!r}; {expected}" if cell else f"{title} is missing")
        return int(cell)

    def _check_letters(self, table: Table, source: str) -> None:
        """Check that each letter in place of a size has a value, and that no other has. Raises InputError."""
        plain = [place for place, title in table.columns.items() if title not in ("Layer Type", "Sparsity")]
        letters = dict.fromkeys(
            cells[place]
            for cells in table.rows.values()
            for place in plain
            if place < len(cells) and _LETTER.fullmatch(cells[place])
        )
        for name in self.sizes:
            if name not in letters:
                listed = f"it has: {', '.join(letters)}" if letters else "all its sizes are numbers"
                raise InputError(f"{source} has no size called '{name}'; {listed}{suggestion(name, letters)}")
        if missing := [letter for letter in letters if letter not in self.sizes]:
            raise InputError(
                f"{source}: its sizes {', '.join(missing)} are letters",
                hint=f"give them: {' '.join(f'--size {letter}=N' for letter in missing)}",
            )


def _word(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and cells, without comments and empty lines. Tabs separate cells if the first line has no comma."""
    separator = None
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = line.partition("#")[0]
        separator = separator or ("," if "," in line else "\t")
        cells = [cell.strip() for cell in line.split(separator)]
        if any(cells):
            yield number, cells


def _table(text: str, source: str) -> Table:
    """Return the table of a topology. Raises InputError if its columns are others, or if it has too many rows."""
    lines = _lines(text)
    first, titles = next(lines, (1, []))
    columns, ignored = _columns(titles)
    if not columns:
        raise InputError(
            f"its columns are {', '.join(titles)}",
            location=Location(source, first),
            hint=f"expected Layer name, {', '.join(SIZES)}; or Layer, M, N, K",
        )
    rows = {}
    for number, cells in lines:
        if any(cells[1:]):  # others are headings
            rows[number] = cells
        if len(rows) > MAX_ROWS:
            raise InputError(f"more than {MAX_ROWS:,} layers", location=Location(source, number))
    return Table(columns, ignored, rows)


def _columns(titles: Sequence[str]) -> tuple[dict[int, str], list[str]]:
    """Return place -> column of a topology, and titles of others; nothing if they are no topology's."""
    words, columns = [_word(title) for title in titles], dict[int, str]()
    start = 1
    if words[1:2] == ["layertype"]:
        columns[1], start = "Layer Type", 2
    expected = GEMM if tuple(words[start : start + 3]) == GEMM else CONVOLUTION
    named = words[start : start + len(expected)]
    if len(named) < len(expected) or not all(map(str.startswith, named, expected)):
        return {}, []
    columns |= dict(enumerate(("M", "N", "K") if expected is GEMM else SIZES, start))
    ignored = list[str]()
    for place, word in enumerate(words[start + len(expected) :], start + len(expected)):
        title = next((title for beginning, title in FURTHER.items() if word.startswith(beginning)), None)
        if title is not None and title not in columns.values():
            columns[place] = title
        elif word and word not in UNUSED:
            ignored.append(titles[place])
    return columns, ignored


def _product(name: str, sizes: Mapping[str, int]) -> Problem:
    return nests.gemm(name, (sizes["M"], sizes["K"]), (sizes["K"], sizes["N"]))


def _convolution(name: str, sizes: Mapping[str, int], batch: int | None, said: str) -> Problem:
    """Return the convolution of a row; `said` is its name in the file. Raises Unsupported."""
    rows, columns, high, wide, channels, filters, down = (sizes[title] for title in SIZES)
    along = sizes.get("Stride W", down)
    positions = nests.positions_within((rows, columns), (high, wide), (down, along))
    groups, inward = (channels, 1) if DEPTHWISE in said else (1, channels)
    return nests.convolution(
        name,
        batch or sizes.get("Batch Size", 1),
        groups,
        (filters, inward),
        positions,
        (high, wide),
        (down, along),
        (1, 1),
    )


def _density(sparsity: str) -> Density | None:
    """Return the density of weights with N nonzeros in M; None if all are nonzero. Raises Unsupported."""
    match = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})", sparsity)
    if match is None or not 0 < int(match[1]) <= int(match[2]):
        raise Unsupported(f"Sparsity is {sparsity!r}; expected N:M, such as 2:4")
    return None if match[1] == match[2] else Density(density=int(match[1]) / int(match[2]))
