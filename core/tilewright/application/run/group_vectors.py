"""Vector layers inside a group mapping: they change tiles where these are at home, between the layers that share loops.

    scores (10 cycles a tile) -> softmax (8) -> context (10), 100 tiles:
    in sequence: 100 x 28 cycles
    overlapped:  10 + 10 + 98 x 20 + 10 + 10

The softmax of one tile runs beside the scores of the next and the context of the last.

docs/vector.md has the rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import TypeVar

from tilewright.application.run.evaluation import BuiltModel, evaluate_vector
from tilewright.application.run.vector_network import Bar
from tilewright.errors import NotConformableError, Reason
from tilewright.figures import Figure, Sheet
from tilewright.mapspace.group_legality import home_of, joined_dimensions, memory_at, tile_peaks, width_at
from tilewright.reports import Limit, Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.group import GroupMapping, Path, Place
from tilewright.schema.objective import Objective
from tilewright.schema.vector import RESULT, GroupVector, VectorLayer
from tilewright.tables import Column, numbers

NO_UNIT = "the vector layers are not counted: the architecture has no vector unit (units)"
Key = TypeVar("Key")
Port = tuple[str, str]
"""Memory and action."""
DRAWN = 12
"""Periods of a pipeline that a time line shows: the first ones."""


@dataclass(frozen=True)
class Stage:
    """Work of one unit on a tile, in cycles.

    Attributes:
        unit: the unit.
        cycles: of the work, with `late`.
        ports: (memory, action) -> cycles that the words of a tile need.
        late: the part of `cycles` that follows the next stage's work of the same period, which changes the same words.
        layers: what works in it.
    """

    unit: str
    cycles: Fraction
    ports: Mapping[Port, Fraction] = field(default_factory=dict)
    late: Fraction = Fraction(0)
    layers: tuple[str, ...] = ()


def periods(stages: int, tiles: int) -> Iterator[tuple[range, int]]:
    """Yield the stages that work in a period, and the number of such periods in sequence.

    In period p, stage s works on tile p - s.
    """
    for period in range(tiles + stages - 1):
        if not stages <= period < tiles:
            times = max(1, tiles - stages + 1) if period == stages - 1 else 1
            yield range(max(0, period - tiles + 1), min(stages - 1, period) + 1), times


def period_cycles(stages: Sequence[Stage], working: range) -> Fraction:
    """Return the cycles of a period: those of the busiest unit or port, or until a stage's late part ends."""
    units = _added({stages[number].unit: stages[number].cycles} for number in working)
    ports = _added(stages[number].ports for number in working)
    late = [
        stages[number].late + sum(stages[at].cycles for at in working if at > number and stages[at].unit == after.unit)
        for number, after in zip(working, (stages[number] for number in working[1:]), strict=False)
        if stages[number].late
    ]
    return max([*units.values(), *ports.values(), *late])


def _added(parts: Iterable[Mapping[Key, Fraction]]) -> dict[Key, Fraction]:
    total = dict[Key, Fraction]()
    for part in parts:
        for key, cycles in part.items():
            total[key] = total.get(key, Fraction(0)) + cycles
    return total


def pipelined_cycles(stages: Sequence[Stage], tiles: int) -> Fraction:
    """Return the cycles in which tiles pass through stages. A period ends when all its stages have ended."""
    return sum((times * period_cycles(stages, working) for working, times in periods(len(stages), tiles)), Fraction(0))


@dataclass(frozen=True)
class Part:
    """Vector layer on one tile, with its report and how often it is executed."""

    layer: VectorLayer
    times: int
    report: Report
    role: str = "block"
    """`block`: before the reader; `late`: also before the reader, on its partial results; `end`: after the last tile of a row."""

    @property
    def unit(self) -> str:
        """Name of the unit that executes it."""
        return next((limit.name for limit in self.report.limits if limit.action == "compute"), "")


