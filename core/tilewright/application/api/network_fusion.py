"""`fuse_network` and `fusion_gain`: intermediate results of a network that stay on chip between layers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from tilewright.application.api.call_arguments import checked
from tilewright.application.api.gain import FusionGain, gain_of, objective_column
from tilewright.application.api.keywords import settings_of
from tilewright.application.api.mapping_report import PAGE
from tilewright.application.api.plan import Plan, Sources, folder_of, warn_of_inputs
from tilewright.application.api.settings import MapSettings
from tilewright.application.api.vector_tables import WithVectors, group_units, group_vector_tables
from tilewright.application.documents.searches import (
    FusedNetworkOutput,
    FusedUnits,
    NetworkGroupOutput,
    NetworkLayer,
    Resident,
)
from tilewright.application.run.artifacts.layers import spec_of, versions_of
from tilewright.application.run.artifacts.summaries import folder_message
from tilewright.application.run.case_costs import CaseCosts, LayerCost
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import record_of
from tilewright.application.run.fused_vectors import FusedVectors
from tilewright.application.run.group_search import build_group_mapper
from tilewright.application.run.network import LayerSearch, MappedLayer, map_searches
from tilewright.application.run.resident import Intermediate, Placement, ResidentNetwork, group_of
from tilewright.application.run.tiled_network import (
    TiledPart,
    TiledRun,
    TiledSearch,
    Unsearched,
    summed,
    tiled_runs,
    with_runs,
)
from tilewright.application.run.vector_network import CountedVector, counted_vectors
from tilewright.errors import CallError, InputError, OutputError, TilewrightError
from tilewright.interrupts import stop_requested
from tilewright.plugin.registry import installed
from tilewright.plugin.result import PROOF_TOLERANCE, gap_of, proof
from tilewright.plugin.specs import MapperSpec
from tilewright.reports.costs import COSTS
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped.certificate import FUSION_PROOFS, Certificate, NetworkClaim
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.workload import Workload
from tilewright.tables import Column, Table, Tabular, numbers
from tilewright.values import attributes

UNUSED = ("sensitivity", "algorithms", "algorithm_options", "movement", "cluster", "resume", "uneven", "expressible")
"""Settings of `map` that fused networks do not take."""
CERTIFIED = (
    *("constraints", "value_bits", "seconds", "evaluations", "patience", "seed"),
    *("mapper", "mapper_options", "model", "model_options"),
)
"""Settings of `map` in a certificate. The constraints contain `factors`."""

GROUP_SECONDS = 150.0
"""Limit of the searches of all groups together, unless one is given."""
NARROW_GAP = 0.1
"""Gap from which on the search of a layer leaves out its widest pass, unless a gap is given. A network needs hundreds of searches."""


@dataclass(frozen=True, repr=False)
class NetworkFusion(Tabular):
    """Network whose intermediate results stay on chip where that costs least.

    Attributes:
        workload, architecture: what was searched.
        gain: the bound before the search of residents.
        residents: the results that stay in `gain.home`.
        parts: the layers that share loops, as group mappings.
        costs: cost of each layer of the workload, in order; of those in `parts` without fusion.
        energy_pj, cycles: of the whole network.
        bound: lower bound on the objective over all choices of residents; with `parts` that of all fusion. None if no
            result is known to have a choice, because the workload does not state whose results are read. With
            `claimed_by`, it is the claim of plugins that are not built in, and nothing is `proved`.
        unsearched: layers for which no shared loops were searched, and why.
        searched_bound: with `parts`, lower bound over the mappings that were searched. These are results that
            stay whole, and the `searched_spaces` of layers that share loops; None for a product.
        with_vectors: totals with vector layers, on tiles where layers share loops; None without vector units.
        unfused_with_vectors: totals with vector layers, each on its own, and without fusion.
        group: the group mapping; None if nothing stays, or if an edge cannot express which words are read.
        certificate: None for a product, without a bound, after an interrupt, or if a plugin is an object.

    Example:
        >>> import tilewright as tw
        >>> network = tw.fuse_network("nk,km->nm; n=4 k=4 m=4", "eyeriss", objective="energy", cache=False)
        >>> network.layers, network.saved
        (('einsum',), 0.0)
    """

    workload: Workload
    architecture: Architecture
    gain: FusionGain
    residents: tuple[Intermediate, ...]
    costs: tuple[LayerCost, ...]
    energy_pj: float
    cycles: float
    bound: float | None
    group: GroupMapping | None
    claimed_by: str | None = None
    certificate: Certificate[NetworkClaim] | None = None
    folder: Path | None = None
    unwritten: OutputError | None = None
    parts: tuple[TiledPart, ...] = ()
    unsearched: tuple[Unsearched, ...] = ()
    searched_bound: float | None = None
    searched_spaces: tuple[str, ...] = ()
    with_vectors: FusedVectors | None = None
    unfused_with_vectors: FusedVectors | None = None

    def __repr__(self) -> str:
        return f"<NetworkFusion of {self.gain.network} on {self.gain.architecture}: {len(self.residents)} residents>"

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return tuple(layer.name for layer in self.workload.layers)

    @property
    def value(self) -> float:
        """The objective over the whole network."""
        return self.gain.objective.value(self.energy_pj, self.cycles)

    @property
    def gap(self) -> float | None:
        """Largest possible further saving among all choices of whole residents, as a fraction."""
        return None if self.bound is None else max(0.0, gap_of(self.value, self.bound) or 0.0)

    @property
    def searched_gap(self) -> float | None:
        """Largest possible further saving among the mappings that were searched, as a fraction."""
        return None if self.searched_bound is None else max(0.0, gap_of(self.value, self.searched_bound) or 0.0)

    @property
    def proved(self) -> bool:
        """Whether no choice of residents costs less."""
        return self.gap is not None and self.gap < PROOF_TOLERANCE and self.claimed_by is None

    @property
    def saved(self) -> float:
        """Saving against the cost without fusion, as a fraction."""
        return 1 - self.value / self.gain.unfused if self.residents or self.parts else 0.0

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map NET --fuse --json`."""
        return FusedNetworkOutput(
            **self.gain.figures()
            | attributes(self, "saved energy_pj cycles bound gap proved claimed_by searched_bound searched_gap"),
            fused=self.value,
            residents=[
                Resident(maker=resident.maker, readers=list(resident.operands), words=resident.words)
                for resident in self.residents
            ],
            groups=[
                NetworkGroupOutput(
                    layers=list(part.layers),
                    count=part.count,
                    **COSTS.data("layers", part.report),
                    mapping=part.mapping.to_data(),
                    units=None if part.vectors is None else group_units(part.vectors),
                )
                for part in self.parts
            ],
            layers=[
                NetworkLayer(
                    name=name,
                    **COSTS.data("layers", cost),
                    mapping=None if cost.layer is None or cost.layer.mapping is None else cost.layer.mapping.to_data(),
                )
                for name, cost in zip(self.layers, self.costs, strict=True)
            ],
            units=_units(self.with_vectors),
            unfused_units=_units(self.unfused_with_vectors),
        ).data()

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per layer; layers that share loops have one together."""
        staying, rows = {resident.maker for resident in self.residents}, list[dict[str, Any]]()
        starts = {part.first: part for part in self.parts}
        together = {number for part in self.parts for number in range(part.first + 1, part.last + 1)}
        for number, (name, cost) in enumerate(zip(self.layers, self.costs, strict=True)):
            part = starts.get(number)
            if part is not None:
                rows.append(
                    {"layer": " + ".join(part.layers)} | COSTS.data("layers", part.report) | {"result_stays": True}
                )
            elif number not in together:
                rows.append({"layer": name} | COSTS.data("layers", cost) | {"result_stays": name in staying})
        return rows

    def tables(self) -> Sequence[Table | str]:
        column = objective_column(self.gain.objective)
        table = Table(
            "mapping", column, numbers("saved %", decimals=2), title=f"{self.gain.network} on {self.gain.architecture}"
        )
        table.add_row("unfused", self.gain.unfused, None)
        table.add_row("fused", self.value, 100 * self.saved)
        if self.gain.least is not None and self.gain.gain is not None:
            table.add_row(self.gain.bounded, self.gain.least, 100 * self.gain.gain)
        staying = Table("result", Column("read by", wrapped=True), numbers("words"), title=f"stay in {self.gain.home}")
        for resident in self.residents:
            staying.add_row(resident.maker, ", ".join(resident.operands), resident.words)
        told = [] if self.bound is None else list(self._proved())
        if self.gain.unknown or not (self.residents or self.parts):
            told.append(self.gain.told)
        shown: list[Table | str] = ["", staying] if self.residents else []
        if self.parts:
            sharing = Table(
                Column("layers", wrapped=True), numbers("times"), *COSTS.columns("fuse"), title="share loops"
            )
            for part in self.parts:
                sharing.add_row(", ".join(part.layers), part.count, *COSTS.data("fuse", part.report).values())
            shown += ["", sharing]
            for part in self.parts:
                shown += [] if part.vectors is None else group_vector_tables(part.vectors)
                shown += ["", part.mapping.titled()]
        return [table, *told, *self.gain.space, *self._vectors(), *shown]

    def _vectors(self) -> Iterator[Table | str]:
        """Yield the totals with vector layers, and those that do not work on tiles, or are not counted."""
        if self.with_vectors is None or self.unfused_with_vectors is None:
            return
        table = Table("mapping", *COSTS.columns("fused vectors"), title="with vector layers")
        for name, totals in (("unfused", self.unfused_with_vectors), ("fused", self.with_vectors)):
            table.add_row(name, *COSTS.data("fused vectors", WithVectors(totals)).values())
        yield from ("", table, "what is proved is proved of the layers alone, without vector layers")
        yield from (f"on its own, not on tiles: {text}" for text in self.with_vectors.left)
        yield from (f"{one.layer.name} is not counted: {one.reason}" for one in self.with_vectors.uncounted)

    def messages(self) -> list[str]:
        """Return messages on layers whose search failed or was refused, and on the folder."""
        return [
            *(f"error: {error}" for error in self.errors),
            *(f"note: {run}" for run in self.unsearched),
            *folder_message(self.folder, self.unwritten),
        ]

    @property
    def errors(self) -> tuple[TilewrightError, ...]:
        """Errors of layers that have a mapping all the same, each once."""
        errors = [cost.layer.error for cost in self.costs if cost.layer is not None and cost.layer.error is not None]
        return tuple({str(error): error for error in errors}.values())

    def _proved(self) -> Iterator[str]:
        """Yield statements on what is proved, each with the mappings that it covers."""
        count = len(self.gain.may_stay)
        if self.parts:
            yield f"of all fusion in {self.gain.home}, proved: {proof(self.gap, self.claimed_by)}"
            if self.searched_gap is not None:
                yield f"of the mappings that were searched, proved: {proof(self.searched_gap, self.claimed_by)}"
            yield f"searched: results that stay whole; {'; '.join(self.searched_spaces)}"
            return
        some = f"choices of the {count} results that may stay whole" if count else "mappings without fusion"
        yield f"in the layers' map spaces, proved among {some}: {proof(self.gap, self.claimed_by)}"


def _units(totals: FusedVectors | None) -> FusedUnits | None:
    return None if totals is None else FusedUnits(**COSTS.data("fused vectors", WithVectors(totals)))


@checked
def fusion_gain(workload: Sources, arch: Sources, **settings: Unpack[MapSettings]) -> FusionGain:
    """Return an upper bound on what fusion can save in a network, from two searches of each distinct layer.

    One search is without fusion; as in the other, any tensor may bypass the on-chip memory. In the other, all intermediate results start in the on-chip memory and take no
    capacity there. So the bound holds for results that stay whole or in tiles, under the same constraints and the same
    cost model, leakage included. It does not cover results that stay in other memories, or layers that change.

    Args:
        workload, arch: As for `map`. Only workloads with `reads` have results that may stay (docs/schemas.md).
        **settings: Those of `map`, with the objective energy or cycles.

    Raises:
        NotConformableError: The objective, the hardware or the cost model is not covered.
        CallError, InputError, UnknownNameError: An argument is invalid.

    Example:
        >>> import tilewright as tw
        >>> tw.fusion_gain("nk,km->nm; n=4 k=4 m=4", "eyeriss", objective="energy", cache=False).gain
        0.0
    """
    return gain_of(_network(*_planned(workload, arch, settings)))


@checked
def fuse_network(workload: Sources, arch: Sources, **settings: Unpack[MapSettings]) -> NetworkFusion:
    """Keep intermediate results of a network on chip where that costs least, as `tilewright map NET --fuse` does.

    A result stays whole in one memory, from the layer that makes it to the last one that reads it. Layers are mapped in
    sequence, each with the capacity that is left. Layers that follow one another may share loops instead, so that tiles of
    their results stay. `seconds` limits the search of each layer, and those of all groups together; without it, groups
    have 150 s.

    Args:
        workload, arch: As for `map`. Only workloads with `reads` have results that may stay (docs/schemas.md).
        **settings: Those of `map`. By a product, such as edp, the best of the networks by energy and by cycles is taken,
            each searched within these limits.
            The folder is for `network.json`, and for
            `group.yaml`, which `evaluate` reads, if a group mapping can express the network. Layers that share loops have
            `group_1.yaml` and so on. `verify --certificate` checks `network.certificate.yaml`. `report.html` shows where
            results live, and how full the memories are.

    Raises:
        NotConformableError: The objective, the hardware or the cost model is not covered, or a layer has no mapping.
        CallError, InputError, UnknownNameError: An argument is invalid.
        OutputError: The folder cannot be written to.

    Example:
        >>> import tilewright as tw
        >>> tw.fuse_network("nk,km->nm; n=4 k=4 m=4", "eyeriss", objective="energy", cache=False).saved
        0.0
    """
    plan, configuration = _planned(workload, arch, settings)
    networks, objective, runs = _networks(plan, configuration), configuration.objective, list[_Run]()
    named = [("fusion", network.configuration) for network in networks]
    files = folder_of(settings, plan.workload, named, fused=True)
    if files is not None:
        files.clear()
    seconds = GROUP_SECONDS if settings["seconds"] is None else settings["seconds"]
    for network in networks:
        if not (runs and stop_requested()):
            runs.append(_run(network, plan, settings, objective, seconds))
    fusion = runs[0].fusion if objective.is_additive else _product(objective, runs, len(runs) == len(networks))
    if files is None:
        return fusion
    files.write("network.json", json.dumps(fusion.data(), indent=1) + "\n")
    if fusion.group is not None:
        files.write("group.yaml", fusion.group.to_yaml())
    for number, part in enumerate(fusion.parts, 1):
        files.write(f"group_{number}.yaml", part.mapping.to_yaml())
    if fusion.certificate is not None:
        files.write("network.certificate.yaml", fusion.certificate.to_yaml())
    if not stop_requested():  # as in `MappingReport.summarised`
        from tilewright.application.api.page.fused import fused_page  # most runs draw nothing

        files.write(PAGE, fused_page(fusion))
    return replace(fusion, folder=files.path, unwritten=files.failure)


@dataclass(frozen=True)
class _Run:
    """A search by energy or by cycles: its result, and networks to choose from by a product, with and without fusion."""

    fusion: NetworkFusion
    fused: tuple[NetworkFusion, ...] = ()
    unfused: tuple[NetworkFusion, ...] = ()


def _run(network: ResidentNetwork, plan: Plan, settings: MapSettings, objective: Objective, seconds: float) -> _Run:
    """Search a network by energy or by cycles.

    Args:
        objective: the objective, or a product of energy and cycles, by which the layers are then mapped again.
        seconds: limit of all groups together.
    """
    gain = gain_of(network)
    placed, pair = network.place(), network.unfused()
    tiled = TiledSearch((), (), placed.bound, ())
    alone = counted_vectors(network.configuration.model, plan.workload, plan.architecture)
    if not plan.workload.unknown:
        tiled = tiled_runs(network, placed, build_group_mapper(), seconds, alone)
    runs = tiled.runs
    placed = with_runs(placed, network, runs)

    def made(placed: Placement, runs: Sequence[TiledRun]) -> NetworkFusion:
        parts = tuple(part for run in runs for part in run.parts)
        return NetworkFusion(
            workload=plan.workload,
            architecture=plan.architecture,
            gain=gain,
            residents=placed.residents,
            costs=placed.costs,
            energy_pj=placed.energy_pj,
            cycles=placed.cycles,
            bound=placed.bound if gain.has_choice else None,
            group=None if runs else group_of(network, placed),
            claimed_by=network.claimed_by,
            parts=parts,
            unsearched=tiled.unsearched,
            searched_bound=min(placed.value, tiled.bound) if parts else None,
            searched_spaces=tiled.spaces,
            with_vectors=_with_vectors(network, alone, runs, placed.energy_pj, placed.cycles),
            unfused_with_vectors=_with_vectors(network, alone, [], *pair),
        )

    fusion = made(placed, runs)
    if network.configuration.objective != objective:
        costs = tuple(network.costs[network.case(at, frozenset())] for at in range(len(fusion.layers)))
        plain = replace(placed, residents=(), costs=costs, energy_pj=pair[0], cycles=pair[1])
        fused, unfused = (_mapped_again(network, one, some, objective) for one, some in ((placed, runs), (plain, ())))
        return _Run(fusion, (fusion, made(fused, runs)), (made(plain, ()), made(unfused, ())))
    if plan.named and not runs and not network.configuration.constraints.uneven:
        fusion = replace(fusion, certificate=_certificate(fusion, network, settings))
    return _Run(fusion)


def _mapped_again(
    network: ResidentNetwork, placed: Placement, runs: Sequence[TiledRun], objective: Objective
) -> Placement:
    """Return the placement with the layers that share no loops mapped by another objective."""
    configuration = network.configuration.with_objective(objective, network.configuration.most_cycles)
    table = CaseCosts(configuration, network.search, network.cases.distinct)
    lives = network.lives([resident.maker for resident in placed.residents])
    cases = [network.case(number, live) for number, live in enumerate(lives)]
    table.ask(cases)
    costs = tuple(
        result if (result := table.costs.get(case)) is not None and math.isfinite(result.value) else cost
        for case, cost in zip(cases, placed.costs, strict=True)
    )
    energy, cycles = summed(network, costs, [part for run in runs for part in run.parts])
    return replace(placed, costs=costs, energy_pj=energy, cycles=cycles)


def _product(objective: Objective, runs: Sequence[_Run], is_whole: bool) -> NetworkFusion:
    """Return the network of least product of energy and cycles among those of the searches by either, with or without fusion.

    The product of both bounds bounds it. A search that shares no loops bounds whole residents only; then its bound on all
    fusion counts, if the result has tiles.

    Args:
        is_whole: whether both searches ran.
    """

    def value(fusion: NetworkFusion) -> float:
        return objective.value(fusion.energy_pj, fusion.cycles)

    plain = min((fusion for run in runs for fusion in run.unfused), key=value)
    best = min([plain, *(fusion for run in runs for fusion in run.fused)], key=value)
    bounds = [
        run.fusion.gain.least if best.parts and not run.fusion.parts else run.fusion.bound for run in runs if is_whole
    ]
    gain = _product_gain(objective, [run.fusion.gain for run in runs] if is_whole else [], plain)
    return replace(
        best,
        gain=gain,
        bound=_product_of(objective, bounds),
        searched_bound=None,
        unfused_with_vectors=plain.with_vectors,
    )


def _product_of(objective: Objective, bounds: Sequence[float | None]) -> float | None:
    """Return the product of bounds on energy and on cycles; None if one is unknown."""
    known = [bound for bound in bounds if bound is not None]
    return objective.value(known[0], known[1]) if len(known) == 2 else None


def _product_gain(objective: Objective, gains: Sequence[FusionGain], plain: NetworkFusion) -> FusionGain:
    """Return the gain in a product, from those by energy and by cycles and the best network without fusion."""
    least = _product_of(objective, [gain.least for gain in gains])
    unfused = objective.value(plain.energy_pj, plain.cycles)
    return replace(plain.gain, objective=objective, unfused=unfused, least=least)


def _with_vectors(
    network: ResidentNetwork, alone: Sequence[CountedVector], runs: Sequence[TiledRun], energy_pj: float, cycles: float
) -> FusedVectors | None:
    """Return the totals with vector layers; None if there is none, or the machine has no vector unit."""
    made = tuple((part.count, part.vectors) for run in runs for part in run.parts if part.vectors is not None)
    left = tuple(text for run in runs for text in run.left)
    if not any(vector.report.valid for vector in alone):
        return None
    return FusedVectors(network.configuration.architecture, tuple(alone), made, energy_pj, cycles, left)


def fused_network(
    workload: Workload, arch: Architecture, objective: Objective, settings: dict[str, Any]
) -> ResidentNetwork:
    """Return the network of a certificate, with its settings; nothing comes from the cache.

    Raises:
        InputError: A setting is unknown or invalid.
        NotConformableError: The objective, the hardware or the cost model is not covered.
    """
    strange = sorted(settings.keys() - set(CERTIFIED))
    if strange:
        raise InputError(f"unknown settings: {', '.join(strange)}; expected {', '.join(CERTIFIED)}")
    defaults: Any = {name: setting.default for name, setting in settings_of(MapSettings).items()}
    plan, configuration = _planned(workload, arch, defaults | settings | {"objective": objective.name, "cache": False})
    return _network(plan, configuration)


def _certificate(
    fusion: NetworkFusion, network: ResidentNetwork, settings: MapSettings
) -> Certificate[NetworkClaim] | None:
    """Return the certificate of a fused network; None without a bound, or if a search was interrupted or found nothing."""
    if fusion.bound is None:
        return None
    mappings = dict[str, Mapping]()
    for name, cost in zip(fusion.layers, fusion.costs, strict=True):
        if cost.layer is None or cost.layer.interrupted or cost.layer.result is None or cost.layer.result.best is None:
            return None
        mappings[name] = cost.layer.result.best
    run, given = network.configuration, dict[str, Any](settings)
    options = {name: given[name] for name in CERTIFIED if given[name] is not None}
    options |= {"constraints": run.constraints.to_data(), "model": run.model.record.long_name}
    return Certificate(
        objective=run.objective,
        value=fusion.value,
        bound=fusion.bound,
        gap=gap_of(fusion.value, fusion.bound) or 0.0,
        proof_version=FUSION_PROOFS,
        claimed_by=fusion.claimed_by,
        versions=versions_of(run.mapper_record, run.model.record),
        claim=NetworkClaim(
            unfused=fusion.gain.unfused,
            least=fusion.gain.least,
            energy_pj=fusion.energy_pj,
            cycles=fusion.cycles,
            residents=tuple(resident.maker for resident in fusion.residents),
            settings=FrozenDict(options),
            architecture=run.architecture,
            workload=network.workload,
            mappings=FrozenDict(mappings),
        ),
    ).sealed()


def _planned(workload: Sources, arch: Sources, settings: MapSettings) -> tuple[Plan, RunConfiguration]:
    known = settings_of(MapSettings)
    odd = [known[name].spelled[0] for name in UNUSED if (settings[name] or None) != (known[name].default or None)]  # type: ignore[literal-required]
    if odd:
        raise CallError(f"fused networks do not take {', '.join(odd)}")
    even: MapSettings = {**settings, "uneven": False}
    plan, configuration = Plan.of_one(workload, arch, even)
    if settings["gap"] is None:
        configuration = _without_widest(configuration)
    if plan.workload.is_list:
        raise InputError(*plan.workload.told(), hint="results stay on chip between the layers of a network")

    warn_of_inputs(plan.workload, configuration, counts_vectors=configuration.model.capabilities.vector_layers)
    return plan, configuration


def _networks(plan: Plan, configuration: RunConfiguration) -> list[ResidentNetwork]:
    """Return the network to search by the objective, or by energy and by cycles, whose bounds bound a product."""
    objective = configuration.objective
    sums = (objective,) if objective.is_additive else (ENERGY, CYCLES)
    return [_network(plan, configuration.with_objective(one, configuration.most_cycles)) for one in sums]


def _network(plan: Plan, configuration: RunConfiguration) -> ResidentNetwork:
    def search(asked: Sequence[LayerSearch]) -> Iterator[MappedLayer]:
        return map_searches(asked, jobs=plan.jobs, cache=plan.results)

    return ResidentNetwork(plan.workload, configuration, search)


def _without_widest(configuration: RunConfiguration) -> RunConfiguration:
    """Return the configuration whose mapper leaves out its longest work where NARROW_GAP is proved without it."""
    record, spec = configuration.mapper_record, spec_of(configuration.mapper_record)
    if (
        spec is None or not spec.narrow_option or record.options.get(spec.narrow_option)
    ):  # there is none, or it is given
        return configuration
    options = {**record.options, spec.narrow_option: NARROW_GAP}
    return replace(
        configuration,
        mapper=installed().make(MapperSpec, record.name, options),
        mapper_record=record_of(installed().find(MapperSpec, record.name), options),
    )
