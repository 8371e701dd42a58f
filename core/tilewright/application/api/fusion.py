"""`fuse`: the optimal group mapping of layers that share loops."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import at_least, checked
from tilewright.application.api.load import Source, load_group
from tilewright.application.api.vector_tables import group_units, group_vector_tables
from tilewright.application.documents.searches import FusedGroupOutput
from tilewright.application.run.artifacts.layers import versions_of
from tilewright.application.run.artifacts.summaries import folder_message
from tilewright.application.run.evaluation import BuiltModel, bind, build_model, evaluate_group
from tilewright.application.run.group_search import BuiltGroupMapper, build_group_mapper, search_group
from tilewright.application.run.group_vectors import GroupVectors, joined_vectors, rows_of
from tilewright.digests import of_data
from tilewright.errors import NotConformableError, OutputError
from tilewright.files import RunFolder
from tilewright.interrupts import stop_requested
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Relaxable
from tilewright.plugin.groupmapper import GroupResult
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.reports.costs import COSTS
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapped.certificate import Certificate, GroupClaim
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.objective import Objective, ObjectiveName
from tilewright.tables import Table, Tabular, numbers
from tilewright.values import attributes


@dataclass(frozen=True, repr=False)
class FusionReport(Tabular):
    """The best group mapping, its report, and that of the optimum without fusion.

    `bound`: nothing in the space costs less; None if the model counts other costs than those that the search compares.
    `proved`: the search ended, and the bound is the mapping's cost. `certificate` is None if nothing is proved, if the cost
    model is an object, or if vector layers need whole rows. `mapper` has searched: what a third party's proves is printed as
    its claim. `unfused_proved`: the mapping without fusion is optimal, too; else it is the best one found. `units` has the
    group's vector layers, which are not part of the proof.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> report = tw.fuse(group, objective="energy")
        >>> report.fused.energy_pj <= layer.energy_pj, report.saved_words
        (True, 0)
    """

    mapping: GroupMapping
    fused: Report
    unfused: Report
    objective: Objective
    proved: bool
    mapper: PluginRecord
    space: str
    certificate: Certificate[GroupClaim] | None = None
    bound: float | None = None
    folder: Path | None = None
    unwritten: OutputError | None = None
    unfused_proved: bool = True
    units: GroupVectors | None = None

    def __repr__(self) -> str:
        return f"<FusionReport: {self.mapping.name} by {self.fused.model}>"

    @property
    def saved_words(self) -> int:
        """Words that the outermost memory moves less than without fusion."""
        return self._outermost(self.unfused) - self._outermost(self.fused)

    @property
    def gap(self) -> float | None:
        """Distance to the lower bound as a fraction of it; 0 if proved, None if there is no bound."""
        value = self.fused.of(self.objective)
        if self.proved or self.bound is None or value is None:
            return 0.0 if self.proved else None
        return value / self.bound - 1 if self.bound else math.inf

    @property
    def claimed_by(self) -> str | None:
        """Group mapper whose claim the bound is; None if it is proved, or if there is none."""
        return claimant(self.mapper) if self.bound else None

    def _outermost(self, report: Report) -> int:
        memory = self.mapping.architecture.memories[0]
        accesses = [access for access in report.accesses if access.level == memory.name]
        words = [
            (counts.reads.total + counts.fills.total + counts.updates.total)
            * self._width(str(counts.layer), counts.tensor)
            for counts in accesses
        ]
        return round(sum(words))

    def _width(self, layer: str, tensor: str) -> float:
        problem = self.mapping.paths[layer].problem
        name = self.mapping.users[tensor][layer]
        return self.mapping.architecture.memories[0].words_of(problem.tensor(name))

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map --fuse --json`."""
        return FusedGroupOutput(
            objective=self.objective.name,
            **attributes(self, "proved space mapper gap bound claimed_by unfused_proved saved_words"),
            mapping=self.mapping.to_data(),
            fused=self.fused.model_dump(mode="json"),
            unfused=self.unfused.model_dump(mode="json"),
            units=None if self.units is None else group_units(self.units),
        ).data()

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for the mapping without fusion, and one for the fused one."""
        return [
            {"mapping": name}
            | COSTS.data("fuse", report)
            | {"outermost_words": self._outermost(report)}
            | {f"{level.name}_peak_words": level.used_words for level in report.levels}
            for name, report in (("unfused", self.unfused), ("fused", self.fused))
        ]

    def tables(self) -> Sequence[Table | str]:
        memories = [memory.name for memory in self.mapping.architecture.memories]
        words = numbers(f"{memories[0]} words"), numbers(f"{memories[1]} peak words")
        title = f"{self.mapping.name} on {self.mapping.architecture.name} by {self.fused.model}"
        table = Table("mapping", *COSTS.columns("fuse"), *words, title=title)
        for row in self.rows():
            peak = row.get(f"{memories[1]}_peak_words", 0)  # a memory that holds nothing has no level
            table.add_row(row["mapping"], *COSTS.data("fuse", row).values(), row["outermost_words"], peak)
        told = [f"warning: {text}" for text in self.fused.warnings]
        either = "; the one without fusion is not proved either" if not self.unfused_proved and self.gap else ""
        vectors = [] if self.units is None else group_vector_tables(self.units)
        return [table, f"{self.objective}: {self._proof}{either}", *told, *vectors, "", self.mapping.titled()]

    @property
    def _proof(self) -> str:
        """Statement on what is proved of the mapping, or on why nothing is."""
        mapper, by = self.mapper.long_name, self.claimed_by
        if self.proved:
            claim = f"claimed by {by} to be" if by else "proved"
            alone = ", without the costs of vector layers" if self.units is not None else ""
            return f"{claim} optimal among mappings with {self.space}{alone}"
        if self.gap is None:
            other = f"{mapper} compared other costs than those of {self.fused.model}"
            return f"not proved: {other}, such as words that neighbours forward"
        if not self.bound and claimant(self.mapper):
            return f"not proved: {mapper} claims no bound"
        if not self.bound:
            return (
                "not proved, and without a bound: the search was cut too early, or layers read words that do not exist"
            )
        cut = f"the search was cut at a gap of {self.gap:.2%}"
        least = f"nothing of the space costs less than {self.bound:,.10g}"
        return f"not proved: {cut}; {f'{by} claims that ' if by else ''}{least}"

    def messages(self) -> list[str]:
        """Return a message on the folder, if there is one."""
        return folder_message(self.folder, self.unwritten)


@checked
def fuse(
    group: Source,
    arch: Source | None = None,
    *,
    objective: ObjectiveName = "edp",
    mapper: str | None = None,
    mapper_options: MappingOf[str, Any] | None = None,
    model: str | None = None,
    model_options: MappingOf[str, Any] | None = None,
    seconds: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> FusionReport:
    """Find the optimal group mapping of several layers, as `tilewright map --fuse` does.

    At the time limit, or if the user interrupts, it returns the best mapping so far, with a lower bound.

    Args:
        group: A group mapping, or a file or dict of one. Its layers and edges are used, and its tree is not.
        arch: An architecture; default: the group's. The built-in mapper takes two memories and one compute unit, or an array.
        objective: Metric of all layers together: edp, ed2p, energy or cycles.
        mapper: Group mapper. Default: the one marked in `tilewright plugins`.
        mapper_options: Options of the group mapper.
        model: Cost model that accepts groups. Default: the one marked in `tilewright plugins`.
        model_options: Options of the cost model.
        seconds: Time limit of the search. Default: none.
        folder: Folder for the file `group.yaml`, which `evaluate` reads, and for `group.certificate.yaml` if it is proved.
            It belongs to one run, as that of `map` does.
        force: Replace files of another run in the folder.

    Raises:
        NotConformableError: The architecture, a layer or the model is not covered, or nothing fits.
        CallError, InputError, UnknownNameError: An argument or a file is invalid, or the folder belongs to another run.
        OutputError: The folder cannot be written to.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> tw.fuse(group, objective="energy").saved_words
        0
    """
    loaded = load_group(group, arch)
    chosen = Objective.named(objective)
    at_least(0, seconds=seconds)
    searcher = build_group_mapper(mapper, mapper_options)
    built = build_model(model or installed().default(CostModelSpec, "search"), model_options)
    files = (
        None
        if folder is None
        else _acquired(
            folder,
            loaded,
            [objective, *(plugin.record.model_dump(mode="json") for plugin in (searcher, built)), seconds],
            force,
        )
    )
    searched = _searched(searcher, loaded, built, chosen, seconds)
    fused, unfused = evaluate_group(built, searched.group), evaluate_group(built, searched.unfused)
    reasons = fused.reasons or unfused.reasons
    if reasons:
        raise NotConformableError(f"cost model {built.name}", reasons)
    exact = is_exact(searched, fused, built)
    proved = exact and searched.proved
    certificate = (
        _certificate(searched, fused, unfused, chosen, built, searcher)
        if proved and not rows_of(loaded)[0] and isinstance(model, str | None)
        else None
    )
    bound = (fused.of(chosen) if proved else searched.bound) if exact else None
    report = FusionReport(
        searched.group,
        fused,
        unfused,
        chosen,
        proved,
        searcher.record,
        searched.space or searcher.spec.space,
        certificate,
        bound,
        unfused_proved=exact and searched.unfused_proved,
        units=joined_vectors(built, searched.group, fused),
    )
    if files is None:
        return report
    files.write("group.yaml", searched.group.to_yaml())
    if certificate is not None:
        files.write("group.certificate.yaml", certificate.to_yaml())
    return replace(report, folder=files.path, unwritten=files.failure)


def _searched(
    mapper: BuiltGroupMapper, group: GroupMapping, model: BuiltModel, objective: Objective, seconds: float | None
) -> GroupResult:
    """Return the better result of two searches with vector layers: rows of each softmax whole, or cut for an online one."""
    ends = None if seconds is None else time.monotonic() + seconds
    whole = search_group(mapper, group, model, objective, seconds)
    rows, cut = rows_of(group)
    if not cut or stop_requested() or not group.architecture.units:
        return whole
    left = None if ends is None else max(0.0, ends - time.monotonic())
    online = search_group(mapper, group, model, objective, left, rows=rows - cut)
    values = []
    for result in (whole, online):
        made = joined_vectors(model, result.group, evaluate_group(model, result.group))
        values.append(math.inf if made is None or made.refused else made.of(objective))
    if values[1] < values[0]:
        return online
    told = whole.space or mapper.spec.space
    return replace(whole, space=f"{told}; no loop cuts the rows of a softmax" if told else "")


def _acquired(folder: str | os.PathLike[str], group: GroupMapping, settings: list[Any], force: bool) -> RunFolder:
    """Return the folder of this run, without files of earlier runs."""
    data = group.to_data()
    content = of_data({name: data[name] for name in data.keys() - {"architecture", "tree"}})
    files = RunFolder(folder)
    files.acquire(f"{group.name} by fusion", content, of_data([content, data["architecture"], settings]), force=force)
    files.clear()
    return files


def is_exact(searched: GroupResult, report: Report, model: BuiltModel) -> bool:
    """Return whether the model counts the costs that the joining compared.

    On an array whose neighbours may forward words, other mappings may cost less than the joining counted, unless the
    host's branches gave the bound.
    """
    told = ((report.energy_pj, searched.energy_pj), (report.cycles, searched.cycles))
    equal = all(one is not None and abs(one - other) <= 1e-9 * other for one, other in told)
    return equal and (searched.by_branches or not _may_forward(searched.group, model))


def _may_forward(group: GroupMapping, model: BuiltModel) -> bool:
    """Return whether neighbours of an array may forward words under the model."""
    architecture = group.architecture
    for problem in group.layers if architecture.compute_instances > 1 else ():
        space = MapSpace.of(problem, architecture, None)
        evaluator = bind(model, problem, architecture)
        relaxation = evaluator.relaxation(space.skeleton, space.keeps) if isinstance(evaluator, Relaxable) else None
        if relaxation is not None and relaxation.neighbours:
            return True
    return False


def _certificate(
    searched: GroupResult,
    fused: Report,
    unfused: Report,
    objective: Objective,
    model: BuiltModel,
    mapper: BuiltGroupMapper,
) -> Certificate[GroupClaim]:
    value, without = fused.of(objective), unfused.of(objective)
    assert value is not None and without is not None  # both are valid
    return Certificate(
        objective=objective,
        value=value,
        bound=value,
        gap=0.0,
        proof_version=mapper.spec.proof_version,
        versions=versions_of(mapper.record, model.record),
        claim=GroupClaim(
            unfused=without,
            mapper=mapper.record,
            space=searched.space or mapper.spec.space,
            model=model.record,
            group=searched.group,
        ),
    ).sealed()
