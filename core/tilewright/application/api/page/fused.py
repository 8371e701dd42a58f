"""Pages of fused networks: where results live, how full the memories are, and the loops that layers share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tilewright.application.api.gain import FusionGain
from tilewright.application.api.page.parts import chart, document, facts, table
from tilewright.application.drawing.charts import bars
from tilewright.application.drawing.drawing import Drawing
from tilewright.application.drawing.timeline import Life, lives
from tilewright.application.run.case_costs import LayerCost
from tilewright.application.run.resident import Intermediate
from tilewright.application.run.tiled_network import TiledPart
from tilewright.mapspace.group_legality import home_of, memory_at, tile_peaks, width_at, words_at
from tilewright.plugin.result import proof
from tilewright.reports.costs import COSTS
from tilewright.schema.architecture import Architecture, Memory
from tilewright.tables import Column, Table, numbers
from tilewright.version import __version__


class FusedNetwork(Protocol):
    """Fused network with what its page shows; `NetworkFusion` is one."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def gain(self) -> FusionGain: ...
    @property
    def residents(self) -> tuple[Intermediate, ...]: ...
    @property
    def parts(self) -> tuple[TiledPart, ...]: ...
    @property
    def costs(self) -> tuple[LayerCost, ...]: ...
    @property
    def layers(self) -> tuple[str, ...]: ...
    @property
    def saved(self) -> float: ...
    @property
    def gap(self) -> float | None: ...
    @property
    def claimed_by(self) -> str | None: ...
    def rows(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Held:
    """A result that an on-chip memory holds.

    Attributes:
        readers: the layers that read it, or add it to their results.
        first, last: positions of the maker and of the last reader.
        words: those of the memory that it takes, at most.
        is_whole: whether all of it is there at once.
    """

    maker: str
    readers: tuple[str, ...]
    memory: str
    first: int
    last: int
    words: float
    is_whole: bool


def fused_page(fusion: FusedNetwork) -> str:
    """Return the page of a fused network."""
    layers, held = fusion.layers, list(held_results(fusion))
    names = {result.memory for result in held}
    memories = [one for one in fusion.architecture.memories if one.name in names and one.usable_words is not None]
    results = Table("result", Column("read by", wrapped=True), "memory", "held", numbers("words"))
    for result in held:
        kind = "whole" if result.is_whole else "in tiles"
        results.add_row(result.maker, ", ".join(result.readers), result.memory, kind, result.words)
    life = [
        Life(
            result.maker,
            f"{'whole' if result.is_whole else 'tiles'} in {result.memory}",
            result.first,
            result.last,
            f", {result.words:,.15g} words",
        )
        for result in held
    ]
    return document(
        "fused.html.jinja",
        f"{fusion.gain.network} on {fusion.gain.architecture}, fused",
        figures=list(_totals(fusion)),
        lives=chart(partial(lives, "results on chip", life, layers), "lives"),
        rooms=[chart(partial(_room, fusion, memory), f"room-{memory.name}") for memory in memories],
        results=table(results, "results") if held else None,
        layers=table(_layers(fusion), "layers"),
        trees=[{"layers": ", ".join(part.layers), "text": str(part.mapping)} for part in fusion.parts],
        provenance=facts(_provenance(fusion)),
    )


def held_results(fusion: FusedNetwork) -> Iterator[Held]:
    """Yield the results that stay on chip, in order of execution: whole ones, and those of layers that share loops."""
    order = {name: number for number, name in enumerate(fusion.layers)}
    held = [
        Held(
            resident.maker, tuple(resident.operands), fusion.gain.home or "", resident.first, resident.last,
            resident.words, True,
        )
        for resident in fusion.residents
    ]  # fmt: skip
    for group in (part.mapping for part in fusion.parts):
        for tensor, users in group.needs.items():
            maker = group.maker(tensor)
            if maker is None or len(users) == 1:
                continue
            place, number = home_of(group, maker, tensor)
            memory = memory_at(group, tensor, place, number)
            if memory in group.architecture.clusters[0].memories:
                continue
            words, made = words_at(group, tensor, place, number), group.paths[maker].problem
            readers = tuple(name for name in users if name != maker)
            last = max(order[name] for name in readers)
            whole = made.tensor_words(made.output) * width_at(group, tensor, place, number)
            held.append(Held(maker, readers, memory.name, order[maker], last, words, words >= whole))
    yield from sorted(held, key=lambda result: (result.first, result.last))


def occupancy(fusion: FusedNetwork, memory: str) -> list[tuple[float, float]]:
    """Return, for each layer, the words of a memory that whole results take, and all others at most.

    Layers that share loops have those of all of them together.
    """
    staying = [resident for resident in fusion.residents if fusion.gain.home == memory]
    peaks = {
        number: peak
        for part in fusion.parts
        for peak in [tile_peaks(part.mapping)[memory]]
        for number in range(part.first, part.last + 1)
    }
    rows = list[tuple[float, float]]()
    for number, cost in enumerate(fusion.costs):
        alive = sum(resident.words for resident in staying if resident.first <= number <= resident.last)
        report = None if cost.layer is None else cost.layer.report
        levels = () if report is None else report.levels
        alone = next((level.used_words or 0 for level in levels if level.name == memory), 0)
        rows.append((alive, peaks.get(number, alone)))
    return rows


def _room(fusion: FusedNetwork, memory: Memory) -> Drawing:
    title = f"words of {memory.name}, of {memory.usable_words:,}"
    series = ["results that stay whole", "tiles, and all of layers that share loops"]
    return bars(title, fusion.layers, series, occupancy(fusion, memory.name), "words")


def _totals(fusion: FusedNetwork) -> Iterator[tuple[str, str]]:
    yield from ((figure.column.name, figure.text(fusion)) for figure in COSTS.view("page, totals").values())
    yield "saved", f"{100 * fusion.saved:.2f} % of {fusion.gain.objective.title}"
    if fusion.gain.gain is not None:
        yield f"any fusion in {fusion.gain.home} saves at most", f"{100 * fusion.gain.gain:.2f} %"
    yield "layers that share loops", f"{sum(len(part.layers) for part in fusion.parts):,} of {len(fusion.layers):,}"
    yield "proved", proof(fusion.gap, fusion.claimed_by) or "no"


def _layers(fusion: FusedNetwork) -> Table:
    made = Table("layer", *COSTS.columns("layers"), "result stays")
    for row in fusion.rows():
        made.add_row(
            row["layer"], *(figure.value(row) for figure in COSTS.view("layers").values()), row["result_stays"]
        )
    return made


def _provenance(fusion: FusedNetwork) -> Iterator[tuple[str, object]]:
    yield "network", fusion.gain.network
    yield "architecture", fusion.gain.architecture
    yield "objective", fusion.gain.objective.name
    yield "page by tilewright", __version__
