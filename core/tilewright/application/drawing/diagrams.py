"""Pictures of architectures, mappings and searches: `tw.draw`."""

from __future__ import annotations

import os

from tilewright.application.drawing.charts import convergence
from tilewright.application.drawing.drawing import COLOURS, PALE, Drawing
from tilewright.application.drawing.pictures import Box, Line, Row, picture
from tilewright.errors import InputError
from tilewright.formats import figure
from tilewright.plugin.result import Result
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapped import BoundMapping, MappedProblem
from tilewright.schema.mapping.levels import MemoryUse, levels_of


def draw(
    subject: Architecture | BoundMapping | MappedProblem | Result, file: str | os.PathLike[str] | None = None
) -> Drawing:
    """Return a picture of an architecture, a mapping or a search; write it to a file if given.

    The picture of an architecture has memories, fanouts and compute units. That of a mapping has the
    loop nest next to the memories: the tiles that each keeps, in words, and the tensors that bypass it.
    A stationary tile has the number of iterations in a row for which it stays. The chart of a search has
    the best objective over the number of evaluated mappings, and the proved lower bound.

    Args:
        subject: An architecture, the mapping of a layer (`report.layers[0].mapping`), a loaded mapping file,
            or the search of a layer (`report.layers[0].result`).
        file: The file to write, SVG or PNG by its suffix.

    Raises:
        InputError: The subject has no picture, or the file is neither SVG nor PNG. The mapping names a
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
        drawing = _nest(subject.bound if isinstance(subject, MappedProblem) else subject)
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
    return picture(rows, f"architecture {architecture.name}", "\n".join(description))


def _nest(mapping: BoundMapping) -> Drawing:
    """Return a picture of the loop nest next to the memories."""
    problem, architecture = mapping.problem, mapping.architecture
    rows: list[Row] = []
    depth = 0
    for level in levels_of(mapping, problem, architecture):
        for text in level.loops:
            rows.append(Row("  " * depth + text))
            depth += 1
        if level.memories:
            rows.append(Row("  " * depth, [_box(memory) for memory in level.memories]))
        for text in level.unrolled:
            rows.append(Row("  " * depth + text, spatial=True))
            depth += 1
    operation = Line(f"{problem.unit_operation}: {str(problem).partition(';')[0]}")
    units = f"{architecture.compute.name} x {architecture.compute_instances:,}"
    rows.append(Row("  " * depth, [Box(units, [operation], colour=COLOURS[3])]))
    title = f"{problem.name} on {architecture.name}: loop nest and memories"
    return picture(rows, title, mapping.nest(problem, architecture))


def _box(memory: MemoryUse) -> Box:
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
    return Box(f"{memory.name}{count}{full}", [*lines, *bypassed], share, COLOURS[0] if memory.tiles else PALE)