@dataclass(frozen=True)
class JoinedVector:
    """A vector layer of a group with its parts.

    `form` is `whole` or `online` for a softmax. `reason`: why it is not counted; None: it is.
    """

    vector: GroupVector
    parts: tuple[Part, ...] = ()
    form: str = ""
    reason: str | None = None

    @property
    def unit(self) -> str:
        """Names of the units that execute it; empty: none."""
        return ", ".join(dict.fromkeys(part.unit for part in self.parts))

    @property
    def tiles(self) -> int | None:
        return self.parts[0].times if self.parts else None

    @property
    def operations(self) -> int | None:
        return sum(part.times * part.report.macs for part in self.parts) if self.parts else None

    @property
    def cycles(self) -> int | None:
        return sum(part.times * (part.report.cycles or 0) for part in self.parts) if self.parts else None

    @property
    def energy_pj(self) -> float | None:
        energies = [part.times * (part.report.energy_pj or 0.0) for part in self.parts]
        return math.fsum(energies) if energies else None


@dataclass(frozen=True)
class _Site:
    """Where a vector layer works in a group.

    Attributes:
        place: the part whose branches it is between.
        shared: number of entries outside of these branches.
        steps: how often the branches run.
        words: of a step's tile.
        row: elements of a row in it.
        blocks: tiles of a row.
    """

    vector: GroupVector
    maker: Path
    readers: tuple[Path, ...]
    place: Place
    shared: int
    steps: int
    words: int
    row: int
    blocks: int


@dataclass(frozen=True)
class GroupVectors:
    """Vector layers of a group, and the time of all units.

    Attributes:
        group: the group.
        report: of its layers.
        vectors: its vector layers.
        stages: a tile passes through them in sequence; empty if units do not overlap.
        tiles: number of tiles in a run, which follow each other.
        runs: number of runs.
        apart: cycles of layers that work before or after all tiles, or after each run.
        alone: why units do not overlap; None: they do.
        crowded: whether the reason is that tiles of several stages have no room.
    """

    group: GroupMapping
    report: Report
    vectors: tuple[JoinedVector, ...]
    stages: tuple[Stage, ...] = ()
    tiles: int = 1
    runs: int = 1
    apart: Fraction = Fraction(0)
    alone: str | None = None
    crowded: bool = False

    @property
    def architecture(self) -> Architecture:
        return self.group.architecture

    @property
    def refused(self) -> tuple[JoinedVector, ...]:
        """Vector layers that are not counted."""
        return tuple(vector for vector in self.vectors if vector.reason is not None)

    @property
    def vector_cycles(self) -> int:
        return sum(vector.cycles or 0 for vector in self.vectors)

    @property
    def vector_energy_pj(self) -> float:
        return math.fsum(vector.energy_pj or 0.0 for vector in self.vectors)

    @property
    def network_energy_pj(self) -> float:
        """Energy of all layers, in sequence."""
        return (self.report.energy_pj or 0.0) + self.vector_energy_pj

    @property
    def sequential_cycles(self) -> int:
        """Cycles of all layers, in sequence."""
        return (self.report.cycles or 0) + self.vector_cycles

    @property
    def overlapped_cycles(self) -> int:
        """Cycles with units in parallel, where they may overlap."""
        if not self.stages:
            return self.sequential_cycles
        return math.ceil(self.runs * pipelined_cycles(self.stages, self.tiles) + self.apart)

    def of(self, objective: Objective) -> float:
        """Return the value of an objective with vector layers."""
        return objective.value(self.network_energy_pj, float(self.overlapped_cycles))

    @property
    def bars(self) -> tuple[Bar, ...]:
        """Time line of units and ports: the first periods of the first run, in cycles; empty if units do not overlap."""
        bars, now = list[Bar](), Fraction(0)
        for number, working in enumerate(
            working for working, times in periods(len(self.stages), self.tiles) for _ in range(min(times, DRAWN))
        ):
            if number == DRAWN or not self.stages:
                break
            length, free = period_cycles(self.stages, working), dict[str, Fraction]()
            for at in reversed(working):
                stage = self.stages[at]
                start = now + free.get(stage.unit, Fraction(0))
                free[stage.unit] = free.get(stage.unit, Fraction(0)) + stage.cycles
                name = f"{' + '.join(stage.layers)} of tile {number - at}"
                bars.append(Bar(name, stage.unit, int(start), int(start + stage.cycles)))
            for (memory, action), cycles in _added(self.stages[at].ports for at in working).items():
                bars.append(Bar(f"words of period {number}", f"{memory} {action}", int(now), int(now + cycles)))
            now += length
        return tuple(bars)


