"""Mapping report: results of `map`, one per layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.application.algorithms.expansion import Expansion
from tilewright.application.algorithms.printed import offer_rows, offer_table
from tilewright.application.algorithms.totals import Choice, Cost, choices
from tilewright.application.api.sections import added_sections, are_added
from tilewright.application.api.sensitivity import Effect, lines
from tilewright.application.api.vector_tables import unit_bars, unmapped_table, vector_rows, vector_tables, vectors_csv
from tilewright.application.documents.searches import (
    Best,
    MapLayer,
    MapOutput,
    Offer,
    RooflineRow,
    Search,
    Sensitivity,
    Totals,
    Unmapped,
    Unsearched,
)
from tilewright.application.run.artifacts.layers import (
    certificate_file,
    certificate_of,
    layer_file,
    save_layer,
    spec_of,
)
from tilewright.application.run.artifacts.summaries import (
    fallback_message,
    folder_message,
    head_of,
    interrupted_message,
    save_summary,
    title_of,
)
from tilewright.application.run.configuration import RunConfiguration, acquire, limit_message
from tilewright.application.run.network import MappedLayer
from tilewright.application.run.roofline import ROOFLINE, roof_of
from tilewright.application.run.searched import PROBLEMS, SEARCHES, Searched
from tilewright.application.run.vector_network import CountedVector, VectorTotals
from tilewright.errors import OutputError
from tilewright.files import RunFolder
from tilewright.formats import quantity
from tilewright.interrupts import stop_requested
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.plugin.result import percent
from tilewright.reports.content import ReportContent
from tilewright.reports.costs import COSTS
from tilewright.reports.printed import summary
from tilewright.schema.constraints import Cutting
from tilewright.schema.divisors import sizes_with_few_divisors
from tilewright.schema.document import suggestion
from tilewright.schema.mapped import AlternativeRecord
from tilewright.schema.mapped.certificate import Certificate, LayerClaim, told_space
from tilewright.schema.operands import operand_warnings
from tilewright.schema.unmatched import unmatched
from tilewright.schema.unsearched import JudgedRule, covers_files, judged, statement
from tilewright.schema.workload import Workload, costed_graph
from tilewright.tables import Column, Shown, Table, Tabular, numbers
from tilewright.values import attributes, grouped

if TYPE_CHECKING:
    import networkx as nx

    from tilewright.application.api.plots import NetworkPlots


PAGE = "report.html"


@dataclass(frozen=True, repr=False)
class MappingReport(Tabular):
    """Mappings of the distinct problems of a workload, in the workload's order.

    `folder` contains the mapping files. An interrupted run has fewer layers than the workload has distinct problems.
    Totals count each layer as often as it occurs. They are None while a layer has no mapping, and for a list of layers.

    If algorithms were requested, `expansion` holds their alternatives, and `layers` the steps of all of them. `choices`
    lists the total cost of each alternative, and totals are those of the best ones.

    `sensitivity` has the effects of larger bandwidths and capacities, if they were requested. `vectors` has the costs of
    vector layers, if the architecture has vector units; `with_vectors` has the totals with them.

    Example:
        >>> import tilewright as tw
        >>> tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).macs
        512
    """

    workload: Workload
    configuration: RunConfiguration
    layers: tuple[MappedLayer, ...]
    folder: Path | None = None
    unwritten: OutputError | None = None
    expansion: Expansion | None = None
    sensitivity: tuple[Effect, ...] = ()
    vectors: tuple[CountedVector, ...] = ()

    def __repr__(self) -> str:
        where = self.configuration.architecture.name
        return f"<MappingReport of {self.workload.name} on {where}: {len(self.layers)} layers>"

    def __getitem__(self, name: str) -> MappedLayer:
        """Return the layer of that name, or raise KeyError.

        A layer that repeats another one's problem has the same result.
        """
        for layer in self.layers:
            if name in layer.distinct.layers:
                return layer
        names = [layer_name for layer in self.layers for layer_name in layer.distinct.layers]
        raise KeyError(f"no layer is called '{name}'{suggestion(name, names)}; known: {', '.join(names)}")

    def certificate(self, name: str) -> Certificate[LayerClaim] | None:
        """Return the certificate of the layer of that name, or None if nothing was proved.

        Raises:
            KeyError: There is no such layer.
        """
        layer = self[name]
        return certificate_of(layer, self.configuration, self.steps_of(layer))

    def steps_of(self, layer: MappedLayer) -> tuple[AlternativeRecord, ...]:
        """Return the alternatives that have the layer as a step."""
        return () if self.expansion is None else self.expansion.records(layer.distinct.layers)

    @property
    def searched(self) -> Workload:
        """Workload that was mapped: the given one, or the steps of all alternatives."""
        return self.workload if self.expansion is None else self.expansion.workload

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """Costs of the alternatives of each layer; empty if no algorithms were requested."""
        if self.expansion is None:
            return ()
        by_name = {name: layer for layer in self.layers for name in layer.distinct.layers}
        return choices(self.expansion, by_name, self.configuration.architecture, self.configuration.objective)

    @property
    def graph(self) -> nx.DiGraph[str]:
        """Return the workload's graph with `energy_pj` and `cycles` of each mapped layer.

        The values include all repetitions of the layer. If algorithms were requested, they are
        those of the best alternative.
        """
        costs: dict[str, MappedLayer | Cost | None] = {
            name: layer for layer in self.layers if self.expansion is None for name in layer.distinct.layers
        }
        for choice in self.choices:
            if choice.is_best:
                costs |= dict.fromkeys(choice.offer.distinct.layers, choice.total)
        return costed_graph(self.workload, costs)

    @property
    def missing(self) -> int:
        """Number of distinct problems that an interruption left without a search."""
        return len(self.searched.distinct()) - len(self.layers)

    @property
    def stopped(self) -> list[str]:
        """Layers whose search an interruption ended after a mapping was found."""
        return [layer.name for layer in self.layers if layer.interrupted and layer.report is not None]

    @property
    def complete(self) -> bool:
        """Whether every layer has a mapping."""
        return not self.missing and self._sum is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Names in architecture and constraints that match nothing in the workload, and operations that do not fit."""
        problems, run = [distinct.problem for distinct in self.searched.distinct()], self.configuration
        unfit = operand_warnings(problems, run.architecture)
        return (*unmatched(problems, run.architecture, run.constraints), *unfit)

    @property
    def macs(self) -> int | None:
        """MACs of all layers; None for a list of layers."""
        if self.workload.is_list:
            return None
        if self.expansion is not None:
            return self.workload.macs
        return sum(layer.problem.macs * layer.count for layer in self.layers)

    @property
    def cycles(self) -> int | None:
        """Total cycles, with all layers in sequence."""
        return None if self._total is None else self._total.cycles

    @property
    def energy_pj(self) -> float | None:
        return None if self._total is None else self._total.energy_pj

    @property
    def _total(self) -> Cost | None:
        """Return the total cost of a network; None for a list of layers."""
        return None if self.workload.is_list else self._sum

    @property
    def _sum(self) -> Cost | None:
        """Return the cost of all layers, or None while one has no mapping.

        For a layer with alternatives, the best one counts.
        """
        if self.expansion is None:
            count = len(self.layers)
            totals = [
                Cost(layer.energy_pj, layer.cycles) * layer.count
                for layer in self.layers
                if layer.energy_pj is not None and layer.cycles is not None
            ]
        else:
            count = len(self.workload.distinct())
            best = [(choice.total, choice.offer.distinct.count) for choice in self.choices if choice.is_best]
            totals = [total * times for total, times in best if total is not None]
        return sum(totals, Cost()) if totals and len(totals) == count else None

    @cached_property
    def with_vectors(self) -> VectorTotals:
        """Totals with vector layers; None without vector units, for a list of layers, and with algorithms."""
        whole = self.expansion is None and not self.workload.is_list
        reports = {name: layer.report for layer in self.layers for name in layer.distinct.layers}
        vectors = self.vectors if whole else ()
        return VectorTotals(self.workload, self.configuration.architecture, reports, vectors, self.energy_pj)

    @property
    def edp(self) -> float | None:
        """Energy times cycles, both of the whole workload."""
        return None if self.energy_pj is None or self.cycles is None else self.energy_pj * self.cycles

    def save(self, folder: str | Path, *, force: bool = False, page: bool = True) -> Path:
        """Write a mapping file per layer, the summaries and the page, as `map -o` does.

        Args:
            force: Whether to replace files of another run in the folder.
            page: Whether to write the page, which takes a second or two.

        Raises:
            InputError: The folder belongs to another run.
            OutputError: A file cannot be written.
        """
        run = RunFolder(folder)
        acquire(run, self.searched, [(self.configuration.mapper_record.name, self.configuration)], force=force)
        for number, layer in enumerate(self.layers, start=1):
            save_layer(run, number, layer, self.configuration, self.steps_of(layer))
        if (failure := self.summarised(run, page).unwritten) is not None:
            raise failure
        return run.path

    def summarised(self, folder: RunFolder | None, page: bool = True) -> MappingReport:
        """Write the summaries and, unless Ctrl-C was pressed, the page; return the report with its folder."""
        if folder is None:
            return self
        saved = replace(self, folder=folder.path)
        data = saved.data()
        costs, searches = COSTS.view("csv"), SEARCHES.view("map, csv")
        columns = (*PROBLEMS.view("map, csv"), "valid", *costs, *searches, *self._places, "mapping_file")
        save_summary(folder, "summary", data, columns, saved.rows())
        if self.vectors:
            folder.write("vectors.csv", vectors_csv(data["vectors"]))
        if page and not stop_requested():  # after Ctrl-C the program ends within two seconds; charts would take one
            from tilewright.application.api.page.network import network_page  # most runs draw nothing

            folder.write(PAGE, network_page(data, folder.path))
        return replace(saved, unwritten=folder.failure)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per distinct problem. `sizes` are those of dimensions longer than 1, as text.

        `PLACE_pj` is the energy in a memory, a network or in computing, of one execution.
        """
        return [
            PROBLEMS.data("map, csv", layer.distinct)
            | {"valid": row["best"]["valid"]}
            | COSTS.data("csv", row["best"])
            | SEARCHES.data("map, csv", row["search"])
            | dict.fromkeys(self._places)
            | _energies(row["energy"])
            | {"mapping_file": row["best"]["mapping_file"]}
            for layer, row in zip(self.layers, self.data()["layers"], strict=True)
        ]

    @property
    def _places(self) -> list[str]:
        """Names of the figures of energy by place, of all layers."""
        reports = [layer.report for layer in self.layers if layer.report is not None]
        return list(dict.fromkeys(f"{part.place}_pj" for report in reports for part in report.energy_parts()))

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map --json` and `summary.json`."""
        run = self.configuration
        return MapOutput(
            **head_of(self.workload, run),
            objective=run.objective.name,
            seed=run.seed,
            warnings=list(self.warnings),
            layers=[self._layer(number, layer) for number, layer in enumerate(self.layers, start=1)],
            unmapped=[
                Unmapped(
                    **attributes(unmapped, "name operator reason operations"),
                    counted=unmapped.name in self.with_vectors.counted,
                    origin=None if unmapped.origin is None else unmapped.origin.model_dump(exclude_none=True),
                )
                for unmapped in self.workload.unmapped
            ],
            vectors=vector_rows(self.vectors, run.architecture),
            timeline=unit_bars(self.with_vectors.bars),
            ports=unit_bars(self.with_vectors.port_bars),
            algorithms=[Offer(**row) for row in offer_rows(self.choices)],
            links=[(before, layer.name) for layer in self.workload.layers for before in layer.after or ()],
            totals=Totals(**COSTS.data("totals", self), **attributes(run.architecture, "area_um2 clock_ghz")),
            sensitivity=[
                Sensitivity(
                    **attributes(
                        effect, "part what percent energy_pj cycles objective_change searched proved reason told"
                    )
                )
                for effect in self.sensitivity
            ],
        ).data()

    def _layer(self, number: int, layer: MappedLayer) -> MapLayer:
        written = self.folder is not None and layer.report is not None
        full = None if layer.mapping is None else layer.mapping.full()
        return MapLayer(
            **PROBLEMS.data("map", layer.distinct),
            best=Best(
                valid=layer.report is not None,
                **COSTS.data("json", layer.report),
                mapping_file=layer_file(number, layer) if written else None,
                certificate_file=certificate_file(number, layer) if written else None,
            ),
            mapping=None if layer.mapping is None else layer.mapping.to_data(),
            nest=None if layer.mapping is None else str(layer.mapping).splitlines(),
            loops=[] if full is None else list(full.loops),
            tiles=[] if full is None else list(full.tiles),
            levels=[] if layer.mapping is None else list(layer.mapping.levels()),
            energy=[] if layer.report is None else layer.report.rows(),
            limits=[] if layer.report is None else list(layer.report.slowest),
            roofline=RooflineRow.of(layer.report, layer.architecture),
            search=Search(**SEARCHES.data("map", self._search(layer))),
            unsearched=[Unsearched(**rule.data()) for rule in self.unsearched(layer)],
            error=None if layer.error is None else str(layer.error),
        )

    def _search(self, layer: MappedLayer) -> Searched:
        return Searched(layer, self.configuration)

    def unsearched(self, layer: MappedLayer) -> tuple[JudgedRule, ...]:
        """Return the rules of other tools' files that are not searched, each compared with the layer's mapping."""
        if layer.result is None or layer.result.best is None or layer.architecture is None:
            return ()
        rules = self.configuration.constraints.rules_for(layer.problem, layer.architecture)
        return judged(rules, layer.result.best, layer.architecture)

    def _wider(self) -> list[str]:
        """Return how the searched spaces relate to the rules of the files, once for layers with equal statements."""
        told = grouped(
            (
                statement(self.unsearched(layer), layer.result is not None and layer.result.told_proof == "yes"),
                layer.name,
            )
            for layer in self.layers
        )
        told.pop((), None)
        return [
            f"{'' if len(names) == len(self.layers) else ', '.join(names) + ': '}{lines[0]}\n" + "\n".join(lines[1:])
            for lines, names in told.items()
        ]

    def _letters(self) -> list[str]:
        """Return a message where constraints that the user wrote call a dimension as the problem calls another one."""
        constraints = self.configuration.constraints
        letters = [
            (constraints.swapped_letters(distinct.problem), distinct.problem.name)
            for distinct in (() if constraints.default else self.workload.distinct())
        ]
        told = grouped(
            (", ".join(f"{letter} is {dimension}" for letter, dimension in sorted(swapped.items())), name)
            for swapped, name in letters
            if swapped
        )
        return [
            f"letters in constraints '{constraints.name}' for {', '.join(names)}: {words}"
            for words, names in told.items()
        ]

    @property
    def plot(self) -> NetworkPlots:
        """Charts of the report, such as `plot.energy()`."""
        from tilewright.application.api.plots import network_plots

        return network_plots(self.data())

    def _uncounted_bits(self) -> list[str]:
        """Return a message if layers state widths that the memories do not count."""
        odd = [
            layer.name
            for layer in self.layers
            for memory in self.configuration.architecture_for(layer.problem).memories
            for tensor in layer.problem.tensors
            if tensor.bits and memory.may_hold(tensor) and memory.bits_of(tensor) != tensor.bits
        ]
        names = list(dict.fromkeys(odd))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        told = "have values of other widths than the memories count; --value-bits network counts those of the network"
        return [f"note: {names[0]}{more} {told}"] if names else []

    def _indivisible(self) -> list[str]:
        """Return a note on each size without useful divisors, if tiles must divide."""
        even = [
            layer.problem for layer in self.layers if layer.result is not None and self._cutting(layer) == "perfect"
        ]
        return [
            f"note: tiles that divide {size} ({which}) are {', '.join(map(str, divisors(size)))}; --factors as_needed "
            "allows others in such layers"
            for size, which in sizes_with_few_divisors(even).items()
        ]

    def _cutting(self, layer: MappedLayer) -> Cutting:
        """Return how tiles of a searched layer are cut."""
        constraints, architecture = self.configuration.constraints, layer.architecture
        rules = None if architecture is None else constraints.rules_for(layer.problem, architecture)
        return constraints.factors_for(layer.problem, rules)

    def messages(self) -> list[str]:
        """Return messages that the user needs to interpret the results."""
        messages = [f"warning: {warning}" for warning in self.warnings]
        free = [layer.name for layer in self.layers if not layer.constrained]
        if free:
            name = self.configuration.constraints.name
            messages.append(
                f"constraints '{name}' have no rules for these problems, mapped without constraints: {', '.join(free)}"
            )
        messages += self._letters()
        messages += self._indivisible()
        messages += self._uncounted_bits()
        messages += fallback_message(self.configuration, self.layers)
        failed = grouped((str(layer.error), layer.name) for layer in self.layers if layer.error is not None)
        messages += [f"error: {', '.join(names)}: {text}" for text, names in failed.items()]
        for layer in self.layers:
            if layer.error is None and layer.report is None and layer.result is not None:
                messages.append(f"no valid mapping found for {layer.name}: {layer.result.told}")
                more = "more --evaluations or --seconds, another mapper"
                first = "--mapper random" if layer.result.stop == "finished" else more
                messages.append(f"  hint: try {first}, other --constraints or another cost model")
            messages.extend(f"warning: {warning}" for warning in layer.warnings if warning not in self.warnings)
        for distinct in self.workload.distinct() if self.expansion is not None else ():
            if not any(choice.is_best for choice in self.choices if choice.offer.distinct.problem is distinct.problem):
                messages.append(f"no alternative for {distinct.problem.name} has a mapping;  try more --algorithms")
        messages += interrupted_message(self.stopped, self.missing, len(self.searched.distinct()))
        messages += folder_message(self.folder, self.unwritten)
        if self.folder is not None and self.unwritten is None:
            page = self.folder / PAGE
            messages.append(
                f"open {page}" if page.is_file() else f"tilewright report {self.folder} writes a page of it"
            )
        return messages

    @property
    def is_one(self) -> bool:
        """Whether the workload is a single mapped layer, which is printed with its loop nest."""
        once = len(self.workload.layers) == 1 and self.workload.layers[0].count == 1
        alone = once and not self.workload.unmapped and not self.workload.vectors
        return alone and self.complete and self.expansion is None

    def tables(self) -> Sequence[Table | str]:
        if self.layers and self.expansion is None and all(layer.report is None for layer in self.layers):
            return []  # the messages have the reasons
        if not self.is_one:
            below = [*self.workload.told(), *self._speed(), *lines(self.sensitivity)]
            unmapped = unmapped_table(self.workload, self.with_vectors)
            return [
                *self._offers(),
                self._table(),
                *below,
                *vector_tables(self.with_vectors),
                *([""] if below and unmapped else []),
                *unmapped,
                *self._figures(),
                *self._searched(),
                *self._sections,
            ]
        (layer,) = self.layers
        assert layer.report is not None and layer.mapping is not None
        steps = "".join(
            f", {name} {step}"
            for name, step in attributes(layer.problem, "stride dilation").items()
            if step is not None
        )
        facts = [f"  sizes   {layer.problem.long_dimensions}{steps}, {layer.problem.macs:,} MACs"]
        facts += [f"  origin  {layer.distinct.origin}"] if layer.distinct.origin else []
        return [
            *summary(layer.report, self._title, *facts),
            "",
            layer.mapping.titled(),
            "",
            *lines(self.sensitivity),
            *self._figures(),
            *self._searched(),
            *self._sections,
        ]

    @cached_property
    def _sections(self) -> list[Table | str]:
        """Sections of plugins."""
        added = added_sections("network", self.data()) if are_added() else []
        return [part for section in added for part in section.printed()]

    def __str__(self) -> str:
        layers = (
            []
            if self.is_one or not any(layer.report for layer in self.layers)
            else [f"report[{self.layers[0].name!r}] prints a layer's mapping"]
        )
        return "\n".join([*([super().__str__()] if self.tables() else []), *self.messages(), *layers])

    @property
    def _title(self) -> str:
        return title_of(self.workload, self.configuration, self.layers)

    def _offers(self) -> list[Table | str]:
        """Return the table of alternatives for each layer, and the totals of the best ones."""
        if self.expansion is None:
            return []
        parts: list[Table | str] = [offer_table(self.choices, self.expansion.movements)]
        if self.energy_pj is not None and self.edp is not None:
            energy, edp = quantity(self.energy_pj, "pJ"), quantity(self.edp, "pJ x cycles")
            parts.append(f"best of each, all layers: {energy}, {self.cycles:,} cycles, EDP {edp}")
        return [*parts, ""]

    def _table(self) -> Table:
        whole = None if self.expansion else self.energy_pj

        def share(layer: MappedLayer) -> float | None:
            return 100 * (layer.energy_pj or 0.0) * layer.count / whole if whole else None

        count = sum(layer.count for layer in self.layers)
        total = {"layer": "total", "sizes": "", "stride": "", "dilation": "", "count": count, "macs": self.macs}
        name, *sizes = PROBLEMS.shown("map, table", lambda layer: layer.distinct, total, known=self.layers)
        columns: list[Shown[MappedLayer]] = [
            name,
            *([Shown(Column("origin", rank=8, wrapped=True), _origin)] if self._renamed else []),
            *sizes,
            *COSTS.shown("map", lambda layer: layer.report, self),
            *([] if self.workload.is_list else [Shown(numbers("% of energy", rank=6, decimals=1), share)]),
            *COSTS.shown("map, end", lambda layer: layer.report),
            *ROOFLINE.shown("map", lambda layer: roof_of(layer.report, layer.architecture)),
            *([Shown("densities", lambda layer: self._densities.get(layer.name, ""))] if self._densities else []),
            *([Shown("proved", lambda layer: self._proofs.get(layer.name, "no"))] if self._proofs else []),
        ]
        has_total = self.expansion is None and not self.workload.is_list
        return Table.of(columns, self.layers, self._title, "--json or -o", has_total)

    @cached_property
    def _renamed(self) -> bool:
        """Whether some layer, or its weights, have another name in the file that it was read from."""
        origins = {layer.name: layer.distinct.origin for layer in self.layers}
        return any(origin is not None and origin.beside(name) != name for name, origin in origins.items())

    @cached_property
    def _densities(self) -> dict[str, str]:
        """Return the densities of each layer that has some."""
        by_layer = {layer.name: [tensor for tensor in layer.problem.tensors if tensor.density] for layer in self.layers}
        return {
            name: ", ".join(f"{tensor.name} {tensor.density}" for tensor in some)
            for name, some in by_layer.items()
            if some
        }

    @cached_property
    def _proofs(self) -> dict[str, str]:
        """Return the proof of each layer's best mapping; empty if the mapper proves nothing."""
        return {
            layer.name: layer.result.told_proof + ("" if covers_files(self.unsearched(layer)) else ", wider")
            for layer in self.layers
            if layer.result and layer.result.told_proof
        }

    def _speed(self) -> list[Table | str]:
        """Return total time and speed if the architecture has a clock, and its area if known."""
        architecture, words = self.configuration.architecture, list[str]()
        whole = ReportContent(
            model=self.configuration.model.record.name,
            problem=self.workload.name,
            valid=True,
            macs=self.macs or 0,
            **attributes(self, "cycles energy_pj"),
            clock_ghz=architecture.clock_ghz,
        )
        if whole.seconds and whole.gops and whole.gops_per_watt:
            words.append(f"{quantity(1e12 * whole.seconds, 'ps')} at {whole.clock_ghz:g} GHz")
            words.append(f"{whole.gops:.4g} GOPS, {whole.gops_per_watt:.4g} GOPS/W")
        if architecture.area_um2 is not None:
            words.append(COSTS.figures["area_um2"].text(architecture))
        return [", ".join(line) for line in (words, self._shares()) if line]

    def _shares(self) -> list[str]:
        """Return the fraction of the energy of a network in each place, as text; empty without totals."""
        if not self.energy_pj or self.expansion is not None:
            return []
        energies: dict[str, float] = {}
        for layer in self.layers:
            for part in layer.report.energy_parts() if layer.report else ():
                energies[part.place] = energies.get(part.place, 0.0) + layer.count * part.energy_pj
        shares = [f"{place} {percent(energy / self.energy_pj)}" for place, energy in energies.items()]
        return [f"energy: {', '.join(shares)}"] if shares else []

    def _figures(self) -> list[Table | str]:
        """Return the figures that the mapper declares for the printed report, by layer."""
        mapper = self.configuration.mapper_record
        spec = spec_of(mapper)
        names = () if spec is None else spec.figures
        rows = [(layer, layer.result.figures) for layer in self.layers if layer.result and layer.instead is None]
        rows = [(layer, figures) for layer, figures in rows if all(name in figures for name in names)]
        if not names or not rows:
            return []
        columns = (*PROBLEMS.columns("table"), *(numbers(name, decimals=2) for name in names))
        table = Table(*columns, title=f"figures of {mapper.name}")
        for layer, figures in rows:
            table.add_row(*PROBLEMS.data("table", layer.distinct).values(), *(figures[name] for name in names))
        return [table]

    def _searched(self) -> list[Table | str]:
        """Return the number of results from the cache, and the speed of the searches."""
        parts: list[Table | str] = []
        parts += self._proved()
        parts += self._wider()
        cached = [layer.name for layer in self.layers if layer.cached]
        if cached:
            which = "all layers" if len(cached) == len(self.layers) else ", ".join(cached)
            parts.append(f"from the cache, not searched again (--no-cache would): {which}")
            if self._proofs.keys() & set(cached):
                parts.append(
                    "  their proofs are those of earlier searches; `tilewright verify --certificate FILE` repeats one"
                )
        searched = [layer.result for layer in self.layers if layer.result and not layer.cached]
        evaluated = sum(result.evaluated for result in searched)
        seconds = sum(result.wall_seconds for result in searched)
        if seconds:
            parts.append(f"{evaluated:,} mappings evaluated in {seconds:.1f} s ({evaluated / seconds:,.0f} per second)")
        return [*parts, *self._limited()]

    def _proved(self) -> list[str]:
        """Return what is proved of one layer, and why gaps are left."""
        reasons = grouped(
            (self._search(layer).gap_reason or "its mapper does not tell why", layer.name)
            for layer in self.layers
            if layer.result is not None and layer.result.proved not in (None, "yes")
        )
        if not self.is_one:
            return [f"not proved, because {reason}: {', '.join(names)}" for reason, names in reasons.items()]
        if reasons and (gap := self.layers[0].result and self.layers[0].result.gap):
            better = f"a mapping of this space may be up to {percent(gap)} better"
            return [f"not proved: {better}{self._whose()}, because {reason}" for reason in reasons]
        if not self._proofs:
            return []
        space = told_space(self._cutting(self.layers[0]))
        if self._whose():
            verify = "`tilewright verify --certificate FILE` checks a claim, with a FILE of `map -o`"
            return [f"that no mapping of the space is better{self._whose()}, {space}; {verify}"]
        return [f"proved that no mapping of the space is better, {space}: yes"]

    def _whose(self) -> str:
        """Return whose claim the bound of a single layer is, as the end of a clause; empty if it is proved."""
        result = self.layers[0].result
        return f" is claimed by {result.claimed_by}" if result is not None and result.claimed_by else ""

    def _limited(self) -> list[str]:
        """Return which limits ended searches before the mapper did."""
        limits = grouped((self._search(layer).stopped_by, layer.name) for layer in self.layers)
        every = len(self.layers)
        return [
            limit_message(limit, "" if len(names) == every else ", ".join(names))
            for limit, names in limits.items()
            if limit is not None
        ]


def _energies(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the energy by place of the rows of a report."""
    energies: dict[str, float] = {}
    for row in rows:
        name = f"{row['level']}_pj"
        energies[name] = energies.get(name, 0.0) + row["energy_pj"]
    return energies


def _origin(layer: MappedLayer) -> str:
    return layer.distinct.origin.beside(layer.name) if layer.distinct.origin else "-"
