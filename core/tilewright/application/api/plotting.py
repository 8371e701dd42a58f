"""`plot`: writes a chart or a picture of a folder, a store, a mapping or an architecture."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import checked, one_of
from tilewright.application.api.evaluation import evaluate
from tilewright.application.api.hardware.exploration import explored
from tilewright.application.api.load import load, load_architecture
from tilewright.application.api.plots import (
    ComparisonPlots,
    CorrelationPlots,
    ExplorationPlots,
    FrontPlots,
    ReportPlots,
    UnitPlots,
    fronts_of,
    network_plots,
)
from tilewright.application.api.vector_tables import unit_bars
from tilewright.application.drawing.diagrams import draw
from tilewright.application.drawing.drawing import Drawing
from tilewright.errors import InputError, UnknownNameError
from tilewright.files import is_file, read_bytes, run_hint
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import MappedProblem

KINDS = (
    "objective",
    "energy",
    "latency",
    "roofline",
    "pareto",
    "sweep",
    "convergence",
    "timeline",
    "scatter",
    "mapping",
    "architecture",
)
SUMMARIES = {
    "summary.json": network_plots,
    "front.json": FrontPlots,
    "compare.json": ComparisonPlots,
    "correlate.json": CorrelationPlots,
}
MAX_BYTES = 64 * 2**20
"""Maximum size of a summary, which grows by some 20 kB for each layer."""
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""Errors of a summary that was not written by Tilewright."""
STORES = (".sqlite", ".sqlite3", ".db")


@checked
def plot(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    file: str | os.PathLike[str] = "plot.svg",
    *,
    kind: str | None = None,
    exploration: str | None = None,
    width: float | None = None,
    font_size: float | None = None,
    colours: Mapping[str, str] | None = None,
) -> Path:
    """Write a chart or a picture as SVG, PNG or PDF, as `tilewright plot` does.

    Args:
        source: A folder that `map`, `compare` or `correlate` wrote, a store of `explore`, a mapping file of
            `map`, or an architecture (file or library name). Group mappings with vector layers have a time line. Several folders of `map --pareto`, or several
            stores, give one chart with the fronts of all.
        file: The file to write; its suffix, .svg, .png or .pdf, selects the format.
        kind: objective, energy, latency, roofline, pareto, sweep, convergence, timeline, scatter, mapping or
            architecture.
            Default: the first kind that the source has.
        exploration: Prefix of the key of an exploration in the store. Default: the last one begun.
        width: Width in inches, such as 3.5 for a column of a paper. Default: as wide as its parts need.
        font_size: Size of the text in points. Default: 9.
        colours: Colour of each series by its name, such as `{"optimal": "black"}` for a mapper.

    Raises:
        InputError, UnknownNameError: The source has no such chart, or nothing to draw.
        OutputError: The file cannot be written.

    Example:
        >>> import tilewright as tw
        >>> import tempfile
        >>> report = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     size = tw.plot(report.save(folder), f"{folder}/energy.svg", kind="energy").stat().st_size
        >>> size > 1_000
        True
    """
    if isinstance(source, str | os.PathLike):
        drawings, several = drawings_of(source, exploration), str(source)
    else:
        drawings, several = {"pareto": partial(_fronts, source)}, ", ".join(map(str, source))
    if kind is not None and kind not in drawings:
        one_of("kind", kind, [*drawings] if kind not in KINDS else KINDS)
        raise InputError(f"{several} has no chart of kind {kind}", hint=f"it has {', '.join(drawings)}")
    drawing = drawings[kind or next(iter(drawings))]()
    return drawing.save(file, width=width, font_size=font_size, colours=colours)