GROUP_VECTORS = Sheet(
    Figure("name", Column("vector layer"), attrgetter("vector.name"), kind=str, meaning="Name of the vector layer."),
    Figure("operator", Column("operator"), attrgetter("vector.operator"), kind=str, meaning="Kind of operator."),
    Figure(
        "tensor", Column("tensor"), attrgetter("vector.tensor"), kind=str, meaning="The group's tensor that it changes."
    ),
    Figure("form", Column("form"), kind=str, meaning="Of a softmax: `whole` rows, or `online`; else empty."),
    Figure("unit", Column("unit"), kind=str, meaning="Units that execute it; empty if none does."),
    Figure("tiles", numbers("tiles"), kind=int | None, meaning="Tiles on which it works."),
    Figure("operations", numbers("operations"), kind=int | None, meaning="Operations on all tiles."),
    views={
        "json": "name operator tensor form unit tiles operations",
        "evaluate": "name operator form unit tiles operations",
    },
)
"""Figures of vector layers in groups."""


def joined_vectors(model: BuiltModel, group: GroupMapping, report: Report) -> GroupVectors | None:
    """Return the vector layers of a legal group under a cost model; None if it has none, or the machine has no vector unit.

    Args:
        report: the model's report on the group; there is nothing to count if it is not valid.
    """
    if not group.vectors or not group.architecture.units or not report.valid:
        return None
    sites, vectors = dict[str, _Site](), list[JoinedVector]()
    peaks, alone = tile_peaks(group), None
    for vector in group.vectors:
        try:
            site = _site(group, vector)
            joined, beside = _counted(model, group, site, peaks)
        except NotConformableError as error:
            reason = "; ".join(one.message for one in error.reasons)
            vectors.append(JoinedVector(vector, reason=reason))
            continue
        sites[vector.name] = site
        alone = alone or beside
        vectors.append(joined)
    made = GroupVectors(group, report, tuple(vectors), alone=alone)
    return made if alone else _overlapped(made, sites, peaks)


def rows_of(group: GroupMapping) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """Return the (layer, dimension) pairs whose values vector layers need together, and those of rows that may be cut.

    A softmax may be online if it is the last vector layer of its tensor.
    """
    rows, online = dict[str, set[tuple[str, str]]](), set[str]()
    for vector in group.vectors:
        maker = group.maker(vector.tensor)
        assert maker is not None, "the schema has checked it"
        row = rows.setdefault(vector.tensor, set())
        row |= {(maker, name) for name in vector.row}
        for reader in group.users[vector.tensor].keys() - {maker}:
            pairs, _ = joined_dimensions(group, vector.tensor, maker, reader)
            row |= {(reader, sink) for source, sink in pairs if source in vector.row}
        online.discard(vector.tensor)
        if vector.operator == "Softmax" and len(vector.row) == 1:
            online.add(vector.tensor)
    whole = set[tuple[str, str]]().union(*(dimensions for tensor, dimensions in rows.items() if tensor not in online))
    every = frozenset[tuple[str, str]]().union(*rows.values())
    return every, every - whole


def _refuse(vector: GroupVector, message: str) -> NotConformableError:
    return NotConformableError("a vector layer in a group", [Reason(code="vector", where=vector.name, message=message)])


