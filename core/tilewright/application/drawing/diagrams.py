"""Pictures of architectures, mappings and searches: `tw.draw`."""

from __future__ import annotations

import os

from tilewright.application.drawing.charts import convergence
from tilewright.application.drawing.drawing import COLOURS, PALE, Drawing
from tilewright.application.drawing.grids import Grid
from tilewright.application.drawing.pictures import Box, Line, Row, picture
from tilewright.errors import InputError
from tilewright.formats import figure, quantity
from tilewright.plugin.result import Result, percent
from tilewright.reports import Report
from tilewright.reports.parts import LevelReport
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapped import BoundMapping, MappedProblem
from tilewright.schema.mapping.levels import MemoryUse, levels_of


def draw(
    subject: Architecture | BoundMapping | MappedProblem | Result,
    file: str | os.PathLike[str] | None = None,
    *,
    report: Report | None = None,
) -> Drawing:
    """Return a picture of an architecture, a mapping or a search; write it to a file if given.

    The picture of an architecture has memories, fanouts and a grid of compute units. That of a mapping has the
    loop nest next to the memories: the tiles that each keeps, in words, and the tensors that bypass it. Its grid has the
    units in use. With a report, edges have the values that cross them, and memories their energy. A stationary tile has the number of iterations in a row for which it stays. The chart of a search has
    the best objective over the number of evaluated mappings, and the proved lower bound.

    Args:
        subject: An architecture, the mapping of a layer (`report.layers[0].mapping`), a loaded mapping file,
            or the search of a layer (`report.layers[0].result`).
        file: The file to write, SVG, PNG or PDF by its suffix.
        report: Report of a mapping, such as `report.layers[0].report`.

    Raises:
        InputError: The subject has no picture, or the file has another suffix. The mapping names a
            tensor or a cluster that does not exist. The search found no mapping.
        OutputError: The file cannot be written.

    Example:
        >>> import tilewright as tw
        >>> tw.draw(tw.load("simba"))
        <Drawing: architecture simba>
    """
    if isinstance(subject, Architecture):
        drawing = _architecture(subject)
    elif isinstance(subject, BoundMapping | MappedProblem):
        drawing = _nest(subject.bound if isinstance(subject, MappedProblem) else subject, report)
    elif isinstance(subject, Result):
        unit = subject.objective.unit if subject.objective else "objective"
        drawing = convergence("convergence", {"": subject.history}, unit, subject.lower_bound, subject.claimed_by)
    else:
        raise InputError(
            f"{type(subject).__name__} has no picture",
            hint="draw an architecture, or the mapping of a result: report.layers[0].mapping",
        )
    if file is not None:
        drawing.save(file)
    return drawing


def _architecture(architecture: Architecture) -> Drawing:
    """Return a picture of memories, fanouts and compute units."""
    rows, description = [], []
    for cluster in architecture.clusters:
        link = cluster.fanout.told
        boxes = [Box(memory.name, [Line(text) for text in memory.summary()]) for memory in cluster.memories]
        rows.append(Row(boxes=boxes, link=link))
        names = ", ".join(box.title for box in boxes) or "no memory"
        description.append(f"{cluster.name}: {names}{', ' * bool(link)}{link}")
    unit = architecture.compute
    lines = [
        Line(f"{figure(unit.energy_per_operation_pj)} pJ per operation"),
        Line(f"{architecture.compute_instances:,} in total"),
    ]
    rows.append(Row(boxes=[Box(unit.name, lines, colour=COLOURS[3])]))
    grid = Grid(architecture) if architecture.compute_instances > 1 else None
    return picture(rows, f"architecture {architecture.name}", "\n".join(description), grid)


def _nest(mapping: BoundMapping, report: Report | None) -> Drawing:
    """Return a picture of the loop nest next to the memories, and of the units in use."""
    problem, architecture = mapping.problem, mapping.architecture
    levels = levels_of(mapping, problem, architecture)
    used = {cluster.name: 1 for cluster in architecture.clusters}
    for loop in mapping.loops():
        used[mapping.entries[loop.entry].target] *= loop.trips if loop.spatial else 1
    grid = Grid(architecture, used)
    counts = {} if report is None else {level.name: level for level in report.levels}
    last = {memory.name: number for number, level in enumerate(levels) for memory in level.memories}
    rows: list[Row] = []
    depth = 0
    for number, level in enumerate(levels):
        for text in level.loops:
            rows.append(Row("  " * depth + text))
            depth += 1
        if level.memories:
            inner = [
                counts[memory.name]
                for memory in level.memories
                if memory.name in counts and last[memory.name] == number
            ]
            link = "; ".join(filter(None, map(_traffic, inner)))
            rows.append(
                Row("  " * depth, [_box(memory, counts.get(memory.name), report) for memory in level.memories], link)
            )
        for text in level.unrolled:
            rows.append(Row("  " * depth + text, spatial=True))
            depth += 1
    operation = Line(f"{problem.unit_operation}: {str(problem).partition(';')[0]}")
    rows.append(Row("  " * depth, [Box(grid.caption, [operation], colour=COLOURS[3])]))
    title = f"{problem.name} on {architecture.name}: loop nest and memories"
    shown = grid if architecture.compute_instances > 1 else None
    return picture(rows, title, mapping.nest(problem, architecture), shown)


def _traffic(level: LevelReport) -> str:
    """Return the values of each tensor that cross the edge inwards and outwards, over all instances; empty without any."""
    parts = []
    for name, counts in level.tensors.items():
        moved = [(counts.reads * counts.instances, "down"), (counts.updates * counts.instances, "up")]
        told = ", ".join(f"{_short(number)} {way}" for number, way in moved if number)
        parts += [f"{name} {told}"] if told else []
    return "; ".join(parts)


def _short(number: float) -> str:
    """Return a count with three digits.

    >>> _short(950), _short(1_943_808)
    ('950', '1.94 M')
    """
    power = 0
    while number >= (1_000 if power else 10_000) and power < 5:
        number, power = number / 1000, power + 1
    return f"{number:,.4g}" if not power else f"{number:.3g} {'kMGTP'[power - 1]}"


def _box(memory: MemoryUse, level: LevelReport | None, report: Report | None) -> Box:
    count = "" if memory.instances == 1 else f" x {memory.instances:,}"
    share = None if memory.capacity_words is None else memory.used_words / memory.capacity_words
    full = "" if share is None else f", {100 * share:.3g} % of {memory.capacity_words:,} words"
    lines = [
        Line(
            f"{tile.tensor} {tile.words:,} words"
            + (f", stationary for {tile.steps:,} steps" if tile.steps > 1 else ""),
            tile.steps > 1,
        )
        for tile in memory.tiles
    ]
    bypassed = [Line(f"{tensor} bypasses", dashed=True) for tensor in memory.bypassed]
    if level is not None and report is not None and report.energy_pj:
        lines.append(
            Line(f"{quantity(level.energy_pj, 'pJ')}, {percent(level.energy_pj / report.energy_pj)} of the energy")
        )
    return Box(f"{memory.name}{count}{full}", [*lines, *bypassed], share, COLOURS[0] if memory.tiles else PALE)
