"""Report of a generation: time to the first token, time and energy per token, and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.application.api.mapping_report import PAGE, MappingReport
from tilewright.application.api.vector_tables import unmapped_table
from tilewright.application.documents.generation import (
    OPERATORS,
    PASSES,
    SPEEDS,
    GenerateOutput,
    MemoryUse,
    OperatorRow,
    PassRow,
    SpeedRow,
)
from tilewright.application.run.artifacts.summaries import folder_message, head_of, save_summary, title_of
from tilewright.application.run.configuration import acquire
from tilewright.application.run.roofline import ROOFLINE, Roof, roof_of
from tilewright.errors import OutputError
from tilewright.files import RunFolder
from tilewright.reports.content import seconds_of
from tilewright.reports.costs import COSTS
from tilewright.schema.document import suggestion
from tilewright.schema.objective import CYCLES
from tilewright.schema.problem import Tensor
from tilewright.schema.workload import Kept
from tilewright.tables import Shown, Table, Tabular

WAYS = {
    "matrix layers": ("cycles", "energy_pj"),
    "all layers, in sequence": ("sequential_cycles", "network_energy_pj"),
    "all layers, overlapped": ("overlapped_cycles", None),
}
"""Way of counting -> cycles and energy among the totals of a pass. Energies are those in sequence."""
NAME = "generation by {}"
"""Name of the searches in the record of a folder."""


@dataclass(frozen=True)
class Operator:
    """Operator of a pass, with all its executions. `share` is its fraction of the cycles of a pass, in sequence."""

    of: str
    name: str
    unit: str
    count: int
    cycles: int
    share: float | None
    roof: Roof


@dataclass(frozen=True)
class Pass:
    """Passes through a language model with equal work.

    Attributes:
        name: `prefill`, or `decode_CONTEXT`.
        first: number of its first decoding step; 0: it is the prefill.
        steps: number of passes.
        tokens: tokens of each sequence that one processes.
        context: tokens of each sequence up to its last one, in decoding rounded up to whole blocks.
        report: mappings of one, as of `map`.
    """

    name: str
    first: int
    steps: int
    tokens: int
    context: int
    report: MappingReport

    def total(self, figure: str) -> Any:
        """Return a total of one pass; None while a layer has no mapping."""
        return COSTS.figures[figure].value(self.report) if self.report.complete else None

    def operators(self) -> Iterator[Operator]:
        """Yield the operators that are counted: layers, then vector layers."""
        machine, vectors = self.report.configuration.architecture, self.report.with_vectors.valid
        whole = self.total("sequential_cycles") or self.total("cycles")
        layers = [(layer.name, layer.count, layer.report, machine.compute.name) for layer in self.report.layers]
        for name, count, report, unit in (
            *layers,
            *((one.layer.name, one.layer.count, one.report, one.unit) for one in vectors),
        ):
            roof = roof_of(report, machine)
            if roof is not None and roof.report.cycles is not None:
                cycles = count * roof.report.cycles
                yield Operator(self.name, name, unit, count, cycles, cycles / whole if whole else None, roof)


@dataclass(frozen=True)
class Speed:
    """Time and energy of all passes, by one way of counting.

    Attributes:
        counted: layers that count, and how they follow each other.
        prompt: tokens of the prompts of all sequences.
        steps: decoding steps.
        batch: sequences; each gets a token in a step.
        prefill: cycles and energy in pJ of the prefill.
        decode: those of all decoding steps.
        clock_ghz: clock of the architecture.
    """

    counted: str
    prompt: int
    steps: int
    batch: int
    prefill: tuple[int | None, float | None]
    decode: tuple[int | None, float | None]
    clock_ghz: float | None

    @property
    def first_token_cycles(self) -> int | None:
        return self.prefill[0]

    @property
    def token_cycles(self) -> float | None:
        """Mean over the decoding steps."""
        return None if self.decode[0] is None or not self.steps else self.decode[0] / self.steps

    @property
    def total_cycles(self) -> int | None:
        first, others = self.prefill[0], self.decode[0]
        return None if first is None or others is None else first + others

    @property
    def first_token_seconds(self) -> float | None:
        return seconds_of(self.first_token_cycles, self.clock_ghz)

    @property
    def token_seconds(self) -> float | None:
        seconds = seconds_of(self.decode[0], self.clock_ghz)
        return None if seconds is None or not self.steps else seconds / self.steps

    @property
    def total_seconds(self) -> float | None:
        return seconds_of(self.total_cycles, self.clock_ghz)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of all sequences, while decoding."""
        return self.batch / self.token_seconds if self.token_seconds else None

    @property
    def prompt_token_pj(self) -> float | None:
        return None if self.prefill[1] is None else self.prefill[1] / self.prompt

    @property
    def token_pj(self) -> float | None:
        return None if self.decode[1] is None or not self.steps else self.decode[1] / (self.batch * self.steps)