def drawings_of(source: str | os.PathLike[str], exploration: str | None) -> dict[str, Callable[[], Drawing]]:
    """Return functions that draw the source, by kind.

    Raises:
        InputError, UnknownNameError: The source cannot be read.
    """
    path = Path(source)
    if path.is_dir():
        name = next((name for name in SUMMARIES if (path / name).is_file()), None)
        if name is None:
            raise InputError(f"{path} has none of {', '.join(SUMMARIES)}", hint=run_hint(path))
        return _methods(SUMMARIES[name](summary_of(path / name)), path / name)
    if path.suffix in STORES:
        return _methods(explored(path, exploration).plot)
    try:
        loaded = load(source) if is_file(source) else load_architecture(source)
    except UnknownNameError as error:
        raise UnknownNameError(f"there is no file or folder {source}, and {error.message}", hint=error.hint) from None
    if isinstance(loaded, MappedProblem):
        drawings: dict[str, Callable[[], Drawing]] = {
            "mapping": partial(_mapping, loaded),
            "architecture": partial(draw, loaded.architecture),
        }
        return drawings | {kind: partial(_evaluated, loaded, kind) for kind in ReportPlots.kinds}
    if isinstance(loaded, GroupMapping):
        return {"timeline": partial(_units, loaded)}
    if isinstance(loaded, Architecture):
        return {"architecture": partial(draw, loaded)}
    raise InputError(f"{source} cannot be drawn", hint="give an architecture, or a mapping file that `map -o` wrote")


def _fronts(sources: Sequence[str | os.PathLike[str]]) -> Drawing:
    """Return the fronts of several folders or stores, by their names. Raises InputError."""
    paths = [Path(source) for source in sources]
    short = len({path.stem for path in paths}) == len(paths)
    runs: dict[str, FrontPlots | ExplorationPlots] = {}
    for path in paths:
        name, file = path.stem if short else str(path), path / "front.json"
        if path.is_dir() and not file.is_file():
            raise InputError(
                f"{path} has no front.json", hint="several folders are those of `map --pareto N -o FOLDER`"
            )
        runs[name] = FrontPlots(summary_of(file)) if path.is_dir() else explored(path).plot
    try:
        return fronts_of(runs)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"a summary was not written by tilewright: {type(error).__name__}: {error}") from None


def _mapping(mapping: MappedProblem) -> Drawing:
    """Return the picture of a mapping, with the counts of the default cost model if it accepts the mapping."""
    (report,) = evaluate(mapping).reports
    return draw(mapping, report=report if report.valid else None)


def _units(group: GroupMapping) -> Drawing:
    """Return what units and ports do with the first tiles of a group, by the default cost model."""
    report = evaluate(group)
    reasons = [str(reason) for one in report.reports for reason in one.reasons]
    reasons += [*report.warnings, *(made.alone for made in report.units if made.alone)]
    bars = [bar for made in report.units for bar in unit_bars(made.bars)]
    if not bars:
        told = "; ".join(reasons) or "the group has no vector layers"
        raise InputError(f"{group.name} has no time line: {told}", hint="units overlap in groups with vector layers")
    return UnitPlots({"timeline": [bar.data() for bar in bars]}).timeline()


def _evaluated(mapping: MappedProblem, kind: str) -> Drawing:
    """Return a chart of a mapping's report by the default cost model."""
    drawing = getattr(evaluate(mapping).plot, kind)()
    assert isinstance(drawing, Drawing)
    return drawing


def summary_of(file: Path) -> dict[str, Any]:
    """Return the document in a summary file; raise InputError if it is not one."""
    try:
        data = json.loads(read_bytes(file, MAX_BYTES))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file} was not written by tilewright", hint="give a folder that `-o` wrote")
    return data


def _methods(plots: Any, file: Path | None = None) -> dict[str, Callable[[], Drawing]]:
    """Return the charts by kind; a chart of a damaged file raises InputError."""

    def drawn(kind: str) -> Drawing:
        try:
            drawing = getattr(plots, kind)()
        except DAMAGED as error:
            if file is None or isinstance(error, InputError):
                raise
            raise InputError(f"{file} was not written by tilewright: {type(error).__name__}: {error}") from None
        assert isinstance(drawing, Drawing)
        return drawing

    return {kind: partial(drawn, kind) for kind in plots.kinds}