def _site(group: GroupMapping, vector: GroupVector) -> _Site:
    """Return where a vector layer works.

    Raises:
        NotConformableError: no step has whole words of it, or the words of a row are not together.
    """
    users = group.users[vector.tensor]
    name = group.maker(vector.tensor)
    assert name is not None, "the schema has checked it"
    maker, readers = group.paths[name], tuple(group.paths[user] for user in users if user != name)
    place = maker.place
    for reader in readers:
        same = [at for at, (branch, other) in enumerate(zip(place, reader.place, strict=False)) if branch != other]
        place = place[: same[0]] if same else place
    shared = sum(at == place[: len(at)] for at, _ in maker.places if len(at) <= len(place))
    factors, output = maker.mapping.factors()[:shared], maker.problem.output
    if any(max(spatial.values()) > 1 for _, spatial in factors):
        raise _refuse(vector, f"the loops outside of {name} and its readers are unrolled; expected temporal loops")
    steps = math.prod(trips for temporal, _ in factors for trips in temporal.values())
    sizes = maker.mapping.entries[shared - 1].temporal_tile_sizes if shared else maker.problem.dimensions
    words, whole = (maker.problem.tile_words(output, box) for box in (sizes, maker.problem.dimensions))
    if steps * words != whole:
        raise _refuse(
            vector, f"{steps:,} steps with {words:,} words each do not make up the {whole:,} words of {vector.tensor}"
        )
    row = math.prod(sizes[dimension] for dimension in vector.row)
    blocks = math.prod(maker.problem.dimensions[dimension] // sizes[dimension] for dimension in vector.row)
    return _Site(vector, maker, readers, place, shared, steps, words, row, blocks)


def _counted(
    model: BuiltModel, group: GroupMapping, site: _Site, peaks: Mapping[str, float]
) -> tuple[JoinedVector, str | None]:
    """Return a vector layer with its parts, and why it may not work beside the array; None: it may."""
    vector, rows = site.vector, site.words // site.row
    if site.blocks == 1:
        parts = [(vector, rows, site.row, site.steps, vector.tensor, "block")]
        form = "whole" if vector.operator == "Softmax" else ""
    else:
        parts, form = _online(group, site), "online"
    counted, note = list[Part](), None
    for part, part_rows, row, times, tensor, role in parts:
        words = [operand.words if operand.shared else operand.words // times for operand in part.operands]
        if any(operand.words % times for operand in part.operands if not operand.shared):
            raise _refuse(vector, f"its {times:,} tiles do not divide the words of its other operands")
        layer = part.on(part_rows, row, tensor, words)
        report, beside = _at_home(model, group, layer, vector.tensor, peaks)
        note = note or beside
        counted.append(Part(layer, times, report, role))
    return JoinedVector(vector, tuple(counted), form), note


def _online(group: GroupMapping, site: _Site) -> list[tuple[GroupVector, int, int, int, str, str]]:
    """Return the parts of an online softmax: layer, rows, elements of a row, executions, tensor, role.

    Raises:
        NotConformableError: rows are cut, and partial results may not be rescaled.
    """
    vector, (reader, *others) = site.vector, site.readers
    told = f"its rows are cut into {site.blocks:,} tiles"
    if vector.operator != "Softmax" or vector.work is not None or vector.operands:
        raise _refuse(vector, f"{told}; only a softmax may be online")
    after = [other for other in group.vectors if other.tensor == vector.tensor]
    if others or after[-1] is not vector:
        raise _refuse(vector, f"{told}; expected one reader right after it, which adds up along the row")
    name = group.users[vector.tensor][reader.problem.name]
    pairs, _ = joined_dimensions(group, vector.tensor, site.maker.problem.name, reader.problem.name)
    along = {sink for source, sink in pairs if source in vector.row}
    output = reader.problem.output
    if len(along) != len(vector.row) or along & set(output.dimensions):
        raise _refuse(vector, f"{told}; {reader.problem.name} does not add up along the row of {name}")
    factors, moved, first = reader.mapping.factors()[: site.shared], False, site.shared
    for number, entry in enumerate(reader.mapping.entries[: site.shared]):
        for dimension in entry.temporal_order:
            if factors[number][0][dimension] > 1:
                first = min(first, number) if dimension in along else first
                moved = moved or dimension in along
                if moved and dimension not in along:
                    raise _refuse(vector, f"{told}; expected the loops over them inside of that over {dimension}")
    keepers = [at for at in reader.keepers(output.name) if at < first]
    home = memory_at(group, vector.tensor, *home_of(group, site.maker.problem.name, vector.tensor))
    held = [group.architecture.cluster(reader.mapping.entries[at].target).memory_for(output) for at in keepers]
    if home not in held:
        raise _refuse(
            vector, f"{told}; {home.name} does not keep the partial results of {reader.problem.name} until the last one"
        )
    sizes = reader.mapping.entries[site.shared - 1].temporal_tile_sizes
    rows, words = site.words // site.row, reader.problem.tile_words(output, sizes)
    if words % rows:
        raise _refuse(vector, f"{told}; {rows:,} rows do not divide {words:,} words of results")
    result = reader.names[output.name]

    def part(operator: str) -> GroupVector:
        return GroupVector(name=vector.name, operator=operator, tensor=vector.tensor)

    return [
        (part("SoftmaxBlock"), rows, site.row, site.steps, vector.tensor, "block"),
        (part("SoftmaxRescale"), rows, words // rows, site.steps, result, "late"),
        (part("SoftmaxScale"), rows, words // rows, site.steps // site.blocks, result, "end"),
    ]


def _at_home(
    model: BuiltModel, group: GroupMapping, layer: VectorLayer, tensor: str, peaks: Mapping[str, float]
) -> tuple[Report, str | None]:
    """Return the report of a vector layer on a tile at the home of a tensor, and why it has no room beside the array.

    Without a reason (None), it has.

    Raises:
        NotConformableError: the model does not count it.
    """
    maker = group.maker(tensor)
    assert maker is not None, "the schema has checked it"
    place, number = home_of(group, maker, tensor)
    home, width = memory_at(group, tensor, place, number), width_at(group, tensor, place, number)
    tile = math.ceil(layer.result * width)
    reports = list[Report]()
    for beside in (True, False):
        taken = peaks if beside else {home.name: peaks[home.name]}
        machine = _machine(group.architecture, home, layer, tile, taken)
        if not machine.units:
            reason = Reason(code="unit", where=layer.name, message=f"no vector unit is at {home.name} or inside of it")
            raise NotConformableError("a vector layer in a group", [reason])
        reports.append(evaluate_vector(model, layer, machine))
        if reports[-1].valid:
            return reports[-1], None if beside else f"{layer.name} needs room that the array uses"
    raise NotConformableError("a vector layer in a group", reports[-1].reasons)


def _machine(
    architecture: Architecture, home: Memory, layer: VectorLayer, tile: int, peaks: Mapping[str, float]
) -> Architecture:
    """Return the machine on which a layer's first operand and result are at home in a memory, beside other tiles.

    Args:
        tile: words of the home that the tile takes; the result takes the place of the operand.
        peaks: memory -> words that are taken.
    """
    depth = {memory.name: number for number, cluster in enumerate(architecture.clusters) for memory in cluster.memories}
    moved, others = (layer.operands[0].name, RESULT), layer.operands[1:]

    def changed(memory: Memory) -> Memory:
        update = dict[str, object]()
        if memory.name == home.name and memory.holds is not None:
            update["holds"] = (*memory.holds, *moved)
        elif memory.name != home.name and depth[memory.name] <= depth[home.name]:
            update["holds"] = tuple(operand.name for operand in others if memory.may_hold(operand.tensor))
        if memory.usable_words is not None and memory.name in peaks:
            left = memory.usable_words - math.ceil(peaks[memory.name])
            left += 2 * tile if memory.name == home.name else 0
            update["capacity_words"] = max(1, math.ceil(left * memory.multiple_buffering))
        return memory.model_copy(update=update)

    near = [unit for unit in architecture.units if unit.memory == home.name or depth[unit.memory] > depth[home.name]]
    return architecture.with_memories(changed).model_copy(update={"units": tuple(near)})


def _overlapped(made: GroupVectors, sites: Mapping[str, _Site], peaks: Mapping[str, float]) -> GroupVectors:
    """Return the vector layers with the stages through which tiles pass, or with the reason why units do not overlap."""

    def alone(reason: str, crowded: bool = False) -> GroupVectors:
        return GroupVectors(made.group, made.report, made.vectors, alone=reason, crowded=crowded)

    if not sites or made.refused:
        return alone("a vector layer is not counted")
    group, limits = made.group, made.report.layer_limits
    if len({site.place for site in sites.values()}) > 1:
        return alone("vector layers are between branches of different parts")
    if not limits:
        return alone(f"{made.report.model} does not report the limits of each layer")
    site = next(iter(sites.values()))
    inner = [at for at, (place, _) in enumerate(site.maker.places[: site.shared]) if place == site.place]
    tiles = math.prod(t for at in inner for t in site.maker.mapping.factors()[at][0].values())
    online = [one for one in made.vectors if one.form == "online"]
    tiles = sites[online[0].vector.name].blocks if online else tiles
    if site.steps % tiles or len({sites[one.vector.name].blocks for one in online}) > 1:
        return alone("softmaxes differ in the number of tiles of a row")
    stages, spans = _stages(made, site)
    for number, stage in enumerate(stages):
        if stage.late and not (number + 1 < len(stages) and _readers(made) <= set(stages[number + 1].layers)):
            return alone("other layers are between an online softmax and its reader")
    for memory, words in _copies(made, site, spans).items():
        room = next(one for one in group.architecture.memories if one.name == memory).usable_words
        if room is not None and peaks[memory] + words > room:
            told = f"{memory} has {room:,} words; tiles of several stages need {math.ceil(peaks[memory] + words):,}"
            return alone(told, crowded=True)
    inside = {layer for stage in stages for layer in stage.layers}
    apart = [_slowest(values) for name, values in limits.items() if name not in inside]
    apart += [part.times * (part.report.cycles or 0) for one in online for part in one.parts if part.role == "end"]
    return GroupVectors(
        group, made.report, made.vectors, stages, tiles, site.steps // tiles, Fraction(sum(apart)),
    )  # fmt: skip


def _readers(made: GroupVectors) -> set[str]:
    """Return the readers of online softmaxes."""
    group = made.group
    return {
        user
        for one in made.vectors
        if one.form == "online"
        for user in group.users[one.vector.tensor]
        if user != group.maker(one.vector.tensor)
    }


def _stages(made: GroupVectors, site: _Site) -> tuple[tuple[Stage, ...], dict[str, int]]:
    """Return the stages of a tile, and the stage of each layer. Work on one unit in sequence is one stage."""
    group, limits = made.group, made.report.layer_limits
    array, stages, of_layer = group.architecture.compute.name, list[Stage](), dict[str, int]()

    def add(name: str, unit: str, cycles: Fraction, ports: Mapping[Port, Fraction], late: bool = False) -> None:
        stage = Stage(unit, cycles, ports, cycles if late else Fraction(0), (name,))
        before = stages[-1] if stages else None
        if before is not None and before.unit == unit:
            names = tuple(dict.fromkeys((*before.layers, name)))
            joined = _added((before.ports, ports))
            stages[-1] = Stage(unit, before.cycles + cycles, joined, before.late + stage.late, names)
        else:
            stages.append(stage)
        of_layer[name] = len(stages) - 1

    for path in group.paths.values():
        if path.place[: len(site.place)] != site.place:
            continue
        name = path.problem.name
        add(name, array, Fraction(_slowest(limits[name]), site.steps), _ports(limits[name], site.steps))
        for one in made.vectors:
            if group.maker(one.vector.tensor) != name:
                continue
            for part in (part for part in one.parts if part.role != "end"):
                cycles, words = Fraction(part.report.cycles or 0), _ports(part.report.limits, 1)
                add(one.vector.name, part.unit, cycles, words, part.role == "late")
    return tuple(stages), of_layer


def _slowest(limits: Sequence[Limit]) -> int:
    return max(limit.cycles for limit in limits)


def _ports(limits: Sequence[Limit], steps: int) -> dict[Port, Fraction]:
    """Return the cycles of each port in one step."""
    return {(one.name, one.action): Fraction(one.cycles, steps) for one in limits if one.action != "compute"}


def _copies(made: GroupVectors, site: _Site, spans: Mapping[str, int]) -> Counter[str]:
    """Return memory -> words of further tiles of what several stages use, all but the last."""
    group, copies = made.group, Counter[str]()
    for tensor, users in group.users.items():
        at = [spans[user] for user in users if user in spans]
        further = max(at) - min(at) - 1 if at else 0
        if further < 1:
            continue
        for user in users:
            path = group.paths[user]
            for entry in path.keepers(users[user]):
                place, number = path.places[entry]
                moving = any(t > 1 for temporal, _ in path.mapping.factors()[: entry + 1] for t in temporal.values())
                if entry < site.shared and moving:
                    words = path.problem.tile_words(
                        path.problem.tensor(users[user]), path.mapping.entries[entry].temporal_tile_sizes
                    )
                    copies[memory_at(group, tensor, place, number).name] += math.ceil(
                        further * words * width_at(group, tensor, place, number)
                    )
            break
    return copies