@dataclass(frozen=True, repr=False)
class GenerationReport(Tabular):
    """Passes of a language model: the prefill of a prompt, and decoding steps.

    `passes` have the mappings of one pass each, as `map` reports them. Contexts of steps are rounded up to whole blocks.
    Keys that do not exist are masked, so no step takes longer than is stated. `run` has the searches of all passes, and
    `kept` the values in memory after the prefill and at the end.

    Example:
        >>> import tilewright as tw
        >>> report = tw.generate("gpt2", "tpu_v1", prefill=8, decode=2, mapper="random", evaluations=20, cache=False)
        >>> report.speeds[0].counted, report["prefill"].workload.kept.cache
        ('matrix layers', 147456)
    """

    run: MappingReport
    passes: tuple[Pass, ...]
    batch: int
    prefill: int
    decode: int
    kv_block: int
    kept: tuple[Kept, Kept]
    folder: Path | None = None
    unwritten: OutputError | None = None

    def __repr__(self) -> str:
        where = self.run.configuration.architecture.name
        return f"<GenerationReport of {self.run.workload.name} on {where}: {self.prefill} + {self.decode} tokens>"

    def __getitem__(self, name: str) -> MappingReport:
        """Return the mappings of a pass, or raise KeyError."""
        for one in self.passes:
            if one.name == name:
                return one.report
        names = [one.name for one in self.passes]
        raise KeyError(f"no pass is called '{name}'{suggestion(name, names)}; known: {', '.join(names)}")

    @property
    def complete(self) -> bool:
        """Whether every layer of every pass has a mapping."""
        return self.run.complete

    @property
    def stopped(self) -> list[str]:
        """Layers whose search an interruption ended after a mapping was found."""
        return self.run.stopped

    @cached_property
    def speeds(self) -> tuple[Speed, ...]:
        """Time and energy by each way of counting that is known of the prefill."""
        first, *steps = self.passes
        clock, prompt = self.run.configuration.architecture.clock_ghz, self.batch * self.prefill

        def summed(figure: str | None) -> Any:
            values = [None if figure is None else one.total(figure) for one in steps]
            known = [one.steps * value for one, value in zip(steps, values, strict=True) if value is not None]
            return (
                None
                if len(known) < len(steps) or figure is None
                else math.fsum(known)
                if "_pj" in figure
                else sum(known)
            )

        return tuple(
            Speed(
                counted,
                prompt,
                self.decode,
                self.batch,
                (first.total(cycles), None if energy is None else first.total(energy)),
                (summed(cycles), summed(energy)),
                clock,
            )
            for counted, (cycles, energy) in WAYS.items()
            if first.total(cycles) is not None
        )

    @property
    def memory(self) -> MemoryUse:
        """Values in the outermost memory that holds weights, and whether it has room."""
        tensor = Tensor(name="weights", role="weight", projection=())
        held = next(one for one in self.run.configuration.architecture.memories if one.may_hold(tensor))
        start, end = self.kept
        bits = held.bits_of(tensor)
        return MemoryUse(
            memory=held.name,
            value_bits=bits,
            weights=end.weights,
            cache_after_prefill=start.cache,
            cache=end.cache,
            states=end.states,
            total_bytes=-(-end.words * bits // 8),
            capacity_bytes=None if held.usable_words is None else int(held.usable_bits // 8),
            fits=None if held.usable_words is None else end.words * bits <= held.usable_bits,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per kind of pass, with the costs of one pass."""
        return [PASSES.data("json", one) | {key: one.total(key) for key in COSTS.keys("totals")} for one in self.passes]

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map --prefill --json` and `generation.json`."""
        run = self.run.configuration
        return GenerateOutput(
            **head_of(self.run.workload, run),
            objective=run.objective.name,
            seed=run.seed,
            batch=self.batch,
            prefill=self.prefill,
            decode=self.decode,
            kv_block=self.kv_block,
            clock_ghz=run.architecture.clock_ghz,
            passes=[PassRow(**row) for row in self.rows()],
            speeds=[SpeedRow(**SPEEDS.data("json", speed)) for speed in self.speeds],
            operators=[
                OperatorRow(**OPERATORS.data("json", operator), **ROOFLINE.data("json", operator.roof))
                for phase in self.passes
                for operator in phase.operators()
            ],
            memory=self.memory,
        ).data()

    def tables(self) -> Sequence[Table | str]:
        if all(layer.report is None for layer in self.run.layers):
            return []  # the messages have the reasons
        run = self.run.configuration
        view = "passes, all" if run.architecture.units else "passes"
        costs: list[Shown[Pass]] = [
            Shown(figure.column, lambda one, figure=figure: figure.cell({figure.key: one.total(figure.key)}))  # type: ignore[misc]
            for figure in COSTS.view(view).values()
        ]
        title = f"{title_of(self.run.workload, run, self.run.layers)}: passes, with the costs of one"
        parts: list[Table | str] = [
            Table.of([*PASSES.shown("table", lambda one: one), *costs], self.passes, title),
            *self._rounded(),
            "",
            Table.of(
                SPEEDS.shown("cycles", lambda speed: speed, known=self.speeds),
                self.speeds,
                f"all passes, batch {self.batch}",
            ),
        ]
        if run.architecture.clock_ghz is not None:
            seconds = SPEEDS.shown("seconds", lambda speed: speed, known=self.speeds)
            parts.append(Table.of(seconds, self.speeds, f"time at {run.architecture.clock_ghz:g} GHz"))
        ends = {self.passes[0].name, self.passes[-1].name}
        shown = [operator for phase in self.passes if phase.name in ends for operator in phase.operators()]
        columns: list[Shown[Operator]] = [
            *OPERATORS.shown("table", lambda one: one),
            *ROOFLINE.shown("table", lambda one: one.roof),
        ]
        parts += ["", Table.of(columns, shown, "operators of the first and the last pass")]
        first = self.passes[0].report
        return [*parts, "", *self._memory(), *unmapped_table(first.workload, first.with_vectors)]

    def _rounded(self) -> list[str]:
        """Return a line on the blocks of the cache, if contexts are rounded up to whole ones."""
        told = f"contexts are rounded up to whole blocks of {self.kv_block} tokens; --kv-block 1 takes all as they are"
        return [told] if self.decode and self.kv_block > 1 else []

    def _memory(self) -> list[str]:
        """Return the values that stay in memory, as lines."""
        memory = self.memory
        cache = f"KV cache: {memory.cache_after_prefill:,} values after the prefill"
        lines = [cache + (f", {memory.cache:,} at the end" if self.decode else "")]
        lines += [f"states: {memory.states:,} values"] if memory.states else []
        lines.append(f"weights: {memory.weights:,} values, without biases, norms and positions")
        total = f"together {memory.total_bytes / 1e9:,.4g} GB of {memory.value_bits} bits a value"
        if memory.capacity_bytes is None:
            return [*lines, f"{total}; {memory.memory} states no capacity"]
        room = f"{memory.capacity_bytes / 1e9:,.4g} GB of {memory.memory}"
        return [*lines, f"{total}, {'within' if memory.fits else 'more than'} {room}"]

    def messages(self) -> list[str]:
        """Return messages that the user needs to interpret the results."""
        messages, machine = self.run.messages(), self.run.configuration.architecture
        if self.memory.fits is False:
            messages.append(f"warning: weights and cache have no room in {self.memory.memory}")
        if (objective := self.run.configuration.objective) != CYCLES:
            messages.append(f"note: the mappings minimise {objective.name}; --objective cycles minimises the times")
        if machine.clock_ghz is None:
            told = f"note: {machine.name} states no clock, so there are cycles only"
            messages.append(f"{told}; write `clock: 1 GHz`, or its own, into its file")
        if not machine.units:
            told = f"note: {machine.name} has no vector unit, so softmax, norms and the like take no time and no energy here"
            messages.append(f"{told}; write `units` into its file")
        messages += folder_message(self.folder, self.unwritten)
        pages = [] if self.folder is None else [self.folder / one.name / PAGE for one in self.passes]
        return [*messages, *(f"open {page}" for page in pages if page.is_file())]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.messages()])

    def save(self, folder: str | Path) -> Path:
        """Write `generation.json`, `generation.csv`, and a folder for each pass, with a page for the first and the last.

        Raises:
            InputError: The folder belongs to another run.
            OutputError: A file cannot be written.
        """
        run = RunFolder(folder)
        acquire(
            run, self.run.workload, [(NAME.format(self.run.configuration.mapper_record.name), self.run.configuration)]
        )
        if (failure := self.summarised(run).unwritten) is not None:
            raise failure
        return run.path

    def summarised(self, folder: RunFolder | None) -> GenerationReport:
        """Write all files, and return the report with its folder."""
        if folder is None:
            return self
        save_summary(folder, "generation", self.data(), (*PASSES.keys("json"), *COSTS.keys("totals")), self.rows())
        failure = folder.failure
        for one in self.passes:
            try:
                page = one in (self.passes[0], self.passes[-1])
                one.report.save(folder.path / one.name, force=True, page=page)
            except OutputError as error:
                failure = failure or error
        return replace(self, folder=folder.path, unwritten=failure)
